package replay

import (
	"encoding/base64"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// lastStates is the last state in the log of what no key shows: alarms, passwords, and whether auth was on where a
// request was proposed.
type lastStates struct {
	alarms    map[apply.Alarm]AlarmState
	passwords map[string][]PasswordSet
	stamped   map[dumplog.ID]uint64
	switches  []AuthSwitch
	// alarmChanges are the entries that change an alarm, bounded, alarmNow what they say since the last gap of the log.
	// last is the index of the entry before.
	alarmChanges  []alarmChange
	alarmNow      map[apply.Alarm]bool
	alarmsLeftOut bool
	last          uint64
}

// AlarmState is the last entry about one alarm of one member.
type AlarmState struct {
	Member dumplog.ID
	Type   int32
	Index  uint64
	Raised bool
}

// PasswordSet is an entry that gives a user a password.
type PasswordSet struct {
	Index uint64
	// Hash is the bcrypt hash in the entry (3.5 and later). It is nil if the password was in clear: every member then
	// hashes it with a different salt.
	Hash []byte
	// Add is true for a new user, which is refused if the user exists; ByRoot when user root asked for it.
	Add, ByRoot bool
}

// AuthSwitch is an entry that turns auth on or off. AuthRevision is the one in its header.
type AuthSwitch struct {
	Index, AuthRevision uint64
	On, ByRoot          bool
}

// Bounds for hostile logs; a log that holds more is of no use here.
const (
	maxUsersKept    = 10_000
	maxPasswordSets = 100
	maxSwitches     = 10_000
)

func newLastStates() *lastStates {
	return &lastStates{alarms: map[apply.Alarm]AlarmState{}, passwords: map[string][]PasswordSet{},
		stamped: map[dumplog.ID]uint64{}, alarmNow: map[apply.Alarm]bool{}}
}

func (s *Survey) noteState(index uint64, r *dumplog.Request) {
	t := s.state
	if index != t.last+1 {
		clear(t.alarmNow)
	}
	t.last = index
	if r.Header.AuthRevision > 0 {
		if p := s.Proposer(r.Header.ID); p != 0 {
			t.stamped[p] = index
		}
	}
	switch {
	case r.Alarm != nil && apply.ChangesAlarms(r.Alarm):
		k := apply.Alarm{Member: r.Alarm.MemberID, Type: r.Alarm.Alarm}
		if _, ok := t.alarms[k]; ok || len(t.alarms) < maxUsersKept {
			t.alarms[k] = AlarmState{Member: k.Member, Type: k.Type, Index: index, Raised: r.Alarm.Action == 1}
		}
		t.noteAlarm(index, k, r.Alarm.Action == 1)
	case r.Kind == dumplog.KindAuthEnable, r.Kind == dumplog.KindAuthDisable:
		if len(t.switches) < maxSwitches {
			t.switches = append(t.switches, AuthSwitch{Index: index, AuthRevision: r.Header.AuthRevision,
				On: r.Kind == dumplog.KindAuthEnable, ByRoot: r.Header.Username == apply.Root})
		}
	case r.Auth != nil && !r.Auth.NoPassword &&
		(r.Kind == dumplog.KindAuthUserAdd || r.Kind == dumplog.KindAuthUserChangePassword):
		t.password(index, r)
	}
}

func (t *lastStates) password(index uint64, r *dumplog.Request) {
	a := r.Auth
	list, ok := t.passwords[a.User]
	if !ok && len(t.passwords) >= maxUsersKept {
		return
	}
	p := PasswordSet{Index: index, Add: r.Kind == dumplog.KindAuthUserAdd, ByRoot: r.Header.Username == apply.Root}
	if a.HashedPassword != "" {
		if b, err := base64.StdEncoding.DecodeString(a.HashedPassword); err == nil {
			p.Hash = b
		}
	}
	if len(list) >= maxPasswordSets {
		list = list[1:]
	}
	t.passwords[a.User] = append(list, p)
}

// Passwords are the entries up to index that give a user a password, in order.
func (s *Survey) Passwords(user string, index uint64) []PasswordSet {
	if s.state == nil {
		return nil
	}
	list := s.state.passwords[user]
	for n, p := range list {
		if p.Index > index {
			return list[:n]
		}
	}
	return list
}

// Alarms are the last entries about each alarm, in no order.
func (s *Survey) Alarms() []AlarmState {
	if s.state == nil {
		return nil
	}
	var out []AlarmState
	for _, a := range s.state.alarms {
		out = append(out, a)
	}
	return out
}

// LastStamp is the last entry that the member proposed while auth was on at it; 0 when there is none.
func (s *Survey) LastStamp(id dumplog.ID) uint64 {
	if s.state == nil {
		return 0
	}
	return s.state.stamped[id]
}

// StampAt is the auth revision that a member stamped on the last of its proposals up to an index, 0 for none.
func (s *Survey) StampAt(id dumplog.ID, index uint64) (rev uint64) {
	for _, st := range s.Stamps[id] {
		if st.Index <= index {
			rev = st.AuthRevision
		}
	}
	return rev
}

// AuthSwitches are the entries that turn auth on or off, in order.
func (s *Survey) AuthSwitches() []AuthSwitch {
	if s.state == nil {
		return nil
	}
	return s.state.switches
}
