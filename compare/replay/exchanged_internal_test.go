package replay

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// versionOf is an entry of term 2 with a request ID, in the logs of some members.
func versionOf(index uint64, id uint64, holders ...int) *item {
	r := put("k", fmt.Sprint(id))
	r.Header.ID = dumplog.RequestID(id)
	return &item{entry: dumplog.Entry{Term: 2, Index: index, Data: fmt.Append(nil, id)}, req: r, holders: holders}
}

// differing puts versions into one item.
func differing(versions ...*item) *item {
	it := versions[0]
	it.others = map[int]*item{}
	for _, v := range versions[1:] {
		for _, h := range v.holders {
			it.others[h] = v
		}
	}
	return it
}

// TestNoteExchanged: an entry of one log was exchanged if another log holds its request where this one holds another
// entry of the same term.
func TestNoteExchanged(t *testing.T) {
	for name, c := range map[string]struct {
		change func(first, later, own *item)
		want   bool
	}{
		"exchanged":               {func(_, _, _ *item) {}, true},
		"two logs hold the first": {func(first, _, _ *item) { first.holders = []int{1, 2} }, false},
		"another log holds it":    {func(first, _, _ *item) { first.holders = []int{2} }, false},
		"another request":         {func(_, later, _ *item) { later.req.Header.ID = 9 }, false},
		"other bytes":             {func(_, later, _ *item) { later.entry.Data = []byte("x") }, false},
		"no ID":                   {func(first, later, _ *item) { first.req.Header.ID, later.req.Header.ID = 0, 0 }, false},
		"the later is not known":  {func(_, later, _ *item) { later.err = errDoubted }, false},
		"the first is not known":  {func(first, _, _ *item) { first.err = errDoubted }, false},
		"in another term":         {func(_, _, own *item) { own.entry.Term = 3 }, false},
	} {
		first, later, own := versionOf(5, 7, 1), versionOf(9, 7, 0, 2), versionOf(9, 8, 1)
		c.change(first, later, own)
		var s Survey
		s.recent.note(first)
		s.recent.note(versionOf(6, 6, 0, 1, 2))
		s.noteExchanged(differing(later, own))
		if got := len(s.exchanged) == 1 && s.exchanged[0] == (entryID{Index: 5, Term: 2}); got != c.want {
			t.Errorf("%s: %v", name, s.exchanged)
		}
	}
	var s Survey
	s.recent.note(versionOf(5, 7, 1))
	s.noteExchanged(versionOf(9, 7, 0, 2))
	if len(s.exchanged) > 0 {
		t.Errorf("logs that agree: %v", s.exchanged)
	}
	for range 2 * maxDoubted {
		s.noteExchanged(differing(versionOf(9, 7, 0, 2), versionOf(9, 8, 1)))
	}
	if len(s.exchanged) != maxDoubted {
		t.Errorf("%d are kept", len(s.exchanged))
	}
}

// TestChoiceWithoutExchanged: where an entry of a log was exchanged, the version that only this log holds at another
// index is none to choose, and its member is taken to have executed the one that is left.
func TestChoiceWithoutExchanged(t *testing.T) {
	for name, c := range map[string]struct {
		d     Doubted
		term  uint64
		alone bool
		want  int
	}{
		"exchanged":               {Doubted{Index: 5, Logs: []int{1}, exchanged: true}, 2, false, 1},
		"doubted":                 {Doubted{Index: 5, Logs: []int{1}}, 2, false, 0},
		"in two logs":             {Doubted{Index: 5, Logs: []int{0, 1}, exchanged: true}, 2, false, 0},
		"in another log":          {Doubted{Index: 5, Logs: []int{0}, exchanged: true}, 2, false, 0},
		"others of another term":  {Doubted{Index: 5, Logs: []int{1}, exchanged: true}, 3, false, 0},
		"it is the only version":  {Doubted{Index: 5, Logs: []int{1}, exchanged: true}, 2, true, 0},
		"two logs hold the other": {Doubted{Index: 5, Logs: []int{2}, exchanged: true}, 2, false, 0},
	} {
		versions := []*item{versionOf(9, 7, 0, 2), versionOf(9, 8, 1)}
		if versions[0].entry.Term = c.term; c.alone {
			versions = versions[1:]
		}
		l := logSet{doubted: []Doubted{c.d}}
		kept, exchanged := l.exchanged(versions)
		if len(exchanged) != c.want || len(kept)+len(exchanged) != len(versions) {
			t.Errorf("%s: %d kept, %d exchanged", name, len(kept), len(exchanged))
			continue
		}
		for _, v := range exchanged {
			if v != versions[1] {
				t.Errorf("%s: %v", name, v.holders)
			}
			kept[0].putBack(v)
			if kept[0].forMember(1) != kept[0] || kept[0].others[1] != v || kept[0].forMember(0) != kept[0] {
				t.Errorf("%s: member 1 has %v", name, kept[0].forMember(1).holders)
			}
		}
	}
	two := []Doubted{{Logs: []int{0}, exchanged: true}, {Logs: []int{1}, exchanged: true}}
	all := []*item{versionOf(9, 7, 0), versionOf(9, 8, 1)}
	if kept, exchanged := (&logSet{doubted: two}).exchanged(all); len(kept) != 2 || len(exchanged) != 0 {
		t.Errorf("nothing would be left: %d kept, %d exchanged", len(kept), len(exchanged))
	}
}

