package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/shell"
)

// mode recommends a way.
func (pl *planner) mode() error {
	c := &pl.p.Cluster
	switch {
	case pl.r.Verdict.Health == check.HealthUnknown || pl.p.Verdict.Class == check.ClassTornCopy:
		pl.p.Mode, pl.p.Why = RehearseOnly, "the evidence does not suffice to change a cluster: "+pl.p.Verdict.Summary
	case pl.mendFirst():
		pl.mendMode()
	case pl.p.Rebuilt != nil:
		pl.rebuildMode()
	case pl.bestLearns() && pl.cloneable() != "":
		return pl.ask("%s is a learner, whose database only clones can make that of all members, and %s",
			pl.p.Best.Name, pl.cloneable())
	case pl.bestLearns():
		pl.p.Mode = Clone
		pl.p.Why = pl.p.Best.Name + " is a learner: it can neither lead nor run alone, but its database can become " +
			"that of all members"
	case pl.p.needsClone() != "" && pl.cloneable() != "":
		return pl.ask("the members can only be repaired by clones, and %s", pl.cloneable())
	case pl.p.needsClone() != "":
		pl.p.Mode, pl.p.Why = Clone, pl.p.needsClone()+"; new databases have raft's own list"
	case c.Voters == 1 && c.Startable == 1:
		pl.p.Mode, pl.p.Why = Live, pl.p.Best.Name+" is a cluster of one and can decide alone: the others come to it "+
			"while it runs"
	case c.Startable >= c.Quorum:
		pl.p.Mode = Live
		pl.p.Why = fmt.Sprintf("%d of %d voters can be started, %d are needed: the cluster can be repaired while it runs", c.Startable, c.Voters, c.Quorum)
	case pl.cloneable() == "" && pl.allAtHand():
		pl.p.Mode = Clone
		pl.p.Why = fmt.Sprintf("only %d of %d voters can be started, %d are needed: the cluster has no quorum, so "+
			"new data dirs with the same IDs are written for all members", c.Startable, c.Voters, c.Quorum)
	case !pl.p.Member(pl.p.Best.Name).Startable && pl.cloneable() == "":
		pl.p.Mode, pl.p.Why = Clone, pl.p.Best.Name+" cannot be started, but its database is sound: new data dirs "+
			"are written from it"
	case !pl.p.Member(pl.p.Best.Name).Startable:
		return pl.ask("%s is the best of the sources and cannot be started (%s), and %s", pl.p.Best.Name,
			pl.p.Member(pl.p.Best.Name).NotStartable, pl.cloneable())
	default:
		pl.p.Mode = ForceNewCluster
		pl.p.Why = fmt.Sprintf("only %d of %d voters can be started, %d are needed: the best member continues alone "+
			"and the others are added to it", c.Startable, c.Voters, c.Quorum)
	}
	if pl.p.Mode == ForceNewCluster {
		return pl.forced()
	}
	return nil
}

// forced is what a forced start does to the members other than the best one.
func (pl *planner) forced() error {
	c := &pl.p.Cluster
	if unseen := pl.unseenVoters(); len(unseen) > 0 {
		return pl.ask("only %d of %d voters can be started, %d are needed, and nothing is known about %s", c.Startable,
			c.Voters, c.Quorum, strings.Join(MemberNames(unseen), ", "))
	}
	for i := range pl.p.Members {
		m := &pl.p.Members[i]
		switch {
		case m.Learner && m.Action != Remove && m.Action != Best:
			m.Action, m.Why = Remove, "a learner: a forced start drops it; add it again when the voters are well"
		case m.Action == Keep, m.Action == Start, m.Action == Restart:
			m.Action, m.Why = Replace, m.Why+"; a forced start drops it from the member list, so it comes back empty"
		}
	}
	return nil
}

func (pl *planner) mendMode() {
	c := &pl.p.Cluster
	pl.p.Mode = MendFiles
	if pl.rowsMended() {
		pl.p.Why = pl.p.needsClone() + "; bucket members can be mended on each of them, without giving anything up"
		for _, m := range pl.p.ToMend() {
			m.Action = MendIt
			m.Why = "bucket members lists members that raft's configuration does not know; " +
				cmp.Or(m.NotStartable, m.Why)
		}
		return
	}
	pl.p.Why = fmt.Sprintf("only %d of %d voters can be started, %d are needed, and damaged files can be mended "+
		"without giving anything up", c.Startable, c.Voters, c.Quorum)
	for i := range pl.p.Members {
		if m := &pl.p.Members[i]; (m.Action == Replace || m.Action == Best) && !m.Startable &&
			pl.p.MendOf(m.Source) != nil {
			m.Action, m.Why = MendIt, m.NotStartable
		} else if m.Source == "" && m.Action == Replace && !pl.gone(m) {
			m.Action, m.Why = Keep, "its data dir is not among the sources: not judged, and not touched"
		}
	}
}

