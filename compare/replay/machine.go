package replay

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// MachineOptions say how a Machine executes.
type MachineOptions struct {
	// Version is that of the servers whose rules apply.
	Version release.Version
	// Single is true for a cluster of one member: there the member that applies is always the one with the waiting client.
	Single bool
	// Values fetches the value of a key's record; ok is false when it can not be had. Compares for greater and less need it.
	Values func(key string, at dumpdb.Rev) (value []byte, ok bool)
}

// Machine executes committed entries on one complete state, by the rules that Run predicts with. It keeps keys, leases, alarms and
// auth in memory (keys with a hash of their value); who uses it keeps the bytes.
type Machine struct{ s *sim }

// Change is one record of bucket key that an entry writes.
type Change struct {
	Rev                    dumpdb.Rev
	Key                    string
	Delete                 bool
	Create, Version, Lease int64
	// Value are the bytes of the request. Where From is set, the value is that of the record there (ignore_value).
	Value []byte
	From  dumpdb.Rev
	// Sum is a hash of the value, equal for equal values.
	Sum uint64
}

// NewMachine reads the state to start from out of a database, which must be sound; nil is the empty state of a new cluster.
func NewMachine(ctx context.Context, db *dumpdb.DB, o MachineOptions) (*Machine, error) {
	s := &sim{m: &evidence.Member{AppliedMin: math.MaxUint64}, version: o.Version, rev: 1, compact: -1, keys: newKeyModel(), leases: map[int64]*leaseState{},
		alarms: apply.Alarms{}, touched: map[string]bool{}, auth: apply.NewAuth(o.Version), baseKnown: true, kvKnown: true,
		values: o.Values, single: o.Single, strips: !o.Version.Has(release.TxnRangesKept).Certain() && !o.Single}
	m := &Machine{s}
	if db == nil {
		return m, nil
	}
	auth, err1 := db.Auth()
	leases, err2 := db.Leases()
	alarms, err3 := db.Alarms()
	meta, err4 := db.MetaBucket()
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	s.auth = authFromDB(&auth, o.Version)
	s.auth.Known = true
	s.auth.Revision = max(s.auth.Revision, 1)
	for _, l := range leases {
		s.leases[int64(l.ID)] = &leaseState{ttl: l.TTL}
	}
	for _, a := range alarms {
		s.alarms[apply.Alarm{Member: dumplog.ID(a.MemberID), Type: a.Type}] = struct{}{}
	}
	s.compact = meta.CompactRev()
	s.rev = max(s.rev, s.compact)
	for row := range rowsOf(db, dumpdb.Rev{}) {
		switch {
		case row.err != nil:
			return nil, row.err
		case row.hole || row.bad:
			return nil, errors.New("bucket key can not be read in full")
		case ctx.Err() != nil:
			return nil, ctx.Err()
		}
		s.rev = max(s.rev, row.rev.Main)
		if row.key != "" { // the mark of restore --bump-revision has no key
			s.keys.absorb(&row.record)
		}
	}
	return m, nil
}

// Clone is a machine of its own in the same state.
func (m *Machine) Clone() *Machine {
	s := *m.s
	s.keys = m.s.keys.clone()
	s.auth = m.s.auth.Clone()
	s.alarms = maps.Clone(m.s.alarms)
	s.touched = maps.Clone(m.s.touched)
	s.revoked, s.ends = maps.Clone(m.s.revoked), maps.Clone(m.s.ends)
	s.authSeen, s.authAll, s.leaseSeen = slices.Clip(m.s.authSeen), slices.Clip(m.s.authAll), slices.Clip(m.s.leaseSeen)
	s.leases = make(map[int64]*leaseState, len(m.s.leases))
	for id, l := range m.s.leases {
		own := *l
		s.leases[id] = &own
	}
	return &Machine{&s}
}

// Revision is the current revision, CompactRevision the compact revision (-1 when never compacted).
func (m *Machine) Revision() int64 { return m.s.rev }

// CompactRevision is the revision below which history is gone, -1 when it was never compacted.
func (m *Machine) CompactRevision() int64 { return m.s.compact }

// Keys is the number of live keys.
func (m *Machine) Keys() int { return m.s.keys.tree.Len() }

// SkipTo raises the current revision without writing anything, so that revisions behind a skipped entry keep their numbers.
func (m *Machine) SkipTo(rev int64) { m.s.rev = max(m.s.rev, rev) }

// Apply executes a step that Prepare made of the present state. It returns the records written, and how the entry ended.
func (m *Machine) Apply(st Step) (Outcome, []Change) {
	s, r := m.s, st.Entry.Req
	if !writesKeys(r.Kind) {
		return m.small(&item{entry: *st.Entry.Entry, req: r}), nil
	}
	o := Outcome{State: st.State, Reason: st.Reason}
	if st.State == Applied && r.LeaseRevoke != nil {
		delete(s.leases, r.LeaseRevoke.ID)
	}
	if st.State != Applied || len(st.writes) == 0 {
		return o, nil
	}
	s.rev++
	o.Rev = s.rev
	return o, m.write(st.writes)
}

// write enters the records of one revision into the model.
func (m *Machine) write(ws []write) []Change {
	out := make([]Change, len(ws))
	for i, w := range ws {
		c := Change{Rev: dumpdb.Rev{Main: m.s.rev, Sub: int64(i)}, Key: w.key, Delete: w.del}
		if w.del {
			m.s.keys.remove(w.key)
			out[i] = c
			continue
		}
		k := keyState{key: w.key, create: m.s.rev, mod: m.s.rev, sub: int64(i), version: 1, lease: w.lease, vhash: w.vhash}
		if old := m.s.keys.get(w.key); old != nil {
			k.create, k.version = old.create, old.version+1
		}
		m.s.keys.put(k)
		c.Create, c.Version, c.Lease, c.Value, c.From, c.Sum = k.create, k.version, w.lease, w.value, w.from, w.vhash
		out[i] = c
	}
	return out
}

// small executes what changes the small buckets.
func (m *Machine) small(it *item) Outcome {
	r := it.req
	if r.Alarm != nil {
		if m.s.alarms.Apply(r.Alarm) {
			return Outcome{State: Applied}
		}
		return Outcome{State: NoEffect}
	}
	if !r.Kind.ChangesAuth() {
		return m.s.other(it)
	}
	wasOn := m.s.auth.Enabled
	effective, reason := m.s.auth.Apply(r)
	switch {
	case reason != ReasonNone:
		return Outcome{State: Refused, Reason: reason}
	case effective || m.s.auth.Enabled != wasOn:
		return Outcome{State: Applied}
	}
	return Outcome{State: NoEffect}
}

// Key returns the hash of a live key's value and its lease; ok is false when there is no such key.
func (m *Machine) Key(key string) (sum uint64, lease int64, ok bool) {
	k := m.s.keys.get(key)
	if k == nil {
		return 0, 0, false
	}
	return k.vhash, k.lease, true
}

// Live visits all live keys in order: key, revision of the newest record, hash of its value and lease.
func (m *Machine) Live(use func(key string, at dumpdb.Rev, sum uint64, lease int64) bool) {
	m.s.keys.tree.Ascend(func(k *keyState) bool {
		return use(k.key, dumpdb.Rev{Main: k.mod, Sub: k.sub}, k.vhash, k.lease)
	})
}
