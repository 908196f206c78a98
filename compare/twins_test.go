package compare_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// TestBitInOneOfEqualMembers: members with equal records are replayed once, and their logs are read once where they
// agree. One bit in the database or the log of one of them is still found, and named with its member.
func TestBitInOneOfEqualMembers(t *testing.T) {
	const pod, segment = "/registry/pods/ns-3/pod-000020", "wal/0000000000000000-0000000000000000.wal"
	for _, c := range []struct {
		name, file, class string
	}{
		{name: "database", file: "snap/db", class: "data-divergence"},
		{name: "log", file: segment, class: "wal-damage"},
	} {
		for node := range 3 {
			t.Run(c.name+" of node"+string(rune('1'+node)), func(t *testing.T) {
				t.Parallel()
				dirs := clustertest.Synth{Members: 3, Entries: 600, Keys: 40, Value: 64,
					Starts: map[int]int{0: 0, 1: 1, 2: 2}}.Write(t, t.TempDir())
				path := filepath.Join(dirs[node], "member", c.file)
				b, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				b[bytes.Index(b, []byte(pod))+len(pod)+20] ^= 4
				if err := os.WriteFile(path, b, 0o600); err != nil {
					t.Fatal(err)
				}
				evidencetest.Unchanged(t, dirs...)
				r := diagnose(t, dirSpecs(dirs))
				if string(r.Verdict.Class) != c.class || r.Verdict.Health != check.Unhealthy {
					t.Errorf("class %s, want %s", r.Verdict.Class, c.class)
				}
				if b := r.Verdict.FirstBreak; b == nil || !slices.Equal(b.Member, []string{filepath.Base(dirs[node])}) {
					t.Errorf("first break %+v", b)
				}
				if slices.Contains(r.Best.Members, filepath.Base(dirs[node])) {
					t.Errorf("best %v", r.Best.Members)
				}
			})
		}
	}
}