func (pl *planner) rebuildMode() {
	pl.p.Mode = Rebuild
	pl.p.Why = "no data dir is usable as it is, and their logs give all that is proven committed"
	if x := pl.p.Rebuilt; x.Lost != nil {
		pl.p.Why = fmt.Sprintf("no data dir is usable as it is, and their logs give more than a backup: everything "+
			"up to entry %d", x.Index)
	}
}

// Rejoins reports whether the member comes back empty.
func (m *Member) Rejoins() bool { return m.Action == Replace || m.Action == Join }

// cloneable says why clones would not restore the cluster, "" when they do. They have raft's own list of voters, so a
// majority of these must get one. A voter that is kept and whose data dir is not among the sources may hold more than
// the best member, so it is not overwritten.
func (pl *planner) cloneable() string {
	if pl.restoring {
		return "no data dir among the sources is sound"
	}
	return pl.unclonable()
}

// unclonable is cloneable for a sound database.
func (pl *planner) unclonable() string {
	voters, listed := 0, pl.p.Cluster.Voters
	for i := range pl.p.Members {
		m := &pl.p.Members[i]
		if m.Zombie() && !m.Learner && pl.p.Counted(m) {
			listed-- // clones have raft's own list
		}
		switch {
		case m.Action == Join:
			return m.Name + " belongs to another cluster: its ID is not in the member list of " + pl.p.Best.Name
		case m.Learner || m.Action == Remove || m.Action == Retire:
		case m.Source == "" && !pl.gone(m):
			return "the data dir of " + m.Name + " is not among the sources and would be overwritten"
		default:
			voters++
		}
	}
	switch {
	case pl.p.Cluster.ID == 0:
		return "the cluster ID is not known"
	case voters < Majority(listed):
		return fmt.Sprintf("clones keep raft's list of %s, and only %d of them would run: %d are needed",
			plural.Of(listed, "voter", "voters"), voters, Majority(listed))
	}
	return ""
}

// allAtHand reports whether the data dir of every remaining voter is among the sources.
func (pl *planner) allAtHand() bool {
	return !slices.ContainsFunc(pl.p.Members,
		func(m Member) bool { return !m.Learner && m.Source == "" && m.Action != Remove })
}

// unseenHint names the voters whose data dirs to give, or to declare lost.
func (pl *planner) unseenHint() string {
	for i := range pl.p.Members {
		if m := &pl.p.Members[i]; m.Source == "" && !m.Learner && m.Action != Remove && !pl.gone(m) {
			return "give the data dir of " + m.Name + " too; --lost " + m.Name + " if it is gone for good"
		}
	}
	return "see the other ways with --best"
}