// TestLowestPutsBack: a version that was exchanged stays known as that of its log, whose member executed the other.
func TestLowestPutsBack(t *testing.T) {
	own := dumplog.Entry{Term: 2, Index: 9, Data: []byte("own")}
	other := own
	other.Data = []byte("x")
	for name, c := range map[string]struct {
		exchanged bool
		doubted   uint64
		at1       string
	}{
		"exchanged":           {true, 5, "own"},
		"doubted":             {false, 5, "x"},
		"doubted at the same": {false, 9, ""},
	} {
		var srcs []*source
		for _, e := range []dumplog.Entry{own, other, own} {
			srcs = append(srcs, &source{cur: e, ok: true, next: func() (dumplog.Entry, error, bool) {
				return dumplog.Entry{}, nil, false
			}})
		}
		srcs = append(srcs, nil, &source{cur: dumplog.Entry{Index: 1}})
		m := &evidence.Member{}
		logs := &logSet{members: []*evidence.Member{m, m, m, m, m},
			doubted: []Doubted{{Index: c.doubted, Logs: []int{1}, exchanged: c.exchanged}}}
		it, err := lowest(srcs, logs, &itemArena{})
		if err != nil || slices.ContainsFunc(srcs, func(s *source) bool { return s != nil && s.ok }) {
			t.Fatalf("%s: %v", name, err)
		}
		if errors.Is(it.err, errDoubted) != (c.at1 == "") {
			t.Errorf("%s: %v", name, it.err)
		}
		if c.at1 == "" {
			continue
		}
		if !slices.Equal(it.holders, []int{0, 2}) || len(it.places) != 1 {
			t.Errorf("%s: in the logs of %v, at %v", name, it.holders, it.places)
		}
		executed := it
		if v := it.instead[1]; v == nil {
			executed = it.others[1]
		}
		if string(executed.entry.Data) != c.at1 || string(it.others[1].entry.Data) != "x" ||
			string(it.entry.Data) != "own" {
			t.Errorf("%s: %q, member 1 executed %q", name, it.entry.Data, executed.entry.Data)
		}
	}
}

// TestInsteadOfItsOwn: the database of a member that is taken to have executed another log's entry contradicts its own
// log, and is explained.
func TestInsteadOfItsOwn(t *testing.T) {
	for name, c := range map[string]struct {
		row   row
		state State
		count int
	}{
		"it holds that effect": {rec(2, 0, "a", "1"), Contradicted, 1}, "it does not": {rec(2, 0, "z", "1"), Contradicted, 0},
	} {
		b := newBench(t, 6, -1, c.row)
		it := &item{entry: dumplog.Entry{Term: 1, Index: 1}, req: put("a", "1"), holders: []int{1}}
		it.putBack(&item{entry: dumplog.Entry{Term: 1, Index: 1}, req: put("b", "1"), holders: []int{0}})
		o := b.sim.stepDisputed(it, nil)
		if o.State != c.state || (o.Detail == otherEffect) != (c.count == 1) || b.sim.res.insteadOwn != c.count {
			t.Errorf("%s: %s %q, %d", name, o.State, o.Detail, b.sim.res.insteadOwn)
		}
	}
}

// TestFirstExchanged: each that was exchanged is tried once, and only if one log holds it.
func TestFirstExchanged(t *testing.T) {
	r := run(t, open(t, handLogs(t, from1(20), from1(10))...), Options{})
	r.Survey.exchanged = []entryID{{10, 2}, {16, 2}, {18, 2}}
	for tried, want := range map[uint64]uint64{0: 16, 16: 18} {
		d := r.firstExchanged(map[uint64]bool{tried: true})
		if d == nil || d.Index != want || !d.exchanged {
			t.Errorf("after %d: %+v, want %d", tried, d, want)
		}
	}
	if d := r.firstExchanged(map[uint64]bool{16: true, 18: true}); d != nil {
		t.Errorf("all were tried: %+v", d)
	}
}
