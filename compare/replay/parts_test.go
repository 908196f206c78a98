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

// TestInnerDenied: which operations of a transaction servers with the defect did not check, by depth.
func TestInnerDenied(t *testing.T) {
	prev := putOp("/app/a", "1")
	prev.Put.PrevKV = true
	leased := putOp("/app/a", "1")
	leased.Put.Lease = 7
	inside := func(op dumplog.RequestOp) dumplog.RequestOp { return nested(txn(nil, []dumplog.RequestOp{op}, nil))[0] }
	deep, blind := putOp("/x", "1"), putOp("/w", "1")
	blind.Put.PrevKV = true
	for range apply.MaxTxnDepth {
		deep = inside(deep)
	}
	elsewhere := nested(txn(nil, nil, []dumplog.RequestOp{putOp("/x", "1")}))[0]
	read := dumplog.RequestOp{Range: &dumplog.RangeRequest{Key: []byte("/x")}}
	for name, c := range map[string]struct {
		op       dumplog.RequestOp
		key, how string
	}{
		"a put at the top is checked":    {op: putOp("/x", "1")},
		"a delete at the top is checked": {op: delOp("/x", "")},
		"a read at the top is checked":   {op: read},
		"nested put":                     {inside(putOp("/x", "1")), "/x", "put in a nested transaction"},
		"nested put in the other branch": {elsewhere, "/x", "put in a nested transaction"},
		"nested put with the right":      {op: inside(putOp("/app/x", "1"))},
		"nested delete":                  {inside(delOp("/app/", "/b")), "/app/", "delete in a nested transaction"},
		"nested read":                    {inside(read), "/x", "read in a nested transaction"},
		"previous value":                 {op: prev},
		"previous value without a right": {blind, "/w", "read of the previous value by a put"},
		"at the bound of the depth":      {deep, "/x", "put in a nested transaction"},
		"below the bound of the depth":   {op: inside(deep)},
		"lease of a key without a right": {leased, "/secret", "put that shares the lease of the key"},
	} {
		s := simOf(&subject{Model: apply.NewModel(release.AnyOf(4)), res: &MemberResult{}})
		s.Auth = rooted()
		for _, r := range []*dumplog.Request{
			{Kind: dumplog.KindAuthRoleAdd, Auth: &dumplog.AuthRequest{Role: "writer"}},
			{Kind: dumplog.KindAuthRoleGrantPermission, Auth: &dumplog.AuthRequest{Role: "writer",
				Perm: &dumplog.Permission{Type: apply.PermBoth, Key: []byte("/app/"), RangeEnd: []byte("/app0")}}},
			{Kind: dumplog.KindAuthRoleGrantPermission, Auth: &dumplog.AuthRequest{Role: "writer",
				Perm: &dumplog.Permission{Type: apply.PermWrite, Key: []byte("/w")}}},
			{Kind: dumplog.KindAuthUserAdd, Auth: &dumplog.AuthRequest{User: "app"}},
			{Kind: dumplog.KindAuthUserGrantRole, Auth: &dumplog.AuthRequest{User: "app", Role: "writer"}},
		} {
			r.Header.Username = apply.Root
			if _, reason := s.Auth.Apply(r); reason != ReasonNone {
				t.Fatalf("%s: %s", r.Kind, reason)
			}
		}
		secret := leasedRecord("/secret", 7)
		absorb(s.Keys, &secret)
		h := dumplog.Header{Username: "app", AuthRevision: s.Auth.Revision}
		if key, how := s.rights.innerDenied(h, c.op, 0); key != c.key || how != c.how {
			t.Errorf("%s: %q, %q; want %q, %q", name, key, how, c.key, c.how)
		}
	}
}

func leasedRecord(key string, lease int64) record { return leased(2, key, "1", lease).record }

