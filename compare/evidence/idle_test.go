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
	}{
		"nothing above":            {version: "3.4.0", commit: 8, top: 8},
		"revokes and grants":       {requests{grant, revoke}, "3.4.0", 8, 10, 10},
		"up to the first write":    {requests{grant, remove, revoke}, "3.4.0", 8, 9, 9},
		"a write at once":          {requests{remove, revoke}, "3.4.0", 8, 0, 8},
		"committed":                {requests{grant, revoke}, "3.4.0", 10, 0, 10},
		"the index moves with all": {requests{grant, revoke}, "3.5.0", 8, 10, 8},
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
			m := open(t, evidence.Spec{Name: "n", Where: h.Close(8, 2)}).Members[0]
			if m.WAL.IdleTo != c.idle || m.AppliedMin != 8 || m.AppliedMax != c.top {
				t.Errorf("idle to %d, applied %d to %d; want %d, 8 to %d", m.WAL.IdleTo, m.AppliedMin, m.AppliedMax,
					c.idle, c.top)
			}
		})
	}
}
