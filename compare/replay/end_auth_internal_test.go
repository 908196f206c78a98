package replay

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// appMember is a member that ends with auth on, revision 9, user root and user app, who may write keys from /app/ on.
func appMember() *evidence.Member {
	m := &evidence.Member{DB: &evidence.DB{}}
	m.AppliedMin, m.AppliedMax = 20, 20
	m.DB.Auth = dumpdb.Auth{Enabled: true, HasRevision: true, Revision: 9,
		Users: []dumpdb.User{{Name: "root", Roles: []string{"root"}}, {Name: "app", Roles: []string{"app"}},
			{Name: "admin", Roles: []string{"root"}}},
		Roles: []dumpdb.Role{{Name: "app", Perms: []dumpdb.Permission{{Type: apply.PermBoth, Key: []byte("/app/"),
			RangeEnd: []byte("/app0")}}}}}
	return m
}

// adminBy is an auth request of a user.
func adminBy(user string, k dumplog.Kind, a dumplog.AuthRequest) *dumplog.Request {
	return &dumplog.Request{Kind: k, Auth: &a, Header: dumplog.Header{Username: user, AuthRevision: 9}}
}

// TestSinceWhenAuthIsThatOfTheEnd: the last entry up to the applied index that can have changed auth ends what the
// database shows of earlier entries. One that was refused for certain does not.
func TestSinceWhenAuthIsThatOfTheEnd(t *testing.T) {
	role := dumplog.AuthRequest{Role: "new"}
	for name, c := range map[string]struct {
		auth     []AuthEntry
		gaps     []Gap
		bad      []Undecodable
		stamps   []Stamp
		mayAlarm bool
		last     uint64
		off      bool
		since    uint64
		unusable bool
	}{
		"nothing":             {last: 30},
		"a change":            {last: 30, auth: []AuthEntry{{12, adminBy("root", dumplog.KindAuthRoleAdd, role)}}, since: 12},
		"after its end":       {last: 30, auth: []AuthEntry{{21, adminBy("root", dumplog.KindAuthRoleAdd, role)}}},
		"its last entry":      {last: 30, auth: []AuthEntry{{20, adminBy("root", dumplog.KindAuthRoleAdd, role)}}, since: 20},
		"by app":              {last: 30, auth: []AuthEntry{{12, adminBy("app", dumplog.KindAuthRoleAdd, role)}}},
		"by no user":          {last: 30, auth: []AuthEntry{{12, adminBy("", dumplog.KindAuthRoleAdd, role)}}},
		"by app, auth off":    {last: 30, off: true, since: 12, auth: []AuthEntry{{12, adminBy("app", dumplog.KindAuthRoleAdd, role)}}},
		"by app, an alarm":    {last: 30, mayAlarm: true, since: 12, auth: []AuthEntry{{12, adminBy("app", dumplog.KindAuthRoleAdd, role)}}},
		"by app, enables":     {last: 30, since: 12, auth: []AuthEntry{{12, adminBy("app", dumplog.KindAuthEnable, role)}}},
		"by another root":     {last: 30, since: 12, auth: []AuthEntry{{12, adminBy("admin", dumplog.KindAuthRoleAdd, role)}}},
		"app before a change": {last: 30, since: 7, auth: []AuthEntry{{7, adminBy("root", dumplog.KindAuthRoleAdd, role)}, {12, adminBy("app", dumplog.KindAuthRoleAdd, role)}}},
		"app gives up its role": {last: 30, since: 12, auth: []AuthEntry{
			{12, adminBy("app", dumplog.KindAuthUserRevokeRole, dumplog.AuthRequest{User: "app", Role: "root"})}}},
		"app removes itself": {last: 30, since: 12, auth: []AuthEntry{
			{12, adminBy("app", dumplog.KindAuthUserDelete, dumplog.AuthRequest{User: "app"})}}},
		"app removes another": {last: 30, auth: []AuthEntry{
			{12, adminBy("app", dumplog.KindAuthUserDelete, dumplog.AuthRequest{User: "other"})}}},
		"no content":       {last: 30, since: 12, auth: []AuthEntry{{12, &dumplog.Request{Kind: dumplog.KindAuthRoleAdd}}}},
		"a gap":            {last: 30, gaps: []Gap{{8, 11}}, since: 11},
		"a gap at its end": {last: 30, gaps: []Gap{{18, 25}}, since: 20},
		"a gap after":      {last: 30, gaps: []Gap{{22, 25}}},
		"undecodable":      {last: 30, bad: []Undecodable{{Index: 9}, {Index: 14}, {Index: 25}}, since: 14},
		"a proposal with the revision of the end before a change": {last: 30, since: 7, stamps: []Stamp{{3, 8}, {8, 9}},
			auth: []AuthEntry{{12, adminBy("root", dumplog.KindAuthRoleAdd, role)}}},
		"before a gap": {last: 30, since: 7, stamps: []Stamp{{8, 9}}, gaps: []Gap{{9, 11}}},
		"after the change": {last: 30, since: 12, stamps: []Stamp{{14, 9}},
			auth: []AuthEntry{{12, adminBy("root", dumplog.KindAuthRoleAdd, role)}}},
		"a proposal with a lower revision": {last: 30, since: 12, stamps: []Stamp{{8, 8}},
			auth: []AuthEntry{{12, adminBy("root", dumplog.KindAuthRoleAdd, role)}}},
		"a proposal, and auth is off at the end": {last: 30, off: true, since: 12, stamps: []Stamp{{8, 9}},
			auth: []AuthEntry{{12, adminBy("root", dumplog.KindAuthRoleAdd, role)}}},
		"the log ends":  {last: 20},
		"the log ended": {last: 19, unusable: true},
	} {
		t.Run(name, func(t *testing.T) {
			m := appMember()
			m.DB.Auth.Enabled = !c.off
			r := &Result{Last: c.last, Survey: &Survey{Auth: c.auth,
				Stamps: map[dumplog.ID][]Stamp{m.MemberID: c.stamps, 5: {{1, 9}}}}, Gaps: c.gaps,
				Undecodable: map[int][]Undecodable{3: c.bad}}
			end := newEndAuth(r, m, c.mayAlarm)
			if (end == nil) != c.unusable || end != nil && end.since != c.since {
				t.Errorf("%+v", end)
			}
		})
	}
	m := appMember()
	for revision, want := range map[uint64]uint64{9: 7, 10: 12} { // of another member
		other := appMember()
		other.DB.Handle, other.DB.Auth.Revision = &dumpdb.DB{}, revision
		r := &Result{Last: 30, Members: []*MemberResult{{Member: m}, {Member: other}}, Survey: &Survey{
			Auth:   []AuthEntry{{12, adminBy("root", dumplog.KindAuthRoleAdd, role)}},
			Stamps: map[dumplog.ID][]Stamp{m.MemberID: {{8, 9}}}}}
		if end := newEndAuth(r, m, false); end.since != want {
			t.Errorf("another member has revision %d: since %d, want %d", revision, end.since, want)
		}
	}
	for off, want := range map[bool]uint64{false: 7, true: 12} { // of another member, with the same auth or not
		m, other := appMember(), appMember()
		m.DB.Handle, other.DB.Handle, other.MemberID, other.DB.Auth.Enabled = &dumpdb.DB{}, &dumpdb.DB{}, 77, !off
		r := &Result{Last: 30, Members: []*MemberResult{{Member: m}, {Member: other}}, Survey: &Survey{
			Auth:   []AuthEntry{{12, adminBy("root", dumplog.KindAuthRoleAdd, role)}},
			Stamps: map[dumplog.ID][]Stamp{other.MemberID: {{8, 9}}}}}
		if end := newEndAuth(r, m, false); end.since != want {
			t.Errorf("a proposal of another member, off %t: since %d, want %d", off, end.since, want)
		}
	}
	m.DB.Auth.HasRevision = false
	if end := newEndAuth(&Result{Last: 30, Survey: &Survey{}}, m, false); end != nil {
		t.Errorf("without an auth revision: %+v", end)
	}
}

