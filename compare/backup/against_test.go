package backup_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/backup"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

func nodeDB(t *testing.T, incident, node string) string {
	t.Helper()
	return filepath.Join(evidencetest.Incident(t, incident), node, "member", "snap", "db")
}

func against(t *testing.T, path string, others ...string) (*compare.Report, *backup.Against) {
	t.Helper()
	o := backup.Options{Options: compare.Options{MaxRows: 10}}
	for i, p := range others {
		o.Against = append(o.Against, evidence.Spec{Name: fmt.Sprintf("other%d", i+1), Where: p})
	}
	evidencetest.Unchanged(t, append(others, path)...)
	r, err := backup.Verify(context.Background(), evidence.Spec{Where: path}, o)
	if err != nil {
		t.Fatal(err)
	}
	a, ok := r.Backup.Against.(*backup.Against)
	if !ok || len(a.Compared) != len(others) {
		t.Fatalf("against %+v", r.Backup.Against)
	}
	return r, a
}

func outcome(r *compare.Report, id string) check.Outcome {
	for _, c := range r.Checks {
		if string(c.ID) == id {
			return c.Outcome
		}
	}
	return ""
}

// TestBehind: the member that was stopped early is a backup of the others; what they did since is told key by key.
func TestBehind(t *testing.T) {
	node1 := filepath.Join(evidencetest.Incident(t, "k-lagging-node"), "node1")
	r, a := against(t, nodeDB(t, "k-lagging-node", "node3"), node1, nodeDB(t, "k-lagging-node", "node2"))
	if r.Verdict.Class != "backup-unverifiable" || outcome(r, "B08") != check.Holds {
		t.Errorf("%s, B08 %s", r.Verdict.Class, outcome(r, "B08"))
	}
	for _, c := range a.Compared {
		if c.SameHistory != check.Holds || c.RevisionsBehind != 58 || c.Missing != 25 || c.Differ != 21 ||
			c.Extra != 10 || len(c.Rows) != 10 || c.More != 46 {
			t.Errorf("%+v", c)
		}
		if d := cmp.Diff([]backup.Group{{Name: "/lag/", Differ: 21, Extra: 10}, {Name: "/lag/new/", Missing: 25}},
			c.Prefixes); d != "" {
			t.Error(d)
		}
	}
	if b := a.Buckets[0]; b.Bucket != "key" || !b.Equal.Certain() {
		t.Errorf("at the common index the keys differ: %+v", b)
	}
	_, a = against(t, nodeDB(t, "k-lagging-node", "node1"), nodeDB(t, "k-lagging-node", "node3"))
	if c := a.Compared[0]; c.RevisionsBehind != -58 || c.SameHistory != check.Holds || c.Missing != 10 ||
		c.Extra != 25 {
		t.Errorf("the other way round: %+v", c)
	}
}

// TestBackupBeforeRestore: the indexes of a restored cluster begin again, so a backup from before the restore is not
// compared with its members at one index. Its keys are.
func TestBackupBeforeRestore(t *testing.T) {
	dir := evidencetest.Copy(t, evidencetest.Incident(t, "t-restored-compacted"))
	old := evidencetest.Copy(t, filepath.Join(dir, "m2"))
	clustertest.EditDB(func(tx *bbolt.Tx) error {
		if err := errors.Join(tx.DeleteBucket([]byte("members")), tx.DeleteBucket([]byte("lease"))); err != nil {
			return err
		}
		b, err := tx.CreateBucket([]byte("members"))
		_, err2 := tx.CreateBucket([]byte("lease"))
		return errors.Join(err, err2,
			b.Put([]byte("abc"), []byte(`{"id":2748,"peerURLs":["http://127.0.0.1:1"],"name":"old"}`)))
	})(t, filepath.Join(old, "member"))
	r, a := against(t, filepath.Join(old, "member", "snap", "db"), filepath.Join(dir, "m1"), filepath.Join(dir, "m2"))
	if got := outcome(r, "B08"); got != check.Holds {
		t.Errorf("B08 %s: %s", got, r.Verdict.Summary)
	}
	for _, c := range a.Compared {
		if !c.Counted || c.SameHistory != check.Holds || len(c.Unequal) > 0 || len(c.State) == 0 {
			t.Errorf("%+v", c)
		}
	}
	if why := a.Comparison.Window.LeftOut[r.Sources[0].Name]; !strings.Contains(why, "of another log") {
		t.Errorf("%+v", a.Comparison.Window)
	}
}

// TestCompactionIsNoDifference: members that compacted otherwise are of one history, whichever is taken for the backup.
func TestCompactionIsNoDifference(t *testing.T) {
	for _, pair := range [][2]string{{"node1", "node2"}, {"node2", "node1"}, {"node2", "node3"}} {
		_, a := against(t, nodeDB(t, "l-compaction-skew", pair[0]), nodeDB(t, "l-compaction-skew", pair[1]))
		if c := a.Compared[0]; c.SameHistory != check.Holds || c.RevisionsBehind != 0 ||
			c.Missing+c.Differ+c.Extra != 0 {
			t.Errorf("%v: %+v", pair, c)
		}
	}
}

