package plan

import (
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/cause"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// Who is who: a data dir belongs to the member whose ID its log carries, whatever it is called. One ID may come in
// several copies, and one name or address may have had several members, one after the other.

// roster decides who is a member of the cluster that is kept, and what is done to whom.
type roster struct {
	*sources
	p    *Plan
	o    Options
	best *evidence.Facts
	// ref are the facts of the member with raft's newest configuration.
	ref *evidence.Facts
	// dead are the voters that never started, by ID.
	dead map[dumplog.ID]bool
	// used are the sources that belong to a member of the configuration.
	used map[string]bool
}

// configured reports whether a source's own ID is in the newest configuration of the cluster that is kept.
func (ro *roster) configured(f *evidence.Facts) bool {
	ms := &ro.ref.Membership
	return f.ClusterID == ro.best.ClusterID &&
		(slices.Contains(ms.Voters, f.MemberID) || slices.Contains(ms.Learners, f.MemberID))
}

// ownSource is the data dir of a configured member, nil when it is not among the sources. Of several copies the kept
// one counts, else the one with the best rank.
func (ro *roster) ownSource(id dumplog.ID) *evidence.Facts {
	var found *evidence.Facts
	for i := range ro.r.Members {
		f := &ro.r.Members[i]
		switch {
		case f.MemberID != id || f.ClusterID != ro.best.ClusterID || !ro.isDataDir(f):
		case f == ro.best, found == nil:
			found = f
		case found != ro.best && ro.rankOf(f) < ro.rankOf(found):
			found = f
		}
	}
	return found
}

// copiesOf are all data dirs that carry the ID of a configured member.
func (ro *roster) copiesOf(id dumplog.ID) []string {
	var out []string
	for i := range ro.r.Members {
		if f := &ro.r.Members[i]; f.MemberID == id && f.ClusterID == ro.best.ClusterID && ro.isDataDir(f) {
			out = append(out, f.Name)
		}
	}
	return out
}

// inPlaceOf finds a data dir in the place of an absent member's: it has the same name or peer URL, and its member is
// not in the configuration. It is nil when there is none.
func (ro *roster) inPlaceOf(m *Member) *evidence.Facts {
	for i := range ro.r.Members {
		f := &ro.r.Members[i]
		if !ro.isDataDir(f) || ro.configured(f) || ro.used[f.Name] {
			continue
		}
		if m.NodeName != "" && (f.NodeName == m.NodeName || f.Name == m.NodeName) {
			return f
		}
		if row := rowOf(f, f.MemberID); row != nil &&
			slices.ContainsFunc(row.PeerURLs, func(u string) bool { return slices.Contains(m.PeerURLs, u) }) {
			return f
		}
	}
	return ro.leftOver(m)
}

// leftOver is the one data dir that does not tell whose it is, where one member alone has none: what else should it be?
func (ro *roster) leftOver(m *Member) (found *evidence.Facts) {
	for i := range ro.r.Members {
		f := &ro.r.Members[i]
		switch {
		case !ro.isDataDir(f) || f.MemberID != 0 || f.ClusterID != 0:
		case found != nil:
			return nil
		default:
			found = f
		}
	}
	ms := &ro.ref.Membership
	for _, id := range append(slices.Clone(ms.Voters), ms.Learners...) {
		if id != m.ID && ro.ownSource(id) == nil {
			return nil
		}
	}
	return found
}

// judgeMisplaced is judge for a member in whose place there is the data dir of another one.
func (ro *roster) judgeMisplaced(m *Member, f *evidence.Facts) {
	switch {
	case f.MemberID == 0:
		m.NotStartable = "its data dir does not show which member it belongs to: " + ro.damage(f.Name)
	case f.ClusterID != ro.best.ClusterID:
		m.NotStartable = fmt.Sprintf("in its place is the data dir of another cluster (%s)", f.ClusterID)
	case slices.Contains(ro.ref.Membership.Removed, f.MemberID):
		m.NotStartable = fmt.Sprintf("in its place is the data dir of member %s, which the cluster removed",
			f.MemberID)
	default:
		m.NotStartable = fmt.Sprintf("in its place is the data dir of member %s, which the cluster does not know",
			f.MemberID)
	}
	m.Action, m.Why, m.Obstacle = Replace, m.NotStartable, ObstacleMisplaced
	if m.Learner {
		m.Action = Remove
	}
}

// notInConfiguration is a data dir whose member the newest configuration does not know.
func (ro *roster) notInConfiguration(f *evidence.Facts) Member {
	m := Member{Name: f.Name, NodeName: f.NodeName, ID: f.MemberID, Source: f.Name, PeerURLs: []string{},
		Applied: f.AppliedIndex, Obstacle: ObstacleNotMember, NotStartable: "it is not a member of the cluster"}
	if urls := f.Membership.PeerURLs[f.MemberID]; len(urls) > 0 {
		m.PeerURLs = urls
	}
	if row := rowOf(f, f.MemberID); row != nil {
		m.PeerURLs, m.ClientURLs = row.PeerURLs, row.ClientURLs
	}
	if f.DB != nil && f.DB.CurrentRevision != nil {
		m.Revision = *f.DB.CurrentRevision
	}
	switch {
	case f.MemberID == 0:
		m.Action, m.Why = Retire, "it does not tell whose data dir it is: "+ro.damage(f.Name)
		m.Obstacle, m.NotStartable = ObstacleNoIdentity, m.Why
		m.NodeName, m.PeerURLs, m.ClientURLs = "", []string{}, nil
	case f.ClusterID != ro.best.ClusterID:
		m.Action, m.Why = Join, fmt.Sprintf("it runs as a separate cluster (cluster ID %s)", f.ClusterID)
	case ro.configured(f) && ro.p.Verdict.Class == check.ClassForeignCluster:
		m.Action = Retire
		m.Why = "a separate cluster with the name and peer URL of " + ro.ownSource(f.MemberID).Name +
			": move its data dir aside, and add it later with another name and URL"
		m.Obstacle, m.NotStartable = ObstacleSecondCopy, "its ID is that of another member"
		m.NodeName, m.PeerURLs, m.ClientURLs = "", []string{}, nil // the kept member answers under these
	case ro.configured(f):
		m.Action = Retire
		m.Why = fmt.Sprintf("another copy of the data dir of %s, with its member ID; a process that runs on it "+
			"breaks what the other one promised", ro.ownSource(f.MemberID).Name)
		m.Obstacle, m.NotStartable = ObstacleSecondCopy, "it is a second copy of one member"
		m.NodeName, m.PeerURLs, m.ClientURLs = "", []string{}, nil // under these the first one answers
	case ro.succeeded(&m):
		m.Action, m.Why = Retire, "the cluster removed this member, and another one has its name or peer URL: keep "+
			"the data dir, and no server on it"
		m.Obstacle, m.NotStartable = ObstacleNameTaken, "another member has its name or peer URL"
	case slices.ContainsFunc(ro.o.Replace, m.Named):
		m.Action, m.Why = Join, "chosen with --replace: it comes back empty, under a new ID"
	case slices.Contains(ro.ref.Membership.Removed, f.MemberID):
		m.Action, m.Why = Retire, "the cluster removed this member; a process that still runs on its data dir only "+
			"disturbs"
	default:
		m.Action, m.Why = Retire, "the cluster has no such member: a process that still runs on this data dir only "+
			"disturbs"
	}
	return m
}

// ofOtherClusters are the data dirs of other clusters, whose content is lost.
func (ro *roster) ofOtherClusters() []string {
	var out []string
	for i := range ro.p.Members {
		if m := &ro.p.Members[i]; m.Source != "" {
			// Twins of the cluster that is kept have its ID and another history.
			twin := m.Obstacle == ObstacleSecondCopy && ro.p.Verdict.Class == check.ClassForeignCluster
			if f := ro.facts(m.Source); twin || f.ClusterID != ro.best.ClusterID && f.ClusterID != 0 {
				out = append(out, m.Source)
			}
		}
	}
	return out
}

// otherBackups are members that were restored from another backup than the kept one.
func (ro *roster) otherBackups() []string {
	var out []string
	for i := range ro.p.Members {
		if m := &ro.p.Members[i]; ro.p.Verdict.Cause == cause.RestoreFromDifferentSnapshots && m.Action == Replace &&
			m.Source != "" {
			out = append(out, m.Source)
		}
	}
	return out
}

// succeeded reports whether another member has the name or a peer URL of this one now.
func (ro *roster) succeeded(m *Member) bool {
	return slices.ContainsFunc(ro.p.Members, func(o Member) bool {
		return o.ID != m.ID && o.Action != Retire &&
			(o.NodeName != "" && o.NodeName == m.NodeName ||
				slices.ContainsFunc(o.PeerURLs, func(u string) bool { return slices.Contains(m.PeerURLs, u) }))
	})
}

// unique renames members of the plan so that no two have one name: steps refer to names.
func (ro *roster) unique() {
	seen := map[string]bool{}
	for _, withSource := range []bool{true, false} { // a source keeps its label
		for i := range ro.p.Members {
			m := &ro.p.Members[i]
			if (m.Source != "") != withSource {
				continue
			}
			if seen[m.Name] {
				m.Name = m.ID.String()
			}
			seen[m.Name] = true
		}
	}
}
