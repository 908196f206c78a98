package apply

import (
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// Model is the state of one member against which requests are evaluated, as far as it is known. The caller fills it,
// for example from a database.
type Model struct {
	// Version is the server's version.
	Version release.Version
	// Revision and Compact are the current and the compact revision; Compact is -1 if the member never compacted.
	Revision, Compact int64
	Keys              *Keys
	Leases            map[int64]*Lease
	Alarms            Alarms
	Auth              *Auth
	// StateKnown is true if leases, alarms and the compact revision are complete, KeysKnown if the live keys are.
	StateKnown, KeysKnown bool
	// LastCompact is the highest compact revision that the member reached, for models without their own.
	LastCompact int64
	// AlarmsUnsure is true if it is unknown which alarms are active.
	AlarmsUnsure bool
	// AlarmsMixed is true if alarms of both types were on since any was.
	AlarmsMixed bool
	// Loose is true if revisions are counted without records and the effect of an entry was uncertain.
	Loose bool
	// ClientWaits says whether the clients of requests wait on this member, as they do on the only member of a cluster.
	ClientWaits release.Answer
	// Value returns the value of a key's record, for compares that need more than its hash; nil if there are no
	// records.
	Value func(key string, at Rev) (value []byte, ok bool)
	// Passes reports whether auth certainly permits a request, although users and roles are not known at each entry;
	// nil if it is not known of any request.
	Passes func(r *dumplog.Request) bool
}

// Lease is a lease, with TTLs in seconds as in the log.
type Lease struct {
	TTL, Remaining int64
	// Term and Granted are those of the entry that granted the lease. Checkpoint is the index of the last entry that
	// set Remaining. 0 means unknown.
	Term, Granted, Checkpoint uint64
	// Unsure is set if it is unknown whether the lease still exists.
	Unsure bool
}

// NewModel returns the state of a new cluster.
func NewModel(v release.Version) Model {
	return Model{Version: v, Revision: 1, Compact: -1, LastCompact: -1, Keys: NewKeys(), Leases: map[int64]*Lease{},
		Alarms: Alarms{},
		Auth:   NewAuth(v), StateKnown: true, KeysKnown: true}
}

// Clone returns a copy.
func (m *Model) Clone() Model {
	c := *m
	c.Keys, c.Auth = m.Keys.Clone(), m.Auth.Clone()
	c.Alarms = Alarms{}
	for a := range m.Alarms {
		c.Alarms[a] = struct{}{}
	}
	c.Leases = make(map[int64]*Lease, len(m.Leases))
	for id, l := range m.Leases {
		own := *l
		c.Leases[id] = &own
	}
	return c
}

// follows reports whether the server certainly follows a rule.
func (m *Model) follows(r *release.Rule) bool { return m.Version.Has(r).Certain() }

// HasLease reports whether the server knows a lease. Lease 0 means no lease and is always allowed.
func (m *Model) HasLease(id int64) release.Answer {
	l := m.Leases[id]
	switch {
	case id == 0:
		return release.Yes
	case l == nil && m.StateKnown:
		return release.No
	case l == nil || l.Unsure || m.MayHaveForgotten(id):
		return release.Unknown
	}
	return release.Yes
}

// MayHaveForgotten reports whether the server may not know a lease that is in its database.
func (m *Model) MayHaveForgotten(id int64) bool {
	return id < 0 && !m.follows(release.LeasesOfAllIDs)
}

// rights returns the permission rules on this state.
func (m *Model) rights() *Rights {
	return &Rights{Auth: m.Auth, KeysOf: m.Keys.OfLease, KeepsRanges: m.KeepsRanges()}
}

// KeepsRanges reports whether the member checks the ranges of a transaction. Every release does if the client waits;
// newer releases always do.
func (m *Model) KeepsRanges() release.Answer {
	if m.follows(release.TxnRangesKept) {
		return release.Yes
	}
	return m.ClientWaits
}

// alarmSure reports whether a refusal by an alarm is certain. Up to 3.5 a running server swaps its appliers when an
// alarm is raised or cleared: raising the second type of alarm disables the first, and clearing one of them both, until
// the next start.
func (m *Model) alarmSure() bool {
	return m.StateKnown && (m.follows(release.AlarmKeepsChecks) || !m.AlarmsMixed)
}

// Alarm raises or clears an alarm.
func (m *Model) Alarm(r *dumplog.AlarmRequest) (changed bool) {
	changed = m.Alarms.Apply(r)
	m.MixAlarms()
	return changed
}

// MixAlarms notes whether alarms of both types are on.
func (m *Model) MixAlarms() {
	m.AlarmsMixed = len(m.Alarms) > 0 && (m.AlarmsMixed || m.Alarms.On(AlarmNoSpace) && m.Alarms.On(AlarmCorrupt))
}

// ChecksPermissions is false if an alarm that was raised at run time may have disabled the permission checks.
func (m *Model) ChecksPermissions() bool {
	return len(m.Alarms) == 0 || m.follows(release.AlarmKeepsChecks)
}

// authSure reports whether a refusal by auth is certain. A refusal for an old auth revision is certain if the member's
// own is known. A user's permissions are not certain, since servers cache them.
func (m *Model) authSure(r Reason) bool {
	return m.ChecksPermissions() && r == ReasonOldAuth && m.Auth.Known
}

// rightsSure reports whether the rights of a permitted request are certain. If users and auth revision are unknown at
// this entry, only a request without a user is, while auth is off, and one that passes all the same.
func (m *Model) rightsSure(r *dumplog.Request) bool {
	return m.Auth.Known && !(m.Auth.Enabled && m.Auth.Unclear(r.Header.Username)) ||
		r.Header.AuthRevision == 0 && !m.Auth.Enabled || m.passes(r)
}

// passes reports whether auth permits a request although users and roles are unknown at this entry.
func (m *Model) passes(r *dumplog.Request) bool {
	return !m.Auth.Known && m.Passes != nil && m.Passes(r)
}
