package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/shell"
)

// procedures lays out the ways to repair and recommends one.
type procedures struct {
	*roster
	// restoring is true when no data dir is usable as it is.
	restoring bool
	// unseen are the voters without which the plan was refused.
	unseen []Member
	// ungiven says why the rebuilt database cannot be given to all members, so that it is restored from.
	ungiven string
}

// mode recommends a way.
func (pr *procedures) mode() error {
	c := &pr.p.Cluster
	switch {
	case pr.r.Verdict.Health == check.HealthUnknown || pr.p.Verdict.Class == check.ClassTornCopy:
		pr.p.Mode, pr.p.Why = RehearseOnly, "the evidence does not suffice to change a cluster: "+pr.p.Verdict.Summary
	case pr.mendFirst():
		pr.mendMode()
	case pr.p.Rebuilt != nil:
		pr.rebuildMode()
	case pr.bestLearns() && pr.cloneable() != "":
		return pr.ask("%s is a learner, whose database only clones can make that of all members, and %s",
			pr.p.Best.Name, pr.cloneable())
	case pr.bestLearns():
		pr.p.Mode = Clone
		pr.p.Why = pr.p.Best.Name + " is a learner: it can neither lead nor run alone, but its database can become " +
			"that of all members"
	case pr.p.needsClone() != "" && pr.cloneable() != "":
		return pr.ask("the members can only be repaired by clones, and %s", pr.cloneable())
	case pr.p.needsClone() != "":
		pr.p.Mode, pr.p.Why = Clone, pr.p.needsClone()+"; new databases have raft's own list"
	case c.Voters == 1 && c.Startable == 1:
		pr.p.Mode, pr.p.Why = Live, pr.p.Best.Name+" is a cluster of one and can decide alone: the others come to it "+
			"while it runs"
	case c.Startable >= c.Quorum:
		pr.p.Mode = Live
		pr.p.Why = fmt.Sprintf("%d of %d voters can be started, %d are needed: the cluster can be repaired while it "+
			"runs", c.Startable, c.Voters, c.Quorum)
	case pr.cloneable() == "" && pr.allAtHand():
		pr.p.Mode = Clone
		pr.p.Why = fmt.Sprintf("only %d of %d voters can be started, %d are needed: the cluster has no quorum, so "+
			"new data dirs with the same IDs are written for all members", c.Startable, c.Voters, c.Quorum)
	case !pr.p.Member(pr.p.Best.Name).Startable && pr.cloneable() == "":
		pr.p.Mode, pr.p.Why = Clone, pr.p.Best.Name+" cannot be started, but its database is sound: new data dirs "+
			"are written from it"
	case !pr.p.Member(pr.p.Best.Name).Startable:
		return pr.ask("%s is the best of the sources and cannot be started (%s), and %s", pr.p.Best.Name,
			pr.p.Member(pr.p.Best.Name).NotStartable, pr.cloneable())
	default:
		pr.p.Mode = ForceNewCluster
		pr.p.Why = fmt.Sprintf("only %d of %d voters can be started, %d are needed: the best member continues alone "+
			"and the others are added to it", c.Startable, c.Voters, c.Quorum)
	}
	if pr.p.Mode == ForceNewCluster {
		return pr.forced()
	}
	return nil
}

// forced is what a forced start does to the members other than the best one.
func (pr *procedures) forced() error {
	c := &pr.p.Cluster
	if unseen := pr.unseenVoters(); len(unseen) > 0 {
		return pr.ask("only %d of %d voters can be started, %d are needed, and nothing is known about %s", c.Startable,
			c.Voters, c.Quorum, strings.Join(MemberNames(unseen), ", "))
	}
	if l := &pr.p.Lost; l.Awaited > 0 { // no one is left to get them from
		l.CommittedEntries, l.AfterEnd, l.Awaited = l.CommittedEntries+l.Awaited, l.AfterEnd+l.Awaited, 0
		pr.p.Cautions = append(pr.p.Cautions, fmt.Sprintf("the logs of other members hold the last %s, which %s lacks "+
			"and a forced start gives up: first make a database of both (etcd-medic rebuild --base, with the "+
			"database of %s, and --log for each log), and restore from it if that is more",
			plural.Of(l.AfterEnd, "committed entry", "committed entries"), pr.p.Best.Name, pr.p.Best.Name))
	}
	for i := range pr.p.Members {
		m := &pr.p.Members[i]
		switch {
		case m.Learner && m.Action != Remove && m.Action != Best:
			m.Action, m.Why = Remove, "a learner: a forced start drops it; add it again when the voters are well"
		case m.Action == Keep, m.Action == Start, m.Action == Restart:
			m.Action, m.Why = Replace, m.Why+"; a forced start drops it from the member list, so it comes back empty"
		}
	}
	return nil
}

