package replay

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

func alarmOf(action, kind int32) *dumplog.Request {
	return &dumplog.Request{Kind: dumplog.KindAlarm,
		Alarm: &dumplog.AlarmRequest{Action: action, MemberID: 0xa1, Alarm: kind}}
}

func authOf(kind dumplog.Kind, user, role string) *dumplog.Request {
	return &dumplog.Request{Kind: kind, Auth: &dumplog.AuthRequest{User: user, Role: role}}
}

func v2Of(path string) *dumplog.Request {
	return &dumplog.Request{Kind: dumplog.KindV2, V2: &dumplog.V2Request{Method: "PUT", Path: path, ID: 5}}
}

// TestRowsOfRequests: the buckets and rows that each kind of request can change.
func TestRowsOfRequests(t *testing.T) {
	conf := &dumplog.Request{Kind: dumplog.KindConfChange, ConfChange: &dumplog.ConfChange{NodeID: 0xb1}}
	checkpoint := &dumplog.Request{Kind: dumplog.KindLeaseCheckpoint, LeaseCheckpoint: &dumplog.LeaseCheckpointRequest{
		Checkpoints: []dumplog.LeaseCheckpoint{{ID: 7}, {ID: -8}}}}
	attr := &dumplog.Request{MemberAttr: &dumplog.ClusterMemberAttrSet{MemberID: 0xb1}}
	const auth = "auth authUsers authRoles"
	for name, c := range map[string]struct {
		r       *dumplog.Request
		buckets string
		rows    string
	}{
		"grant":        {grantOf(7, 1, 0), "lease", "lease/7"},
		"revoke":       {revokeOf(0x1f), "lease", "lease/1f"},
		"checkpoints":  {checkpoint, "lease", "lease/7 lease/fffffffffffffff8"},
		"alarm":        {alarmOf(1, 1), "alarm", "alarm/a1 NOSPACE"},
		"alarms, read": {alarmOf(0, 1), "", ""},
		"conf change":  {conf, "members members_removed", "members/b1 members_removed/b1"},
		"publish":      {attr, "members", "members/b1"},
		"version": {&dumplog.Request{ClusterVer: &dumplog.ClusterVersionSet{}}, "cluster",
			"cluster/clusterVersion"},
		"downgrade": {&dumplog.Request{Downgrade: &dumplog.DowngradeInfoSet{}}, "cluster", "cluster/downgrade"},
		"v2 member": {v2Of("/0/members/b1/x"), "members", "members/"},
		"v2 client": {v2Of("/1/k"), "v2", "v2/"},
		"enable":    {&dumplog.Request{Kind: dumplog.KindAuthEnable}, auth, "auth/authRevision auth/authEnabled"},
		"disable":   {&dumplog.Request{Kind: dumplog.KindAuthDisable}, "", ""},
		"user":      {authOf(dumplog.KindAuthUserAdd, "u", ""), auth, "auth/authRevision authUsers/u"},
		"role":      {authOf(dumplog.KindAuthRoleAdd, "", "r"), auth, "auth/authRevision authRoles/r"},
		"role deleted": {authOf(dumplog.KindAuthRoleDelete, "", "r"), auth,
			"auth/authRevision authUsers/ authRoles/r"},
		"no role named": {authOf(dumplog.KindAuthRoleAdd, "", ""), auth, "auth/authRevision authRoles/"},
		"auth, unknown": {&dumplog.Request{Kind: dumplog.KindAuthRoleAdd}, auth,
			"auth/authRevision authUsers/ authRoles/"},
		"auth, read": {authOf(dumplog.KindAuthUserGet, "u", ""), "", ""},
		"put":        {put("k", "v"), "", ""},
	} {
		var rows []string
		for _, r := range rowsOfRequest(c.r) {
			rows = append(rows, r.Bucket+"/"+r.Key)
		}
		if got := strings.Join(touches(c.r), " "); name != "disable" && (got != c.buckets || strings.Join(rows,
			" ") != c.rows) {
			t.Errorf("%s: %q, %q; want %q, %q", name, got, rows, c.buckets, c.rows)
		}
	}
}

