package compare_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

func askAlarms() *pb.InternalRaftRequest {
	return &pb.InternalRaftRequest{Alarm: &pb.AlarmRequest{Action: pb.AlarmRequest_GET}}
}

// gapScript is a cluster with writes, then the steps of gap behind the step that node2's database ends with, then a snapshot of
// node2, then a few writes.
func gapScript(version string, gap ...clustertest.Step) *clustertest.Script {
	s := withAuth(newScript(version))
	for i := range 12 {
		s.Add(as("app", 0, put(fmt.Sprintf("/app/k%d", i%4), fmt.Sprint("v", i), 0)))
	}
	of := clustertest.ScriptMember{AppliedUntil: s.Add(as("app", 1, put("/app/last", "x", 0)))}
	for _, st := range gap {
		of.SnapshotTaken = s.Add(st)
	}
	s.Of[1] = of
	return s
}

// TestGapBeforeSnapshot: the database of node2 ends below its newest raft snapshot. What lies in between tells why.
func TestGapBeforeSnapshot(t *testing.T) {
	query, denied := clustertest.Step{Req: askAlarms()}, as("app", 0, put("/other/k", "x", 0), 0, 1, 2)
	write := as("app", 0, put("/app/k1", "again", 0))
	gapCauses := []string{"alarm-list-index-stuck", "auth-denied-index-stuck", "cindex-overwritten-after-snapshot", "snap-db-dir-not-synced", "data-dir-rolled-back",
		"cindex-below-snapshot-34", "backend-newer-than-log-start", "bootstrap-index-check-skipped"}
	but := func(ids ...string) []string {
		var out []string
		for _, g := range gapCauses {
			keep := true
			for _, id := range ids {
				keep = keep && g != id
			}
			if keep {
				out = append(out, g)
			}
		}
		return out
	}
	for name, c := range map[string]struct {
		version string
		gap     []clustertest.Step
		want    told
	}{
		"alarm queries": {"3.5.0", []clustertest.Step{query, query, query},
			told{class: "latent-divergence", cause: "alarm-list-index-stuck", certainty: "proof", violated: []string{"S02"}, absent: but("alarm-list-index-stuck")}},
		"refused entries": {"3.5.0", []clustertest.Step{denied, query, denied},
			told{class: "latent-divergence", cause: "auth-denied-index-stuck", certainty: "strong", violated: []string{"S02"}, absent: but("auth-denied-index-stuck")}},
		"a write among queries": {"3.5.0", []clustertest.Step{query, write, query},
			told{class: "member-lost-data", cause: "data-dir-rolled-back", certainty: "strong", violated: []string{"S02"}, absent: but("data-dir-rolled-back")}},
		"refused for one member only": {"3.5.0", []clustertest.Step{as("app", 0, put("/other/k", "x", 0))},
			told{class: "member-lost-data", cause: "data-dir-rolled-back", violated: []string{"S02"}, absent: but("data-dir-rolled-back")}},
		"alarm queries on 3.6": {"3.6.0", []clustertest.Step{query, query},
			told{class: "latent-divergence", cause: "", violated: []string{"S02"}, absent: gapCauses}},
		"writes on 3.4": {"3.4.0", []clustertest.Step{write, write},
			told{class: "member-lost-data", cause: "data-dir-rolled-back", violated: []string{"S02"}, causes: []string{"cindex-below-snapshot-34"}, absent: but("data-dir-rolled-back", "cindex-below-snapshot-34")}},
		"writes on 3.1": {"3.1.0", []clustertest.Step{write, write},
			told{class: "member-lost-data", cause: "backend-newer-than-log-start", violated: []string{"S02"}, absent: but("data-dir-rolled-back", "backend-newer-than-log-start")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := gapScript(c.version, c.gap...)
			var spoils []spoil
			if of := s.Of[1]; c.version < "3.5" { // no configuration in the snapshot record
				spoils = []spoil{nil, appendSnapshot(s.Index(of.SnapshotTaken))}
				of.SnapshotTaken = 0
				s.Of[1] = of
			}
			c.want.check(t, diagnoseScript(t, s, spoils...))
		})
	}
}

// TestReceivedSnapshotNotInstalled: node2 fell behind, its log jumps to a leader's snapshot, its database is the one from before.
func TestReceivedSnapshotNotInstalled(t *testing.T) {
	script := func(more int) *clustertest.Script {
		s := newScript("3.5.0")
		until := 0
		for i := range 30 {
			n := s.Add(as("", 0, put(fmt.Sprintf("/k%d", i%4), fmt.Sprint("v", i), 0)))
			if i == 10 {
				until = n
			}
			s.Of[1] = clustertest.ScriptMember{LogUntil: until, SnapshotAt: n, AppliedUntil: until}
		}
		for i := range more {
			s.Add(as("", 0, put(fmt.Sprintf("/k%d", i%4), fmt.Sprint("w", i), 0)))
		}
		return s
	}
	t.Run("the file is gone", func(t *testing.T) {
		told{class: "snapshot-damage", cause: "snap-db-dir-not-synced", certainty: "strong", violated: []string{"S02"}, best: []string{"node1", "node3"},
			absent: []string{"data-dir-rolled-back", "snap-db-missing-second-snapshot"}}.check(t, diagnoseScript(t, script(3)))
	})
	t.Run("the file waits", func(t *testing.T) {
		s := script(3)
		name := fmt.Sprintf("%016x.snap.db", s.Index(s.Of[1].SnapshotAt))
		told{class: "healthy", absent: []string{"snap-db-dir-not-synced", "data-dir-rolled-back", "snap-dir-leftovers"}}.check(t, diagnoseScript(t, s, nil, func(t *testing.T, node string) {
			t.Helper()
			if err := os.WriteFile(filepath.Join(node, "snap", name), []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
		}))
	})
	t.Run("it ran on for long", func(t *testing.T) {
		told{class: "member-lost-data", cause: "data-dir-rolled-back", violated: []string{"S02"}, absent: []string{"snap-db-dir-not-synced"}}.check(t, diagnoseScript(t, script(40)))
	})
	t.Run("two in a row", func(t *testing.T) {
		s := script(0)
		told{class: "snapshot-damage", cause: "snap-db-dir-not-synced", causes: []string{"snap-db-missing-second-snapshot"}}.check(t, diagnoseScript(t, s, nil, func(t *testing.T, node string) {
			t.Helper()
			appendSnapshot(s.Index(s.Of[1].SnapshotAt)+9)(t, node)
		}))
	})
	t.Run("the index was put back", func(t *testing.T) {
		s := script(0)
		of := s.Of[1]
		of.AppliedUntil, of.IndexAt = 0, of.LogUntil
		s.Of[1] = of
		told{class: "latent-divergence", cause: "cindex-overwritten-after-snapshot", certainty: "strong", violated: []string{"S02", "C03"}, best: []string{"node1", "node3"},
			absent: []string{"data-dir-rolled-back", "snap-db-dir-not-synced", "cindex-not-saved-by-defrag"}}.check(t, diagnoseScript(t, s))
	})
}
