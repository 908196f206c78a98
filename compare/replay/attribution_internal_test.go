package replay

import (
	"path/filepath"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// TestOnlyAttributed: members whose databases hold the same records around an effect did not end differently, whichever
// entry each model takes for the one that had it. Where they hold others, or one of them ends there, they may have.
func TestOnlyAttributed(t *testing.T) {
	same := walkerOf(t, "l-compaction-skew", "node1", "node2")
	rev := same.r.Members[0].Member.CurrentRevision()
	applied := func(rev int64) Outcome { return Outcome{State: Applied, Rev: rev, Sig: 1} }
	against, partial := applied(rev-20), applied(rev-20)
	against.Against, partial.Partial = true, true
	other := applied(rev - 20)
	other.Sig = 2
	for name, c := range map[string]struct {
		outcomes []Outcome
		want     bool
	}{
		"refused on one":                     {[]Outcome{applied(rev - 20), {State: Refused}}, true},
		"without effect on one":              {[]Outcome{{State: NoEffect}, applied(rev - 20)}, true},
		"not known of one":                   {[]Outcome{{State: OutsideHistory}, applied(rev - 20)}, false},
		"applied on both":                    {[]Outcome{applied(rev - 20), applied(rev - 20)}, false},
		"missing on one":                     {[]Outcome{applied(rev - 20), {State: Missing}}, false},
		"refused for a wrong auth revision":  {[]Outcome{applied(rev - 20), {State: Refused, Wrongly: true}}, false},
		"applied against the rules":          {[]Outcome{against, {State: Refused}}, false},
		"applied in part":                    {[]Outcome{partial, {State: Refused}}, false},
		"the newest revision":                {[]Outcome{applied(rev), {State: Refused}}, false},
		"a revision above both":              {[]Outcome{applied(rev + 5), {State: Refused}}, false},
		"two effects, and none on the third": {[]Outcome{applied(rev - 20), other, {State: Refused}}, false},
	} {
		w := same
		if len(c.outcomes) == 3 {
			w = walkerOf(t, "l-compaction-skew", "node1", "node2", "node3")
		}
		if got := w.onlyAttributed(c.outcomes); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	refused := []Outcome{applied(rev - 20), {State: Refused}}
	same.sims[1].Revision = rev - 22
	if same.onlyAttributed(refused) {
		t.Error("the model of the second member is at a lower revision")
	}
	same.sims[1].Revision, same.attributions = rev-21, maxAttributions-1
	if !same.onlyAttributed(refused) || same.onlyAttributed(refused) {
		t.Error("the records are compared more often than the bound says, or less")
	}
}

// TestAttributedOnDifferentRecords: where the records differ, each effect on one member counts.
func TestAttributedOnDifferentRecords(t *testing.T) {
	w := walkerOf(t, "a-auth-revision-replay", "node1", "node2", "node3")
	differ := 0
	for i, a := range w.r.Members {
		for j, b := range w.r.Members {
			last := min(a.Member.CurrentRevision(), b.Member.CurrentRevision())
			if i != j && !w.r.sameAround(i, j, last-1) {
				differ++
			}
		}
	}
	if differ == 0 {
		t.Error("all members hold the same newest records, although some have dropped writes")
	}
}

func walkerOf(t *testing.T, incident string, nodes ...string) *walker {
	t.Helper()
	w := &walker{r: &Result{}}
	for i, n := range nodes {
		m := open(t, filepath.Join(evidencetest.Incident(t, incident), n)).Members[0]
		w.r.Members, w.reps = append(w.r.Members, &MemberResult{Member: m}), append(w.reps, i)
		w.sims = append(w.sims, simOf(&subject{Model: apply.Model{Revision: m.CurrentRevision()}}))
	}
	return w
}