// TestProposer: the low 16 bits of a member's ID name the proposer, unless two members share them.
func TestProposer(t *testing.T) {
	s := &Survey{prefixes: map[uint16]dumplog.ID{}}
	for _, id := range []dumplog.ID{0x1_00a1, 0x1_00a1, 0xa2, 0x7_00a2} {
		s.learn(id)
	}
	for id, want := range map[RequestID]dumplog.ID{0: 0, 0x00a1_0000_0000_0001: 0x1_00a1, 0x00a2_0000_0000_0001: 0,
		0x00a3_0000_0000_0001: 0} {
		if got := s.Proposer(id); got != want {
			t.Errorf("%x: %s, want %s", uint64(id), got, want)
		}
	}
	v2, v3 := v2Of("/1/k"), put("k", "v")
	v3.Header.ID = 9
	if requestID(v2) != 5 || requestID(v3) != 9 {
		t.Errorf("request IDs %d and %d", requestID(v2), requestID(v3))
	}
}

// TestExtent: the merged log begins and ends with its first and last entry; what is missing between is a gap.
func TestExtent(t *testing.T) {
	r := &Result{}
	for _, at := range []uint64{4, 5, 8, 9, 11} {
		r.noteExtent(itemAt(at, put("k", "v")))
	}
	if want := []Gap{{6, 7}, {10, 10}}; r.First != 4 || r.Last != 11 || !slices.Equal(r.Gaps, want) {
		t.Errorf("%d to %d, gaps %v", r.First, r.Last, r.Gaps)
	}
	if s := r.Gaps[0].String(); s != "6..7" {
		t.Errorf("%q", s)
	}
	for applied, end := range map[uint64]uint64{5: 11, 6: 5, 7: 5, 8: 11, 10: 9, 11: 11, 99: 11} {
		if got := r.logEnd(applied); got != end {
			t.Errorf("applied %d: the log ends at %d, want %d", applied, got, end)
		}
	}
	for applied, from := range map[uint64]uint64{5: 4, 7: 4, 8: 8, 10: 8, 11: 11} {
		lv := &logView{m: &evidence.Member{AppliedMin: applied}}
		if got := lv.stretch(r); got != from {
			t.Errorf("applied %d: the stretch begins at %d, want %d", applied, got, from)
		}
	}
	if unfit(&Result{}, true, true) == "" || unfit(r, false, true) == "" || unfit(r, true, false) == "" ||
		unfit(r, true, true) != "" {
		t.Error("what cannot be replayed is replayed, or what can be is not")
	}
	entries := []AuthEntry{{Index: 3}, {Index: 5}, {Index: 6}}
	for base, n := range map[uint64]int{2: 3, 3: 2, 4: 2, 5: 1, 6: 0} {
		if got := behind(entries, base); len(got) != n {
			t.Errorf("auth entries after %d: %v", base, got)
		}
	}
}

