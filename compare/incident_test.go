package compare_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sort"
	"sync/atomic"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

func TestMain(m *testing.M) { evidencetest.Main(m) }

// causes maps the coarse cause names of truth.json to those of the catalogue; nil means "no cause".
var causes = map[string][]string{
	"":                               nil,
	"lag":                            nil,
	"compaction-unfinished":          nil,
	"auth-revision-divergence":       {"auth-revision-replay", "auth-revision-unequal"},
	"wiped-member-restarted-as-new":  {"wiped-member-rejoined-same-id"},
	"torn-wal-tail":                  {"wal-torn-tail", "wal-torn-tail-not-repaired"},
	"damaged-wal-tail":               {"wal-torn-tail", "wal-torn-tail-not-repaired"},
	"wal-crc-mismatch":               {"wal-crc-mismatch"},
	"wal-segment-missing":            {"wal-segment-missing"},
	"bbolt-page-damage":              {"bbolt-page-damage"},
	"bbolt-truncated":                {"db-truncated"},
	"bbolt-meta-damage":              {"bbolt-meta-damage"},
	"consistent-index-ahead-of-data": {"cindex-ahead-of-apply"},
	"lease-revoke-not-applied":       {"lease-revoke-without-token-mixed-32-33"},
	"raft-snapshot-crc-mismatch":     {"snap-file-damaged"},
	"db-older-than-raft-snapshot":    {"data-dir-rolled-back", "wal-and-db-from-different-times"},
	"restored-as-separate-clusters": {"restore-split-into-single-clusters", "same-token-twin-clusters",
		"foreign-cluster"},
	"v2-v3-membership-mismatch": {"learner-promotion-not-persisted", "zombie-members-v3-bucket",
		"member-update-drops-learner"},
	"quorum-lost-after-member-add": {"quorum-lost-after-member-add"},
	"stuck-learner":                {"stuck-learner"},
	"uncommitted-tail":             nil,
	"silent-kv-divergence":         {"value-bytes-altered", "unexplained-first-divergence"},
	"silent-value-corruption":      {"value-bytes-altered", "unexplained-first-divergence"},
	"backup-hash-mismatch":         {"backup-hash-mismatch"},
	"backup-truncated":             {"backup-truncated", "db-truncated"},
	"backup-without-hash":          {"backup-without-hash", "restored-from-raw-db"},
}

// specsOf names the sources of an extracted incident: one per node, or the backup file.
func specsOf(t *testing.T, dir string) []evidence.Spec {
	t.Helper()
	nodes, err := filepath.Glob(filepath.Join(dir, "node*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(nodes) == 0 {
		return []evidence.Spec{{Name: "backup", Where: filepath.Join(dir, "backup.db")}}
	}
	var out []evidence.Spec
	for _, n := range nodes {
		out = append(out, evidence.Spec{Name: filepath.Base(n), Where: n})
	}
	return out
}

// dirSpecs names data dirs by their last element.
func dirSpecs(dirs []string) []evidence.Spec {
	var specs []evidence.Spec
	for _, d := range dirs {
		specs = append(specs, evidence.Spec{Name: filepath.Base(d), Where: d})
	}
	return specs
}

func diagnose(t *testing.T, specs []evidence.Spec) *compare.Report {
	t.Helper()
	r, err := compare.Diagnose(context.Background(), specs, compare.Options{Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestIncidents holds the diagnosis of every shipped incident against its truth.json, every mark of it.
func TestIncidents(t *testing.T) {
	var places atomic.Int64
	t.Cleanup(func() {
		if places.Load() < 20 && !t.Failed() {
			t.Errorf("only %d places of entries were held against a log", places.Load())
		}
	})
	for _, name := range evidencetest.Incidents(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := evidencetest.Incident(t, name)
			evidencetest.Unchanged(t, dir)
			truth := evidencetest.Truth(t, name)
			specs := specsOf(t, dir)
			r := diagnose(t, specs)
			checkVerdict(t, r, truth)
			for _, want := range truth.MustReport {
				probe, ok := mustReport[want.ID]
				if !ok {
					t.Errorf("must_report %q is not known to this test", want.ID)
					continue
				}
				if why := probe(r, truth, want); why != "" {
					t.Errorf("must_report %s: %s", want.ID, why)
				}
			}
			for _, not := range truth.MustNotReport {
				probe, ok := mustNotReport[not]
				if !ok {
					t.Errorf("must_not_report %q is not known to this test", not)
					continue
				}
				if why := probe(r, truth); why != "" {
					t.Errorf("must_not_report %s: %s", not, why)
				}
			}
			everyFindingHasEvidence(t, r)
			places.Add(int64(everyEntryIsInItsLog(t, specs, r)))
		})
	}
}

func checkVerdict(t *testing.T, r *compare.Report, truth *evidencetest.Expected) {
	t.Helper()
	v := r.Verdict
	if v.Health == check.HealthUnknown || (v.Health == check.Healthy) != truth.Verdict.Healthy ||
		string(v.Class) != truth.Verdict.Class {
		t.Errorf("verdict healthy %v class %q, want %v %q", v.Health, v.Class, truth.Verdict.Healthy,
			truth.Verdict.Class)
	}
	accepted, known := causes[truth.Verdict.Cause]
	switch {
	case !known:
		t.Errorf("cause %q is not known to this test", truth.Verdict.Cause)
	case accepted == nil && v.Cause != nil:
		t.Errorf("cause %q claimed, want none", *v.Cause)
	case accepted != nil && (v.Cause == nil || !slices.Contains(accepted, string(*v.Cause))):
		t.Errorf("cause %v, want one of %v", v.Cause, accepted)
	}
	if truth.Best.Names != nil {
		got, want := slices.Clone(r.Best.Members), slices.Clone([]string(truth.Best.Names))
		sort.Strings(got)
		sort.Strings(want)
		if !slices.Equal(got, want) {
			t.Errorf("best %v, want %v", got, want)
		}
	}
	if !truth.Verdict.Healthy && v.FirstBreak == nil {
		t.Error("no first break")
	}
	if len(r.Next) == 0 {
		t.Error("the report ends without a next step")
	}
}

func everyFindingHasEvidence(t *testing.T, r *compare.Report) {
	t.Helper()
	ids := map[string]bool{}
	for _, f := range r.Findings {
		if len(f.Evidence) == 0 {
			t.Errorf("%s (%s) has no evidence", f.ID, f.Title)
		}
		if ids[f.ID] {
			t.Errorf("finding ID %s twice", f.ID)
		}
		ids[f.ID] = true
	}
	for _, c := range r.Causes {
		for _, id := range c.Because {
			if !ids[id] {
				t.Errorf("cause %s rests on %s, which is no finding", c.ID, id)
			}
		}
		if len(c.Because) == 0 || c.RefutedBy == "" {
			t.Errorf("cause %s names no findings or nothing that would refute it", c.ID)
		}
	}
}

// findings returns the findings of the checks that name the member ("" for any).
func findings(r *compare.Report, member string, checks ...string) []check.Finding {
	var out []check.Finding
	for _, f := range r.Findings {
		if slices.Contains(checks, string(f.Check)) && (member == "" || slices.Contains(f.Members, member)) {
			out = append(out, f)
		}
	}
	return out
}

func outcome(r *compare.Report, id string) check.Outcome {
	for _, c := range r.Checks {
		if string(c.ID) == id {
			return c.Outcome
		}
	}
	return check.NotChecked
}

func text(f check.Finding) string {
	return fmt.Sprintf("%s %s %+v", f.Title, f.Explanation, f.Evidence)
}
