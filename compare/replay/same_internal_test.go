package replay

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestSameDatabases: one replay gives the outcome of two members only if all that it looks at is equal.
func TestSameDatabases(t *testing.T) {
	of := func() *evidence.Member {
		m := &evidence.Member{MemberID: 1, AppliedMin: 50, AppliedMax: 60, Version: evidence.Version{Minor: 6},
			WAL: evidence.WAL{Log: &dumplog.Log{}}}
		m.DB = &evidence.DB{Handle: &dumpdb.DB{}, RecordsHash: "h", KV: &dumpdb.KVStats{CurrentRev: 9, CompactRev: 3},
			Leases: []dumpdb.Lease{{ID: 7, TTL: 60, RemainingTTL: 5}}, Alarms: []dumpdb.Alarm{{MemberID: 1, Type: 1}},
			Auth: dumpdb.Auth{Enabled: true, HasRevision: true, Revision: 4,
				Users: []dumpdb.User{{Name: "u", Password: []byte("1"), Roles: []string{"r"}}},
				Roles: []dumpdb.Role{{Name: "r", Perms: []dumpdb.Permission{{Type: 1, Key: []byte("a"), RangeEnd: []byte("b")}}}}}}
		return m
	}
	for name, c := range map[string]struct {
		change func(m *evidence.Member)
		want   bool
	}{
		"equal":                  {func(*evidence.Member) {}, true},
		"another password":       {func(m *evidence.Member) { m.DB.Auth.Users[0].Password = []byte("2") }, true},
		"no database":            {func(m *evidence.Member) { m.DB = nil }, false},
		"another release":        {func(m *evidence.Member) { m.Version.Minor = 5 }, false},
		"applied less":           {func(m *evidence.Member) { m.AppliedMin = 49 }, false},
		"may have applied more":  {func(m *evidence.Member) { m.AppliedMax = 61 }, false},
		"other records":          {func(m *evidence.Member) { m.DB.RecordsHash = "i" }, false},
		"records not known":      {func(m *evidence.Member) { m.DB.RecordsHash = "" }, false},
		"no records":             {func(m *evidence.Member) { m.DB.KV = nil }, false},
		"damage":                 {func(m *evidence.Member) { m.DB.Damage = make([]*dumpdb.DamageError, 1) }, false},
		"another revision":       {func(m *evidence.Member) { m.DB.KV.CurrentRev = 10 }, false},
		"another compaction":     {func(m *evidence.Member) { m.DB.KV.CompactRev = 4 }, false},
		"a mark of restore":      {func(m *evidence.Member) { m.DB.KV.BumpMarker = dumpdb.Rev{Main: 5} }, false},
		"another lease":          {func(m *evidence.Member) { m.DB.Leases[0].ID = 8 }, false},
		"another TTL":            {func(m *evidence.Member) { m.DB.Leases[0].TTL = 61 }, false},
		"another remaining TTL":  {func(m *evidence.Member) { m.DB.Leases[0].RemainingTTL = 6 }, false},
		"an alarm of another":    {func(m *evidence.Member) { m.DB.Alarms[0].MemberID = 2 }, false},
		"another alarm":          {func(m *evidence.Member) { m.DB.Alarms[0].Type = 2 }, false},
		"auth is off":            {func(m *evidence.Member) { m.DB.Auth.Enabled = false }, false},
		"another auth revision":  {func(m *evidence.Member) { m.DB.Auth.Revision = 5 }, false},
		"no auth revision":       {func(m *evidence.Member) { m.DB.Auth.HasRevision = false }, false},
		"another user":           {func(m *evidence.Member) { m.DB.Auth.Users[0].Name = "v" }, false},
		"a user with options":    {func(m *evidence.Member) { m.DB.Auth.Users[0].HasOptions = true }, false},
		"a user has no password": {func(m *evidence.Member) { m.DB.Auth.Users[0].NoPassword = true }, false},
		"another role of a user": {func(m *evidence.Member) { m.DB.Auth.Users[0].Roles[0] = "s" }, false},
		"another role":           {func(m *evidence.Member) { m.DB.Auth.Roles[0].Name = "s" }, false},
		"another right":          {func(m *evidence.Member) { m.DB.Auth.Roles[0].Perms[0].Type = 2 }, false},
		"a right to another key": {func(m *evidence.Member) { m.DB.Auth.Roles[0].Perms[0].Key = []byte("b") }, false},
		"a right to more keys":   {func(m *evidence.Member) { m.DB.Auth.Roles[0].Perms[0].RangeEnd = []byte("c") }, false},
		"a snapshot received":    {func(m *evidence.Member) { m.WAL.Summary.Jumps = make([]dumplog.Jump, 1) }, false},
		"a snapshot ahead": {func(m *evidence.Member) {
			m.WAL.Summary.Snapshots = []dumplog.SnapshotRecord{{Index: 61}}
		}, false},
		"a snapshot of what it has": {func(m *evidence.Member) {
			m.WAL.Summary.Snapshots = []dumplog.SnapshotRecord{{Index: 60}}
		}, true},
	} {
		a, b := of(), of()
		c.change(b)
		r := &Result{Survey: &Survey{}}
		if got := r.equivalentMembers(a, b); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
		if got := r.equivalentMembers(b, a); got != c.want {
			t.Errorf("%s, the other way around: %t", name, got)
		}
	}
	old := func(change func(m *evidence.Member, s *Survey)) bool {
		m, s := of(), &Survey{}
		m.Version.Minor, m.DB.Auth.Revision = 4, 1
		change(m, s)
		return (&Result{Survey: s}).plain(m)
	}
	if !old(func(*evidence.Member, *Survey) {}) ||
		old(func(m *evidence.Member, _ *Survey) { m.DB.Auth.Revision = 2 }) ||
		old(func(_ *evidence.Member, s *Survey) { s.Auth = make([]AuthEntry, 1) }) ||
		old(func(_ *evidence.Member, s *Survey) { s.Stamps = map[dumplog.ID][]Stamp{1: nil} }) {
		t.Error("up to 3.4 a restart may have applied auth entries twice, unless there are none")
	}
}

