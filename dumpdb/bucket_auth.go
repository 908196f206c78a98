package dumpdb

import "fmt"

// Auth reads the buckets auth, authUsers and authRoles. With an error it also returns what it could read, as do all
// readers below.
func (db *DB) Auth() (Auth, error) {
	var a Auth
	state := db.eachRow("auth", a.set)
	users := db.eachRow("authUsers", func(row Row) error {
		u, err := decodeUser(row)
		if err == nil {
			a.Users = append(a.Users, u)
		}
		return err
	})
	roles := db.eachRow("authRoles", func(row Row) error {
		r, err := decodeRole(row)
		if err == nil {
			a.Roles = append(a.Roles, r)
		}
		return err
	})
	return a, joinErrs(state, users, roles)
}

func (a *Auth) set(row Row) (err error) {
	switch string(row.Key) {
	case "authEnabled":
		if len(row.Value) != 1 || row.Value[0] > 1 {
			return fmt.Errorf("authEnabled is %x, not 00 or 01", row.Value)
		}
		a.Enabled = row.Value[0] == 1
	case "authRevision":
		if a.Revision, err = bigEndian(row.Value); err == nil {
			a.HasRevision = true
		}
	default:
		a.Unknown = append(a.Unknown, row.clone())
	}
	return err
}

var (
	userWires    = []int8{skipField, 2, 2, 2, 2}
	optionsWires = []int8{skipField, 0}
	roleWires    = []int8{skipField, 2, 2}
	permWires    = []int8{skipField, 0, 2, 2}
)

// decodeUser decodes authpb.User (api/authpb/auth.proto; options since 3.4).
func decodeUser(row Row) (User, error) {
	u := User{Place: row.Place, Unknown: unknownField(row.Value, userWires)}
	err := eachField(row.Value, userWires, func(f *field) error {
		switch f.Num {
		case 1:
			u.Name = string(f.B)
		case 2:
			u.Password = append([]byte(nil), f.B...)
		case 3:
			u.Roles = append(u.Roles, string(f.B))
		case 4:
			u.HasOptions = true
			return eachField(f.B, optionsWires, func(f *field) error { u.NoPassword = f.V != 0; return nil })
		}
		return nil
	})
	if err == nil && u.Name != string(row.Key) {
		err = fmt.Errorf("the row's value is the user %q", u.Name)
	}
	return u, err
}

// decodeRole decodes authpb.Role.
func decodeRole(row Row) (Role, error) {
	r := Role{Place: row.Place, Unknown: unknownField(row.Value, roleWires)}
	err := eachField(row.Value, roleWires, func(f *field) error {
		if f.Num == 1 {
			r.Name = string(f.B)
			return nil
		}
		var p Permission
		err := eachField(f.B, permWires, func(f *field) error { p.set(f); return nil })
		r.Perms = append(r.Perms, p)
		return err
	})
	if err == nil && r.Name != string(row.Key) {
		err = fmt.Errorf("the row's value is the role %q", r.Name)
	}
	return r, err
}

func (p *Permission) set(f *field) {
	switch f.Num {
	case 1:
		p.Type = int32(f.V)
	case 2:
		p.Key = append([]byte(nil), f.B...)
	case 3:
		p.RangeEnd = append([]byte(nil), f.B...)
	}
}