// TestSpanBehind: entries between the consistent index and a snapshot of the log, by what each of them does.
func TestSpanBehind(t *testing.T) {
	empty := &dumplog.Request{Kind: dumplog.KindEmpty}
	for name, c := range map[string]struct {
		r    *dumplog.Request
		want Behind
	}{
		"a leader's first":        {empty, Behind{Idle: 1}},
		"a login":                 {&dumplog.Request{Kind: dumplog.KindAuthenticate}, Behind{Idle: 1}},
		"a list of users":         {&dumplog.Request{Kind: dumplog.KindAuthUserList}, Behind{Idle: 1}},
		"a read":                  {&dumplog.Request{Kind: dumplog.KindRange}, Behind{Idle: 1}},
		"a put":                   {put("k", "v"), Behind{Effective: 1, FirstEffective: 53}},
		"a delete of nothing":     {del("none", ""), Behind{Idle: 1}},
		"a grant":                 {grantOf(7, 1, 0), Behind{Effective: 1, FirstEffective: 53}},
		"alarms, read":            {alarmOf(0, 0), Behind{AlarmQueries: 1}},
		"an alarm that is on":     {alarmOf(1, 1), Behind{AlarmRaises: 1}},
		"an alarm that is not on": {alarmOf(1, 2), Behind{Effective: 1, FirstEffective: 53}},
		"an alarm turned off":     {alarmOf(2, 1), Behind{Effective: 1, FirstEffective: 53}},
		"an admin's request":      {authOf(dumplog.KindAuthRoleAdd, "", "r"), Behind{Refused: 1}},
	} {
		s := newBench(t, 6, -1).sim
		s.m.AppliedMin, s.m.AppliedMax, s.newestSnap = 50, 50, 53
		s.Alarms = apply.Alarms{apply.Alarm{Member: 0xa1, Type: 1}: {}}
		s.Auth = rooted()
		s.Auth.Known = true
		if apply.WritesKeys(c.r.Kind) {
			s.Auth.Enabled, s.Alarms = false, apply.Alarms{}
		}
		s.behind(itemAt(53, c.r), false)
		s.behind(itemAt(54, put("k", "v")), false) // above the snapshot
		want := c.want
		want.From, want.To, want.Entries = 51, 53, 1
		if s.res.Behind == nil || *s.res.Behind != want || s.res.Behind.Harmless() {
			t.Errorf("%s: %+v, want %+v", name, s.res.Behind, want)
		}
	}
	s := newBench(t, 6, -1).sim
	s.m.AppliedMax, s.newestSnap = 50, 52
	s.behind(itemAt(51, empty), false)
	s.behind(itemAt(52, empty), true)
	if b := s.res.Behind; b == nil || !b.Harmless() || b.Idle != 2 {
		t.Errorf("%+v is not harmless", b)
	}
	s.behind(itemAt(52, del("none", "")), true)
	if b := s.res.Behind; b.Harmless() || b.FirstEffective != 52 {
		t.Errorf("an effect on another member: %+v", b)
	}
	old := newBench(t, 4, -1).sim
	old.m.AppliedMax, old.newestSnap = 50, 52
	if old.behind(itemAt(51, empty), false); old.res.Behind != nil {
		t.Errorf("up to 3.4 the index lags legally: %+v", old.res.Behind)
	}
	for _, c := range []struct {
		os   []Outcome
		want bool
	}{{nil, false}, {[]Outcome{{State: Applied}}, false}, {[]Outcome{{State: Refused, Sig: 1}}, false},
		{[]Outcome{{}, {State: Applied, Sig: 1}}, true}} {
		if got := someApplied(c.os); got != c.want {
			t.Errorf("%+v: %t", c.os, got)
		}
	}
}

// TestBeyondTheCommit: up to 3.4 a database may hold the effect of entries above every known commit index.
func TestBeyondTheCommit(t *testing.T) {
	var beyond []*dumplog.Request
	for _, old := range []bool{false, true} {
		s := &Survey{LastTouch: map[string]uint64{}, rows: newRowTouches(0)}
		for i, r := range []*dumplog.Request{grantOf(7, 1, 0), put("k", "v"), revokeOf(8), alarmOf(1, 1), alarmOf(0, 1),
			authOf(dumplog.KindAuthRoleAdd, "", "r")} {
			s.noteBeyond(itemAt(uint64(i+70), r), old)
		}
		beyond = s.beyond
		want := 0
		if old {
			want = 4
		}
		if len(beyond) != want || (s.LastTouch["lease"] == 72) != old || (s.TouchedBetween(Row{"lease", "8"}, 0,
			99) == 72) != old {
			t.Errorf("old %t: %d kept, touched %v", old, len(beyond), s.LastTouch)
		}
	}
	for minor, want := range map[int]string{4: "alarm auth/authRevision authRoles/r lease/7 lease/8", 6: ""} {
		aw := newBench(t, minor, -1).sim.auth
		aw.mayHold(append(beyond, alarmOf(0, 1)))
		if got := strings.Join(sortedKeys(aw.touched), " "); got != want || (aw.authBeyond == 1) != (minor == 4) ||
			(aw.leases.ahead[7] == 1) != (minor == 4) {
			t.Errorf("3.%d: %q, %d auth entries", minor, got, aw.authBeyond)
		}
	}
}

// TestAuthRises: auth entries may raise the auth revision, as may entries that do not decode and those that are auth
// entries in one of the logs.
func TestAuthRises(t *testing.T) {
	s, role := &Survey{}, authOf(dumplog.KindAuthRoleAdd, "", "r")
	broken, both := itemAt(13, put("k", "v")), itemAt(14, put("k", "v"))
	broken.err, broken.holders, both.holders = errDoubted, []int{0}, []int{0}
	other := itemAt(14, role)
	other.holders = []int{1}
	both.others = map[int]*item{1: other}
	for _, it := range []*item{itemAt(9, role), itemAt(10, role), itemAt(11, role), itemAt(12, put("k", "v")), broken,
		both, itemAt(15, role)} {
		s.noteAuthRise(it, 10)
	}
	for index, want := range map[uint64]int{0: 4, 10: 4, 11: 3, 12: 3, 13: 2, 14: 1, 15: 0, 16: 0} {
		if got := s.AuthRisesAfter(index); got != want {
			t.Errorf("after %d: %d, want %d of %v", index, got, want, s.AuthRises)
		}
	}
}