// TestKeyWrites: neighbours join one span; KeyWrite finds the first entry of a range of indexes.
func TestKeyWrites(t *testing.T) {
	s := &Survey{}
	for _, index := range []uint64{3, 4, 5, 9, 12} {
		s.noteKeyWrite(&item{entry: dumplog.Entry{Index: index}, req: put("a", "1")})
		s.noteKeyWrite(&item{entry: dumplog.Entry{Index: index}, req: &dumplog.Request{Kind: dumplog.KindLeaseGrant}})
	}
	if got := fmt.Sprint(s.keyWrites); got != "[3..5 9..9 12..12]" {
		t.Errorf("spans %s", got)
	}
	for from, want := range map[uint64]uint64{1: 3, 4: 4, 6: 9, 10: 0} {
		if got := s.KeyWrite(from, 11); got != want {
			t.Errorf("first write from %d to 11 is %d, want %d", from, got, want)
		}
	}
	s.keyWrites = make([]Gap, maxSpans)
	s.noteKeyWrite(&item{entry: dumplog.Entry{Index: 99}, req: put("a", "1")})
	if n := len(s.keyWrites); n != maxSpans || s.keyWrites[n-1].To != 99 {
		t.Errorf("%d spans, the last ends at %d", n, s.keyWrites[n-1].To)
	}
}

