package soak

import (
	"encoding/binary"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/authpb"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/lease/leasepb"

	"github.com/etcd-medic/etcd-medic/release"
)

// stateFaults alter users, roles, leases and alarms.
var stateFaults = []Fault{
	{Name: "auth-enabled", Apply: alterRow("auth", "authEnabled", func(v string) string {
		if v == "\x01" {
			return "\x00"
		}
		return "\x01"
	})},
	{Name: "auth-revision-raised", Apply: alterRow("auth", "authRevision",
		func(v string) string { return be64(int64(binary.BigEndian.Uint64([]byte(v))) + 5) })},
	{Name: "auth-revision-lowered", Apply: alterRow("auth", "authRevision",
		func(v string) string { return be64(max(1, int64(binary.BigEndian.Uint64([]byte(v)))-2)) })},
	{Name: "auth-password", Needs: release.PasswordHashInRequest, Apply: alterAny("authUsers", func(v string) string {
		return editProto(v, &authpb.User{}, func(u *authpb.User) {
			if n := len(u.Password); n > 0 {
				u.Password[n-1] ^= 1
			}
		})
	})},
	{Name: "auth-user-role", Apply: alterAny("authUsers", func(v string) string {
		return editProto(v, &authpb.User{}, func(u *authpb.User) {
			if len(u.Roles) > 0 {
				u.Roles = u.Roles[1:]
			} else {
				u.Roles = []string{"root"}
			}
		})
	})},
	{Name: "auth-user-dropped", Apply: dropAny("authUsers")},
	// No release writes a user without a password that has no option saying so.
	{Name: "auth-user-added", Apply: alone(addRow("authUsers", "intruder", func(string) string {
		return editProto("", &authpb.User{}, func(u *authpb.User) { u.Name = []byte("intruder") })
	}))},
	{Name: "auth-role-dropped", Apply: dropAny("authRoles")},
	{Name: "auth-permission", Apply: alterAny("authRoles", func(v string) string {
		return editProto(v, &authpb.Role{}, func(r *authpb.Role) {
			if len(r.KeyPermission) > 0 {
				r.KeyPermission[0].Key = []byte("/")
			} else {
				r.KeyPermission = []*authpb.Permission{{Key: []byte("/"), RangeEnd: []byte("0"),
					PermType: authpb.READWRITE}}
			}
		})
	})},
	{Name: "lease-ttl", Apply: alterAny("lease",
		func(v string) string { return editProto(v, &leasepb.Lease{}, func(l *leasepb.Lease) { l.TTL -= 5 }) })},
	{Name: "lease-ttl-higher", Apply: alterAny("lease",
		func(v string) string { return editProto(v, &leasepb.Lease{}, func(l *leasepb.Lease) { l.TTL += 100 }) })},
	{Name: "lease-dropped", Apply: dropAny("lease")},
	{Name: "lease-added", Apply: addRow("lease", be64(0x7654321), func(string) string {
		return editProto("", &leasepb.Lease{}, func(l *leasepb.Lease) { l.ID, l.TTL = 0x7654321, 600 })
	})},
	{Name: "alarm-nospace", Apply: addAlarm(etcdserverpb.AlarmType_NOSPACE)},
	{Name: "alarm-corrupt", Apply: addAlarm(etcdserverpb.AlarmType_CORRUPT)},
}

type proto interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// editProto decodes a row, edits it and encodes it again; "" when it cannot be decoded.
func editProto[M proto](v string, m M, edit func(M)) string {
	if m.Unmarshal([]byte(v)) != nil {
		return ""
	}
	edit(m)
	b, err := m.Marshal()
	if err != nil {
		return ""
	}
	return string(b)
}

// rowEffect is the effect of an edit of one row of a small bucket: a log that reaches back to the first entry shows it,
// and every member that holds the row as it was and has applied as much.
func rowEffect(f *Victim, what string, r row, classes []string) *Effect {
	index, last := number(f.Dir, "consistent_index"), int64(0)
	if ks, err := readKeyspace(f.Dir); err == nil {
		last = ks.last
	}
	return &Effect{What: fmt.Sprintf("bucket %s, row %q: %s", r.bucket, r.key, what), Classes: classes,
		Alone: f.fromStart() && release.Of(f.Line).Has(release.IndexWithEveryEntry).Certain(),
		Witness: func(dir string) bool {
			was := r.value != "" && r.holds(dir) || r.value == "" && !hasRow(dir, r.bucket, r.key)
			return was && number(dir, "consistent_index") >= index && reaches(dir, last)
		}}
}

