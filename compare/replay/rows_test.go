package replay

import (
	"fmt"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestRowTouches: an entry touches the rows that it names and no others; a deleted role touches every user.
func TestRowTouches(t *testing.T) {
	s := &Survey{rows: newRowTouches(5)}
	note := func(index uint64, r dumplog.Request) { s.rows.note(index, &r) }
	note(4, dumplog.Request{LeaseGrant: &dumplog.LeaseGrantRequest{ID: 7}})
	note(6, dumplog.Request{LeaseGrant: &dumplog.LeaseGrantRequest{ID: 8}})
	note(9, dumplog.Request{Alarm: &dumplog.AlarmRequest{Action: 1, MemberID: 0xa1, Alarm: 1}})
	note(10, dumplog.Request{Alarm: &dumplog.AlarmRequest{Action: 0}})
	note(12, dumplog.Request{Kind: dumplog.KindAuthUserAdd, Auth: &dumplog.AuthRequest{User: "u"}})
	note(14, dumplog.Request{Kind: dumplog.KindAuthRoleDelete, Auth: &dumplog.AuthRequest{Role: "r"}})
	note(16, dumplog.Request{Kind: dumplog.KindAuthEnable})
	for _, c := range []struct {
		row      Row
		from, to uint64
		want     uint64
	}{
		{Row{"lease", "7"}, 0, 20, 0}, // below what is kept
		{Row{"lease", "8"}, 5, 20, 6},
		{Row{"lease", "8"}, 6, 20, 0},
		{Row{"lease", "8"}, 2, 5, 0},
		{Row{"lease", "9"}, 5, 20, 0},
		{Row{"alarm", "a1 NOSPACE"}, 8, 9, 9},
		{Row{"alarm", "a2 NOSPACE"}, 5, 20, 0},
		{Row{"authUsers", "u"}, 5, 12, 12},
		{Row{"authUsers", "other"}, 5, 13, 0},
		{Row{"authUsers", "other"}, 13, 20, 14},
		{Row{"authRoles", "r"}, 5, 20, 14},
		{Row{"authRoles", "s"}, 5, 20, 0},
		{Row{"auth", "authEnabled"}, 5, 15, 0},
		{Row{"auth", "authEnabled"}, 5, 16, 16},
		{Row{"auth", "authRevision"}, 5, 20, 12},
	} {
		if got := s.TouchedBetween(c.row, c.from, c.to); got != c.want {
			t.Errorf("%v above %d up to %d: %d, want %d", c.row, c.from, c.to, got, c.want)
		}
	}
	if (&Survey{}).TouchedBetween(Row{"lease", "8"}, 0, 20) != 0 || (&Survey{}).LastStamp(1) != 0 ||
		(&Survey{}).Passwords("u", 1) != nil || (&Survey{}).Alarms() != nil {
		t.Error("an empty survey knows something")
	}
}

// TestRowTouchesAreBounded: beyond the bound, whole buckets count as touched.
func TestRowTouchesAreBounded(t *testing.T) {
	rows := newRowTouches(1)
	for i := range uint64(maxRowTouches + 100) {
		rows.note(i+1, &dumplog.Request{LeaseGrant: &dumplog.LeaseGrantRequest{ID: int64(i + 1)}})
	}
	if rows.kept > maxRowTouches+10 {
		t.Errorf("%d kept", rows.kept)
	}
	if rows.between(Row{"lease", "ffffff"}, maxRowTouches+10, maxRowTouches+50) == 0 {
		t.Error("what was not kept counts as untouched")
	}
	if rows.between(Row{"alarm", "a1 NOSPACE"}, 1, maxRowTouches+50) != 0 {
		t.Error("another bucket counts as touched")
	}
}

// TestCovers: every index in between has to be in some log.
func TestCovers(t *testing.T) {
	r := &Result{First: 10, Last: 50, Gaps: []Gap{{20, 25}}}
	for _, c := range []struct {
		from, to uint64
		want     bool
	}{{9, 19, true}, {8, 12, false}, {19, 22, false}, {24, 30, false}, {25, 50, true}, {25, 51, false},
		{60, 60, true}} {
		if got := r.Covers(c.from, c.to); got != c.want {
			t.Errorf("%d to %d: %v", c.from, c.to, got)
		}
	}
}

// TestLastStates: what the log says last of passwords, alarms and auth.
func TestLastStates(t *testing.T) {
	s := &Survey{state: newLastStates(), prefixes: map[uint16]dumplog.ID{0xa1: 0xa1}}
	note := func(index uint64, r dumplog.Request) { s.noteState(index, &r) }
	root := dumplog.Header{ID: RequestID(0xa1) << 48, Username: "root", AuthRevision: 3}
	note(1, dumplog.Request{Kind: dumplog.KindAuthUserAdd, Auth: &dumplog.AuthRequest{User: "u", Password: "clear"}})
	note(2, dumplog.Request{Kind: dumplog.KindAuthEnable})
	note(3, dumplog.Request{Kind: dumplog.KindAuthUserChangePassword, Header: root,
		Auth: &dumplog.AuthRequest{User: "u", HashedPassword: "aGFzaA=="}})
	note(4, dumplog.Request{Kind: dumplog.KindAuthDisable, Header: root})
	note(5, dumplog.Request{Alarm: &dumplog.AlarmRequest{Action: 1, MemberID: 0xa1, Alarm: 1}})
	note(6, dumplog.Request{Alarm: &dumplog.AlarmRequest{Action: 2, MemberID: 0xa1, Alarm: 1}})
	sets := s.Passwords("u", 10)
	if len(sets) != 2 || sets[0].Hash != nil || !sets[0].Add || sets[0].ByRoot || string(sets[1].Hash) != "hash" ||
		!sets[1].ByRoot || len(s.Passwords("u", 2)) != 1 {
		t.Errorf("passwords: %+v", sets)
	}
	if sw := s.AuthSwitches(); len(sw) != 2 || !sw[0].On || sw[0].ByRoot || sw[1].On || !sw[1].ByRoot {
		t.Errorf("switches: %+v", sw)
	}
	if s.LastStamp(0xa1) != 4 || s.LastStamp(0xa2) != 0 {
		t.Errorf("stamps: %d %d", s.LastStamp(0xa1), s.LastStamp(0xa2))
	}
	if a := s.Alarms(); len(a) != 1 || a[0].Raised || a[0].Index != 6 {
		t.Errorf("alarms: %+v", a)
	}
}

// TestLastStatesAreBounded: of a user with many passwords the newest are kept, and of many users and alarms the first.
func TestLastStatesAreBounded(t *testing.T) {
	s := &Survey{state: newLastStates()}
	password := func(index uint64, user string) {
		s.noteState(index, &dumplog.Request{Kind: dumplog.KindAuthUserChangePassword,
			Auth: &dumplog.AuthRequest{User: user}})
	}
	for i := range uint64(maxPasswordSets + 1) {
		password(i+1, "u")
	}
	if sets := s.Passwords("u", 1000); len(sets) != maxPasswordSets || sets[0].Index != 2 {
		t.Errorf("%d passwords, the first of entry %d", len(sets), sets[0].Index)
	}
	for i := len(s.state.passwords); i < maxUsersKept-1; i++ {
		s.state.passwords[fmt.Sprint(i)] = nil
	}
	alarm := func(index uint64, member dumplog.ID) {
		s.noteState(index, &dumplog.Request{Alarm: &dumplog.AlarmRequest{Action: 1, MemberID: member, Alarm: 1}})
	}
	for i := range dumplog.ID(maxUsersKept - 1) {
		s.state.alarms[apply.Alarm{Member: i, Type: 1}] = AlarmState{}
	}
	for i, name := range []string{"last", "more", "u"} {
		password(uint64(200+i), name)
		alarm(uint64(210+i), []dumplog.ID{maxUsersKept, maxUsersKept + 1, 5}[i])
	}
	last, more, u := s.Passwords("last", 300), s.Passwords("more", 300), s.Passwords("u", 300)
	if len(last) != 1 || len(more) != 0 || u[len(u)-1].Index != 202 || len(s.Alarms()) != maxUsersKept ||
		s.state.alarms[apply.Alarm{Member: 5, Type: 1}].Index != 212 {
		t.Errorf("%d and %d passwords, the last of entry %d, %d alarms", len(last), len(more), u[len(u)-1].Index,
			len(s.Alarms()))
	}
	s.state.switches = make([]AuthSwitch, maxSwitches-1)
	for i := range uint64(2) {
		s.noteState(400+i, &dumplog.Request{Kind: dumplog.KindAuthEnable})
	}
	if n := len(s.state.switches); n != maxSwitches {
		t.Errorf("%d switches of auth", n)
	}
	if none := (&Survey{}); none.Passwords("u", 1) != nil || none.Alarms() != nil {
		t.Error("a survey without a log has passwords or alarms")
	}
}

// TestChangesAfterAGap: what the logs lack can have changed data.
func TestChangesAfterAGap(t *testing.T) {
	r := &Result{First: 10, Last: 90, Survey: &Survey{LastChange: 30},
		Gaps: []Gap{{From: 50, To: 60}}}
	for index, want := range map[uint64]bool{5: true, 20: true, 30: true, 49: true, 55: true, 60: false, 90: false,
		95: false} {
		if got := r.ChangesAfter(index, 90); got != want {
			t.Errorf("after %d: %v, want %v", index, got, want)
		}
	}
	r.Gaps = nil
	if r.ChangesAfter(30, 90) || !r.ChangesAfter(29, 90) {
		t.Error("without a gap the last change decides")
	}
	if !r.ChangesAfter(30, 91) || !r.ChangesAfter(90, 91) || r.ChangesAfter(91, 91) {
		t.Error("what is committed and in no log can have changed data")
	}
}

// TestUncommittedAfter counts up to the last entry that changes data.
func TestUncommittedAfter(t *testing.T) {
	r := &Result{Survey: &Survey{LastUncommitted: 30}}
	for index, want := range map[uint64]uint64{27: 3, 29: 1, 30: 0, 31: 0} {
		if got := r.UncommittedAfter(index); got != want {
			t.Errorf("after %d: %d, want %d", index, got, want)
		}
	}
	if (&Result{}).UncommittedAfter(1) != 0 {
		t.Error("without a survey nothing is known")
	}
}
