package repair

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzLoad reads any bytes as a plan and as its journal: never a panic, and never a plan whose digest does not hold.
func FuzzLoad(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "plans", "*.yaml"))
	if err != nil || len(files) == 0 {
		f.Fatalf("no plan: %v", err)
	}
	for _, file := range files[:2] {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, []byte(`{"time":"2026-01-02T03:04:05Z","run":"1","mode":"clone","state":"run"}`+"\n"))
	}
	f.Add([]byte("schemaVersion: 2\ndigest: &a [*a]\n"), []byte("{\n"))
	f.Fuzz(func(t *testing.T, plan, journal []byte) {
		file := filepath.Join(t.TempDir(), "plan.yaml")
		for path, b := range map[string][]byte{file: plan, JournalPath(file): journal} {
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if p, err := Load(file); err == nil {
			if d, err := p.digest(); err != nil || d != p.Digest {
				t.Errorf("a plan with digest %s is taken, its content gives %s: %v", p.Digest, d, err)
			}
		}
		_, _ = ReadJournal(file) // what is damaged is an error
		_, _ = Status(file)
	})
}
