package apply

import (
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