// TestSourceCompactedBeyondTheBackup: a member that has compacted everything up to now still proves what it kept.
func TestSourceCompactedBeyondTheBackup(t *testing.T) {
	s := clustertest.Synth{Members: 1, Entries: 100, Keys: 20, Value: 20}
	dir := t.TempDir()
	old, now := filepath.Join(dir, "old.db"), filepath.Join(dir, "now.db")
	s.Entries = 60
	s.WriteDB(t, old)
	s.Entries = 100
	s.WriteDB(t, now)
	compactTo(t, now, 95, 20)
	_, a := against(t, old, now)
	c := a.Compared[0]
	if c.SameHistory != check.NotChecked || c.Reason != "no record is in both" || c.RevisionsBehind != 40 ||
		c.Differ != 20 {
		t.Errorf("%+v", c)
	}
	s.Keys, s.Entries = 90, 100
	s.WriteDB(t, filepath.Join(dir, "wide.db"))
	s.Entries = 80
	s.WriteDB(t, filepath.Join(dir, "wide-old.db"))
	compactTo(t, filepath.Join(dir, "wide.db"), 95, 90)
	_, a = against(t, filepath.Join(dir, "wide-old.db"), filepath.Join(dir, "wide.db"))
	if c := a.Compared[0]; c.SameHistory != check.Holds || c.Records == 0 || c.RevisionsBehind != 20 ||
		c.Missing != 10 || c.Differ != 10 {
		t.Errorf("%+v", c)
	}
}

// compactTo removes what a compaction at a revision removes from a Synth database, whose puts go to its keys in turn.
func compactTo(t *testing.T, path string, at, keys int) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for main := 2; main+keys <= at; main++ {
			if err := tx.Bucket([]byte("key")).Delete(rev(uint64(main))); err != nil {
				return err
			}
		}
		for _, mark := range []string{"scheduledCompactRev", "finishedCompactRev"} {
			if err := tx.Bucket([]byte("meta")).Put([]byte(mark), rev(uint64(at))); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestTombstoneAtCompaction: some releases keep the tombstones at the compact revision and others do not. A tombstone
// above it is in every database of the history.
func TestTombstoneAtCompaction(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "whole.db")
	clustertest.Synth{Members: 1, Entries: 50, Keys: 10, Value: 20}.WriteDB(t, whole)
	tombstone := append(rev(50), 't')
	edit := func(path string, change func(b *bbolt.Bucket) error) {
		db, err := bbolt.Open(path, 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = db.Update(func(tx *bbolt.Tx) error { return change(tx.Bucket([]byte("key"))) })
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
	}
	edit(whole, func(b *bbolt.Bucket) error {
		var put mvccpb.KeyValue
		if err := put.Unmarshal(b.Get(rev(50))); err != nil {
			return err
		}
		gone, err := (&mvccpb.KeyValue{Key: put.Key}).Marshal()
		return errors.Join(err, b.Delete(rev(50)), b.Put(tombstone, gone))
	})
	for at, want := range map[int]check.Outcome{50: check.Holds, 49: check.Violated} {
		without := filepath.Join(evidencetest.Copy(t, filepath.Dir(whole)), "whole.db")
		compactTo(t, without, at, 10)
		edit(without, func(b *bbolt.Bucket) error { return b.Delete(tombstone) })
		for _, pair := range [][2]string{{whole, without}, {without, whole}} {
			_, a := against(t, pair[0], pair[1])
			if c := a.Compared[0]; c.SameHistory != want || c.Records == 0 ||
				want == check.Violated && c.First.Revision.Main != 50 {
				t.Errorf("compacted at %d: %+v, first %+v", at, c, c.First)
			}
		}
	}
}

// TestOtherHistory: an altered value, a dropped record and a foreign cluster are told with the first record that
// differs.
func TestOtherHistory(t *testing.T) {
	flipped := filepath.Join(evidencetest.Incident(t, "o-backup-bit-flip"), "backup.db")
	s := clustertest.Synth{Members: 1, Entries: 50, Keys: 10, Value: 20}
	whole := filepath.Join(t.TempDir(), "whole.db")
	s.WriteDB(t, whole)
	s.Skip = map[int]map[int]bool{0: {30: true}}
	dropped := filepath.Join(s.Write(t, t.TempDir())[0], "member", "snap", "db")
	for _, c := range []struct {
		name, backup, other string
		main                int64
	}{
		{"one bit", good(t), flipped, 156},
		{"dropped write", whole, dropped, 32},
		{"foreign cluster", good(t), nodeDB(t, "k-lagging-node", "node1"), 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, a := against(t, c.backup, c.other)
			got := a.Compared[0]
			if got.SameHistory != check.Violated || got.First == nil || got.First.Revision.Main != c.main ||
				got.First.InBackup == got.First.InSource {
				t.Fatalf("%+v first %+v", got, got.First)
			}
			if r.Verdict.Class != "data-divergence" || r.Verdict.Health == check.Healthy ||
				outcome(r, "B08") != check.Violated ||
				r.Verdict.FirstBreak == nil {
				t.Errorf("%s: %s", r.Verdict.Class, r.Verdict.Summary)
			}
			if !slices.ContainsFunc(r.Findings,
				func(f check.Finding) bool { return f.Check == "B08" && len(f.Evidence) == 2 }) {
				t.Errorf("findings %+v", r.Findings)
			}
		})
	}
}

// TestDamagedIsNotCompared: a backup of which part is lost is damaged, and nothing is claimed about what it lacks.
func TestDamagedIsNotCompared(t *testing.T) {
	path := evidencetest.Copy(t, good(t))
	raw(false, func(b []byte) []byte { return b[:20_000] })(t, path)
	r, a := against(t, path, good(t))
	if c := a.Compared[0]; c.SameHistory != check.NotChecked || c.Reason == "" || c.Missing != 0 {
		t.Errorf("%+v", c)
	}
	if r.Verdict.Class != "backup-damaged" || outcome(r, "B08") != check.NotChecked {
		t.Errorf("%s, B08 %s", r.Verdict.Class, outcome(r, "B08"))
	}
}
