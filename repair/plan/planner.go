package plan

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/refusal"
)

// Options are the choices that belong to the operator.
type Options struct {
	// Compare are the options of the diagnosis that the plan is based on.
	Compare compare.Options
	// Best is the member to keep, by label, server name or ID; "" lets content decide.
	Best string
	// Gone are members whose data dirs are lost for good.
	Gone []string
	// Replace are members to reseed although no problem was found in them.
	Replace []string
	// mends, rebuilt and records are the results of trials.
	mends   []Mend
	rebuilt *Rebuilt
	records *recordsTrial
	// Standby are new members that take the places of those that are replaced.
	Standby []Standby
}

// planner makes a plan: it chooses who is kept, and has the others work out the rest.
type planner struct {
	*procedures
	losses losses
}

// New diagnoses the sources and plans the repair. A *refusal.Error says why there is no plan: nothing to repair, not
// enough evidence, or a choice that only the operator can make. Repairs of damaged data dirs are tried in scratch; nil
// tries none.
func New(ctx context.Context, specs []evidence.Spec, scratch Scratch, o Options) (*Plan, error) {
	r, err := diagnoseFor(ctx, specs, &o)
	if err != nil {
		return nil, err
	}
	if o.mends, err = tryMends(ctx, r, specs, scratch, &o); err != nil {
		return nil, err
	}
	if o.records, err = tryRecords(ctx, r, specs, scratch, &o); err != nil {
		return nil, err
	}
	if o.rebuilt, err = tryRebuild(ctx, r, specs, scratch, &o); err != nil {
		return nil, err
	}
	return From(r, specs, o)
}

// diagnoseFor diagnoses, and again if the operator's choice differs from the report's: the losses depend on it.
func diagnoseFor(ctx context.Context, specs []evidence.Spec, o *Options) (*compare.Report, error) {
	r, err := compare.Diagnose(ctx, specs, o.Compare)
	if err != nil || o.Best == "" {
		return r, err
	}
	label := labelOf(r, o.Best)
	if label == "" {
		return nil, refusal.New("the sources are "+strings.Join(labels(r), ", "), "--best %s is not one of the sources",
			o.Best)
	}
	if o.Best = label; r.Best != nil && len(r.Best.Members) > 0 && r.Best.Members[0] == label {
		return r, nil
	}
	c := o.Compare
	c.Keep = label
	if r.Best == nil {
		return r, rankCluster(ctx, r, specs, c)
	}
	return compare.Diagnose(ctx, specs, c)
}

// rankCluster adds to a report of several clusters what keeping a member loses. Content is ranked within one cluster
// only, so the sources of that member's cluster are diagnosed by themselves.
func rankCluster(ctx context.Context, r *compare.Report, specs []evidence.Spec, c compare.Options) error {
	set, err := evidence.Open(ctx, specs, evidence.Options{NoHashes: true, Access: c.Access, Progress: c.Progress})
	if err != nil {
		return err
	}
	defer func() { _ = set.Close() }() // only read
	all, own := SpecsOf(set), []evidence.Spec{}
	for _, m := range clusterOf(set, c.Keep) {
		own = append(own, all[m.Label()])
	}
	of, err := compare.Diagnose(ctx, own, c)
	if err != nil {
		return err
	}
	r.Best, r.InputsUnchanged = of.Best, r.InputsUnchanged && of.InputsUnchanged
	return set.Unchanged(ctx)
}

// clusterOf returns the sources of the cluster of a member. Backups of it belong to it too, and sources that do not
// show their cluster.
func clusterOf(set *evidence.Set, label string) (own []*evidence.Member) {
	at := slices.IndexFunc(set.Members, func(m *evidence.Member) bool { return m.Label() == label })
	if at < 0 || set.Members[at].ClusterID == 0 {
		return set.Members
	}
	id := set.Members[at].ClusterID
	others := func(m *evidence.Member) bool { return m.ClusterID != 0 && m.ClusterID != id }
	dirs := slices.DeleteFunc(slices.Clone(set.Members), others)
	return slices.DeleteFunc(slices.Clone(dirs), func(m *evidence.Member) bool {
		return evidence.OfAnotherCluster(dirs, m)
	})
}

func labels(r *compare.Report) []string {
	var out []string
	for i := range r.Members {
		out = append(out, r.Members[i].Name)
	}
	return out
}

