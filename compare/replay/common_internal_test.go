package replay

import (
	"maps"
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestLevelOfMembers: the keys can be compared up to what every member with a database may have applied. Of a member
// that is not replayed that is what it has certainly applied.
func TestLevelOfMembers(t *testing.T) {
	of := func(least, most uint64, db bool) *MemberResult {
		m := &evidence.Member{AppliedMin: least, AppliedMax: most}
		if db {
			m.DB = &evidence.DB{Handle: &dumpdb.DB{}}
		}
		return &MemberResult{Member: m}
	}
	s := newBench(t, 4, -1).sim
	for name, c := range map[string]struct {
		members []*MemberResult
		sims    []*sim
		want    uint64
	}{
		"replayed":                        {[]*MemberResult{of(10, 20, true), of(12, 30, true)}, []*sim{s, s}, 20},
		"the other one ends first":        {[]*MemberResult{of(10, 20, true), of(12, 15, true)}, []*sim{s, s}, 15},
		"one is not replayed":             {[]*MemberResult{of(10, 20, true), of(12, 30, true)}, []*sim{s, nil}, 12},
		"one is not replayed, not higher": {[]*MemberResult{of(10, 20, true), of(22, 30, true)}, []*sim{s, nil}, 20},
		"one has no database":             {[]*MemberResult{of(10, 20, true), of(2, 3, false)}, []*sim{s, nil}, 20},
		"committed is less":               {[]*MemberResult{of(10, 200, true), of(12, 300, true)}, []*sim{s, s}, 100},
	} {
		l := newLevel(&Result{Common: 10, Commit: 100, Members: c.members}, c.sims, []int{0, 1})
		if l.to != c.want || l.from != 10 || !slices.Equal(l.sims, c.sims) || len(l.open) != 2 {
			t.Errorf("%s: %d to %d", name, l.from, l.to)
		}
	}
	shared := &Result{Commit: 100, Members: []*MemberResult{of(1, 20, true), of(1, 30, true)}}
	l := newLevel(shared, []*sim{s, nil}, []int{0, 0})
	if l.sims[1] != s || l.to != 20 {
		t.Errorf("a member that shares a model: up to %d", l.to)
	}
}

// TestLevelAtThePlace: a model has a revision at a level from the place on at which log and database meet.
func TestLevelAtThePlace(t *testing.T) {
	s := newBelow(t, place{index: 12, rev: 3}, rec(2, 0, "a", "1"), rec(3, 0, "b", "1")).sim
	l := &level{from: 10, to: 20, sims: []*sim{nil, s}, open: make([]uint64, 2)}
	for index := uint64(11); index <= 13; index++ {
		if l.note(index, make([]Outcome, 2)); s.met != (index >= 12) {
			t.Errorf("entry %d: met %t", index, s.met)
		}
	}
	want := [][]int64{{0, 0}, {0, 3}, {0, 3}}
	if !slices.EqualFunc(l.revs, want, slices.Equal[[]int64]) {
		t.Errorf("%v, want %v", l.revs, want)
	}
}

// TestBlur: an entry that may have had an effect leaves the keys unknown that it may have changed, and no others.
func TestBlur(t *testing.T) {
	for name, c := range map[string]struct {
		r    *dumplog.Request
		want []string
	}{
		"a put":             {put("a", "1"), []string{"a"}},
		"a delete":          {del("b", ""), []string{"b"}},
		"a range":           {del("b", "d"), []string{"b", "c"}},
		"a revoke":          {revoke(7), []string{"a", "c"}},
		"another revoke":    {revoke(8), nil},
		"both branches":     {txn(cmpMod("x", 2), []dumplog.RequestOp{putOp("a", "1")}, []dumplog.RequestOp{delOp("d", "")}), []string{"a", "d"}},
		"a read":            {txn(nil, []dumplog.RequestOp{{Range: &dumplog.RangeRequest{Key: []byte("a")}}}, nil), nil},
		"a key without one": {put("z", "1"), []string{"z"}},
	} {
		b := newBelow(t, place{index: 9, rev: 9})
		for _, k := range []apply.Key{{Name: "a", Lease: 7}, {Name: "b"}, {Name: "c", Lease: 7}, {Name: "d"}} {
			b.sim.Keys.Put(k)
		}
		b.sim.below.blur(c.r)
		var got []string
		b.sim.Keys.All(func(k *apply.Key) bool {
			if k.Unsure {
				got = append(got, k.Name)
			}
			return true
		})
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestStaleWrites: missing entries are counted that the rights from before a received snapshot refuse.
func TestStaleWrites(t *testing.T) {
	for name, c := range map[string]struct {
		state State
		user  string
		from  uint64
		want  int
	}{
		"refused by them":       {Missing, "app", 13, 1},
		"applied":               {Applied, "app", 13, 0},
		"allowed by them":       {Missing, "old", 13, 0},
		"within the snapshot":   {Missing, "app", 0, 0},
		"root is never refused": {Missing, apply.Root, 13, 0},
	} {
		ri := newBench(t, 4, -1).sim.rights
		ri.Auth, ri.stale, ri.staleFrom = rooted(), rooted(), c.from
		ri.Auth.Known = true
		ri.stale.Users["old"] = &apply.User{Roles: []string{apply.Root}}
		for _, user := range []string{"app", "old"} {
			ri.Auth.Users[user] = &apply.User{Roles: []string{"all"}}
		}
		r := put("k", "v")
		r.Header = dumplog.Header{Username: c.user, AuthRevision: 1}
		if ri.watchUsers(itemAt(20, r), Outcome{State: c.state}); ri.res.Stale != c.want {
			t.Errorf("%s: %d", name, ri.res.Stale)
		}
	}
}

// TestSurveyWithoutStates: a survey that has kept no states says nothing of them.
func TestSurveyWithoutStates(t *testing.T) {
	s := &Survey{}
	if s.Passwords("root", 9) != nil || s.Alarms() != nil || s.AuthSwitches() != nil || s.LastStamp(1) != 0 {
		t.Error("a state of nothing")
	}
	if got := TouchedBuckets(grantOf(7, 60, 0)); !slices.Equal(got, []string{"lease"}) || TouchedBuckets(put("a", "1")) != nil {
		t.Errorf("a grant changes %q", got)
	}
}

// TestRevisionsAtLevels: a member's revision at an index is that of its model, from the place at which log and database
// meet up to what it has certainly applied. Where the log ends before that, it is the database's.
func TestRevisionsAtLevels(t *testing.T) {
	for name, c := range map[string]struct {
		levels  []uint64
		index   uint64
		meet    uint64
		applied uint64
		logEnd  uint64
		want    map[uint64]int64
		left    int
	}{
		"below the entry":            {[]uint64{10, 20}, 20, 5, 30, 90, map[uint64]int64{10: 7}, 1},
		"both":                       {[]uint64{10, 20}, 21, 5, 30, 90, map[uint64]int64{10: 7, 20: 7}, 0},
		"above the entry":            {[]uint64{10, 20}, 10, 5, 30, 90, nil, 2},
		"before the place":           {[]uint64{10}, 20, 11, 30, 90, nil, 0},
		"at the place":               {[]uint64{10}, 20, 10, 30, 90, map[uint64]int64{10: 7}, 0},
		"not applied":                {[]uint64{10}, 20, 5, 9, 90, nil, 0},
		"the last applied":           {[]uint64{10}, 20, 5, 10, 90, map[uint64]int64{10: 7}, 0},
		"the log ends there":         {[]uint64{10}, 20, 5, 10, 10, map[uint64]int64{10: 7}, 0},
		"the log ends before":        {[]uint64{10}, 20, 5, 10, 9, map[uint64]int64{10: 99}, 0},
		"the log ends before others": {[]uint64{10}, 20, 5, 12, 9, nil, 0},
	} {
		s := newBench(t, 4, -1).sim
		s.Revision, s.meet, s.logEnd, s.m.AppliedMin = 7, place{index: c.meet}, c.logEnd, c.applied
		s.m.DB = &evidence.DB{KV: &dumpdb.KVStats{CurrentRev: 99}}
		w := &walker{r: &Result{Common: 10}, sims: []*sim{nil, s}, levels: c.levels}
		w.pass(c.index)
		if !maps.Equal(s.res.Levels, c.want) || len(w.levels) != c.left || s.res.RevisionAt != c.want[10] {
			t.Errorf("%s: %v, %d at the common index, %d levels left", name, s.res.Levels, s.res.RevisionAt,
				len(w.levels))
		}
	}
	s := newBelow(t, place{index: 10, rev: 3}, rec(2, 0, "a", "1"), rec(3, 0, "b", "1")).sim
	w := &walker{r: &Result{Common: 1}, sims: []*sim{s}, levels: []uint64{10}}
	if w.pass(11); !s.met || s.res.Levels[10] != 3 || s.res.RevisionAt != 0 {
		t.Errorf("met %t, %v", s.met, s.res.Levels)
	}
}
