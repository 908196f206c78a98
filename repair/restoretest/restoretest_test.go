package restoretest_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/backup"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/repair/restoretest"
)

func TestMain(m *testing.M) {
	if handled, code := node.RunHidden(os.Args); handled {
		os.Exit(code)
	}
	evidencetest.Main(m)
}

// hold verifies a backup with a drill; as, if set, is the file that is restored in its place.
func hold(t *testing.T, path, as string, o restoretest.Options) (*compare.Report, *backup.Drill) {
	t.Helper()
	evidencetest.Unchanged(t, path)
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	r, err := backup.Verify(t.Context(), evidence.Spec{Where: path}, backup.Options{
		Drill: func(ctx context.Context, m *evidence.Member, r *compare.Report) (*backup.Drill, error) {
			if as == "" {
				return restoretest.Run(ctx, m, r, o)
			}
			set, err := evidence.Open(ctx, []evidence.Spec{{Where: as, Backup: true}}, evidence.Options{})
			if err != nil {
				return nil, err
			}
			defer func() { _ = set.Close() }()
			claimed := *m
			claimed.Source = set.Members[0].Source
			return restoretest.Run(ctx, &claimed, r, o)
		}})
	if err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(o.Dir)
	if err != nil || len(left) > 0 {
		t.Errorf("scratch is left: %v %v", left, err)
	}
	return r, r.Backup.Drill.(*backup.Drill)
}

func good(t *testing.T) string {
	t.Helper()
	return filepath.Join(evidencetest.Incident(t, "o-backup-good"), "backup.db")
}

func outcome(r *compare.Report) check.Outcome {
	for _, c := range r.Checks {
		if c.ID == "B09" {
			return c.Outcome
		}
	}
	return ""
}

func TestGoodBackupServes(t *testing.T) {
	r, d := hold(t, good(t), "", restoretest.Options{})
	if !d.Started || !d.Equal.Certain() || d.Keys != 130 || d.Revision != 181 || len(d.Differences) > 0 {
		t.Errorf("%+v", d)
	}
	var steps []string
	for _, s := range d.Steps {
		steps = append(steps, s.Step)
		if !s.OK || s.Seconds < 0 {
			t.Errorf("%+v", s)
		}
	}
	want := []string{"restore", "start", "read every key back", "compare HashKV", "compare leases, users, roles",
		"write and read", "stop"}
	if !slices.Equal(steps, want) {
		t.Errorf("steps %q", steps)
	}
	if r.Verdict.Class != "backup-good" || outcome(r) != check.Holds || len(d.Sandbox) == 0 {
		t.Errorf("%s, B09 %s, sandbox %q", r.Verdict.Class, outcome(r), d.Sandbox)
	}
}

// TestBackupsOfOlderLinesServe: databases copied from data dirs of 3.4 to 3.6, with auth, leases, alarms and
// compactions.
func TestBackupsOfOlderLinesServe(t *testing.T) {
	for _, incident := range []string{"gen-healthy-3.4", "m-healthy-3.5", "m-healthy-3.6", "l-compaction-skew"} {
		t.Run(incident, func(t *testing.T) {
			_, d := hold(t, filepath.Join(evidencetest.Incident(t, incident), "node2", "member", "snap", "db"), "",
				restoretest.Options{})
			if !d.Started || !d.Equal.Certain() {
				t.Errorf("%+v", d)
			}
			for _, s := range d.Steps {
				if !s.OK {
					t.Errorf("%+v", s)
				}
			}
		})
	}
}

// TestDifferencesAreSeen restores another file than the one that is held against it: every kind of difference must
// show.
func TestDifferencesAreSeen(t *testing.T) {
	dir := t.TempDir()
	s := clustertest.Synth{Members: 1, Entries: 300, Keys: 100, Value: 5000}
	whole := filepath.Join(dir, "whole.db")
	s.WriteDB(t, whole)
	s.Skip = map[int]map[int]bool{0: {299: true, 298: true}}
	dropped := filepath.Join(s.Write(t, dir)[0], "member", "snap", "db")
	for _, c := range []struct{ name, claimed, restored string }{
		{"writes missing", whole, dropped},
		{"a bit flipped", filepath.Join(evidencetest.Incident(t, "o-backup-good"), "backup.db"),
			filepath.Join(evidencetest.Incident(t, "o-backup-bit-flip"), "backup.db")},
	} {
		for _, marks := range []int64{0, 40} {
			r, d := hold(t, c.claimed, c.restored, restoretest.Options{MaxMarks: marks})
			if c.name == "writes missing" {
				// Its last revision is lower, so the server refuses to read at the backup's.
				if s := d.Steps[len(d.Steps)-1]; s.OK || !strings.Contains(s.Says, "future revision") ||
					d.Equal != release.Unknown {
					t.Errorf("%s: %+v", c.name, d)
				}
			} else if !d.Equal.Excluded() || len(d.Differences) != 2 || d.Keys != 130 {
				t.Errorf("%s, %d marks: %+v", c.name, marks, d)
			}
			if r.Verdict.Class != "backup-damaged" || outcome(r) != check.Violated ||
				r.Verdict.Health == check.Healthy {
				t.Errorf("%s: %s, B09 %s", c.name, r.Verdict.Class, outcome(r))
			}
		}
	}
}

