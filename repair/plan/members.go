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
func (ro *roster) cluster() {
	ro.ref = ro.best
	for i := range ro.r.Members {
		f := &ro.r.Members[i]
		if f.ClusterID == ro.best.ClusterID && len(f.Membership.Voters) > 0 && f.Commit > ro.ref.Commit &&
			ro.damage(f.Name) == "" {
			ro.ref = f
		}
	}
	c := Cluster{ID: ro.best.ClusterID, Version: ro.best.ClusterVersion, Voters: len(ro.ref.Membership.Voters),
		Alarms: ro.best.Alarms}
	c.Quorum = c.Voters/2 + 1
	if ro.best.DB.StorageVersion != nil {
		c.Storage = *ro.best.DB.StorageVersion
	}
	if e := ro.best.WroteBy.Etcd; e != nil {
		c.Minor = release.Of(*e).Minor()
	}
	if ro.best.Auth != nil {
		c.Auth = ro.best.Auth.Enabled
	}
	// From 3.6 on a server drops the start of its in-memory log every 100 entries, before that with each snapshot it
	// takes.
	c.LogStartsAtOne = !c.Has(release.LogTrimmedOften).Certain()
	if ro.best.WAL != nil {
		for _, s := range ro.best.WAL.Snapshots {
			c.LogStartsAtOne = c.LogStartsAtOne && s.Index == 0
		}
	}
	ro.p.Cluster = c
}

