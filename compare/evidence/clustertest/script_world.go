package clustertest

import (
	"bytes"
	"encoding/base64"
	"slices"
	"sort"

	"go.etcd.io/etcd/api/v3/authpb"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/lease/leasepb"
)

// world is a simple model of what a server stores, for writing databases. It is written independently of the package
// under test.
type world struct {
	of      ScriptMember
	rev     int64
	records []scriptRecord
	live    map[string]*mvccpb.KeyValue
	leases  map[int64]*leasepb.Lease
	users   map[string]*authpb.User
	roles   map[string]*authpb.Role
	auth    bool
	authRev uint64
	alarms  map[scriptAlarm]bool
	compact int64
}

type scriptAlarm struct {
	member uint64
	typ    etcdserverpb.AlarmType
}

type scriptRecord struct {
	main, sub int64
	del       bool
	kv        mvccpb.KeyValue
}

func newWorld(of ScriptMember) *world {
	return &world{of: of, rev: 1, authRev: 1, live: map[string]*mvccpb.KeyValue{}, leases: map[int64]*leasepb.Lease{},
		users: map[string]*authpb.User{}, roles: map[string]*authpb.Role{}, alarms: map[scriptAlarm]bool{}}
}

func (w *world) apply(r *etcdserverpb.InternalRaftRequest) {
	sub := int64(0)
	switch {
	case r.Put != nil:
		w.put(r.Put, &sub)
	case r.DeleteRange != nil:
		w.delete(r.DeleteRange.Key, r.DeleteRange.RangeEnd, &sub)
	case r.Txn != nil:
		w.ops(r.Txn.Success, &sub)
	case r.Compaction != nil:
		w.compaction(r.Compaction.Revision)
	case r.LeaseGrant != nil:
		w.leases[r.LeaseGrant.ID] = &leasepb.Lease{ID: r.LeaseGrant.ID, TTL: max(r.LeaseGrant.TTL, w.of.MinTTL)}
	case r.LeaseRevoke != nil:
		w.revoke(r.LeaseRevoke.ID, &sub)
	case r.LeaseCheckpoint != nil:
		for _, c := range r.LeaseCheckpoint.Checkpoints {
			if l := w.leases[c.ID]; l != nil && w.of.Persists {
				l.RemainingTTL = c.Remaining_TTL
			}
		}
	case r.Alarm != nil && (r.Alarm.Action == etcdserverpb.AlarmRequest_GET ||
		r.Alarm.Alarm == etcdserverpb.AlarmType_NONE):
	case r.Alarm != nil:
		k := scriptAlarm{r.Alarm.MemberID, r.Alarm.Alarm}
		if w.alarms[k] = true; r.Alarm.Action == etcdserverpb.AlarmRequest_DEACTIVATE {
			delete(w.alarms, k)
		}
	default:
		w.applyAuth(r)
	}
	if sub > 0 {
		w.rev++
	}
}

func (w *world) applyAuth(r *etcdserverpb.InternalRaftRequest) {
	if raisesAuth(r) {
		w.authRev++
	}
	switch {
	case r.AuthEnable != nil:
		w.auth = true
	case r.AuthDisable != nil:
		w.auth = false
	case r.AuthUserAdd != nil:
		w.users[r.AuthUserAdd.Name] = &authpb.User{Name: []byte(r.AuthUserAdd.Name), Password: hashOf(r.AuthUserAdd)}
	case r.AuthUserDelete != nil:
		delete(w.users, r.AuthUserDelete.Name)
	case r.AuthUserGrantRole != nil:
		u := w.users[r.AuthUserGrantRole.User]
		u.Roles = append(u.Roles, r.AuthUserGrantRole.Role)
		sort.Strings(u.Roles)
	case r.AuthRoleAdd != nil:
		w.roles[r.AuthRoleAdd.Name] = &authpb.Role{Name: []byte(r.AuthRoleAdd.Name)}
	case r.AuthRoleGrantPermission != nil:
		role := w.roles[r.AuthRoleGrantPermission.Name]
		// Granting the same permission again only increments the revision.
		if !slices.Contains(role.KeyPermission, r.AuthRoleGrantPermission.Perm) {
			role.KeyPermission = append(role.KeyPermission, r.AuthRoleGrantPermission.Perm)
		}
	}
}

func (w *world) ops(ops []*etcdserverpb.RequestOp, sub *int64) {
	for _, op := range ops {
		switch {
		case op.GetRequestPut() != nil:
			w.put(op.GetRequestPut(), sub)
		case op.GetRequestDeleteRange() != nil:
			w.delete(op.GetRequestDeleteRange().Key, op.GetRequestDeleteRange().RangeEnd, sub)
		case op.GetRequestTxn() != nil:
			w.ops(op.GetRequestTxn().Success, sub)
		}
	}
}

func (w *world) put(p *etcdserverpb.PutRequest, sub *int64) {
	kv := mvccpb.KeyValue{Key: p.Key, Value: p.Value, Lease: p.Lease, CreateRevision: w.rev + 1, ModRevision: w.rev + 1,
		Version: 1}
	if old := w.live[string(p.Key)]; old != nil {
		kv.CreateRevision, kv.Version = old.CreateRevision, old.Version+1
	}
	w.live[string(p.Key)] = &kv
	w.records = append(w.records, scriptRecord{main: w.rev + 1, sub: *sub, kv: kv})
	*sub++
}

func (w *world) delete(key, end []byte, sub *int64) {
	var keys []string
	for k := range w.live {
		if k == string(key) || len(end) > 0 && k >= string(key) && bytes.Compare([]byte(k), end) < 0 {
			keys = append(keys, k)
		}
	}
	w.tombstones(keys, sub)
}

func (w *world) revoke(id int64, sub *int64) {
	var keys []string
	for k, kv := range w.live {
		if kv.Lease == id {
			keys = append(keys, k)
		}
	}
	w.tombstones(keys, sub)
	delete(w.leases, id)
}

func (w *world) tombstones(keys []string, sub *int64) {
	sort.Strings(keys)
	for _, k := range keys {
		delete(w.live, k)
		w.records = append(w.records, scriptRecord{main: w.rev + 1, sub: *sub, del: true,
			kv: mvccpb.KeyValue{Key: []byte(k)}})
		*sub++
	}
}

// compaction keeps the newest record of each key up to rev. It removes tombstones, except one at rev itself if the
// member keeps it.
func (w *world) compaction(rev int64) {
	w.compact = rev
	newest := map[string]int{}
	for i, r := range w.records {
		if r.main <= rev {
			newest[string(r.kv.Key)] = i
		}
	}
	var kept []scriptRecord
	for i, r := range w.records {
		if r.main > rev || newest[string(r.kv.Key)] == i && (!r.del || r.main == rev && w.of.KeepsTombstone) {
			kept = append(kept, r)
		}
	}
	w.records = kept
}

// hashOf returns the password hash of a new user: the one in the request, or a fixed one for a plain-text password.
func hashOf(r *etcdserverpb.AuthUserAddRequest) []byte {
	if b, err := base64.StdEncoding.DecodeString(r.HashedPassword); err == nil && len(b) > 0 {
		return b
	}
	return []byte("hash")
}
