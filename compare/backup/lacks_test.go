package backup_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/backup"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// altered copies a database and changes it.
func altered(t *testing.T, path string, change func(*bbolt.Tx) error) string {
	t.Helper()
	out := evidencetest.Copy(t, path)
	db, err := bbolt.Open(out, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(change); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return out
}

// lost removes the record of a revision.
func lost(main uint64) func(*bbolt.Tx) error {
	return func(tx *bbolt.Tx) error { return tx.Bucket([]byte("key")).Delete(rev(main)) }
}

// TestLostKeyIsDamage: a record that the backup's own revision must hold and that it lacks is damage of the backup,
// whether or not either has compacted what lies around it. What was written after the backup is not.
func TestLostKeyIsDamage(t *testing.T) {
	dir := t.TempDir()
	s := clustertest.Synth{Members: 1, Entries: 60, Keys: 50, Value: 20}
	old, now := filepath.Join(dir, "old.db"), filepath.Join(dir, "now.db")
	s.WriteDB(t, old)
	s.Entries = 80
	s.WriteDB(t, now)
	compacted, compactedNow := evidencetest.Copy(t, old), evidencetest.Copy(t, now)
	compactTo(t, compacted, 58, 50)
	compactTo(t, compactedNow, 58, 50)
	for _, c := range []struct {
		name, backup, source string
		lacks                bool
	}{
		{"sound", old, now, false},
		{"lost above all compactions", altered(t, old, lost(40)), now, true},
		// Key number 38 is written at revision 40 and not again before 80: below the compact revision it is a live key.
		{"lost below the backup's compact revision", altered(t, compacted, lost(40)), now, true},
		{"lost below both compact revisions", altered(t, compacted, lost(40)), compactedNow, true},
		{"sound and compacted", compacted, compactedNow, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, a := against(t, c.backup, c.source)
			got := a.Compared[0]
			if c.lacks != got.BackupLacks {
				t.Fatalf("%+v", got)
			}
			if !c.lacks {
				if outcome(r, "B08") != check.Holds || r.Verdict.Health != check.Healthy || got.RevisionsBehind != 20 {
					t.Errorf("B08 %s, %+v", outcome(r, "B08"), got)
				}
				return
			}
			if r.Verdict.Class != "backup-damaged" || outcome(r, "B08") != check.Violated ||
				strings.Contains(got.Text(), "behind") {
				t.Errorf("%+v: %s", r.Verdict, got.Text())
			}
		})
	}
}

// TestLostKeyWrittenSince: a key that the source has written again since the backup, and has compacted what it held
// then, shows by its create revision that the backup must hold it.
func TestLostKeyWrittenSince(t *testing.T) {
	dir := t.TempDir()
	s := clustertest.Synth{Members: 1, Entries: 60, Keys: 50, Value: 20}
	old, now := filepath.Join(dir, "old.db"), filepath.Join(dir, "now.db")
	s.WriteDB(t, old)
	compactTo(t, old, 58, 50)
	s.Entries = 95
	s.WriteDB(t, now)
	compactTo(t, now, 92, 50)
	restored := altered(t, now, func(tx *bbolt.Tx) error {
		ms := tx.Bucket([]byte("members"))
		k, _ := ms.Cursor().First()
		return errors.Join(ms.Delete(k),
			ms.Put([]byte("77"), []byte(`{"id":119,"peerURLs":["http://10.0.0.9:2380"],"name":"new"}`)))
	})
	bumped := altered(t, now, func(tx *bbolt.Tx) error { return tx.Bucket([]byte("key")).Put(rev(1000), nil) })
	gone := altered(t, old, lost(40)) // what key number 38 held
	for _, c := range []struct {
		name, backup, source string
		class                check.Class
		text                 string
	}{
		{"sound", old, now, check.ClassBackupUnverifiable, "35 revisions behind other1"},
		{"sound, and the revision was raised", old, bumped, check.ClassBackupUnverifiable,
			"939 revisions behind other1 (0 keys missing"},
		{"lost", gone, now, check.ClassBackupDamaged, "it lacks keys that other1 has had since revision 40.0"},
		{"of a cluster that was restored", gone, restored, check.ClassDataDivergence, "of another history than other1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, a := against(t, c.backup, c.source)
			got := a.Compared[0]
			if r.Verdict.Class != c.class || !strings.Contains(got.Text(), c.text) {
				t.Fatalf("%s: %s", r.Verdict.Class, got.Text())
			}
			if damaged := c.class == check.ClassBackupDamaged; damaged != got.BackupLacks || damaged && got.Lost != 1 {
				t.Errorf("lacks %t, %d keys", got.BackupLacks, got.Lost)
			}
		})
	}
}

// TestUndecodableRecordEndsNothing: a record of the source or of the backup that does not decode leaves the comparison
// open, and everything else is said.
func TestUndecodableRecordEndsNothing(t *testing.T) {
	dir := t.TempDir()
	s := clustertest.Synth{Members: 1, Entries: 60, Keys: 50, Value: 20}
	whole := filepath.Join(dir, "whole.db")
	s.WriteDB(t, whole)
	bad := altered(t, whole, func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("key")).Put(rev(30),
			[]byte{0xff, 0xff, 0xff})
	})
	r, a := against(t, whole, bad)
	if c := a.Compared[0]; c.SameHistory != check.NotChecked || !strings.Contains(c.Reason, "1 of other1") ||
		c.Records < 50 {
		t.Errorf("%+v", c)
	}
	if r.Verdict.Class != "backup-unverifiable" || outcome(r, "B08") != check.NotChecked {
		t.Errorf("%+v", r.Verdict)
	}
	r, _ = against(t, bad, whole)
	if r.Verdict.Class != "backup-damaged" {
		t.Errorf("%+v", r.Verdict)
	}
}

