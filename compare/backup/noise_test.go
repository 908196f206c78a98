package backup_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
)

// TestNoBackupAtAll: noise, zeros and other files under the name of a backup are damaged backups, and nothing is said
// about pages that they never had.
func TestNoBackupAtAll(t *testing.T) {
	noise := make([]byte, 300_000)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(noise)
	for name, b := range map[string][]byte{
		"noise": noise, "a short piece of noise": noise[:200], "zeros": make([]byte, 1<<20),
		"text": bytes.Repeat([]byte("not a database\n"), 10_000),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "backup.db")
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			r := verify(t, path)
			if r.Verdict.Class != "backup-damaged" || r.Verdict.Health != check.Unhealthy ||
				!strings.Contains(r.Verdict.Summary, "no etcd database") {
				t.Errorf("%+v", r.Verdict)
			}
			if pages := layerOf(r, "pages"); pages.Outcome != check.NotChecked {
				t.Errorf("of pages that it never had: %+v", pages)
			}
		})
	}
}

// TestHeadOverwritten: a backup of which the head is noise is still known by its pages.
func TestHeadOverwritten(t *testing.T) {
	b, err := os.ReadFile(good(t))
	if err != nil {
		t.Fatal(err)
	}
	r := rand.NewChaCha8([32]byte{2})
	_, _ = r.Read(b[:8192])
	path := filepath.Join(t.TempDir(), "backup.db")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	got := verify(t, path)
	if got.Verdict.Class != "backup-damaged" ||
		!slices.ContainsFunc(got.Causes, func(c compare.Cause) bool { return c.ID == "bbolt-meta-damage" }) {
		t.Errorf("%+v %+v", got.Verdict, got.Causes)
	}
}