// cautions are what a person must know first.
func (pl *planner) cautions() {
	say := func(format string, args ...any) {
		pl.p.Cautions = append(pl.p.Cautions, fmt.Sprintf(format, args...))
	}
	if x := pl.p.Rebuilt; x != nil && x.Lost != nil {
		say("%s were committed, and no log among the sources holds them: they are lost, with all that came after "+
			"them", x.Lost)
	}
	if n := pl.p.Lost.CommittedEntries; n > 0 {
		say("%s that %s lacks will be lost; save them first", plural.Of(n, "committed effect", "committed effects"),
			pl.p.Best.Name)
	}
	if n, proposers := nowhere(pl.r); n > 0 && len(proposers) > 0 {
		say("no source's database holds %d of them; %s proposed them and is not among the sources: inspect its data "+
			"dir before it is removed", n, strings.Join(proposers, ", "))
	}
	if pl.p.Best.By == "operator" && pl.r.Best != nil && len(pl.r.Best.Members) > 0 &&
		!slices.Contains(pl.r.Best.Members, pl.p.Best.Name) {
		say("by content %s would be kept: %s", strings.Join(pl.r.Best.Members, ", "), pl.r.Best.Why)
	}
	if n := len(pl.p.Best.Equals); n > 0 {
		say("%s %s as good as %s; --best takes another one", strings.Join(pl.p.Best.Equals, ", "), isAre(n),
			pl.p.Best.Name)
	}
	pl.p.Cautions = append(pl.p.Cautions, pl.openEndCautions()...)
	pl.p.Cautions = append(pl.p.Cautions, pl.membershipCautions()...)
	for _, k := range pl.r.Causes {
		fixes := release.Upgrades(k.FixedIn, release.AnyOf(pl.p.Cluster.Minor))
		if k.ID == pl.p.Verdict.Cause && len(fixes) > 0 && !drifted(k.ID) {
			say("the defect that caused it (%s) comes back at the next restart unless every member is upgraded to a "+
				"version without it: %s", k.ID, release.Text(fixes))
		}
	}
	for _, a := range pl.p.Cluster.Alarms {
		if a.Alarm == "CORRUPT" {
			say("alarm CORRUPT is raised for member %s: its ID is not evidence, the alarm accuses the wrong member "+
				"when the bad one leads; it is disarmed at the end", a.MemberID)
		}
	}
	if pl.p.Mode == Live && slices.ContainsFunc(pl.p.Members,
		func(m Member) bool { return m.Action == Replace && m.Startable }) {
		say("members that differ keep acknowledging writes that others refuse; what clients wrote after the data " +
			"dirs were copied is not in this plan: live mode looks for it, and refuses when the plan does not list " +
			"what would be lost")
	}
	if pl.p.Cluster.Has(release.TermInMeta).Excluded() {
		say("an etcd 3.%d server opens newer data dirs silently and damages them: data dirs that a newer server has "+
			"touched must not go back to it", pl.p.Cluster.Minor)
	}
	if pl.p.Cluster.Auth {
		say("auth is on: the steps need the root user or a client certificate with CN=root")
	}
}

// LayOut works out the procedures of a plan that already has the kept member and the action for each member.
func (p *Plan) LayOut(standby ...Standby) error {
	pl := &planner{p: p, o: Options{Standby: standby}}
	if err := pl.standbys(); err != nil {
		return err
	}
	pl.ways()
	return nil
}

// ways lists all procedures, the recommended first.
func (pl *planner) ways() {
	all := []Way{pl.liveWay(), pl.forceWay(), pl.cloneWay(), pl.reseedWay()}
	if len(pl.p.mended()) > 0 {
		all = slices.Insert(all, 0, pl.mendWay())
	}
	if pl.p.Rebuilt != nil {
		all = append(all, pl.rebuildWay())
	}
	if pl.restoring {
		all = append(all, pl.restoreWay())
	}
	slices.SortStableFunc(all, func(a, b Way) int {
		switch pl.p.Mode {
		case a.Mode:
			return -1
		case b.Mode:
			return 1
		}
		return 0
	})
	pl.name(all)
}

// name numbers the steps of all procedures, marks the recommended one and adds the estimates.
func (pl *planner) name(all []Way) {
	for i := range all {
		all[i].Recommended = all[i].Mode == pl.p.Mode
		if pl.best != nil {
			all[i].Cost = pl.costs(&all[i])
		}
		for j := range all[i].Steps {
			s := &all[i].Steps[j]
			s.ID = fmt.Sprintf("%02d-%s", j+1, s.Kind)
			if s.Member != "" {
				s.ID += "-" + shell.FileName(s.Member)
			}
		}
	}
	pl.p.Ways = all
}

func (pl *planner) liveWay() Way {
	c := &pl.p.Cluster
	if c.Startable < c.Quorum {
		return Way{Mode: Live, Why: fmt.Sprintf("%d of %d voters can be started, %d are needed for a quorum",
			c.Startable, c.Voters, c.Quorum)}
	}
	if why := pl.p.needsClone(); why != "" {
		return Way{Mode: Live, Why: why}
	}
	if pl.bestLearns() {
		return Way{Mode: Live, Why: pl.p.Best.Name + " is a learner, which cannot lead; name a voter with --best"}
	}
	b := &builder{p: pl.p, way: Live, voters: c.Voters, up: c.Startable}
	return Way{Mode: Live, Possible: true, Why: "the cluster keeps serving; one member at a time is out" +
		b.whileFewer(), Steps: b.live()}
}

