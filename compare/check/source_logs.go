package check

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// sourceLogs answers what the logs of the sources hold.
type sourceLogs Sources

func (ss Sources) logs() sourceLogs { return sourceLogs(ss) }

// termAt returns the term of the entry at index in any log, 0 when none holds it.
func (ss sourceLogs) termAt(index uint64) uint64 {
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

func (ss sourceLogs) holderOf(index uint64) *evidence.Member {
	for _, m := range ss {
		if m.HasLog() && m.WAL.Summary.TermAt(index) != 0 {
			return m
		}
	}
	return nil
}

// holders names the members whose log still has the lost entries.
func (ss sourceLogs) holders(of *evidence.Member, from, to uint64) string {
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

func (ss sourceLogs) longerCopyOf(m *evidence.Member) bool {
	return slices.ContainsFunc(ss, func(o *evidence.Member) bool {
		return o != m && o.MemberID == m.MemberID && o.LastIndex() > m.LastIndex()
	})
}

// restoredAlone returns a member that shows that the cluster is older than the restore that wrote m, and may have
// continued without it.
func (ss sourceLogs) restoredAlone(m *evidence.Member) *evidence.Member {
	n := BootstrapVoters(m)
	if !Restored(m) || n == 0 || ss.restoredAsWhole(m) {
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

// restoredAsWhole reports whether the restore that wrote m was that of a cluster: with the members that share its first
// request, m is a majority of the voters, without which the cluster from before cannot have continued.
func (ss sourceLogs) restoredAsWhole(m *evidence.Member) bool {
	ids := map[dumplog.ID]bool{}
	for _, o := range ss {
		if Restored(o) && o.ClusterID == m.ClusterID && o.WAL.First.ID == m.WAL.First.ID {
			ids[o.MemberID] = true
		}
	}
	return m.WAL.First.ID != 0 && uint64(len(ids)) > BootstrapVoters(m)/2
}

// majorityNotRestored reports whether a majority of the voters that a restore lists did not begin with a restore: the
// restore was then not that of the cluster.
func (ss sourceLogs) majorityNotRestored(m *evidence.Member) bool {
	ids := map[dumplog.ID]bool{}
	for _, o := range ss {
		if o.ClusterID == m.ClusterID && o.HasLog() && o.WAL.Summary.Start == dumplog.StartBootstrap {
			ids[o.MemberID] = true
		}
	}
	return uint64(len(ids)) > BootstrapVoters(m)/2
}

// anyRestored reports whether the log of any member shows that the cluster was restored from a backup.
func (ss sourceLogs) anyRestored() bool {
	for _, m := range ss {
		if Restored(m) {
			return true
		}
	}
	return false
}

// lastChangeOf is the last addition or removal of a member in any log up to an index, nil when no log holds one.
func (ss sourceLogs) lastChangeOf(id string, applied uint64) *evidence.ConfEntry {
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

// segmentSize is the size with which the member's server creates segments, according to its own log. If that ends with
// a closed segment, the logs of the other members show it.
func (ss sourceLogs) segmentSize(m *evidence.Member) int64 {
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

// prefixText says whether the other logs show that the member's log is a prefix of theirs.
func (ss sourceLogs) prefixText(m *evidence.Member) string {
	for _, o := range ss {
		if s := &o.WAL; o != m && s.Summary.FirstIndex <= m.LastIndex() && s.Summary.LastIndex > m.LastIndex() {
			return "as far as the logs overlap they agree, so it holds a prefix of what the others have"
		}
	}
	return "no other log reaches back to its end, so the files do not show that it holds a prefix of what the others " +
		"have"
}
