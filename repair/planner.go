package repair

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
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

// choose picks the member whose content is kept.
func (pl *planner) choose() error {
	if pl.o.Best != "" {
		return pl.chooseByOperator()
	}
	if pl.r.Best == nil {
		return refusedf("name the member whose cluster is kept with --best; the others will join it", "the sources belong to different clusters, and which one is kept is not a question of content: %s", pl.standings(labels(pl.r)))
	}
	var top []string
	for _, m := range pl.r.Best.Members {
		if pl.kinds[m] == evidence.KindDataDir {
			top = append(top, m)
		}
	}
	if len(top) == 0 && len(pl.r.Best.Members) == 0 && slices.ContainsFunc(pl.r.Best.Ranking, func(r compare.Rank) bool { return r.Usable && pl.kinds[r.Member] == evidence.KindDataDir }) {
		return refusedf("name the member whose history is kept with --best; the others are reseeded from it", "which one is kept is %s", pl.r.Best.Why)
	}
	if len(top) == 0 {
		pl.p.Mode, pl.p.Why = Restore, "no data dir is usable as it is"
		return nil
	}
	pl.votersFirst(top)
	if pl.p.Verdict.Cause == causeDifferentBackups {
		all := pl.dataDirs() // who lags by an entry decides nothing here
		return refusedf("name the member whose backup is kept with --best, usually that of the highest revision; see etcd-medic compare "+strings.Join(all, " "),
			"the members were restored from different backups, and only you know which one counts: %s", pl.standings(all))
	}
	if len(top) > 1 && !pl.harmless(top) {
		hint := "name the member to keep with --best; see etcd-medic compare " + strings.Join(top, " ")
		return refusedf(hint, "%s stand equally well, but their contents differ: %s", strings.Join(top, ", "), pl.standings(top))
	}
	pl.setBest(top[0], "content", pl.r.Best.Why)
	pl.p.Best.Equals = top[1:]
	return nil
}

func (pl *planner) chooseByOperator() error {
	label := pl.o.Best
	if pl.kinds[label] != evidence.KindDataDir {
		return refusedf("choose one of the data dirs", "--best %s is no data dir (%s)", label, pl.kinds[label])
	}
	if f := pl.facts(label); f.DB == nil || f.DB.CurrentRevision == nil || f.WAL == nil {
		return refusedf("choose another one, or restore from a backup", "--best %s has no database and log that can be read", label)
	}
	if why := pl.damage(label); why != "" {
		return refusedf("choose another one, or restore from a backup", "--best %s can not serve: %s", label, why)
	}
	pl.setBest(label, "operator", "chosen with --best")
	if r := pl.ranks[label]; r != nil {
		pl.p.Best.Why = "chosen with --best: " + strings.Join(r.Reasons, ", ")
	}
	return nil
}

func (pl *planner) setBest(label, by, why string) {
	f := pl.facts(label)
	pl.best = f
	c := Choice{Name: label, ID: f.MemberID, By: by, Why: why, AppliedIndex: f.AppliedIndex}
	if f.DB != nil && f.DB.CurrentRevision != nil {
		c.Revision = *f.DB.CurrentRevision
	}
	if f.DB != nil && f.DB.CompactRevision != nil {
		c.Compact = *f.DB.CompactRevision
	}
	if f.DB != nil && f.DB.HashKV != nil {
		c.HashKV = f.DB.HashKV.Hash
	}
	if f.Auth != nil {
		c.AuthRevision = f.Auth.Revision
	}
	for i := range pl.r.Findings {
		if fd := &pl.r.Findings[i]; breaks(fd) && len(fd.Members) == 1 && fd.Members[0] == label && fd.Class != "membership" && !slices.Contains(c.Known, fd.Check) {
			c.Known = append(c.Known, fd.Check)
		}
	}
	pl.p.Best = c
}

// breaks tells whether a finding alone makes a diagnosis unhealthy.
func breaks(f *check.Finding) bool { return f.Class != "" && f.Severity.Rank() >= check.Error.Rank() }

// harmless tells whether it makes no difference which of these is kept: none of them lacks or alone holds anything, and their
// databases hold the same.
func (pl *planner) harmless(top []string) bool {
	for _, m := range top {
		r := pl.ranks[m]
		if r == nil || r.Lacks.CommittedEntries > 0 || r.Unique.CommittedEntries > 0 {
			return false
		}
		if pl.differs(pl.facts(top[0]), pl.facts(m)) {
			return false
		}
	}
	return true
}

// differs tells whether two databases at one applied index hold different content by their bucket hashes. Different applied indexes
// prove nothing, so they do not count.
func (pl *planner) differs(a, b *evidence.Facts) bool {
	if a == b || a.DB == nil || b.DB == nil || a.AppliedIndex != b.AppliedIndex {
		return false
	}
	if a.DB.CompactRevision == nil || b.DB.CompactRevision == nil || *a.DB.CompactRevision != *b.DB.CompactRevision {
		return false
	}
	for _, name := range []string{"key", "auth", "authUsers", "authRoles"} {
		x, y := a.DB.Hashes[name], b.DB.Hashes[name]
		if x != "" && y != "" && x != y {
			return true
		}
	}
	return false
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
