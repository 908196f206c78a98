package dumplog

import (
	"errors"

	"github.com/etcd-medic/etcd-medic/internal/wire"
)

// authField stores one field of an auth request and reports whether it knows the field.
type authField func(d *Decoder, r *AuthRequest, f *field, bad *error) bool

// The requests of the auth store, by field number of their message (api/etcdserverpb/rpc.proto, raft_internal.proto for
// InternalAuthenticateRequest). Keys are strings in 3.3 and bytes later, the same on the wire.
var (
	authFieldsAuthenticate = map[int32]authField{1: authUser, 2: authPassword, 3: authToken}
	authFieldsUserAdd      = map[int32]authField{1: authUser, 2: authPassword, 3: authOptions, 4: authHash}
	// field 3 is the hash here, 4 in AuthUserAddRequest
	authFieldsChangePassword   = map[int32]authField{1: authUser, 2: authPassword, 3: authHash}
	authFieldsUser             = map[int32]authField{1: authUser}
	authFieldsUserRole         = map[int32]authField{1: authUser, 2: authRole}
	authFieldsRole             = map[int32]authField{1: authRole}
	authFieldsGrantPermission  = map[int32]authField{1: authRole, 2: authPerm}
	authFieldsRevokePermission = map[int32]authField{1: authRole, 2: authKey, 3: authRangeEnd}
)

// authFields returns the decoder of an auth request with these fields.
func authFields(fields map[int32]authField) func(*Decoder, []byte) error {
	return func(d *Decoder, b []byte) error {
		r := new(AuthRequest)
		d.req.Auth = r
		path := string(d.req.Kind)
		var bad error
		err := d.message(path, b, func(f *field) bool {
			use := fields[f.Num]
			return use != nil && use(d, r, f, &bad)
		})
		return errors.Join(err, bad)
	}
}

func authUser(_ *Decoder, r *AuthRequest, f *field, _ *error) bool     { return str(f, &r.User) }
func authRole(_ *Decoder, r *AuthRequest, f *field, _ *error) bool     { return str(f, &r.Role) }
func authPassword(_ *Decoder, r *AuthRequest, f *field, _ *error) bool { return str(f, &r.Password) }
func authHash(_ *Decoder, r *AuthRequest, f *field, _ *error) bool     { return str(f, &r.HashedPassword) }
func authToken(_ *Decoder, r *AuthRequest, f *field, _ *error) bool    { return str(f, &r.SimpleToken) }
func authKey(_ *Decoder, r *AuthRequest, f *field, _ *error) bool      { return raw(f, &r.Key) }
func authRangeEnd(_ *Decoder, r *AuthRequest, f *field, _ *error) bool { return raw(f, &r.RangeEnd) }

// authOptions reads authpb.UserAddOptions {1 no_password}, 3.4 and later.
func authOptions(d *Decoder, r *AuthRequest, f *field, bad *error) bool {
	if f.Type != wire.Bytes {
		return false
	}
	r.HasOptions = true
	*bad = d.message(string(d.req.Kind)+".options", f.B,
		func(f *field) bool { return f.Num == 1 && flag(f, &r.NoPassword) })
	return true
}

// authPerm reads authpb.Permission {1 permType, 2 key, 3 range_end}.
func authPerm(d *Decoder, r *AuthRequest, f *field, bad *error) bool {
	if f.Type != wire.Bytes {
		return false
	}
	p := new(Permission)
	r.Perm = p
	*bad = d.message(string(d.req.Kind)+".perm", f.B, func(f *field) bool {
		switch f.Num {
		case 1:
			return num(f, &p.Type)
		case 2:
			return raw(f, &p.Key)
		case 3:
			return raw(f, &p.RangeEnd)
		}
		return false
	})
	return true
}
