package repair

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
)

// PlanOptions are the choices that belong to the operator.
type PlanOptions struct {
	// Compare are the options of the diagnosis behind the plan.
	Compare compare.Options
	// Best is the member to keep, by label, server name or ID; "" lets content decide.
	Best string
	// Gone are members whose data dirs are lost for good.
	Gone []string
	// Replace are members to reseed although nothing is wrong with them.
	Replace []string
}

// planner carries what the parts of a plan need to know.
type planner struct {
	p     *Plan
	o     PlanOptions
	r     *compare.Report
	best  *evidence.Facts
	ranks map[string]*compare.Rank
	kinds map[string]evidence.Kind
	// ref are the facts that tell raft's newest configuration.
	ref *evidence.Facts
	// dead are the voters that never started, by ID.
	dead map[string]bool
	// used are the sources that a member of the configuration has.
	used map[string]bool
}

// NewPlan diagnoses the sources and plans the repair. A *RefusedError says why there is no plan: nothing to repair, not enough
// evidence, or a choice that only the operator can make.
func NewPlan(ctx context.Context, specs []evidence.Spec, o PlanOptions) (*Plan, error) {
	r, err := diagnoseFor(ctx, specs, &o)
	if err != nil {
		return nil, err
	}
	return PlanFrom(r, specs, o)
}

// diagnoseFor diagnoses, and once more when the operator's choice is another than the report's: what is lost depends on it.
func diagnoseFor(ctx context.Context, specs []evidence.Spec, o *PlanOptions) (*compare.Report, error) {
	r, err := compare.Diagnose(ctx, specs, o.Compare)
	if err != nil || o.Best == "" {
		return r, err
	}
	label := labelOf(r, o.Best)
	if label == "" {
		return nil, refusedf("the sources are "+strings.Join(labels(r), ", "), "--best %s is none of the sources", o.Best)
	}
	if o.Best = label; r.Best == nil || len(r.Best.Members) > 0 && r.Best.Members[0] == label {
		return r, nil
	}
	c := o.Compare
	c.Keep = label
	return compare.Diagnose(ctx, specs, c)
}

func labels(r *compare.Report) []string {
	var out []string
	for i := range r.Members {
		out = append(out, r.Members[i].Name)
	}
	return out
}

// labelOf finds a source by label, server name or ID; "" when it is none or not one.
func labelOf(r *compare.Report, name string) string {
	found := ""
	for i := range r.Members {
		f := &r.Members[i]
		if f.Name == name {
			return name
		}
		if f.NodeName == name || f.MemberID != 0 && f.MemberID.String() == name {
			if found != "" {
				return ""
			}
			found = f.Name
		}
	}
	return found
}

// PlanFrom plans the repair for a report that Diagnose made of these sources.
func PlanFrom(r *compare.Report, specs []evidence.Spec, o PlanOptions) (*Plan, error) {
	pl := newPlanner(r, specs, o)
	if err := pl.refuse(); err != nil {
		return nil, err
	}
	if err := pl.choose(); err != nil {
		return nil, err
	}
	if pl.p.Mode == Restore {
		pl.restore()
		return pl.p, pl.p.seal()
	}
	pl.cluster()
	if err := pl.members(); err != nil {
		return nil, err
	}
	if err := pl.needed(); err != nil {
		return nil, err
	}
	pl.lost()
	if err := pl.mode(); err != nil {
		return nil, err
	}
	pl.cautions()
	pl.ways()
	return pl.p, pl.p.seal()
}

func newPlanner(r *compare.Report, specs []evidence.Spec, o PlanOptions) *planner {
	p := &Plan{SchemaVersion: SchemaVersion, Tool: r.Tool, Sources: []Source{}, Members: []Member{}, Cautions: []string{}, Ways: []Way{},
		Verdict: Verdict{Class: r.Verdict.Class, Summary: r.Verdict.Summary}}
	if r.Verdict.Cause != nil {
		p.Verdict.Cause, p.Verdict.Certainty = *r.Verdict.Cause, *r.Verdict.Certainty
	}
	for _, s := range specs {
		p.Inputs = append(p.Inputs, Input{Name: s.Name, Where: s.Where, WALDir: s.WALDir})
	}
	pl := &planner{p: p, o: o, r: r, ranks: map[string]*compare.Rank{}, kinds: map[string]evidence.Kind{}, dead: map[string]bool{}, used: map[string]bool{}}
	for _, s := range r.Sources {
		p.Sources = append(p.Sources, Source{Name: s.Name, Kind: s.Kind, Files: s.Files, Bytes: s.Bytes, SHA256: s.SHA256})
		pl.kinds[s.Name] = s.Kind
	}
	if r.Best != nil {
		for i := range r.Best.Ranking {
			pl.ranks[r.Best.Ranking[i].Member] = &r.Best.Ranking[i]
		}
	}
	for i := range r.Findings {
		if f := &r.Findings[i]; f.Check == "M05" {
			for _, e := range f.Evidence {
				pl.dead[string(e.Key)] = true
			}
		}
	}
	return pl
}

// refuse says no where a plan would make things worse or rest on nothing.
func (pl *planner) refuse() error {
	v := &pl.r.Verdict
	for _, s := range pl.r.Sources {
		if s.Error != "" {
			return refusedf("bring it into a readable state, or leave it out", "source %s can not be read: %s", s.Name, s.Error)
		}
	}
	if !pl.r.InputsUnchanged {
		return refusedf("stop the member, copy its data dir, and plan again on the copy", "a source changed while it was read")
	}
	if !pl.hasKind(evidence.KindDataDir) {
		return refusedf("give the data dirs of the members; for backups see etcd-medic help sources", "none of the sources is a data dir")
	}
	if v.Healthy == nil && pl.o.Best == "" {
		return refusedf("bring what is missing; or name the member to keep with --best, for a plan that can only be rehearsed", "the evidence does not suffice: %s", v.Summary)
	}
	return nil
}

func (pl *planner) hasKind(k evidence.Kind) bool {
	return slices.ContainsFunc(pl.r.Sources, func(s compare.Source) bool { return s.Kind == k })
}

// needed refuses plans that would do nothing, and says what to do instead.
func (pl *planner) needed() error {
	for i := range pl.p.Members {
		if a := pl.p.Members[i].Action; a != Best && a != Keep {
			return nil
		}
	}
	if healthy := pl.r.Verdict.Healthy; healthy == nil || !*healthy {
		if len(pl.p.Cluster.Alarms) > 0 || drifted(pl.p.Verdict.Cause) || pl.p.Verdict.Class == "torn-copy" {
			return nil
		}
	}
	hint := "nothing to do; etcd-medic repair plan --replace NAME plans a reseed all the same"
	switch pl.p.Verdict.Class {
	case "lagging":
		hint = "start the lagging member: it catches up on its own, and a reseed would only cost time"
	case "uncommitted-tail":
		hint = "start all members: raft replaces what was not committed"
	case "compaction-skew":
		hint = "start all members: the compaction is finished by the server"
	}
	if len(pl.r.Next) > 0 && hint == "" {
		hint = pl.r.Next[0].Text
	}
	return refusedf(hint, "nothing to repair: %s (%s)", pl.p.Verdict.Class, pl.p.Verdict.Summary)
}

func (pl *planner) facts(label string) *evidence.Facts {
	for i := range pl.r.Members {
		if pl.r.Members[i].Name == label {
			return &pl.r.Members[i]
		}
	}
	return &evidence.Facts{}
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
