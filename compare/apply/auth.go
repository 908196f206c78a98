package apply

import (
	"maps"
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
	// Strict is true if the server refuses what only some of its possible releases refuse.
	Strict bool
	// Mixed are the roles of which it is unknown which of several permissions from one key a grant has changed.
	Mixed map[string]bool
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
	c.Mixed = maps.Clone(s.Mixed)
	return &c
}

// refuses reports whether the server refuses what a rule is about, as far as that is known.
func (s *Auth) refuses(rule *release.Rule) bool {
	has := s.Version.Has(rule)
	return has.Certain() || s.Strict && has.Possible()
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
	refused := tooLong(r) && (s.Strict || s.refuses(release.PasswordLengthBound))
	if r.Auth == nil || refused || !s.change(r.Kind, r.Auth) {
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
	rule := disputed(r)
	if rule == nil || s.Version.Has(rule) != release.Unknown {
		return nil
	}
	return rule
}

// Disputed reports whether servers may disagree on the request: their possible releases do, or what they are built
// with.
func (s *Auth) Disputed(r *dumplog.Request) bool {
	rule := disputed(r)
	return rule == release.PasswordLengthBound || rule != nil && s.Version.Has(rule) == release.Unknown
}

// disputed returns the rule by which some releases refuse the request, nil if none does.
func disputed(r *dumplog.Request) *release.Rule {
	switch {
	case r.Auth == nil:
	case r.Kind == dumplog.KindAuthRoleAdd && r.Auth.Role == "":
		return release.RoleNeedsName
	case r.Kind == dumplog.KindAuthRoleGrantPermission && r.Auth.Perm != nil && !permissionOf(r.Auth.Perm).valid():
		return release.GrantChecksRange
	case tooLong(r):
		return release.PasswordLengthBound
	}
	return nil
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

// maxPassword is the longest password in bytes that bcrypt takes.
const maxPassword = 72

// tooLong reports whether a server that hashes the password of the request cannot, or only hashes its start.
func tooLong(r *dumplog.Request) bool {
	switch r.Kind {
	case dumplog.KindAuthUserAdd, dumplog.KindAuthUserChangePassword:
		return r.Auth != nil && len(r.Auth.Password) > maxPassword && r.Auth.HashedPassword == "" && !r.Auth.NoPassword
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
	if s.Roles[role] != nil || role == "" && s.refuses(release.RoleNeedsName) {
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
	delete(s.Mixed, role)
	for _, u := range s.Users {
		u.Roles = slices.DeleteFunc(u.Roles, func(r string) bool { return r == role })
	}
	return true
}

// grantPermission succeeds for every known role. Granting an existing permission still increments the auth revision, so
// applying it twice is visible.
func (s *Auth) grantPermission(a *dumplog.AuthRequest) bool {
	perms, ok := s.Roles[a.Role]
	if !ok || a.Perm == nil || !permissionOf(a.Perm).valid() && s.refuses(release.GrantChecksRange) {
		return false
	}
	p := permissionOf(a.Perm)
	s.mix(a.Role, p)
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

// maxOrdered is the number of permissions up to which every release of Go keeps the order of those from one key when
// etcd sorts them.
const maxOrdered = 6

// mix notes whether it is unknown what the grant of a permission changes: it is one of several from its key, and only
// the first of them is looked at.
func (s *Auth) mix(role string, p Permission) {
	stored, other := false, false
	for _, have := range s.Roles[role] {
		stored = stored || have.Key == p.Key && have.End == p.End
		other = other || have.Key == p.Key && have.End != p.End
	}
	if !stored || !other || len(s.Roles[role]) <= maxOrdered {
		return
	}
	if s.Mixed == nil {
		s.Mixed = map[string]bool{}
	}
	s.Mixed[role] = true
}

// Unclear reports whether it is unknown what a user may do who is not root: a role is in Mixed, or has a range that
// ends before it begins, which confuses the search of etcd (pkg/adt) for others.
func (s *Auth) Unclear(name string) bool {
	u := s.Users[name]
	if u == nil || slices.Contains(u.Roles, Root) {
		return false
	}
	return slices.ContainsFunc(u.Roles, func(r string) bool {
		return s.Mixed[r] || slices.ContainsFunc(s.Roles[r], func(p Permission) bool { return !p.valid() })
	})
}

// valid is isValidPermissionRange of server/auth/range_perm_cache.go: a key, with an empty range end or a range that is
// not empty.
func (p Permission) valid() bool {
	return p.Key != "" && (p.End == "" || p.End == "\x00" || p.Key < p.End)
}

func permissionOf(p *dumplog.Permission) Permission {
	return Permission{p.Type, string(p.Key), string(p.RangeEnd)}
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
