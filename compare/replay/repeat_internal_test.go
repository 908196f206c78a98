package replay

import (
	"iter"
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestRepeatedInLogs: a repeated request was added to the logs that hold the second one, and to those that hold the
// same entries as they do after it, one after the other.
func TestRepeatedInLogs(t *testing.T) {
	type span struct{ first, last uint64 }
	for name, c := range map[string]struct {
		logs []span
		want []int
	}{
		"one log":               {[]span{{1, 10}}, []int{0}},
		"two hold it":           {[]span{{1, 10}, {5, 7}}, []int{0, 1}},
		"one ends before":       {[]span{{1, 10}, {1, 4}}, []int{0}},
		"one begins after":      {[]span{{8, 12}, {1, 10}}, []int{0, 1}},
		"one begins at the end": {[]span{{10, 12}, {1, 10}}, []int{0, 1}},
		"one has nothing of it": {[]span{{11, 12}, {1, 10}}, []int{1}},
		"joined by another":     {[]span{{12, 15}, {8, 12}, {1, 10}}, []int{0, 1, 2}},
		"a source without log":  {[]span{{}, {1, 10}}, []int{1}},
	} {
		r := &Result{Survey: &Survey{repeat: &repeat{index: 5, distance: 2, length: 1, what: "w"}}}
		for _, l := range c.logs {
			m := &evidence.Member{}
			if l.last > 0 {
				m.WAL.Log = &dumplog.Log{}
				m.WAL.Summary.FirstIndex, m.WAL.Summary.LastIndex = l.first, l.last
				m.WAL.LastByTerm = []evidence.TermEnd{{Term: 2, First: l.first, Last: l.last}}
			}
			r.Members = append(r.Members, &MemberResult{Member: m})
		}
		if s := r.repeated(); s == nil || !slices.Equal(s.Long, c.want) || s.Index != 5 || s.Missing != 1 || !s.Added ||
			!s.Repeated {
			t.Errorf("%s: %+v, want %v", name, s, c.want)
		}
		r.LogDiffs = []LogDiff{{Index: 9}}
		if s := r.repeated(); s != nil {
			t.Errorf("%s, the logs differ: %+v", name, s)
		}
	}
	if s := (&Result{Survey: &Survey{}}).repeated(); s != nil {
		t.Errorf("nothing is repeated: %+v", s)
	}
}

// TestRunStarts: of the entries that can have written a record the first and the last few are kept, as beginnings of a
// stretch that was executed again.
func TestRunStarts(t *testing.T) {
	b := newBench(t, 6, -1)
	for i := range 12 {
		b.log(put("k", "v"))
		if i == 5 {
			b.log(put("other", "v"), &dumplog.Request{Kind: dumplog.KindEmpty})
		}
	}
	ma := b.sim.matcher
	ma.past = func(from uint64) iter.Seq2[*item, error] {
		return func(yield func(*item, error) bool) {
			for _, it := range b.items {
				if it.entry.Index >= from && !yield(it, nil) {
					return
				}
			}
		}
	}
	ma.base = 1
	ma.absentees = []uint64{3}
	g := groupOf(rec(5, 0, "k", "v"))
	for stop, want := range map[uint64][]uint64{2: nil, 3: {2}, 10: {2, 4, 5, 6, 9}, 13: {2, 4, 5, 6, 9, 10, 11, 12},
		15: {2, 4, 5, 6, 11, 12, 13, 14}} {
		if got := ma.runStarts(g, stop); !slices.Equal(got, want) {
			t.Errorf("before entry %d: %v, want %v", stop, got, want)
		}
	}
	fits := ma.fitsOneOf(b.items[6], b.items[7:])
	none := ma.fitsOneOf(b.items[6], b.items[7:8])
	if !fits(nil) || !fits(g) || none(g) || !none(groupOf(rec(5, 0, "other", "v"))) {
		t.Error("records are of this entry, of one ahead of it, or of none")
	}
}