// labelOf finds a source by label, server name or ID; "" if there is none or more than one.
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

// From plans the repair for a report that Diagnose made of these sources.
func From(r *compare.Report, specs []evidence.Spec, o Options) (*Plan, error) {
	pl := newPlanner(r, specs, o)
	p, err := pl.plan()
	var refused *refusal.Error
	if len(pl.unseen) > 0 && errors.As(err, &refused) {
		return toRehearse(r, specs, o, pl.unseen, refused)
	}
	return p, err
}

// plan decides who is kept and what is done to whom, and lays the ways out.
func (pl *planner) plan() (*Plan, error) {
	if err := pl.refuse(); err != nil {
		return nil, err
	}
	if err := pl.choose(); err != nil {
		return nil, err
	}
	if err := pl.source(); err != nil {
		return nil, err
	}
	if pl.p.Mode == Restore {
		if err := pl.restore(); err != nil {
			return nil, err
		}
		return pl.p, pl.p.Seal()
	}
	if err := pl.needed(); err != nil {
		return nil, err
	}
	pl.losses.lost()
	pl.p.Lost.Open = pl.losses.openEnd()
	pl.losses.saveUndecided()
	if err := pl.mode(); err != nil {
		return nil, err
	}
	if err := pl.standbys(); err != nil {
		return nil, err
	}
	pl.losses.cautions()
	pl.ways()
	if pl.p.Mode == RehearseOnly {
		if pl.p.Tries = pl.p.tried(Reseed); pl.p.Tries == "" {
			return nil, refusal.New("bring what is missing", "%s, and nothing can be tried on copies", pl.p.Why)
		}
	}
	return pl.p, pl.p.Seal()
}

// source works out the cluster and what is done to whom, or leaves the mode at Restore. A database that was made for
// the plan is used where the best member alone would give up more.
func (pl *planner) source() error {
	switch x := pl.o.rebuilt; {
	case pl.p.Mode == Restore && pl.fromMended():
		return nil
	case pl.p.Mode == Restore:
		return pl.fromRebuilt()
	case x != nil && x.Continues:
		best, ref := pl.best, pl.ref
		if err := pl.fromRebuilt(); err != nil || pl.ungiven == "" {
			return err
		}
		pl.p.Rebuilt, pl.ungiven, pl.best, pl.ref = nil, "", best, ref
	}
	pl.cluster()
	return pl.members()
}

func plannerOf(ro *roster) *planner {
	return &planner{procedures: &procedures{roster: ro}, losses: losses{ro}}
}

func newPlanner(r *compare.Report, specs []evidence.Spec, o Options) *planner {
	p := &Plan{SchemaVersion: SchemaVersion, Tool: r.Tool, Sources: []Source{}, Members: []Member{},
		Cautions: []string{}, Ways: []Way{},
		Mends: o.mends, Verdict: Verdict{Class: r.Verdict.Class, Summary: r.Verdict.Summary,
			Problem: r.Verdict.Problem}}
	if r.Verdict.Cause != nil {
		p.Verdict.Cause, p.Verdict.Certainty = *r.Verdict.Cause, *r.Verdict.Certainty
	}
	for _, s := range specs {
		p.Inputs = append(p.Inputs, Input{Name: s.Name, Where: s.Where, WALDir: s.WALDir})
	}
	pl := plannerOf(&roster{p: p, o: o, dead: map[dumplog.ID]bool{}, used: map[string]bool{},
		sources: &sources{r: r, ranks: map[string]*compare.Rank{}, kinds: map[string]evidence.Kind{}}})
	for _, s := range r.Sources {
		p.Sources = append(p.Sources, Source{Name: s.Name, Kind: s.Kind, Files: s.Files, Bytes: s.Bytes,
			SHA256: s.SHA256})
		pl.kinds[s.Name] = s.Kind
	}
	if r.Best != nil {
		for i := range r.Best.Ranking {
			pl.ranks[r.Best.Ranking[i].Member] = &r.Best.Ranking[i]
		}
	}
	for i := range r.Findings {
		if f := &r.Findings[i]; f.Check == check.M05 {
			for _, id := range f.Facts.About {
				pl.dead[id] = true
			}
		}
	}
	return pl
}

