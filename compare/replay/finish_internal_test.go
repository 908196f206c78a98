package replay

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// diffsOf are differing rows as text.
func diffsOf(res *MemberResult) string {
	var out []string
	for _, d := range res.StateDiffs {
		s := fmt.Sprintf("%s %s: %s, %s", d.Bucket, d.Key, d.Expected, d.Observed)
		if d.Surplus {
			s += " (surplus)"
		}
		out = append(out, s)
	}
	return strings.Join(out, "; ")
}

// TestKeyAhead: up to 3.4 an entry above the consistent index that wrote the newest record shows that index or record
// was changed, unless model and database are not in step.
func TestKeyAhead(t *testing.T) {
	for name, c := range map[string]struct {
		minor  int
		change func(s *sim)
		want   bool
	}{
		"above the index":               {4, nil, true},
		"at the index":                  {4, func(s *sim) { s.wrote = 50 }, false},
		"a release that counts entries": {5, nil, false},
		"another newest revision":       {4, func(s *sim) { s.m.DB.KV.CurrentRev = 8 }, false},
		"one is missing":                {4, func(s *sim) { s.res.Counts[Missing]++ }, false},
		"one is another":                {4, func(s *sim) { s.res.Counts[Contradicted]++ }, false},
		"one of no entry":               {4, func(s *sim) { s.res.Extra = []int64{5} }, false},
		"one twice":                     {4, func(s *sim) { s.res.Reruns = make([]Stretch, 1) }, false},
		"no log":                        {4, func(s *sim) { s.m.WAL = evidence.WAL{} }, false},
		"only a snapshot above it":      {4, func(s *sim) { s.wrote = 50; s.saved = 53 }, false},
	} {
		s := newBench(t, c.minor, -1).sim
		s.m.AppliedMin, s.wrote, s.Revision = 50, 52, 7
		s.m.DB = &evidence.DB{KV: &dumpdb.KVStats{CurrentRev: 7}}
		s.m.WAL.Log = &dumplog.Log{}
		if c.change != nil {
			c.change(s)
		}
		s.keyAhead()
		want := Stretch{From: 52, To: 52, First: 7, Last: 7}
		if (s.res.Ahead != nil) != c.want || c.want && *s.res.Ahead != want {
			t.Errorf("%s: %+v", name, s.res.Ahead)
		}
		s.res.Ahead = nil
		if s.finish(); (s.res.Ahead != nil) != c.want {
			t.Errorf("%s, at the end: %+v", name, s.res.Ahead)
		}
	}
	s := newBench(t, 4, -1).sim
	known := &Stretch{From: 1}
	s.m.AppliedMin, s.wrote, s.res.Ahead, s.m.WAL.Log = 50, 52, known, &dumplog.Log{}
	if s.keyAhead(); s.res.Ahead != known {
		t.Errorf("what is known to be ahead is replaced: %+v", s.res.Ahead)
	}
}

// TestLastWrite: up to 3.4 a snapshot stores the consistent index as well, but writes no revision.
func TestLastWrite(t *testing.T) {
	fails := txn(cmpMod("a", 7), []dumplog.RequestOp{putOp("b", "1")}, nil)
	for name, c := range map[string]struct {
		first             *dumplog.Request
		rows              []row
		outcome           string
		lastWrite, stored uint64
	}{
		"no effect at all": {fails, nil, "no-effect", 0, 2},
		"a write before":   {put("a", "1"), []row{rec(2, 0, "a", "1")}, "applied", 1, 2},
	} {
		b := newBench(t, 4, -1, c.rows...).log(c.first, fails, fails)
		b.sim.snaps = []uint64{2}
		b.want(c.outcome, "no-effect", "no-effect")
		if b.sim.res.LastWrite != c.lastWrite || b.sim.saved != c.stored {
			t.Errorf("%s: last write %d, stored index %d", name, b.sim.res.LastWrite, b.sim.saved)
		}
	}
}

