package replay

import (
	"fmt"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestLeftOver: an effect that only one member shows, where the rules allow none, is what is left of the next entry's
// records if that one has none there, and wrote at this revision on the others.
func TestLeftOver(t *testing.T) {
	none, noEffect := Outcome{State: NoEffect, Open: true}, Outcome{State: NoEffect}
	at := func(rev int64) Outcome { return Outcome{State: Applied, Rev: rev, Sig: 5} }
	missing := Outcome{State: Missing}
	for name, c := range map[string]struct {
		first, second []Outcome
		// lacks are the numbers of entries that the members lack, events what is kept.
		lacks  [3]int
		events int
	}{
		"the rest of the second":              {[]Outcome{at(8), none, none}, []Outcome{missing, at(8), at(8)}, [3]int{1, 0, 0}, 1},
		"at another revision":                 {[]Outcome{at(8), none, none}, []Outcome{missing, at(8), at(9)}, [3]int{1, 1, 1}, 2},
		"the effect is on two":                {[]Outcome{at(8), at(8), none}, []Outcome{missing, at(9), at(8)}, [3]int{1, 0, 1}, 2},
		"the rest on two":                     {[]Outcome{at(8), at(8), none}, []Outcome{missing, missing, at(8)}, [3]int{1, 1, 0}, 1},
		"the second is there":                 {[]Outcome{at(8), none, none}, []Outcome{at(9), none, at(8)}, [3]int{0, 2, 1}, 2},
		"no other member shows the second":    {[]Outcome{at(8), none, none}, []Outcome{missing, none, none}, [3]int{0, 1, 1}, 2},
		"the first had none by the rules":     {[]Outcome{at(8), noEffect, none}, []Outcome{missing, at(8), at(8)}, [3]int{1, 0, 0}, 1},
		"a member that has not come that far": {[]Outcome{at(8), {State: NotApplied}, none}, []Outcome{missing, {State: NotApplied}, at(8)}, [3]int{1, 0, 0}, 1},
	} {
		r := &Result{Survey: &Survey{}}
		w := &walker{r: r, reps: []int{0, 1, 2}, sims: make([]*sim, 3), o: Options{MaxEvents: 9}}
		for i := range 3 {
			m := &MemberResult{Member: &evidence.Member{MemberID: dumplog.ID(i + 1)}, LacksKeys: map[string]struct{}{},
				UniqueKeys: map[string]struct{}{}}
			m.Counts[c.first[i].State]++
			m.Counts[c.second[i].State]++
			r.Members = append(r.Members, m)
		}
		w.judge(itemAt(20, put("a", "1")), c.first)
		w.judge(itemAt(21, put("b", "1")), c.second)
		w.settle(nil)
		var lacks [3]int
		for i, m := range r.Members {
			lacks[i] = m.Lacks
		}
		if lacks != c.lacks || len(r.Events) != c.events || r.EventCount != c.events {
			t.Errorf("%s: %v lack, %d events; want %v, %d", name, lacks, len(r.Events), c.lacks, c.events)
		}
		if c.events > 1 {
			continue
		}
		m := r.Members[0]
		if got := fmt.Sprint(m.Counts[Applied], m.Counts[NoEffect], m.Counts[Missing], m.Counts[Contradicted]); got !=
			"0 1 0 1" || r.Events[0].Outcomes[0].State != Contradicted || m.firstBad != r.Events[0] {
			t.Errorf("%s: %s, %+v", name, got, r.Events[0].Outcomes[0])
		}
	}
}

// TestMostVotes: members whose records have contradicted an entry before do not outvote a sound one. No effect on as
// many members as an effect does not refute it.
func TestMostVotes(t *testing.T) {
	for _, c := range []struct {
		votes   map[uint64]vote
		oneTerm bool
		sig     uint64
		known   bool
	}{
		{map[uint64]vote{5: {2, 0}, 0: {1, 1}}, false, 0, true},
		{map[uint64]vote{5: {2, 0}, 7: {1, 1}}, false, 7, true},
		{map[uint64]vote{5: {2, 0}, 0: {1, 0}}, false, 5, true},
		{map[uint64]vote{5: {1, 1}, 0: {2, 2}}, false, 0, true},
		{map[uint64]vote{5: {1, 1}, 0: {1, 1}}, false, 5, true},
		{map[uint64]vote{5: {1, 0}, 0: {1, 0}}, false, 5, true},
		{map[uint64]vote{5: {1, 0}, 0: {1, 1}}, false, 0, false},
		{map[uint64]vote{5: {1, 1}, 0: {1, 1}}, true, 5, false},
		{map[uint64]vote{5: {1, 1}, 7: {1, 1}}, false, 7, false},
		{map[uint64]vote{5: {2, 1}, 7: {1, 1}}, false, 5, true},
	} {
		if sig, known := mostVotes(c.votes, c.oneTerm); sig != c.sig || known != c.known {
			t.Errorf("%v: %d %t, want %d %t", c.votes, sig, known, c.sig, c.known)
		}
	}
}