// TestEndAuthPermits: what users and roles of the end permit passes at each entry after the last change.
func TestEndAuthPermits(t *testing.T) {
	as := func(r *dumplog.Request, user string, revision uint64) *dumplog.Request {
		r.Header = dumplog.Header{Username: user, AuthRevision: revision}
		return r
	}
	leased := put("/app/a", "1")
	leased.Put.Lease = 7
	del := &dumplog.Request{Kind: dumplog.KindDeleteRange,
		DeleteRange: &dumplog.DeleteRangeRequest{Key: []byte("/app/a")}}
	all := &dumplog.Request{Kind: dumplog.KindDeleteRange,
		DeleteRange: &dumplog.DeleteRangeRequest{Key: []byte{0}, RangeEnd: []byte{0}}}
	txn := func(key string) *dumplog.Request {
		return &dumplog.Request{Kind: dumplog.KindTxn, Txn: &dumplog.TxnRequest{
			Success: []dumplog.RequestOp{{Range: &dumplog.RangeRequest{Key: []byte(key)}}}}}
	}
	mine := func(int64) []string { return []string{"/app/b"} }
	for name, c := range map[string]struct {
		r      *dumplog.Request
		index  uint64
		keysOf func(int64) []string
		change func(m *evidence.Member)
		want   bool
	}{
		"put":                     {r: as(put("/app/a", "1"), "app", 9), index: 13, want: true},
		"put at the change":       {r: as(put("/app/a", "1"), "app", 9), index: 12},
		"root at the change":      {r: as(put("x", "1"), "root", 9), index: 12, want: true},
		"an old auth revision":    {r: as(put("/app/a", "1"), "app", 8), index: 13},
		"of another key":          {r: as(put("/b", "1"), "app", 9), index: 13},
		"user with role root":     {r: as(put("/b", "1"), "admin", 9), index: 13, want: true},
		"user that is not there":  {r: as(put("/app/a", "1"), "nope", 9), index: 13},
		"lease, keys not known":   {r: as(leased, "app", 9), index: 13},
		"lease with own keys":     {r: as(leased, "app", 9), index: 13, keysOf: mine, want: true},
		"lease with another's":    {r: as(leased, "app", 9), index: 13, keysOf: func(int64) []string { return []string{"/b"} }},
		"delete":                  {r: as(del, "app", 9), index: 13, want: true},
		"delete of all":           {r: as(all, "app", 9), index: 13},
		"txn":                     {r: as(txn("/app/a"), "app", 9), index: 13, want: true},
		"txn that reads another":  {r: as(txn("/b"), "app", 9), index: 13},
		"revoke":                  {r: as(&dumplog.Request{Kind: dumplog.KindLeaseRevoke}, "app", 9), index: 13},
		"put without content":     {r: as(&dumplog.Request{Kind: dumplog.KindPut}, "app", 9), index: 13},
		"a snapshot was received": {r: as(put("/app/a", "1"), "app", 9), index: 13, change: receive(13)},
		"received before":         {r: as(put("/app/a", "1"), "app", 9), index: 14, change: receive(13), want: true},
		"auth off at the end": {r: put("/b", "1"), index: 13, want: true,
			change: func(m *evidence.Member) { m.DB.Auth.Enabled = false }},
		"auth off since then": {r: put("/b", "1"), index: 12,
			change: func(m *evidence.Member) { m.DB.Auth.Enabled = false }},
	} {
		t.Run(name, func(t *testing.T) {
			m := appMember()
			if c.change != nil {
				c.change(m)
			}
			r := &Result{Last: 30, Survey: &Survey{Auth: []AuthEntry{
				{12, adminBy("root", dumplog.KindAuthRoleAdd, dumplog.AuthRequest{Role: "new"})}}}}
			lv := &logView{m: m, endAuth: newEndAuth(r, m, false)}
			if got := lv.passesAuth(c.r, c.index, c.keysOf); got != c.want {
				t.Errorf("passes: %t", got)
			}
		})
	}
}

