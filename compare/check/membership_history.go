package check

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// Membership answers from logs and configurations who was a member of the cluster, and when.
type Membership struct {
	Members Sources
	Replay  *replay.Result
}

// confEntries are the conf changes that the member's own log holds, and those of the others' logs at indexes that it
// lacks, in index order, with those that every server refuses. Where no log has an index, a change may be missing; see
// confChangesSinceGap.
func (mb *Membership) confEntries(m *evidence.Member) []evidence.ConfEntry {
	out := slices.Clone(m.WAL.Conf)
	if mb.Replay == nil || len(mb.Replay.LogDiffs) > 0 {
		return out
	}
	have := map[uint64]bool{}
	for _, o := range mb.Members {
		if o == m || !o.HasLog() || o.ClusterID != m.ClusterID {
			continue
		}
		for _, c := range o.WAL.Conf {
			if !m.WAL.Holds(c.Index) && c.Index <= o.Commit && !have[c.Index] {
				have[c.Index] = true
				out = append(out, c)
			}
		}
	}
	slices.SortFunc(out, func(a, b evidence.ConfEntry) int { return cmp.Compare(a.Index, b.Index) })
	return out
}

// confChanges are confEntries without those that every server refuses.
func (mb *Membership) confChanges(m *evidence.Member) []evidence.ConfEntry {
	return slices.DeleteFunc(mb.confEntries(m), func(c evidence.ConfEntry) bool { return c.Refused })
}

// confChangesSinceGap are the conf changes above the last entry that the member has applied and that no log holds: what
// they say of the member list, no entry out of sight has changed since.
func (mb *Membership) confChangesSinceGap(m *evidence.Member) []evidence.ConfEntry {
	unseen := mb.lastUnseen(m)
	return slices.DeleteFunc(mb.confChanges(m), func(c evidence.ConfEntry) bool { return c.Index <= unseen })
}

// lastUnseen returns the highest index that the member has applied and whose entry confChanges cannot know, although it
// knows older ones; 0 if there is none.
func (mb *Membership) lastUnseen(m *evidence.Member) (index uint64) {
	if mb.Replay == nil || len(mb.Replay.LogDiffs) > 0 {
		for _, j := range m.WAL.Summary.Jumps {
			if j.From <= m.AppliedMax {
				index = max(index, j.To)
			}
		}
		for _, d := range m.WAL.Summary.Damage {
			if d.LostFrom <= m.AppliedMax {
				index = max(index, d.LostTo)
			}
		}
		return index
	}
	for _, g := range mb.Replay.Gaps {
		if g.From <= m.AppliedMax {
			index = max(index, g.To)
		}
	}
	if last := mb.Replay.Last; m.AppliedMin > last {
		return m.AppliedMin
	}
	return index
}

// removedBy returns the source that shows the removal of m, m itself included.
func (mb *Membership) removedBy(m *evidence.Member) (*evidence.Member, removal) {
	for _, o := range mb.Members {
		if o.ClusterID != m.ClusterID || mb.forcedOut(o, m) {
			continue
		}
		for _, c := range confChanges(o) {
			if c.Change.NodeID == m.MemberID && c.Index <= o.Commit && !c.Refused &&
				c.Change.Type == dumplog.ConfChangeRemoveNode && !addedAfter(o, m.MemberID, c.Index) {
				return o, removal{Evidence{Member: o.Label(), File: c.Pos.Segment, Offset: Int64(c.Pos.Offset),
					Field: fmt.Sprintf("entry %d/%d", c.Term, c.Index), Key: Bytes(m.MemberID.String()),
					Observed: "removed", Expected: "a member", Show: showLog(o, c.Index)},
					At{Term: c.Term, Index: c.Index}}
			}
		}
		if slices.Contains(o.Membership.Removed, m.MemberID) && !slices.Contains(o.Membership.Voters, m.MemberID) &&
			!slices.Contains(o.Membership.Learners, m.MemberID) {
			return o, removal{Evidence: Evidence{Member: o.Label(), Bucket: "members_removed",
				Key: Bytes(m.MemberID.String()), Observed: "removed", Expected: "a member",
				Show: showDB(o, "members_removed")}}
		}
	}
	return nil, removal{}
}

