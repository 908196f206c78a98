package replay

import (
	"slices"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// marked is a put that was made a tombstone.
func marked(r row) row {
	r.del, r.marked = true, true
	return r
}

// TestMarkedTombstone: a tombstone that holds what a put holds is the altered record of that put, not what a delete or
// a lease revoke of its key left, and the key is gone.
func TestMarkedTombstone(t *testing.T) {
	underLease := put("a", "1")
	underLease.Put.Lease = 7
	first := rec(2, 0, "a", "1")
	first.lease = 7
	second := rec(4, 0, "a", "2")
	second.create, second.version = 2, 2
	t.Run("a lease revoke ahead", func(t *testing.T) {
		newBench(t, 6, -1, first, rec(3, 0, "b", "1"), marked(second), tomb(5, 0, "b")).
			log(grantOf(7, 60, 1), underLease, put("b", "1"), put("a", "2"), del("b", ""), revokeOf(7)).
			want("applied", "applied", "applied", "contradicted", "applied", "applied")
	})
	t.Run("a delete ahead", func(t *testing.T) {
		newBench(t, 6, -1, rec(2, 0, "a", "1"), rec(3, 0, "b", "1"), marked(second), tomb(5, 0, "b"),
			rec(6, 0, "c", "1")).
			log(put("a", "1"), put("b", "1"), put("a", "2"), del("b", ""), del("a", ""), put("c", "1")).
			want("applied", "applied", "contradicted", "applied", "no-effect", "applied")
	})
}

// TestWriterOfMarked: what can have written a tombstone that holds what a put holds.
func TestWriterOfMarked(t *testing.T) {
	g, sound := groupOf(marked(rec(5, 0, "a", "1"))), groupOf(tomb(5, 0, "a"))
	for name, c := range map[string]struct {
		r                 *dumplog.Request
		marked, sound     bool
		isMarked, isSound bool
	}{
		"the put":          {put("a", "1"), true, false, true, false},
		"another value":    {put("a", "2"), false, false, true, false},
		"a delete":         {del("a", ""), false, true, false, true},
		"a range":          {del("a", "c"), false, true, false, true},
		"a revoke":         {revokeOf(7), false, true, false, false},
		"a transaction":    {txn(nil, []dumplog.RequestOp{putOp("a", "1")}, nil), true, false, true, false},
		"one that deletes": {txn(nil, []dumplog.RequestOp{delOp("a", "")}, nil), false, true, false, true},
	} {
		if couldWrite(c.r, g) != c.marked || couldWrite(c.r, sound) != c.sound {
			t.Errorf("%s can have written it: %t, a sound one: %t", name, couldWrite(c.r, g), couldWrite(c.r, sound))
		}
		if names(c.r, g) != c.isMarked || names(c.r, sound) != c.isSound {
			t.Errorf("%s names it: %t, a sound one: %t", name, names(c.r, g), names(c.r, sound))
		}
	}
	if g.deletes() || !sound.deletes() {
		t.Error("only the sound one is a group of tombstones")
	}
	ws := []apply.Write{{Key: "a", Delete: true}}
	if matches(ws, g) || !matches(ws, sound) {
		t.Error("only the sound one is what a delete writes")
	}
}

// TestMarkedInADatabase: the mark is seen in a database, and the members without it agree with their logs.
func TestMarkedInADatabase(t *testing.T) {
	mark := inDB(func(tx *bbolt.Tx) error {
		b, k := tx.Bucket([]byte("key")), revKey(4)
		v := slices.Clone(b.Get(k))
		if err := b.Delete(k); err != nil {
			return err
		}
		return b.Put(append(k, 't'), v)
	})
	purgedCase{tell: func(s *story) {
		s.grant(7)
		s.held("a", 7)
		s.put("b", "1")
		s.put("a", "2") // 4, without the lease
		s.del("b")
		s.Add(clustertest.Step{Req: revokeLease(7)})
	}, spoil: mark, sound: "from 0, applied 6", other: "from 0, applied 5, contradicted 1"}.check(t)
}
