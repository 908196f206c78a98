package watch

import (
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// authIn reads what decides about rights of a database. Passwords are left out: members before 3.5 salt them each in
// its own way.
func authIn(db *dumpdb.DB) (Auth, error) {
	a, err := db.Auth()
	if err != nil {
		return Auth{}, err
	}
	var rows []string
	for _, u := range a.Users {
		roles := slices.Clone(u.Roles)
		slices.Sort(roles)
		rows = append(rows, fmt.Sprintf("user %q %q", u.Name, roles))
	}
	for _, r := range a.Roles {
		var perms []string
		for _, p := range r.Perms {
			perms = append(perms, fmt.Sprintf("%d %q %q", p.Type, p.Key, p.RangeEnd))
		}
		slices.Sort(perms)
		rows = append(rows, fmt.Sprintf("role %q %q", r.Name, perms))
	}
	return Auth{Enabled: a.Enabled, Revision: a.Revision, Digest: digest(rows)}, nil
}