// TestTwoProcesses: a member ran twice at once if an older process proposed between entries of a newer one.
func TestTwoProcesses(t *testing.T) {
	of := func(member, start, n uint64) RequestID { return RequestID(member<<48 | start<<8 | n) }
	type step struct {
		id      RequestID
		publish bool
	}
	begin := []step{{of(1, 5000, 1), true}, {of(1, 9000, 1), true}}
	for name, c := range map[string]struct {
		steps []step
		want  bool
	}{
		"older, then newer":     {[]step{{of(1, 5000, 2), false}, {of(1, 9000, 2), false}}, true},
		"older only":            {[]step{{of(1, 5000, 2), false}}, false},
		"newer only":            {[]step{{of(1, 9000, 2), false}, {of(1, 9000, 3), false}}, false},
		"not far enough apart":  {[]step{{of(1, 8000, 2), false}, {of(1, 9000, 2), false}}, false},
		"just far enough apart": {[]step{{of(1, 7999, 2), false}, {of(1, 9000, 2), false}}, true},
		"another member":        {[]step{{of(2, 5000, 2), false}, {of(1, 9000, 2), false}}, false},
		"published again": {[]step{{of(1, 5000, 2), false}, {of(1, 12000, 1), true}, {of(1, 12000, 2),
			false}}, false},
		"no ID":                         {[]step{{of(1, 5000, 2), false}, {0, false}}, false},
		"older, a bit older than newer": {[]step{{of(1, 5000, 2), false}, {of(1, 8999, 2), false}}, false},
	} {
		var l lives
		var found []*Overlap
		for i, s := range slices.Concat(begin, c.steps, c.steps) {
			if o := l.note(uint64(i+1), s.id, s.publish); o != nil {
				found = append(found, o)
			}
		}
		if len(found) > 1 || (len(found) == 1) != c.want {
			t.Errorf("%s: %d found", name, len(found))
			continue
		}
		if c.want && (found[0].Publish != 2 || found[0].Old != 3 || found[0].New != 4) {
			t.Errorf("%s: %+v", name, found[0])
		}
	}
	r, s := &Result{}, &Survey{prefixes: map[uint16]dumplog.ID{}}
	r.overlap(&Overlap{NewID: of(1, 9000, 1)}, s)
	s.learn(0x1)
	r.overlap(&Overlap{NewID: of(1, 9000, 1)}, s)
	if len(r.Overlaps) != 1 || r.Overlaps[0].Member != 1 {
		t.Errorf("%+v", r.Overlaps)
	}
}

// TestMarksAreBounded: what a timeline shows of the log, up to a bound; the rest is counted.
func TestMarksAreBounded(t *testing.T) {
	s := &Survey{describe: func(*dumplog.Request) string { return "words" }}
	for i := range uint64(maxMarks + 3) {
		s.mark(itemAt(i+1, alarmOf(1, apply.AlarmCorrupt)))
	}
	if m := s.Marks[0]; len(s.Marks) != maxMarks || s.MarksLeftOut != 3 || m.Kind != "alarm" || !m.Corrupt ||
		m.Member != 0xa1 || m.What != "words" || m.Index != 1 || m.Term != 3 {
		t.Errorf("%d marks, %d left out, %+v", len(s.Marks), s.MarksLeftOut, m)
	}
	for _, r := range []*dumplog.Request{put("k", "v"), alarmOf(0, 1)} {
		s = &Survey{}
		if s.mark(itemAt(1, r)); len(s.Marks) > 0 {
			t.Errorf("%+v", s.Marks)
		}
	}
	s = &Survey{describe: s.describe}
	s.describe = func(*dumplog.Request) string { return "words" }
	for _, c := range []struct{ action, kind int32 }{{2, apply.AlarmCorrupt}, {1, 1}} {
		s.Marks = nil
		if s.mark(itemAt(1, alarmOf(c.action, c.kind))); len(s.Marks) != 1 || s.Marks[0].Corrupt {
			t.Errorf("%+v: %+v", c, s.Marks)
		}
	}
}