// forcedOut reports whether a forced start in o's log removed m, which is not known to be replaced.
func (mb *Membership) forcedOut(o, m *evidence.Member) bool {
	if mb.Replay == nil {
		return false
	}
	for i := range mb.Replay.Forced {
		r := &mb.Replay.Forced[i]
		if mb.Members[r.Member] == o && slices.Contains(r.Removed, m.MemberID) && !mb.replaced(r, m) {
			return true
		}
	}
	return false
}

// replaced reports whether another member joined since at a peer URL of m, which a forced start removed: then m cannot
// continue as the old cluster at its place. The forced start replaced no committed entries either, as far as the logs
// of those that it removed show.
func (mb *Membership) replaced(r *replay.Forced, m *evidence.Member) bool {
	if disputed(mb.Replay, r.First) || mb.heldByMost(r) {
		return false
	}
	o := mb.Members[r.Member]
	ms, old := &o.Membership, slices.Concat(o.Membership.PeerURLs[m.MemberID], m.Membership.PeerURLs[m.MemberID])
	for id, urls := range ms.PeerURLs {
		if id != m.MemberID && slices.ContainsFunc(urls, func(u string) bool { return slices.Contains(old, u) }) &&
			(slices.Contains(ms.Voters, id) || slices.Contains(ms.Learners, id) || addedAfter(o, id, r.Last)) {
			return true
		}
	}
	return false
}

// heldByMost reports whether the logs of removed members hold an entry in the place of the first removal on a majority
// of the voters that there were: then it is committed, whether or not they know.
func (mb *Membership) heldByMost(r *replay.Forced) bool {
	holders := map[dumplog.ID]bool{}
	for _, m := range mb.Members {
		if slices.Contains(r.Removed, m.MemberID) && m.WAL.Holds(r.First) {
			holders[m.MemberID] = true
		}
	}
	return 2*len(holders) > len(r.Removed)+1
}

// replacedTail is the forced start that replaced entries at the end of m's log, nil if none did.
func (mb *Membership) replacedTail(m *evidence.Member) *replay.Forced {
	if mb.Replay == nil {
		return nil
	}
	for i := range mb.Replay.Forced {
		r := &mb.Replay.Forced[i]
		if slices.Contains(r.Removed, m.MemberID) && m.WAL.Holds(r.First) {
			return r
		}
	}
	return nil
}

// IsRemoved reports whether the source is the data dir of a member that was removed from its cluster. One that a forced
// start removed counts only if it was replaced: else it may continue as the old cluster.
func (mb *Membership) IsRemoved(m *evidence.Member) bool {
	if m.MemberID == 0 {
		return false
	}
	by, _ := mb.removedBy(m)
	return by != nil
}

// allRemoved reports whether none of the sources is the data dir of a member.
func (mb *Membership) allRemoved() bool {
	return !slices.ContainsFunc(mb.Members, func(m *evidence.Member) bool {
		return m.MemberID != 0 &&
			!mb.IsRemoved(m)
	})
}

// forcedBefore reports whether the member's log has a forced start at or before the index.
func (mb *Membership) forcedBefore(m *evidence.Member, index uint64) bool {
	return mb.Replay != nil && slices.ContainsFunc(mb.Replay.Forced, func(f replay.Forced) bool {
		return mb.Members[f.Member] == m && f.First <= index
	})
}

// inConfigurationOf reports whether raft's configuration on a member, if it is known, names another one.
func inConfigurationOf(m, other *evidence.Member) bool {
	raft := &m.Membership
	return raft.RaftKnown && (slices.Contains(raft.Voters, other.MemberID) ||
		slices.Contains(raft.Learners, other.MemberID))
}

// foundedHere reports whether the logs hold every entry from the bootstrap of the cluster to what m has applied, and it
// was not restored. Entries that no log holds may follow: they say nothing of a member that stopped before them.
func (mb *Membership) foundedHere(m *evidence.Member) bool {
	return mb.Replay != nil && mb.Replay.Covers(0, m.AppliedMax) && len(mb.Replay.LogDiffs) == 0 &&
		!mb.Members.logs().anyRestored() && slices.ContainsFunc(mb.Members, holdsBootstrap)
}

