package compare_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

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
			if strings.Contains(n.Command.String(), "member remove") {
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
	"wal-corruption":              holding("W01", "W02", "W03"),
	"raft-log-divergence":         holding("R01"),
	"quorum-lost":                 holding("M05"),
	"different-cluster":           holding("M01"),
	"bbolt-corruption":            holding("D01", "D02", "D03", "K04"),
	"auth-divergence":             holding("A01", "A02", "A03", "A04"),
	"kv-divergence":               holding("K01", "K02", "K03"),
	"kv-divergence as corruption": holding("K01", "K02", "K03"),
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
