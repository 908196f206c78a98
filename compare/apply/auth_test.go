package apply

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// authOp is one auth request in short.
func authOp(k dumplog.Kind, user, role string) *dumplog.Request {
	return &dumplog.Request{Kind: k, Header: dumplog.Header{Username: "root"},
		Auth: &dumplog.AuthRequest{User: user, Role: role}}
}

func grantOp(role, key, end string) *dumplog.Request {
	r := authOp(dumplog.KindAuthRoleGrantPermission, "", role)
	r.Auth.Perm = &dumplog.Permission{Type: PermBoth, Key: []byte(key), RangeEnd: []byte(end)}
	return r
}

func revokeOp(role, key, end string) *dumplog.Request {
	r := authOp(dumplog.KindAuthRoleRevokePermission, "", role)
	r.Auth.Key, r.Auth.RangeEnd = []byte(key), []byte(end)
	return r
}

// rooted is a state with users root and app, roles root and app over [/app/, /app0), auth on: auth revision 8.
func rooted(t *testing.T) *Auth {
	t.Helper()
	s := NewAuth(release.AnyOf(6))
	for _, r := range []*dumplog.Request{
		authOp(dumplog.KindAuthRoleAdd, "", "root"), authOp(dumplog.KindAuthUserAdd, "root", ""),
		authOp(dumplog.KindAuthUserGrantRole, "root", "root"),
		authOp(dumplog.KindAuthRoleAdd, "", "app"), authOp(dumplog.KindAuthUserAdd, "app", ""),
		authOp(dumplog.KindAuthUserGrantRole, "app", "app"),
		grantOp("app", "/app/", "/app0"), authOp(dumplog.KindAuthEnable, "", ""),
	} {
		if _, reason := s.Apply(r); reason != ReasonNone {
			t.Fatalf("%s: %s", r.Kind, reason)
		}
	}
	if s.Revision != 8 || !s.Enabled {
		t.Fatalf("auth revision %d, enabled %v", s.Revision, s.Enabled)
	}
	return s
}

// TestAuthRevision holds which calls raise the auth revision, the first and the second time they are executed: what
// repeats after a restart is what raises it again.
func TestAuthRevision(t *testing.T) {
	for name, c := range map[string]struct {
		ops           []*dumplog.Request
		first, second uint64
	}{
		"enable again":          {[]*dumplog.Request{authOp(dumplog.KindAuthEnable, "", "")}, 0, 0},
		"disable":               {[]*dumplog.Request{authOp(dumplog.KindAuthDisable, "", "")}, 1, 0},
		"grant permission":      {[]*dumplog.Request{grantOp("app", "/x/", "/x0")}, 1, 1},
		"grant to no role":      {[]*dumplog.Request{grantOp("none", "/x/", "/x0")}, 0, 0},
		"grant without one":     {[]*dumplog.Request{authOp(dumplog.KindAuthRoleGrantPermission, "", "app")}, 0, 0},
		"revoke permission":     {[]*dumplog.Request{revokeOp("app", "/app/", "/app0")}, 1, 0},
		"grant and revoke":      {[]*dumplog.Request{grantOp("app", "/y", ""), revokeOp("app", "/y", "")}, 2, 2},
		"change password":       {[]*dumplog.Request{authOp(dumplog.KindAuthUserChangePassword, "app", "")}, 1, 1},
		"password of nobody":    {[]*dumplog.Request{authOp(dumplog.KindAuthUserChangePassword, "none", "")}, 0, 0},
		"add user":              {[]*dumplog.Request{authOp(dumplog.KindAuthUserAdd, "new", "")}, 1, 0},
		"add user without name": {[]*dumplog.Request{authOp(dumplog.KindAuthUserAdd, "", "")}, 0, 0},
		"add and delete user": {[]*dumplog.Request{authOp(dumplog.KindAuthUserAdd, "new", ""),
			authOp(dumplog.KindAuthUserDelete, "new", "")}, 2, 2},
		"delete user":           {[]*dumplog.Request{authOp(dumplog.KindAuthUserDelete, "app", "")}, 1, 0},
		"delete root":           {[]*dumplog.Request{authOp(dumplog.KindAuthUserDelete, "root", "")}, 0, 0},
		"grant role":            {[]*dumplog.Request{authOp(dumplog.KindAuthUserGrantRole, "app", "root")}, 1, 0},
		"grant role again":      {[]*dumplog.Request{authOp(dumplog.KindAuthUserGrantRole, "app", "app")}, 0, 0},
		"grant no role":         {[]*dumplog.Request{authOp(dumplog.KindAuthUserGrantRole, "app", "none")}, 0, 0},
		"revoke role":           {[]*dumplog.Request{authOp(dumplog.KindAuthUserRevokeRole, "app", "app")}, 1, 0},
		"revoke root from root": {[]*dumplog.Request{authOp(dumplog.KindAuthUserRevokeRole, "root", "root")}, 0, 0},
		"revoke and grant role": {[]*dumplog.Request{authOp(dumplog.KindAuthUserRevokeRole, "app", "app"),
			authOp(dumplog.KindAuthUserGrantRole, "app", "app")}, 2, 2},
		"add role":         {[]*dumplog.Request{authOp(dumplog.KindAuthRoleAdd, "", "new")}, 1, 0},
		"delete role":      {[]*dumplog.Request{authOp(dumplog.KindAuthRoleDelete, "", "app")}, 1, 0},
		"delete role root": {[]*dumplog.Request{authOp(dumplog.KindAuthRoleDelete, "", "root")}, 0, 0},
		"delete and remake role": {[]*dumplog.Request{authOp(dumplog.KindAuthRoleDelete, "", "app"),
			authOp(dumplog.KindAuthRoleAdd, "", "app")}, 2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := rooted(t)
			for i, want := range []uint64{c.first, c.second} {
				before := s.Revision
				for _, r := range c.ops {
					s.Apply(r)
				}
				if got := s.Revision - before; got != want {
					t.Errorf("execution %d raises it by %d, want %d", i+1, got, want)
				}
			}
		})
	}
}

