package watch

import (
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// authIn reads the users, roles and auth revision of a database. It leaves out passwords, since each member before 3.5
// adds its own salt.
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
