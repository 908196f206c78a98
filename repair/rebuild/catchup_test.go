package rebuild_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/repair/rebuild"
)

// lagging are the data dirs of a cluster whose first member's database ends ten entries before its log.
func lagging(t *testing.T, members int, version string) []string {
	t.Helper()
	s := &clustertest.Script{Members: members, Version: version}
	for i := range members {
		s.Start(i)
	}
	last := 0
	for i := range 40 {
		last = s.Add(clustertest.Step{By: 0, Req: &etcdserverpb.InternalRaftRequest{Put: &etcdserverpb.PutRequest{Key: fmt.Appendf(nil, "k%02d", i), Value: []byte("v")}}})
	}
	s.Of = map[int]clustertest.ScriptMember{0: {AppliedUntil: last - 10}}
	dirs := s.Write(t, t.TempDir())
	for _, d := range dirs {
		evidencetest.Unchanged(t, d)
	}
	return dirs
}

func caughtUp(t *testing.T, o rebuild.CatchUpOptions) (*rebuild.CaughtUp, int) {
	t.Helper()
	up, err := rebuild.CatchUp(ctx(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = up.Close() })
	db, err := dumpdb.Open(up.DB)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	keys := 0
	for _, err := range db.Query(ctx(), dumpdb.Query{Live: true}) {
		if err != nil {
			t.Fatal(err)
		}
		keys++
	}
	return up, keys
}

// TestCatchUp executes what the log has above the database, and counts what it cannot.
func TestCatchUp(t *testing.T) {
	for _, version := range []string{"3.4.0", "3.5.0", "3.6.0"} {
		dirs := lagging(t, 3, version)
		up, keys := caughtUp(t, rebuild.CatchUpOptions{Source: evidence.Spec{Where: dirs[0]}})
		if up.Executed != 10 || !up.Whole() || keys != 40 ||
			!strings.Contains(strings.Join(up.Says(), ""), "10 committed entries") {
			t.Errorf("%s: %d keys, %+v", version, keys, up)
		}
		asIs, keys := caughtUp(t, rebuild.CatchUpOptions{Source: evidence.Spec{Where: dirs[0]},
			AsIs: "the file is read as it is"})
		if asIs.Missing != 10 || asIs.Whole() || keys != 30 || asIs.Executed != 0 {
			t.Errorf("%s as it is: %d keys, %+v", version, keys, asIs)
		}
		old, keys := caughtUp(t, rebuild.CatchUpOptions{Source: evidence.Spec{Where: dirs[0]}, Revision: 10})
		if !old.Whole() || keys != 30 || old.Executed != 0 {
			t.Errorf("%s at an old revision: %d keys, %+v", version, keys, old)
		}
		own, keys := caughtUp(t, rebuild.CatchUpOptions{Source: evidence.Spec{Where: dirs[0]}, Revision: 31})
		if !own.Whole() || keys != 30 || own.Executed != 0 {
			t.Errorf("%s at its own revision: %d keys, %+v", version, keys, own)
		}
		whole, keys := caughtUp(t, rebuild.CatchUpOptions{Source: evidence.Spec{Where: dirs[1]}})
		if !whole.Whole() || keys != 40 || whole.Executed != 0 || whole.DB != filepath.Join(dirs[1], "member", "snap",
			"db") {
			t.Errorf("%s, a database that is not behind: %d keys, %+v", version, keys, whole)
		}
		bare, keys := caughtUp(t, rebuild.CatchUpOptions{Source: evidence.Spec{Where: up.DB}})
		if !bare.Whole() || keys != 40 {
			t.Errorf("%s, a database alone: %+v", version, bare)
		}
	}
}

// TestCatchUpOverAHole: entries whose records are damaged are counted, and another member's log has them.
func TestCatchUpOverAHole(t *testing.T) {
	dirs := lagging(t, 3, "3.5.0")
	files, err := filepath.Glob(filepath.Join(dirs[0], "member", "wal", "*.wal"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v %v", files, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Index(string(b), "k35")
	if at < 0 {
		t.Fatal("no entry of k35")
	}
	b[at] ^= 0x40
	bad := evidencetest.Copy(t, dirs[0])
	if err := os.WriteFile(filepath.Join(bad, "member", "wal", filepath.Base(files[0])), b, 0o600); err != nil {
		t.Fatal(err)
	}
	up, keys := caughtUp(t, rebuild.CatchUpOptions{Source: evidence.Spec{Where: bad}})
	if up.Executed+up.Missing != 10 || up.Missing == 0 || up.Whole() || keys != 30+int(up.Executed) || up.Why == "" {
		t.Errorf("%d keys, %+v", keys, up)
	}
	healed, keys := caughtUp(t, rebuild.CatchUpOptions{Source: evidence.Spec{Where: bad},
		Logs: []evidence.Spec{{Where: dirs[1]}}})
	if !healed.Whole() || keys != 40 {
		t.Errorf("with the other log: %d keys, %+v", keys, healed)
	}
}

// TestCatchUpWithoutTheEndOfTheLog: a data dir without a log, or with a log that lost its last segment, does not show
// what its server acknowledged above the database. Only the whole logs of a majority of the voters prove that nothing
// is missing.
func TestCatchUpWithoutTheEndOfTheLog(t *testing.T) {
	dirs := lagging(t, 3, "3.5.0")
	source, other, third := evidence.Spec{Where: evidencetest.Copy(t, dirs[0])}, evidence.Spec{Where: dirs[1]},
		evidence.Spec{Where: dirs[2]}
	if err := os.RemoveAll(filepath.Join(source.Where, "member", "wal")); err != nil {
		t.Fatal(err)
	}
	in := evidencetest.Incident(t, "e3-wal-missing-last-segment")
	node := func(n int) evidence.Spec { return evidence.Spec{Where: filepath.Join(in, fmt.Sprintf("node%d", n))} }
	for name, tc := range map[string]struct {
		o     rebuild.CatchUpOptions
		whole bool
		says  string
	}{
		"no log":             {rebuild.CatchUpOptions{Source: source}, false, "no log"},
		"no log, one other":  {rebuild.CatchUpOptions{Source: source, Logs: []evidence.Spec{other}}, false, "no log"},
		"no log, a majority": {rebuild.CatchUpOptions{Source: source, Logs: []evidence.Spec{other, third}}, true, ""},
		"no log, one twice": {rebuild.CatchUpOptions{Source: source, Logs: []evidence.Spec{other, other}}, false,
			"no log"},
		"no log, old revision": {rebuild.CatchUpOptions{Source: source, Revision: 10}, true, ""},
		"no last segment":      {rebuild.CatchUpOptions{Source: node(1)}, false, "end of its log"},
		"every segment":        {rebuild.CatchUpOptions{Source: node(2)}, true, ""},
		"no segment, one other": {rebuild.CatchUpOptions{Source: node(1), Logs: []evidence.Spec{node(2)}}, false,
			"end of its log"},
		"no segment, majority": {rebuild.CatchUpOptions{Source: node(1), Logs: []evidence.Spec{node(2), node(3)}},
			true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			up, _ := caughtUp(t, tc.o)
			if up.Whole() != tc.whole || !strings.Contains(up.EndUnknown, tc.says) || tc.whole && up.EndUnknown != "" ||
				strings.Contains(strings.Join(up.Says(), ""), "an unknown number") == tc.whole {
				t.Errorf("%q, %+v", up.Says(), up)
			}
		})
	}
}