// TestSmallBucketsAreCompared: users, roles, leases and members that differ are listed; at one and the same index that
// is another history.
func TestSmallBucketsAreCompared(t *testing.T) {
	path := nodeDB(t, "m-healthy-3.6", "node1")
	changed := altered(t, path, func(tx *bbolt.Tx) error {
		if err := tx.Bucket([]byte("lease")).Put([]byte{0, 0, 0, 0, 0, 0, 0x12, 0x34},
			[]byte{8, 0xb4, 0x24, 16, 60}); err != nil {
			return err
		}
		user := []byte("\x0a\x05extra")
		return tx.Bucket([]byte("authUsers")).Put([]byte("extra"), user)
	})
	r, a := against(t, path, changed)
	c := a.Compared[0]
	if c.SameHistory != check.Holds || !slices.ContainsFunc(c.State,
		func(s backup.StateRow) bool { return s.Bucket == "lease" && s.InBackup == "absent" }) ||
		!slices.ContainsFunc(c.State, func(s backup.StateRow) bool {
			return s.Bucket == "authUsers" &&
				string(s.Key) == "extra"
		}) {
		t.Errorf("%+v", c.State)
	}
	if len(c.Unequal) < 2 || outcome(r, "B08") != check.Violated || r.Verdict.Health == check.Healthy {
		t.Errorf("unequal %+v, B08 %s, %+v", c.Unequal, outcome(r, "B08"), r.Verdict)
	}
	// What came after the backup is listed and no finding.
	r, a = against(t, nodeDB(t, "k-lagging-node", "node3"),
		filepath.Join(evidencetest.Incident(t, "k-lagging-node"), "node1"))
	if len(a.Compared[0].Unequal) > 0 || outcome(r, "B08") != check.Holds {
		t.Errorf("%+v", a.Compared[0].Unequal)
	}
}

// TestAgainstThatFails: the verdict of the backup stands, whatever became of the comparison, also when one of two
// sources is there.
func TestAgainstThatFails(t *testing.T) {
	nowhere := evidence.Spec{Where: filepath.Join(t.TempDir(), "nowhere")}
	unread := filepath.Join(t.TempDir(), "member", "snap", "db")
	if err := errors.Join(os.MkdirAll(filepath.Dir(unread), 0o700),
		os.WriteFile(unread, bytes.Repeat([]byte("noise"), 2000), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, others := range [][]evidence.Spec{{nowhere}, {{Name: "same", Where: good(t)}, nowhere},
		{{Where: "http://127.0.0.1:1"}}, {{Where: filepath.Dir(filepath.Dir(filepath.Dir(unread)))}}} {
		r, err := backup.Verify(context.Background(), evidence.Spec{Where: good(t)},
			backup.Options{Options: compare.Options{Version: "test"}, Against: others})
		if err != nil {
			t.Fatal(err)
		}
		a := r.Backup.Against.(*backup.Against)
		if r.Verdict.Class != "backup-good" || outcome(r, "B08") != check.NotChecked || len(a.Compared) != len(others) {
			t.Errorf("%+v, %+v", r.Verdict, a.Compared)
		}
		if !slices.ContainsFunc(r.Sources, func(s compare.Source) bool { return s.Error != "" }) ||
			len(r.Backup.Layers) == 0 {
			t.Errorf("%+v", r.Sources)
		}
	}
}

// touching is a context that does something whenever it is asked for its error.
type touching struct {
	context.Context //nolint:containedctx // it is one
	touch           func()
}

func (c touching) Err() error {
	c.touch()
	return c.Context.Err()
}

// TestSourceChangedWhileCompared: what a source that is written to meanwhile shows is not kept, neither that it agrees
// nor that it differs. Why another source could not be compared is.
func TestSourceChangedWhileCompared(t *testing.T) {
	equal := written(t, "equal.db", content(t, good(t)))
	differs := filepath.Join(evidencetest.Incident(t, "o-backup-bit-flip"), "backup.db")
	none := filepath.Join(t.TempDir(), "none")
	o := backup.Options{Against: []evidence.Spec{{Name: "equal", Where: equal}, {Name: "differs", Where: differs},
		{Name: "none", Where: none}}}
	at := atomic.Int64{}
	at.Store(1_700_000_000)
	r, err := backup.Verify(touching{t.Context(), func() {
		if err := os.Chtimes(equal, time.Time{}, time.Unix(at.Add(1), 0)); err != nil {
			t.Error(err)
		}
	}}, evidence.Spec{Where: good(t)}, o)
	must(t, err)
	compared := r.Backup.Against.(*backup.Against).Compared
	if r.InputsUnchanged || len(compared) != 3 {
		t.Fatalf("unchanged %t, %+v", r.InputsUnchanged, compared)
	}
	for _, c := range compared {
		changed := strings.HasPrefix(c.Reason, "a source changed while it was read: ")
		if c.SameHistory != check.NotChecked || c.Reason == "" || changed != (c.Source != "none") {
			t.Errorf("%s: %s, %q", c.Source, c.SameHistory, c.Reason)
		}
	}
	if outcome(r, "B08") != check.NotChecked {
		t.Errorf("B08 %s", outcome(r, "B08"))
	}
}
