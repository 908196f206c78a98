package run

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// lagging writes a member whose database has entries up to 10, and whose log has them up to 20. Entry 12 is a conf
// change, or it is missing.
func lagging(t *testing.T, i int, conf bool) evidence.Spec {
	t.Helper()
	voters := []uint64{0xa1, 0xa2, 0xa3}
	name := fmt.Sprintf("node%d", i+1)
	h := clustertest.NewHand(t, t.TempDir(), name, voters[i], 0xc1)
	h.Found(false, voters...)
	h.Request(2, 4, nil)
	for n := uint64(5); n <= 20; n++ {
		id := clustertest.RequestID(0xa1, 1763000000000, n)
		switch {
		case n != 12:
			h.Put(2, n, id, fmt.Sprintf("k%d", n), "v", n <= 10)
		case conf:
			h.Conf(2, n, clustertest.MoveMember(0xa2, id))
		}
	}
	h.State(2, 0xa1, 20)
	for _, m := range voters {
		h.Member(m, false, true)
	}
	h.Versions("3.6.0")
	return evidence.Spec{Name: name, Where: h.Close(10, 2)}
}

// TestCloneKeepsWritesAfterConfChange: the committed entries above the consistent index are in the new data dirs, also
// those that follow a conf change. The plan says that nothing is lost.
func TestCloneKeepsWritesAfterConfChange(t *testing.T) {
	specs := []evidence.Spec{lagging(t, 0, true), lagging(t, 1, true), lagging(t, 2, true)}
	for _, s := range specs[1:] {
		if err := os.WriteFile(filepath.Join(s.Where, "member", "snap", "db"), make([]byte, 64<<10), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p, err := plan.New(t.Context(), specs, nil, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if p.Mode != plan.Clone || p.GivenUp() != "no committed write that another member still has" {
		t.Fatalf("mode %s, loses %s", p.Mode, p.GivenUp())
	}
	file, dir := filepath.Join(t.TempDir(), "plan.yaml"), filepath.Join(t.TempDir(), "out")
	if err := p.Save(file); err != nil {
		t.Fatal(err)
	}
	out, err := Apply(t.Context(), file, ApplyOptions{Mode: plan.Clone, Out: dir})
	if err != nil || !out.Reached {
		t.Fatalf("%v: %+v", err, out)
	}
	if all := fmt.Sprint(out.Proofs); !strings.Contains(all, "at revision 22}") {
		t.Errorf("the servers do not have the 21 writes: %s", all)
	}
	if all := strings.Join(out.Notes, "\n"); !strings.Contains(all, "entries 11 to 20 of the log of node1 follow") ||
		strings.Contains(all, "are not carried over") {
		t.Error(all)
	}
}

// TestCloneLeavesOutWrites: committed entries that the new data dirs lack are no reached goal, unless the plan lists
// them.
func TestCloneLeavesOutWrites(t *testing.T) {
	spec := lagging(t, 0, false)
	for name, tc := range map[string]struct {
		lost    int
		outcome string
		detail  string
	}{
		"not listed": {8, violated, "entries 12 to 20 are not in them, 9 writes of keys or leases among them: entry 12 " +
			"is not in the log. A server that starts on the data dir of node1 executes them"},
		"listed": {9, notChecked, "entries 12 to 20 are not in them: entry 12 is not in the log"},
	} {
		set, err := evidence.Open(t.Context(), []evidence.Spec{spec}, evidence.Options{})
		if err != nil {
			t.Fatal(err)
		}
		// Another member knows that they are committed.
		foreign := *set.Members[0]
		foreign.ClusterID, foreign.Commit = 9, 400
		set.Members = append(set.Members, &foreign)
		s := cloning{&session{out: &Outcome{}, plan: &plan.Plan{Best: plan.Choice{Name: "node1"},
			Cluster: plan.Cluster{ID: 0xc1}, Lost: plan.Lost{CommittedEntries: tc.lost}}}}
		if n := s.committed(set); n != 20 {
			t.Errorf("%s: committed up to %d according to another cluster", name, n)
		}
		if err := s.proveTail(t.Context(), set); err != nil {
			t.Fatal(err)
		}
		if p := s.out.Proofs; len(p) != 1 || p[0].Outcome != tc.outcome || !strings.HasPrefix(p[0].Detail, tc.detail) {
			t.Errorf("%s: %+v", name, p)
		}
		set.Members = set.Members[:1]
		if err := set.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
