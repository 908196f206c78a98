package render

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
)

// TestStateOfContent: a member's state says how many writes it is missing and how many it has too many; of another
// member, and without a ranking, it says nothing.
func TestStateOfContent(t *testing.T) {
	rank := func(name string, lacks, surplus int) *compare.Best {
		return &compare.Best{Ranking: []compare.Rank{{Member: "n0", Surplus: 9},
			{Member: name, Lacks: compare.Count{CommittedEntries: lacks}, Surplus: surplus}}}
	}
	for want, best := range map[string]*compare.Best{
		"missing 5 writes":                   rank("n1", 5, 0),
		"1 write too many":                   rank("n1", 0, 1),
		"missing 1 write, 2 writes too many": rank("n1", 1, 2),
		"-":                                  rank("n2", 1, 1),
	} {
		if got := state(&evidence.Facts{Name: "n1"}, best); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := state(&evidence.Facts{Name: "n1"}, nil); got != "-" {
		t.Errorf("without a ranking: %q", got)
	}
}
