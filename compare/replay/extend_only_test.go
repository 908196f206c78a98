package replay

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestWalkPastTheOnlyPut: the newest revision that is left is that of a put with its key and its lease, if nothing can
// have refused the put, no entry after it puts the key, and it can have written no other revision.
func TestWalkPastTheOnlyPut(t *testing.T) {
	held, leased := rec(9, 0, "k", "1"), func(id int64) *dumplog.Request {
		r := put("k", "2")
		r.Put.Lease = id
		return r
	}
	own := put("k", "2")
	own.Put.IgnoreValue = true
	held.lease = 7
	many := groupOf(held, rec(9, 1, "m", "1"))
	gone := rec(9, 0, "k", "")
	gone.del = true
	lost := rec(9, 0, "k", "1")
	lost.bad = true
	other := txn(cmpMod("z", 4), []dumplog.RequestOp{putOp("k", "2")}, nil)
	for name, c := range map[string]struct {
		first, later *dumplog.Request
		group        *group
		granted      uint64
		held, moved  bool
	}{
		"a lease that is still there":    {leased(7), del("x", ""), groupOf(held), 0, true, true},
		"it is gone":                     {leased(7), del("x", ""), groupOf(held), 0, false, false},
		"it was granted later":           {leased(7), del("x", ""), groupOf(held), 2, true, false},
		"another lease":                  {leased(8), del("x", ""), groupOf(held), 0, true, false},
		"no lease":                       {put("k", "2"), del("x", ""), groupOf(rec(9, 0, "k", "1")), 0, false, true},
		"another key":                    {put("l", "2"), del("x", ""), groupOf(rec(9, 0, "k", "1")), 0, false, false},
		"a tombstone":                    {put("k", "2"), del("x", ""), groupOf(gone), 0, false, false},
		"several records":                {leased(7), del("x", ""), many, 0, true, false},
		"a record that does not decode":  {put("k", "2"), del("x", ""), groupOf(lost), 0, false, false},
		"another entry may have put it":  {put("k", "2"), other, groupOf(rec(9, 0, "k", "1")), 0, false, false},
		"it may have written the last":   {put("k", "2"), del("x", ""), groupOf(rec(8, 0, "k", "2")), 0, false, true},
		"a put that keeps the key's own": {own, del("x", ""), groupOf(held), 0, true, false},
	} {
		m := &evidence.Member{DB: &evidence.DB{}}
		if c.held {
			m.DB.Leases = []dumpdb.Lease{{ID: 7}, {ID: 8}}
		}
		s := &logView{m: m, compacted: 7, grantedAt: func(int64) (uint64, bool) { return c.granted, true }}
		b := &backwards{s: s, items: itemsOf(c.first, c.later), rev: c.group.main, from: 1,
			best: place{index: 2, rev: c.group.main, writes: 2}, groups: []*group{c.group}}
		if b.walk(); b.best.index == 0 != c.moved {
			t.Errorf("%s: %+v", name, b.best)
		}
	}
}
