package replay

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/release"
)

// AuthRevision is the auth revision of the state.
func (m *Machine) AuthRevision() uint64 { return m.s.Auth.Revision }

// AuthEnabled reports whether auth is on.
func (m *Machine) AuthEnabled() bool { return m.s.Auth.Enabled }

// ChecksPermissions is false where an alarm that was raised at run time may have taken the checks of permission away.
func (m *Machine) ChecksPermissions() bool { return m.s.ChecksPermissions() }

// User returns a user as bucket authUsers holds it; ok is false when there is none.
func (m *Machine) User(name string) (u dumpdb.User, ok bool) {
	have := m.s.Auth.Users[name]
	if have == nil {
		return u, false
	}
	return dumpdb.User{Name: name, Password: have.Password, Roles: slices.Clone(have.Roles), HasOptions: have.Options ||
		have.NoPassword, NoPassword: have.NoPassword}, true
}

// SetPassword stores the hash of a user's password, which the rules do not use; options reports whether the record of a
// user added now carries options, as it does from 3.5 on.
func (m *Machine) SetPassword(name string, hash []byte, options bool) {
	if u := m.s.Auth.Users[name]; u != nil {
		u.Password, u.Options = hash, options
	}
}

// Role returns a role as bucket authRoles holds it; ok is false when there is none.
func (m *Machine) Role(name string) (r dumpdb.Role, ok bool) {
	perms, ok := m.s.Auth.Roles[name]
	if !ok {
		return r, false
	}
	r.Name = name
	for _, p := range perms {
		r.Perms = append(r.Perms, dumpdb.Permission{Type: p.Type, Key: []byte(p.Key), RangeEnd: []byte(p.End)})
	}
	return r, true
}

// LeaseTTL returns the granted TTL of a lease in seconds; ok is false when there is no such lease.
func (m *Machine) LeaseTTL(id int64) (ttl int64, ok bool) {
	l := m.s.Leases[id]
	if l == nil {
		return 0, false
	}
	return l.TTL, true
}

// authFromDB takes the state from a database, for logs that do not reach back to the first entry.
func authFromDB(a *dumpdb.Auth, v release.Version) *apply.Auth {
	s := apply.NewAuth(v)
	s.Known = false
	s.Enabled, s.Revision = a.Enabled, a.Revision
	for _, u := range a.Users {
		s.Users[u.Name] = &apply.User{Roles: slices.Clone(u.Roles), NoPassword: u.NoPassword,
			Password: slices.Clone(u.Password), Options: u.HasOptions}
	}
	for _, r := range a.Roles {
		s.Roles[r.Name] = []apply.Permission{}
		for _, p := range r.Perms {
			s.Roles[r.Name] = append(s.Roles[r.Name],
				apply.Permission{Type: p.Type, Key: string(p.Key), End: string(p.RangeEnd)})
		}
	}
	return s
}