// TestSameBelow: a key at the place is compared as far as the log is certain about it.
func TestSameBelow(t *testing.T) {
	want := apply.Key{Sum: 1, Lease: 7, Create: 2, Mod: 5, Version: 3}
	for name, c := range map[string]struct {
		change       func(k *apply.Key)
		exact, loose bool
	}{
		"equal":            {func(*apply.Key) {}, true, true},
		"another value":    {func(k *apply.Key) { k.Sum = 2 }, false, false},
		"another lease":    {func(k *apply.Key) { k.Lease = 8 }, false, false},
		"another creation": {func(k *apply.Key) { k.Create = 3 }, false, true},
		"another revision": {func(k *apply.Key) { k.Mod = 6 }, false, true},
		"another version":  {func(k *apply.Key) { k.Version = 4 }, false, true},
	} {
		got, loose := want, want
		c.change(&got)
		loose.Loose = true
		if e, l := sameBelow(&want, &got), sameBelow(&loose, &got); e != c.exact || l != c.loose {
			t.Errorf("%s: %t, where revisions are not certain %t", name, e, l)
		}
	}
}

// TestBeyondRights: a transaction that took effect although the rules refuse an inner operation is recorded, up to a
// bound. Where they may refuse it for another reason, or check nothing, it is not.
func TestBeyondRights(t *testing.T) {
	in := dumplog.RequestOp{Txn: &dumplog.TxnRequest{Success: []dumplog.RequestOp{putOp("/x", "1")}}}
	app := func(r *dumplog.Request) *dumplog.Request {
		r.Header = dumplog.Header{Username: "app", AuthRevision: 1}
		return r
	}
	ops, none := []dumplog.RequestOp{in}, []dumplog.RequestOp{putOp("/app/a", "1")}
	denied := apply.Effect{Result: apply.Refused, Reason: ReasonPermission}
	for name, c := range map[string]struct {
		r    *dumplog.Request
		p    apply.Effect
		edit func(ri *rights)
		want bool
	}{
		"in a transaction":          {r: txn(nil, ops, nil), p: denied, want: true},
		"in its other branch":       {r: txn(nil, nil, ops), p: denied, want: true},
		"with permission":           {r: txn(nil, none, none), p: denied},
		"after one with permission": {r: txn(nil, append(none, in), nil), p: denied, want: true},
		"a put":                     {r: put("/x", "1"), p: denied},
		"the rules are certain":     {r: txn(nil, ops, nil), p: apply.Effect{Sure: true, Reason: ReasonPermission}},
		"another reason":            {r: txn(nil, ops, nil), p: apply.Effect{Reason: ReasonOldAuth}},
		"users are not known":       {r: txn(nil, ops, nil), p: denied, edit: func(ri *rights) { ri.Auth.Known = false }},
		"under an alarm": {r: txn(nil, ops, nil), p: denied, edit: func(ri *rights) {
			ri.Alarms[apply.Alarm{Member: 1, Type: apply.AlarmNoSpace}] = struct{}{}
		}},
	} {
		ri := newBench(t, 6, -1).sim.rights
		ri.Auth = rooted()
		ri.Auth.Known = true
		ri.Auth.Users["app"] = &apply.User{Roles: []string{"app"}}
		ri.Auth.Roles["app"] = []apply.Permission{{Type: apply.PermBoth, Key: "/app/", End: "/app0"}}
		if c.edit != nil {
			c.edit(ri)
		}
		for range maxBeyond + 1 {
			ri.beyondRights(itemAt(9, app(c.r)), c.p)
		}
		b := ri.res.Beyond
		if !c.want && len(b) > 0 || c.want && (len(b) != maxBeyond || b[0].Key != "/x" || b[0].Index != 9 ||
			b[0].Term != 3 || b[0].User != "app" || b[0].How != "put in a nested transaction") {
			t.Errorf("%s: %d, %+v", name, len(b), b[:min(len(b), 1)])
		}
	}
}

