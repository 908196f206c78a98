package apply

import (
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// Execute executes a request that does not write keys. term and index are those of its entry.
func (m *Model) Execute(r *dumplog.Request, term, index uint64) (Result, Reason) {
	switch {
	case r.Compaction != nil:
		return refusedOr(m.Compaction(r))
	case r.LeaseGrant != nil:
		return refusedOr(m.Grant(r, term, index))
	case r.LeaseCheckpoint != nil:
		m.Checkpoint(r.LeaseCheckpoint, index)
	case r.Alarm != nil:
		if m.Alarm(r.Alarm) {
			return Applied, ReasonNone
		}
	case r.Kind.ChangesAuth():
		wasOn := m.Auth.Enabled
		raised, reason := m.Auth.Apply(r)
		switch {
		case reason != ReasonNone:
			return Refused, reason
		case raised || m.Auth.Enabled != wasOn:
			return Applied, ReasonNone
		}
	}
	return NoEffect, ReasonNone
}

func refusedOr(reason Reason) (Result, Reason) {
	if reason != ReasonNone {
		return Refused, reason
	}
	return Applied, ReasonNone
}

// Compaction executes a compaction, or returns why it is refused.
func (m *Model) Compaction(r *dumplog.Request) Reason {
	if v := m.Alarms.Check(m.Version, r); v.Refused() {
		return v.Reason
	}
	reason := CheckCompaction(r.Compaction, m.Compact, m.Revision)
	if reason == ReasonNone {
		m.Compact = r.Compaction.Revision
	}
	return reason
}

// Grant grants a lease, or returns why not. If a lease may have existed before, it is granted. One that an alarm may
// have refused may exist.
func (m *Model) Grant(r *dumplog.Request, term, index uint64) Reason {
	g := r.LeaseGrant
	if v := m.Alarms.Check(m.Version, r); v.Refused() {
		if m.Leases[g.ID] == nil && !m.alarmSure() {
			m.Leases[g.ID] = &Lease{TTL: g.TTL, Term: term, Granted: index, Unsure: true}
		}
		return v.Reason
	}
	reason := CheckGrant(g, m.Leases[g.ID] != nil && m.StateKnown)
	if reason == ReasonNone {
		m.Leases[g.ID] = &Lease{TTL: g.TTL, Term: term, Granted: index}
	}
	return reason
}

// Checkpoint records remaining TTLs. A server ignores an unknown lease (server/lease/lessor.go, Checkpoint).
func (m *Model) Checkpoint(r *dumplog.LeaseCheckpointRequest, index uint64) {
	for _, c := range r.Checkpoints {
		if l := m.Leases[c.ID]; l != nil {
			l.Remaining, l.Checkpoint = c.RemainingTTL, index
		}
	}
}

// Take executes the effect that Evaluate returned. It returns the keys after each record that it writes, with only the
// name set for a tombstone.
func (m *Model) Take(r *dumplog.Request, e Effect) []Key {
	if e.Result != Applied {
		return nil
	}
	if r.LeaseRevoke != nil {
		delete(m.Leases, r.LeaseRevoke.ID)
	}
	if len(e.Writes) == 0 {
		return nil
	}
	m.Revision++
	return m.Keys.Write(e.Writes, Key{Mod: m.Revision})
}
