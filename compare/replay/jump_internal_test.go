package replay

import (
	"fmt"
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// TestPlannedRevision: the planned auth revision after an index is that after the last auth entry up to there.
func TestPlannedRevision(t *testing.T) {
	p := &authPlan{start: 3, index: []uint64{10, 12, 20}, after: []uint64{4, 4, 5}}
	for index, want := range map[uint64]uint64{0: 3, 9: 3, 10: 4, 11: 4, 12: 4, 19: 4, 20: 5, 99: 5} {
		if got := p.at(index); got != want {
			t.Errorf("after %d: %d, want %d", index, got, want)
		}
	}
	role := func(index uint64, name string) AuthEntry {
		return AuthEntry{Index: index, Req: &dumplog.Request{Kind: dumplog.KindAuthRoleAdd,
			Header: dumplog.Header{Username: apply.Root}, Auth: &dumplog.AuthRequest{Role: name}}}
	}
	state := rooted()
	state.Known, state.Revision = true, 7
	p = planAuth([]AuthEntry{role(5, "a"), role(6, "a"), role(8, "b")}, state)
	for index, want := range map[uint64]uint64{4: 7, 5: 8, 6: 8, 8: 9} {
		if got := p.at(index); got != want {
			t.Errorf("planned after %d: %d, want %d", index, got, want)
		}
	}
}

// plannedAuth follows a member whose log gives auth revision 5 up to entry 20 and 6 after it.
func plannedAuth(t *testing.T, stored uint64, restarts ...uint64) *authWatch {
	t.Helper()
	aw := newBench(t, 4, -1).sim.auth
	aw.plain = &authPlan{start: 5, index: []uint64{20}, after: []uint64{6}}
	aw.m.DB = &evidence.DB{Handle: &dumpdb.DB{}, Auth: dumpdb.Auth{Revision: stored, HasRevision: true}}
	for _, at := range restarts {
		aw.restarts = append(aw.restarts, restart{index: at})
	}
	return aw
}

// TestObservedDelta: by how much headers between two entries exceed what the log gives right before them.
func TestObservedDelta(t *testing.T) {
	for _, c := range []struct {
		after, until uint64
		stamps       []Stamp
		delta        int64
		seen         bool
	}{
		{10, 30, nil, 0, false},
		{10, 30, []Stamp{{Index: 15, AuthRevision: 8}}, 3, true},
		{10, 30, []Stamp{{Index: 21, AuthRevision: 8}}, 2, true},
		{10, 30, []Stamp{{Index: 20, AuthRevision: 8}}, 3, true},
		{15, 30, []Stamp{{Index: 15, AuthRevision: 8}}, 0, false},
		{10, 15, []Stamp{{Index: 15, AuthRevision: 8}}, 0, false},
		{10, 30, []Stamp{{Index: 15, AuthRevision: 5}}, 0, true},
		{10, 30, []Stamp{{Index: 15, AuthRevision: 4}}, 0, true},
		{10, 30, []Stamp{{Index: 15, AuthRevision: 9}, {Index: 16, AuthRevision: 7}}, 4, true},
	} {
		aw := plannedAuth(t, 0)
		aw.stamps = c.stamps
		if delta, seen := aw.observedDelta(c.after, c.until); delta != c.delta || seen != c.seen {
			t.Errorf("%+v: %d, %t", c, delta, seen)
		}
	}
}

// TestAuthDelta: the rise at a restart is what its process shows; else the rest up to the next process that shows one,
// or up to the database, at most what the restart explains if another one follows.
func TestAuthDelta(t *testing.T) {
	for name, c := range map[string]struct {
		stored   uint64
		restarts []uint64
		stamps   []Stamp
		jumps    []Jump
		possible int64
		want     int64
	}{
		"its own process":               {9, []uint64{10}, []Stamp{{Index: 15, AuthRevision: 8}}, nil, 1, 3},
		"its own process, after a jump": {9, []uint64{10}, []Stamp{{Index: 15, AuthRevision: 8}}, []Jump{{Extra: 2}}, 1, 1},
		"its own process, and no rise":  {9, []uint64{10}, []Stamp{{Index: 15, AuthRevision: 5}}, nil, 4, 0},
		"the next process":              {9, []uint64{10, 16}, []Stamp{{Index: 17, AuthRevision: 8}}, nil, 2, 2},
		"the next process, all of it":   {9, []uint64{10, 16}, []Stamp{{Index: 17, AuthRevision: 8}}, nil, 9, 3},
		"the next process, not the database": {20, []uint64{10, 16}, []Stamp{{Index: 17, AuthRevision: 8}}, nil, 9,
			3},
		"the next process, after a jump":      {9, []uint64{10, 16}, []Stamp{{Index: 17, AuthRevision: 8}}, []Jump{{Extra: 1}}, 9, 2},
		"an earlier process":                  {9, []uint64{10}, []Stamp{{Index: 9, AuthRevision: 20}}, nil, 1, 3},
		"the database":                        {9, []uint64{10}, nil, nil, 1, 3},
		"the database, after a jump":          {9, []uint64{10}, nil, []Jump{{Extra: 2}}, 1, 1},
		"the database, another restart comes": {9, []uint64{10, 16}, nil, nil, 1, 1},
		"the database, less than it explains": {9, []uint64{10, 16}, nil, nil, 8, 3},
		"a lower one in the database":         {4, []uint64{10}, nil, nil, 8, -2},
	} {
		aw := plannedAuth(t, c.stored, c.restarts...)
		aw.stamps, aw.res.Jumps = c.stamps, c.jumps
		if got := aw.authDelta(&aw.restarts[0], c.possible); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	aw := plannedAuth(t, 9, 10, 16)
	aw.m.AppliedMin, aw.m.AppliedMax = 30, 30
	for end, want := range map[uint64]int64{30: 3, 29: 0} {
		aw.logEnd = end
		if got := aw.authDelta(&aw.restarts[1], 8); got != want {
			t.Errorf("applied up to 30, logs up to %d: %d, want %d", end, got, want)
		}
	}
	aw = plannedAuth(t, 9, 10, 16)
	aw.stamps = []Stamp{{Index: 12, AuthRevision: 50}}
	if got := aw.authDelta(&aw.restarts[1], 1); got != 3 {
		t.Errorf("the last restart, what the one before it shows: %d, want 3", got)
	}
}

// TestLowerDelta: an entry that took effect shows that the auth revision was not higher; the last restart rose less.
func TestLowerDelta(t *testing.T) {
	for _, c := range []struct {
		jumps       []uint64
		now, really uint64
		left        []uint64
	}{
		{[]uint64{2, 3}, 10, 9, []uint64{2, 2}}, {[]uint64{2, 3}, 10, 7, []uint64{2}},
		{[]uint64{2, 3}, 10, 2, []uint64{2}}, {[]uint64{2, 3}, 10, 10, []uint64{2, 3}},
		{[]uint64{2, 3}, 10, 12, []uint64{2, 3}}, {nil, 10, 7, nil},
	} {
		aw := plannedAuth(t, 0)
		for _, extra := range c.jumps {
			aw.res.Jumps = append(aw.res.Jumps, Jump{Extra: extra})
		}
		aw.Auth.Revision = c.now
		aw.lowerDelta(c.really)
		var left []uint64
		for _, j := range aw.res.Jumps {
			left = append(left, j.Extra)
		}
		if !slices.Equal(left, c.left) || aw.Auth.Revision != c.really {
			t.Errorf("%+v: %v, auth revision %d", c, left, aw.Auth.Revision)
		}
	}
}

// TestInheritedDelta: a snapshot brings at most the rise of the member that rose most, beyond one's own.
func TestInheritedDelta(t *testing.T) {
	of := func(extra ...uint64) *MemberResult {
		m := &MemberResult{}
		for _, n := range extra {
			m.Jumps = append(m.Jumps, Jump{Extra: n})
		}
		return m
	}
	for _, c := range []struct {
		own    *MemberResult
		others []*MemberResult
		want   uint64
	}{
		{of(), nil, 0}, {of(), []*MemberResult{of(2, 3), of(4)}, 5}, {of(1, 1), []*MemberResult{of(4), of(1)}, 2},
		{of(9), []*MemberResult{of(4)}, 0},
	} {
		aw := plannedAuth(t, 0)
		*aw.res, aw.others = *c.own, c.others
		if got := aw.maxInheritedDelta(); got != c.want {
			t.Errorf("own %d: %d, want %d", totalDelta(c.own), got, c.want)
		}
	}
}

// TestFindRestarts: starts after the first one, if the log has that, and received snapshots, in order; each with the
// last proposal of the process before.
func TestFindRestarts(t *testing.T) {
	sv := &Survey{Starts: map[dumplog.ID][]Start{1: {{Index: 4}, {Index: 20}, {Index: 30}}},
		Stamps: map[dumplog.ID][]Stamp{1: {{Index: 4}, {Index: 7}, {Index: 18}, {Index: 20}, {Index: 25}, {Index: 30}}}}
	text := func(list []restart) (out []string) {
		for _, r := range list {
			out = append(out, fmt.Sprint(r.index, " ", r.from, " ", r.received))
		}
		return out
	}
	for _, c := range []struct {
		id        dumplog.ID
		birth     bool
		snapshots []uint64
		want      []string
	}{
		{1, true, nil, []string{"20 18 false", "30 25 false"}},
		{1, false, nil, []string{"4 0 false", "20 18 false", "30 25 false"}},
		{1, true, []uint64{22, 10}, []string{"10 7 true", "20 18 false", "22 22 true", "30 25 false"}},
		{2, true, []uint64{9}, []string{"9 9 true"}}, {2, false, nil, nil},
	} {
		if got := text(findRestarts(sv, c.id, c.birth, c.snapshots)); !slices.Equal(got, c.want) {
			t.Errorf("member %d, %t, %v: %q, want %q", c.id, c.birth, c.snapshots, got, c.want)
		}
	}
}

// TestEarlyJump: entries after the last known proposal of a process may have been applied after its restart, whose
// publish entry comes later.
func TestEarlyJump(t *testing.T) {
	for name, c := range map[string]struct {
		index, from uint64
		header      uint64
		done        bool
		stored      uint64
		want        bool
	}{
		"between":                  {20, 10, 5, false, 9, true},
		"right after the proposal": {20, 14, 5, false, 9, true},
		"at the proposal":          {20, 15, 5, false, 9, false},
		"right before the restart": {16, 10, 5, false, 9, true},
		"at the restart":           {15, 10, 5, false, 9, false},
		"decided":                  {20, 10, 5, true, 9, false},
		"no auth revision":         {20, 10, 0, false, 9, false},
		"no rise":                  {20, 10, 5, false, 6, false},
	} {
		aw := plannedAuth(t, c.stored)
		aw.restarts = []restart{{index: c.index, from: c.from, done: c.done}}
		it := itemAt(15, put("a", "1"))
		it.req.Header.AuthRevision = c.header
		if got := aw.earlyJump(it); got != c.want || (len(aw.res.Jumps) == 1) != c.want {
			t.Errorf("%s: %t, %+v", name, got, aw.res.Jumps)
		}
	}
}

// TestSavedBySnapshot: a snapshot stores the index after its last entry, so a restart right at that entry still repeats
// what was before it.
func TestSavedBySnapshot(t *testing.T) {
	for at, want := range map[uint64]uint64{1: 1, 2: 2, 3: 0, 4: 0} {
		b := newBench(t, 4, -1).log(grantOf(7, 60, 0), grantOf(8, 60, 0), grantOf(9, 60, 0))
		b.sim.snaps = []uint64{at}
		b.want("applied", "applied", "applied")
		if b.sim.saved != want {
			t.Errorf("snapshot at %d: %d is saved before the third entry, want %d", at, b.sim.saved, want)
		}
	}
}

// TestComeLate: a model that ends below the compact revision takes the suggested place if its outcomes were uncertain;
// else the database has more than the member's index says.
func TestComeLate(t *testing.T) {
	for name, c := range map[string]struct {
		suggested place
		loose     bool
		logEnd    uint64
		want      place
		short     bool
	}{
		"uncertain":         {place{index: 5, rev: 2}, true, 90, place{index: 5, rev: 2}, false},
		"certain":           {place{index: 5, rev: 2}, false, 90, place{index: 60, rev: 3}, true},
		"certain, log ends": {place{index: 5, rev: 2}, false, 40, place{index: 40, rev: 3}, true},
		"none is suggested": {place{}, true, 90, place{index: 7, rev: 3}, false},
	} {
		s := newBench(t, 6, -1, rec(2, 0, "a", "1"), rec(3, 0, "b", "1")).sim
		s.met, s.meet, s.suggested, s.Loose, s.logEnd = false, place{index: 7, rev: 3}, c.suggested, c.loose, c.logEnd
		s.m.AppliedMax = 60
		s.m.DB = &evidence.DB{KV: &dumpdb.KVStats{CurrentRev: 3}}
		s.below.comeLate()
		base := place{index: s.res.BaseIndex, rev: s.res.BaseRevision}
		if s.meet != c.want || s.Revision != c.want.rev || s.res.endsShort != c.short || !s.met ||
			c.suggested.index > 0 && base != c.want {
			t.Errorf("%s: %+v, base %+v, short %t", name, s.meet, base, s.res.endsShort)
		}
	}
}

// roleAt is an entry by which root adds a role.
func roleAt(index uint64, name string) AuthEntry {
	return AuthEntry{Index: index, Req: byRoot(authOf(dumplog.KindAuthRoleAdd, "", name), 0)}
}

// TestJump: a restart executes the auth entries after the saved index once more, a received snapshot brings the rise of
// another member. What the database shows beyond the log is the rise, and users and roles follow a whole repetition
// only.
func TestJump(t *testing.T) {
	start := RequestID(1<<48 | 5000<<8)
	for name, c := range map[string]struct {
		stored   uint64
		received bool
		noDB     bool
		want     []Jump
		roles    bool
	}{
		"the whole repetition": {stored: 8, roles: true, want: []Jump{{Index: 12, Restart: 10, Start: StartTime(start),
			Extra: 2, Possible: 2, From: 3, To: 4, Entries: []uint64{3, 4}}}},
		"less than that": {stored: 7, want: []Jump{{Index: 12, Restart: 10, Start: StartTime(start),
			Extra: 1, Possible: 2, From: 3, To: 4, Entries: []uint64{3, 4}}}},
		"no rise":     {stored: 6},
		"a lower one": {stored: 5},
		"no database": {stored: 8, noDB: true},
		"a snapshot":  {stored: 8, received: true, want: []Jump{{Index: 12, Snapshot: 10, Extra: 2, Possible: 5}}},
	} {
		aw := plannedAuth(t, c.stored)
		if c.noDB {
			aw.m.DB = nil
		}
		aw.Auth, aw.Auth.Known, aw.others = rooted(), true, []*MemberResult{{Jumps: []Jump{{Extra: 5}}}}
		aw.Auth.Revision = 6
		aw.authSeen = []AuthEntry{roleAt(3, "a"), roleAt(4, "b")}
		aw.restarts = []restart{{index: 10, id: start, received: c.received}}
		aw.jump(&aw.restarts[0], 12)
		rise := totalDelta(aw.res)
		_, a := aw.Auth.Roles["a"]
		_, b := aw.Auth.Roles["b"]
		if fmt.Sprint(aw.res.Jumps) != fmt.Sprint(c.want) || aw.Auth.Revision != 6+rise || a != c.roles ||
			b != c.roles || !aw.restarts[0].done {
			t.Errorf("%s: %+v, auth revision %d, roles %t %t", name, aw.res.Jumps, aw.Auth.Revision, a, b)
		}
		if c.received != (aw.authSeen == nil) {
			t.Errorf("%s: a restart repeats %v", name, aw.authSeen)
		}
	}
}

// TestJumpOfAnyEntries: a restart of 3.5 that executed its last entries once more did so with the fewest that make the
// rise.
func TestJumpOfAnyEntries(t *testing.T) {
	for name, c := range map[string]struct {
		stored uint64
		change func(aw *authWatch)
		want   []Jump
		roles  string
		own    bool
	}{
		"one":                 {stored: 7, want: []Jump{{Index: 12, Restart: 10, Extra: 1, Possible: 1, AllKinds: true, From: 4, To: 4, Entries: []uint64{4}}}, roles: "b", own: true},
		"both":                {stored: 8, want: []Jump{{Index: 12, Restart: 10, Extra: 2, Possible: 2, AllKinds: true, From: 3, To: 4, Entries: []uint64{3, 4}}}, roles: "ab", own: true},
		"more than there are": {stored: 9, own: true},
		"no rise":             {stored: 6},
		"a snapshot":          {stored: 7, change: func(aw *authWatch) { aw.restarts[0].received = true }},
		"users are not known": {stored: 7, change: func(aw *authWatch) { aw.Auth.Known = false }},
		"entries after the log": {stored: 7, change: func(aw *authWatch) {
			aw.logEnd, aw.m.AppliedMin, aw.m.AppliedMax = 12, 13, 13
		}},
		"no auth entry before": {stored: 7, change: func(aw *authWatch) { aw.authAll = nil }},
	} {
		aw := plannedAuth(t, c.stored)
		aw.Version = release.Exact(5, 3)
		aw.Auth, aw.Auth.Known = rooted(), true
		aw.Auth.Revision = 6
		aw.authAll, aw.restarts = []AuthEntry{roleAt(3, "a"), roleAt(4, "b")}, []restart{{index: 10}}
		if c.change != nil {
			c.change(aw)
		}
		aw.jump(&aw.restarts[0], 12)
		roles := ""
		for _, name := range []string{"a", "b"} {
			if _, ok := aw.Auth.Roles[name]; ok {
				roles += name
			}
		}
		for i := range aw.res.Jumps {
			aw.res.Jumps[i].Start = Jump{}.Start
		}
		rise := totalDelta(aw.res)
		if fmt.Sprint(aw.res.Jumps) != fmt.Sprint(c.want) || aw.Auth.Revision != 6+rise || roles != c.roles ||
			aw.usedOwnRestarts != c.own {
			t.Errorf("%s: %+v, auth revision %d, roles %q, its own restart %t", name, aw.res.Jumps,
				aw.Auth.Revision, roles, aw.usedOwnRestarts)
		}
	}
}
