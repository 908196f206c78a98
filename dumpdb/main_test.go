package dumpdb

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(bboltCheckEnv); dir != "" {
		bboltCheckChild(dir)
		return
	}
	evidencetest.Main(m)
	if benchMade.Load() {
		if path, _ := benchDB(); path != "" {
			os.RemoveAll(filepath.Dir(path))
		}
	}
}

// open opens a file that must open.
func open(t testing.TB, path string) *DB {
	t.Helper()
	db, err := Open(path)
	if err != nil {
		t.Fatalf("open %s: %v", path, err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// source is one db file of an incident with what truth.json says of it.
type source struct {
	incident, node, path string
	truth                map[string]any // the node's or the backup's facts
}

func (s source) name() string { return s.incident + "/" + s.node }

// sources lists the db files of all incidents.
func sources(t testing.TB) []source {
	t.Helper()
	var out []source
	for _, name := range evidencetest.Incidents(t) {
		dir, truth := evidencetest.Incident(t, name), evidencetest.Truth(t, name)
		evidencetest.Unchanged(t, dir)
		for _, node := range sortedKeys(truth.Nodes) {
			path := filepath.Join(dir, node, "member", "snap", "db")
			if _, err := os.Stat(path); err == nil {
				out = append(out, source{name, node, path, truth.Nodes[node]})
			}
		}
		if b, ok := truth.Raw["backup"].(map[string]any); ok {
			out = append(out, source{name, "backup", filepath.Join(dir, "backup.db"), b})
		}
	}
	if len(out) < 30 {
		t.Fatalf("only %d db files in the incidents", len(out))
	}
	return out
}

// damaged names the sources whose db has structural damage.
func (s source) damaged() bool { return s.name() == "f-bbolt-page-corruption/node1" }

func onOneCore(fn func()) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	fn()
}
