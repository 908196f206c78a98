package rebuild

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"

	"go.etcd.io/etcd/api/v3/authpb"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"golang.org/x/crypto/bcrypt"

	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// smallRows writes what requests change in the buckets besides key.
type smallRows struct{ *engine }

func (e *engine) smallRows() smallRows { return smallRows{e} }

func (e smallRows) setRow(bucket string, key, value []byte) error {
	return e.tx.Bucket([]byte(bucket)).Put(key, value)
}

func (e smallRows) dropRow(bucket string, key []byte) error {
	return e.tx.Bucket([]byte(bucket)).Delete(key)
}

// applyEntry writes the effect of an entry on the buckets except key.
func (e smallRows) applyEntry(x *replay.Entry, o replay.Outcome) error {
	r := x.Req
	switch {
	case r.ConfChange != nil:
		return e.confChange(r.ConfChange)
	case r.Publishes() != nil:
		return e.attributes(r.Publishes())
	case r.ClusterVer != nil:
		return e.setRow("cluster", []byte("clusterVersion"), []byte(r.ClusterVer.Version))
	case r.V2 != nil:
		if v, ok := r.V2.ClusterVersion(); ok {
			return e.setRow("cluster", []byte("clusterVersion"), []byte(v))
		}
	case r.Downgrade != nil:
		return e.downgrade(r.Downgrade)
	case r.LeaseCheckpoint != nil:
		return e.checkpoint(r.LeaseCheckpoint)
	}
	if o.State != replay.Applied {
		return nil
	}
	switch {
	case r.LeaseGrant != nil:
		return e.lease(r.LeaseGrant.ID, r.LeaseGrant.TTL, 0)
	case r.LeaseRevoke != nil:
		return e.dropRow("lease", leaseKey(r.LeaseRevoke.ID))
	case r.Alarm != nil:
		return e.alarm(r.Alarm)
	case r.Kind.ChangesAuth():
		return e.auth(r)
	}
	return nil
}

func leaseKey(id int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(id)) }

// minTTL is the minimum TTL in seconds of a server with default election ticks (server/lease/lessor.go).
const minTTL = 2

// lease writes leasepb.Lease {1 ID, 2 TTL, 3 RemainingTTL}.
func (e smallRows) lease(id, ttl, remaining int64) error {
	b := append([]byte{0x08}, binary.AppendUvarint(nil, uint64(id))...)
	b = binary.AppendUvarint(append(b, 0x10), uint64(max(ttl, minTTL)))
	if remaining != 0 {
		b = binary.AppendUvarint(append(b, 0x18), uint64(remaining))
	}
	return e.setRow("lease", leaseKey(id), b)
}

// checkpoint stores remaining TTLs since cluster version 3.6; older servers keep them in memory by default.
func (e smallRows) checkpoint(c *dumplog.LeaseCheckpointRequest) error {
	version := release.Of(string(e.tx.Bucket([]byte("cluster")).Get([]byte("clusterVersion"))))
	if !version.Has(release.CheckpointsByCluster).Certain() {
		return nil
	}
	for _, x := range c.Checkpoints {
		if ttl, ok := e.m.LeaseTTL(x.ID); ok {
			if err := e.lease(x.ID, ttl, x.RemainingTTL); err != nil {
				return err
			}
		}
	}
	return nil
}

// alarm writes an alarm: the key is the marshaled AlarmMember, the value is empty.
func (e smallRows) alarm(a *dumplog.AlarmRequest) error {
	k, err := (&etcdserverpb.AlarmMember{MemberID: uint64(a.MemberID),
		Alarm: etcdserverpb.AlarmType(a.Alarm)}).Marshal()
	if err != nil {
		return err
	}
	if a.Action == 1 {
		return e.setRow("alarm", k, nil)
	}
	return e.dropRow("alarm", k)
}

// downgrade writes the JSON of serverversion.DowngradeInfo.
func (e smallRows) downgrade(d *dumplog.DowngradeInfoSet) error {
	b, err := json.Marshal(struct {
		Target  string `json:"target-version"`
		Enabled bool   `json:"enabled"`
	}{d.Version, d.Enabled})
	if err != nil {
		return err
	}
	return e.setRow("cluster", []byte("downgrade"), b)
}