func (pr *procedures) mendMode() {
	c := &pr.p.Cluster
	pr.p.Mode = MendFiles
	if pr.rowsMended() {
		pr.p.Why = pr.p.needsClone() + "; bucket members can be mended on each of them, without giving anything up"
		for _, m := range pr.p.ToMend() {
			m.Action = MendIt
			m.Why = "bucket members lists members that raft's configuration does not know; " +
				cmp.Or(m.NotStartable, m.Why)
		}
		return
	}
	pr.p.Why = fmt.Sprintf("only %d of %d voters can be started, %d are needed, and damaged files can be mended %s",
		c.Startable, c.Voters, c.Quorum, pr.mendLoses())
	for i := range pr.p.Members {
		if m := &pr.p.Members[i]; (m.Action == Replace || m.Action == Best) && !m.Startable &&
			pr.p.MendOf(m.Source) != nil {
			m.Action, m.Why = MendIt, m.NotStartable
		} else if m.Source == "" && m.Action == Replace && !pr.gone(m) {
			m.Action, m.Why = Keep, "its data dir is not among the sources: not judged, and not touched"
		}
	}
}

func (pr *procedures) rebuildMode() {
	pr.p.Mode = Rebuild
	pr.p.Why = "no data dir is usable as it is, and their logs give all that is proven committed"
	switch x := pr.p.Rebuilt; {
	case x.Continues && x.Lost == nil:
		pr.p.Why = fmt.Sprintf("no data dir can be started that holds all that is proven committed; %s give it, up to "+
			"entry %d", x.from(), x.Index)
	case x.Continues:
		pr.p.Why = fmt.Sprintf("%s give more than any data dir that can be started: everything up to entry %d",
			x.from(),
			x.Index)
	case x.Lost != nil:
		pr.p.Why = fmt.Sprintf("no data dir is usable as it is, and their logs give more than a backup: everything "+
			"up to entry %d", x.Index)
	}
}

// Rejoins reports whether the member comes back empty.
func (m *Member) Rejoins() bool { return m.Action == Replace || m.Action == Join }

// cloneable says why clones would not restore the cluster, "" when they do. They have raft's own list of voters, so a
// majority of these must get one. A voter that is kept and whose data dir is not among the sources may hold more than
// the best member, so it is not overwritten.
func (pr *procedures) cloneable() string {
	if why := pr.lacksLogged("clones of"); why != "" {
		return why
	}
	if pr.restoring {
		return "no data dir among the sources is sound"
	}
	if n := pr.p.Lost.Awaited; n > 0 {
		return fmt.Sprintf("clones of %s would lack the last %s, which other members hold", pr.p.Best.Name,
			plural.Of(n, "committed entry", "committed entries"))
	}
	return pr.unclonable()
}

// lacksLogged says why a way that keeps the best member's own database loses committed entries that the rebuilt
// database holds, "" if it does not. What the plan gives up is computed for the rebuilt database.
func (pr *procedures) lacksLogged(what string) string {
	if x := pr.p.Rebuilt; x != nil && x.Continues {
		return what + " " + x.Base + " would lack the committed entries that only logs hold"
	}
	return ""
}

// unclonable is cloneable for a sound database.
func (pr *procedures) unclonable() string {
	voters, listed := 0, pr.p.Cluster.Voters
	for i := range pr.p.Members {
		m := &pr.p.Members[i]
		if m.Zombie() && !m.Learner && pr.p.Counted(m) {
			listed-- // clones have raft's own list
		}
		switch {
		case m.Action == Join:
			return m.Name + " joins as a new member: its ID is not in the member list of " + pr.p.Best.Name
		case m.Learner || m.Action == Remove || m.Action == Retire:
		case m.Source == "" && !pr.gone(m):
			return "the data dir of " + m.Name + " is not among the sources and would be overwritten"
		default:
			voters++
		}
	}
	switch {
	case pr.p.Cluster.ID == 0:
		return "the cluster ID is not known"
	case voters < Majority(listed):
		return fmt.Sprintf("clones keep raft's list of %s, and only %d of them would run: %d are needed",
			plural.Of(listed, "voter", "voters"), voters, Majority(listed))
	}
	return ""
}

