package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/cause"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/release"
)

// cluster finds raft's newest configuration and what the best member knows of its cluster.
func (pl *planner) cluster() {
	pl.ref = pl.best
	for i := range pl.r.Members {
		f := &pl.r.Members[i]
		if f.ClusterID == pl.best.ClusterID && len(f.Membership.Voters) > 0 && f.Commit > pl.ref.Commit &&
			pl.damage(f.Name) == "" {
			pl.ref = f
		}
	}
	c := Cluster{ID: pl.best.ClusterID, Version: pl.best.ClusterVersion, Voters: len(pl.ref.Membership.Voters),
		Alarms: pl.best.Alarms}
	c.Quorum = c.Voters/2 + 1
	if pl.best.DB.StorageVersion != nil {
		c.Storage = *pl.best.DB.StorageVersion
	}
	if e := pl.best.WroteBy.Etcd; e != nil {
		c.Minor = release.Of(*e).Minor()
	}
	if pl.best.Auth != nil {
		c.Auth = pl.best.Auth.Enabled
	}
	// From 3.6 on a server drops the start of its in-memory log every 100 entries, before that with each snapshot it
	// takes.
	c.LogStartsAtOne = !c.Has(release.LogTrimmedOften).Certain()
	if pl.best.WAL != nil {
		for _, s := range pl.best.WAL.Snapshots {
			c.LogStartsAtOne = c.LogStartsAtOne && s.Index == 0
		}
	}
	pl.p.Cluster = c
}

