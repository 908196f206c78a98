package run

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// FuzzJournal reads any bytes as the journal of a plan, and says where the plan stands: never a panic.
func FuzzJournal(f *testing.F) {
	p := &plan.Plan{SchemaVersion: plan.SchemaVersion, Mode: plan.Clone, Ways: []plan.Way{{Mode: plan.Clone}}}
	if err := p.Seal(); err != nil {
		f.Fatal(err)
	}
	b, err := p.YAML()
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(`{"time":"2026-01-02T03:04:05Z","run":1,"mode":"clone","state":"run"}` + "\n"))
	f.Add([]byte(`{"time":"2026-01-02T03:04:05Z","run":"1","mode":"clone","state":"run"}` + "\n"))
	f.Add([]byte("{\n"))
	f.Fuzz(func(t *testing.T, journal []byte) {
		file := filepath.Join(t.TempDir(), "plan.yaml")
		for path, b := range map[string][]byte{file: b, JournalPath(file): journal} {
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, _ = ReadJournal(file) // what is damaged is an error
		_, _ = Status(file)
	})
}