// members lists every member of the configuration and every source that should be one, with what is done to it.
func (ro *roster) members() error {
	ids := append(slices.Clone(ro.ref.Membership.Voters), ro.ref.Membership.Learners...)
	slices.Sort(ids)
	for _, id := range ids {
		m := ro.member(id, slices.Contains(ro.ref.Membership.Learners, id))
		if f := ro.inPlaceOf(&m); m.Source == "" && f != nil {
			m.Name, m.Source = f.Name, f.Name
			ro.judgeMisplaced(&m, f)
		} else {
			ro.judge(&m)
		}
		ro.used[m.Source] = m.Source != ""
		ro.p.Members = append(ro.p.Members, m)
	}
	if ro.best.MemberID == 0 || ro.p.Member(ro.p.Best.Name) == nil {
		return refusal.New("give the data dirs of its members, or choose one of them with --best",
			"%s is not a member of the newest configuration that its cluster committed", ro.p.Best.Name)
	}
	for i := range ro.r.Members {
		f := &ro.r.Members[i]
		if !ro.used[f.Name] && ro.isDataDir(f) {
			ro.p.Members = append(ro.p.Members, ro.notInConfiguration(f))
		}
	}
	ro.zombies()
	ro.learners()
	ro.restarts()
	ro.unique()
	slices.SortStableFunc(ro.p.Members, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	for i := range ro.p.Members {
		m := &ro.p.Members[i]
		if m.Startable && !m.Learner && slices.Contains(ro.ref.Membership.Voters, m.ID) {
			ro.p.Cluster.Startable++
		}
	}
	return ro.known()
}

// known checks the names of members in the options.
func (ro *roster) known() error {
	for _, n := range append(slices.Clone(ro.o.Gone), ro.o.Replace...) {
		if !slices.ContainsFunc(ro.p.Members, func(m Member) bool { return m.Named(n) }) {
			return refusal.New("the members are "+strings.Join(MemberNames(ro.p.Members), ", "),
				"%s is not a member that the sources name", n)
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
func (ro *roster) member(id dumplog.ID, learner bool) Member {
	m := Member{ID: id, Learner: learner, PeerURLs: []string{}}
	for _, f := range ro.witnesses() {
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
	if f := ro.ownSource(id); f != nil {
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
func (ro *roster) witnesses() []*evidence.Facts {
	out := []*evidence.Facts{ro.ref, ro.best}
	for i := range ro.r.Members {
		if f := &ro.r.Members[i]; f.ClusterID == ro.best.ClusterID {
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
func (ro *roster) judge(m *Member) {
	if m.Source == "" {
		ro.judgeAbsent(m)
		return
	}
	f := ro.facts(m.Source)
	m.Applied = f.AppliedIndex
	if f.DB != nil && f.DB.CurrentRevision != nil {
		m.Revision = *f.DB.CurrentRevision
	}
	if r := ro.ranks[m.Source]; r != nil {
		m.Lacks = r.Lacks.CommittedEntries
	}
	m.Obstacle, m.NotStartable = ro.obstacle(m.Source)
	m.Startable = m.Obstacle == ""
	if m.Source == ro.p.Best.Name {
		m.Action, m.Why = Best, ro.p.Best.Why
		return
	}
	if why := ro.mustReplace(m, f); why != "" {
		m.Action, m.Why = Replace, why
		return
	}
	if mends := ro.mends(m.Source); len(mends) > 0 {
		m.Action, m.Why = Start, strings.Join(mends, "; ")+"; it catches up once it runs"
		return
	}
	m.Action, m.Why = Keep, "no problem found in comparison with "+ro.p.Best.Name
	if slices.Contains(ro.p.Best.Equals, m.Source) {
		m.Why = "its content is that of " + ro.p.Best.Name
	}
	for i := range ro.r.Findings {
		if fd := &ro.r.Findings[i]; fd.Class == check.ClassLagging && slices.Contains(fd.Members, m.Source) {
			m.Why = fd.Title + "; it catches up once it runs"
			if ro.p.Verdict.Class == check.ClassMembership {
				m.Action = Start
			}
		}
	}
}

func (ro *roster) judgeAbsent(m *Member) {
	m.Obstacle, m.NotStartable = ObstacleNotGiven, "its data dir is not among the sources"
	switch {
	case ro.dead[m.ID]:
		m.Action, m.Why = Remove, "it never started, and counts in the majority all the same"
	case m.Learner:
		m.Action, m.Why = Keep, "a learner whose data dir is not among the sources: not judged"
	case ro.gone(m):
		m.Action, m.Why = Replace, "its data dir is lost"
	case ro.r.Verdict.Health == check.Healthy,
		ro.p.Verdict.Class == check.ClassMembership: // the findings are not about content
		m.Action, m.Why = Keep, "its data dir is not among the sources: not judged"
	default:
		m.Action, m.Why = Replace, "its data dir is not among the sources: it could not be judged, so it is reseeded "+
			"too"
	}
}

func (ro *roster) gone(m *Member) bool { return slices.ContainsFunc(ro.o.Gone, m.Named) }

// mustReplace says why a member among the sources cannot stay as it is, "" when it can.
func (ro *roster) mustReplace(m *Member, f *evidence.Facts) string {
	r := ro.ranks[m.Source]
	switch {
	case slices.ContainsFunc(ro.o.Replace, m.Named):
		return "chosen with --replace"
	case ro.gone(m):
		return "its data dir is given up"
	case m.Obstacle != "":
		return m.NotStartable
	case ro.p.Verdict.Cause == cause.DataDirClonedRunningTwice && len(ro.copiesOf(m.ID)) > 1:
		return fmt.Sprintf("two processes ran under its ID (%s): what they acknowledged contradicts each other",
			strings.Join(ro.copiesOf(m.ID), ", "))
	case r != nil && r.Lacks.CommittedEntries+r.Surplus > 0, r != nil && r.Unique.CommittedEntries > 0:
		return strings.Join(r.Reasons, "; ")
	}
	for i := range ro.r.Findings {
		fd := &ro.r.Findings[i]
		if fd.Severity.Rank() >= check.Error.Rank() && fd.Alone(m.Source) &&
			fd.Class != check.ClassMembership && fd.Class != "" {
			switch {
			case slices.Contains(ro.p.Best.Known, fd.Check) && slices.Contains(ro.p.Best.Equals, m.Source):
				continue // the best member shows the same, and their contents are equal
			case ro.onlyNeedsStart(fd):
				continue
			}
			return fd.Title
		}
	}
	content := "its content differs from that of " + ro.p.Best.Name
	switch at := f.AppliedIndex == ro.best.AppliedIndex; {
	case differs(ro.best, f), at && ro.foundToDiffer(m.Source):
		return content + " at the same applied index"
	case ro.foundToDiffer(m.Source):
		return content + fmt.Sprintf(" in writes that both have applied (it up to entry %d, %s up to %d)",
			f.AppliedIndex, ro.p.Best.Name, ro.best.AppliedIndex)
	}
	return ""
}

// foundToDiffer reports whether a comparison of all members shows a difference between this member and the best.
func (ro *roster) foundToDiffer(label string) bool {
	for i := range ro.r.Findings {
		f := &ro.r.Findings[i]
		if f.Severity.Rank() < check.Error.Rank() || f.Class != check.ClassDataDivergence &&
			f.Class != check.ClassLatentDivergence ||
			len(f.Members) < 2 {
			continue
		}
		if f.Apart(ro.p.Best.Name, label) {
			return true
		}
	}
	return false
}
