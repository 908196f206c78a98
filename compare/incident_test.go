package compare_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
	"restored-as-separate-clusters":  {"restore-split-into-single-clusters", "same-token-twin-clusters", "foreign-cluster"},
	"v2-v3-membership-mismatch":      {"learner-promotion-not-persisted", "zombie-members-v3-bucket", "member-update-drops-learner"},
	"quorum-lost-after-member-add":   {"quorum-lost-after-member-add"},
	"stuck-learner":                  {"stuck-learner"},
	"uncommitted-tail":               nil,
	"silent-kv-divergence":           {"value-bytes-altered", "unexplained-first-divergence"},
	"silent-value-corruption":        {"value-bytes-altered", "unexplained-first-divergence"},
	"backup-hash-mismatch":           {"backup-hash-mismatch"},
	"backup-truncated":               {"backup-truncated", "db-truncated"},
	"backup-without-hash":            {"backup-without-hash", "restored-from-raw-db"},
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
	for _, name := range evidencetest.Incidents(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := evidencetest.Incident(t, name)
			evidencetest.Unchanged(t, dir)
			truth := evidencetest.Truth(t, name)
			r := diagnose(t, specsOf(t, dir))
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
		})
	}
}

func checkVerdict(t *testing.T, r *compare.Report, truth *evidencetest.Expected) {
	t.Helper()
	v := r.Verdict
	if v.Healthy == nil || *v.Healthy != truth.Verdict.Healthy || v.Class != truth.Verdict.Class {
		t.Errorf("verdict healthy %v class %q, want %v %q", v.Healthy, v.Class, truth.Verdict.Healthy, truth.Verdict.Class)
	}
	accepted, known := causes[truth.Verdict.Cause]
	switch {
	case !known:
		t.Errorf("cause %q is not known to this test", truth.Verdict.Cause)
	case accepted == nil && v.Cause != nil:
		t.Errorf("cause %q claimed, want none", *v.Cause)
	case accepted != nil && (v.Cause == nil || !slices.Contains(accepted, *v.Cause)):
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
		if slices.Contains(checks, f.Check) && (member == "" || slices.Contains(f.Members, member)) {
			out = append(out, f)
		}
	}
	return out
}

func outcome(r *compare.Report, id string) check.Outcome {
	for _, c := range r.Checks {
		if c.ID == id {
			return c.Outcome
		}
	}
	return check.NotChecked
}

func text(f check.Finding) string {
	return fmt.Sprintf("%s %s %+v", f.Title, f.Explanation, f.Evidence)
}

type probe func(r *compare.Report, truth *evidencetest.Expected, want evidencetest.MustReport) string

// present is a probe for "a finding of these checks about the named node".
func present(checks ...string) probe {
	return func(r *compare.Report, _ *evidencetest.Expected, want evidencetest.MustReport) string {
		fs := findings(r, want.Node, checks...)
		if len(fs) == 0 {
			return fmt.Sprintf("no finding of %v about %q", checks, want.Node)
		}
		if want.Severity == "info" && fs[0].Severity.Rank() > check.Warning.Rank() {
			return fmt.Sprintf("severity %s for what is no error", fs[0].Severity)
		}
		return ""
	}
}

// raw returns the must_report item with all its fields.
func raw(truth *evidencetest.Expected, id string) map[string]any {
	for _, x := range truth.Raw["must_report"].([]any) {
		if m := x.(map[string]any); m["id"] == id {
			return m
		}
	}
	return nil
}

// says wants every given field of the must_report item to stand in the text of the findings.
func says(fields []string, checks ...string) probe {
	return func(r *compare.Report, truth *evidencetest.Expected, want evidencetest.MustReport) string {
		fs := findings(r, want.Node, checks...)
		if len(fs) == 0 {
			return fmt.Sprintf("no finding of %v about %q", checks, want.Node)
		}
		var all string
		for _, f := range fs {
			all += text(f)
		}
		for _, field := range fields {
			if v := fmt.Sprint(raw(truth, want.ID)[field]); !strings.Contains(all, v) {
				return fmt.Sprintf("%s %q is not in %s", field, v, all)
			}
		}
		return ""
	}
}

func perNode(checkID string) probe {
	return func(r *compare.Report, truth *evidencetest.Expected, want evidencetest.MustReport) string {
		got := map[string]string{}
		for _, f := range findings(r, "", checkID) {
			for _, e := range f.Evidence {
				got[e.Member] = e.Observed
			}
		}
		expect := map[string]string{}
		for n, v := range raw(truth, want.ID)["nodes"].(map[string]any) {
			expect[n] = fmt.Sprint(v)
		}
		return cmp.Diff(expect, got)
	}
}

