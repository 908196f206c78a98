package replay

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestWatchedKeyOfALease: the revoke of the lease that the watched key has changes it without naming it.
func TestWatchedKeyOfALease(t *testing.T) {
	put := func(key string, lease int64) *dumplog.Request {
		return &dumplog.Request{Kind: dumplog.KindPut, Put: &dumplog.PutRequest{Key: []byte(key), Lease: lease}}
	}
	revoke := func(id int64) *dumplog.Request {
		return &dumplog.Request{Kind: dumplog.KindLeaseRevoke, LeaseRevoke: &dumplog.LeaseRevokeRequest{ID: id}}
	}
	keep := put("/a", 0)
	keep.Put.IgnoreLease = true
	inTxn := &dumplog.Request{Kind: dumplog.KindTxn, Txn: &dumplog.TxnRequest{Failure: []dumplog.RequestOp{
		{Put: &dumplog.PutRequest{Key: []byte("/a"), Lease: 9}}}}}
	gone := &dumplog.Request{Kind: dumplog.KindDeleteRange,
		DeleteRange: &dumplog.DeleteRangeRequest{Key: []byte("/a")}}
	for name, c := range map[string]struct {
		before []*dumplog.Request
		want   bool
	}{
		"its lease":      {[]*dumplog.Request{put("/a", 9)}, true},
		"of another key": {[]*dumplog.Request{put("/b", 9)}, false},
		"another lease":  {[]*dumplog.Request{put("/a", 8)}, false},
		"replaced":       {[]*dumplog.Request{put("/a", 9), put("/a", 0)}, false},
		"kept":           {[]*dumplog.Request{put("/a", 9), keep}, true},
		"deleted":        {[]*dumplog.Request{put("/a", 9), gone}, false},
		"in a branch":    {[]*dumplog.Request{inTxn}, true},
		"revoked before": {[]*dumplog.Request{put("/a", 9), revoke(9)}, false},

		"a branch without it": {[]*dumplog.Request{put("/a", 9), {Kind: dumplog.KindTxn,
			Txn: &dumplog.TxnRequest{}}}, true},
	} {
		k := watchedKey{name: []byte("/a")}
		for i, r := range c.before {
			k.look(uint64(i), r, nil)
		}
		if k.look(9, revoke(9), nil); k.changes != c.want {
			t.Errorf("%s: %t", name, k.changes)
		}
	}
	held := &sim{subject: &subject{Model: apply.Model{Keys: apply.NewKeys()}}}
	held.Keys.Put(apply.Key{Name: "/a", Lease: 9})
	k := watchedKey{name: []byte("/a")}
	if k.look(9, revoke(9), []*sim{nil, held}); !k.changes {
		t.Error("a key that had the lease before the log")
	}
	if k.look(10, put("/b", 0), []*sim{held}); k.changes {
		t.Error("another key")
	}
}
