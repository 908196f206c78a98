package evidence_test

import (
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// TestIdleTail: up to 3.4 a killed server may have applied the entries above its commit index, up to one that writes a
// key and so moves the consistent index.
func TestIdleTail(t *testing.T) {
	revoke := &etcdserverpb.InternalRaftRequest{LeaseRevoke: &etcdserverpb.LeaseRevokeRequest{ID: 7}}
	grant := &etcdserverpb.InternalRaftRequest{LeaseGrant: &etcdserverpb.LeaseGrantRequest{ID: 7, TTL: 60}}
	remove := &etcdserverpb.InternalRaftRequest{DeleteRange: &etcdserverpb.DeleteRangeRequest{Key: []byte("k")}}
	type requests = []*etcdserverpb.InternalRaftRequest
	for name, c := range map[string]struct {
		tail      requests
		version   string
		commit    uint64
		idle, top uint64
		index     uint64
	}{
		"nothing above":            {nil, "3.4.0", 8, 0, 8, 8},
		"revokes and grants":       {requests{grant, revoke}, "3.4.0", 8, 10, 10, 8},
		"up to the first write":    {requests{grant, remove, revoke}, "3.4.0", 8, 9, 9, 8},
		"a write at once":          {requests{remove, revoke}, "3.4.0", 8, 0, 8, 8},
		"a write that is applied":  {requests{remove, revoke}, "3.4.0", 8, 0, 10, 9},
		"between two writes":       {requests{remove, revoke, grant, remove}, "3.4.0", 8, 0, 11, 9},
		"after both of them":       {requests{remove, revoke, remove, grant}, "3.4.0", 8, 0, 12, 11},
		"committed":                {requests{grant, revoke}, "3.4.0", 10, 0, 10, 8},
		"the index moves with all": {requests{grant, revoke}, "3.5.0", 8, 10, 8, 8},
	} {
		t.Run(name, func(t *testing.T) {
			h := clustertest.NewHand(t, t.TempDir(), "n", 0xa1, 0xc1)
			h.Found(false, 0xa1, 0xa2, 0xa3)
			h.Request(2, 4, nil)
			for index := uint64(5); index <= 8; index++ {
				h.Put(2, index, clustertest.RequestID(0xa1, 1763000000000, index), "k", "v", true)
			}
			for i, r := range c.tail {
				r.Header = &etcdserverpb.RequestHeader{ID: clustertest.RequestID(0xa1, 1763000000000, uint64(9+i))}
				h.Request(2, uint64(9+i), r)
			}
			h.State(2, 0xa1, c.commit)
			h.Versions(c.version)
			m := open(t, evidence.Spec{Name: "n", Where: h.Close(c.index, 2)}).Members[0]
			if m.WAL.IdleAfter(c.commit) != c.idle || m.AppliedMin != c.index || m.AppliedMax != c.top {
				t.Errorf("idle %v, applied %d to %d; want %d, %d to %d", m.WAL.Idle, m.AppliedMin, m.AppliedMax,
					c.idle, c.index, c.top)
			}
		})
	}
}
