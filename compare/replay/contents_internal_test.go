package replay

import (
	"strconv"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestNoneOf: a database holds nothing of a log if none of its newest puts is one of the log's, up to its index.
func TestNoneOf(t *testing.T) {
	s := fourPuts()
	s.put("e", "5")
	s.del("e")
	m := openStory(t, s)
	log := func(more ...*dumplog.Request) *putContents {
		pc := newContents()
		for i := range 8 {
			pc.note(itemAt(2, put("a", strings.Repeat("1", i+1))))
		}
		for _, r := range more {
			pc.note(itemAt(m.AppliedMax, r))
		}
		return pc
	}
	kept := put("e", "5")
	kept.Put.IgnoreValue = true
	late := log()
	late.note(itemAt(m.AppliedMax+1, put("e", "5")))
	full := log()
	full.full = true
	for name, c := range map[string]struct {
		pc   *putContents
		want bool
	}{
		"none of the newest":           {log(), true},
		"the newest":                   {log(put("e", "5")), false},
		"the fourth":                   {log(put("b", "2")), false},
		"other values":                 {log(put("e", "6"), put("x", "5")), true},
		"a put that keeps the value":   {log(kept), true},
		"an entry above its index":     {late, true},
		"more than can be kept":        {full, false},
		"a log that needs no contents": {nil, false},
	} {
		if got := c.pc.noneOf(m); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	for name, g := range map[string]Gap{"ends at its index": {3, m.AppliedMin}, "ends above": {3, m.AppliedMin + 9},
		"after the puts of the log": {3, m.AppliedMin - 1}} {
		pc := log()
		if pc.missing = (gaps{g}); pc.noneOf(m) {
			t.Errorf("the log lacks entries: %s", name)
		}
	}
	pc := log()
	for _, g := range []Gap{{1, 1}, {m.AppliedMax + 1, m.AppliedMax + 5}} {
		if pc.missing = (gaps{g}); !pc.noneOf(m) {
			t.Errorf("the log lacks others: %+v", g)
		}
	}
	short := newContents()
	for i := range 7 {
		short.note(itemAt(2, put("a", strings.Repeat("1", i+1))))
	}
	short.note(itemAt(m.AppliedMin+1, put("x", "1")))
	if short.noneOf(m) {
		t.Error("a log with hardly any puts")
	}
	few := newStory("3.6.0")
	few.put("a", "1")
	few.put("b", "2")
	if log().noneOf(openStory(t, few)) {
		t.Error("of too few puts")
	}
}

// TestNoneOfBelow: puts up to the compact revision count as far down as the log certainly wrote revisions.
func TestNoneOfBelow(t *testing.T) {
	s := fourPuts()
	s.compact(5)
	s.del("d")
	m := openStory(t, s)
	log := func(puts int, more ...*dumplog.Request) *putContents {
		pc := newContents()
		for i := range puts {
			pc.note(itemAt(2, put("a", strings.Repeat("1", i+2))))
		}
		for _, r := range more {
			pc.note(itemAt(3, r))
		}
		return pc
	}
	leased, authed := put("x", "1"), put("x", "1")
	leased.Put.Lease, authed.Header.AuthRevision = 7, 1
	disputed, late := log(7), log(7)
	it := itemAt(3, put("x", "1"))
	it.others = map[int]*item{1: itemAt(3, put("x", "2"))}
	disputed.note(it)
	late.note(itemAt(m.AppliedMin+1, put("x", "1")))
	disputed.puts, late.puts = append([]uint64{1}, disputed.puts...), append([]uint64{1}, late.puts...)
	for name, c := range map[string]struct {
		pc   *putContents
		want bool
	}{
		"as far as all of them":         {log(8), true},
		"one of them is the log's":      {log(8, put("b", "2")), false},
		"an alarm that is asked for":    {log(8, alarmOf(0, 1)), true},
		"an alarm may have refused":     {log(8, alarmOf(1, 1)), false},
		"auth may have refused":         {log(8, authed), false},
		"auth was on":                   {log(8, authOf(dumplog.KindAuthRoleAdd, "", "r")), false},
		"one may have found no lease":   {log(3, leased, leased, leased, leased, leased), false},
		"one is another in another log": {disputed, true},
	} {
		if got := c.pc.noneOf(m); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if !c.pc.fewOfNewest(m, 1) && c.pc.manyBetween(0, 3) {
			t.Errorf("%s: more than one", name)
		}
		want := name != "one of them is the log's"
		if got := c.pc.fewOfNewest(m, 0); got != want && c.pc.manyBetween(0, 3) {
			t.Errorf("%s, whatever is compacted: %v, want %v", name, got, want)
		}
	}
	for name, c := range map[string]struct {
		pc   *putContents
		want int64
	}{"all": {log(8), 8}, "those up to its index": {late, 7}, "those that all logs have": {disputed, 7},
		"a lease": {log(8, leased), 8}, "auth": {log(8, authed), 0}} {
		if got := c.pc.wroteUpTo(m); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	m.DB.Auth.Enabled = true
	if n := log(8).wroteUpTo(m); n != 0 {
		t.Errorf("with auth: %d", n)
	}
	m.DB.Auth.Enabled, m.DB.Alarms = false, []dumpdb.Alarm{{MemberID: 1, Type: 1}}
	if n := log(8).wroteUpTo(m); n != 0 {
		t.Errorf("with an alarm: %d", n)
	}
}

// TestManyBetween: puts count that cannot all have been refused.
func TestManyBetween(t *testing.T) {
	log := func(n int, authRevision uint64) *putContents {
		pc := newContents()
		for i := range n {
			r := put("a", strings.Repeat("1", i+1))
			r.Header.AuthRevision = authRevision
			pc.note(itemAt(uint64(11+i), r))
		}
		return pc
	}
	same := newContents()
	for i := range 9 {
		same.note(itemAt(uint64(11+i), put("a", "1")))
	}
	k := apply.Alarm{Type: int32(pb.AlarmType_NOSPACE)}
	for name, c := range map[string]struct {
		pc      *putContents
		changes []alarmChange
		always  []dumpdb.Alarm
		want    bool
	}{
		"many":                              {pc: log(8, 0), want: true},
		"few":                               {pc: log(7, 0)},
		"above the index":                   {pc: log(30, 0), want: true},
		"of one content":                    {pc: same},
		"as if auth were on":                {pc: log(8, 3), want: true},
		"an alarm cleared at the end":       {pc: log(8, 0), changes: []alarmChange{{index: 19, alarm: k}}},
		"an alarm raised at their begin":    {pc: log(8, 0), changes: []alarmChange{{index: 11, alarm: k, on: true}}},
		"an alarm raised and cleared first": {log(10, 0), []alarmChange{{11, k, true}, {12, k, false}}, nil, true},
		"an alarm that was cleared before a gap": {pc: log(8, 0),
			changes: []alarmChange{{2, k, true}, {3, k, false}, {19, k, false}}},
		"an alarm that the log never names": {pc: log(8, 0), always: []dumpdb.Alarm{{MemberID: 1, Type: 1}}},
	} {
		r := &Result{Members: []*MemberResult{{Member: &evidence.Member{DB: &evidence.DB{Handle: &dumpdb.DB{},
			Alarms: c.always}}}}}
		c.pc.end(&Survey{state: &lastStates{alarmChanges: c.changes}}, r)
		if got := c.pc.manyBetween(10, 20); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	(*putContents)(nil).end(nil, nil)
}

// TestWrittenUpTo: a put above a revision that only entries up to an index put shows that the log had written it there.
func TestWrittenUpTo(t *testing.T) {
	s := newStory("3.6.0")
	s.put("a", "1")
	s.put("b", "2")
	s.put("c", "3")
	s.del("c")
	m := openStory(t, s) // revisions 2 to 5
	kept := put("b", "")
	kept.Put.IgnoreValue = true
	for name, c := range map[string]struct {
		log   []*dumplog.Request // from entry 11 on
		above int64
		want  int64
	}{
		"the index":             {[]*dumplog.Request{put("b", "2")}, 2, 3},
		"after it":              {[]*dumplog.Request{put("x", ""), put("x", ""), put("b", "2")}, 2, 0},
		"before it and after":   {[]*dumplog.Request{put("b", "2"), put("x", ""), put("b", "2")}, 2, 0},
		"another value":         {[]*dumplog.Request{put("b", "3")}, 2, 0},
		"kept by another entry": {[]*dumplog.Request{put("b", "2"), put("x", ""), kept}, 2, 0},
		"a later put":           {[]*dumplog.Request{put("b", "2"), put("c", "3")}, 3, 4},
		"not above":             {[]*dumplog.Request{put("b", "2")}, 3, 0},
	} {
		pc := newContents()
		for i, r := range c.log {
			pc.note(itemAt(uint64(11+i), r))
		}
		if got := pc.writtenUpTo(12, m, c.above); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
		pc.full = true
		if got := pc.writtenUpTo(12, m, c.above); got != 0 {
			t.Errorf("%s: %d although there are too many", name, got)
		}
	}
	var none *putContents
	for index, want := range map[uint64]bool{12: true, 13: false} {
		pc := newContents()
		pc.note(itemAt(11, put("b", "2")))
		if pc.missing = (gaps{{index, index}}); (pc.writtenUpTo(12, m, 2) > 0) != want {
			t.Errorf("entry %d is in no log: want %t", index, want)
		}
	}
	if none.writtenUpTo(12, m, 0) != 0 {
		t.Error("without contents")
	}
}

// TestEntriesOf: a put with another lease left another record; one that keeps the lease may have left any.
func TestEntriesOf(t *testing.T) {
	pc := newContents()
	puts := []func(p *dumplog.PutRequest){func(p *dumplog.PutRequest) { p.Lease = 7 },
		func(p *dumplog.PutRequest) { p.IgnoreLease = true }, func(p *dumplog.PutRequest) { p.Lease = 8 },
		func(p *dumplog.PutRequest) { p.Lease = 7 }}
	for i, change := range puts {
		r := put("k", "v")
		change(r.Put)
		pc.note(itemAt(uint64(11+i), r))
	}
	for lease, want := range map[int64][2]uint64{7: {11, 14}, 8: {12, 13}, 9: {12, 12}, 0: {12, 12}} {
		rec := &dumpdb.Revision{KV: dumpdb.KeyValue{Key: []byte("k"), Value: []byte("v"), Lease: lease}}
		if first, last := pc.entriesOf(rec); [2]uint64{first, last} != want {
			t.Errorf("lease %d: %d to %d, want %v", lease, first, last, want)
		}
		rec.KV.Value = []byte("w")
		if first, last := pc.entriesOf(rec); first != 0 || last != 0 {
			t.Errorf("another value: %d to %d", first, last)
		}
	}
}

func fourPuts() *story {
	s := newStory("3.6.0")
	for i, key := range []string{"a", "b", "c", "d"} {
		s.put(key, strconv.Itoa(i+1))
	}
	return s
}

func openStory(t *testing.T, s *story) *evidence.Member {
	t.Helper()
	dirs := s.Write(t, t.TempDir())
	set, err := evidence.Open(t.Context(), []evidence.Spec{{Where: dirs[0]}}, evidence.Options{Deep: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = set.Close() })
	return set.Members[0]
}