// TestAuthRevisionAtMost: the password hash that the database holds shows that the entry with it took effect. Before
// that entry the auth revision was lower, so that a request of root with a lower one passed.
func TestAuthRevisionAtMost(t *testing.T) {
	hash, other := []byte("hash"), []byte("other")
	set := func(index uint64, hash []byte) PasswordSet { return PasswordSet{Index: index, Hash: hash} }
	for name, c := range map[string]struct {
		app, admin []PasswordSet
		clear      bool
		index      uint64
		most       uint64
	}{
		"no entry":              {index: 1, most: 9},
		"before it":             {app: []PasswordSet{set(12, hash)}, index: 11, most: 8},
		"at it":                 {app: []PasswordSet{set(12, hash)}, index: 12, most: 9},
		"of two users":          {app: []PasswordSet{set(12, hash)}, admin: []PasswordSet{set(15, hash)}, index: 11, most: 7},
		"between those":         {app: []PasswordSet{set(12, hash)}, admin: []PasswordSet{set(15, hash)}, index: 13, most: 8},
		"an older password":     {app: []PasswordSet{set(8, other), set(12, hash)}, index: 5, most: 8},
		"another password":      {app: []PasswordSet{set(12, other)}, index: 5, most: 9},
		"the same hash twice":   {app: []PasswordSet{set(8, hash), set(12, hash)}, index: 5, most: 9},
		"after the last entry":  {app: []PasswordSet{set(21, hash)}, index: 5, most: 9},
		"at the last entry":     {app: []PasswordSet{set(20, hash)}, index: 5, most: 8},
		"no password on either": {app: []PasswordSet{set(12, nil)}, clear: true, index: 5, most: 9},
	} {
		m := appMember()
		for i := range m.DB.Auth.Users {
			if m.DB.Auth.Users[i].Password = hash; c.clear {
				m.DB.Auth.Users[i].Password = nil
			}
		}
		r := &Result{Last: 30, Survey: &Survey{state: newLastStates()}}
		r.Survey.state.passwords["app"], r.Survey.state.passwords["admin"] = c.app, c.admin
		lv := &logView{m: m, endAuth: newEndAuth(r, m, false)}
		if got := lv.endAuth.atMost(c.index); got != c.most {
			t.Errorf("%s: %d, want %d", name, got, c.most)
		}
		lv.endAuth.since = 20 // the auth of the end does not speak for earlier entries
		for revision := uint64(6); revision < 10; revision++ {
			r := put("k", "1")
			r.Header = dumplog.Header{Username: "root", AuthRevision: revision}
			if got, want := lv.passesAuth(r, c.index, nil), revision >= c.most; got != want {
				t.Errorf("%s: root with auth revision %d passes: %v", name, revision, got)
			}
			if r.Header.Username = "admin"; lv.passesAuth(r, c.index, nil) {
				t.Errorf("%s: user admin, who may not have had role root, passes with %d", name, revision)
			}
		}
	}
}

