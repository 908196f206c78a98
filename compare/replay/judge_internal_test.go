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
		name  string
		sigs  []uint64
		lacks []uint64
	}{
		{"one effect", []uint64{1, 1, 1}, nil},
		{"most members", []uint64{1, 2, 2}, []uint64{1}},
		{"an effect and none", []uint64{1, 0}, []uint64{0}},
		{"two effects", []uint64{1, 2}, nil},
		{"two effects and none", []uint64{1, 2, 0}, nil},
		{"two effects on two members each", []uint64{1, 2, 2, 1, 3}, nil},
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
			if !slices.Equal(got, c.lacks) {
				t.Errorf("%s, %v: missing on those with %v, want %v", c.name, c.sigs, got, c.lacks)
			}
			slices.Reverse(c.sigs)
		}
	}
}
