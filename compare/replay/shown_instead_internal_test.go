package replay

import (
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/casetest"
)

// TestShowsInstead: a database shows that its member applied another version of an entry than its log holds, if it has
// just that effect at the revision, and the version in the log cannot have it.
func TestShowsInstead(t *testing.T) {
	set := casetest.Open(t, casetest.Build(t, []casetest.Line{{Verb: "script", Rest: "3.5.0"},
		{Verb: "step", Rest: `put:<key:"/a" value:"1">`}, {Verb: "step", Rest: `put:<key:"/b" value:"2">`},
		{Verb: "step", Rest: `put:<key:"/c" value:"3">`}}), evidence.Options{})
	r, err := Run(t.Context(), set.Members, Options{Each: true})
	if err != nil || len(r.Members) != 3 {
		t.Fatal(err)
	}
	m := set.Members[1]
	index := m.AppliedMin
	lv := &logView{m: m, pos: 1, compacted: m.CompactRevision()}
	g := slices.Collect(lv.groups(4, 4))[0]
	own, other, same := itemAt(index, put("/c", "X")), itemAt(index, put("/c", "3")), itemAt(index, put("/c", "3"))
	undecoded := itemAt(index, put("/c", "X")).unknown()
	beyond := itemAt(index+1, put("/c", "X"))
	for _, it := range []*item{own, other, same, undecoded, beyond} {
		it.entry.Term = m.WAL.TermAt(index)
	}
	later := itemAt(index, put("/c", "X"))
	later.entry.Term = other.entry.Term + 1
	for name, c := range map[string]struct {
		own    *item
		effect Outcome
		want   bool
	}{
		"the effect of the other version":      {own, Outcome{Rev: 4, Sig: g.sig()}, true},
		"of both":                              {same, Outcome{Rev: 4, Sig: g.sig()}, false},
		"another effect":                       {own, Outcome{Rev: 4, Sig: g.sig() + 1}, false},
		"at another revision":                  {own, Outcome{Rev: 3, Sig: g.sig()}, false},
		"at none":                              {own, Outcome{Rev: 9, Sig: g.sig()}, false},
		"its own entry does not decode":        {undecoded, Outcome{Rev: 4, Sig: g.sig()}, false},
		"its own log has another leader's":     {later, Outcome{Rev: 4, Sig: g.sig()}, false},
		"the entry may not have been applied":  {beyond, Outcome{Rev: 4, Sig: g.sig()}, false},
		"there is one version, as in all logs": {other, Outcome{Rev: 4, Sig: g.sig()}, false},
	} {
		if got := r.showsInstead(1, c.own, other, nil, c.effect); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	next := []*item{itemAt(index+1, put("/d", "4")), itemAt(index+2, put("/c", "3"))}
	if e := (Outcome{Rev: 4, Sig: g.sig()}); !r.showsInstead(1, own, other, next[:1], e) ||
		r.showsInstead(1, own, other, next, e) {
		t.Error("an entry further on in its own log can have the effect")
	}
	own.others, own.holders = map[int]*item{0: other}, []int{1, 2}
	w := &walker{r: r, sims: make([]*sim, 3)}
	outcomes := []Outcome{{State: Applied, Rev: 4, Sig: g.sig()}, {State: OutsideHistory}, {State: NoEffect}}
	w.shownInstead(own, nil, outcomes)
	if outcomes[0].State != Applied || outcomes[1].State != Contradicted || outcomes[1].Sig != g.sig() ||
		outcomes[2].State != NoEffect {
		t.Errorf("%+v", outcomes)
	}
}

// TestUnknownNear: an entry of which two versions are equally likely is known to the members only whose logs hold one.
func TestUnknownNear(t *testing.T) {
	open := itemAt(9, put("k", "1"))
	open.holders, open.unsettled = []int{1}, itemAt(9, put("k", "1")).unknown()
	known := func(n int) (out []*item) {
		for range n {
			out = append(out, itemAt(8, put("k", "1")))
		}
		return out
	}
	for name, c := range map[string]struct {
		pos   int
		ahead []*item
		want  bool
	}{
		"two versions":         {0, []*item{open}, true},
		"the log holds one":    {1, []*item{open}, false},
		"all are known":        {0, known(3), false},
		"the last of those":    {0, append(known(nearUnknown-1), open), true},
		"too far ahead":        {0, append(known(nearUnknown), open), false},
		"one without its data": {1, []*item{itemAt(9, put("k", "1")).unknown()}, true},
	} {
		ma := newBench(t, 6, -1).sim.matcher
		ma.pos = c.pos
		if got := ma.unknownNear(c.ahead); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