// TestListsAreBounded: what a hostile log can make many of is kept up to a bound, and counted where that matters.
func TestListsAreBounded(t *testing.T) {
	s := newBench(t, 4, -1).sim
	for range maxBelow + 1 {
		s.below.below(BelowDiff{})
	}
	if n := len(s.res.Below); n != maxBelow || s.res.BelowCount != maxBelow+1 {
		t.Errorf("%d of %d keys", n, s.res.BelowCount)
	}
	s.m.AppliedMin = 1 << 40
	for i := range uint64(maxAbsentees) + 1 {
		if o := s.matcher.missing(itemAt(i+1, put("a", "1")), apply.Effect{}); o.State != Missing {
			t.Fatalf("%+v", o)
		}
	}
	if n := len(s.matcher.absentees); n != maxAbsentees {
		t.Errorf("%d missing entries", n)
	}
	for range maxLeaseOps + 1 {
		s.leases.noteLeaseOp(itemAt(1, nil), 7)
	}
	if n := len(s.leases.leaseSeen); n != maxLeaseOps {
		t.Errorf("%d operations on leases", n)
	}
	sv := &Survey{LastTouch: map[string]uint64{}, rows: newRowTouches(1)}
	for range maxUncommitted + 1 {
		sv.noteBeyond(itemAt(5, grantOf(7, 60, 0)), true)
	}
	if n := len(sv.beyond); n != maxUncommitted {
		t.Errorf("%d requests above the commit index", n)
	}
	r := &Result{}
	for range maxUndecodable + 1 {
		r.undecodable(0, Undecodable{})
	}
	if n := len(r.Undecodable[0]); n != maxUndecodable {
		t.Errorf("%d entries that do not decode", n)
	}
}
