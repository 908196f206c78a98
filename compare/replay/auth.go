package replay

import (
	"slices"
	"sort"

	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// authState models the auth buckets as server/auth/store.go keeps them: users, roles, enabled and the auth revision, which
// grows by one with every successful change.
type authState struct {
	enabled  bool
	revision uint64
	users    map[string]*user
	roles    map[string][]perm
	// known is false when the state before the first log entry is not known; unknown users and roles then prove nothing.
	known bool
}

type user struct {
	roles      []string
	noPassword bool
	// password is the stored hash and options tells whether the record carries options (3.4+); only Machine keeps them up.
	password []byte
	options  bool
}

type perm struct {
	typ      int32
	key, end string
}

const rootName = "root"

func newAuthState() *authState {
	return &authState{revision: 1, users: map[string]*user{}, roles: map[string][]perm{}, known: true}
}

// authFromDB takes the state from a database, for logs that do not reach back to the first entry.
func authFromDB(a *dumpdb.Auth) *authState {
	s := newAuthState()
	s.known = false
	s.enabled, s.revision = a.Enabled, a.Revision
	for _, u := range a.Users {
		s.users[u.Name] = &user{roles: slices.Clone(u.Roles), noPassword: u.NoPassword, password: slices.Clone(u.Password), options: u.HasOptions}
	}
	for _, r := range a.Roles {
		s.roles[r.Name] = []perm{}
		for _, p := range r.Perms {
			s.roles[r.Name] = append(s.roles[r.Name], perm{p.Type, string(p.Key), string(p.RangeEnd)})
		}
	}
	return s
}

func (s *authState) clone() *authState {
	c := *s
	c.users, c.roles = make(map[string]*user, len(s.users)), make(map[string][]perm, len(s.roles))
	for n, u := range s.users {
		cp := *u
		cp.roles = slices.Clone(u.roles)
		c.users[n] = &cp
	}
	for n, r := range s.roles {
		c.roles[n] = slices.Clone(r)
	}
	return &c
}

// apply executes an auth request and tells whether it succeeded and whether it raised the auth revision.
func (s *authState) apply(r *dumplog.Request) (effective bool, reason Reason) {
	if reason := s.adminCheck(r); reason != ReasonNone {
		return false, reason
	}
	if r.Kind == dumplog.KindAuthEnable {
		return false, s.enable()
	}
	if r.Kind == dumplog.KindAuthDisable {
		if !s.enabled {
			return false, ReasonNone
		}
		s.enabled = false
		s.revision++
		return true, ReasonNone
	}
	if r.Auth == nil || !s.change(r.Kind, r.Auth) {
		return false, ReasonInvalid
	}
	s.revision++
	return true, ReasonNone
}

// adminCheck is server/etcdserver/apply_auth.go: every mutating auth call needs a root user once auth is on. It does not
// compare auth revisions.
func (s *authState) adminCheck(r *dumplog.Request) Reason {
	if !s.enabled || r.Kind == dumplog.KindAuthEnable {
		return ReasonNone
	}
	if r.Header.Username == "" {
		return ReasonUserEmpty
	}
	if !s.isRoot(r.Header.Username) && s.known {
		return ReasonPermission
	}
	return ReasonNone
}

func (s *authState) isRoot(name string) bool {
	u := s.users[name]
	return u != nil && slices.Contains(u.roles, rootName)
}

// enable needs a user root with role root; without them the call fails and nothing changes.
func (s *authState) enable() Reason {
	if !s.isRoot(rootName) && s.known {
		return ReasonInvalid
	}
	s.enabled = true
	return ReasonNone
}

// change executes one change; false means the call fails and does not raise the auth revision.
func (s *authState) change(k dumplog.Kind, a *dumplog.AuthRequest) bool {
	switch k {
	case dumplog.KindAuthUserAdd:
		return s.userAdd(a)
	case dumplog.KindAuthUserDelete:
		return s.userDelete(a.User)
	case dumplog.KindAuthUserChangePassword:
		return s.users[a.User] != nil || !s.known
	case dumplog.KindAuthUserGrantRole:
		return s.grantRole(a.User, a.Role)
	case dumplog.KindAuthUserRevokeRole:
		return s.revokeRole(a.User, a.Role)
	case dumplog.KindAuthRoleAdd:
		return s.roleAdd(a.Role)
	case dumplog.KindAuthRoleDelete:
		return s.roleDelete(a.Role)
	case dumplog.KindAuthRoleGrantPermission:
		return s.grantPermission(a)
	case dumplog.KindAuthRoleRevokePermission:
		return s.revokePermission(a)
	}
	return false
}

func (s *authState) userAdd(a *dumplog.AuthRequest) bool {
	if a.User == "" || s.users[a.User] != nil {
		return false
	}
	s.users[a.User] = &user{noPassword: a.NoPassword}
	return true
}

func (s *authState) userDelete(name string) bool {
	if s.users[name] == nil || s.enabled && name == rootName {
		return false
	}
	delete(s.users, name)
	return true
}

// grantRole raises nothing when the user has the role already.
func (s *authState) grantRole(name, role string) bool {
	u := s.users[name]
	if u == nil || role != rootName && s.roles[role] == nil || slices.Contains(u.roles, role) {
		return false
	}
	u.roles = append(u.roles, role)
	sort.Strings(u.roles)
	return true
}

func (s *authState) revokeRole(name, role string) bool {
	if s.enabled && name == rootName && role == rootName {
		return false
	}
	u := s.users[name]
	if u == nil {
		return false
	}
	i := slices.Index(u.roles, role)
	if i < 0 {
		return false
	}
	u.roles = slices.Delete(u.roles, i, i+1)
	return true
}

func (s *authState) roleAdd(role string) bool {
	if s.roles[role] != nil {
		return false
	}
	s.roles[role] = []perm{}
	return true
}

func (s *authState) roleDelete(role string) bool {
	if s.enabled && role == rootName || s.roles[role] == nil {
		return false
	}
	delete(s.roles, role)
	for _, u := range s.users {
		u.roles = slices.DeleteFunc(u.roles, func(r string) bool { return r == role })
	}
	return true
}

// grantPermission always succeeds for a known role: granting what is there already still raises the auth revision, which
// is why applying it twice shows.
func (s *authState) grantPermission(a *dumplog.AuthRequest) bool {
	perms, ok := s.roles[a.Role]
	if !ok || a.Perm == nil {
		return false
	}
	p := perm{a.Perm.Type, string(a.Perm.Key), string(a.Perm.RangeEnd)}
	// Only the first entry with the key is looked at, so one of several ranges from one key may come to stand twice.
	if i := sort.Search(len(perms), func(i int) bool { return perms[i].key >= p.key }); i < len(perms) && perms[i].key == p.key && perms[i].end == p.end {
		perms[i].typ = p.typ
		return true
	}
	perms = append(perms, p)
	sort.SliceStable(perms, func(i, j int) bool { return perms[i].key < perms[j].key })
	s.roles[a.Role] = perms
	return true
}

func (s *authState) revokePermission(a *dumplog.AuthRequest) bool {
	perms, ok := s.roles[a.Role]
	if !ok {
		return false
	}
	n := len(perms)
	s.roles[a.Role] = slices.DeleteFunc(perms, func(p perm) bool { return p.key == string(a.Key) && p.end == string(a.RangeEnd) })
	return len(s.roles[a.Role]) < n
}