func hasRow(dir, bucket, key string) bool {
	all, err := rows(dir, bucket)
	if err != nil {
		return false
	}
	for _, r := range all {
		if r.key == key {
			return true
		}
	}
	return false
}

func classesOf(bucket string) []string {
	if strings.HasPrefix(bucket, "members") || bucket == "cluster" {
		return memberClasses
	}
	return stateClasses
}

// alterRow changes one row by its key.
func alterRow(bucket, key string, alter func(string) string) func(*Victim) (*Effect, error) {
	return func(f *Victim) (*Effect, error) {
		return alterFitting(f, bucket, func(r row) bool { return r.key == key }, alter)
	}
}

// alterAny changes one row of a bucket.
func alterAny(bucket string, alter func(string) string) func(*Victim) (*Effect, error) {
	return func(f *Victim) (*Effect, error) {
		return alterFitting(f, bucket, func(row) bool { return true }, alter)
	}
}

func alterFitting(f *Victim, bucket string, fits func(row) bool, alter func(string) string) (*Effect, error) {
	all, err := rows(f.Dir, bucket)
	if err != nil {
		return nil, err
	}
	var list []row
	for _, r := range all {
		if !fits(r) {
			continue
		}
		if other := alter(r.value); other != "" && other != r.value {
			list = append(list, r)
		}
	}
	if len(list) == 0 {
		return nil, errNotHere
	}
	r := list[f.Rng.IntN(len(list))]
	return rowEffect(f, "altered", r, classesOf(bucket)), editDB(f.Dir, r.put(alter(r.value)))
}

// anyRow draws a row of a bucket, errNotHere if it has none.
func anyRow(f *Victim, bucket string) (row, error) {
	all, err := rows(f.Dir, bucket)
	if err != nil {
		return row{}, err
	}
	if len(all) == 0 {
		return row{}, errNotHere
	}
	return all[f.Rng.IntN(len(all))], nil
}

func dropAny(bucket string) func(*Victim) (*Effect, error) {
	return func(f *Victim) (*Effect, error) {
		r, err := anyRow(f, bucket)
		if err != nil {
			return nil, err
		}
		return rowEffect(f, "dropped", r, classesOf(bucket)), editDB(f.Dir, r.drop())
	}
}

// addRow adds a row; value gets the value of some other row of the bucket, "" without one.
func addRow(bucket, key string, value func(string) string) func(*Victim) (*Effect, error) {
	return func(f *Victim) (*Effect, error) {
		all, err := rows(f.Dir, bucket)
		if err != nil {
			return nil, err
		}
		like := ""
		if len(all) > 0 {
			like = all[0].value
		}
		v := value(like)
		if v == "" {
			return nil, errNotHere
		}
		r := row{bucket, key, ""}
		return rowEffect(f, "added", r, classesOf(bucket)), editDB(f.Dir, r.put(v))
	}
}

// alone is a fault that the altered data dir shows by itself.
func alone(apply func(*Victim) (*Effect, error)) func(*Victim) (*Effect, error) {
	return func(f *Victim) (*Effect, error) {
		effect, err := apply(f)
		if err == nil {
			effect.Alone = true
		}
		return effect, err
	}
}

// likeAZombie is a fault that looks like what servers do that remove zombies: there only other members show it.
func likeAZombie(apply func(*Victim) (*Effect, error)) func(*Victim) (*Effect, error) {
	return func(f *Victim) (*Effect, error) {
		effect, err := apply(f)
		if err == nil && (f.Led || !release.Of(f.Line).Has(release.ZombiesRemoved).Excluded()) {
			effect.Alone = false
		}
		return effect, err
	}
}

// addAlarm raises an alarm of the member itself on its own database only.
func addAlarm(kind etcdserverpb.AlarmType) func(*Victim) (*Effect, error) {
	return func(f *Victim) (*Effect, error) {
		id := nodeID(f.Dir)
		b, err := (&etcdserverpb.AlarmMember{MemberID: id, Alarm: kind}).Marshal()
		if err != nil || id == 0 {
			return nil, errNotHere
		}
		r := row{"alarm", string(b), ""}
		if hasRow(f.Dir, r.bucket, r.key) {
			return nil, errNotHere
		}
		effect := rowEffect(f, "added", r, append([]string{"alarm"}, stateClasses...))
		return effect, editDB(f.Dir, r.put(""))
	}
}
