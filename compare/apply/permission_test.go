package apply

import (
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// rightsOn are the rights of the state rooted, on a version, with two keys on lease 1: one of app and one that only
// root may write.
func rightsOn(t *testing.T, version string) *Rights {
	t.Helper()
	a := rooted(t)
	a.Version = release.Of(version)
	return &Rights{Auth: a, KeysOf: func(lease int64) []string {
		if lease == 1 {
			return []string{"/app/a", "/secret"}
		}
		return nil
	}}
}

var (
	app     = dumplog.Header{Username: "app", AuthRevision: 8}
	root    = dumplog.Header{Username: "root", AuthRevision: 8}
	oldRoot = dumplog.Header{Username: "root", AuthRevision: 7}
)

func put(key string, lease int64, prev bool) dumplog.RequestOp {
	return dumplog.RequestOp{Put: &dumplog.PutRequest{Key: []byte(key), Lease: lease, PrevKV: prev}}
}

func txn(ops ...dumplog.RequestOp) *dumplog.TxnRequest { return &dumplog.TxnRequest{Success: ops} }

func nested(ops ...dumplog.RequestOp) dumplog.RequestOp { return dumplog.RequestOp{Txn: txn(ops...)} }

// TestRevokeByRoot: an expired lease is revoked by root with the auth revision of its proposal, which may be old by
// then.
func TestRevokeByRoot(t *testing.T) {
	for version, want := range map[string]Verdict{
		"3.3": {Reason: ReasonOldAuth}, "3.4.23": {Reason: ReasonOldAuth}, "3.4.26": {Reason: ReasonOldAuth},
		"3.5.9":  {Reason: ReasonOldAuth},
		"3.4.27": {}, "3.5.10": {}, "3.6": {}, "3.7.3": {},
		"3.4": {ReasonOldAuth, release.LeaseCheckSkipsRoot}, "3.5": {ReasonOldAuth, release.LeaseCheckSkipsRoot},
		"": {ReasonOldAuth, release.LeaseCheckSkipsRoot},
	} {
		r := rightsOn(t, version)
		if got := r.Revoke(oldRoot, 1); got != want {
			t.Errorf("%q: %+v, want %+v", version, got, want)
		}
		if got := r.Revoke(oldRoot, 2); got.Refused() {
			t.Errorf("%q: a lease without keys: %+v", version, got)
		}
		if got := r.Revoke(root, 1); got.Refused() {
			t.Errorf("%q: with the present revision: %+v", version, got)
		}
		if got, want := r.Revoke(app, 1), (Verdict{Reason: ReasonPermission}); got != want {
			t.Errorf("%q: by app: %+v", version, got)
		}
		// A user root without the role is not root.
		r.Auth.Users["root"].Roles = nil
		if got, want := r.Revoke(root, 1), (Verdict{Reason: ReasonPermission}); got != want {
			t.Errorf("%q: by root without its role: %+v", version, got)
		}
		// Where no list of users is known, the name decides who root is.
		r.Auth.Known = false
		delete(r.Auth.Users, "root")
		if got := r.Revoke(oldRoot, 1); got != want {
			t.Errorf("%q: users are unknown: %+v, want %+v", version, got, want)
		}
		if got, want := r.Revoke(app, 1), (Verdict{Reason: ReasonPermission}); got != want {
			t.Errorf("%q: users are unknown, by app: %+v", version, got)
		}
	}
}

// TestTxnPermission: what releases check of the operations inside.
func TestTxnPermission(t *testing.T) {
	denied := Verdict{Reason: ReasonPermission}
	for name, c := range map[string]struct {
		txn     *dumplog.TxnRequest
		version string
		want    Verdict
		keeps   release.Answer
	}{
		"allowed":     {txn(put("/app/x", 0, false)), "3.4", Verdict{}, release.Yes},
		"denied":      {txn(put("/secret", 0, false)), "", denied, release.Yes},
		"nested, old": {txn(nested(put("/secret", 0, false))), "3.6.8", Verdict{}, release.Yes},
		"nested, new": {txn(nested(put("/secret", 0, false))), "3.6.9", denied, release.Yes},
		"nested, unknown": {txn(nested(put("/secret", 0, false))), "3.6",
			Verdict{ReasonPermission, release.NestedTxnPermission}, release.No},
		"nested, then denied": {txn(nested(put("/secret", 0, false)), put("/secret", 0, false)), "3.6", denied,
			release.Yes},
		"lease, old": {txn(put("/app/x", 1, false)), "3.5.29", Verdict{}, release.Yes},
		"lease, new": {txn(put("/app/x", 1, false)), "3.5.30", denied, release.Yes},
		"lease, unknown": {txn(put("/app/x", 1, false)), "3.5",
			Verdict{ReasonPermission, release.TxnPutChecks}, release.No},
		"range, dropped": {txn(dumplog.RequestOp{Range: &dumplog.RangeRequest{Key: []byte("/secret")}}),
			"3.6", Verdict{}, release.No},
		"range, perhaps kept": {txn(dumplog.RequestOp{Range: &dumplog.RangeRequest{Key: []byte("/secret")}}),
			"3.6", Verdict{ReasonPermission, release.TxnRangesKept}, release.Unknown},
		"range, kept": {txn(dumplog.RequestOp{Range: &dumplog.RangeRequest{Key: []byte("/secret")}}),
			"3.7", denied, release.Yes},
		"range in a nested, dropped": {txn(nested(dumplog.RequestOp{Range: &dumplog.RangeRequest{Key: []byte("/secret")}})), "3.6.9", denied, release.No},
		"compare": {&dumplog.TxnRequest{Compare: []dumplog.Compare{{Key: []byte("/secret")}}}, "",
			denied, release.Yes},
		"delete":      {txn(opDelete("/secret", "")), "", denied, release.Yes},
		"delete, own": {txn(opDelete("/app/x", "")), "", Verdict{}, release.Yes},
		"nothing":     {txn(dumplog.RequestOp{}), "", Verdict{}, release.Yes},
		"failure branch": {&dumplog.TxnRequest{Failure: []dumplog.RequestOp{put("/secret", 0, false)}}, "",
			denied, release.Yes},
	} {
		r := rightsOn(t, c.version)
		r.KeepsRanges = c.keeps
		if got := r.Txn(app, c.txn); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		if got := r.Txn(root, c.txn); got.Refused() {
			t.Errorf("%s: root is refused: %+v", name, got)
		}
	}
}

func TestPutAndDeletePermission(t *testing.T) {
	r := rightsOn(t, "3.4")
	a := r.Auth
	a.Roles["writer"] = []Permission{{Type: PermWrite, Key: "w"}}
	a.Users["app"].Roles = append(a.Users["app"].Roles, "writer")
	w := &dumplog.PutRequest{Key: []byte("w")}
	d := &dumplog.DeleteRangeRequest{Key: []byte("w")}
	if r.Put(app, w).Refused() || r.Delete(app, d).Refused() {
		t.Error("a writer may put and delete")
	}
	w.PrevKV, d.PrevKV = true, true
	if !r.Put(app, w).Refused() || !r.Delete(app, d).Refused() {
		t.Error("prev_kv asks for read permission")
	}
	if got := r.Put(app, &dumplog.PutRequest{Key: []byte("/app/x"), Lease: 1}); got.Reason != ReasonPermission {
		t.Errorf("a put that shares a lease with a key of root: %+v", got)
	}
}

func by(user string, r *dumplog.Request) *dumplog.Request {
	r.Header.Username = user
	return r
}

// TestGrantByRelease: ranges and names that some releases take.
func TestGrantByRelease(t *testing.T) {
	for _, c := range []struct {
		version string
		op      *dumplog.Request
		raised  bool
		rule    *release.Rule
	}{
		{"3.4.24", grantOp("app", "/x", "/a"), true, nil},
		{"3.4.25", grantOp("app", "/x", "/a"), false, nil},
		{"3.5.7", grantOp("app", "", ""), true, nil},
		{"3.5", grantOp("app", "/x", "/a"), true, release.GrantChecksRange},
		{"3.6", grantOp("app", "/x", "/a"), false, nil},
		{"3.6", grantOp("app", "/x", "\x00"), true, nil},
		{"3.6", grantOp("app", "/x", "/x"), false, nil},
		{"3.6", grantOp("app", "/x", ""), true, nil},
		{"3.6", grantOp("app", "", ""), false, nil},
		{"3.5", by("app", grantOp("app", "/x", "/a")), false, nil},
		{"3.5", authOp(dumplog.KindAuthRoleGrantPermission, "", "app"), false, nil},
		{"3.5", authOp(dumplog.KindAuthUserAdd, "new", ""), true, nil},
		{"3.5", &dumplog.Request{Kind: dumplog.KindAuthRoleAdd, Header: root}, false, nil},
		{"3.3", authOp(dumplog.KindAuthRoleAdd, "", ""), true, nil},
		{"3.4", authOp(dumplog.KindAuthRoleAdd, "", ""), false, nil},
		{"", authOp(dumplog.KindAuthRoleAdd, "", ""), true, release.RoleNeedsName},
	} {
		s := rooted(t)
		s.Version = release.Of(c.version)
		if rule := s.Undecided(c.op); rule != c.rule {
			t.Errorf("%s on %q: decided by %v, want %v", c.op.Kind, c.version, rule, c.rule)
		}
		if raised, _ := s.Apply(c.op); raised != c.raised {
			t.Errorf("%s on %q: raised %v, want %v", c.op.Kind, c.version, raised, c.raised)
		}
	}
}

// TestGrantByStrictServer: where possible releases disagree, a strict one refuses.
func TestGrantByStrictServer(t *testing.T) {
	long := authOp(dumplog.KindAuthUserAdd, "new", "")
	long.Auth.Password = strings.Repeat("p", 73)
	hashed := authOp(dumplog.KindAuthUserAdd, "new", "")
	hashed.Auth.Password, hashed.Auth.HashedPassword = long.Auth.Password, "aGFzaA=="
	change := authOp(dumplog.KindAuthUserChangePassword, "app", "")
	change.Auth.Password = long.Auth.Password
	for _, c := range []struct {
		version                   string
		op                        *dumplog.Request
		lenient, strict, disputed bool
	}{
		{"3.5", grantOp("app", "/x", "/a"), true, false, true},
		{"3.5.7", grantOp("app", "/x", "/a"), true, true, false},
		{"3.6", grantOp("app", "/x", "/a"), false, false, false},
		{"3.4", long, true, false, true},
		{"3.4.23", long, true, false, true}, // built with a newer x/crypto
		{"3.4.28", long, false, false, true},
		{"3.4", change, true, false, true},
		{"3.5", hashed, true, true, false},
	} {
		for _, strict := range []bool{false, true} {
			s := rooted(t)
			s.Version, s.Strict = release.Of(c.version), strict
			if got := s.Disputed(c.op); got != c.disputed {
				t.Errorf("%s on %q: disputed %v", c.op.Kind, c.version, got)
			}
			want := c.lenient && !strict || c.strict && strict
			if raised, _ := s.Apply(c.op); raised != want {
				t.Errorf("%s on %q, strict %v: raised %v", c.op.Kind, c.version, strict, raised)
			}
		}
	}
}

// TestMixedRole: of several permissions from one key, etcd looks only at the first, and how it sorts them depends on
// the release of Go if there are many. What a user with the role may do is then not certain.
func TestMixedRole(t *testing.T) {
	for n, mixed := range map[int]bool{3: false, 5: true} {
		s := rooted(t)
		s.Apply(grantOp("app", "/app/", ""))
		for i := range n {
			s.Apply(grantOp("app", "/x/"+string(rune('a'+i)), ""))
		}
		s.Apply(grantOp("app", "/x/a", ""))
		if s.Mixed["app"] || s.Unclear("app") {
			t.Errorf("%d: mixed by the only permission from its key", n)
		}
		s.Apply(grantOp("app", "/app/", "/app0"))
		if s.Mixed["app"] != mixed || s.Unclear("app") != mixed || s.Clone().Mixed["app"] != mixed || s.Unclear(Root) {
			t.Errorf("%d: mixed %v", n, s.Mixed)
		}
		if s.Apply(authOp(dumplog.KindAuthRoleDelete, "", "app")); s.Mixed["app"] || s.Unclear("app") {
			t.Errorf("%d: a deleted role is mixed", n)
		}
	}
}

// TestCoveredByOddRanges: a permission from the empty key covers nothing, and neither does one that ends before it
// begins; an empty range is covered where it begins.
func TestCoveredByOddRanges(t *testing.T) {
	for _, c := range []struct {
		from, to, key, end string
		want               bool
	}{
		{"", "\x00", "/a", "", false}, {"", "/b", "/a", "", false}, {"\x00", "\x00", "/a", "", true},
		{"/m", "/c", "/d", "", false}, {"/m", "/m", "/m", "", false}, {"/p", "\x00", "/z", "/a", true},
		{"/a", "/b", "/z", "/a", false}, {"/a", "/b", "/a", "/b", true}, {"/a", "/b", "/a", "/c", false},
	} {
		s := rooted(t)
		s.Version = release.Of("3.5.7")
		s.Apply(authOp(dumplog.KindAuthRoleAdd, "", "odd"))
		s.Apply(grantOp("odd", c.from, c.to))
		s.Users["app"].Roles = []string{"odd"}
		h := dumplog.Header{Username: "app", AuthRevision: s.Revision}
		if got := s.Check(h, []byte(c.key), []byte(c.end), true) == ReasonNone; got != c.want {
			t.Errorf("[%q, %q) by [%q, %q): %v", c.key, c.end, c.from, c.to, got)
		}
	}
}

func TestInRange(t *testing.T) {
	for _, c := range []struct {
		key, from, end string
		want           bool
	}{{"a", "a", "", true}, {"b", "a", "", false}, {"b", "a", "c", true}, {"c", "a", "c", false},
		{"z", "a", "\x00", true}, {"A", "a", "\x00", false}} {
		if got := InRange(c.key, []byte(c.from), []byte(c.end)); got != c.want {
			t.Errorf("%q in [%q, %q): %v", c.key, c.from, c.end, got)
		}
	}
}
