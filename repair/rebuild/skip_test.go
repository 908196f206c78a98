package rebuild_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-medic/etcd-medic/compare/backup"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/repair/rebuild"
)

// TestSkip leaves a mistake out: a later transaction that looked at it goes the other way, one that looked at a later
// revision does not.
func TestSkip(t *testing.T) {
	r, dir := small(t)
	out := filepath.Join(t.TempDir(), "out.db")
	bare := filepath.Join(t.TempDir(), "bare.db")
	res, err := run(t, rebuild.Options{Logs: []evidence.Spec{{Where: dir}}, To: rebuild.Target{Last: true},
		Skip: []uint64{r.points[1].index}, Out: out, DBOut: bare})
	if err != nil {
		t.Fatal(err)
	}
	passes(t, out)
	want := []kv{{"a", "last", 2, 6, 2, 0}, {"b", "1", 4, 4, 1, 0}, {"d", "otherwise", 5, 5, 1, 0},
		{"e", "2", 7, 8, 2, 0}}
	if d := cmp.Diff(want, held(t, out, true)); d != "" {
		t.Error(d)
	}
	c := res.Consequences
	if c.EntryCount != 1 || c.Entries[0].Index != r.points[3].index || c.KeyCount != 2 || len(c.EmptyRevisions) != 1 ||
		c.EmptyRevisions[0] != 3 {
		t.Errorf("%+v", c)
	}
	if c.Keys[0].Key.Printable() && string(c.Keys[0].Key) != "c" || string(c.Keys[1].Key) != "d" {
		t.Errorf("%+v", c.Keys)
	}
	if st, err := os.Stat(bare); err != nil || st.Size()%512 != 0 {
		t.Errorf("%v %v", st, err)
	}
}

// passes wants the tool's own verify to find nothing in a result.
func passes(t *testing.T, out string) {
	t.Helper()
	rep, err := backup.Verify(ctx(), evidence.Spec{Where: out}, backup.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if rep.Verdict.Health != check.Healthy {
		t.Errorf("verify says %s: %s %+v", rep.Verdict.Class, rep.Verdict.Summary, rep.Findings)
	}
}

// TestSkipVerifies skips every entry that writes keys, one at a time and several, the last one too: every result passes
// verify, and ends at the revision that clients have seen.
func TestSkipVerifies(t *testing.T) {
	r, dir := small(t)
	var skips [][]uint64
	for _, p := range r.points {
		skips = append(skips, []uint64{p.index})
	}
	n := len(r.points)
	skips = append(skips, []uint64{r.points[n-2].index, r.points[n-1].index},
		[]uint64{r.points[0].index, r.points[2].index})
	last := r.points[n-1].rev
	for _, skip := range skips {
		out := filepath.Join(t.TempDir(), "out.db")
		res, err := run(t, rebuild.Options{Logs: []evidence.Spec{{Where: dir}}, To: rebuild.Target{Last: true},
			Skip: skip, Out: out})
		if err != nil {
			t.Fatalf("without %v: %v", skip, err)
		}
		passes(t, out)
		empty := res.Consequences.EmptyRevisions
		if res.To.Revision != last || len(empty) > 0 && res.To.CompactRevision < empty[len(empty)-1] {
			t.Errorf("without %v: %+v", skip, res)
		}
		db, err := dumpdb.Open(out)
		if err != nil {
			t.Fatal(err)
		}
		if rev, err := db.CurrentRev(); err != nil || rev != last {
			t.Errorf("without %v: revision %d %v, want %d", skip, rev, err, last)
		}
		_ = db.Close()
	}
}
