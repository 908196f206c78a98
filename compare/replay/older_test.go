package replay

import (
	"maps"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// copyOf is a source whose log holds the entries from first to last in term 2.
func copyOf(name string, first, last uint64) *evidence.Member {
	m := &evidence.Member{Source: &evidence.Source{Name: name}, MemberID: 7, ClusterID: 8}
	m.WAL.Log = &dumplog.Log{}
	m.WAL.Summary = dumplog.Summary{FirstIndex: first, LastIndex: last, LastTerm: 2}
	m.WAL.LastByTerm = []evidence.TermEnd{{Term: 2, First: first, Last: last}}
	return m
}

// TestOlderCopies: a copy whose records another one continues is the older one, whatever the order; where the logs
// differ or are damaged, nothing shows which is older.
func TestOlderCopies(t *testing.T) {
	same := func(a, b int) Copies { return Copies{A: a, B: b, Compared: true} }
	for name, c := range map[string]struct {
		first, last []uint64
		copies      []Copies
		edit        func(*Result)
		want        map[int]int
	}{
		"one continues the other": {first: []uint64{1, 1}, last: []uint64{5, 9}, copies: []Copies{same(0, 1)}, want: map[int]int{0: 1}},
		"in the other order":      {first: []uint64{1, 1}, last: []uint64{9, 5}, copies: []Copies{same(0, 1)}, want: map[int]int{1: 0}},
		"the newest is the measure": {first: []uint64{1, 1, 1}, last: []uint64{9, 5, 7},
			copies: []Copies{same(1, 2), same(1, 0), same(2, 0)}, want: map[int]int{1: 0, 2: 0}},
		"equal, the longer name is the copy's": {first: []uint64{1, 1}, last: []uint64{9, 9}, copies: []Copies{same(0, 1)},
			want: map[int]int{0: 1}, edit: func(r *Result) { r.Members[0].Member.Source.Name = "b-copy" }},
		"equal, in the order of names": {first: []uint64{1, 1}, last: []uint64{9, 9}, copies: []Copies{same(0, 1)},
			want: map[int]int{1: 0}},
		"both continued": {first: []uint64{1, 1}, last: []uint64{5, 9},
			copies: []Copies{{A: 0, B: 1, Compared: true, Forked: true}}, want: map[int]int{}},
		"a damaged log": {first: []uint64{1, 1}, last: []uint64{5, 9}, copies: []Copies{same(0, 1)}, want: map[int]int{},
			edit: func(r *Result) { r.Members[0].Member.WAL.Summary.Damage = []*dumplog.DamageError{{}} }},
		"one ends before the other begins": {first: []uint64{1, 8}, last: []uint64{5, 19}, copies: []Copies{{A: 0, B: 1}},
			want: map[int]int{0: 1}},
		"logs without a common segment that overlap": {first: []uint64{1, 4}, last: []uint64{5, 19},
			copies: []Copies{{A: 0, B: 1}}, want: map[int]int{}},
		"it ends before, and logs differ": {first: []uint64{1, 8}, last: []uint64{5, 19}, copies: []Copies{{A: 0, B: 1}},
			want: map[int]int{}, edit: func(r *Result) { r.LogDiffs = []LogDiff{{Index: 3}} }},
		"it ends before, and was restored": {first: []uint64{1, 8}, last: []uint64{5, 19}, copies: []Copies{{A: 0, B: 1}},
			want: map[int]int{},
			edit: func(r *Result) { r.Members[0].Member.WAL.Summary.Start = dumplog.StartRestore }},
		"it ends before, in a later term": {first: []uint64{1, 8}, last: []uint64{5, 19}, copies: []Copies{{A: 0, B: 1}},
			want: map[int]int{}, edit: func(r *Result) { r.Members[0].Member.WAL.Summary.LastTerm = 3 }},
	} {
		r := &Result{Copies: c.copies}
		for i := range c.first {
			r.Members = append(r.Members, &MemberResult{Member: copyOf(string(rune('a'+i)), c.first[i], c.last[i])})
		}
		if c.edit != nil {
			c.edit(r)
		}
		if got := r.OlderCopies(); !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestOlderCopyHasNoVoice: two copies of one member do not outvote another member.
func TestOlderCopyHasNoVoice(t *testing.T) {
	a, b := Outcome{State: Applied, Sig: 5}, Outcome{State: Applied, Sig: 7}
	r := &Result{Copies: []Copies{{A: 0, B: 1, Compared: true}}}
	for i, last := range []uint64{5, 9, 9} {
		r.Members = append(r.Members, &MemberResult{Member: copyOf(string(rune('a'+i)), 1, last)})
	}
	w := &walker{r: r}
	if sig, known := w.promised(&Event{OneTerm: true, Outcomes: []Outcome{a, a, b}}); known {
		t.Errorf("%d is decided by a copy", sig)
	}
	r.Copies = nil
	if sig, known := w.promised(&Event{OneTerm: true, Outcomes: []Outcome{a, a, b}}); !known || sig != 5 {
		t.Errorf("%d %v, want the voice of two members", sig, known)
	}
}

// TestMixedLogIsNoCopy: a log with segments of several members may show the identity of another one: it is compared
// with none.
func TestMixedLogIsNoCopy(t *testing.T) {
	whole, mixed := copyOf("a", 1, 9), copyOf("b", 1, 5)
	mixed.WAL.Summary.Damage = []*dumplog.DamageError{{Kind: dumplog.DamageMixed}}
	got, err := copies(t.Context(), []*evidence.Member{whole, mixed})
	if err != nil || len(got) > 0 {
		t.Errorf("%+v, %v", got, err)
	}
	mixed.WAL.Summary.Damage = nil
	if got, err = copies(t.Context(), []*evidence.Member{whole, mixed}); err != nil || len(got) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}
