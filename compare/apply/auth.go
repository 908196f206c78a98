package apply

import (
	"slices"
	"sort"

	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// Auth models the auth buckets as in server/auth/store.go: users, roles, enabled and the auth revision, which every
// successful change increments.
type Auth struct {
	Enabled  bool
	Revision uint64
	Users    map[string]*User
	Roles    map[string][]Permission
	// Known is false if the state before the first log entry is unknown. A user or role that is missing here may then
	// exist.
	Known bool
	// Version is the server's version, as far as it is known.
	Version release.Version
}

// User is a row of bucket authUsers. Password is the stored hash. Options is true if the row has options. The rules use
// neither.
type User struct {
	Roles      []string
	NoPassword bool
	Password   []byte
	Options    bool
}

// Permission is what a role permits. Type is PermRead, PermWrite or PermBoth.
type Permission struct {
	Type     int32
	Key, End string
}

// Root is the name of the user and of the role with all permissions.
const Root = "root"

// NewAuth returns the state of a new cluster.
func NewAuth(v release.Version) *Auth {
	return &Auth{Revision: 1, Users: map[string]*User{}, Roles: map[string][]Permission{}, Known: true, Version: v}
}

// Clone returns a copy.
func (s *Auth) Clone() *Auth {
	c := *s
	c.Users, c.Roles = make(map[string]*User, len(s.Users)), make(map[string][]Permission, len(s.Roles))
	for n, u := range s.Users {
		cp := *u
		cp.Roles = slices.Clone(u.Roles)
		c.Users[n] = &cp
	}
	for n, r := range s.Roles {
		c.Roles[n] = slices.Clone(r)
	}
	return &c
}

// Apply executes an auth request. raised is true if it incremented the auth revision.
func (s *Auth) Apply(r *dumplog.Request) (raised bool, reason Reason) {
	if reason := s.AdminCheck(r); reason != ReasonNone {
		return false, reason
	}
	if r.Kind == dumplog.KindAuthEnable {
		return false, s.enable()
	}
	if r.Kind == dumplog.KindAuthDisable {
		if !s.Enabled {
			return false, ReasonNone
		}
		s.Enabled = false
		s.Revision++
		return true, ReasonNone
	}
	if r.Auth == nil || !s.change(r.Kind, r.Auth) {
		return false, ReasonInvalid
	}
	s.Revision++
	return true, ReasonNone
}

// Undecided returns the rule that decides whether the request changes auth, if the possible releases differ; otherwise
// nil. Apply then assumes that the request was executed.
func (s *Auth) Undecided(r *dumplog.Request) *release.Rule {
	if r.Auth == nil || s.AdminCheck(r) != ReasonNone {
		return nil
	}
	var rule *release.Rule
	switch {
	case r.Kind == dumplog.KindAuthRoleAdd && r.Auth.Role == "":
		rule = release.RoleNeedsName
	case r.Kind == dumplog.KindAuthRoleGrantPermission && r.Auth.Perm != nil && !validRange(r.Auth.Perm):
		rule = release.GrantChecksRange
	}
	if rule == nil || s.Version.Has(rule) != release.Unknown {
		return nil
	}
	return rule
}

// AdminCheck is server/etcdserver/apply_auth.go: with auth enabled, every mutating auth call needs a root user. It does
// not compare auth revisions.
func (s *Auth) AdminCheck(r *dumplog.Request) Reason {
	if !s.Enabled || r.Kind == dumplog.KindAuthEnable {
		return ReasonNone
	}
	if r.Header.Username == "" {
		return ReasonUserEmpty
	}
	if !s.IsRoot(r.Header.Username) && s.Known {
		return ReasonPermission
	}
	return ReasonNone
}

// IsRoot reports whether a user has role root.
func (s *Auth) IsRoot(name string) bool {
	u := s.Users[name]
	return u != nil && slices.Contains(u.Roles, Root)
}

// enable needs a user root with role root. Otherwise the call fails and changes nothing.
func (s *Auth) enable() Reason {
	if !s.IsRoot(Root) && s.Known {
		return ReasonInvalid
	}
	s.Enabled = true
	return ReasonNone
}

// change executes one change. It returns false if the call fails and does not increment the auth revision.
func (s *Auth) change(k dumplog.Kind, a *dumplog.AuthRequest) bool {
	switch k {
	case dumplog.KindAuthUserAdd:
		return s.userAdd(a)
	case dumplog.KindAuthUserDelete:
		return s.userDelete(a.User)
	case dumplog.KindAuthUserChangePassword:
		return s.Users[a.User] != nil || !s.Known
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

func (s *Auth) userAdd(a *dumplog.AuthRequest) bool {
	if a.User == "" || s.Users[a.User] != nil {
		return false
	}
	s.Users[a.User] = &User{NoPassword: a.NoPassword}
	return true
}

func (s *Auth) userDelete(name string) bool {
	if s.Users[name] == nil || s.Enabled && name == Root {
		return false
	}
	delete(s.Users, name)
	return true
}

// grantRole returns false if the user already has the role.
func (s *Auth) grantRole(name, role string) bool {
	u := s.Users[name]
	if u == nil || role != Root && s.Roles[role] == nil || slices.Contains(u.Roles, role) {
		return false
	}
	u.Roles = append(u.Roles, role)
	sort.Strings(u.Roles)
	return true
}

func (s *Auth) revokeRole(name, role string) bool {
	if s.Enabled && name == Root && role == Root {
		return false
	}
	u := s.Users[name]
	if u == nil {
		return false
	}
	i := slices.Index(u.Roles, role)
	if i < 0 {
		return false
	}
	u.Roles = slices.Delete(u.Roles, i, i+1)
	return true
}

func (s *Auth) roleAdd(role string) bool {
	if s.Roles[role] != nil || role == "" && s.Version.Has(release.RoleNeedsName).Certain() {
		return false
	}
	s.Roles[role] = []Permission{}
	return true
}

func (s *Auth) roleDelete(role string) bool {
	if s.Enabled && role == Root || s.Roles[role] == nil {
		return false
	}
	delete(s.Roles, role)
	for _, u := range s.Users {
		u.Roles = slices.DeleteFunc(u.Roles, func(r string) bool { return r == role })
	}
	return true
}

// grantPermission succeeds for every known role. Granting an existing permission still increments the auth revision, so
// applying it twice is visible.
func (s *Auth) grantPermission(a *dumplog.AuthRequest) bool {
	perms, ok := s.Roles[a.Role]
	if !ok || a.Perm == nil || !validRange(a.Perm) && s.Version.Has(release.GrantChecksRange).Certain() {
		return false
	}
	p := Permission{a.Perm.Type, string(a.Perm.Key), string(a.Perm.RangeEnd)}
	// etcd checks only the first entry with the key, so one of several ranges from a key may be stored twice.
	if i := sort.Search(len(perms), func(i int) bool { return perms[i].Key >= p.Key }); i < len(perms) &&
		perms[i].Key == p.Key && perms[i].End == p.End {
		perms[i].Type = p.Type
		return true
	}
	perms = append(perms, p)
	sort.SliceStable(perms, func(i, j int) bool { return perms[i].Key < perms[j].Key })
	s.Roles[a.Role] = perms
	return true
}

// validRange is isValidPermissionRange of server/auth/range_perm_cache.go: a key, with an empty range end or a range
// that is not empty.
func validRange(p *dumplog.Permission) bool {
	k, end := string(p.Key), string(p.RangeEnd)
	return k != "" && (end == "" || end == "\x00" || k < end)
}

func (s *Auth) revokePermission(a *dumplog.AuthRequest) bool {
	perms, ok := s.Roles[a.Role]
	if !ok {
		return false
	}
	n := len(perms)
	s.Roles[a.Role] = slices.DeleteFunc(perms,
		func(p Permission) bool { return p.Key == string(a.Key) && p.End == string(a.RangeEnd) })
	return len(s.Roles[a.Role]) < n
}
