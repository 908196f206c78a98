package check

import (
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestLeaseIDs: a lease with a negative ID is a warning on releases that do not load it, an error where a revoke had no
// effect.
func TestLeaseIDs(t *testing.T) {
	minus := int64(-5)
	lease := dumpdb.Lease{ID: dumpdb.ID(uint64(minus)), TTL: 60}
	kept := func(ids ...int64) *replay.Result {
		r := &replay.MemberResult{}
		for i, id := range ids {
			r.Kept = append(r.Kept, replay.KeptLease{ID: id, Index: 30 - uint64(i), Term: 2})
		}
		return &replay.Result{Members: []*replay.MemberResult{r}}
	}
	for name, c := range map[string]struct {
		leases   []dumpdb.Lease
		minor    int
		rp       *replay.Result
		severity Severity
		index    uint64
	}{
		"positive":          {[]dumpdb.Lease{{ID: 5}}, 4, nil, "", 0},
		"zero":              {[]dumpdb.Lease{{ID: 0}}, 4, nil, "", 0},
		"negative":          {[]dumpdb.Lease{lease}, 4, nil, Warning, 0},
		"negative on 3.6":   {[]dumpdb.Lease{lease}, 6, nil, Info, 0},
		"revoked":           {[]dumpdb.Lease{lease}, 4, kept(-5), Error, 30},
		"revoked twice":     {[]dumpdb.Lease{lease}, 4, kept(-5, -5), Error, 29},
		"another one is":    {[]dumpdb.Lease{lease}, 4, kept(-6), Warning, 0},
		"no database":       {nil, 4, nil, "", 0},
		"positive, revoked": {[]dumpdb.Lease{{ID: 5}}, 4, kept(5), "", 0},
	} {
		m := withDB(member("n1"), 40)
		m.Version.Minor, m.DB.Leases = c.minor, c.leases
		if c.leases == nil {
			m.DB = nil
		}
		r := runLeaseIDs(&Input{Members: Sources{m}, Replay: c.rp, MaxRows: 20})
		if (len(r.Findings) == 0) != (c.severity == "") {
			t.Fatalf("%s: %+v", name, r)
		}
		if len(r.Findings) == 0 {
			continue
		}
		f := r.Findings[0]
		told := strings.Contains(f.Title, "had no effect") && strings.Contains(f.Evidence[0].Observed, "still there")
		if f.Severity != c.severity || f.At.Index != c.index || told != (c.severity == Error) {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// TestLeaseRevokesEqual: a revoke that deleted keys on some members only, or against the rules.
func TestLeaseRevokesEqual(t *testing.T) {
	effect := replay.Outcome{State: replay.Applied, Sig: 1, Rev: 9}
	none := replay.Outcome{State: replay.NoEffect}
	against := replay.Outcome{State: replay.Applied, Sig: 1, Rev: 9, Against: true, Detail: "the lease was gone"}
	for name, c := range map[string]struct {
		kind     dumplog.Kind
		outcomes []replay.Outcome
		members  []string
		observed []string
	}{
		"equal":           {dumplog.KindLeaseRevoke, []replay.Outcome{effect, effect}, nil, nil},
		"another request": {dumplog.KindPut, []replay.Outcome{effect, none}, nil, nil},
		"one without": {dumplog.KindLeaseRevoke, []replay.Outcome{effect, none}, []string{"n2"},
			[]string{"revoke (user=u): deleted 1 key at revision 9",
				"revoke (user=u): without effect; lease still in its database with TTL 60 s; keys [\"k\"] stay"}},
		"refused on one": {dumplog.KindLeaseRevoke,
			[]replay.Outcome{{State: replay.Refused, Reason: replay.ReasonLease}, effect}, []string{"n1"},
			[]string{"revoke (user=u): " + string(replay.ReasonLease) + "; lease not in its database; " +
				"keys [\"k\"] stay",
				"revoke (user=u): deleted 1 key at revision 9"}},
		"against the rules": {dumplog.KindLeaseRevoke, []replay.Outcome{against, against}, []string{"n1", "n2"},
			[]string{"revoke (user=u): deleted 1 key at revision 9, the lease was gone",
				"revoke (user=u): deleted 1 key at revision 9, the lease was gone"}},
	} {
		n1, n2 := withDB(withLog(member("n1"), 9), 9), withDB(withLog(member("n2"), 9), 9)
		n2.DB.Leases = []dumpdb.Lease{{ID: 6}, {ID: 7, TTL: 60}}
		e := &replay.Event{Index: 5, Term: 2, Kind: c.kind, What: "revoke", User: "u", Lease: 7, Keys: []string{"k"},
			Outcomes: c.outcomes}
		in := &Input{Members: Sources{n1, n2}, MaxRows: 20, Replay: &replay.Result{Events: []*replay.Event{e}}}
		r := runLeaseRevokesEqual(in)
		if c.members == nil {
			if r.Outcome != Holds {
				t.Errorf("%s: %+v", name, r)
			}
			continue
		}
		f := r.Findings[0]
		var observed []string
		for _, e := range f.Evidence {
			observed = append(observed, e.Observed)
		}
		if !slices.Equal(f.Members, c.members) || !slices.Equal(observed, c.observed) ||
			f.At != (At{Term: 2, Index: 5}) {
			t.Errorf("%s: %+v", name, f)
		}
	}
	e := &replay.Event{Index: 5, Kind: dumplog.KindLeaseRevoke}
	m := withLog(member("n1"), 9)
	in := &Input{Members: Sources{m}, Replay: &replay.Result{}}
	if ev := revokeEvidence(in, 0, e, none); !strings.Contains(ev.Observed, "(no user)") ||
		!strings.Contains(ev.Observed, "lease not in its database") {
		t.Errorf("%+v", ev)
	}
}

// TestMinimumsDiffer: one lease with different TTLs on different members, each of which is that member's minimum.
func TestMinimumsDiffer(t *testing.T) {
	fact := func(id, asked, stored int64) replay.LeaseFact {
		return replay.LeaseFact{ID: id, Index: 5, Term: 2, Asked: asked, Stored: stored}
	}
	facts := func(fs ...replay.LeaseFact) []replay.LeaseFact { return fs }
	three, six := fact(1, 1, 3), fact(1, 1, 6)
	for name, c := range map[string]struct {
		a, b []replay.LeaseFact
		want []string
	}{
		"equal":                   {facts(three), facts(three), nil},
		"two minimums":            {facts(three), facts(six), []string{"3 s", "6 s"}},
		"one stored it as asked":  {facts(fact(1, 2, 2)), facts(fact(1, 2, 6)), []string{"2 s", "6 s"}},
		"above any minimum":       {facts(three), facts(fact(1, 1, 90)), nil},
		"not that member's":       {facts(three), facts(six, fact(2, 1, 4), fact(3, 1, 4)), nil},
		"on one member only":      {facts(three), nil, nil},
		"the first that shows it": {facts(fact(2, 1, 3), three), facts(six, fact(2, 1, 6)), []string{"3 s", "6 s"}},
	} {
		in := &Input{Members: Sources{member("n1"), member("n2")}, Replay: &replay.Result{
			Members: []*replay.MemberResult{{Leases: c.a}, {Leases: c.b}}}}
		f := in.storedTTLs().clampFinding()
		if (f == nil) != (c.want == nil) {
			t.Fatalf("%s: %+v", name, f)
		}
		if f == nil {
			continue
		}
		if f.Evidence[0].Observed != c.want[0] || f.Evidence[1].Observed != c.want[1] || len(f.Evidence) != 2 ||
			!slices.Equal(f.Members, []string{"n1", "n2"}) || f.At != (At{Term: 2, Index: 5}) ||
			!strings.Contains(f.Explanation, "n1 "+c.want[0]+", n2 "+c.want[1]) {
			t.Errorf("%s: %+v", name, f)
		}
		doubted := "Only this lease shows the minimum of n2"
		if len(c.a) == 1 && c.a[0].Stored > c.a[0].Asked {
			doubted = "Only this lease shows the minimum of n1 and n2"
		}
		if got := strings.Contains(f.Explanation, doubted); got != (len(c.b) == 1) {
			t.Errorf("%s, doubted %t: %s", name, got, f.Explanation)
		}
	}
}

// TestMinimumTTL: the minimum is the TTL to which most leases were raised, the lowest of several.
func TestMinimumTTL(t *testing.T) {
	raised := func(ttls ...int64) (leases []replay.LeaseFact) {
		for _, ttl := range ttls {
			leases = append(leases, replay.LeaseFact{Asked: 1, Stored: ttl})
		}
		return leases
	}
	for want, leases := range map[int64][]replay.LeaseFact{0: raised(1, 1, 76), 3: raised(5, 3, 3), 4: raised(4, 6),
		75: raised(75)} {
		if got, ok := minimumTTL(leases); got != want || ok != (want > 0) {
			t.Errorf("%d, %t, want %d", got, ok, want)
		}
	}
}

// TestImpossibleTTLs: no server stores a TTL below 1 s.
func TestImpossibleTTLs(t *testing.T) {
	m := withDB(member("n1"), 40)
	for i, ttl := range []int64{1, 0, -1, 60} {
		m.DB.Leases = append(m.DB.Leases, dumpdb.Lease{ID: dumpdb.ID(i), TTL: ttl})
	}
	fs := (&Input{Members: Sources{member("n0"), m}, MaxRows: 20}).storedTTLs().impossible()
	if len(fs) != 1 || len(fs[0].Evidence) != 2 || fs[0].Evidence[0].Observed != "0 s" || fs[0].At.Index != 40 {
		t.Errorf("%+v", fs)
	}
	m.DB.Leases = m.DB.Leases[:1]
	if fs := (&Input{Members: Sources{m}}).storedTTLs().impossible(); len(fs) != 0 {
		t.Errorf("%+v", fs)
	}
}