// TestBursts: revokes of one proposer, term and user that follow each other closely are one burst; short ones are
// dropped when another begins.
func TestBursts(t *testing.T) {
	type at struct {
		index, term uint64
		user        string
	}
	for name, c := range map[string]struct {
		list []at
		want string
	}{
		"close":          {[]at{{10, 2, ""}, {15, 2, ""}, {20, 2, ""}}, "10-20 3"},
		"too far":        {[]at{{10, 2, ""}, {16, 2, ""}}, "16-16 1"},
		"long, then far": {[]at{{10, 2, ""}, {11, 2, ""}, {12, 2, ""}, {20, 2, ""}}, "10-12 3, 20-20 1"},
		"two, then far":  {[]at{{10, 2, ""}, {11, 2, ""}, {20, 2, ""}}, "20-20 1"},
		"another term":   {[]at{{10, 2, ""}, {11, 3, ""}}, "11-11 1"},
		"another user":   {[]at{{10, 2, ""}, {11, 2, "u"}}, "11-11 1"},
	} {
		s := &Survey{prefixes: map[uint16]dumplog.ID{}}
		for _, a := range c.list {
			r := revokeOf(7)
			r.Header.Username = a.user
			s.noteRevoke(&item{entry: dumplog.Entry{Term: a.term, Index: a.index}, req: r})
			s.noteRevoke(itemAt(a.index, put("k", "v")))
		}
		var got []string
		for _, b := range s.Bursts {
			got = append(got, fmt.Sprintf("%d-%d %d", b.First, b.Last, b.Revokes))
		}
		if g := strings.Join(got, ", "); g != c.want {
			t.Errorf("%s: %s, want %s", name, g, c.want)
		}
	}
	s := &Survey{LeaseTerms: make([]LeaseTerm, maxBursts)}
	for i := range s.LeaseTerms {
		s.LeaseTerms[i].Term = uint64(i + 1)
	}
	if s.noteLease(&item{entry: dumplog.Entry{Term: maxBursts + 1}, req: revokeOf(7)}); len(s.LeaseTerms) != maxBursts {
		t.Errorf("%d terms", len(s.LeaseTerms))
	}
	s.LeaseTerms = s.LeaseTerms[:1]
	granted := grantOf(7, 60, 0)
	s.noteLease(&item{entry: dumplog.Entry{Term: 1, Index: 5}, req: granted})
	if s.LeaseTerms[0].Grants != 0 {
		t.Error("a grant without auth counts")
	}
	granted.Header.AuthRevision = 2
	s.noteLease(&item{entry: dumplog.Entry{Term: 1, Index: 6}, req: granted})
	if x := s.LeaseTerms[0]; x.Grants != 1 || x.Revokes != 0 || x.Last != 6 {
		t.Errorf("%+v", x)
	}
}

