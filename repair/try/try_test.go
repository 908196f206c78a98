package try

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/repair/surgery"
)

func TestMain(m *testing.M) { evidencetest.Main(m) }

// trials opens a folder for trials; nothing may be left of it.
func trials(t *testing.T) (tr plan.Trials, left func() []string) {
	t.Helper()
	dir := t.TempDir()
	tr, err := In(dir)()
	if err != nil {
		t.Fatal(err)
	}
	left = func() (out []string) {
		found, err := filepath.Glob(filepath.Join(dir, "*", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	t.Cleanup(func() {
		if len(left()) > 0 {
			t.Errorf("left: %v", left())
		}
		tr.Close()
		if all, err := os.ReadDir(dir); err != nil || len(all) > 0 {
			t.Errorf("left: %v, %v", all, err)
		}
	})
	return tr, left
}

func member(incident, name string) evidence.Spec {
	return evidence.Spec{Name: name, Where: filepath.Join(incident, name)}
}

func flip(t *testing.T, pattern string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	b[6000] ^= 0x10
	if err := os.WriteFile(files[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestMend: the repairs are made one after the other, the last one's result is inspected, and all of it is removed.
func TestMend(t *testing.T) {
	set := evidencetest.Copy(t, evidencetest.Incident(t, "f-bbolt-page-corruption"))
	flip(t, filepath.Join(set, "node1", "member", "wal", "*.wal"))
	evidencetest.Unchanged(t, set)
	peers := []evidence.Spec{member(set, "node2"), member(set, "node3")}
	tr, left := trials(t)
	for _, repairs := range [][]string{{plan.MendLog}, {plan.MendLog, plan.MendDB}} {
		seen := ""
		did, err := tr.Mend(t.Context(), plan.MendJob{Source: member(set, "node1"), Peers: peers, Repairs: repairs},
			func(dir string) {
				seen = dir
				for _, part := range []string{"wal", "snap/db"} {
					if _, err := os.Stat(filepath.Join(dir, "member", part)); err != nil {
						t.Error(err)
					}
				}
				if n := len(left()); n != 1 {
					t.Errorf("%d trials at once", n)
				}
				// The result of the first repair is gone.
				if got, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), "*")); len(got) != 1 {
					t.Errorf("%v", got)
				}
			})
		if err != nil || seen == "" || len(did) == 0 {
			t.Fatalf("%s: did %q, %v", repairs, did, err)
		}
		text := strings.Join(did, "\n")
		if strings.Contains(text, "database") != slices.Contains(repairs, plan.MendDB) ||
			!strings.Contains(text, "log") {
			t.Errorf("%s: did %q", repairs, did)
		}
	}
	refused := plan.MendJob{Source: member(set, "node1"), Repairs: []string{plan.MendLog, plan.MendDB}}
	did, err := tr.Mend(t.Context(), refused, func(string) { t.Error("a refused repair is inspected") })
	var r *refusal.Error
	if !errors.As(err, &r) || did != nil {
		t.Errorf("without the others: %q, %v", did, err)
	}
}

// TestMendRecords: a record that is proven wrong is taken from a member that holds the right one. A sound member takes
// nothing.
func TestMendRecords(t *testing.T) {
	set := evidencetest.Incident(t, "n-silent-kv-divergence")
	tr, _ := trials(t)
	job := plan.MendJob{Source: member(set, "node2"), Peers: []evidence.Spec{member(set, "node1"), member(set, "node3")},
		Repairs: []string{plan.MendRecords}}
	looked := false
	did, err := tr.Mend(t.Context(), job, func(string) { looked = true })
	if err != nil || !looked || !strings.Contains(strings.Join(did, "\n"), "1 record of bucket key is that of node1") {
		t.Errorf("%q, %v", did, err)
	}
	job.Source, job.Peers[0] = job.Peers[0], job.Source
	if did, err := tr.Mend(t.Context(), job, func(string) { t.Error("inspected") }); err == nil {
		t.Errorf("a sound member: %q", did)
	}
}

// TestNarrowRepair: each kind of surgery is the one that the command makes.
func TestNarrowRepair(t *testing.T) {
	base := evidence.Spec{Name: "base"}
	for name, want := range map[string]surgery.Change{plan.MendLog: surgery.WAL{}, plan.MendDB: surgery.DB{Base: base},
		plan.MendRecords: surgery.DB{Proven: true}, plan.MendMeta: surgery.Meta{MembersFromRaft: true}} {
		if got := narrowRepair(name, base); fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", want) {
			t.Errorf("%s: %#v", name, got)
		}
	}
}

// TestRoom asks the file system of the trials.
func TestRoom(t *testing.T) {
	tr, _ := trials(t)
	if err := tr.Room(1); err != nil {
		t.Error(err)
	}
	var r *refusal.Error
	if err := tr.Room(1 << 60); !errors.As(err, &r) {
		t.Errorf("an exbibyte: %v", err)
	}
	if _, err := In(filepath.Join(t.TempDir(), "none"))(); err == nil {
		t.Error("trials in a folder that does not exist")
	}
}

// TestRebuild: a database is rebuilt up to the last committed entry that the logs hold without a gap, and removed.
func TestRebuild(t *testing.T) {
	dir := evidencetest.Copy(t, filepath.Join(evidencetest.Incident(t, "f2-empty-db"), "node3"))
	rebuilt := func(t *testing.T) (f *plan.RebuiltFile, said int, err error) {
		set, err := evidence.Open(t.Context(), []evidence.Spec{{Name: "node3", Where: dir}}, evidence.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer set.Close()
		tr, _ := trials(t)
		err = tr.Rebuild(t.Context(), plan.RebuildJob{Logs: set.Members, Progress: func(string) { said++ }},
			func(x *plan.RebuiltFile) error {
				f = x
				db, err := dumpdb.Open(x.Path)
				if err != nil {
					return err
				}
				return db.Close()
			})
		return f, said, err
	}
	whole, said, err := rebuilt(t)
	if err != nil || whole.Index == 0 || whole.Term == 0 || whole.Keys == 0 || said == 0 {
		t.Fatalf("%+v, %v", whole, err)
	}
	wal, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
	if err != nil || len(wal) != 1 {
		t.Fatal(wal, err)
	}
	if err := os.Truncate(wal[0], 20000); err != nil {
		t.Fatal(err)
	}
	cut, _, err := rebuilt(t)
	if err != nil || cut.Index == 0 || cut.Index >= whole.Index || cut.Keys == 0 {
		t.Errorf("a log that lost its end: %+v, %v", cut, err)
	}
	if err := os.Truncate(wal[0], 100); err != nil {
		t.Fatal(err)
	}
	if f, _, err := rebuilt(t); err == nil {
		t.Errorf("a log without entries: %+v", f)
	}
}
