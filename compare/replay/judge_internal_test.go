package replay

import (
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
)

// TestLacking: the effect on most members is required, an effect before none, and of two effects on as many members
// each neither, in whatever order the members are.
func TestLacking(t *testing.T) {
	for _, c := range []struct {
		name    string
		sigs    []uint64
		lacks   []uint64
		surplus int
	}{
		{"one effect", []uint64{1, 1, 1}, nil, 0},
		{"most members", []uint64{1, 2, 2}, []uint64{1}, 0},
		{"an effect and none", []uint64{1, 0}, []uint64{0}, 0},
		{"an effect, on most none", []uint64{1, 0, 0}, []uint64{1}, 1},
		{"two effects", []uint64{1, 2}, nil, 0},
		{"two effects and none", []uint64{1, 2, 0}, nil, 0},
		{"two effects on two members each", []uint64{1, 2, 2, 1, 3}, nil, 0},
	} {
		for range 2 {
			w, ev := &walker{r: &Result{}}, &Event{}
			for _, s := range c.sigs {
				m := &MemberResult{Member: &evidence.Member{}, Checked: true, LacksKeys: map[string]struct{}{},
					UniqueKeys: map[string]struct{}{}}
				w.r.Members = append(w.r.Members, m)
				ev.Outcomes = append(ev.Outcomes, Outcome{State: Applied, Sig: s})
			}
			w.lacking(ev)
			var got []uint64
			for _, i := range ev.Lacking {
				got = append(got, c.sigs[i])
			}
			lacks, surplus := 0, 0
			for _, m := range w.r.Members {
				lacks, surplus = lacks+m.Lacks, surplus+m.Surplus
			}
			if !slices.Equal(got, c.lacks) || lacks != len(c.lacks)-c.surplus || surplus != c.surplus {
				t.Errorf("%s, %v: wrong on those with %v, want %v; %d lack it, %d have too much", c.name, c.sigs, got,
					c.lacks, lacks, surplus)
			}
			slices.Reverse(c.sigs)
		}
	}
}