// receive gives the member a log that received a snapshot.
func receive(to uint64) func(m *evidence.Member) {
	return func(m *evidence.Member) {
		m.WAL = evidence.WAL{Log: &dumplog.Log{}, Summary: dumplog.Summary{Jumps: []dumplog.Jump{{To: to}}}}
	}
}

// TestPassesByKeysOfTheModel: the keys of a lease count only where the model knows all keys for certain.
func TestPassesByKeysOfTheModel(t *testing.T) {
	leased := put("/app/a", "1")
	leased.Put.Lease = 7
	leased.Header = dumplog.Header{Username: "app", AuthRevision: 9}
	m := appMember()
	for name, c := range map[string]struct {
		met, known bool
		keys       []apply.Key
		want       bool
	}{
		"known":            {met: true, known: true, want: true},
		"before":           {known: true},
		"unreadable":       {met: true},
		"another's key":    {met: true, known: true, keys: []apply.Key{{Name: "/b", Lease: 7}}},
		"own key":          {met: true, known: true, keys: []apply.Key{{Name: "/app/b", Lease: 7}}, want: true},
		"an uncertain key": {met: true, known: true, keys: []apply.Key{{Name: "/app/b", Lease: 7, Unsure: true}}},
	} {
		su := &subject{Model: apply.NewModel(m.Version.Release()), met: c.met, now: 13, res: &MemberResult{},
			logView: &logView{m: m, endAuth: newEndAuth(&Result{Last: 30, Survey: &Survey{}}, m, false)}}
		su.KeysKnown = c.known
		for _, k := range c.keys {
			su.Keys.Put(k)
		}
		if got := su.passes(leased); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestStampShows: a put of root must have an effect if an entry that names no higher auth revision had one before it,
// and auth cannot have changed since.
func TestStampShows(t *testing.T) {
	applied, member := byRoot(put("a", "1"), 17), &evidence.Member{AppliedMin: 1000, AppliedMax: 1000, DB: &evidence.DB{
		Handle: &dumpdb.DB{}, Auth: dumpdb.Auth{Enabled: true, HasRevision: true, Revision: 19}}}
	for name, c := range map[string]struct {
		between *dumplog.Request
		last    *dumplog.Request
		start   uint64
		missing bool
	}{
		"at the same auth revision": {last: byRoot(put("b", "1"), 17), missing: true},
		"at a higher one":           {last: byRoot(put("b", "1"), 18), missing: true},
		"at a lower one":            {last: byRoot(put("b", "1"), 16)},
		"of another user": {last: &dumplog.Request{Kind: dumplog.KindPut, Put: put("b", "1").Put,
			Header: dumplog.Header{Username: "app", AuthRevision: 17}}},
		"auth may have changed": {last: byRoot(put("b", "1"), 17),
			between: adminBy("root", dumplog.KindAuthRoleAdd, dumplog.AuthRequest{Role: "new"})},
		"a start before":  {last: byRoot(put("b", "1"), 17), missing: true, start: 1},
		"a start between": {last: byRoot(put("b", "1"), 17), start: 3},
	} {
		b := newBench(t, 5, -1, rec(2, 0, "a", "1")).log(byRoot(del("x", ""), 17), applied)
		if c.between != nil {
			b.log(c.between)
		}
		b.log(c.last)
		b.sim.m, b.sim.Auth = member, authFromDB(&member.DB.Auth, b.sim.Version)
		b.sim.Passes, b.sim.lastStart = b.sim.passes, c.start
		if got := b.run(); (got[len(got)-1] == "missing") != c.missing {
			t.Errorf("%s: %v, want missing at the end: %t", name, got, c.missing)
		}
	}
}