// TestLastWritesOfALog: the last puts whose keys nothing changed later, searched in a database by value and place.
func TestLastWritesOfALog(t *testing.T) {
	leased := put("leased", "1")
	leased.Put.Lease = 7
	kept := put("kept", "1")
	kept.Put.IgnoreValue = true
	var w LastWrites
	for i, r := range []*dumplog.Request{put("a", "1"), put("b", "1"), leased, kept, put("a", "2"), del("b", ""),
		{Kind: dumplog.KindRange}, revokeOf(7), put("c", "1"), put("d", "1")} {
		w.Add(&Entry{Entry: &dumplog.Entry{Index: uint64(i + 1)}, Req: r})
	}
	w.Add(&Entry{Entry: &dumplog.Entry{Index: 20}, Req: put("e", "1"), Err: errors.New("unknown")})
	w.Add(&Entry{Entry: &dumplog.Entry{Index: 21}})
	model := apply.NewModel(rooted().Version)
	m := &Machine{&model}
	if f := w.Find(m); f != (LastWritesFound{Tried: 3}) || f.Most() {
		t.Errorf("in an empty database: %+v", f)
	}
	m.s.Revision = 20
	for key, k := range map[string]apply.Key{"a": {Sum: apply.SumOf([]byte("2")), Mod: 16},
		"c": {Sum: apply.SumOf([]byte("x")), Mod: 19},
		"d": {Sum: apply.SumOf([]byte("1")), Mod: 20}} {
		k.Name = key
		m.s.Keys.Put(k)
	}
	// Four entries that write follow the put of a: 20 - 4 is the lowest revision that it can have.
	if f := w.Find(m); f != (LastWritesFound{Tried: 3, Found: 2, InPlace: 2}) || !f.Most() {
		t.Errorf("%+v", f)
	}
	m.s.Revision = 21
	if f := w.Find(m); f != (LastWritesFound{Tried: 3, Found: 2}) || f.Most() {
		t.Errorf("a revision later: %+v", f)
	}
	m.s.Keys.Put(apply.Key{Name: "c", Lease: 3})
	if f := w.Find(m); f.Tried != 2 {
		t.Errorf("a key with a lease is compared: %+v", f)
	}
	for i := range maxLastWrites + 5 {
		w.Add(&Entry{Entry: &dumplog.Entry{}, Req: put(fmt.Sprint("n", i), "1")})
	}
	newest := fmt.Sprint("n", maxLastWrites+4)
	if len(w.puts) != maxLastWrites || w.puts[0].key != "n5" || w.puts[maxLastWrites-1].key != newest {
		t.Errorf("%d kept, from %s", len(w.puts), w.puts[0].key)
	}
}

// TestSteps: two steps write the same records if keys, deletes, values and leases are the same, in order.
func TestSteps(t *testing.T) {
	w := func(key string, sum uint64, lease int64, del bool) apply.Write {
		return apply.Write{Key: key, Sum: sum, Lease: lease, Delete: del}
	}
	a := &Step{writes: []apply.Write{w("a", 1, 7, false), w("b", 0, 0, true)}}
	for name, c := range map[string]struct {
		writes []apply.Write
		want   bool
	}{
		"same":          {slices.Clone(a.writes), true},
		"another order": {[]apply.Write{a.writes[1], a.writes[0]}, false},
		"another value": {[]apply.Write{w("a", 2, 7, false), a.writes[1]}, false},
		"another lease": {[]apply.Write{w("a", 1, 8, false), a.writes[1]}, false},
		"another key":   {[]apply.Write{w("x", 1, 7, false), a.writes[1]}, false},
		"a put":         {[]apply.Write{a.writes[0], w("b", 0, 0, false)}, false},
		"one less":      {a.writes[:1], false},
		"none":          {nil, false},
	} {
		b := &Step{writes: c.writes}
		if a.SameRecords(b) != c.want || b.SameRecords(a) != c.want || (a.Effects() == b.Effects()) != c.want {
			t.Errorf("%s: %t, effects %x and %x", name, !c.want, a.Effects(), b.Effects())
		}
	}
	none := &Step{}
	if none.SameRecords(none) || none.Effects() != 0 || none.Writes() != 0 || a.Writes() != 2 || !a.Touches("b") ||
		a.Touches("x") || none.Touches("a") {
		t.Error("a step without writes, or of which the keys are wrong")
	}
}

// TestUndecodableAsDamage: an entry that does not decode is a damaged place of the logs that hold it.
func TestUndecodableAsDamage(t *testing.T) {
	r := &Result{}
	r.undecodable(1, Undecodable{Index: 7, Term: 2, Err: errors.New("no request")})
	r.undecodable(1, Undecodable{Index: 9, Term: 3, Panics: true, Err: errors.New("no message")})
	list := r.UndecodableDamage(1)
	if len(list) != 2 || len(r.UndecodableDamage(0)) != 0 {
		t.Fatalf("%v", list)
	}
	for i, want := range []struct {
		index   uint64
		refused bool
		says    string
	}{{7, false, "older servers may ignore it"}, {9, true, "panics when it applies the entry"}} {
		d := list[i]
		if d.Kind != dumplog.DamageRequest || d.LostFrom != want.index || d.LostTo != want.index ||
			d.After != want.index-1 || (d.OnStart == dumplog.StartRefused) != want.refused ||
			!strings.Contains(d.Server, want.says) ||
			!strings.Contains(d.Err.Error(), fmt.Sprintf("of entry %d/%d matches", i+2, want.index)) {
			t.Errorf("%+v", d)
		}
	}
}

