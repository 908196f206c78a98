package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/shell"
)

// backupAtHand is the best backup among the sources, by its label and where it is; without one, a placeholder. A
// rebuilt database that the members cannot get holds more than these.
func (pr *procedures) backupAtHand() (label string, at shell.Word) {
	if pr.ungiven != "" {
		return rebuiltFile, shell.Text(rebuiltFile)
	}
	label, at = "BACKUP", shell.ToFill("BACKUP")
	if pr.r.Best == nil {
		return label, at
	}
	for _, m := range pr.r.Best.Members {
		if k := pr.kinds[m]; k == evidence.KindBackup || k == evidence.KindDB {
			label = m
		}
	}
	for _, src := range pr.r.Sources {
		if src.Name == label {
			at = shell.Text(shell.Operand(pr.file(src)))
		}
	}
	return label, at
}

// file is where a source is, without the name that the user gave it: etcd's own tools know no names.
func (pr *procedures) file(src compare.Source) string {
	for _, in := range pr.p.Inputs {
		if in.Name == src.Name && in.Name != "" {
			return in.Where
		}
	}
	return place(src)
}

// restoreSteps are those of a restore from the backup at hand.
func (pr *procedures) restoreSteps() []Step {
	b := &builder{p: pr.p, way: Restore}
	if b.from, b.backup = pr.backupAtHand(); pr.kinds[b.from] != "" {
		b.bare, b.listed = pr.kinds[b.from] == evidence.KindDB, pr.facts(b.from).Membership.Members
	}
	return b.only(StepRestore)
}

// restoreWay is the alternative to mending files: no data dir is usable as it is.
func (pr *procedures) restoreWay() Way {
	return Way{Mode: Restore, Possible: true, Why: "it begins a new cluster, and everything after the backup is lost",
		Steps: pr.restoreSteps()}
}

// restore is the plan when no data dir can be used.
func (pl *planner) restore() error {
	from, _ := pl.backupAtHand()
	var newest *evidence.Facts
	for i := range pl.r.Members {
		f := &pl.r.Members[i]
		if !pl.isDataDir(f) {
			continue
		}
		m := Member{Name: f.Name, NodeName: f.NodeName, ID: f.MemberID, Source: f.Name, PeerURLs: []string{},
			Action: Replace, Why: "restored from " + from}
		m.Obstacle, m.NotStartable = pl.obstacle(f.Name)
		pl.addressed(&m)
		pl.p.Members = append(pl.p.Members, m)
		if len(f.Membership.Voters) > 0 && (newest == nil || f.Commit > newest.Commit) {
			newest = f
		}
	}
	if newest != nil {
		pl.notRestored(newest)
		pl.restoreAbsent(newest, from)
	}
	pl.unique()
	if err := pl.known(); err != nil {
		return err
	}
	pl.losses.lostByRestore(from)
	pl.restoreCautions()
	pl.name([]Way{{Mode: Restore, Possible: true, Why: pl.p.Why, Steps: pl.restoreSteps()}})
	return nil
}

// notRestored leaves out the data dirs of members that the cluster removed, and second copies of a member's.
func (pl *planner) notRestored(newest *evidence.Facts) {
	for i := range pl.p.Members {
		m := &pl.p.Members[i]
		if pl.facts(m.Source).ClusterID != newest.ClusterID || m.ID == 0 || newest.ClusterID == 0 {
			continue
		}
		m.Learner = slices.Contains(newest.Membership.Learners, m.ID)
		first := slices.IndexFunc(pl.p.Members, func(o Member) bool { return o.ID == m.ID })
		switch {
		case first < i:
			m.Action, m.Why = Retire, "another copy of the data dir of "+pl.p.Members[first].Name+", with its member ID"
			m.Obstacle, m.NotStartable = ObstacleSecondCopy, "it is a second copy of one member"
			m.NodeName, m.PeerURLs, m.ClientURLs = "", []string{}, nil // the first one has these
		case slices.Contains(newest.Membership.Removed, m.ID) && !slices.ContainsFunc(pl.o.Replace, m.Named):
			m.Action, m.Why = Retire, "the cluster removed this member: it is not restored; repair plan --replace "+
				"brings it back"
			m.Obstacle, m.NotStartable = ObstacleNotMember, "it is not a member of the cluster"
		}
	}
}