// members lists every member of the configuration and every source that should be one, with what is done to it.
func (pl *planner) members() error {
	ids := append(slices.Clone(pl.ref.Membership.Voters), pl.ref.Membership.Learners...)
	slices.Sort(ids)
	for _, id := range ids {
		m := pl.member(id, slices.Contains(pl.ref.Membership.Learners, id))
		if f := pl.inPlaceOf(&m); m.Source == "" && f != nil {
			m.Name, m.Source = f.Name, f.Name
			pl.judgeMisplaced(&m, f)
		} else {
			pl.judge(&m)
		}
		pl.used[m.Source] = m.Source != ""
		pl.p.Members = append(pl.p.Members, m)
	}
	if pl.best.MemberID == 0 || pl.p.Member(pl.p.Best.Name) == nil {
		return refusal.New("choose another member with --best", "%s is not a member of the newest configuration that "+
			"its cluster committed", pl.p.Best.Name)
	}
	for i := range pl.r.Members {
		f := &pl.r.Members[i]
		if !pl.used[f.Name] && pl.isDataDir(f) {
			pl.p.Members = append(pl.p.Members, pl.notInConfiguration(f))
		}
	}
	pl.zombies()
	pl.learners()
	pl.restarts()
	pl.unique()
	slices.SortStableFunc(pl.p.Members, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	for i := range pl.p.Members {
		m := &pl.p.Members[i]
		if m.Startable && !m.Learner && slices.Contains(pl.ref.Membership.Voters, m.ID) {
			pl.p.Cluster.Startable++
		}
	}
	return pl.known()
}

// known checks the names of members in the options.
func (pl *planner) known() error {
	for _, n := range append(slices.Clone(pl.o.Gone), pl.o.Replace...) {
		if !slices.ContainsFunc(pl.p.Members, func(m Member) bool { return m.Named(n) }) {
			return refusal.New("the members are "+strings.Join(MemberNames(pl.p.Members), ", "),
				"%s is not a member of the cluster", n)
		}
	}
	return nil
}

// MemberNames lists the names of members, in their order.
func MemberNames(ms []Member) []string {
	var out []string
	for i := range ms {
		out = append(out, ms[i].Name)
	}
	return out
}

// Named reports whether n is the name of the member in the plan, its server name or its ID.
func (m *Member) Named(n string) bool { return m.Name == n || m.NodeName == n || m.ID.String() == n }

// member gathers what is known about a configured member.
func (pl *planner) member(id dumplog.ID, learner bool) Member {
	m := Member{ID: id, Learner: learner, PeerURLs: []string{}}
	for _, f := range pl.witnesses() {
		if row := rowOf(f, id); row != nil {
			if m.NodeName == "" {
				m.NodeName = row.Name
			}
			if len(m.PeerURLs) == 0 {
				m.PeerURLs = row.PeerURLs
			}
			if len(m.ClientURLs) == 0 {
				m.ClientURLs = row.ClientURLs
			}
		}
	}
	if f := pl.ownSource(id); f != nil {
		m.Name, m.Source = f.Name, f.Name
	}
	if m.Name == "" {
		m.Name = m.NodeName
	}
	if m.Name == "" {
		m.Name = id.String()
	}
	return m
}

// witnesses are the facts of this cluster, the most reliable first.
func (pl *planner) witnesses() []*evidence.Facts {
	out := []*evidence.Facts{pl.ref, pl.best}
	for i := range pl.r.Members {
		if f := &pl.r.Members[i]; f.ClusterID == pl.best.ClusterID {
			out = append(out, f)
		}
	}
	return out
}

func rowOf(f *evidence.Facts, id dumplog.ID) *dumpdb.Member {
	for i := range f.Membership.Members {
		if dumplog.ID(f.Membership.Members[i].ID) == id {
			return &f.Membership.Members[i]
		}
	}
	return nil
}

// judge decides what is done to a configured member.
func (pl *planner) judge(m *Member) {
	if m.Source == "" {
		pl.judgeAbsent(m)
		return
	}
	f := pl.facts(m.Source)
	m.Applied = f.AppliedIndex
	if f.DB != nil && f.DB.CurrentRevision != nil {
		m.Revision = *f.DB.CurrentRevision
	}
	if r := pl.ranks[m.Source]; r != nil {
		m.Lacks = r.Lacks.CommittedEntries
	}
	m.Obstacle, m.NotStartable = pl.obstacle(m.Source)
	m.Startable = m.Obstacle == ""
	if m.Source == pl.p.Best.Name {
		m.Action, m.Why = Best, pl.p.Best.Why
		return
	}
	if why := pl.mustReplace(m, f); why != "" {
		m.Action, m.Why = Replace, why
		return
	}
	if mends := pl.mends(m.Source); len(mends) > 0 {
		m.Action, m.Why = Start, strings.Join(mends, "; ")+"; it catches up once it runs"
		return
	}
	m.Action, m.Why = Keep, "no problem found in comparison with "+pl.p.Best.Name
	if slices.Contains(pl.p.Best.Equals, m.Source) {
		m.Why = "its content is that of " + pl.p.Best.Name
	}
	for i := range pl.r.Findings {
		if fd := &pl.r.Findings[i]; fd.Class == check.ClassLagging && slices.Contains(fd.Members, m.Source) {
			m.Why = fd.Title + "; it catches up once it runs"
			if pl.p.Verdict.Class == check.ClassMembership {
				m.Action = Start
			}
		}
	}
}

func (pl *planner) judgeAbsent(m *Member) {
	m.Obstacle, m.NotStartable = ObstacleNotGiven, "its data dir is not among the sources"
	switch {
	case pl.dead[m.ID]:
		m.Action, m.Why = Remove, "it never started, and counts in the majority all the same"
	case m.Learner:
		m.Action, m.Why = Keep, "a learner whose data dir is not among the sources: not judged"
	case pl.gone(m):
		m.Action, m.Why = Replace, "its data dir is lost"
	case pl.r.Verdict.Health == check.Healthy,
		pl.p.Verdict.Class == check.ClassMembership: // the findings are not about content
		m.Action, m.Why = Keep, "its data dir is not among the sources: not judged"
	default:
		m.Action, m.Why = Replace, "its data dir is not among the sources: it could not be judged, so it is reseeded too"
	}
}

func (pl *planner) gone(m *Member) bool { return slices.ContainsFunc(pl.o.Gone, m.Named) }

// mustReplace says why a member among the sources cannot stay as it is, "" when it can.
func (pl *planner) mustReplace(m *Member, f *evidence.Facts) string {
	r := pl.ranks[m.Source]
	switch {
	case slices.ContainsFunc(pl.o.Replace, m.Named):
		return "chosen with --replace"
	case pl.gone(m):
		return "its data dir is given up"
	case m.Obstacle != "":
		return m.NotStartable
	case pl.p.Verdict.Cause == cause.DataDirClonedRunningTwice && len(pl.copiesOf(m.ID)) > 1:
		return fmt.Sprintf("two processes ran under its ID (%s): what they acknowledged contradicts each other",
			strings.Join(pl.copiesOf(m.ID), ", "))
	case r != nil && r.Lacks.CommittedEntries > 0, r != nil && r.Unique.CommittedEntries > 0:
		return strings.Join(r.Reasons, ", ")
	}
	for i := range pl.r.Findings {
		fd := &pl.r.Findings[i]
		if fd.Severity.Rank() >= check.Error.Rank() && fd.Alone(m.Source) &&
			fd.Class != check.ClassMembership && fd.Class != "" {
			switch {
			case slices.Contains(pl.p.Best.Known, fd.Check) && slices.Contains(pl.p.Best.Equals, m.Source):
				continue // the best member shows the same, and their contents are equal
			case pl.onlyNeedsStart(fd):
				continue
			}
			return fd.Title
		}
	}
	if pl.differs(pl.best, f) || pl.foundToDiffer(m.Source) {
		return "its content differs from that of " + pl.p.Best.Name + " at the same applied index"
	}
	return ""
}

// foundToDiffer reports whether a comparison of all members shows a difference between this member and the best.
func (pl *planner) foundToDiffer(label string) bool {
	for i := range pl.r.Findings {
		f := &pl.r.Findings[i]
		if f.Severity.Rank() < check.Error.Rank() || f.Class != check.ClassDataDivergence &&
			f.Class != check.ClassLatentDivergence ||
			len(f.Members) < 2 {
			continue
		}
		if f.Apart(pl.p.Best.Name, label) {
			return true
		}
	}
	return false
}
