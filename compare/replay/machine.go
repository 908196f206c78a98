package replay

import (
	"context"
	"errors"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/memory"
	"github.com/etcd-medic/etcd-medic/release"
)

// MachineOptions say how a Machine executes.
type MachineOptions struct {
	// Version is that of the servers whose rules apply.
	Version release.Version
	// Single is true for a cluster of one member: there the member that applies is always the one with the waiting
	// client.
	Single bool
	// Values fetches the value of a key's record; ok is false when it cannot be read. Compares for greater and less
	// need it.
	Values func(key string, at dumpdb.Rev) (value []byte, ok bool)
}

// Machine executes committed entries on one complete state, by the rules of package apply. It keeps keys, leases,
// alarms and auth (keys with a hash of their value; of millions of them, those that do not fit in memory are kept in
// memory.Area); the caller stores the values.
type Machine struct{ s *apply.Model }

// Change is one record of bucket key that an entry writes.
type Change struct {
	Rev                    dumpdb.Rev
	Key                    string
	Delete                 bool
	Create, Version, Lease int64
	// Value is the value in the request. If From is set, the value is that of the record there (ignore_value).
	Value []byte
	From  dumpdb.Rev
	// Sum is a hash of the value, equal for equal values.
	Sum uint64
}

// ErrKeysUnread says that a database has a record that does not decode, or pages that cannot be read.
var ErrKeysUnread = errors.New("bucket key cannot be read in full")

// NewMachine reads the starting state from a database, nil for the empty state of a new cluster. The error is
// ErrKeysUnread for one that is damaged.
func NewMachine(ctx context.Context, db *dumpdb.DB, o MachineOptions) (*Machine, error) {
	s := apply.NewModel(o.Version)
	s.Keys = apply.NewRoom(memory.Replay(), memory.Area()).NewKeys(0)
	if s.ClientWaits = release.No; o.Single {
		s.ClientWaits = release.Yes
	}
	if o.Values != nil {
		s.Value = func(key string, at apply.Rev) ([]byte, bool) { return o.Values(key, dumpdb.Rev(at)) }
	}
	m := &Machine{&s}
	if db == nil {
		return m, nil
	}
	if err := m.readState(db, o.Version); err != nil {
		return nil, err
	}
	for row := range rowsOf(db, dumpdb.Rev{}) {
		switch {
		case row.err != nil:
			return nil, row.err
		case row.hole || row.bad:
			return nil, ErrKeysUnread
		case ctx.Err() != nil:
			return nil, ctx.Err()
		}
		s.Revision = max(s.Revision, row.rev.Main)
		if row.key != "" { // the mark of restore --bump-revision has no key
			absorb(s.Keys, &row.record)
		}
	}
	return m, nil
}

// readState reads everything but the keys.
func (m *Machine) readState(db *dumpdb.DB, v release.Version) error {
	auth, err1 := db.Auth()
	leases, err2 := db.Leases()
	alarms, err3 := db.Alarms()
	meta, err4 := db.MetaBucket()
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return err
	}
	s := m.s
	s.Auth = authFromDB(&auth, v)
	s.Auth.Known = true
	s.Auth.Revision = max(s.Auth.Revision, 1)
	for _, l := range leases {
		s.Leases[int64(l.ID)] = &apply.Lease{TTL: l.TTL}
	}
	for _, a := range alarms {
		s.Alarms[apply.Alarm{Member: dumplog.ID(a.MemberID), Type: a.Type}] = struct{}{}
	}
	s.MixAlarms()
	s.Compact = meta.CompactRev()
	s.Revision = max(s.Revision, s.Compact)
	return nil
}

// Clone returns an independent machine in the same state.
func (m *Machine) Clone() *Machine {
	s := m.s.Clone()
	return &Machine{&s}
}

// Revision is the current revision, CompactRevision the compact revision (-1 when never compacted).
func (m *Machine) Revision() int64 { return m.s.Revision }

// CompactRevision is the revision below which history is gone, -1 when it was never compacted.
func (m *Machine) CompactRevision() int64 { return m.s.Compact }

// Keys is the number of live keys.
func (m *Machine) Keys() int { return m.s.Keys.Len() }

// SkipTo raises the current revision without writing anything, so that revisions after a skipped entry keep their
// numbers.
func (m *Machine) SkipTo(rev int64) { m.s.Revision = max(m.s.Revision, rev) }

// Apply executes a step that Prepare made of the present state. It returns the records written, and how the entry
// ended.
func (m *Machine) Apply(st Step) (Outcome, []Change) {
	e, r := st.Entry.Entry, st.Entry.Req
	if !apply.WritesKeys(r.Kind) {
		result, reason := m.s.Execute(r, e.Term, e.Index)
		return Outcome{State: stateOf(result), Reason: reason}, nil
	}
	o := Outcome{State: st.State, Reason: st.Reason}
	if st.State != Applied {
		return o, nil
	}
	keys := m.s.Take(r, apply.Effect{Result: apply.Applied, Writes: st.writes})
	if len(keys) == 0 {
		return o, nil
	}
	o.Rev = m.s.Revision
	return o, m.changes(st.writes, keys)
}

// changes are the records of the newest revision.
func (m *Machine) changes(ws []apply.Write, keys []apply.Key) []Change {
	out := make([]Change, len(ws))
	for i, w := range ws {
		out[i] = Change{Rev: dumpdb.Rev{Main: m.s.Revision, Sub: int64(i)}, Key: w.Key, Delete: w.Delete}
		if !w.Delete {
			c, k := &out[i], &keys[i]
			c.Create, c.Version, c.Lease, c.Value, c.From, c.Sum = k.Create, k.Version, w.Lease, w.Value,
				dumpdb.Rev(w.From), w.Sum
		}
	}
	return out
}

// Key returns the hash of a live key's value and its lease; ok is false when there is no such key.
func (m *Machine) Key(key string) (sum uint64, lease int64, ok bool) {
	k := m.s.Keys.Get(key)
	if k == nil {
		return 0, 0, false
	}
	return k.Sum, k.Lease, true
}

// Live visits all live keys in order: key, revision of the newest record, hash of its value and lease.
func (m *Machine) Live(use func(key string, at dumpdb.Rev, sum uint64, lease int64) bool) {
	m.s.Keys.All(func(k *apply.Key) bool {
		return use(k.Name, dumpdb.Rev{Main: k.Mod, Sub: k.Sub}, k.Sum, k.Lease)
	})
}

// stateOf is the state of an entry if only the rules are known.
func stateOf(r apply.Result) State {
	switch r {
	case apply.Applied:
		return Applied
	case apply.Refused:
		return Refused
	}
	return NoEffect
}
