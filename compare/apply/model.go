package apply

import (
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// Model is the state of one member that requests are evaluated against, as far as it is known. Nothing in it comes from
// a database by itself: whoever has one fills it.
type Model struct {
	// Version is that of the server.
	Version release.Version
	// Revision and Compact are the current and the compact revision, -1 when never compacted.
	Revision, Compact int64
	Keys              *Keys
	Leases            map[int64]*Lease
	Alarms            Alarms
	Auth              *Auth
	// StateKnown is true when leases, alarms and the compact revision are complete, KeysKnown when the live keys are.
	StateKnown, KeysKnown bool
	// LastCompact is the highest compact revision that the member came to, for models whose own is not known.
	LastCompact int64
	// AlarmsUnsure is true where it is not known which alarms are on.
	AlarmsUnsure bool
	// Loose is true where revisions are counted without records and the effect of an entry was not certain.
	Loose bool
	// ClientWaits tells whether the clients of requests wait on this member, as they do on the only member of a
	// cluster.
	ClientWaits release.Answer
	// Value returns the value of a key's record, for compares that need more than its hash; nil where there are none.
	Value func(key string, at Rev) (value []byte, ok bool)
}

// Lease is a lease; TTLs in seconds as the log asks for them.
type Lease struct {
	TTL, Remaining int64
	// Term and Granted are the entry that granted it, Checkpoint the index of the last one that set Remaining; 0 is
	// unknown.
	Term, Granted, Checkpoint uint64
	// Unsure is set when it is not known whether the lease still exists.
	Unsure bool
}

// NewModel is the state of a new cluster.
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

// follows tells whether the server certainly follows a rule.
func (m *Model) follows(r *release.Rule) bool { return m.Version.Has(r).Certain() }

// HasLease tells whether the server knows a lease; lease 0 stands for none, which every request can name.
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

// MayHaveForgotten tells whether the server may not know a lease that its database holds.
func (m *Model) MayHaveForgotten(id int64) bool {
	return id < 0 && !m.follows(release.LeasesOfAllIDs)
}

// rights are the permission rules on this state.
func (m *Model) rights() *Rights {
	return &Rights{Auth: m.Auth, KeysOf: m.Keys.OfLease, KeepsRanges: m.KeepsRanges()}
}

// KeepsRanges tells whether the member checks the ranges of a transaction: all releases do where the client waits,
// newer ones everywhere.
func (m *Model) KeepsRanges() release.Answer {
	if m.follows(release.TxnRangesKept) {
		return release.Yes
	}
	return m.ClientWaits
}

// alarmSure tells whether a refusal by an alarm is certain. Up to 3.5 the wrappers of a running server change when an
// alarm is raised or cleared, and clearing one of two lifts both until the next start.
func (m *Model) alarmSure() bool {
	return m.StateKnown && (m.follows(release.AlarmKeepsChecks) || !m.Alarms.On(AlarmNoSpace) ||
		!m.Alarms.On(AlarmCorrupt))
}

// ChecksPermissions is false where an alarm that was raised at run time may have taken the checks of permission away.
func (m *Model) ChecksPermissions() bool {
	return len(m.Alarms) == 0 || m.follows(release.AlarmKeepsChecks)
}

// authSure tells whether a refusal by auth is certain: one for an old auth revision is when the member's own is known.
// Which permissions a user had is not certain, since servers keep them in a cache.
func (m *Model) authSure(r Reason) bool {
	return m.ChecksPermissions() && r == ReasonOldAuth && m.Auth.Known
}

// rightsSure tells whether the rights of a request that passes are certain: where users and auth revision are not known
// at this entry, only a request without a user while auth is off.
func (m *Model) rightsSure(h dumplog.Header) bool {
	return m.Auth.Known || h.AuthRevision == 0 && !m.Auth.Enabled
}