// TestIndexOfOneBit: the index that a stored one was made of by a flipped bit, and when the stored one is impossible.
func TestIndexOfOneBit(t *testing.T) {
	for _, c := range []struct{ stored, last, want uint64 }{
		{0b1000_0101, 0b101, 0b101}, {0b1000_0101, 0b100, 0}, {0b1001_0101, 0b101, 0}, {12, 8, 8}, {12, 9, 8},
		{12, 4, 4},
		{7, 7, 6}, {0, 9, 0}, {1, 9, 0},
	} {
		if got := cleared(c.stored, c.last); got != c.want {
			t.Errorf("%d up to %d: %d, want %d", c.stored, c.last, got, c.want)
		}
	}
	stored := uint64(0)
	m := &evidence.Member{DB: &evidence.DB{Handle: &dumpdb.DB{}}, WAL: evidence.WAL{Log: &dumplog.Log{}}}
	m.DB.Meta.ConsistentIndex = &stored
	m.WAL.Summary.LastIndex = 100
	for index, want := range map[uint64]bool{99: false, 101: false, 100 + absurd - 1: false, 100 + absurd: true} {
		if stored = index; beyondReason(m) != want {
			t.Errorf("%d is beyond reason: %t", index, !want)
		}
	}
	for _, c := range []struct {
		first     uint64
		snapshots []uint64
		want      uint64
	}{{0, nil, 0}, {1, nil, 0}, {20, nil, 19}, {20, []uint64{30, 25}, 30}, {20, []uint64{10}, 19}} {
		m.WAL.Summary.FirstIndex, m.WAL.Summary.Snapshots = c.first, nil
		for _, at := range c.snapshots {
			m.WAL.Summary.Snapshots = append(m.WAL.Summary.Snapshots, dumplog.SnapshotRecord{Index: at})
		}
		if got := lowestIndex(m); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
	for name, change := range map[string]func(r *MemberResult){
		"not replayed": func(r *MemberResult) { r.Checked = false },
		"none wrote":   func(r *MemberResult) { r.LastWrite = 0 },
		"no writers":   func(r *MemberResult) { r.Writes = 0 },
		"ahead":        func(r *MemberResult) { r.Ahead = &Stretch{} },
		"rows ahead":   func(r *MemberResult) { r.RowsAhead = &RowsAhead{} },
		"extra":        func(r *MemberResult) { r.Extra = []int64{1} },
		"missing":      func(r *MemberResult) { r.Counts[Missing]++ },
		"other":        func(r *MemberResult) { r.Counts[Contradicted]++ }, "below": func(r *MemberResult) { r.BelowCount++ },
	} {
		r := &MemberResult{Checked: true, Writes: 1, LastWrite: 7}
		if !r.ends() {
			t.Fatal("a database that the log made does not end with it")
		}
		if change(r); r.ends() {
			t.Errorf("%s: the database ends with the log", name)
		}
	}
}

// TestMayHaveIdled: after a long time without effect, as many entries as four times these can have been lost without
// one.
func TestMayHaveIdled(t *testing.T) {
	for name, c := range map[string]struct {
		stored, write, base, last uint64
		want                      bool
	}{
		"wrote until the end":         {500, 378, 10, 384, false},
		"wrote long before":           {500, 300, 10, 384, true},
		"just long enough":            {500, 350, 10, 385, true},
		"just not":                    {500, 350, 10, 384, false},
		"wrote nothing":               {500, 0, 350, 385, true},
		"wrote nothing, for a while":  {500, 0, 350, 384, false},
		"other logs reach the index":  {500, 300, 10, 500, false},
		"beyond all reason":           {1 << 40, 300, 10, 384, false},
		"other logs are a bit longer": {500, 360, 10, 440, true},
	} {
		m := &evidence.Member{DB: &evidence.DB{}, Source: &evidence.Source{}, WAL: evidence.WAL{Log: &dumplog.Log{}}}
		m.WAL.Summary.LastIndex, m.DB.Meta.ConsistentIndex = 384, &c.stored
		m.OverrideConsistentIndex(378)
		r := &MemberResult{Member: m, LastWrite: c.write, BaseIndex: c.base}
		if got := r.mayHaveIdled(c.last); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
