package replay

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// AuthRevision is the auth revision of the state.
func (m *Machine) AuthRevision() uint64 { return m.s.auth.revision }

// AuthEnabled tells whether auth is on.
func (m *Machine) AuthEnabled() bool { return m.s.auth.enabled }

// User returns a user as bucket authUsers holds it; ok is false when there is none.
func (m *Machine) User(name string) (u dumpdb.User, ok bool) {
	have := m.s.auth.users[name]
	if have == nil {
		return u, false
	}
	return dumpdb.User{Name: name, Password: have.password, Roles: slices.Clone(have.roles), HasOptions: have.options || have.noPassword, NoPassword: have.noPassword}, true
}

// UsersWith lists the users that have a role.
func (m *Machine) UsersWith(role string) (names []string) {
	for _, n := range sortedKeys(m.s.auth.users) {
		if slices.Contains(m.s.auth.users[n].roles, role) {
			names = append(names, n)
		}
	}
	return names
}

// SetPassword stores the hash of a user's password, which the rules have no use for; options tells whether the record of a user added
// now carries options, as it does from 3.5 on.
func (m *Machine) SetPassword(name string, hash []byte, options bool) {
	if u := m.s.auth.users[name]; u != nil {
		u.password, u.options = hash, options
	}
}

// Role returns a role as bucket authRoles holds it; ok is false when there is none.
func (m *Machine) Role(name string) (r dumpdb.Role, ok bool) {
	perms, ok := m.s.auth.roles[name]
	if !ok {
		return r, false
	}
	r.Name = name
	for _, p := range perms {
		r.Perms = append(r.Perms, dumpdb.Permission{Type: p.typ, Key: []byte(p.key), RangeEnd: []byte(p.end)})
	}
	return r, true
}

// LeaseTTL returns the granted TTL of a lease in seconds; ok is false when there is no such lease.
func (m *Machine) LeaseTTL(id int64) (ttl int64, ok bool) {
	l := m.s.leases[id]
	if l == nil {
		return 0, false
	}
	return l.ttl, true
}