// refuse refuses a plan that would do harm or lack evidence.
func (pl *planner) refuse() error {
	v := &pl.r.Verdict
	for _, s := range pl.r.Sources {
		if s.Error != "" {
			return refusal.New("make it readable, or leave it out", "source %s cannot be read: %s",
				s.Name,
				s.Error)
		}
	}
	if !pl.r.InputsUnchanged {
		return refusal.New("stop the member, copy its data dir, and plan again on the copy",
			"a source changed while it was read")
	}
	if !pl.hasKind(evidence.KindDataDir) {
		return refusal.New("give the data dirs of the members; for backups see etcd-medic help sources",
			"none of the sources is a data dir")
	}
	if v.Health == check.HealthUnknown && pl.o.Best == "" {
		return refusal.New("add the missing files (diagnose says what else can be done); or name the member to keep "+
			"with --best, for a plan that can only be rehearsed", "the evidence does not suffice: %s", v.Summary)
	}
	return nil
}

// needed refuses a plan without any work, and says what to do instead.
func (pl *planner) needed() error {
	if len(pl.p.mended()) > 0 || pl.p.Rebuilt != nil {
		return nil
	}
	var starts []string
	for i := range pl.p.Members {
		switch m := &pl.p.Members[i]; {
		case m.Action == Start && m.Source != "" && len(pl.mends(m.Source)) > 0:
			starts = append(starts, m.Name)
		case m.Action != Best && m.Action != Keep:
			return nil
		}
	}
	if best := pl.p.Best.Name; len(pl.mends(best)) > 0 {
		starts = append(starts, best)
	}
	healthy := pl.r.Verdict.Health == check.Healthy
	corrupt := pl.p.Cluster.raised("CORRUPT")
	if !healthy && (corrupt || drifted(pl.p.Verdict.Cause) || pl.p.Verdict.Class == check.ClassTornCopy) {
		return nil
	}
	if slices.Sort(starts); len(starts) > 0 && !pl.otherwiseBroken() {
		return refusal.New(pl.startHint(starts), "nothing to repair: %s %s", strings.Join(starts, ", "),
			whatStartMends(len(starts)))
	}
	switch pl.p.Verdict.Class {
	case check.ClassDataDivergence, check.ClassLatentDivergence, check.ClassDBDamage:
		if !healthy {
			return refusal.New(pl.rebuildHint(), "no member has other content to repair %s with: %s (%s)",
				pl.p.Best.Name, pl.p.Verdict.Class, pl.p.Verdict.Summary)
		}
	}
	return refusal.New(pl.hint(), "nothing to repair: %s (%s)", pl.p.Verdict.Class, pl.p.Verdict.Summary)
}

// rebuildHint names the command with which the logs make what no member holds, if the diagnosis has one.
func (pl *planner) rebuildHint() string {
	for _, s := range pl.r.Next {
		if p := s.Command.Program(); len(p) > 1 && p[1] == "rebuild" {
			return s.Text + ": " + s.Command.String()
		}
	}
	return "restore from a backup from before that change, or keep it"
}

func whatStartMends(n int) string {
	if n == 1 {
		return "has damage that its server puts right when it starts"
	}
	return "have damage that their servers put right when they start"
}

// otherwiseBroken reports whether the diagnosis found a problem that a start does not mend.
func (ss *sources) otherwiseBroken() bool {
	return slices.ContainsFunc(ss.r.Findings,
		func(f check.Finding) bool { return Breaks(&f) && !ss.onlyNeedsStart(&f) })
}

// startHint says what each server does when it starts.
func (ss *sources) startHint(names []string) string {
	var out []string
	for _, n := range names {
		out = append(out, n+": "+strings.Join(ss.mends(n), "; "))
	}
	return "start the members, all of them, as they are. " + strings.Join(out, ". ")
}

// hint is what to do without a plan.
func (pl *planner) hint() string {
	switch pl.p.Verdict.Class {
	case check.ClassLagging:
		return "start the lagging member: it catches up on its own, and a reseed would only cost time"
	case check.ClassUncommittedTail:
		return "start all members: raft commits or replaces what is above the commit index"
	case check.ClassCompactionSkew:
		return "start all members: the compaction is finished by the server"
	}
	if len(pl.r.Next) > 0 && pl.r.Verdict.Health != check.Healthy {
		return pl.r.Next[0].Text
	}
	return "nothing to do; etcd-medic repair plan --replace NAME plans a reseed all the same"
}