func TestAdminCheck(t *testing.T) {
	s := rooted(t)
	for user, want := range map[string]Reason{"root": ReasonNone, "app": ReasonPermission, "": ReasonUserEmpty,
		"nobody": ReasonPermission} {
		r := authOp(dumplog.KindAuthRoleAdd, "", "by "+user)
		// A stale auth revision does not matter here: the admin check does not compare it.
		r.Header = dumplog.Header{Username: user, AuthRevision: 1}
		if _, reason := s.Apply(r); reason != want {
			t.Errorf("user %q: %q, want %q", user, reason, want)
		}
	}
}

func TestKeyPermission(t *testing.T) {
	s := rooted(t)
	for name, c := range map[string]struct {
		h        dumplog.Header
		key, end string
		write    bool
		want     Reason
	}{
		"no user": {dumplog.Header{}, "/app/a", "", true, ReasonUserEmpty},
		"old": {dumplog.Header{Username: "root", AuthRevision: 7}, "/app/a", "", true,
			ReasonOldAuth},
		"equal":              {dumplog.Header{Username: "app", AuthRevision: 8}, "/app/a", "", true, ReasonNone},
		"higher is accepted": {dumplog.Header{Username: "app", AuthRevision: 99}, "/app/a", "", true, ReasonNone},
		"unknown user": {dumplog.Header{Username: "none", AuthRevision: 8}, "/app/a", "", true,
			ReasonPermission},
		"other key": {dumplog.Header{Username: "app", AuthRevision: 8}, "/apq", "", true,
			ReasonPermission},
		"end of the range": {dumplog.Header{Username: "app", AuthRevision: 8}, "/app0", "", false,
			ReasonPermission},
		"whole range": {dumplog.Header{Username: "app", AuthRevision: 8}, "/app/", "/app0", false,
			ReasonNone},
		"beyond the range": {dumplog.Header{Username: "app", AuthRevision: 8}, "/app/", "/app1", false,
			ReasonPermission},
		"open end": {dumplog.Header{Username: "app", AuthRevision: 8}, "/app/", "\x00", false,
			ReasonPermission},
		"root may do all":         {dumplog.Header{Username: "root", AuthRevision: 8}, "/", "\x00", true, ReasonNone},
		"no user before old":      {dumplog.Header{Username: "root"}, "/", "", true, ReasonUserEmpty},
		"old before unknown user": {dumplog.Header{Username: "none", AuthRevision: 1}, "/", "", true, ReasonOldAuth},
	} {
		if got := s.Check(c.h, []byte(c.key), []byte(c.end), c.write); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	s.Apply(grantOp("app", "/app0", "/app2")) // two permissions that touch cover what neither does alone
	if got := s.Check(dumplog.Header{Username: "app", AuthRevision: 9}, []byte("/app/x"), []byte("/app1"),
		true); got != ReasonNone {
		t.Errorf("touching permissions: %q", got)
	}
	s.Enabled = false
	if got := s.Check(dumplog.Header{}, []byte("/"), nil, true); got != ReasonNone {
		t.Errorf("auth off: %q", got)
	}
}