// TestServerThatDoesNotStart: a user that does not decode stops the server, which says so itself.
func TestServerThatDoesNotStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "backup.db")
	clustertest.Synth{Members: 1, Entries: 10, Keys: 5, Value: 20}.WriteDB(t, path)
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		if err := tx.Bucket([]byte("auth")).Put([]byte("authEnabled"), []byte{1}); err != nil {
			return err
		}
		return tx.Bucket([]byte("authUsers")).Put([]byte("root"), []byte{0xff, 0xff, 0xff})
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	r, d := hold(t, path, "", restoretest.Options{})
	if d.Started || len(d.Fatal) == 0 || outcome(r) != check.Violated {
		t.Errorf("%+v, B09 %s", d, outcome(r))
	}
	if s := d.Steps[len(d.Steps)-1]; !s.OK || s.Step != "start on an empty data dir" {
		t.Errorf("not tried on an empty data dir: %+v", d.Steps)
	}
}

// TestNoDrillOfWhatCannotBeRestored: a damaged file, and a line that no server at hand opens, leave the check open.
func TestNoDrillOfWhatCannotBeRestored(t *testing.T) {
	cut := evidencetest.Copy(t, good(t))
	if err := os.Truncate(cut, 20_000); err != nil {
		t.Fatal(err)
	}
	r, d := hold(t, cut, "", restoretest.Options{})
	if d.Started || outcome(r) != check.NotChecked || r.Verdict.Class != "backup-damaged" {
		t.Errorf("%+v, B09 %s, %s", d, outcome(r), r.Verdict.Class)
	}
	newer := filepath.Join(t.TempDir(), "backup.db")
	clustertest.Synth{Members: 1, Entries: 10, Keys: 5, Value: 20}.WriteDB(t, newer)
	db, err := bbolt.Open(newer, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("cluster")).Put([]byte("clusterVersion"), []byte("3.99.0"))
	}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	r, d = hold(t, newer, "", restoretest.Options{})
	if d.Refused == "" || outcome(r) != check.NotChecked || r.Verdict.Health != check.HealthUnknown ||
		r.Verdict.Class != "inconclusive" {
		t.Errorf("%+v, B09 %s, %s", d, outcome(r), r.Verdict.Class)
	}
}

// TestDrillThatCouldNotRunIsNotGood: time that is over, a scratch folder that is missing and a server that is none
// leave the backup inconclusive, never good and never damaged.
func TestDrillThatCouldNotRunIsNotGood(t *testing.T) {
	script := func(says string) string {
		path := filepath.Join(t.TempDir(), "etcd")
		text := "#!/bin/sh\ncase $1 in --version) echo 'etcd Version: 3.5.35';; *) echo '" + says +
			"' >&2; exit 1;; esac\n"
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, o := range map[string]restoretest.Options{
		"no time":             {Timeout: time.Nanosecond},
		"too little time":     {Timeout: 30 * time.Millisecond},
		"no scratch folder":   {Dir: filepath.Join(t.TempDir(), "no", "such", "folder")},
		"server not there":    {EtcdBinary: filepath.Join(t.TempDir(), "nowhere")},
		"server that is none": {EtcdBinary: script("bind: no space left on device")},
		// Nothing in this text blames the machine, but the server ends on an empty data dir too.
		"server that cannot run": {EtcdBinary: script("panic: the moon is full")},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := backup.Verify(t.Context(), evidence.Spec{Where: good(t)}, backup.Options{
				Drill: func(ctx context.Context, m *evidence.Member, r *compare.Report) (*backup.Drill, error) {
					return restoretest.Run(ctx, m, r, o)
				}})
			if err != nil {
				t.Fatal(err)
			}
			d := r.Backup.Drill.(*backup.Drill)
			if d.OK || d.Inconclusive == "" || outcome(r) != check.NotChecked || r.Verdict.Class != "inconclusive" ||
				r.Verdict.Health != check.HealthUnknown {
				t.Errorf("%+v, B09 %s, %+v", d, outcome(r), r.Verdict)
			}
			if d.Refused == "" && !strings.Contains(d.Text(), d.Inconclusive) {
				t.Errorf("text %q", d.Text())
			}
		})
	}
}

// BenchmarkDrill restores, starts, reads back and stops a backup of 500 MB.
func BenchmarkDrill(b *testing.B) {
	path := filepath.Join(b.TempDir(), "backup.db")
	clustertest.Synth{Members: 1, Entries: 380_000, Keys: 100_000, Value: 1100}.WriteDB(b, path)
	st, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(st.Size())
	for b.Loop() {
		r, err := backup.Verify(b.Context(), evidence.Spec{Where: path}, backup.Options{
			Drill: func(ctx context.Context, m *evidence.Member, r *compare.Report) (*backup.Drill, error) {
				return restoretest.Run(ctx, m, r, restoretest.Options{Dir: b.TempDir()})
			}})
		if err != nil {
			b.Fatal(err)
		}
		d := r.Backup.Drill.(*backup.Drill)
		if !d.Equal.Certain() {
			b.Fatalf("%+v", d)
		}
		for _, s := range d.Steps {
			b.ReportMetric(s.Seconds, strings.ReplaceAll(strings.ReplaceAll(s.Step, " ", "-"), ",", "")+"-s")
		}
		b.ReportMetric(d.Seconds, "drill-s")
		b.ReportMetric(float64(st.Size())/1e6, "MB")
	}
}
