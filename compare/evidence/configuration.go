package evidence

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// ConfigurationCurrent reports whether Voters and Learners are raft's configuration at the commit index. They follow
// from the newest ConfState and the known conf changes. Conf changes may be missing if the log has a gap between the
// two, or ends before entries that the database has applied.
func (m *Member) ConfigurationCurrent() bool {
	if !m.Membership.RaftKnown {
		return false
	}
	from := m.ConfStateIndex()
	return from >= m.Commit || m.logWhole(from, m.Commit)
}

// logWhole reports whether the log has all entries above from up to to.
func (m *Member) logWhole(from, to uint64) bool {
	if !m.HasWAL() {
		return false
	}
	s := &m.WAL.Summary
	if s.FirstIndex == 0 || s.FirstIndex > from+1 || s.LastIndex < to {
		return false
	}
	for _, d := range s.Damage {
		if d.LostFrom > 0 && d.LostFrom <= to && (d.LostTo == 0 || d.LostTo > from) {
			return false
		}
	}
	for _, j := range s.Jumps {
		if j.To > from {
			return false
		}
	}
	return true
}

// ListComparable reports whether bucket members must agree with raft's configuration. Up to 3.4 a conf change does not
// move the consistent index, so the bucket may have a change that the log lost with its end, or lack the newest one
// where a meta page of the database is damaged, maybe the newer.
func (m *Member) ListComparable() bool {
	if !m.ConfigurationCurrent() {
		return false
	}
	if m.Version.Follows(release.IndexWithEveryEntry) && !m.IndexFrozen() {
		return true
	}
	logLost := slices.ContainsFunc(m.WAL.Summary.Damage, func(d *dumplog.DamageError) bool {
		return d.Kind == dumplog.DamageTornTail || d.LostFrom > 0 && d.LostTo == 0
	})
	return !logLost && (m.DB == nil || !slices.ContainsFunc(m.DB.Damage, func(d *dumpdb.DamageError) bool {
		return d.Kind == dumpdb.DamageMeta
	}))
}

// ConfStateIndex returns the index of the newest ConfState of this source, 0 if there is none.
func (m *Member) ConfStateIndex() (from uint64) {
	see := func(index uint64, cs *dumplog.ConfState) {
		if cs != nil && len(cs.Voters) > 0 {
			from = max(from, index)
		}
	}
	if m.HasWAL() {
		for i := range m.WAL.Summary.Snapshots {
			see(m.WAL.Summary.Snapshots[i].Index, m.WAL.Summary.Snapshots[i].ConfState)
		}
	}
	if f := m.NewestSnap(); f != nil {
		see(f.Index, &f.ConfState)
	}
	return from
}
