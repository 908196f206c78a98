package check

import (
	"fmt"
	"maps"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// Sources are the members under examination, with what their own files show.
type Sources []*evidence.Member

func (ss Sources) labels() []string {
	out := []string{}
	for _, m := range ss {
		out = append(out, m.Label())
	}
	return out
}

func (ss Sources) labelsOf(positions []int) []string {
	out := []string{}
	for _, i := range positions {
		out = append(out, ss[i].Label())
	}
	return out
}

func (ss Sources) labelsAt(set map[int]bool) []string {
	return ss.labelsOf(slices.Sorted(maps.Keys(set)))
}

func (ss Sources) byID(id dumplog.ID) *evidence.Member {
	for _, m := range ss {
		if m.MemberID == id {
			return m
		}
	}
	return nil
}

// SaidCommitted is the last entry that a running member among the sources says is committed, 0 without any. No log may
// hold it.
func (ss Sources) SaidCommitted() (index uint64) {
	for _, m := range ss {
		if m.Source.Kind == evidence.KindEndpoint {
			index = max(index, m.Commit)
		}
	}
	return index
}

// MemberName names a member by its label among the sources, else by its ID.
func (ss Sources) MemberName(id fmt.Stringer) string {
	for _, m := range ss {
		if m.MemberID != 0 && m.MemberID.String() == id.String() {
			return m.Label()
		}
	}
	return id.String()
}

// termAt returns the term of the entry at index in any log, 0 when none holds it.
func (ss Sources) termAt(index uint64) uint64 {
	for _, m := range ss {
		if !m.HasWAL() {
			continue
		}
		if t := m.WAL.TermAt(index); t > 0 {
			return t
		}
	}
	return 0
}

func (ss Sources) holderOf(index uint64) *evidence.Member {
	for _, m := range ss {
		if m.HasLog() && m.WAL.Summary.TermAt(index) != 0 {
			return m
		}
	}
	return nil
}

// holders names the members whose log still has the lost entries.
func (ss Sources) holders(of *evidence.Member, from, to uint64) string {
	if from == 0 {
		return ""
	}
	what := "them"
	if to == from {
		what = "it"
	}
	to = max(from, to)
	var names []string
	for _, m := range ss {
		if m == of || !m.HasLog() || m.ClusterID != of.ClusterID {
			continue
		}
		s := &m.WAL.Summary
		lacks := slices.ContainsFunc(s.Jumps, func(j dumplog.Jump) bool { return j.From <= to && j.To >= from }) ||
			slices.ContainsFunc(s.Damage, func(d *dumplog.DamageError) bool {
				return d.LostFrom > 0 && d.LostFrom <= to && (d.LostTo == 0 || d.LostTo >= from)
			})
		if s.FirstIndex <= from && s.LastIndex >= to && !lacks {
			names = append(names, m.Label())
		}
	}
	if len(names) == 0 {
		return "no other source holds " + what
	}
	return plural.List(names) + plural.Form(len(names), " holds ", " hold ") + what
}

// sharesLogWith returns a source of another cluster ID whose log holds requests of the member's log.
func (ss Sources) sharesLogWith(m *evidence.Member) *evidence.Member {
	for _, o := range ss {
		if o.ClusterID != 0 && o.ClusterID != m.ClusterID && sharesRequests(m, o) {
			return o
		}
	}
	return nil
}

func (ss Sources) longerCopy(m *evidence.Member) bool {
	return slices.ContainsFunc(ss, func(o *evidence.Member) bool {
		return o != m && o.MemberID == m.MemberID && o.LastIndex() > m.LastIndex()
	})
}

// restoredAlone returns a member that shows that the cluster is older than the restore that wrote m.
func (ss Sources) restoredAlone(m *evidence.Member) *evidence.Member {
	n := BootstrapVoters(m)
	if !Restored(m) || n == 0 {
		return nil
	}
	for _, o := range ss {
		if o == m || o.ClusterID != m.ClusterID || !o.HasLog() || o.Commit <= n {
			continue
		}
		if o.WAL.Summary.Start == dumplog.StartBootstrap {
			return o
		}
	}
	return nil
}

// anyRestored reports whether the log of any member shows that the cluster was restored from a backup.
func (ss Sources) anyRestored() bool {
	for _, m := range ss {
		if Restored(m) {
			return true
		}
	}
	return false
}

// appliedByAll is the index that all of them have certainly applied.
func (ss Sources) appliedByAll(at []int) uint64 {
	low := ss[at[0]].AppliedMin
	for _, pos := range at {
		low = min(low, ss[pos].AppliedMin)
	}
	return low
}

// newestConfiguration is the member with the newest raft configuration. One that may lack conf changes comes after all
// others.
func (ss Sources) newestConfiguration() *evidence.Member {
	var best *evidence.Member
	for _, m := range ss {
		if !m.Membership.RaftKnown || len(m.Membership.Voters) == 0 || !m.HasWAL() {
			continue
		}
		if best == nil || newerConfiguration(m, best) {
			best = m
		}
	}
	return best
}

// knowsOlder reports whether the source of that voter ends before the newest configuration change.
func (ss Sources) knowsOlder(newest *evidence.Member, id string) bool {
	at := confIndex(newest).Index
	for _, m := range ss {
		if m.MemberID.String() == id {
			return m.Commit < at
		}
	}
	return false
}

// configuredWith names the sources whose configuration has that voter.
func (ss Sources) configuredWith(voter dumplog.ID) (labels []string) {
	for _, m := range ss {
		if m.Membership.RaftKnown && slices.Contains(m.Membership.Voters, voter) {
			labels = append(labels, m.Label())
		}
	}
	return labels
}

// atHand reports whether the member's data dir is among the sources.
func (ss Sources) atHand(id dumplog.ID) bool {
	return slices.ContainsFunc(ss, func(m *evidence.Member) bool { return m.MemberID == id && m.HasWAL() })
}

// named reports whether any source names the member in its log, its configuration or its member lists.
func (ss Sources) named(id dumplog.ID) bool {
	return slices.ContainsFunc(ss, func(m *evidence.Member) bool {
		if m.MemberID == id || m.Membership.Knows(id) {
			return true
		}
		if !m.HasWAL() {
			return false
		}
		if changedMember(m, id) {
			return true
		}
		return slices.ContainsFunc(m.WAL.Summary.Snapshots, func(s dumplog.SnapshotRecord) bool {
			return s.ConfState != nil && (slices.Contains(s.ConfState.Voters, id) ||
				slices.Contains(s.ConfState.Learners, id))
		})
	})
}

// unknownMembers lists the IDs in meta/confState of a member that no source names anywhere else.
func (ss Sources) unknownMembers(m *evidence.Member) []string {
	cs := m.DB.Meta.ConfState
	var out []string
	for _, ids := range [][]dumpdb.ID{cs.Voters, cs.Learners, cs.VotersOutgoing, cs.LearnersNext} {
		for _, id := range ids {
			if !ss.named(dumplog.ID(id)) && !slices.Contains(out, id.String()) {
				out = append(out, id.String())
			}
		}
	}
	return out
}

// lastChangeOf is the last addition or removal of a member in any log up to an index, nil when no log holds one.
func (ss Sources) lastChangeOf(id string, applied uint64) *evidence.ConfEntry {
	var last *evidence.ConfEntry
	for _, m := range ss {
		if !m.HasWAL() {
			continue
		}
		for i := range m.WAL.Conf {
			c := &m.WAL.Conf[i]
			if c.Change.NodeID.String() == id && c.Index <= min(applied, m.Commit) && !c.Refused &&
				c.Change.Type != dumplog.ConfChangeUpdateNode && (last == nil || c.Index > last.Index) {
				last = c
			}
		}
	}
	return last
}

// elected returns the leader of each term for which the logs hold the votes of a majority.
func (ss Sources) elected() map[uint64]dumplog.ID {
	votes := map[uint64]map[dumplog.ID]int{}
	var newest *evidence.Member
	seen := map[dumplog.ID]bool{}
	for _, m := range ss {
		if !m.HasWAL() || m.MemberID == 0 || seen[m.MemberID] {
			continue
		}
		seen[m.MemberID] = true
		if newest == nil || m.Commit > newest.Commit {
			newest = m
		}
		for _, v := range m.WAL.Summary.Votes {
			if votes[v.Term] == nil {
				votes[v.Term] = map[dumplog.ID]int{}
			}
			votes[v.Term][v.For]++
		}
	}
	out := map[uint64]dumplog.ID{}
	if newest == nil || len(newest.Membership.Voters) == 0 {
		return out
	}
	for term, by := range votes {
		for id, n := range by {
			if id != 0 && n >= newest.Membership.Quorum() {
				out[term] = id
			}
		}
	}
	return out
}

// backups are the sources that are backups and could be opened.
func (ss Sources) backups() []*evidence.Member {
	var out []*evidence.Member
	for _, m := range ss {
		if (m.Source.Kind == evidence.KindBackup || m.Source.Kind == evidence.KindEndpoint) && m.DB != nil {
			out = append(out, m)
		}
	}
	return out
}

// segmentSize is the size with which the member's server creates segments, according to its own log. If that ends with
// a closed segment, the logs of the other members show it.
func (ss Sources) segmentSize(m *evidence.Member) int64 {
	size := int64(dumplog.SegmentLimit)
	for _, o := range ss {
		if o.HasWAL() && o.ClusterID == m.ClusterID && o.WAL.Summary.SegmentSize() > 0 {
			size = min(size, o.WAL.Summary.SegmentSize())
		}
	}
	segs := m.WAL.Summary.Segments
	for _, g := range segs[:len(segs)-1] {
		if g.Size < dumplog.SegmentLimit { // a closed segment also holds a part of the last append
			size = min(size, g.Size-g.Size/8)
		}
	}
	return size
}

// leaseRow is the member's row of a lease by its ID in text, nil when there is none.
func (ss Sources) leaseRow(pos int, id string) *dumpdb.Lease {
	m := ss[pos]
	for i := range m.DB.Leases {
		if m.DB.Leases[i].ID.String() == id {
			return &m.DB.Leases[i]
		}
	}
	return nil
}

// unreadableDBs names databases that could not be opened for another reason than damage.
func (ss Sources) unreadableDBs() string {
	s := ""
	for _, m := range ss {
		for _, p := range m.Problems {
			if p.Part == "db" && m.DB == nil {
				s += fmt.Sprintf("%s: %s: %v; ", m.Label(), p.File, p.Err)
			}
		}
	}
	return s
}

// unreadableParts lists members with a part that could not be read at all, so that it is not checked.
func (ss Sources) unreadableParts(part string) string {
	s := ""
	for _, m := range ss {
		for _, p := range m.Problems {
			if p.Part == part {
				s += fmt.Sprintf("%s: %s: %v; ", m.Label(), p.File, p.Err)
			}
		}
	}
	return s
}

// prefixText says whether the other logs show that the member's log is a prefix of theirs.
func (ss Sources) prefixText(m *evidence.Member) string {
	for _, o := range ss {
		if s := &o.WAL; o != m && s.Summary.FirstIndex <= m.LastIndex() && s.Summary.LastIndex > m.LastIndex() {
			return "as far as the logs overlap they agree, so it holds a prefix of what the others have"
		}
	}
	return "no other log reaches back to its end, so the files do not show that it holds a prefix of what the others " +
		"have"
}