// restored are the members of a restored cluster. Those that the cluster removed are none, and learners are added when
// it runs.
func (b *builder) restored() (out []*Member) {
	for i := range b.p.Members {
		switch m := &b.p.Members[i]; {
		case m.Learner || m.Action == Remove || m.Action == Retire || m.Action == StandIn:
		default:
			out = append(out, m)
		}
	}
	return out
}

// asListed reports whether a backup lists these members, with their peer URLs, and no others but learners.
func (b *builder) asListed(members []*Member) bool {
	n := 0
	for i := range b.listed {
		row := &b.listed[i]
		if row.IsLearner {
			continue
		}
		n++
		if !slices.ContainsFunc(members, func(m *Member) bool {
			return m.ServerName() == row.Name && slices.Equal(m.PeerURLs, row.PeerURLs)
		}) {
			return false
		}
	}
	return n == len(members)
}

// addressed gives a member the name and addresses that sources have of it, its own before those of others: a backup
// lists all members.
func (pl *planner) addressed(m *Member) {
	known := []*evidence.Facts{pl.facts(m.Source)}
	for i := range pl.r.Members {
		known = append(known, &pl.r.Members[i])
	}
	if x := pl.o.rebuilt; x != nil && x.made != nil {
		known = append(known, x.made)
	}
	for _, f := range known {
		if row := rowOf(f, m.ID); row != nil {
			m.NodeName = cmp.Or(m.NodeName, row.Name)
			m.PeerURLs, m.ClientURLs = firstOf(m.PeerURLs, row.PeerURLs), firstOf(m.ClientURLs, row.ClientURLs)
		}
		m.PeerURLs = firstOf(m.PeerURLs, f.Membership.PeerURLs[m.ID])
	}
}

// firstOf is the first of two lists that is not empty.
func firstOf(a, b []string) []string {
	if len(a) > 0 || len(b) == 0 {
		return a
	}
	return b
}

// restoreAbsent lists the voters whose data dirs are not among the sources. Those of which nothing was said may hold
// all that the restore gives up, so they are asked for.
func (pl *planner) restoreAbsent(newest *evidence.Facts, from string) {
	unclaimed := false // a data dir that does not show whose it is may be that of an absent voter
	for i := range pl.p.Members {
		unclaimed = unclaimed || pl.p.Members[i].ID == 0
	}
	for _, id := range newest.Membership.Voters {
		if slices.ContainsFunc(pl.p.Members, func(m Member) bool { return m.ID == id }) {
			continue
		}
		m := Member{ID: id, PeerURLs: []string{}, Action: Replace, Obstacle: ObstacleNotGiven,
			NotStartable: "its data dir is not among the sources"}
		pl.addressed(&m)
		m.Name = cmp.Or(m.NodeName, id.String())
		if own := pl.p.Member(m.Name); own != nil && own.ID == 0 {
			own.ID, own.NodeName, own.PeerURLs, own.ClientURLs = id, m.NodeName, m.PeerURLs, m.ClientURLs
			continue
		}
		m.Why = m.NotStartable + ": restored from " + from
		if pl.gone(&m) {
			m.Why = "its data dir is lost: restored from " + from
		}
		pl.p.Members = append(pl.p.Members, m)
	}
	slices.SortStableFunc(pl.p.Members, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	if unseen := pl.unseenVoters(); len(unseen) > 0 && !unclaimed {
		pl.p.Missing = missing(pl.p, pl.o, unseen)
	}
}

// restoreCautions are what a person must know before a restore.
func (pl *planner) restoreCautions() {
	say := func(format string, args ...any) {
		pl.p.Cautions = append(pl.p.Cautions, fmt.Sprintf(format, args...))
	}
	if x := pl.p.Missing; x != nil {
		say("%s not among the sources: a restore gives up what their data dirs hold, and one sound data dir makes it "+
			"unnecessary; look at them first", plural.Of(len(x.Members), "voter is", "voters are"))
	}
	if x := pl.p.Rebuilt; pl.ungiven != "" {
		say("%s give a database up to entry %d, which no backup reaches. It cannot be put in the data dirs of all "+
			"members (%s), so it is restored from", x.from(), x.Index, pl.ungiven)
		if x.Lost != nil {
			say("%s", x.lostText())
		}
	}
	say("a restore begins a new cluster: member and cluster IDs change, and everything after the backup is lost")
	say("clients that watch need higher revisions than before: --bump-revision %d --mark-compacted (etcdutl 3.6 and "+
		"later)", bump(pl.newestRevision()))
}