// TestInteresting: outcomes that are legal and equal are left out.
func TestInteresting(t *testing.T) {
	applied := func(sig uint64) Outcome { return Outcome{State: Applied, Sig: sig} }
	for name, c := range map[string]struct {
		os   []Outcome
		want bool
	}{
		"none":           {nil, false},
		"equal":          {[]Outcome{applied(1), applied(1)}, false},
		"another effect": {[]Outcome{applied(1), applied(2)}, true},
		"not applied yet": {[]Outcome{applied(1), {State: NotApplied}, {State: Unknown}, {State: OutsideHistory}},
			false},
		"missing on one":             {[]Outcome{{State: Missing}}, true},
		"applied twice on one":       {[]Outcome{{State: AppliedTwice}}, true},
		"contradicted on one":        {[]Outcome{{State: Contradicted}}, true},
		"refused by all":             {[]Outcome{{State: Refused}, {State: Refused}}, false},
		"refused by one":             {[]Outcome{{State: Applied}, {State: Refused}}, true},
		"refused and without effect": {[]Outcome{{State: Refused}, {State: NoEffect}}, false},
		"wrongly":                    {[]Outcome{{State: Refused, Wrongly: true}}, true},
	} {
		if got := interesting(c.os); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestRevokedBefore: only a revoke that found no lease lacks nothing.
func TestRevokedBefore(t *testing.T) {
	gone := Outcome{State: Refused, Reason: ReasonLease}
	for name, c := range map[string]struct {
		kind dumplog.Kind
		o    Outcome
		want bool
	}{
		"the lease was gone":  {dumplog.KindLeaseRevoke, gone, true},
		"a put to such lease": {dumplog.KindPut, gone, false},
		"without permission":  {dumplog.KindLeaseRevoke, Outcome{State: Refused, Reason: ReasonPermission}, false},
		"missing":             {dumplog.KindLeaseRevoke, Outcome{State: Missing, Reason: ReasonLease}, false},
	} {
		if got := (&Event{Kind: c.kind}).revokedBefore(c.o); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestDeletedAt: the keys of a group belong to its revision alone.
func TestDeletedAt(t *testing.T) {
	g := groupOf(tomb(5, 0, "a"), tomb(5, 1, "b"))
	if got := fmt.Sprint(g.keysAt(5), g.keysAt(4), g.keysAt(0), (*group)(nil).keysAt(5)); got !=
		"[a b] [] [] []" {
		t.Error(got)
	}
}

// TestAuthBegan: auth began within a log if an auth revision is 1 without the entries of the log that the member has
// applied. Turning auth on does not raise it.
func TestAuthBegan(t *testing.T) {
	log := []AuthEntry{{Index: 5, Req: authOf(dumplog.KindAuthUserAdd, "root", "")},
		{Index: 6, Req: authOf(dumplog.KindAuthEnable, "", "")}, {Index: 9, Req: authOf(dumplog.KindAuthRoleAdd, "", "r")}}
	for name, c := range map[string]struct {
		revision, applied uint64
		none              bool
		want              bool
	}{
		"all entries":              {revision: 3, applied: 9, want: true},
		"all, and one before":      {revision: 4, applied: 9},
		"fewer than the log has":   {revision: 2, applied: 9},
		"up to what it applied":    {revision: 2, applied: 8, want: true},
		"none yet":                 {revision: 1, applied: 4, want: true},
		"without an auth revision": {revision: 3, applied: 9, none: true},
	} {
		m := &evidence.Member{AppliedMax: c.applied, DB: &evidence.DB{Handle: &dumpdb.DB{}}}
		m.DB.Auth.Revision, m.DB.Auth.HasRevision = c.revision, !c.none
		r := &Result{Survey: &Survey{Auth: log}, Members: []*MemberResult{{Member: &evidence.Member{}}, {Member: m}}}
		if got := r.authBegan(); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestAuthFromLog: users and roles are those of the entries up to the place where the keys of the model begin.
func TestAuthFromLog(t *testing.T) {
	r := &Result{Survey: &Survey{}}
	for i := range uint64(3) {
		r.Survey.Auth = append(r.Survey.Auth,
			AuthEntry{Index: 5 + i, Req: authOf(dumplog.KindAuthRoleAdd, "", fmt.Sprint("r", i))})
	}
	s := simOf(&subject{Model: apply.NewModel(release.AnyOf(5)), res: &MemberResult{}})
	s.base = 6
	s.auth.authFromLog(r)
	if len(s.Auth.Roles) != 2 || s.Auth.Revision != 3 || len(s.auth.authAll) != 2 || s.Auth.Roles["r2"] != nil {
		t.Errorf("%+v, %d entries", s.Auth, len(s.auth.authAll))
	}
}

// TestAuthOff: the auth revision is off where the log reaches back and a rise is not that of its entries.
func TestAuthOff(t *testing.T) {
	for _, c := range []struct {
		known bool
		jumps int
		more  int64
		want  bool
	}{{true, 0, 0, false}, {true, 1, 0, true}, {true, 0, 1, true}, {true, 0, -1, true}, {false, 1, 1, false}} {
		r := &MemberResult{AuthKnown: c.known, Jumps: make([]Jump, c.jumps), Unexplained: c.more}
		if got := r.AuthOff(); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}

// TestIdle: what an entry would do that was not applied.
func TestIdle(t *testing.T) {
	alarm := func(action int32, member dumplog.ID) *dumplog.Request {
		return &dumplog.Request{Kind: dumplog.KindAlarm,
			Alarm: &dumplog.AlarmRequest{Action: action, MemberID: member, Alarm: apply.AlarmNoSpace}}
	}
	none := del("x", "")
	none.Header = dumplog.Header{Username: apply.Root, AuthRevision: 1}
	user := func(name string) *dumplog.Request {
		r := authOf(dumplog.KindAuthUserAdd, "u", "")
		r.Header.Username = name
		return r
	}
	for name, c := range map[string]struct {
		r    *dumplog.Request
		edit func(*sim)
		want State
	}{
		"query of alarms":        {r: alarm(0, 0xa1), want: NoEffect},
		"raise":                  {r: alarm(1, 0xa1), want: Applied},
		"raise what is on":       {r: alarm(1, 0xa2), want: NoEffect},
		"clear what is on":       {r: alarm(2, 0xa2), want: Applied},
		"delete of nothing":      {r: none, want: NoEffect},
		"put at NOSPACE":         {r: put("x", "1"), want: Refused},
		"user by root":           {r: user(apply.Root), want: Applied},
		"user by another":        {r: user("app"), want: Refused},
		"user, users unknown":    {r: user("app"), edit: func(s *sim) { s.Auth.Known = false }, want: Applied},
		"read of users":          {r: authOf(dumplog.KindAuthUserGet, "u", ""), want: NoEffect},
		"an empty entry":         {r: &dumplog.Request{Kind: dumplog.KindEmpty}, want: NoEffect},
		"a range":                {r: &dumplog.Request{Kind: dumplog.KindRange}, want: NoEffect},
		"a compaction":           {r: &dumplog.Request{Kind: dumplog.KindCompaction}, want: Applied},
		"test of a downgrade":    {r: &dumplog.Request{Kind: dumplog.KindDowngradeVersionTest}, want: NoEffect},
		"a grant, which is kept": {r: &dumplog.Request{Kind: dumplog.KindLeaseGrant}, want: Applied},
	} {
		s := simOf(&subject{Model: apply.NewModel(release.AnyOf(6)), res: &MemberResult{}})
		s.Auth = rooted()
		s.Alarms[apply.Alarm{Member: 0xa2, Type: apply.AlarmNoSpace}] = struct{}{}
		if c.edit != nil {
			c.edit(s)
		}
		if got := s.idle(c.r); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestCompactionOfAModel: a compaction is refused at a revision that is compacted or not reached, and not judged where
// the model does not know what was compacted before.
func TestCompactionOfAModel(t *testing.T) {
	for name, c := range map[string]struct {
		rev            int64
		unknown, loose bool
		want           State
		compact        int64
	}{
		"executed":              {rev: 7, want: Applied, compact: 7},
		"compacted":             {rev: 4, want: Refused, compact: 4},
		"not reached":           {rev: 10, want: Refused, compact: 4},
		"not known":             {rev: 5, unknown: true, want: OutsideHistory, compact: 4},
		"above every other":     {rev: 6, unknown: true, want: Applied, compact: 6},
		"revisions not counted": {rev: 7, loose: true, want: OutsideHistory, compact: 4},
	} {
		s := simOf(&subject{Model: apply.NewModel(release.AnyOf(6)), res: &MemberResult{}})
		s.Revision, s.Compact, s.LastCompact, s.StateKnown, s.Loose = 9, 4, 5, !c.unknown, c.loose
		o := s.compaction(&dumplog.Request{Compaction: &dumplog.CompactionRequest{Revision: c.rev}})
		if o.State != c.want || s.Compact != c.compact {
			t.Errorf("%s: %s, compacted at %d", name, o.State, s.Compact)
		}
	}
}

// TestGrantOfAModel: a grant that an alarm refuses touches no lease; where alarms are not known, the lease may exist.
func TestGrantOfAModel(t *testing.T) {
	for name, c := range map[string]struct {
		id                     int64
		alarm, unsure, existed bool
		index                  uint64
		want                   State
		touched                bool
	}{
		"granted":                         {id: 7, index: 5, want: Applied},
		"no ID":                           {id: 0, index: 5, want: Refused},
		"at NOSPACE":                      {id: 7, index: 5, alarm: true, want: Refused},
		"exists":                          {id: 7, index: 5, existed: true, want: Refused},
		"alarms unknown":                  {id: 7, index: 1000, unsure: true, want: Applied, touched: true},
		"alarms unknown, exists":          {id: 7, index: 5, unsure: true, existed: true, want: Refused},
		"alarms unknown, above the index": {id: 7, index: 1001, unsure: true, want: Applied, touched: true},
	} {
		s := newBench(t, 6, -1).sim
		if s.AlarmsUnsure = c.unsure; c.alarm {
			s.Alarms[apply.Alarm{Member: 0xa1, Type: apply.AlarmNoSpace}] = struct{}{}
		}
		if c.existed {
			s.Leases[7] = &apply.Lease{TTL: 60}
		}
		o := s.leases.leaseGrant(itemAt(c.index, grantOf(c.id, 60, 1)))
		if o.State != c.want || s.touched[leaseKey(7)] != c.touched {
			t.Errorf("%s: %s, touched %v", name, o.State, s.touched)
		}
	}
}

// TestLeaseTermOfAnAlteredEntry: an entry whose term was raised does not split the count of the term around it.
func TestLeaseTermOfAnAlteredEntry(t *testing.T) {
	s := &Survey{}
	for i, term := range []uint64{3, 3, 9, 3, 4, 9} {
		s.noteLease(&item{entry: dumplog.Entry{Term: term, Index: uint64(i + 1)},
			req: &dumplog.Request{Kind: dumplog.KindLeaseRevoke}})
	}
	want := []LeaseTerm{{Term: 3, First: 1, Last: 4, Revokes: 3}, {Term: 4, First: 5, Last: 5, Revokes: 1},
		{Term: 9, First: 3, Last: 6, Revokes: 2}}
	if !slices.Equal(s.LeaseTerms, want) {
		t.Errorf("%+v; want %+v", s.LeaseTerms, want)
	}
}