var mustReport = map[string]probe{
	"auth-revision-differs": perNode("A01"),
	"revision-differs":      perNode("K02"),
	"kv-divergence": func(r *compare.Report, truth *evidencetest.Expected, want evidencetest.MustReport) string {
		item := raw(truth, want.ID)
		if item["key"] == nil {
			return present("K01")(r, truth, want)
		}
		return says([]string{"revision"}, "K03", "K01")(r, truth, want)
	},
	"cause": func(r *compare.Report, _ *evidencetest.Expected, _ evidencetest.MustReport) string {
		if len(r.Causes) == 0 || r.Verdict.FirstBreak.Check != "A01" {
			return "the auth revision is not the first broken invariant"
		}
		return ""
	},
	"wiped-member":          present("M04"),
	"torn-wal-tail":         says([]string{"segment", "offset"}, "W02"),
	"db-ahead-of-wal":       present("D04"),
	"bbolt-page-damage":     says([]string{"page"}, "D02"),
	"lag":                   present("R02"),
	"quorum-lost":           says([]string{"voters", "needed"}, "M05"),
	"unstarted-member":      says([]string{"member", "url"}, "M05"),
	"compaction-unfinished": present("K05"),
	"db-size-differs":       present("K05"),
	"alarm-nospace":         present("M06"),
	"backup-hash-mismatch":  present("B01"),
	"entries-lost-on-node": func(r *compare.Report, truth *evidencetest.Expected, want evidencetest.MustReport) string {
		for _, f := range findings(r, want.Node, "W02") {
			if first := raw(truth, want.ID)["indexes"].([]any)[0]; fmt.Sprint(f.At.Index) == fmt.Sprint(first) {
				return ""
			}
		}
		return "the lost index is not named"
	},
	"advice": func(r *compare.Report, truth *evidencetest.Expected, _ evidencetest.MustReport) string {
		for _, n := range r.Next {
			if strings.Contains(n.Command, "member remove") {
				return ""
			}
		}
		return "no next step removes the member"
	},
	"no-error": func(r *compare.Report, _ *evidencetest.Expected, _ evidencetest.MustReport) string {
		for _, f := range r.Findings {
			if f.Severity.Rank() >= check.Error.Rank() {
				return f.ID + ": " + f.Title
			}
		}
		return ""
	},
	"backup-ok": func(r *compare.Report, _ *evidencetest.Expected, _ evidencetest.MustReport) string {
		if r.Backup == nil || r.Backup.Trailer != "match" {
			return "the trailer is not reported as matching"
		}
		return ""
	},
}

// holding wants the named checks not to be violated.
func holding(checks ...string) func(*compare.Report, *evidencetest.Expected) string {
	return func(r *compare.Report, _ *evidencetest.Expected) string {
		for _, id := range checks {
			if outcome(r, id) == check.Violated {
				return id + " is violated"
			}
		}
		return ""
	}
}

// onlyBad wants no finding of an error to name a node other than the bad one alone.
func onlyBad(r *compare.Report, truth *evidencetest.Expected) string {
	for _, f := range r.Findings {
		if f.Severity.Rank() >= check.Error.Rank() && !slices.Equal(f.Members, []string{truth.Verdict.BadNode}) {
			return fmt.Sprintf("%s blames %v", f.ID, f.Members)
		}
	}
	return ""
}

func noLag(r *compare.Report, _ *evidencetest.Expected) string {
	if r.Verdict.Class == "lagging" || len(findings(r, "", "R02")) > 0 {
		return "lag is reported"
	}
	return ""
}

var mustNotReport = map[string]func(*compare.Report, *evidencetest.Expected) string{
	"wal-corruption":                               holding("W01", "W02", "W03"),
	"raft-log-divergence":                          holding("R01"),
	"different-cluster":                            holding("M01"),
	"bbolt-corruption":                             holding("D01", "D02", "D03", "K04"),
	"auth-divergence":                              holding("A01", "A02", "A03", "A04"),
	"kv-divergence":                                holding("K01", "K02", "K03"),
	"kv-divergence as corruption":                  holding("K01", "K02", "K03"),
	"missing revisions below the compact revision": holding("K03", "K04"),
	"lagging node (indexes are equal)":             noLag,
	"lag":                                          noLag,
	"simple lag (healthy)":                         noLag,
	"damage on the other nodes":                    onlyBad,
	"damage on other nodes":                        onlyBad,
	"truncated":                                    holding("D02"),
	"hash mismatch":                                holding("B01"),
	"missing hash": func(r *compare.Report, _ *evidencetest.Expected) string {
		if r.Backup == nil || r.Backup.Trailer == "absent" {
			return "the trailer is reported absent"
		}
		return ""
	},
}
