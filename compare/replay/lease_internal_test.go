package replay

import (
	"fmt"
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// leasesOf is what a model of a minor version follows of leases; the member has applied 50 entries for certain, and 60
// at most.
func leasesOf(t *testing.T, minor int, rows ...dumpdb.Lease) *leaseWatch {
	t.Helper()
	lw := newBench(t, minor, -1).sim.leases
	lw.m.AppliedMin, lw.m.AppliedMax = 50, 60
	lw.m.Version, lw.m.DB = evidence.Version{Minor: minor}, &evidence.DB{Leases: rows}
	return lw
}

func grantOf(id, ttl int64, request uint64) *dumplog.Request {
	return &dumplog.Request{Kind: dumplog.KindLeaseGrant, Header: dumplog.Header{ID: dumplog.RequestID(request)},
		LeaseGrant: &dumplog.LeaseGrantRequest{ID: id, TTL: ttl}}
}

func revokeOf(id int64) *dumplog.Request {
	return &dumplog.Request{Kind: dumplog.KindLeaseRevoke, LeaseRevoke: &dumplog.LeaseRevokeRequest{ID: id}}
}

func itemAt(index uint64, r *dumplog.Request) *item {
	return &item{entry: dumplog.Entry{Term: 3, Index: index}, req: r}
}

// TestOwnLeaseID: a server takes the ID of a lease from the sequence of its request IDs, right before that of the
// request, without the highest bit.
func TestOwnLeaseID(t *testing.T) {
	for _, c := range []struct {
		request uint64
		id      int64
		want    bool
	}{
		{1 << 20, 1<<20 - 1, true}, {1 << 20, 1 << 20, false}, {1 << 20, 1<<20 + 1, false},
		{1 << 20, 1<<20 - 1<<16 + 1, true}, {1 << 20, 1<<20 - 1<<16, false}, {1<<63 + 1<<20, 1<<20 - 2, true},
		{0, -1, false}, {1 << 20, 7, false},
	} {
		lw := leasesOf(t, 6)
		lw.noteGrant(itemAt(5, grantOf(c.id, 60, c.request)))
		if lw.ownIDs[c.id] != c.want {
			t.Errorf("request %x, lease %x: %t", c.request, c.id, lw.ownIDs[c.id])
		}
	}
}

// TestOneGrant: the row of a lease comes from the last grant only if that is the one grant above what the member has
// certainly applied, and the lease was not there before.
func TestOneGrant(t *testing.T) {
	for name, c := range map[string]struct {
		minor  int
		id     int64
		grants int
		index  uint64
		known  bool
		own    bool
		want   bool
	}{
		"the state is known":     {6, 7, 1, 51, true, false, true},
		"the server made the ID": {6, 7, 1, 51, false, true, true},
		"it may be older":        {6, 7, 1, 51, false, false, false},
		"certainly applied":      {6, 7, 1, 50, true, true, false},
		"granted twice":          {6, 7, 2, 51, true, true, false},
		"granted before only":    {6, 7, 0, 51, true, true, false},
		"it may be forgotten":    {4, -7, 1, 51, true, true, false},
		"it is never forgotten":  {6, -7, 1, 51, true, true, true},
	} {
		lw := leasesOf(t, c.minor)
		for range c.grants {
			lw.grantAhead(c.id)
		}
		lw.StateKnown, lw.ownIDs = c.known, map[int64]bool{c.id: c.own}
		if got := lw.oneGrant(c.id, &apply.Lease{Granted: c.index}); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

// TestForgottenRevoke: a revoke of a lease that the server may have forgotten is kept, if the member has certainly
// applied it. How the revoke of another lease ended is kept as well, unless the lease was not there.
func TestForgottenRevoke(t *testing.T) {
	for name, c := range map[string]struct {
		minor         int
		id            int64
		index         uint64
		o             Outcome
		revoked, ends bool
	}{
		"may be forgotten":           {4, -7, 50, Outcome{State: Applied}, true, false},
		"may be forgotten, too late": {4, -7, 51, Outcome{State: Applied}, false, false},
		"positive":                   {4, 7, 50, Outcome{State: Applied}, false, true},
		"positive, too late":         {4, 7, 51, Outcome{State: Applied}, false, false},
		"a later release":            {6, -7, 50, Outcome{State: Refused, Reason: ReasonNoSpace}, false, true},
		"the lease was not there":    {6, 7, 50, Outcome{State: Refused, Reason: ReasonLease}, false, false},
	} {
		lw := leasesOf(t, c.minor)
		it := itemAt(c.index, revokeOf(c.id))
		lw.noteRevoke(it)
		lw.noteOutcome(it, c.o)
		kept, revoked := lw.revoked[c.id]
		end, ends := lw.ends[c.id]
		if revoked != c.revoked || ends != c.ends || revoked && kept != (KeptLease{c.id, 3, c.index}) ||
			ends && end != (leaseEnd{3, c.index, c.o.State, c.o.Reason}) {
			t.Errorf("%s: revoked %+v, ended %+v", name, lw.revoked, lw.ends)
		}
	}
}

// TestRepeatedLeases: up to 3.4 a restart executes the operations after the saved index once more, up to its own entry.
// A snapshot that a leader sent repeats none.
func TestRepeatedLeases(t *testing.T) {
	for name, c := range map[string]struct {
		minor    int
		received bool
		want     map[int64]LeaseRepeat
	}{
		"3.4":        {4, false, map[int64]LeaseRepeat{7: {From: 11, To: 19, Restart: 20}, 8: {From: 12, To: 12, Restart: 20}}},
		"3.5":        {5, false, nil},
		"a snapshot": {4, true, nil},
	} {
		lw := leasesOf(t, c.minor)
		for _, op := range []leaseOp{{7, 10}, {7, 11}, {8, 12}, {7, 19}, {9, 20}} {
			lw.noteLeaseOp(itemAt(op.index, nil), op.id)
		}
		lw.saved = 10
		lw.repeatLeases(&restart{index: 20, received: c.received})
		if fmt.Sprint(lw.res.Repeats) != fmt.Sprint(c.want) {
			t.Errorf("%s: %v, want %v", name, lw.res.Repeats, c.want)
		}
	}
}

// TestKeysOfALeaseGone: records that delete all keys of a lease, and no other, are what an expiry leaves.
func TestKeysOfALeaseGone(t *testing.T) {
	tombs := func(keys ...string) *group {
		g := &group{main: 9}
		for i, k := range keys {
			g.records = append(g.records, tomb(9, int64(i), k).record)
		}
		return g
	}
	put := rec(9, 1, "b", "1").record
	for name, c := range map[string]struct {
		g    *group
		want map[int64]leaseEnd
	}{
		"all keys":                {tombs("a", "b"), map[int64]leaseEnd{7: {index: 33, term: 9}}},
		"one of two":              {tombs("a"), nil},
		"one, and one of another": {tombs("a", "c"), nil},
		"one, and one without":    {tombs("a", "d"), nil},
		"a key without lease":     {tombs("d"), nil},
		"a key that is not there": {tombs("x"), nil},
		"a put among them":        {&group{main: 9, records: []record{tombs("a").records[0], put}}, nil},
		"a put first":             {&group{main: 9, records: []record{put, tombs("a").records[0]}}, nil},
		"no record":               {&group{main: 9}, nil},
	} {
		lw := leasesOf(t, 6)
		for key, lease := range map[string]int64{"a": 7, "b": 7, "c": 8, "d": 0} {
			lw.Keys.Put(apply.Key{Name: key, Lease: lease})
		}
		lw.now = 33
		lw.noteGone(c.g)
		if fmt.Sprint(lw.gone) != fmt.Sprint(c.want) {
			t.Errorf("%s: %v, want %v", name, lw.gone, c.want)
		}
	}
}

// TestLeaseFaults: a lease that its revoke left, and one that is gone without a revoke.
func TestLeaseFaults(t *testing.T) {
	row := func(id int64) dumpdb.Lease { return dumpdb.Lease{ID: dumpdb.ID(id)} }
	end := func(s State) map[int64]leaseEnd { return map[int64]leaseEnd{7: {3, 40, s, ReasonNoSpace}} }
	granted := func(change func(l *apply.Lease)) map[int64]*apply.Lease {
		l := &apply.Lease{Granted: 30}
		if change != nil {
			change(l)
		}
		return map[int64]*apply.Lease{7: l}
	}
	torn := func(minor int) func(*leaseWatch) {
		return func(lw *leaseWatch) {
			lw.m.Version, lw.m.WAL.Log = evidence.Version{Minor: minor}, &dumplog.Log{}
			lw.m.WAL.Summary.Damage = []*dumplog.DamageError{{Kind: dumplog.DamageTornTail}}
		}
	}
	kept := LeaseFault{ID: 7, Kept: true, Row: true, Term: 3, Index: 40, Reason: ReasonNoSpace}
	gone := LeaseFault{ID: 7, Granted: 30}
	for name, c := range map[string]struct {
		rows    []dumpdb.Lease
		ends    map[int64]leaseEnd
		leases  map[int64]*apply.Lease
		change  func(lw *leaseWatch)
		want    *LeaseFault
		missing bool
	}{
		"revoked, its row is there":  {rows: []dumpdb.Lease{row(7)}, ends: end(Applied), want: &kept},
		"revoked":                    {ends: end(Applied)},
		"revoked, and another's row": {rows: []dumpdb.Lease{row(8)}, ends: end(Applied)},
		"revoked, changed later": {rows: []dumpdb.Lease{row(7)}, ends: end(Applied),
			change: func(lw *leaseWatch) { lw.touched[leaseKey(7)] = true }},
		"its keys are there": {rows: []dumpdb.Lease{row(7)}, ends: end(Missing), want: &kept, missing: true},
		"its keys are there, changed later": {rows: []dumpdb.Lease{row(7)}, ends: end(Missing),
			change: func(lw *leaseWatch) { lw.touched[leaseKey(7)] = true }, want: &kept, missing: true},
		"its keys are there, its row is not": {ends: end(Missing), missing: true,
			want: &LeaseFault{ID: 7, Kept: true, Term: 3, Index: 40, Reason: ReasonNoSpace}},
		"gone":                   {leases: granted(nil), want: &gone},
		"there":                  {rows: []dumpdb.Lease{row(7)}, leases: granted(nil)},
		"gone by its revoke":     {ends: end(Applied), leases: granted(nil)},
		"it may have been gone":  {leases: granted(func(l *apply.Lease) { l.Unsure = true })},
		"not granted in the log": {leases: granted(func(l *apply.Lease) { l.Granted = 0 })},
		"changed later":          {leases: granted(nil), change: func(lw *leaseWatch) { lw.touched[leaseKey(7)] = true }},
		"an alarm was on": {leases: granted(nil), change: func(lw *leaseWatch) {
			lw.Alarms = apply.Alarms{apply.Alarm{Type: 1}: {}}
		}},
		"an alarm was on, and the state is known": {leases: granted(nil), want: &gone, change: func(lw *leaseWatch) {
			lw.StateKnown, lw.Alarms = true, apply.Alarms{apply.Alarm{Type: 1}: {}}
		}},
		"its keys are gone at a revision": {leases: granted(nil), want: &LeaseFault{ID: 7, Index: 33, Rev: 9, Granted: 30},
			change: func(lw *leaseWatch) { lw.gone = map[int64]leaseEnd{7: {index: 33, term: 9}} }},
		"damage of the log may hide its revoke, 3.4":        {leases: granted(nil), change: torn(4)},
		"damage of the log that moves the index hides none": {leases: granted(nil), change: torn(6), want: &gone},
	} {
		lw := leasesOf(t, 6, c.rows...)
		lw.ends, lw.StateKnown = c.ends, false
		if lw.Leases = c.leases; c.change != nil {
			c.change(lw)
		}
		lw.leaseFaults()
		var want []LeaseFault
		if c.want != nil {
			w := *c.want
			w.Missing = c.missing
			want = append(want, w)
		}
		if !slices.Equal(lw.res.LeaseFaults, want) {
			t.Errorf("%s: %+v, want %+v", name, lw.res.LeaseFaults, want)
		}
	}
}

// TestGrantsOfLeases: the leases of the database with their grants, in the order of their IDs. Of one that entries
// above the applied index can have changed, at most the TTL is known.
func TestGrantsOfLeases(t *testing.T) {
	lw := leasesOf(t, 6, dumpdb.Lease{ID: 9, TTL: 60, RemainingTTL: 5}, dumpdb.Lease{ID: 7, TTL: 30},
		dumpdb.Lease{ID: 8, TTL: 75, RemainingTTL: 4}, dumpdb.Lease{ID: 6, TTL: 1}, dumpdb.Lease{ID: 5, TTL: 1},
		dumpdb.Lease{ID: 4, TTL: 60})
	lw.StateKnown = true
	lw.Leases = map[int64]*apply.Lease{
		9: {TTL: 60, Remaining: 5, Term: 2, Granted: 20, Checkpoint: 25}, 8: {TTL: 60, Term: 2, Granted: 21},
		7: {TTL: 60, Term: 2, Granted: 55}, 5: {TTL: 1}, 4: {TTL: 60, Granted: 56}}
	lw.touched[leaseKey(7)], lw.touched[leaseKey(4)] = true, true
	lw.grantAhead(7)
	lw.revoked = map[int64]KeptLease{6: {ID: 6, Term: 1, Index: 2}}
	lw.checkpoints = map[leaseCheckpoint]bool{{9, 5}: true, {8, 3}: true}
	lw.leaseFacts()
	want := []LeaseFact{{ID: 7, Term: 2, Index: 55, Asked: 60, Stored: 30},
		{ID: 8, Term: 2, Index: 21, Asked: 60, Stored: 75, StoredRemaining: 4, NeverAsked: true},
		{ID: 9, Term: 2, Index: 20, Asked: 60, Stored: 60, Checkpoint: 25, AskedRemaining: 5, StoredRemaining: 5}}
	if !slices.Equal(lw.res.Leases, want) {
		t.Errorf("%+v, want %+v", lw.res.Leases, want)
	}
	if len(lw.res.Kept) != 1 || lw.res.Kept[0].ID != 6 {
		t.Errorf("kept %+v", lw.res.Kept)
	}
	if d := lw.res.StateDiffs; len(d) != 1 || d[0].Key != "7" || d[0].Expected != "TTL of at least 60 s" ||
		d[0].Observed != "TTL 30 s" {
		t.Errorf("%+v", d)
	}
}

// TestTTLOfOlderLease: where the log does not reach back, a grant with another TTL may have been refused for a lease
// that was there before; not one whose ID the server made.
func TestTTLOfOlderLease(t *testing.T) {
	for _, c := range []struct {
		stored     int64
		known, own bool
		facts      int
	}{{60, false, false, 1}, {90, false, false, 0}, {90, true, false, 1}, {90, false, true, 1}} {
		lw := leasesOf(t, 6, dumpdb.Lease{ID: 7, TTL: c.stored})
		lw.StateKnown, lw.ownIDs = c.known, map[int64]bool{7: c.own}
		lw.Leases = map[int64]*apply.Lease{7: {TTL: 60, Granted: 20}}
		if lw.leaseFacts(); len(lw.res.Leases) != c.facts || len(lw.res.StateDiffs) > 0 {
			t.Errorf("%+v: %+v, %+v", c, lw.res.Leases, lw.res.StateDiffs)
		}
	}
}

// TestNeverAsked: a remaining TTL is wrong if no checkpoint sets it, and if the log reaches back or has no checkpoint
// at all.
func TestNeverAsked(t *testing.T) {
	set := map[leaseCheckpoint]bool{{7, 30}: true}
	for _, c := range []struct {
		stored      int64
		known       bool
		checkpoints map[leaseCheckpoint]bool
		want        bool
	}{
		{0, true, nil, false}, {30, true, nil, true}, {30, false, nil, true}, {30, true, set, false},
		{31, true, set, true}, {31, false, set, false},
	} {
		lw := leasesOf(t, 6)
		lw.StateKnown, lw.checkpoints = c.known, c.checkpoints
		if got := lw.neverAsked(7, c.stored); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}

// TestCheckpoints: the remaining TTLs that entries set are known, as far as the member may have applied them.
func TestCheckpoints(t *testing.T) {
	r := &dumplog.Request{Kind: dumplog.KindLeaseCheckpoint, LeaseCheckpoint: &dumplog.LeaseCheckpointRequest{
		Checkpoints: []dumplog.LeaseCheckpoint{{ID: 7, RemainingTTL: 30}, {ID: 8, RemainingTTL: 40}}}}
	for index, want := range map[uint64]struct{ set, touched int }{50: {2, 0}, 51: {2, 2}, 60: {2, 2}, 61: {0, 2}} {
		lw := leasesOf(t, 6)
		if lw.checkpoint(itemAt(index, r)); len(lw.checkpoints) != want.set || len(lw.touched) != want.touched {
			t.Errorf("entry %d: %v, touched %v", index, lw.checkpoints, lw.touched)
		}
	}
}

// TestRevokedKeys: a revoke deletes exactly the keys of its lease, where those are known.
func TestRevokedKeys(t *testing.T) {
	tombs := func(keys ...string) *group {
		g := &group{main: 9}
		for i, k := range keys {
			g.records = append(g.records, tomb(9, int64(i), k).record)
		}
		return g
	}
	for name, c := range map[string]struct {
		r     *dumplog.Request
		g     *group
		known bool
		want  bool
	}{
		"all its keys":         {revokeOf(7), tombs("a", "b"), true, true},
		"one of its keys":      {revokeOf(7), tombs("a"), true, false},
		"a key of another":     {revokeOf(7), tombs("a", "c"), true, false},
		"keys are not known":   {revokeOf(7), tombs("a", "x"), false, true},
		"not a revoke":         {del("a", "c"), tombs("a"), true, true},
		"not a write of those": {del("x", ""), tombs("a"), true, false},
		"a revoke of no puts":  {revokeOf(7), &group{main: 9, records: []record{rec(9, 0, "a", "1").record}}, false, false},
	} {
		b := newBench(t, 6, -1)
		b.sim.KeysKnown = c.known
		for key, lease := range map[string]int64{"a": 7, "b": 7, "c": 8} {
			b.sim.Keys.Put(apply.Key{Name: key, Lease: lease})
		}
		if got := b.sim.matcher.couldHaveWritten(c.r, c.g); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

// TestKeptValue: a put that keeps value or lease writes what the key has, as far as that is known; whether it was
// refused is another question.
func TestKeptValue(t *testing.T) {
	put := func(key string, ignoreValue, ignoreLease bool) *dumplog.Request {
		return &dumplog.Request{Kind: dumplog.KindPut, Put: &dumplog.PutRequest{Key: []byte(key), Value: []byte("2"),
			IgnoreValue: ignoreValue, IgnoreLease: ignoreLease}}
	}
	for name, c := range map[string]struct {
		r      *dumplog.Request
		value  string
		lease  int64
		unsure bool
		want   bool
	}{
		"the value of the key":   {put("a", true, false), "1", 0, false, true},
		"another value":          {put("a", true, false), "3", 0, false, false},
		"another, it is unknown": {put("a", true, false), "3", 0, true, true},
		"the lease of the key":   {put("a", false, true), "2", 7, false, true},
		"another lease":          {put("a", false, true), "2", 8, false, false},
		"neither is kept":        {put("a", false, false), "2", 0, false, true},
		"no such key":            {put("b", true, false), "1", 0, false, false},
	} {
		b := newBench(t, 6, -1)
		b.sim.KeysKnown, b.sim.StateKnown = true, true
		b.sim.Keys.Put(apply.Key{Name: "a", Lease: 7, Sum: apply.SumOf([]byte("1")), Mod: 5, Version: 1, Unsure: c.unsure})
		x := rec(9, 0, string(c.r.Put.Key), c.value).record
		x.lease, x.version = c.lease, 2
		if got := b.sim.matcher.couldHaveWritten(c.r, &group{main: 9, records: []record{x}}); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

// TestDescribeRest: an event names the lease of a put or revoke, and the keys that a revoke or the delete of a range
// deleted on any member.
func TestDescribeRest(t *testing.T) {
	leased := put("k", "v")
	leased.Put.Lease = 7
	many := &dumplog.Request{Kind: dumplog.KindTxn, Txn: &dumplog.TxnRequest{}}
	for range maxNamedKeys + 1 {
		many.Txn.Success = append(many.Txn.Success, dumplog.RequestOp{Put: put("k", "v").Put})
	}
	outcomes := []Outcome{{keys: []string{"a"}}, {keys: []string{"a", "b"}}, {keys: []string{"b"}}}
	for _, c := range []struct {
		r     *dumplog.Request
		lease int64
		keys  []string
	}{{leased, 7, []string{"k"}}, {revokeOf(8), 8, []string{"a", "b"}}, {del("k", ""), 0, []string{"k"}},
		{del("a", "c"), 0, []string{"a", "b"}}, {many, 0, []string{"a", "b"}}} {
		ev := &Event{Keys: []string{"k"}}
		if keysUnnamed(c.r) {
			ev.Outcomes = outcomes
		}
		if ev.describeRest(c.r); ev.Lease != c.lease || !slices.Equal(ev.Keys, c.keys) {
			t.Errorf("%s: lease %d, keys %q", c.r.Kind, ev.Lease, ev.Keys)
		}
	}
	for _, c := range []struct {
		kind dumplog.Kind
		o    Outcome
		want bool
	}{
		{dumplog.KindLeaseRevoke, Outcome{State: Refused, Reason: ReasonLease}, true},
		{dumplog.KindPut, Outcome{State: Refused, Reason: ReasonLease}, false},
		{dumplog.KindLeaseRevoke, Outcome{State: Refused, Reason: ReasonNoSpace}, false},
		{dumplog.KindLeaseRevoke, Outcome{State: Missing, Reason: ReasonLease}, false},
	} {
		if got := (&Event{Kind: c.kind}).revokedBefore(c.o); got != c.want {
			t.Errorf("%s %+v: %t", c.kind, c.o, got)
		}
	}
}

// TestGrantedAgain: what became of a lease before is forgotten once it is granted again.
func TestGrantedAgain(t *testing.T) {
	for minor, id := range map[int]int64{4: -7, 6: 7} {
		lw := leasesOf(t, minor)
		it := itemAt(10, revokeOf(id))
		lw.noteRevoke(it)
		lw.noteOutcome(it, Outcome{State: Applied})
		if len(lw.revoked)+len(lw.ends) != 1 {
			t.Fatalf("3.%d: revoked %v, ended %v", minor, lw.revoked, lw.ends)
		}
		if o := lw.leaseGrant(itemAt(11, grantOf(id, 60, 0))); o.State != Applied || len(lw.revoked)+len(lw.ends) != 0 {
			t.Errorf("3.%d: %+v, revoked %v, ended %v", minor, o, lw.revoked, lw.ends)
		}
	}
}

// TestGrantedAt: where as many leases were granted as are kept, not all are known.
func TestGrantedAt(t *testing.T) {
	s := &Survey{grants: map[int64]uint64{7: 5}}
	for i := int64(100); len(s.grants) < maxLeaseOps; i++ {
		if index, complete := s.grantedAt(7); i < 103 && (index != 5 || !complete) {
			t.Fatalf("%d grants: %d, complete %t", len(s.grants), index, complete)
		}
		s.grants[i] = 9
	}
	if index, complete := s.grantedAt(7); index != 5 || complete {
		t.Errorf("all that are kept: %d, complete %t", index, complete)
	}
	if index, _ := s.grantedAt(8); index != 0 {
		t.Errorf("not granted: %d", index)
	}
}
