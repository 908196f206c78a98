package compare_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// TestTooLittleMemory: where the keys do not fit into memory for a replay, nothing is called healthy, no member is
// preferred that another one may be right against, and no loss is excluded. What other checks find stays.
func TestTooLittleMemory(t *testing.T) {
	differ := 0
	for _, name := range evidencetest.Incidents(t) {
		dir := evidencetest.Incident(t, name)
		specs := specsOf(t, dir)
		full, err := compare.Diagnose(t.Context(), specs, compare.Options{NoDigests: true})
		if err != nil {
			t.Fatal(err)
		}
		little, err := compare.Diagnose(t.Context(), specs, compare.Options{NoDigests: true, ReplayBytes: 1})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(little.Checks, func(c compare.CheckOutcome) bool {
			return strings.Contains(c.Reason, "--max-memory")
		}) {
			continue // there was nothing to replay
		}
		v := little.Verdict
		if v.Health == check.Healthy || full.Verdict.Health == check.Healthy && v.Health != check.HealthUnknown {
			t.Errorf("%s: %s (%s), in full %s", name, v.Class, v.Summary, full.Verdict.Class)
		}
		if !slices.ContainsFunc(little.Next, func(n compare.Next) bool { return strings.Contains(n.Text, "--max-memory") }) {
			t.Errorf("%s: no step says that it needs more memory: %+v", name, little.Next)
		}
		if b := little.Best; b != nil && v.Class == check.ClassDataDivergence {
			if differ++; len(b.Members) > 0 || !strings.Contains(b.Why, "--max-memory") {
				t.Errorf("%s: best %s: %s", name, b.Members, b.Why)
			}
			kept, err := compare.Diagnose(t.Context(), specs, compare.Options{NoDigests: true, ReplayBytes: 1,
				Keep: filepath.Base(specs[0].Where)})
			if err != nil {
				t.Fatal(err)
			}
			if l := kept.Best.Lost; l.None() && len(l.Unproven) == 0 {
				t.Errorf("%s: keeping %s is said to lose nothing", name, specs[0].Where)
			}
		}
		for _, f := range little.Findings {
			if f.Severity.Rank() >= check.Error.Rank() && full.Verdict.Health == check.Healthy {
				t.Errorf("%s: %s %s", name, f.Check, f.Title)
			}
		}
	}
	if differ == 0 {
		t.Error("no set whose members differ")
	}
}

// TestHistoryWithoutReplay: entries that name a key are listed also where no database shows how they ended.
func TestHistoryWithoutReplay(t *testing.T) {
	dir := filepath.Join(evidencetest.Incident(t, "m-healthy-3.5"), "node1")
	evidencetest.Unchanged(t, dir)
	wal := filepath.Join(t.TempDir(), "member", "wal")
	if err := os.CopyFS(wal, os.DirFS(filepath.Join(dir, "member", "wal"))); err != nil {
		t.Fatal(err)
	}
	key := []byte("/svc/bulk/2")
	full, err := compare.History(t.Context(), key, specFor("node1", dir), compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(full.Entries) == 0 {
		t.Fatal("no entry names the key")
	}
	for why, get := range map[string]func() (*compare.KeyHistory, error){
		"--max-memory": func() (*compare.KeyHistory, error) {
			return compare.History(t.Context(), key, specFor("node1", dir), compare.Options{ReplayBytes: 1})
		},
		"no database that opens": func() (*compare.KeyHistory, error) {
			return compare.History(t.Context(), key, specFor("node1", filepath.Dir(filepath.Dir(wal))),
				compare.Options{})
		},
	} {
		h, err := get()
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(h.Note, why) {
			t.Errorf("%s: note %q", why, h.Note)
		}
		if len(h.Entries) != len(full.Entries) {
			t.Fatalf("%s: %d entries of %d", why, len(h.Entries), len(full.Entries))
		}
		for i, e := range h.Entries {
			if e.Index != full.Entries[i].Index || e.Outcomes["node1"] != "unknown" {
				t.Errorf("%s: entry %d ended %q", why, e.Index, e.Outcomes["node1"])
			}
		}
	}
}

func specFor(name, where string) []evidence.Spec { return []evidence.Spec{{Name: name, Where: where}} }

// TestHistoryOfPartOfTheLog: what of the log is not at hand is said: all of it, its begin, its end, or a gap.
func TestHistoryOfPartOfTheLog(t *testing.T) {
	healthy := filepath.Join(evidencetest.Incident(t, "m-healthy-3.5"), "node1")
	cut := evidencetest.Copy(t, healthy)
	segments, err := filepath.Glob(filepath.Join(cut, "member", "wal", "*.wal"))
	if err != nil || len(segments) != 1 {
		t.Fatal(segments, err)
	}
	if err := os.Truncate(segments[0], 400_000); err != nil {
		t.Fatal(err)
	}
	for where, want := range map[string]string{
		filepath.Join(healthy, "member", "snap", "db"): "no log was read: which entries named the key is not known",
		healthy: "",
		cut:     "the logs end at entry 314, and node1 has applied up to 336",
		filepath.Join(evidencetest.Incident(t, "s-auth-off-on-one-member"), "node1"): "the logs begin at entry 1956",
	} {
		h, err := compare.History(t.Context(), []byte("/nokey"), specFor("node1", where), compare.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if h.Note != want || (h.LogLast == 0) != strings.HasPrefix(want, "no log") {
			t.Errorf("%s: %q, log %d to %d; want %q", where, h.Note, h.LogFirst, h.LogLast, want)
		}
	}
}

// TestComparedWithADamagedMember: a key of which damage may hide the newest record neither differs nor is missing. One
// that differs above all damage, or between the others, does.
func TestComparedWithADamagedMember(t *testing.T) {
	cut := func(incident string, size int64) (rest, damaged string) {
		dir := evidencetest.Incident(t, incident)
		damaged = evidencetest.Copy(t, filepath.Join(dir, "node1"))
		if err := os.Truncate(filepath.Join(damaged, "member", "snap", "db"), size); err != nil {
			t.Fatal(err)
		}
		return dir, damaged
	}
	healthy, ofHealthy := cut("m-healthy-3.5", 300_000)
	altered, ofAltered := cut("n-silent-kv-divergence", 30_000)
	for _, c := range []struct {
		sources []string
		differ  int
	}{
		{[]string{ofHealthy, filepath.Join(healthy, "node2")}, 0},
		{[]string{filepath.Join(healthy, "node2"), ofHealthy, filepath.Join(healthy, "node4")}, 0},
		{[]string{ofAltered, filepath.Join(altered, "node2"), filepath.Join(altered, "node3")}, 1},
	} {
		var specs []evidence.Spec
		for i, where := range c.sources {
			specs = append(specs, specFor(fmt.Sprint("n", i), where)...)
		}
		r, err := compare.Compare(t.Context(), specs, compare.Options{})
		if err != nil {
			t.Fatal(err)
		}
		b := r.Buckets[0]
		if b.Bucket != "key" || b.Reason == "" || b.Differ != c.differ || len(b.Only) > 0 {
			t.Errorf("%s: %v (%s), %d differ, only %v", c.sources[0], b.Equal, b.Reason, b.Differ, b.Only)
		}
	}
}
