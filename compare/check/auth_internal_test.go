package check

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/release"
)

// withDB gives a member a database that opens.
func withDB(m *evidence.Member, index uint64) *evidence.Member {
	m.DB = &evidence.DB{Handle: &dumpdb.DB{}, File: "db", KV: &dumpdb.KVStats{}}
	m.DB.Meta.ConsistentIndex = &index
	m.AppliedMin, m.AppliedMax = index, index
	return m
}

// TestAuthStructure: rows of the auth buckets that no server writes together.
func TestAuthStructure(t *testing.T) {
	for name, c := range map[string]struct {
		change func(a *dumpdb.Auth)
		want   []string
	}{
		"sound":               {func(*dumpdb.Auth) {}, nil},
		"3.3, with a hash":    {func(a *dumpdb.Auth) { a.Users[0].HasOptions = false }, nil},
		"3.3, without a hash": {func(a *dumpdb.Auth) { a.Users[1].HasOptions = false }, []string{"password of x"}},
		"roles out of order": {func(a *dumpdb.Auth) { slices.Reverse(a.Users[0].Roles) },
			[]string{"order of roles of root"}},
		"a role that is not there":   {func(a *dumpdb.Auth) { a.Roles = nil }, []string{"role of root"}},
		"an unknown field of a user": {func(a *dumpdb.Auth) { a.Users[0].Unknown = 5 }, []string{"fields of root"}},
		"an unknown field of a role": {func(a *dumpdb.Auth) { a.Roles[0].Unknown = 5 }, []string{"fields of app"}},
		"root without role root": {func(a *dumpdb.Auth) { a.Users[0].Roles = []string{"app", "app"} },
			[]string{"root of authEnabled"}},
		"another one has it":     {func(a *dumpdb.Auth) { a.Users[0].Name = "y" }, []string{"root of authEnabled"}},
		"the same with auth off": {func(a *dumpdb.Auth) { a.Users[0].Name, a.Enabled = "y", false }, nil},
		"no revision": {func(a *dumpdb.Auth) { a.HasRevision = false },
			[]string{"authRevision of authRevision"}},
		"revision 0": {func(a *dumpdb.Auth) { a.Revision = 0 }, []string{"authRevision of authRevision"}},
		"revision 0 with auth off": {func(a *dumpdb.Auth) { a.Revision, a.Enabled = 0, false },
			[]string{"authRevision of authRevision"}},
		"never used":               {func(a *dumpdb.Auth) { *a = dumpdb.Auth{} }, nil},
		"fewer changes than users": {func(a *dumpdb.Auth) { a.Revision = 4 }, []string{"authRevision of authRevision"}},
		"old users, revision 1": {func(a *dumpdb.Auth) {
			a.Users, a.Revision = []dumpdb.User{{Name: "root", Password: []byte("h"), Roles: []string{"root"}}}, 1
		}, nil},
	} {
		m := withDB(member("n1"), 9)
		m.DB.Auth = dumpdb.Auth{Enabled: true, HasRevision: true, Revision: 5,
			Users: []dumpdb.User{{Name: "root", Password: []byte("h"), HasOptions: true,
				Roles: []string{"app", "root"}}, {Name: "x", HasOptions: true}},
			Roles: []dumpdb.Role{{Name: "app"}}}
		c.change(&m.DB.Auth)
		var got []string
		for _, e := range authStructureFinding(&Input{MaxRows: 20}, m).Evidence {
			got = append(got, e.Field+" of "+string(e.Key))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestAuthStructureUnread: what damage hides is not missing, and a backup is judged by another check.
func TestAuthStructureUnread(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *evidence.Member)
		want   Outcome
	}{
		"contradiction":            {func(*evidence.Member) {}, Violated},
		"no database":              {func(m *evidence.Member) { m.DB = nil }, Holds},
		"a backup":                 {func(m *evidence.Member) { m.Source.Kind = evidence.KindBackup }, Holds},
		"damage of bucket key":     {damagedBucket("key"), Violated},
		"damage of authUsers":      {damagedBucket("authUsers"), NotChecked},
		"damage of unknown bucket": {damagedBucket(""), NotChecked},
	} {
		m := withDB(member("n1"), 9)
		m.DB.Auth = dumpdb.Auth{Enabled: true, HasRevision: true, Revision: 5}
		c.change(m)
		if r := runAuthStructure(&Input{Members: Sources{m}, MaxRows: 20}); r.Outcome != c.want {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func damagedBucket(name string) func(*evidence.Member) {
	return func(m *evidence.Member) { m.DB.Damage = []*dumpdb.DamageError{{Bucket: name}} }
}

// TestFirstBreak: the lowest rise at a restart or refusal for the auth revision, of any member.
func TestFirstBreak(t *testing.T) {
	m := withLog(member("n1"), 90)
	m.WAL.LastByTerm = []evidence.TermEnd{{Term: 3, First: 1, Last: 40}, {Term: 4, First: 41, Last: 90}}
	refused := func(index uint64, reason replay.Reason, state replay.State) *replay.Event {
		return &replay.Event{Index: index, Outcomes: []replay.Outcome{{State: state, Reason: reason, Wrongly: true}}}
	}
	old := refused(20, replay.ReasonOldAuth, replay.Refused)
	late := refused(60, replay.ReasonOldAuth, replay.Refused)
	jumps := []*replay.MemberResult{{Jumps: []replay.Jump{{Index: 50}, {Index: 30}}}}
	result := func(members []*replay.MemberResult, events ...*replay.Event) *replay.Result {
		return &replay.Result{Members: members, Events: events}
	}
	for name, c := range map[string]struct {
		rp          *replay.Result
		index, term uint64
	}{
		"no replay":         {nil, 0, 0},
		"nothing":           {result(nil), 0, 0},
		"a rise":            {result(jumps), 30, 3},
		"refusal before":    {result(jumps, old), 20, 3},
		"refusal after":     {result(jumps, late), 30, 3},
		"refusal alone":     {result(nil, late, old), 20, 3},
		"another reason":    {result(nil, refused(60, replay.ReasonLease, replay.Refused)), 0, 0},
		"without a refusal": {result(nil, refused(60, replay.ReasonOldAuth, replay.Applied)), 0, 0},
	} {
		index, term := (&Input{Members: Sources{m}, Replay: c.rp}).authRevisions().firstBreak()
		if index != c.index || term != c.term {
			t.Errorf("%s: %d/%d, want %d/%d", name, term, index, c.term, c.index)
		}
	}
}

// TestAuthRevisionEqual: which members count, and when a difference is none.
func TestAuthRevisionEqual(t *testing.T) {
	source := func(name string, rev uint64) *evidence.Member {
		m := withDB(withLog(member(name), 20), 20)
		m.DB.Auth.HasRevision, m.DB.Auth.Revision = true, rev
		return m
	}
	row := diff.Row{Key: []byte("authRevision"), Cells: []*diff.Cell{{Text: "4"}, {Text: "5"}}}
	for name, c := range map[string]struct {
		change  func(in *Input)
		outcome Outcome
		reason  string
		members []string
	}{
		"different":    {func(*Input) {}, Violated, "", []string{"n1", "n2"}},
		"equal":        {func(in *Input) { in.Members[1].DB.Auth.Revision = 4 }, Holds, "", nil},
		"not compared": {func(in *Input) { in.Diff = nil }, "", "the databases could not be compared", nil},
		"one stores none": {func(in *Input) { in.Members[1].DB.Auth.HasRevision = false }, "",
			"fewer than two members store an auth revision", nil},
		"one left out": {func(in *Input) { in.Diff.NotCompared = map[int]string{1: "damaged"} }, "",
			"fewer than two members store an auth revision", nil},
		"one has applied less": {func(in *Input) { in.Diff.Buckets[0].Rows[0].Out = []int{1} }, "",
			"fewer than two members store an auth revision", nil},
		"but no entry explains it": {func(in *Input) {
			in.Diff.Buckets[0].Rows[0].Out = []int{1}
			in.Replay = &replay.Result{Members: []*replay.MemberResult{
				{Checked: true, AuthKnown: true, Unexplained: 1}, {Checked: true, AuthKnown: true}}}
		}, Violated, "", []string{"n1", "n2"}},
		"an entry explains it": {func(in *Input) { in.Diff.Buckets[0].Rows = nil }, Holds, "", nil},
		"bucket not compared": {func(in *Input) {
			in.Diff.Buckets[0] = diff.Bucket{Name: "auth", Reason: "damaged pages"}
		}, "", "damaged pages", nil},
	} {
		in := &Input{Members: Sources{source("n1", 4), source("n2", 5)}, MaxRows: 20}
		in.Diff = &diff.Result{Members: in.Members,
			Buckets: []diff.Bucket{{Name: "auth", Equal: release.No, Differ: 1, Rows: []diff.Row{row}}}}
		c.change(in)
		r := runAuthRevisionEqual(in)
		var members []string
		if len(r.Findings) > 0 {
			members = r.Findings[0].Members
		}
		if r.Outcome != c.outcome || r.Reason != c.reason || !slices.Equal(members, c.members) {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestAuthJumps: what a rise of the auth revision is ascribed to.
func TestAuthJumps(t *testing.T) {
	m := withDB(withLog(member("n1"), 90), 90)
	m.DB.Auth.Revision = 9
	m.WAL.LastByTerm = []evidence.TermEnd{{Term: 2, First: 1, Last: 90}}
	jump := replay.Jump{Index: 30, Restart: 31, Start: time.Unix(0, 0).UTC(), Extra: 2, Possible: 3, From: 7, To: 8,
		Entries: []uint64{7, 8}}
	r := &replay.MemberResult{AuthExpected: 5, Unexplained: -1,
		Jumps: []replay.Jump{{Index: 20, Snapshot: 20, Extra: 1}, jump}}
	f := authJumpFinding(Sources{m}, m, r)
	want := "with the snapshot received at index 20 it took over a database whose auth revision stood higher by 1; " +
		"at the restart published by entry 31 (process started 1970-01-01T00:00:00Z) it rose by 2; applying auth " +
		"entries 7..8 a second time explains up to 3; a difference of -1 has no explanation in the log"
	if f.Explanation != want || f.At.Index != 20 || f.At.Term != 2 || len(f.Evidence) != 3 ||
		f.Evidence[0].Field != "authRevision" || f.Evidence[1].Field != "entry 7" {
		t.Errorf("%+v", f)
	}
	r.Unexplained, r.Jumps = 0, r.Jumps[1:]
	if f := authJumpFinding(Sources{m}, m, r); strings.Contains(f.Explanation, "no explanation") ||
		f.At.Index != 30 || f.Title != "n1 holds auth revision 9; its log gives 5" {
		t.Errorf("%+v", f)
	}
	r.AuthEndLost = true
	if f := authJumpFinding(Sources{m}, m, r); f.Title != "n1: its auth revision rose without an entry" ||
		f.Evidence[0].Expected != "no rise without an entry" {
		t.Errorf("the end of the log is lost: %+v", f)
	}
}

// TestAuthRevisionUnchecked: an auth revision is compared with a log that reaches from the first entry to the last one
// that the database has applied.
func TestAuthRevisionUnchecked(t *testing.T) {
	for name, c := range map[string]struct {
		r    replay.MemberResult
		want Result
	}{
		"whole":    {replay.MemberResult{Checked: true, AuthKnown: true}, Result{Outcome: Holds}},
		"no begin": {replay.MemberResult{Checked: true}, Result{Reason: "the log does not reach back to the first entry of the cluster"}},
		"no end": {replay.MemberResult{Checked: true, AuthKnown: true, AuthEndLost: true},
			Result{Reason: "the logs lack entries that the databases have applied"}},
		"not replayed": {replay.MemberResult{AuthKnown: true}, Result{Reason: "no member with a log stores an auth revision"}},
	} {
		m := withDB(withLog(member("n1"), 90), 90)
		m.DB.Auth.HasRevision = true
		in := &Input{Members: []*evidence.Member{m}, MaxRows: 20, Replay: &replay.Result{Survey: &replay.Survey{},
			Members: []*replay.MemberResult{&c.r}}}
		if r := runAuthRevisionMatchesLog(in); r.Outcome != c.want.Outcome || r.Reason != c.want.Reason {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestStaleAuthTitle: that others applied the entries is said only if each was applied somewhere. A refusal is counted
// only if an effect elsewhere, or the log, shows that it was wrong.
func TestStaleAuthTitle(t *testing.T) {
	refused := func(index uint64, wrongly bool, holding ...int) *replay.Event {
		return &replay.Event{Index: index, Term: 2, What: "put", Keys: []string{"k"}, Holding: holding,
			Proposer: 7, Outcomes: []replay.Outcome{{State: replay.Refused, Reason: replay.ReasonOldAuth,
				AuthRevision: 5, Wrongly: wrongly}, {State: replay.Contradicted}}}
	}
	event := func(index uint64, holding ...int) *replay.Event { return refused(index, len(holding) == 0, holding...) }
	rightly := &Input{Members: Sources{withLog(member("n1"), 9), withLog(member("n2"), 9)}, MaxRows: 20,
		Replay: &replay.Result{Events: []*replay.Event{refused(5, false)}}}
	if r := runStaleAuth(rightly); r.Outcome != Holds {
		t.Errorf("a refusal as the rules want it: %+v", r)
	}
	for end, events := range map[string][]*replay.Event{
		" that another member applied, because its auth revision is higher": {event(5, 1), event(6, 1)},
		", because its auth revision is higher than the log gives":          {event(5), event(6, 1)},
	} {
		in := &Input{Members: Sources{withLog(member("n1"), 9), withLog(member("n2"), 9)}, MaxRows: 20,
			Replay: &replay.Result{Events: events}}
		r := runStaleAuth(in)
		want := "n1 dropped 2 committed entries" + end
		if len(r.Findings) != 1 || r.Findings[0].Title != want || r.Findings[0].At != (At{Term: 2, Index: 5}) {
			t.Fatalf("%+v, want %q", r, want)
		}
		if e := r.Findings[0].Evidence[0]; string(e.Key) != "k" || !strings.Contains(e.Observed, "own 5") {
			t.Errorf("%+v", e)
		}
	}
}

// TestOwnSalts: differing hashes are legal only where the log holds the entry in clear and all entries after it.
func TestOwnSalts(t *testing.T) {
	if why := ownSalts(nil, "x"); !strings.Contains(why, `user "x"`) {
		t.Errorf("%q", why)
	}
	if why := ownSalts(&replay.Result{Survey: &replay.Survey{}}, "x"); why == "" {
		t.Error("no entry sets the password")
	}
	in := &Input{Members: Sources{member("n1"), member("n2")}, Replay: &replay.Result{}}
	in.Diff = &diff.Result{Members: in.Members, Buckets: []diff.Bucket{{Name: "authUsers", Equal: release.Yes}},
		Passwords: []diff.Password{{User: "y"}, {User: "x", Legal: true}}}
	if r := runPasswordsEqual(in); !strings.Contains(r.Reason, `"x"`) || r.Outcome == Holds {
		t.Errorf("%+v", r)
	}
	in.Diff.Passwords = in.Diff.Passwords[:1]
	if r := runPasswordsEqual(in); r.Outcome != Holds {
		t.Errorf("%+v", r)
	}
}
