package replay

import (
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// newBelow is a model with the whole log and a database compacted at its revision of the place.
func newBelow(t *testing.T, meet place, rows ...row) *bench {
	t.Helper()
	b := newBench(t, 6, meet.rev, rows...)
	b.sim.met, b.sim.meet, b.sim.fromStart, b.sim.logEnd = false, meet, true, 100
	return b
}

func record3(main, create, version int64, key, value string) row {
	r := rec(main, 0, key, value)
	r.create, r.version = create, version
	return r
}

// TestBelow: at or below the compact revision entries are not judged one by one; where the model meets the database, the keys are compared.
func TestBelow(t *testing.T) {
	history := func() []*dumplog.Request {
		return []*dumplog.Request{put("a", "1"), put("b", "1"), put("a", "2"), put("gone", "1"), del("gone", ""), put("late", "1")}
	}
	outside := []string{"outside-history", "outside-history", "outside-history", "outside-history", "outside-history", "applied"}
	for name, c := range map[string]struct {
		rows []row
		want []BelowDiff
	}{
		"holds": {rows: []row{rec(3, 0, "b", "1"), record3(4, 2, 2, "a", "2"), rec(7, 0, "late", "1")}},
		"a live key is lost": {rows: []row{record3(4, 2, 2, "a", "2"), rec(7, 0, "late", "1")},
			want: []BelowDiff{{Key: "b", Index: 2}}},
		"another value": {rows: []row{rec(3, 0, "b", "X"), record3(4, 2, 2, "a", "2"), rec(7, 0, "late", "1")},
			want: []BelowDiff{{Key: "b", Index: 2, Rev: 3}}},
		"another revision": {rows: []row{rec(3, 0, "b", "1"), record3(5, 2, 2, "a", "2"), rec(7, 0, "late", "1")},
			want: []BelowDiff{{Key: "a", Index: 3, Rev: 5}}},
		"a deleted key lives on": {rows: []row{rec(3, 0, "b", "1"), record3(4, 2, 2, "a", "2"), rec(5, 0, "gone", "1"), rec(7, 0, "late", "1")},
			want: []BelowDiff{{Key: "gone", Index: 5, Rev: 5}}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBelow(t, place{index: 5, rev: 6}, c.rows...).log(history()...)
			b.want(outside...)
			got := slices.Clone(b.sim.res.Below)
			for i := range got {
				got[i].Expected, got[i].Observed = "", ""
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("differences %+v, want %+v", b.sim.res.Below, c.want)
			}
		})
	}
}

// TestBelowUncertain: an entry whose outcome the log alone does not tell makes the keys that it names, and the revisions after it,
// uncertain, and nothing else.
func TestBelowUncertain(t *testing.T) {
	less := []dumplog.Compare{{Target: targetValue, Result: resultLess, Key: []byte("a"), Value: []byte("5")}}
	b := newBelow(t, place{index: 4, rev: 5}, rec(2, 0, "a", "1"), rec(4, 0, "c", "1"), rec(5, 0, "d", "X")).
		log(put("a", "1"), txn(less, []dumplog.RequestOp{putOp("b", "1")}, nil), put("c", "1"), put("d", "1"))
	b.run()
	b.sim.arrive()
	if got := b.sim.res.Below; len(got) != 1 || got[0].Key != "d" {
		t.Errorf("differences %+v, want one in d: b may be there or not, a and c are as the log says", got)
	}
}

// TestBelowRevision: a database whose revision is not the one that the log gives has lost or added an effect that is compacted away.
func TestBelowRevision(t *testing.T) {
	b := newBelow(t, place{index: 2, rev: 4}, rec(2, 0, "a", "1"), rec(4, 0, "b", "1")).log(put("a", "1"), put("b", "1"))
	b.run()
	b.sim.arrive()
	if got := b.sim.res.Below; len(got) != 1 || got[0].Key != "" || got[0].Expected != "revision 3" || got[0].Observed != "revision 4" {
		t.Errorf("differences %+v, want the revision", got)
	}
}
