package htmlreport

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/timeline"
)

// authView is users against roles, and what differs between members.
type authView struct {
	Note string
	// Enabled says whether auth is enabled.
	Enabled authCell
	// Passwords is true if a password differs between members.
	Passwords bool
	Roles     []string
	Users     []userRow
	Perms     []permRow
}

type userRow struct {
	Name string
	// There lists the members on which the user exists, if not all.
	There, Password authCell
	Cells           []authCell
}

type authCell struct {
	Text string
	Off  bool
}

type permRow struct {
	Name  string
	Lines []string
	Off   bool
}

// maxUsers bounds the table of users, maxRoles its columns.
const (
	maxUsers = 500
	maxRoles = 30
)

// auth compares users and roles of all members that have them.
func (v *view) auth(r *compare.Report) {
	var members []*evidence.Facts
	users, roles := map[string]bool{}, map[string]bool{}
	for i := range r.Members {
		m := &r.Members[i]
		if m.Auth == nil {
			continue
		}
		members = append(members, m)
		for u := range m.Auth.Users {
			users[u] = true
		}
		for x := range m.Auth.Roles {
			roles[x] = true
		}
	}
	if len(users)+len(roles) == 0 {
		return
	}
	a := &authView{Note: "Marked cells differ between members.", Enabled: enabled(members)}
	passwords := v.passwords()
	a.Passwords = len(passwords) > 0
	names := slices.Sorted(maps.Keys(roles))
	if len(names) > maxRoles {
		a.Note += fmt.Sprintf(" %d more roles are left out.", len(names)-maxRoles)
		names = names[:maxRoles]
	}
	for _, x := range names {
		a.Roles = append(a.Roles, text(x))
		a.Perms = append(a.Perms, permissions(members, x))
	}
	list := slices.Sorted(maps.Keys(users))
	if len(list) > maxUsers {
		a.Note += fmt.Sprintf(" %d more users are left out.", len(list)-maxUsers)
		list = list[:maxUsers]
	}
	for _, u := range list {
		row := userRow{Name: text(u), There: there(members, u), Password: authCell{Text: "equal"}}
		if groups := passwords[timeline.EscapeKey([]byte(u))]; groups != "" {
			row.Password = authCell{Text: text(groups), Off: true}
		}
		for _, x := range names {
			row.Cells = append(row.Cells, granted(members, u, x))
		}
		a.Users = append(a.Users, row)
	}
	v.Auth = a
}

// enabled says on which members auth is enabled.
func enabled(members []*evidence.Facts) authCell {
	var on, off []string
	for _, m := range members {
		if m.Auth.Enabled {
			on = append(on, m.Name)
		} else {
			off = append(off, m.Name)
		}
	}
	switch {
	case len(off) == 0:
		return authCell{Text: "Auth is enabled."}
	case len(on) == 0:
		return authCell{Text: "Auth is disabled."}
	}
	return authCell{Off: true, Text: text(fmt.Sprintf("Auth is enabled on %s and disabled on %s.",
		strings.Join(on, ", "), strings.Join(off, ", ")))}
}

// there lists the members with a user that others lack.
func there(members []*evidence.Facts, user string) authCell {
	var names []string
	for _, m := range members {
		if _, ok := m.Auth.Users[user]; ok {
			names = append(names, m.Name)
		}
	}
	if len(names) == len(members) {
		return authCell{}
	}
	return authCell{Text: text("only on " + strings.Join(names, ", ")), Off: true}
}

// passwords says, for each user with different passwords, which members have the same one.
func (v *view) passwords() map[string]string {
	out := map[string]string{}
	for i := range v.d.Differences {
		b := &v.d.Differences[i]
		if b.Bucket != "authUsers" {
			continue
		}
		key := ""
		for n := range b.Rest {
			key = key[:b.Shared[n]] + b.Rest[n]
			user, ok := strings.CutSuffix(key, " (password)")
			if !ok {
				continue
			}
			var order []string
			by := map[string][]string{}
			for k := range b.Cells {
				have := b.Cells[k].Text[n]
				if by[have] == nil {
					order = append(order, have)
				}
				by[have] = append(by[have], b.Members[k])
			}
			var groups []string
			for _, have := range order {
				groups = append(groups, strings.Join(by[have], ", "))
			}
			out[user] = strings.Join(groups, " | ")
		}
	}
	return out
}

// granted says on which members a user has a role.
func granted(members []*evidence.Facts, user, role string) authCell {
	var on, not []string
	for _, m := range members {
		if slices.Contains(m.Auth.Users[user], role) {
			on = append(on, m.Name)
		} else {
			not = append(not, m.Name)
		}
	}
	switch {
	case len(on) == 0:
		return authCell{}
	case len(not) == 0:
		return authCell{Text: "✓"}
	}
	return authCell{Text: text("only on " + strings.Join(on, ", ")), Off: true}
}

func permissions(members []*evidence.Facts, role string) permRow {
	row := permRow{Name: text(role)}
	by := map[string][]string{}
	var order []string
	for _, m := range members {
		perms, ok := m.Auth.Roles[role]
		s := strings.Join(perms, "\n")
		if !ok {
			s = "the role does not exist"
		}
		if by[s] == nil {
			order = append(order, s)
		}
		by[s] = append(by[s], m.Name)
	}
	row.Off = len(order) > 1
	for _, s := range order {
		if row.Off {
			row.Lines = append(row.Lines, text(strings.Join(by[s], ", ")+":"))
		}
		for _, l := range strings.Split(s, "\n") {
			if l != "" {
				row.Lines = append(row.Lines, text(l))
			}
		}
	}
	return row
}