// allAtHand reports whether the data dir of every remaining voter is among the sources.
func (pr *procedures) allAtHand() bool {
	return !slices.ContainsFunc(pr.p.Members,
		func(m Member) bool { return !m.Learner && m.Source == "" && m.Action != Remove })
}

// unseenHint names the voters whose data dirs to give, or to declare lost.
func (pr *procedures) unseenHint() string {
	for i := range pr.p.Members {
		if m := &pr.p.Members[i]; m.Source == "" && !m.Learner && m.Action != Remove && !pr.gone(m) {
			return "give the data dir of " + m.Name + " too; --lost " + m.Name + " if it is gone for good"
		}
	}
	return "see the other ways with --best"
}

// cautions are what a person must know first.
func (lo *losses) cautions() {
	say := func(format string, args ...any) {
		lo.p.Cautions = append(lo.p.Cautions, fmt.Sprintf(format, args...))
	}
	if x := lo.p.Rebuilt; x != nil && x.Lost != nil {
		say("%s", x.lostText())
	}
	if n := lo.p.Lost.CommittedEntries - lo.p.Rebuilt.lost(); n > 0 {
		say("%s that %s lacks will be lost; save them first", plural.Of(n, "committed effect", "committed effects"),
			lo.p.Best.Name)
	}
	if s := lo.recordsCaution(); s != "" {
		say("%s", s)
	}
	if n, proposers := nowhere(lo.r); n > 0 && len(proposers) > 0 && !lo.made() {
		say("no source's database holds %d of them; %s proposed them and is not among the sources: inspect its data "+
			"dir before it is removed", n, strings.Join(proposers, ", "))
	}
	if lo.p.Best.By == "operator" && lo.r.Best != nil && len(lo.r.Best.Members) > 0 &&
		!slices.Contains(lo.r.Best.Members, lo.p.Best.Name) {
		say("by content %s would be kept: %s", strings.Join(lo.r.Best.Members, ", "), lo.r.Best.Why)
	}
	// --best with a learner leads to another procedure, and one that leaves would have to stay.
	same := slices.DeleteFunc(slices.Clone(lo.p.Best.Equals), func(name string) bool {
		m := lo.p.Member(name)
		return m != nil && (m.Learner || m.Rejoins() || m.Action == Remove || m.Action == Retire)
	})
	if n := len(same); n > 0 {
		say("%s %s as good as %s; --best takes another one", strings.Join(same, ", "), isAre(n), lo.p.Best.Name)
	}
	lo.p.Cautions = append(lo.p.Cautions, lo.openEndCautions()...)
	lo.p.Cautions = append(lo.p.Cautions, lo.membershipCautions()...)
	for _, k := range lo.r.Causes {
		fixes := release.Upgrades(k.FixedIn, release.AnyOf(lo.p.Cluster.Minor))
		if k.ID == lo.p.Verdict.Cause && len(fixes) > 0 && !drifted(k.ID) {
			say("the defect that caused it (%s) comes back at the next restart unless every member is upgraded to a "+
				"version without it: %s", k.ID, release.Text(fixes))
		}
	}
	for _, a := range lo.p.Cluster.Alarms {
		if a.Alarm == "CORRUPT" {
			say("alarm CORRUPT is raised for member %s: its ID is not evidence, the alarm accuses the wrong member "+
				"when the bad one leads; it is disarmed at the end", a.MemberID)
		}
	}
	if lo.p.Mode == Live && slices.ContainsFunc(lo.p.Members,
		func(m Member) bool { return m.Action == Replace && m.Startable }) {
		say("members that differ keep acknowledging writes that others refuse; what clients wrote after the data " +
			"dirs were copied is not in this plan: live mode looks for it, and refuses when the plan does not list " +
			"what would be lost")
	}
	if lo.p.Cluster.Has(release.TermInMeta).Excluded() {
		say("an etcd 3.%d server opens newer data dirs silently and damages them: data dirs that a newer server has "+
			"touched must not go back to it", lo.p.Cluster.Minor)
	}
	if lo.p.Cluster.Auth {
		say("auth is on: the steps need the root user or a client certificate with CN=root")
	}
}

// LayOut works out the procedures of a plan that already has the kept member and the action for each member.
func (p *Plan) LayOut(standby ...Standby) error {
	pl := &procedures{roster: &roster{p: p, o: Options{Standby: standby}}}
	if err := pl.standbys(); err != nil {
		return err
	}
	pl.ways()
	return nil
}

