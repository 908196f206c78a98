package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/cause"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// diagnosed has the report of each incident that a table of cases begins with.
var diagnosed = map[string]*compare.Report{}

// reported is told for tables: the incident is diagnosed once, and each case changes its own copy of the report. The
// class decides whether it is healthy.
func reported(t *testing.T, incident string, class check.Class, id cause.ID) *compare.Report {
	t.Helper()
	if diagnosed[incident] == nil {
		diagnosed[incident] = told(t, incident, check.ClassHealthy, "")
	}
	r, best := *diagnosed[incident], *diagnosed[incident].Best
	r.Members, r.Sources, r.Findings = slices.Clone(r.Members), slices.Clone(r.Sources), slices.Clone(r.Findings)
	best.Ranking, best.Members = slices.Clone(best.Ranking), slices.Clone(best.Members)
	for i := range r.Members {
		ms := &r.Members[i].Membership
		ms.Voters, ms.Learners = slices.Clone(ms.Voters), slices.Clone(ms.Learners)
		ms.Removed, ms.Members = slices.Clone(ms.Removed), slices.Clone(ms.Members)
	}
	r.Best, r.Verdict.Class = &best, class
	r.Verdict.Health = class.Health()
	if certainty := cause.Proof; id != "" {
		r.Verdict.Cause, r.Verdict.Certainty = &id, &certainty
	}
	return &r
}

// asLearner makes the member of a source a learner, in the configuration of every source.
func asLearner(r *compare.Report, i int) {
	id := r.Members[i].MemberID
	for j := range r.Members {
		ms := &r.Members[j].Membership
		ms.Voters = slices.DeleteFunc(ms.Voters, func(v dumplog.ID) bool { return v == id })
		ms.Learners = append(ms.Learners, id)
	}
}

// brokenDB gives a source a database on which no server starts.
func brokenDB(r *compare.Report, i int) {
	f := &r.Members[i]
	db := *f.DB
	db.Undecodable = 3
	f.DB = &db
	r.Findings = append(r.Findings, check.Finding{ID: "D03-" + f.Name, Check: check.D03, Class: check.ClassDBDamage,
		Severity: check.Error, Members: []string{f.Name}, Title: f.Name + ": rows do not decode"})
}

// found adds a finding of a check about a member by itself.
func found(r *compare.Report, id check.ID, class check.Class, label, title string) {
	r.Findings = append(r.Findings, check.Finding{ID: string(id) + "-1", Check: id, Class: class, Severity: check.Error,
		Members: []string{label}, Title: title})
}

// stepsAbout are the kinds of the steps of a way that are about a member, in order.
func stepsAbout(p *plan.Plan, m plan.Mode, member string) (out []string) {
	for _, s := range p.Way(m).Steps {
		if s.Member == member {
			out = append(out, string(s.Kind))
		}
	}
	return out
}

// hasCaution reports whether one of the cautions contains the text.
func hasCaution(p *plan.Plan, text string) bool {
	return slices.ContainsFunc(p.Cautions, func(s string) bool { return strings.Contains(s, text) })
}

// refusedWith checks that there is no plan, and what the refusal and its hint say.
func refusedWith(t *testing.T, err error, reason, hint string) {
	t.Helper()
	if got := wantRefusal(t, err); !strings.Contains(got.Reason, reason) || !strings.Contains(got.Hint, hint) {
		t.Errorf("refused with %q, hint %q; want %q, hint %q", got.Reason, got.Hint, reason, hint)
	}
}

// wantWholeSteps checks that each step of a plan says all that a person has to know of it.
func wantWholeSteps(t *testing.T, p *plan.Plan) {
	t.Helper()
	for _, w := range p.Ways {
		for _, s := range w.Steps {
			if s.Title == "" || s.Precondition == "" || s.Effect == "" || s.Undo == "" || s.Done == "" ||
				len(s.ByHand) == 0 || s.Member != "" && !strings.Contains(s.Title, s.Member) {
				t.Errorf("%s: step %+v", w.Mode, s)
			}
		}
	}
}
