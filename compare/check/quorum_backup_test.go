package check_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence/casetest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// backupAt is a backup of a cluster after some puts.
func backupAt(t *testing.T, s clustertest.Synth, puts int, changes ...func(*bbolt.Tx) error) string {
	t.Helper()
	s.Entries = puts
	dir := s.WriteMember(t, t.TempDir(), 0)
	for _, change := range changes {
		casetest.EditDBOnce(t, dir, change)
	}
	b, err := os.ReadFile(dbOf(dir))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "backup.db")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestBackupAheadOfMembers: a backup shows what was committed. If a majority of the voters cannot hold that, members
// lost it, or were copied before. Nothing shows which, so it is not called a lag that they make up for.
func TestBackupAheadOfMembers(t *testing.T) {
	for name, c := range map[string]struct {
		of, given, backup int
		named             []string
	}{
		"above all members":        {3, 3, 80, []string{"node1", "node2", "node3"}},
		"the third may hold it":    {3, 2, 80, []string{"node1", "node2"}},
		"two others may hold it":   {3, 1, 80, nil},
		"above the only member":    {1, 1, 80, []string{"node1"}},
		"as far as the members":    {3, 3, 60, nil},
		"older than the members":   {3, 3, 40, nil},
		"older than the only one":  {1, 1, 40, nil},
		"four others may hold it":  {5, 1, 80, nil},
		"three others may hold it": {5, 2, 80, nil},
		"two of five":              {5, 3, 80, []string{"node1", "node2", "node3"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := sound()
			s.Members, s.Entries = c.of, 60
			dirs := s.Write(t, t.TempDir())[:c.given]
			in := dirInput(t, append(dirs, backupAt(t, s, c.backup))...)
			if c.named == nil {
				wantOutcome(t, in, "R07", check.Holds)
				return
			}
			f := wantFinding(t, in, "R07", c.named, "backup.db has applied entry", "copied at different moments")
			if f.Kind != check.KindBelowQuorum || f.Severity != check.Warning || f.Class != check.ClassInconclusive ||
				f.Evidence[0].Member != "backup.db" ||
				f.Evidence[0].Show.String() != "etcd-medic dumpdb backup.db meta" {
				t.Errorf("%s, %s, %s, evidence %+v", f.Kind, f.Severity, f.Class, f.Evidence[0])
			}
		})
	}
}

// TestBackupAheadOfTornLogs: logs that lost their ends are proof only if they explain that no majority holds the entry.
func TestBackupAheadOfTornLogs(t *testing.T) {
	for name, torn := range map[string]int{"one of three": 1, "two of three": 2} {
		t.Run(name, func(t *testing.T) {
			s := sound()
			s.Entries = 60
			dirs := s.Write(t, t.TempDir())
			for i := range torn {
				tornTail(t, dirs[i])
			}
			f := wantFinding(t, dirInput(t, append(dirs, backupAt(t, s, 80))...), "R07",
				[]string{"node1", "node2", "node3"}, "backup.db has applied entry")
			if want := []check.Kind{check.KindBelowQuorum, check.KindBelowQuorumLogsLost}[torn-1]; f.Kind != want {
				t.Errorf("%d torn logs: %s, %s, want %s", torn, f.Kind, f.Severity, want)
			}
		})
	}
}

// TestBackupWithRaisedIndex: an index without a revision of its own shows nothing to be committed.
func TestBackupWithRaisedIndex(t *testing.T) {
	s := sound()
	s.Entries = 60
	backup := backupAt(t, s, 60, func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("meta")).Put([]byte("consistent_index"), binary.BigEndian.AppendUint64(nil, 99))
	})
	wantOutcome(t, dirInput(t, append(s.Write(t, t.TempDir()), backup)...), "R07", check.Holds)
}
