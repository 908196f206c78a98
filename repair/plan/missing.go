package plan

import (
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/shell"
)

// Missing says what a plan needs before it can be applied: the data dirs of voters that are not among the sources, or
// the word that they are lost. The plan is made as if they were lost, and can be rehearsed; a restore needs no
// rehearsal, but gives up what they hold.
type Missing struct {
	// Members are the voters whose data dirs are needed.
	Members []string `json:"members"`
	// Give plans again with their data dirs, GiveUp without them.
	Give   Command `json:"give"`
	GiveUp Command `json:"giveUp"`
}

// ask returns the refusal of a plan that would give up voters of which nothing was said. From then plans for rehearsal.
func (pr *procedures) ask(format string, args ...any) error {
	pr.unseen = pr.unseenVoters()
	return refusal.New(pr.unseenHint(), format, args...)
}

// unseenVoters are the voters that stay, whose data dirs are not among the sources, and that were not given up.
func (pr *procedures) unseenVoters() (out []Member) {
	for i := range pr.p.Members {
		m := &pr.p.Members[i]
		if m.Source == "" && !m.Learner && m.Action != Remove && m.Action != Retire && !pr.gone(m) {
			out = append(out, *m)
		}
	}
	return out
}

// toRehearse is the plan as if the unseen voters were lost, for rehearsal only. It returns the refusal if nothing of
// that plan can be tried on copies.
func toRehearse(r *compare.Report, specs []evidence.Spec, o Options, unseen []Member, refused *refusal.Error) (*Plan,
	error) {
	given := o
	o.Gone = slices.Clone(o.Gone)
	for i := range unseen {
		o.Gone = append(o.Gone, unseen[i].ID.String())
	}
	p, err := From(r, specs, o)
	if err != nil || p.Mode == RehearseOnly {
		return nil, refused
	}
	if p.Tries = p.tried(p.Mode); p.Tries == "" {
		return nil, refused
	}
	p.Missing = missing(p, given, unseen)
	names := MemberNames(unseen)
	p.Mode, p.Why = RehearseOnly, refused.Reason+": until their data dirs are given, or given up, this plan can "+
		"only be rehearsed"
	for i := range p.Members {
		if m := &p.Members[i]; slices.Contains(names, m.Name) && m.Action == Replace {
			m.Why = "its data dir is not among the sources: planned as if it were lost"
		}
	}
	for i := range p.Ways {
		p.Ways[i].Recommended = false
	}
	return p, p.Seal()
}

// missing makes the commands that plan again.
func missing(p *Plan, o Options, unseen []Member) *Missing {
	x := &Missing{Members: MemberNames(unseen)}
	give := shell.Format("etcd-medic repair plan")
	for i := range p.Inputs {
		give = give.With(p.Inputs[i].argument()).Then(p.Inputs[i].logFlag())
	}
	if o.Best != "" {
		give = give.With("--best", o.Best)
	}
	for _, name := range o.Gone {
		give = give.With("--lost", name)
	}
	for _, name := range o.Replace {
		give = give.With("--replace", name)
	}
	giveUp := give
	for i := range unseen {
		name := unseen[i].Name
		give = give.Then(shell.Format("{}={}", name, shell.FillFor("DATA_DIR_OF", name)))
		giveUp = giveUp.With("--lost", name)
	}
	to := shell.Format("-o <NEW_PLAN>.yaml")
	x.Give, x.GiveUp = Typed("etcd-medic", give.Then(to)), Typed("etcd-medic", giveUp.Then(to))
	return x
}

// commands are the commands that plan again; nothing is missing in nil.
func (x *Missing) commands() []shell.Command {
	if x == nil {
		return nil
	}
	return []shell.Command{x.Give.Args, x.GiveUp.Args}
}

// Text says what is needed.
func (x *Missing) Text() string {
	if len(x.Members) == 1 {
		return "the data dir of " + x.Members[0] + ", its server stopped; or --lost if it is permanently lost"
	}
	return "the data dirs of " + strings.Join(x.Members, ", ") + ", each server stopped; or --lost for those that " +
		"are permanently lost"
}
