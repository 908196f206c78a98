package compare_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/compare/replay"
)

// TestConfirmationAgainstDiagnosis: a second opinion that says the same changes nothing; one that does not is a
// finding, and no set is called healthy over it.
func TestConfirmationAgainstDiagnosis(t *testing.T) {
	healthy := func() compare.Report {
		return compare.Report{Verdict: compare.Verdict{Health: check.Healthy, Class: "healthy", Summary: "nothing"}}
	}
	accused := func() compare.Report {
		return compare.Report{Verdict: compare.Verdict{Health: check.Unhealthy, Class: "data-divergence",
			Summary: "n2"},
			Findings: []check.Finding{{ID: "K03-1", Check: "K03", Severity: check.Error, Members: []string{"n2"}},
				{ID: "W02-1", Severity: check.Warning, Members: []string{"n1"}}}}
	}
	one := func(name string, s compare.ConfirmStatus, replay string) compare.ConfirmedMember {
		return compare.ConfirmedMember{Member: name, Status: s, Replay: replay, Index: 9,
			Differences: []compare.ConfirmDifference{{Bucket: "lease", Key: check.Bytes("7"), Observed: "no row",
				Expected: "TTL 60 s"}}}
	}
	for name, c := range map[string]struct {
		report  compare.Report
		members []compare.ConfirmedMember
		outcome check.Outcome
		class   string
		about   string
		base    string
	}{
		"healthy and confirmed": {healthy(),
			[]compare.ConfirmedMember{one("n1", compare.Confirmed, compare.ReplayAgrees)}, check.Holds, "healthy", "",
			"new-cluster"},
		"healthy and refuted": {healthy(),
			[]compare.ConfirmedMember{one("n1", compare.Refuted, compare.ReplayAgrees)}, check.Violated, "inconclusive",
			"n1", "new-cluster"},
		"healthy, not replayed": {healthy(), []compare.ConfirmedMember{one("n1", compare.Refuted, "")},
			check.Violated, "inconclusive", "n1", "new-cluster"},
		"healthy and not possible": {healthy(), []compare.ConfirmedMember{one("n1", compare.NotPossible, "")},
			check.NotChecked, "healthy", "", "new-cluster"},
		"accused and refuted": {accused(),
			[]compare.ConfirmedMember{one("n2", compare.Refuted, compare.ReplayAgrees)}, check.Holds, "data-divergence",
			"", "new-cluster"},
		"replay and server refute": {accused(),
			[]compare.ConfirmedMember{one("n3", compare.Refuted, compare.ReplayDiffers)}, check.Holds,
			"data-divergence", "", "new-cluster"},
		"a warning accuses no one": {accused(),
			[]compare.ConfirmedMember{one("n1", compare.Refuted, compare.ReplayAgrees)}, check.Violated,
			"data-divergence", "n1", "new-cluster"},
		"the replay differs alone": {accused(),
			[]compare.ConfirmedMember{one("n2", compare.Confirmed, compare.ReplayDiffers)}, check.Violated,
			"data-divergence", "n2", "new-cluster"},
		"a base that may be wrong": {accused(),
			[]compare.ConfirmedMember{one("n2", compare.Confirmed, compare.ReplayDiffers)}, check.Holds,
			"data-divergence", "", "backup"},
		"accused for something else": {accused(),
			[]compare.ConfirmedMember{one("n2", compare.Confirmed, compare.ReplayAgrees)}, check.Holds,
			"data-divergence", "", "new-cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			r := c.report
			r.AddConfirmation(&compare.Confirmation{Server: "3.6.16", Base: &compare.ConfirmBase{Kind: c.base},
				Members: c.members})
			out := r.Checks[len(r.Checks)-1]
			if out.ID != "X10" || out.Outcome != c.outcome || out.Outcome == check.NotChecked && out.Reason == "" ||
				string(r.Verdict.Class) != c.class {
				t.Errorf("%+v %+v", out, r.Verdict)
			}
			i := slices.IndexFunc(r.Findings, func(f check.Finding) bool { return f.Check == "X10" })
			if (i >= 0) != (c.about != "") {
				t.Fatalf("%+v", r.Findings)
			}
			if i < 0 {
				return
			}
			f := r.Findings[i]
			if !slices.Equal(f.Members, []string{c.about}) || f.Severity != check.Warning || len(f.Evidence) != 1 ||
				f.Explanation == "" || !strings.Contains(r.Verdict.Summary, f.Title) {
				t.Errorf("%+v %q", f, r.Verdict.Summary)
			}
			if c.class == "inconclusive" && (r.Verdict.Health != check.HealthUnknown || len(r.Next) == 0 ||
				f.Evidence[0].Bucket != "lease") {
				t.Errorf("%+v %+v", r.Verdict, r.Next)
			}
		})
	}
}

// TestConfirmIsAsked: the second opinion sees the opened sources and the replay, its error is that of the diagnosis,
// and without it no check of it is in a report.
func TestConfirmIsAsked(t *testing.T) {
	dir := evidencetest.Incident(t, "k-lagging-node")
	seen := 0
	o := compare.Options{NoDigests: true, Confirm: func(_ context.Context, ms []*evidence.Member,
		rp *replay.Result) (*compare.Confirmation, error) {
		seen = len(ms)
		if rp == nil || len(rp.Members) != len(ms) || !ms[0].HasDB() {
			t.Errorf("%v", rp)
		}
		return &compare.Confirmation{Reason: "a test"}, nil
	}}
	r, err := compare.Diagnose(t.Context(), []evidence.Spec{{Where: dir}}, o)
	if err != nil || seen != 3 || r.Confirm == nil || r.Confirm.Text() != "not possible: a test" {
		t.Errorf("%v, %d sources, %+v", err, seen, r.Confirm)
	}
	stop := errors.New("stop")
	o.Confirm = func(context.Context, []*evidence.Member, *replay.Result) (*compare.Confirmation, error) {
		return nil, stop
	}
	if _, err := compare.Diagnose(t.Context(), []evidence.Spec{{Where: dir}}, o); !errors.Is(err, stop) {
		t.Errorf("%v", err)
	}
	r, err = compare.Diagnose(t.Context(), []evidence.Spec{{Where: dir}}, compare.Options{NoDigests: true})
	if err != nil || r.Confirm != nil || slices.ContainsFunc(r.Checks,
		func(c compare.CheckOutcome) bool { return c.ID == "X10" }) {
		t.Errorf("%v %+v", err, r.Confirm)
	}
	c := compare.Confirmation{Members: []compare.ConfirmedMember{{Member: "a", Status: compare.Confirmed},
		{Member: "b", Status: compare.NotPossible}, {Member: "c", Status: compare.Confirmed}}}
	if got := c.Text(); got != "confirmed: a, c; not possible: b" {
		t.Error(got)
	}
}