// TestFinishAuth: users, roles and whether auth is on are those of the log; the auth revision is between the lowest and
// the highest that it gives, with what restarts explain.
func TestFinishAuth(t *testing.T) {
	perm := func(kind int32, key string) dumpdb.Permission { return dumpdb.Permission{Type: kind, Key: []byte(key)} }
	sound := func() dumpdb.Auth {
		return dumpdb.Auth{Enabled: true, HasRevision: true, Revision: 7,
			Users: []dumpdb.User{{Name: "app", Roles: []string{"r"}}, {Name: "root", Roles: []string{"root"}}},
			Roles: []dumpdb.Role{{Name: "r", Perms: []dumpdb.Permission{perm(1, "b"), perm(0, "a")}}}}
	}
	for name, c := range map[string]struct {
		change      func(s *sim, a *dumpdb.Auth)
		diffs       string
		unexplained int64
	}{
		"sound":       {},
		"no revision": {change: func(_ *sim, a *dumpdb.Auth) { a.HasRevision, a.Revision, a.Users = false, 0, nil }},
		"another user": {change: func(_ *sim, a *dumpdb.Auth) {
			a.Users = append(a.Users, dumpdb.User{Name: "x"})
		}, diffs: "authUsers x: absent, present (surplus)"},
		"a user less": {change: func(_ *sim, a *dumpdb.Auth) { a.Users = a.Users[1:] },
			diffs: "authUsers app: present, absent"},
		"another role of a user": {change: func(_ *sim, a *dumpdb.Auth) { a.Users[0].Roles = []string{"q"} },
			diffs: "authUsers app: roles [r], roles [q]"},
		"another role": {change: func(_ *sim, a *dumpdb.Auth) { a.Roles = append(a.Roles, dumpdb.Role{Name: "q"}) },
			diffs: "authRoles q: absent, present (surplus)"},
		"a role less": {change: func(_ *sim, a *dumpdb.Auth) { a.Roles = nil }, diffs: "authRoles r: present, absent"},
		"a right less": {change: func(_ *sim, a *dumpdb.Auth) { a.Roles[0].Perms = a.Roles[0].Perms[:1] },
			diffs: `authRoles r: 2 permissions ["0 \"a\" \"\"" "1 \"b\" \"\""], 1 permissions ["1 \"b\" \"\""]`},
		"auth off": {change: func(_ *sim, a *dumpdb.Auth) { a.Enabled = false },
			diffs: "auth authEnabled: true, false"},
		"user changed later": {change: func(s *sim, a *dumpdb.Auth) {
			a.Users, s.touched["authUsers/app"] = a.Users[1:], true
		}},
		"roles of a user changed later": {change: func(s *sim, a *dumpdb.Auth) {
			a.Users[0].Roles, s.touched["authUsers/app"] = nil, true
		}},
		"all users changed later": {change: func(s *sim, a *dumpdb.Auth) { a.Users, s.touched["authUsers/"] = nil, true }},
		"another user changed later": {change: func(s *sim, a *dumpdb.Auth) {
			a.Users, s.touched["authUsers/root"] = a.Users[1:], true
		}, diffs: "authUsers app: present, absent"},
		"role changed later": {change: func(s *sim, a *dumpdb.Auth) { a.Roles, s.touched["authRoles/r"] = nil, true }},
		"rights changed later": {change: func(s *sim, a *dumpdb.Auth) {
			a.Roles[0].Perms, s.touched["authRoles/r"] = nil, true
		}},
		"another role, added later": {change: func(s *sim, a *dumpdb.Auth) {
			a.Roles, s.touched["authRoles/q"] = append(a.Roles, dumpdb.Role{Name: "q"}), true
		}},
		"another role, and one changed later": {change: func(s *sim, a *dumpdb.Auth) {
			a.Roles, s.touched["authUsers/app"] = append(a.Roles, dumpdb.Role{Name: "q"}), true
		}, diffs: "authRoles q: absent, present (surplus)"},
		"auth off later": {change: func(s *sim, a *dumpdb.Auth) { a.Enabled, s.touched["auth/authEnabled"] = false, true }},
		"not known":      {change: func(s *sim, a *dumpdb.Auth) { a.Users, a.Revision, s.Auth.Known = nil, 20, false }},
		"not known, but of a jump": {change: func(s *sim, a *dumpdb.Auth) {
			a.Users, s.Auth.Known, s.res.Jumps = nil, false, []Jump{{Extra: 1, Possible: 3}}
		}, unexplained: -1},
		"one more":      {change: func(_ *sim, a *dumpdb.Auth) { a.Revision = 8 }, unexplained: 1},
		"at the lowest": {change: func(s *sim, _ *dumpdb.Auth) { s.res.AuthExpected = 9 }},
		"below the lowest": {change: func(s *sim, _ *dumpdb.Auth) { s.res.AuthExpected, s.res.AuthExpectedMin = 9, 8 },
			unexplained: -1},
		"at the highest": {change: func(s *sim, _ *dumpdb.Auth) { s.res.AuthExpectedMin = 2 }},
		"a jump": {change: func(s *sim, a *dumpdb.Auth) {
			a.Revision, s.res.Jumps = 12, []Jump{{Extra: 3, Possible: 4}, {Extra: 5, Possible: 2}}
		}},
		"more than two jumps": {change: func(s *sim, a *dumpdb.Auth) {
			a.Revision, s.res.Jumps = 13, []Jump{{Extra: 3, Possible: 4}, {Extra: 5, Possible: 2}}
		}, unexplained: 1},
		"less than two jumps": {change: func(s *sim, a *dumpdb.Auth) {
			a.Revision, s.res.Jumps = 11, []Jump{{Extra: 3, Possible: 4}, {Extra: 5, Possible: 2}}
		}, unexplained: -1},
		"an entry above all commit indexes": {change: func(s *sim, a *dumpdb.Auth) {
			a.Revision, s.auth.authBeyond = 8, 1
		}},
		"more than those entries": {change: func(s *sim, a *dumpdb.Auth) {
			a.Revision, s.auth.authBeyond = 9, 1
		}, unexplained: 2},
	} {
		s := newBench(t, 6, -1).sim
		s.Auth = rooted()
		s.Auth.Known, s.Auth.Enabled = true, true
		s.Auth.Users["app"] = &apply.User{Roles: []string{"r"}}
		s.Auth.Roles["r"] = []apply.Permission{{Type: 0, Key: "a"}, {Type: 1, Key: "b"}}
		s.res.AuthExpectedMin, s.res.AuthExpected = 7, 7
		auth := sound()
		if c.change != nil {
			c.change(s, &auth)
		}
		s.m.DB = &evidence.DB{Auth: auth}
		s.auth.finishAuth()
		if got := diffsOf(s.res); got != c.diffs || s.res.Unexplained != c.unexplained {
			t.Errorf("%s: %q, %d; want %q, %d", name, got, s.res.Unexplained, c.diffs, c.unexplained)
		}
	}
}