// auth writes the rows that an auth request changed, and the auth revision.
func (e smallRows) auth(r *dumplog.Request) error {
	on := byte(0)
	if e.m.AuthEnabled() {
		on = 1
	}
	if err := e.setRow("auth", []byte("authEnabled"), []byte{on}); err != nil {
		return err
	}
	if err := e.setRow("auth", []byte("authRevision"),
		binary.BigEndian.AppendUint64(nil, e.m.AuthRevision())); err != nil {
		return err
	}
	if r.Auth == nil {
		return nil
	}
	if r.Kind == dumplog.KindAuthUserAdd || r.Kind == dumplog.KindAuthUserChangePassword {
		if err := e.password(r); err != nil {
			return err
		}
	}
	if r.Kind == dumplog.KindAuthRoleDelete {
		return e.roleDeleted(r.Auth.Role)
	}
	if r.Auth.User != "" {
		if err := e.user(r.Auth.User); err != nil {
			return err
		}
	}
	if r.Auth.User == "" && r.Auth.Role != "" {
		return e.role(r.Auth.Role)
	}
	return nil
}

// password sets the hash as selectPassword of server/auth/store.go does: the one in the request, or up to 3.4 one of
// the plain text, with a new salt on every member.
func (e smallRows) password(r *dumplog.Request) error {
	u, _ := e.m.User(r.Auth.User)
	var hash []byte
	var err error
	switch {
	case u.NoPassword && (r.Kind == dumplog.KindAuthUserAdd ||
		e.b.version.Has(release.PasswordHashInRequest).Certain()):
	case r.Kind == dumplog.KindAuthUserAdd && !r.Auth.HasOptions &&
		e.b.version.Has(release.PasswordWithoutOptions).Excluded():
	case r.Auth.Password != "" && r.Auth.HashedPassword == "":
		hash, err = bcrypt.GenerateFromPassword([]byte(r.Auth.Password), bcrypt.DefaultCost)
		if e.look == nil {
			e.b.res.note("entry %d brings a password in plain text: it was hashed with a new salt, as every member "+
				"does", e.at.Index)
		}
	default:
		hash, err = base64.StdEncoding.DecodeString(r.Auth.HashedPassword)
	}
	if err != nil {
		return err
	}
	options := u.HasOptions
	if r.Kind == dumplog.KindAuthUserAdd {
		options = r.Auth.HasOptions || e.b.version.Has(release.UserOptions).Certain()
	}
	e.m.SetPassword(r.Auth.User, hash, options)
	return nil
}

func (e smallRows) user(name string) error {
	u, ok := e.m.User(name)
	if !ok {
		return e.dropRow("authUsers", []byte(name))
	}
	p := authpb.User{Name: []byte(name), Password: u.Password, Roles: u.Roles}
	if u.HasOptions {
		p.Options = &authpb.UserAddOptions{NoPassword: u.NoPassword}
	}
	b, err := p.Marshal()
	if err != nil {
		return err
	}
	return e.setRow("authUsers", []byte(name), b)
}

func (e smallRows) role(name string) error {
	r, ok := e.m.Role(name)
	if !ok {
		return e.dropRow("authRoles", []byte(name))
	}
	p := authpb.Role{Name: []byte(name)}
	for _, perm := range r.Perms {
		p.KeyPermission = append(p.KeyPermission, &authpb.Permission{PermType: authpb.Permission_Type(perm.Type),
			Key: perm.Key, RangeEnd: notEmpty(perm.RangeEnd)})
	}
	b, err := p.Marshal()
	if err != nil {
		return err
	}
	return e.setRow("authRoles", []byte(name), b)
}

func notEmpty(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return b
}

// roleDeleted removes the role and writes the users that lost it.
func (e smallRows) roleDeleted(role string) error {
	if err := e.role(role); err != nil {
		return err
	}
	var names []string
	err := e.tx.Bucket([]byte("authUsers")).ForEach(func(k, _ []byte) error {
		names = append(names, string(k))
		return nil
	})
	for _, n := range names {
		if err == nil {
			err = e.user(n)
		}
	}
	return err
}

// writeMeta writes the position of the database in the log.
func (e smallRows) writeMeta() error {
	if e.at == e.b.from && e.b.base != nil {
		return nil
	}
	u64 := func(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
	if err := e.setRow("meta", []byte("consistent_index"), u64(e.at.Index)); err != nil {
		return err
	}
	if e.b.version.Has(release.TermInMeta).Certain() && e.at.Index > 0 {
		if err := e.setRow("meta", []byte("term"), u64(e.at.Term)); err != nil {
			return err
		}
		if e.confChanged {
			b, err := e.members.encodeRaft()
			if err != nil {
				return err
			}
			if err := e.setRow("meta", []byte("confState"), b); err != nil {
				return err
			}
		}
	}
	if e.at.CompactRevision > e.b.from.CompactRevision {
		return e.setRow("meta", []byte("scheduledCompactRev"), dumpdb.Rev{Main: e.at.CompactRevision}.Bytes())
	}
	return nil
}