// ways lists all procedures, the recommended first.
func (pr *procedures) ways() {
	all := []Way{pr.liveWay(), pr.forceWay(), pr.cloneWay(), pr.reseedWay()}
	if len(pr.p.mended()) > 0 {
		all = slices.Insert(all, 0, pr.mendWay())
	}
	if pr.p.Rebuilt != nil {
		all = append(all, pr.rebuildWay())
	}
	if x := pr.p.Rebuilt; pr.restoring && (x == nil || !x.Continues) { // a continued database holds more than a backup
		all = append(all, pr.restoreWay())
	}
	slices.SortStableFunc(all, func(a, b Way) int {
		switch pr.p.Mode {
		case a.Mode:
			return -1
		case b.Mode:
			return 1
		}
		return 0
	})
	pr.name(all)
}

// name numbers the steps of all procedures, marks the recommended one and adds the estimates.
func (pr *procedures) name(all []Way) {
	for i := range all {
		all[i].Recommended = all[i].Mode == pr.p.Mode
		if pr.best != nil {
			all[i].Cost = pr.costs(&all[i])
		}
		for j := range all[i].Steps {
			s := &all[i].Steps[j]
			s.ID = fmt.Sprintf("%02d-%s", j+1, s.Kind)
			if s.Member != "" {
				s.ID += "-" + shell.FileName(s.Member)
			}
		}
	}
	pr.p.Ways = all
}

func (pr *procedures) liveWay() Way {
	c := &pr.p.Cluster
	if c.Startable < c.Quorum {
		return Way{Mode: Live, Why: fmt.Sprintf("%d of %d voters can be started, %d are needed for a quorum",
			c.Startable, c.Voters, c.Quorum)}
	}
	if why := pr.p.needsClone(); why != "" {
		return Way{Mode: Live, Why: why}
	}
	if why := pr.lacksLogged("a repair with the database of"); why != "" {
		return Way{Mode: Live, Why: why}
	}
	if pr.bestLearns() {
		return Way{Mode: Live, Why: pr.p.Best.Name + " is a learner, which cannot lead; name a voter with --best"}
	}
	b := &builder{p: pr.p, way: Live, voters: c.Voters, up: c.Startable}
	return Way{Mode: Live, Possible: true, Why: "the cluster keeps serving; one member at a time is out" +
		b.whileFewer(), Steps: b.live()}
}

func (pr *procedures) forceWay() Way {
	if c := &pr.p.Cluster; c.Startable >= c.Quorum {
		return Way{Mode: ForceNewCluster, Why: "not needed: a majority can be started"}
	}
	if why := pr.lacksLogged("a forced start of"); why != "" {
		return Way{Mode: ForceNewCluster, Why: why}
	}
	if b := pr.p.Member(pr.p.Best.Name); !b.Startable {
		return Way{Mode: ForceNewCluster, Why: pr.p.Best.Name + " cannot be started: " + b.NotStartable}
	}
	if why := pr.p.needsClone(); why != "" {
		return Way{Mode: ForceNewCluster, Why: why}
	}
	if pr.bestLearns() {
		return Way{Mode: ForceNewCluster, Why: pr.p.Best.Name +
			" is a learner, and a forced start does not make it a voter"}
	}
	b := &builder{p: pr.p, way: ForceNewCluster, voters: 1, up: 1}
	return Way{Mode: ForceNewCluster, Possible: true, Why: "the cluster is down; " + pr.p.Best.Name +
		" keeps its ID and data, entries that it has not committed and the other members' IDs are lost",
		Steps: b.force()}
}

func (pr *procedures) cloneWay() Way {
	if why := pr.cloneable(); why != "" {
		return Way{Mode: Clone, Why: why}
	}
	b := &builder{p: pr.p, way: Clone}
	return Way{Mode: Clone, Possible: true, Why: "all members are stopped for it; member and cluster IDs stay, " +
		"committed entries above the consistent index of " + pr.p.Best.Name + " are included where all members " +
		"execute them alike", Steps: b.clone()}
}

func (pr *procedures) reseedWay() Way {
	uses := pr.liveWay()
	if c := &pr.p.Cluster; c.Startable < c.Quorum {
		uses = pr.forceWay()
	}
	if !uses.Possible {
		return Way{Mode: Reseed, Uses: uses.Mode, Why: uses.Why}
	}
	b := &builder{p: pr.p, way: Reseed}
	return Way{Mode: Reseed, Uses: uses.Mode, Possible: true, Why: "all members are stopped for it; the steps of " +
		string(uses.Mode) + " are done to copies in a sandbox, and the data dirs that result are put in place",
		Steps: b.only(StepHandOut)}
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}
