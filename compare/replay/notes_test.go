package replay

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// TestWatchUsers: between two changes of auth, what users other than root could not write is one stretch.
func TestWatchUsers(t *testing.T) {
	s := newBench(t, 6, -1).sim
	s.Auth = rooted()
	see := func(index uint64, user string, st State) {
		r := put("a", "1")
		r.Header = dumplog.Header{Username: user, AuthRevision: 3}
		if user == "" {
			r = &dumplog.Request{Kind: dumplog.KindAuthEnable}
		}
		s.rights.watchUsers(&item{entry: dumplog.Entry{Index: index}, req: r}, Outcome{State: st})
	}
	see(5, "", Applied)
	see(6, "app", Applied)
	see(7, "root", Missing)
	see(8, "app", Missing)
	see(9, "app", Applied)
	see(10, "app", Missing)
	see(11, "", Applied)
	see(12, "app", Applied)
	see(13, "app", Missing)
	want := []ShutSpan{{Begin: 5, LastApplied: 6, First: 8, Last: 10, Missing: 2, After: 1},
		{Begin: 11, LastApplied: 12, First: 13, Last: 13, Missing: 1}}
	if got := s.res.Shut; !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestV2Writes: what clients write is counted, without reads and what etcd itself keeps in the store.
func TestV2Writes(t *testing.T) {
	s := &Survey{}
	for i, v := range []dumplog.V2Request{{Method: "QGET", Path: "/1/a"}, {Method: "SYNC"},
		{Method: "PUT", Path: "/0/members/a1/attributes"}, {Method: "PUT", Path: "/1/a"},
		{Method: "DELETE", Path: "/1/a"}} {
		s.noteV2(&item{entry: dumplog.Entry{Index: uint64(i + 1)}, req: &dumplog.Request{V2: &v}})
	}
	if s.V2Writes != 2 || s.FirstV2Write != 4 || len(s.V2) != 2 || s.V2[1].Index != 5 || s.V2LeftOut != 0 {
		t.Errorf("%+v", s)
	}
	s = &Survey{V2: make([]V2Op, maxV2Ops-1), Versions: make([]VersionSet, maxV2Ops-1)}
	for i := range uint64(3) {
		it := &item{entry: dumplog.Entry{Index: i}, req: &dumplog.Request{
			V2: &dumplog.V2Request{Method: "PUT", Path: "/1/a"}, ClusterVer: &dumplog.ClusterVersionSet{Version: "3.5.0"}}}
		s.noteV2(it)
		s.noteVersion(it, nil)
	}
	if len(s.V2) != maxV2Ops || s.V2LeftOut != 2 || s.V2Writes != 3 || len(s.Versions) != maxV2Ops {
		t.Errorf("%d requests kept, %d left out of %d, %d versions", len(s.V2), s.V2LeftOut, s.V2Writes,
			len(s.Versions))
	}
}

// TestEventsAreBounded: all events are counted, the first ones kept, and without a bound all of a small set are.
func TestEventsAreBounded(t *testing.T) {
	s := newStory("3.5.0")
	s.early()
	first := s.lacked(1, "x", "1")
	s.lacked(1, "y", "1")
	s.lacked(1, "z", "1")
	s.put("end", "1")
	dirs := s.Write(t, t.TempDir())
	set := open(t, dirs...)
	for most, want := range map[int]int{0: 3, 2: 2} {
		r := run(t, set, Options{MaxEvents: most})
		if r.EventCount != 3 || len(r.Events) != want || r.Events[0].Index != s.Index(first) ||
			r.Members[1].Lacks != 3 || r.Members[0].Lacks != 0 {
			t.Errorf("bound %d: %d of %d events", most, len(r.Events), r.EventCount)
		}
		if bad := r.Members[1].FirstBad(); bad == nil || bad.Index != s.Index(first) || r.Members[0].FirstBad() != nil {
			t.Errorf("bound %d: the first is %+v", most, bad)
		}
	}
}

// TestBehindASnapshot: what stands between the index of a member and its newest snapshot is counted by what it does.
func TestBehindASnapshot(t *testing.T) {
	s := newStory("3.5.0")
	s.early()
	from := s.Add(clustertest.Step{Req: &pb.InternalRaftRequest{Alarm: &pb.AlarmRequest{}}})
	s.Add(clustertest.Step{Empty: true})
	s.failed(&pb.InternalRaftRequest{DeleteRange: &pb.DeleteRangeRequest{Key: []byte("none")}})
	last := s.Add(clustertest.Step{Req: &pb.InternalRaftRequest{Alarm: &pb.AlarmRequest{}}})
	s.put("b", "1")
	s.put("c", "1")
	for snapshot, want := range map[int]*Behind{
		last: {From: s.Index(from), To: s.Index(last), Entries: 4, AlarmQueries: 2, Idle: 2},
		last + 2: {From: s.Index(from), To: s.Index(last + 2), Entries: 6, AlarmQueries: 2, Idle: 2, Effective: 2,
			FirstEffective: s.Index(last + 1)},
		from - 1: nil,
	} {
		s.Of[1] = clustertest.ScriptMember{AppliedUntil: from - 1, SnapshotTaken: snapshot}
		r := run(t, open(t, s.Write(t, t.TempDir())...), Options{})
		got := r.Members[1].Behind
		if (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("a snapshot at %d: %+v, want %+v", snapshot, got, want)
		}
		if got != nil && got.Harmless() != (want.Effective == 0) {
			t.Errorf("harmless %v: %+v", got.Harmless(), got)
		}
		if r.Members[0].Behind != nil {
			t.Errorf("node1: %+v", r.Members[0].Behind)
		}
	}
}

// TestChoose: of different entries at an index the committed one counts, of several the one that most members hold;
// each member keeps its own. For a member without the index, it is open which of two of a term that are equally likely
// the cluster had.
func TestChoose(t *testing.T) {
	version := func(holders ...int) *item {
		return &item{entry: dumplog.Entry{Index: 9, Data: []byte{byte(holders[0])}}, holders: holders}
	}
	later := func(it *item) *item {
		it.entry.Term++
		return it
	}
	for name, c := range map[string]struct {
		versions  []*item
		committed []int
		ranks     []int
		want      int
		open      bool
	}{
		"the most":            {versions: []*item{version(0), version(1, 2)}, want: 1},
		"as many":             {versions: []*item{version(0), version(1)}, want: 0, open: true},
		"as many, by rank":    {versions: []*item{version(0), version(1)}, ranks: []int{1, 0}, want: 1, open: true},
		"as many, later":      {versions: []*item{version(0), later(version(1))}, want: 0},
		"the most, by rank":   {versions: []*item{version(0), version(1, 2)}, ranks: []int{0, 1, 2}, want: 1},
		"the committed one":   {versions: []*item{version(0), version(1, 2)}, committed: []int{0}, want: 0},
		"the committed ones":  {versions: []*item{version(0), version(1, 2)}, committed: []int{0, 1, 2}, want: 1},
		"the committed third": {versions: []*item{version(0, 3), version(1), version(2)}, committed: []int{2}, want: 2},
	} {
		logs := logSet{ranks: c.ranks}
		for m := range 4 {
			logs.members = append(logs.members, &evidence.Member{})
			if slices.Contains(c.committed, m) {
				logs.members[m].Commit = 9
			}
		}
		best := logs.choose(c.versions)
		if best != c.versions[c.want] {
			t.Errorf("%s: that of %v", name, best.holders)
		}
		for _, v := range c.versions {
			for _, h := range v.holders {
				if best.forMember(h) != v {
					t.Errorf("%s: member %d has another entry", name, h)
				}
			}
		}
		if got := best.forMember(9); (got != best) != c.open || c.open && !errors.Is(got.err, errDoubted) {
			t.Errorf("%s: a member without the index has %+v", name, got)
		}
	}
}

// TestVersionsOfAnIndex: the entry that most hold comes first.
func TestVersionsOfAnIndex(t *testing.T) {
	req := &dumplog.Request{}
	full := func(holders ...int) *item {
		return &item{entry: dumplog.Entry{Data: []byte("x")}, req: req, holders: holders}
	}
	empty := &item{entry: dumplog.Entry{Index: 6, Term: 2}, req: req, holders: []int{2}}
	first := &item{entry: dumplog.Entry{Index: 5, Term: 2}, req: req, holders: []int{2}}
	change := &item{entry: dumplog.Entry{Type: dumplog.EntryConfChange}, req: req, holders: []int{2}}
	for _, c := range []struct {
		it, other     *item
		want, emptied string
	}{
		{full(0), full(1, 2), "[[1 2] [0]]", "[false false]"}, {full(0, 1), empty, "[[0 1] [2]]", "[false true]"},
		{full(0, 1), change, "[[0 1] [2]]", "[false false]"}, {full(0, 1), first, "[[0 1] [2]]", "[false false]"},
		{empty, full(0), "[[0] [2]]", "[false true]"},
	} {
		c.it.others = map[int]*item{}
		for _, h := range c.other.holders {
			c.it.others[h] = c.other
		}
		r := &Result{}
		for range 3 {
			m := &evidence.Member{}
			m.WAL.LastByTerm = []evidence.TermEnd{{Term: 1, First: 1, Last: 4}, {Term: 2, First: 5, Last: 9}}
			r.Members = append(r.Members, &MemberResult{Member: m})
		}
		d := LogDiff{Index: max(c.it.entry.Index, c.other.entry.Index)}
		r.addVersions(&d, c.it.versions())
		if fmt.Sprint(d.Versions) != c.want || fmt.Sprint(d.Emptied) != c.emptied {
			t.Errorf("%v, without data %v; want %s, %s", d.Versions, d.Emptied, c.want, c.emptied)
		}
	}
}

// TestPutSum: of a put that writes what it says the content is kept, under a bound of its key.
func TestPutSum(t *testing.T) {
	put := func(key string, with func(*dumplog.PutRequest)) *dumplog.Request {
		p := &dumplog.PutRequest{Key: []byte(key), Value: []byte("v1"), Lease: 7}
		if with != nil {
			with(p)
		}
		return &dumplog.Request{Kind: dumplog.KindPut, Put: p}
	}
	want := PutSum{Key: "k", Lease: 7, Size: 2, Value: sha256.Sum256([]byte("v1"))}
	if got := putSum(put("k", nil)); got == nil || *got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if putSum(put(strings.Repeat("k", maxSumKey), nil)) == nil {
		t.Error("the longest key is left out")
	}
	for name, r := range map[string]*dumplog.Request{
		"a longer key":    put(strings.Repeat("k", maxSumKey+1), nil),
		"keeps the value": put("k", func(p *dumplog.PutRequest) { p.IgnoreValue = true }),
		"keeps the lease": put("k", func(p *dumplog.PutRequest) { p.IgnoreLease = true }),
		"no put":          {Kind: dumplog.KindDeleteRange, DeleteRange: &dumplog.DeleteRangeRequest{Key: []byte("k")}},
	} {
		if got := putSum(r); got != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	d := LogDiff{}
	r := &Result{Members: []*MemberResult{{Member: &evidence.Member{}}}}
	if r.addVersions(&d, []*item{{req: put("k", nil), holders: []int{0}}}); len(d.Puts) != 1 || *d.Puts[0] != want {
		t.Errorf("of a version: %+v", d.Puts)
	}
}

// TestLogWithoutMembers: without a member there is no entry.
func TestLogWithoutMembers(t *testing.T) {
	for e, err := range Log(t.Context(), nil) {
		t.Errorf("%+v, %v", e, err)
	}
}

// TestLeaseFacts: a lease is held against its grant where the log has it, with the last checkpoint.
func TestLeaseFacts(t *testing.T) {
	grant := func(id, ttl int64) *dumplog.Request {
		return &dumplog.Request{Kind: dumplog.KindLeaseGrant, LeaseGrant: &dumplog.LeaseGrantRequest{ID: id, TTL: ttl}}
	}
	check := &dumplog.Request{Kind: dumplog.KindLeaseCheckpoint,
		LeaseCheckpoint: &dumplog.LeaseCheckpointRequest{Checkpoints: []dumplog.LeaseCheckpoint{{ID: 8,
			RemainingTTL: 30}, {ID: 99, RemainingTTL: 1}}}}
	for _, known := range []bool{true, false} {
		b := newBench(t, 6, -1).log(grant(8, 60), grant(7, 60), grant(9, 60), check)
		b.sim.StateKnown = known
		b.sim.Leases[5] = &apply.Lease{TTL: 60}
		b.sim.m.DB = &evidence.DB{Leases: []dumpdb.Lease{{ID: 5, TTL: 10}, {ID: 7, TTL: 90},
			{ID: 8, TTL: 60, RemainingTTL: 30}, {ID: 9, TTL: 50}}}
		b.run()
		b.sim.touched[leaseKey(7)] = !known
		b.sim.leases.leaseFacts()
		got := fmt.Sprint(b.sim.res.Leases)
		want := "[{7 1 2 60 90 0 0 0 false} {8 1 1 60 60 4 30 30 false} {9 1 3 60 50 0 0 0 false}]"
		diffs := 1
		if !known {
			want, diffs = "[{8 1 1 60 60 4 30 30 false}]", 0
		}
		if got != want || len(b.sim.res.StateDiffs) != diffs {
			t.Errorf("known %v: %s %+v, want %s", known, got, b.sim.res.StateDiffs, want)
		}
	}
}

// TestGrantAboveTheIndex: up to 3.4 a database can hold a lease whose grant is above its consistent index. Its TTL is
// that of the grant, if there is one alone.
func TestGrantAboveTheIndex(t *testing.T) {
	grant := func(ttl int64) *dumplog.Request {
		return &dumplog.Request{Kind: dumplog.KindLeaseGrant, LeaseGrant: &dumplog.LeaseGrantRequest{ID: 7, TTL: ttl}}
	}
	check := &dumplog.Request{Kind: dumplog.KindLeaseCheckpoint, LeaseCheckpoint: &dumplog.LeaseCheckpointRequest{
		Checkpoints: []dumplog.LeaseCheckpoint{{ID: 7, RemainingTTL: 30}}}}
	for name, c := range map[string]struct {
		log     []*dumplog.Request
		unknown bool
		want    string
	}{
		"one grant": {[]*dumplog.Request{put("a", "1"), grant(60)}, false, "[{7 1 2 60 90 0 0 0 false}]"},
		"and a checkpoint": {[]*dumplog.Request{put("a", "1"), grant(60), check}, false,
			"[{7 1 2 60 90 0 0 0 false}]"},
		"granted again":           {[]*dumplog.Request{put("a", "1"), grant(60), revoke(7), grant(90)}, false, "[]"},
		"granted below":           {[]*dumplog.Request{grant(60), revoke(7), grant(90)}, false, "[{7 1 3 90 90 0 0 0 false}]"},
		"there from below":        {[]*dumplog.Request{grant(60), grant(90)}, false, "[]"},
		"what was before unknown": {[]*dumplog.Request{put("a", "1"), grant(60)}, true, "[]"},
	} {
		b := newBench(t, 4, -1, rec(2, 0, "a", "1")).log(c.log...)
		b.sim.m.AppliedMin, b.sim.StateKnown = 1, !c.unknown
		b.sim.m.DB = &evidence.DB{Leases: []dumpdb.Lease{{ID: 7, TTL: 90, RemainingTTL: 5}}}
		b.run()
		b.sim.leases.leaseFacts()
		if got := fmt.Sprint(b.sim.res.Leases); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestLeaseThatExistedBefore: a log that does not reach back says nothing of the TTL of a lease whose ID a client
// chose; one that the server made is new.
func TestLeaseThatExistedBefore(t *testing.T) {
	const server = 0x4bb6a206e5c3e18b
	for name, c := range map[string]struct {
		id      int64
		request dumplog.RequestID
		stored  int64
		told    bool
	}{
		"its own, higher":              {server, server + 1, 500, true},
		"its own, lower":               {server, server + 1, 10, true},
		"its own, with the sign bit":   {server, 1<<63 | server + 1, 500, true},
		"a few requests in between":    {server, server + 200, 500, true},
		"chosen, higher":               {1003, server + 1, 500, false},
		"chosen, lower":                {1003, server + 1, 10, false},
		"chosen, equal":                {1003, server + 1, 60, true},
		"of another process":           {server, server + 1<<30, 500, false},
		"a request that came before":   {server, server - 1, 500, false},
		"a request without an ID":      {server, 0, 500, false},
		"chosen, from a later counter": {server + 9, server, 500, false},
	} {
		r := &dumplog.Request{Kind: dumplog.KindLeaseGrant, LeaseGrant: &dumplog.LeaseGrantRequest{ID: c.id, TTL: 60}}
		b := newBench(t, 6, -1).log(r)
		r.Header.ID = c.request
		b.sim.StateKnown = false
		b.sim.m.DB = &evidence.DB{Leases: []dumpdb.Lease{{ID: dumpdb.ID(c.id), TTL: c.stored}}}
		b.run()
		b.sim.leases.leaseFacts()
		if got := len(b.sim.res.Leases) > 0; got != c.told {
			t.Errorf("%s: %+v", name, b.sim.res.Leases)
		}
	}
}

// TestInstead: an index beyond all reason is taken for the one that is one bit away within the log, or for the end of
// the log.
func TestInstead(t *testing.T) {
	for stored, want := range map[uint64]uint64{100: 0, 101: 0, 1<<40 | 50: 50, 1<<40 | 5: 100, 1<<40 | 1<<41 | 50: 100,
		1<<40 | 100: 100, 1<<40 | 101: 100, 1 << 62: 100} {
		m := &evidence.Member{DB: &evidence.DB{Handle: &dumpdb.DB{}, KV: &dumpdb.KVStats{}},
			WAL: evidence.WAL{Log: &dumplog.Log{}, Summary: dumplog.Summary{FirstIndex: 10, LastIndex: 100}}}
		m.DB.Meta.ConsistentIndex = &stored
		if got := (&Result{}).instead(m, nil); got != want {
			t.Errorf("%x is taken for %d, want %d", stored, got, want)
		}
		m.DB.KVDamaged = true
		if got := (&Result{}).instead(m, nil); got != 0 {
			t.Errorf("%x of a damaged database is taken for %d", stored, got)
		}
	}
}

// TestInsteadUnderAnAlarm: while one is on, a lost end of the log may have had no effect, and the index stands.
func TestInsteadUnderAnAlarm(t *testing.T) {
	stored := uint64(384 | 1<<10)
	r := &Result{Last: 400, Survey: &Survey{LastChange: 400}}
	m := &evidence.Member{DB: &evidence.DB{Handle: &dumpdb.DB{}, KV: &dumpdb.KVStats{}},
		WAL: evidence.WAL{Log: &dumplog.Log{}, Summary: dumplog.Summary{FirstIndex: 10, LastIndex: 400}}}
	m.DB.Meta.ConsistentIndex = &stored
	if got := r.instead(m, nil); got != 384 {
		t.Errorf("taken for %d", got)
	}
	m.DB.Alarms = make([]dumpdb.Alarm, 1)
	if got := r.instead(m, nil); got != 0 {
		t.Errorf("under an alarm taken for %d", got)
	}
}

// TestPlainRefusal: a refusal by permission is certain unless an alarm took the checks away.
func TestPlainRefusal(t *testing.T) {
	for _, c := range []struct {
		minor  int
		plain  bool
		alarm  bool
		reason Reason
		want   bool
	}{
		{5, true, false, ReasonPermission, true}, {5, true, false, ReasonUserEmpty, true},
		{5, true, false, ReasonOldAuth, false},
		{5, false, false, ReasonPermission, false}, {5, true, true, ReasonPermission, false},
		{6, true, true, ReasonPermission, true},
	} {
		m, err := NewMachine(t.Context(), nil, MachineOptions{Version: release.AnyOf(c.minor)})
		if err != nil {
			t.Fatal(err)
		}
		if c.alarm {
			m.s.Alarms[apply.Alarm{Member: 1, Type: apply.AlarmNoSpace}] = struct{}{}
		}
		if got := m.plainRefusal(&apply.Effect{Plain: c.plain, Reason: c.reason}); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
