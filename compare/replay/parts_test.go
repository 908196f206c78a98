package replay

import (
	"fmt"
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/apply"
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
		"lease of a key without a right": {leased, "/secret", "put that shares the lease of the key"},
	} {
		s := simOf(&subject{Model: apply.NewModel(release.AnyOf(4)), res: &MemberResult{}})
		s.Auth = rooted()
		for _, r := range []*dumplog.Request{
			{Kind: dumplog.KindAuthRoleAdd, Auth: &dumplog.AuthRequest{Role: "writer"}},
			{Kind: dumplog.KindAuthRoleGrantPermission, Auth: &dumplog.AuthRequest{Role: "writer",
				Perm: &dumplog.Permission{Type: apply.PermBoth, Key: []byte("/app/"), RangeEnd: []byte("/app0")}}},
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
	if got := fmt.Sprint(g.deletedAt(5), g.deletedAt(4), g.deletedAt(0), (*group)(nil).deletedAt(5)); got !=
		"[a b] [] [] []" {
		t.Error(got)
	}
}

// TestAuthAhead: only a release that can lose its index has auth entries above it executed.
func TestAuthAhead(t *testing.T) {
	for name, c := range map[string]struct {
		version release.Version
		known   bool
		more    uint64
		want    uint64 // the last entry
	}{
		"3.5.3":           {release.Exact(5, 3), true, 1, 20},
		"two entries":     {release.Exact(5, 3), true, 2, 21},
		"more than exist": {release.Exact(5, 3), true, 3, 0},
		"3.5.10":          {release.Exact(5, 10), true, 1, 0},
		"auth unknown":    {release.Exact(5, 3), false, 1, 0},
	} {
		s := simOf(&subject{Model: apply.NewModel(c.version), res: &MemberResult{}})
		s.Auth = rooted()
		s.Auth.Known = c.known
		for i, role := range []string{"a", "b"} {
			s.auth.authLater = append(s.auth.authLater, AuthEntry{Index: uint64(20 + i), Req: &dumplog.Request{
				Kind: dumplog.KindAuthRoleAdd, Header: dumplog.Header{Username: apply.Root},
				Auth: &dumplog.AuthRequest{Role: role}}})
		}
		before := s.Auth.Revision
		found := s.auth.authAhead(c.more)
		if found != (c.want > 0) || found && (s.res.AuthAhead.To != c.want || s.Auth.Revision != before+c.more) {
			t.Errorf("%s: %v, %+v, auth revision %d after %d", name, found, s.res.AuthAhead, s.Auth.Revision, before)
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
