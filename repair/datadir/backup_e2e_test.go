//go:build e2e

package datadir_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// TestE2EBackupIsAccepted: both etcdutl restore what WriteBackup makes, checking the hash; of a database with a byte
// changed behind the trailer they do not.
func TestE2EBackupIsAccepted(t *testing.T) {
	backup := filepath.Join(t.TempDir(), "backup.db")
	_, err := datadir.WriteBackup(context.Background(), backup, synthDB(t, 1000))
	ok(t, err)
	for _, tool := range []string{"etcdutl-3.6", "etcdutl-3.7"} {
		bin := filepath.Join(evidencetest.Root(t), ".tools", "bin", tool)
		dir := filepath.Join(t.TempDir(), "restored")
		for _, args := range [][]string{{"snapshot", "status", backup},
			{"snapshot", "restore", backup, "--data-dir", dir}} {
			if out, err := exec.Command(bin, args...).CombinedOutput(); err != nil {
				t.Errorf("%s %v: %v\n%s", tool, args, err, out)
			}
		}
		set := openSet(t, dir)
		if rev, err := set.Members[0].DB.Handle.CurrentRev(); err != nil || rev != 1001 {
			t.Errorf("%s: revision %d, %v", tool, rev, err)
		}
	}
}