// wholeLog returns a source whose log holds every entry from the bootstrap of m's cluster to what m has applied, nil if
// there is none.
func (mb *Membership) wholeLog(m *evidence.Member) *evidence.Member {
	if !mb.foundedHere(m) {
		return nil
	}
	at := slices.IndexFunc(mb.Members, func(o *evidence.Member) bool {
		return o.ClusterID == m.ClusterID && holdsBootstrap(o) &&
			len(o.WAL.Summary.Jumps)+len(o.WAL.Summary.Damage) == 0 && o.WAL.Summary.FirstIndex == 1 &&
			o.LastIndex() >= m.AppliedMax
	})
	if at < 0 {
		return nil
	}
	return mb.Members[at]
}

// foundedAs reports whether the conf change that added the member contains the name, as those of a bootstrap do.
func (mb *Membership) foundedAs(m *evidence.Member, id dumplog.ID, name string) bool {
	return slices.ContainsFunc(mb.confChanges(m), func(c evidence.ConfEntry) bool {
		return c.Change.NodeID == id && c.Change.Member != nil && c.Change.Member.Name == name
	})
}

// hasRun reports whether a voter ever published itself, or is at hand with a log that it can be started with.
func (mb *Membership) hasRun(ms *evidence.Membership, id dumplog.ID) bool {
	if published(mb.Replay, ms, id) {
		return true
	}
	for _, m := range mb.Members {
		if m.MemberID == id && m.HasLog() {
			return true
		}
	}
	return false
}

// rowWritten returns the last entry that wrote the row of a current member into bucket members, 0 when the logs do not
// show that the row must exist. Every release writes it when it applies the addition of the member and when the member
// publishes its addresses, unless the row is there. Two such entries are required, because 3.5.0 to 3.5.2 may skip one
// after a crash.
func (mb *Membership) rowWritten(m *evidence.Member, id dumplog.ID) uint64 {
	ms := &m.Membership
	if mb.Replay == nil || mb.Replay.Survey == nil || len(mb.Replay.LogDiffs) > 0 || !m.ConfigurationCurrent() ||
		!slices.Contains(ms.Voters, id) && !slices.Contains(ms.Learners, id) {
		return 0
	}
	writes, last := 0, uint64(0)
	for _, c := range mb.confChangesSinceGap(m) {
		switch {
		case c.Change.NodeID != id || c.Index > m.Commit:
		case c.Change.Type == dumplog.ConfChangeRemoveNode:
			writes, last = 0, c.Index
		case c.Change.Type == dumplog.ConfChangeUpdateNode || c.Change.Member != nil && c.Change.Member.IsPromote:
			// neither makes a row nor takes it away
		case c.Index > m.AppliedMin: // a server that has not applied it may lack the row
			return 0
		case c.Change.Member != nil:
			writes, last = 1, c.Index
		}
	}
	published := uint64(0)
	for _, s := range mb.Replay.Survey.StartsFor(slices.Index(mb.Members, m), id) {
		if s.Index > last && s.Index <= m.AppliedMin {
			writes++
			published = s.Index
		}
	}
	if published == 0 || writes < 2 {
		return 0
	}
	return published
}

// sameConfChanges returns another member of the cluster whose confState is raft's configuration. No conf change may be
// between the applied indexes of the two. It is nil when there is none.
func (mb *Membership) sameConfChanges(m *evidence.Member) *evidence.Member {
	for _, o := range mb.Members {
		if o == m || !o.HasDB() || !o.HasLog() || o.ClusterID != m.ClusterID || o.DB.Meta.ConfState == nil ||
			!o.Version.Follows(release.TermInMeta) {
			continue
		}
		if o.ConfigurationCurrent() && storesConfiguration(o) && !mb.confChangeBetween(m, o) {
			return o
		}
	}
	return nil
}

// confChangeBetween reports whether a conf change may be between the applied indexes of two members, or of only one of
// them, on which a new cluster was forced that the other has not joined since.
func (mb *Membership) confChangeBetween(a, b *evidence.Member) bool {
	from, to := min(a.AppliedMin, b.AppliedMin), max(a.AppliedMax, b.AppliedMax)
	if mb.Replay == nil || !mb.Replay.Covers(from, to) || mb.forcedBefore(a, to) != mb.forcedBefore(b, to) &&
		!(inConfigurationOf(a, b) && inConfigurationOf(b, a)) {
		return true
	}
	return slices.ContainsFunc(mb.Members, func(m *evidence.Member) bool {
		return m.HasWAL() && slices.ContainsFunc(m.WAL.Conf,
			func(c evidence.ConfEntry) bool { return c.Index > from && c.Index <= to })
	})
}
