//go:build unix

package evidence_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// TestSpecialFilesAreNamed: what is no file, or a link to such, is listed as what it is wherever it stands in a data
// dir, and nothing waits for it. One more of them changes the digest; the database and the log next to it are read.
func TestSpecialFilesAreNamed(t *testing.T) {
	incident := filepath.Join(evidencetest.Incident(t, "k-lagging-node"), "node1")
	plain := open(t, evidence.Spec{Where: incident}).Members[0]
	for _, at := range []string{"wal/0000000000000009-00000000000000ff.wal", "wal/0.tmp",
		"snap/00000000000000ff-00000000000000ff.snap", "snap/00000000000000ff.snap.db", "snap/other"} {
		for what, put := range map[string]func(path string) error{
			"a named pipe": func(p string) error { return syscall.Mkfifo(p, 0o600) },
			"a device":     func(p string) error { return os.Symlink("/dev/zero", p) },
		} {
			t.Run(at+" is "+what, func(t *testing.T) {
				dir := evidencetest.Copy(t, incident)
				if err := put(filepath.Join(dir, "member", filepath.FromSlash(at))); err != nil {
					t.Fatal(err)
				}
				s := open(t, evidence.Spec{Where: dir})
				m := s.Members[0]
				listed := ""
				for _, f := range m.Source.Manifest.Files {
					if strings.HasSuffix(f.Path, at) {
						listed = f.What
					}
				}
				if !strings.Contains(listed, what) {
					t.Errorf("it is listed as %q, want %s", listed, what)
				}
				if m.DB == nil || !m.WAL.Present() || m.AppliedMax != plain.AppliedMax {
					t.Errorf("database %v, log %v, applied %d, want %d", m.DB != nil, m.WAL.Present(), m.AppliedMax,
						plain.AppliedMax)
				}
				if m.Source.Manifest.Digest() == plain.Source.Manifest.Digest() {
					t.Error("it does not count into the digest")
				}
				if err := s.Unchanged(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
