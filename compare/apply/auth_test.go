package apply

import (
	"slices"
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
		"revoke another role from root": {[]*dumplog.Request{authOp(dumplog.KindAuthUserGrantRole, "root", "app"),
			authOp(dumplog.KindAuthUserRevokeRole, "root", "app")}, 2, 2},
		"revoke root from another user": {[]*dumplog.Request{authOp(dumplog.KindAuthUserGrantRole, "app", "root"),
			authOp(dumplog.KindAuthUserRevokeRole, "app", "root")}, 2, 2},
		"revoke from no user": {[]*dumplog.Request{authOp(dumplog.KindAuthUserRevokeRole, "none", "app")}, 0, 0},
		"auth off, revoke root from root": {[]*dumplog.Request{authOp(dumplog.KindAuthDisable, "", ""),
			authOp(dumplog.KindAuthUserRevokeRole, "root", "root")}, 2, 0},
		"auth off, delete root": {[]*dumplog.Request{authOp(dumplog.KindAuthDisable, "", ""),
			authOp(dumplog.KindAuthUserDelete, "root", "")}, 2, 0},
		"auth off, delete role root": {[]*dumplog.Request{authOp(dumplog.KindAuthDisable, "", ""),
			authOp(dumplog.KindAuthRoleDelete, "", "root")}, 2, 0},
		"delete no user":          {[]*dumplog.Request{authOp(dumplog.KindAuthUserDelete, "none", "")}, 0, 0},
		"delete no role":          {[]*dumplog.Request{authOp(dumplog.KindAuthRoleDelete, "", "none")}, 0, 0},
		"revoke from no role":     {[]*dumplog.Request{revokeOp("none", "/app/", "/app0")}, 0, 0},
		"revoke another range":    {[]*dumplog.Request{revokeOp("app", "/app/", "")}, 0, 0},
		"revoke from another key": {[]*dumplog.Request{revokeOp("app", "/", "/app0")}, 0, 0},
		"another kind of request": {[]*dumplog.Request{authOp(dumplog.KindPut, "new", "new")}, 0, 0},
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
		enable := authOp(dumplog.KindAuthEnable, "", "")
		enable.Header = r.Header
		if _, reason := s.Apply(enable); reason != ReasonNone {
			t.Errorf("enabling what is on, user %q: %q", user, reason)
		}
	}
}

// TestAuthUnknown: without a list of users, no request is refused because a user or a role of a user is missing.
func TestAuthUnknown(t *testing.T) {
	s := NewAuth(release.AnyOf(6))
	s.Known = false
	for i, r := range []*dumplog.Request{authOp(dumplog.KindAuthEnable, "", ""),
		authOp(dumplog.KindAuthUserChangePassword, "app", ""), authOp(dumplog.KindAuthUserAdd, "new", "")} {
		if _, reason := s.Apply(r); reason != ReasonNone || !s.Enabled {
			t.Errorf("request %d: %q, auth enabled: %t", i, reason, s.Enabled)
		}
	}
}

// TestAuthClone: a copy has its own users and roles.
func TestAuthClone(t *testing.T) {
	s := rooted(t)
	c := s.Clone()
	for _, r := range []*dumplog.Request{authOp(dumplog.KindAuthUserGrantRole, "app", "root"),
		grantOp("app", "/app/", "/app0"), authOp(dumplog.KindAuthUserDelete, "app", "")} {
		if _, reason := c.Apply(r); reason != ReasonNone {
			t.Errorf("%s on the copy: %s", r.Kind, reason)
		}
	}
	c.Roles["app"][0].Key = "/other/"
	if u := s.Users["app"]; u == nil || len(u.Roles) != 1 || s.Roles["app"][0].Key != "/app/" || s.Revision != 8 {
		t.Errorf("the copy shares users or roles: %+v, %+v", u, s.Roles["app"])
	}
}

// TestGrantedRanges: the permissions of a role stay in the order of their keys. etcd looks only at the first of a key,
// so that a second range from the key is stored again when it is granted again.
func TestGrantedRanges(t *testing.T) {
	s := rooted(t)
	read := grantOp("app", "/app/", "/app0")
	read.Auth.Perm.Type = PermRead
	for i, c := range []struct {
		r    *dumplog.Request
		want []Permission
	}{
		{read, []Permission{{PermRead, "/app/", "/app0"}}},
		{grantOp("app", "/a", ""), []Permission{{PermBoth, "/a", ""}, {PermRead, "/app/", "/app0"}}},
		{grantOp("app", "/a", "/b"), []Permission{{PermBoth, "/a", ""}, {PermBoth, "/a", "/b"},
			{PermRead, "/app/", "/app0"}}},
		{grantOp("app", "/a", "/b"), []Permission{{PermBoth, "/a", ""}, {PermBoth, "/a", "/b"},
			{PermBoth, "/a", "/b"}, {PermRead, "/app/", "/app0"}}},
		{revokeOp("app", "/a", "/b"), []Permission{{PermBoth, "/a", ""}, {PermRead, "/app/", "/app0"}}},
	} {
		s.Apply(c.r)
		if got := s.Roles["app"]; !slices.Equal(got, c.want) {
			t.Errorf("request %d: %v, want %v", i, got, c.want)
		}
	}
	s.Apply(authOp(dumplog.KindAuthRoleAdd, "", "ab"))
	s.Apply(authOp(dumplog.KindAuthUserGrantRole, "app", "ab"))
	if got := s.Users["app"].Roles; !slices.Equal(got, []string{"ab", "app"}) {
		t.Errorf("the roles of a user are not in order: %q", got)
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
	s.Roles["other"] = []Permission{{PermRead, "/r", ""}, {PermWrite, "/w", ""}, {PermBoth, "/x", "/z"},
		{PermBoth, "/x1", "/x2"}, {PermBoth, "/z", "\x00"}}
	s.Users["other"] = &User{Roles: []string{"other"}}
	for _, c := range []struct {
		key, end    string
		read, write Reason
	}{
		{"/r", "", ReasonNone, ReasonPermission}, {"/w", "", ReasonPermission, ReasonNone},
		{"/x0", "/y", ReasonNone, ReasonNone}, {"/x", "/z", ReasonNone, ReasonNone}, // one range lies in another
		{"/y", "\x00", ReasonNone, ReasonNone}, {"/zz", "", ReasonNone, ReasonNone},
		{"/w", "\x00", ReasonPermission, ReasonPermission},
	} {
		h := dumplog.Header{Username: "other", AuthRevision: 9}
		read, write := s.Check(h, []byte(c.key), []byte(c.end), false), s.Check(h, []byte(c.key), []byte(c.end), true)
		if read != c.read || write != c.write {
			t.Errorf("[%q, %q): read %q, write %q; want %q, %q", c.key, c.end, read, write, c.read, c.write)
		}
	}
	s.Enabled = false
	if got := s.Check(dumplog.Header{}, []byte("/"), nil, true); got != ReasonNone {
		t.Errorf("auth off: %q", got)
	}
}
