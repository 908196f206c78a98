package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/repair/try"
)

// TestChangedWALDirIsRefused: a WAL outside of the data dir, given by --wal-dir or a symbolic link, is evidence as any
// other. A flipped byte there is a changed source.
func TestChangedWALDirIsRefused(t *testing.T) {
	for _, how := range []string{"--wal-dir", "symbolic link"} {
		t.Run(how, func(t *testing.T) {
			dir, apart := evidencetest.Copy(t, evidencetest.Incident(t, "h-misconfigured-member-add")),
				filepath.Join(t.TempDir(), "log")
			var specs []evidence.Spec
			for _, name := range []string{"node1", "node2", "node3"} {
				specs = append(specs, evidence.Spec{Name: name, Where: filepath.Join(dir, name)})
			}
			inside := filepath.Join(dir, "node3", "member", "wal")
			if err := os.Rename(inside, apart); err != nil {
				t.Fatal(err)
			}
			if how == "--wal-dir" {
				specs[2].WALDir = apart
			} else if err := os.Symlink(apart, inside); err != nil {
				t.Fatal(err)
			}
			p, err := plan.New(t.Context(), specs, try.In(""), plan.Options{})
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "plan.yaml")
			if err := p.Save(file); err != nil {
				t.Fatal(err)
			}
			flipFirstSegment(t, apart)
			for what, run := range map[string]func() error{
				"rehearse": func() error { _, err := Rehearse(t.Context(), file, Options{}); return err },
				"apply": func() error {
					_, err := Apply(t.Context(), file,
						ApplyOptions{Mode: plan.Clone, Out: filepath.Join(t.TempDir(), "out")})
					return err
				},
			} {
				if got := wantRefusal(t, run()); !strings.Contains(got.Reason, "source node3 changed") {
					t.Errorf("%s: refused for another reason: %v", what, got)
				}
			}
			wantNothingBegun(t, file)
		})
	}
}

// flipFirstSegment flips a bit in the first segment of a log and keeps its time: only the digest can tell.
func flipFirstSegment(t *testing.T, wal string) {
	t.Helper()
	segments, err := filepath.Glob(filepath.Join(wal, "*.wal"))
	if err != nil || len(segments) == 0 {
		t.Fatalf("no segment: %v", err)
	}
	st, err := os.Stat(segments[0])
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(segments[0], os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, 200); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 1
	if _, err := f.WriteAt(b, 200); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(segments[0], st.ModTime(), st.ModTime()); err != nil {
		t.Fatal(err)
	}
}
