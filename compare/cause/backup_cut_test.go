package cause_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// TestBackupCutToPages: of a backup that lost nearly everything the report says which pages are gone, claims no empty
// key space, and names what to do next. A file with a page cut off its end still shows its buckets if its root is
// there.
func TestBackupCutToPages(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(evidencetest.Incident(t, "o-backup-good"), "backup.db"))
	if err != nil {
		t.Fatal(err)
	}
	for size, lost := range map[int]string{100: "pages 0..10 of 11", 4095: "pages 0..10 of 11",
		4096: "pages 1..10 of 11", 5000: "pages 1..10 of 11",
		8192: "pages 2..10 of 11", 20000: "pages 4..10 of 11 are lost, the root page 10 among them"} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "cut.db"), b[:size], 0o600); err != nil {
				t.Fatal(err)
			}
			evidencetest.Unchanged(t, dir)
			r := diagnose(t, []evidence.Spec{{Where: filepath.Join(dir, "cut.db")}})
			told{class: "backup-damaged", cause: "backup-truncated", certainty: "proof",
				violated: []string{"B02", "D02", "B03"}, holds: []string{"D01", "B04"}}.check(t, r)
			everyFindingHasEvidence(t, r)
			f := findings(r, "", "D02")[0]
			if want := "the database file ends after " + plural.SizeOf(size, 45056); !strings.HasSuffix(f.Title,
				want) || !strings.Contains(f.Explanation, lost) {
				t.Errorf("first damage %q: %q, want %q and %q", f.Title, f.Explanation, want, lost)
			}
			if db := r.Members[0].DB; db.Keys != nil || db.CurrentRevision != nil || r.Members[0].Auth != nil {
				t.Errorf("says %v keys at revision %v, auth %v of a file in which no bucket can be reached", db.Keys,
					db.CurrentRevision, r.Members[0].Auth)
			}
			if len(r.Next) == 0 || !strings.Contains(r.Next[0].Command.String(), "etcd-medic verify") {
				t.Errorf("next %+v", r.Next)
			}
		})
	}
}

// TestBackupOfAnotherCluster: a backup carries no cluster ID, but the members that it lists tell whether it can be of
// this cluster.
func TestBackupOfAnotherCluster(t *testing.T) {
	dir := evidence.Spec{Name: "node1", Where: filepath.Join(evidencetest.Incident(t, "m-healthy-3.6"), "node1")}
	foreign := evidence.Spec{Name: "backup", Where: filepath.Join(evidencetest.Incident(t, "o-backup-good"),
		"backup.db")}
	own := evidence.Spec{Name: "db", Where: filepath.Join(evidencetest.Incident(t, "m-healthy-3.6"), "node2", "member",
		"snap", "db")}
	told{class: "foreign-cluster", cause: "foreign-cluster", certainty: "strong", violated: []string{"M01"},
		holds: []string{"K03", "K01"}}.check(t, diagnose(t, []evidence.Spec{dir, foreign}))
	told{class: "healthy", holds: []string{"M01"}, absent: []string{"foreign-cluster"}}.check(t,
		diagnose(t, []evidence.Spec{dir, own}))
}