// TestFinishLeases: the leases of the database are those of the log, unless the log's end is torn in a release whose
// index does not count all entries.
func TestFinishLeases(t *testing.T) {
	rows := func(ids ...int64) (out []dumpdb.Lease) {
		for _, id := range ids {
			out = append(out, dumpdb.Lease{ID: dumpdb.ID(id)})
		}
		return out
	}
	torn := func(kind dumplog.DamageKind) func(lw *leaseWatch) {
		return func(lw *leaseWatch) {
			lw.m.WAL.Log = &dumplog.Log{}
			lw.m.WAL.Summary.Damage = []*dumplog.DamageError{{Kind: kind}}
		}
	}
	lost := func(from, to uint64) func(lw *leaseWatch) {
		return func(lw *leaseWatch) {
			torn(dumplog.DamageZeroHole)(lw)
			lw.m.AppliedMin, lw.m.AppliedMax = 10, 12
			lw.m.WAL.Summary.Damage[0].LostFrom, lw.m.WAL.Summary.Damage[0].LostTo = from, to
		}
	}
	const gone = "lease 7: present, absent"
	for name, c := range map[string]struct {
		minor  int
		rows   []dumpdb.Lease
		change func(lw *leaseWatch)
		want   string
	}{
		"as in the log":                  {6, rows(7), nil, ""},
		"gone":                           {6, nil, nil, gone},
		"gone, changed later":            {6, nil, func(lw *leaseWatch) { lw.touched[leaseKey(7)] = true }, ""},
		"it may have been gone":          {6, nil, func(lw *leaseWatch) { lw.Leases[7].Unsure = true }, ""},
		"one more":                       {6, rows(7, 8), nil, "lease 8: absent, present (surplus)"},
		"one more, changed later":        {6, rows(7, 8), func(lw *leaseWatch) { lw.touched[leaseKey(8)] = true }, ""},
		"one more that may be forgotten": {4, rows(7, -8), nil, ""},
		"one more, never forgotten":      {6, rows(7, -8), nil, "lease fffffffffffffff8: absent, present (surplus)"},
		"not known":                      {6, rows(8), func(lw *leaseWatch) { lw.StateKnown = false }, ""},
		"a torn end of 3.4":              {4, nil, torn(dumplog.DamageTornTail), ""},
		"a damaged end of 3.4":           {4, nil, torn(dumplog.DamageTail), ""},
		"other damage of 3.4":            {4, nil, torn(dumplog.DamageCRC), gone},
		"a torn end of 3.6":              {6, nil, torn(dumplog.DamageTornTail), gone},
		"lost up to the index of 3.4":    {4, nil, lost(9, 10), gone},
		"lost above the index of 3.4":    {4, nil, lost(11, 11), ""},
		"lost up to the commit of 3.4":   {4, nil, lost(12, 0), ""},
		"lost above the commit of 3.4":   {4, nil, lost(13, 0), gone},
		"lost above the index of 3.6":    {6, nil, lost(11, 11), gone},
		"no log of 3.4": {4, nil, func(lw *leaseWatch) {
			torn(dumplog.DamageTornTail)(lw)
			lw.m.WAL.Log = nil
		}, gone},
	} {
		lw := leasesOf(t, c.minor, c.rows...)
		lw.StateKnown, lw.Leases = true, map[int64]*apply.Lease{7: {Granted: 5}}
		if c.change != nil {
			c.change(lw)
		}
		lw.finishLeases()
		if got := diffsOf(lw.res); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestFinishAlarms: the alarms of the database are those of the log, where all of them are known.
func TestFinishAlarms(t *testing.T) {
	for name, c := range map[string]struct {
		rows   []dumpdb.Alarm
		change func(s *sim)
		want   string
	}{
		"as in the log":  {[]dumpdb.Alarm{{MemberID: 0xa1, Type: 1}}, nil, ""},
		"gone":           {nil, nil, "alarm NOSPACE of a1: present, absent"},
		"of another":     {[]dumpdb.Alarm{{MemberID: 0xa1, Type: 1}, {MemberID: 0xa2, Type: 1}}, nil, "alarm NOSPACE of a2: absent, present (surplus)"},
		"another kind":   {[]dumpdb.Alarm{{MemberID: 0xa1, Type: 1}, {MemberID: 0xa1, Type: 2}}, nil, "alarm CORRUPT of a1: absent, present (surplus)"},
		"changed later":  {nil, func(s *sim) { s.touched["alarm"] = true }, ""},
		"not known":      {nil, func(s *sim) { s.StateKnown = false }, ""},
		"another change": {nil, func(s *sim) { s.touched["auth"] = true }, "alarm NOSPACE of a1: present, absent"},
	} {
		s := newBench(t, 6, -1).sim
		s.StateKnown, s.Alarms = true, apply.Alarms{apply.Alarm{Member: 0xa1, Type: 1}: {}}
		s.m.DB = &evidence.DB{Alarms: c.rows}
		if c.change != nil {
			c.change(s)
		}
		s.finishAlarms()
		if got := diffsOf(s.res); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestOpenRows: an entry that the member may or may not have applied leaves the rows open that it changes, and no
// others.
func TestOpenRows(t *testing.T) {
	checkpoint := &dumplog.Request{Kind: dumplog.KindLeaseCheckpoint, LeaseCheckpoint: &dumplog.LeaseCheckpointRequest{
		Checkpoints: []dumplog.LeaseCheckpoint{{ID: 7}, {ID: 8}}}}
	alarm := func(action int32) *dumplog.Request {
		return &dumplog.Request{Kind: dumplog.KindAlarm, Alarm: &dumplog.AlarmRequest{Action: action, Alarm: 1}}
	}
	for name, c := range map[string]struct {
		r    *dumplog.Request
		want []string
	}{
		"a grant":      {grantOf(7, 60, 0), []string{"lease/7"}},
		"a revoke":     {revokeOf(7), []string{"lease/7"}},
		"checkpoints":  {checkpoint, []string{"lease/7", "lease/8"}},
		"an alarm":     {alarm(1), []string{"alarm"}},
		"alarms, read": {alarm(0), nil},
		"a user":       {authOf(dumplog.KindAuthUserAdd, "u", ""), []string{"auth/authRevision", "authUsers/u"}},
		"a role":       {authOf(dumplog.KindAuthRoleAdd, "", "r"), []string{"auth/authRevision", "authRoles/r"}},
		"a role of all users": {authOf(dumplog.KindAuthRoleDelete, "", "r"),
			[]string{"auth/authRevision", "authRoles/r", "authUsers/"}},
		"auth off":   {authOf(dumplog.KindAuthDisable, "", ""), []string{"auth/authEnabled", "auth/authRevision"}},
		"auth, read": {&dumplog.Request{Kind: dumplog.KindAuthUserGet}, nil},
		"a put":      {put("a", "1"), nil},
	} {
		for index, open := range map[uint64]bool{50: false, 51: true, 60: true, 61: false} {
			s := newBench(t, 6, -1).sim
			s.m.AppliedMin, s.m.AppliedMax = 50, 60
			s.open(itemAt(index, c.r))
			var got []string
			for _, k := range sortedKeys(s.touched) {
				if s.touched[k] {
					got = append(got, k)
				}
			}
			want := c.want
			if !open {
				want = nil
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s at %d: %q, want %q", name, index, got, want)
			}
			if c.r.LeaseGrant != nil && (s.leases.ahead[7] == 1) != (index <= 60) {
				t.Errorf("%s at %d: granted %d times above the index", name, index, s.leases.ahead[7])
			}
		}
	}
}

// TestReaches: in a gap, and above the end, the log does not say what the keys were.
func TestReaches(t *testing.T) {
	r := &Result{Last: 40, Gaps: []Gap{{From: 10, To: 20}, {From: 30, To: 31}}}
	for index, want := range map[uint64]bool{9: true, 10: false, 20: false, 21: true, 29: true, 30: false, 31: false,
		32: true, 40: true, 41: false} {
		if got := r.reaches(index); got != want {
			t.Errorf("%d: %t", index, got)
		}
	}
}

// TestExtraAfterTheLog: records after the last entry are of none, unless the log has lost entries that the member
// applied: then nothing of the end is compared, and not the auth revision either.
func TestExtraAfterTheLog(t *testing.T) {
	for name, c := range map[string]struct {
		logEnd, applied uint64
		more, pastLogs  bool
		extra           []int64
		diffs           string
		auth            bool
	}{
		"the whole log":                       {1, 1, true, false, []int64{3}, "lease 7: present, absent", true},
		"an end is missing":                   {1, 2, true, true, nil, "", false},
		"an end is missing that wrote no key": {1, 2, false, false, nil, "", false},
		"no log":                              {0, 2, true, false, []int64{3}, "lease 7: present, absent", true},
	} {
		records := []row{rec(2, 0, "a", "1"), rec(3, 0, "b", "1")}
		if !c.more {
			records = records[:1]
		}
		b := newBench(t, 6, -1, records...).log(put("a", "1"))
		b.sim.logEnd, b.sim.StateKnown = c.logEnd, true
		b.sim.m.AppliedMin, b.sim.m.AppliedMax = c.applied, c.applied
		b.sim.m.DB = &evidence.DB{KV: &dumpdb.KVStats{CurrentRev: 3}}
		b.sim.Leases[7] = &apply.Lease{}
		b.want("applied")
		b.sim.finish()
		got := diffsOf(b.sim.res)
		if !slices.Equal(b.sim.res.Extra, c.extra) || got != c.diffs || b.sim.res.PastLogs != c.pastLogs ||
			b.sim.res.AuthEndLost == c.auth {
			t.Errorf("%s: extra %v, past the logs %t, end of auth lost %t, %q", name, b.sim.res.Extra,
				b.sim.res.PastLogs, b.sim.res.AuthEndLost, got)
		}
	}
}

// TestExtraOutOfOrder: of records at the end, those of a revision that others had before are not counted again.
func TestExtraOutOfOrder(t *testing.T) {
	b := newBench(t, 6, -1, rec(1, 0, "a", "1"), rec(3, 0, "b", "1"), rec(2, 0, "c", "1"))
	b.sim.m.DB = &evidence.DB{KV: &dumpdb.KVStats{CurrentRev: 3}}
	if b.sim.finish(); !slices.Equal(b.sim.res.Extra, []int64{3}) {
		t.Errorf("extra %v", b.sim.res.Extra)
	}
	b = newBench(t, 6, -1, rec(1, 0, "a", "1"))
	if b.sim.matcher.finishRuns(); b.sim.cur.peek(0) != nil {
		t.Error("a record of a revision that the model has is left")
	}
}

// TestUnmatchedIsNotRepeated: the records of entries that may be above the index, and for which none was taken yet, are
// no second execution of these. Entries up to the index were executed.
func TestUnmatchedIsNotRepeated(t *testing.T) {
	for applied, ahead := range map[uint64]bool{1: true, 3: false} {
		b := newBench(t, 6, -1, rec(2, 0, "a", "1"), rec(3, 0, "b", "1"), rec(4, 0, "c", "1")).log(put("a", "1"))
		b.want("applied")
		b.sim.m.DB = &evidence.DB{KV: &dumpdb.KVStats{CurrentRev: 4}}
		b.sim.auth.restarts, b.sim.logEnd = []restart{{index: 1}}, 3
		b.sim.m.AppliedMin, b.sim.m.AppliedMax = applied, 3
		items := newBench(t, 6, -1).log(put("a", "1"), put("b", "1"), put("c", "1")).items
		b.sim.past = func(from uint64) iter.Seq2[*item, error] {
			return func(yield func(*item, error) bool) {
				for _, it := range items[from-1:] {
					if !yield(it, nil) {
						return
					}
				}
			}
		}
		b.sim.matcher.finishRuns()
		want := Stretch{From: 2, To: 3, First: 3, Last: 4}
		if got := b.sim.res.Ahead; ahead != (got != nil && *got == want) || ahead == (len(b.sim.res.Reruns) > 0) {
			t.Errorf("applied %d: ahead %+v, reruns %+v", applied, got, b.sim.res.Reruns)
		}
	}
}
