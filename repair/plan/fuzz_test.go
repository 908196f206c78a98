package plan

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzLoad reads any bytes as a plan: never a panic, and never a plan whose digest does not hold.
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
		f.Add(b)
	}
	f.Add([]byte("schemaVersion: 2\ndigest: &a [*a]\n"))
	f.Fuzz(func(t *testing.T, plan []byte) {
		file := filepath.Join(t.TempDir(), "plan.yaml")
		if err := os.WriteFile(file, plan, 0o600); err != nil {
			t.Fatal(err)
		}
		if p, err := Load(file); err == nil {
			if d, err := p.digest(); err != nil || d != p.Digest {
				t.Errorf("a plan with digest %s is taken, its content gives %s: %v", p.Digest, d, err)
			}
		}
	})
}