func (pl *planner) forceWay() Way {
	if c := &pl.p.Cluster; c.Startable >= c.Quorum {
		return Way{Mode: ForceNewCluster, Why: "not needed: a majority can be started"}
	}
	if b := pl.p.Member(pl.p.Best.Name); !b.Startable {
		return Way{Mode: ForceNewCluster, Why: pl.p.Best.Name + " cannot be started: " + b.NotStartable}
	}
	if why := pl.p.needsClone(); why != "" {
		return Way{Mode: ForceNewCluster, Why: why}
	}
	if pl.bestLearns() {
		return Way{Mode: ForceNewCluster, Why: pl.p.Best.Name +
			" is a learner, and a forced start does not make it a voter"}
	}
	b := &builder{p: pl.p, way: ForceNewCluster, voters: 1, up: 1}
	return Way{Mode: ForceNewCluster, Possible: true, Why: "the cluster is down; " + pl.p.Best.Name +
		" keeps its ID and data, entries that it has not committed and the other members' IDs are lost",
		Steps: b.force()}
}

func (pl *planner) cloneWay() Way {
	if why := pl.cloneable(); why != "" {
		return Way{Mode: Clone, Why: why}
	}
	b := &builder{p: pl.p, way: Clone}
	return Way{Mode: Clone, Possible: true, Why: "all members are stopped for it; member and cluster IDs stay, " +
		"committed entries above the consistent index of " + pl.p.Best.Name + " are included where all members " +
		"execute them alike", Steps: b.clone()}
}

func (pl *planner) reseedWay() Way {
	uses := pl.liveWay()
	if c := &pl.p.Cluster; c.Startable < c.Quorum {
		uses = pl.forceWay()
	}
	if !uses.Possible {
		return Way{Mode: Reseed, Uses: uses.Mode, Why: uses.Why}
	}
	b := &builder{p: pl.p, way: Reseed}
	return Way{Mode: Reseed, Uses: uses.Mode, Possible: true, Why: "all members are stopped for it; the steps of " +
		string(uses.Mode) + " are done to copies in a sandbox, and the data dirs that result are put in place",
		Steps: b.only(StepHandOut)}
}

// backupAtHand is the best backup among the sources, by its label and where it is; without one, a placeholder.
func (pl *planner) backupAtHand() (label string, at shell.Word) {
	label, at = "BACKUP", shell.ToFill("BACKUP")
	if pl.r.Best == nil {
		return label, at
	}
	for _, m := range pl.r.Best.Members {
		if k := pl.kinds[m]; k == evidence.KindBackup || k == evidence.KindDB {
			label = m
		}
	}
	for _, src := range pl.r.Sources {
		if src.Name == label {
			at = shell.Text(shell.Operand(pl.place(src)))
		}
	}
	return label, at
}

// restoreSteps are those of a restore from the backup at hand.
func (pl *planner) restoreSteps() []Step {
	b := &builder{p: pl.p, way: Restore}
	b.from, b.backup = pl.backupAtHand()
	return b.only(StepRestore)
}

// restoreWay is the alternative to mending files: no data dir is usable as it is.
func (pl *planner) restoreWay() Way {
	return Way{Mode: Restore, Possible: true, Why: "it begins a new cluster, and everything after the backup is lost",
		Steps: pl.restoreSteps()}
}

// restore is the plan when no data dir can be used.
func (pl *planner) restore() {
	from, _ := pl.backupAtHand()
	for i := range pl.r.Members {
		f := &pl.r.Members[i]
		if pl.kinds[f.Name] != evidence.KindDataDir {
			continue
		}
		m := Member{Name: f.Name, NodeName: f.NodeName, ID: f.MemberID, Source: f.Name, PeerURLs: []string{},
			Action: Replace, Why: "restored from " + from}
		m.Obstacle, m.NotStartable = pl.obstacle(f.Name)
		if row := rowOf(f, f.MemberID); row != nil {
			m.PeerURLs, m.ClientURLs = row.PeerURLs, row.ClientURLs
		}
		pl.p.Members = append(pl.p.Members, m)
	}
	pl.p.Cautions = append(pl.p.Cautions, "a restore begins a new cluster: member and cluster IDs change, and "+
		"everything after the backup is lost",
		fmt.Sprintf("clients that watch need higher revisions than before: --bump-revision %d --mark-compacted "+
			"(etcdutl 3.6 and later)", bump(pl.newestRevision())))
	pl.name([]Way{{Mode: Restore, Possible: true, Why: pl.p.Why, Steps: pl.restoreSteps()}})
}

// newestRevision is the highest revision that any source shows.
func (pl *planner) newestRevision() (rev int64) {
	for i := range pl.r.Members {
		if db := pl.r.Members[i].DB; db != nil && db.CurrentRevision != nil {
			rev = max(rev, *db.CurrentRevision)
		}
	}
	return rev
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}
