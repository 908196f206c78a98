package dumplog_test

import (
	"go.etcd.io/etcd/api/v3/authpb"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/membershippb"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// toAPI writes a decoded request into etcd's own type, so that both can be compared as bytes.
func toAPI(r *dumplog.Request) *pb.InternalRaftRequest {
	q := &pb.InternalRaftRequest{}
	if h := r.Header; h != (dumplog.Header{}) {
		q.Header = &pb.RequestHeader{ID: uint64(h.ID), Username: h.Username, AuthRevision: h.AuthRevision}
	}
	switch {
	case r.Put != nil:
		q.Put = apiPut(r.Put)
	case r.Range != nil:
		q.Range = apiRange(r.Range)
	case r.DeleteRange != nil:
		q.DeleteRange = apiDelete(r.DeleteRange)
	case r.Txn != nil:
		q.Txn = apiTxn(r.Txn)
	case r.Compaction != nil:
		q.Compaction = &pb.CompactionRequest{Revision: r.Compaction.Revision, Physical: r.Compaction.Physical}
	case r.LeaseGrant != nil:
		q.LeaseGrant = &pb.LeaseGrantRequest{TTL: r.LeaseGrant.TTL, ID: r.LeaseGrant.ID}
	case r.LeaseRevoke != nil:
		q.LeaseRevoke = &pb.LeaseRevokeRequest{ID: r.LeaseRevoke.ID}
	case r.LeaseCheckpoint != nil:
		q.LeaseCheckpoint = &pb.LeaseCheckpointRequest{}
		for _, c := range r.LeaseCheckpoint.Checkpoints {
			q.LeaseCheckpoint.Checkpoints = append(q.LeaseCheckpoint.Checkpoints,
				&pb.LeaseCheckpoint{ID: c.ID, Remaining_TTL: c.RemainingTTL})
		}
	case r.Alarm != nil:
		q.Alarm = &pb.AlarmRequest{Action: pb.AlarmRequest_AlarmAction(r.Alarm.Action),
			MemberID: uint64(r.Alarm.MemberID), Alarm: pb.AlarmType(r.Alarm.Alarm)}
	case r.ClusterVer != nil:
		q.ClusterVersionSet = &membershippb.ClusterVersionSetRequest{Ver: r.ClusterVer.Version}
	case r.MemberAttr != nil:
		q.ClusterMemberAttrSet = &membershippb.ClusterMemberAttrSetRequest{
			Member_ID:        uint64(r.MemberAttr.MemberID),
			MemberAttributes: &membershippb.Attributes{Name: r.MemberAttr.Name, ClientUrls: r.MemberAttr.ClientURLs},
		}
	case r.Downgrade != nil:
		q.DowngradeInfoSet = &membershippb.DowngradeInfoSetRequest{Enabled: r.Downgrade.Enabled,
			Ver: r.Downgrade.Version}
	case r.DowngradeTest != nil:
		q.DowngradeVersionTest = &pb.DowngradeVersionTestRequest{Ver: r.DowngradeTest.Version}
	case r.Auth != nil:
		apiAuth(q, r.Kind, r.Auth)
	}
	return q
}

func apiAuth(q *pb.InternalRaftRequest, k dumplog.Kind, a *dumplog.AuthRequest) {
	var opt *authpb.UserAddOptions
	if a.HasOptions {
		opt = &authpb.UserAddOptions{NoPassword: a.NoPassword}
	}
	var perm *authpb.Permission
	if a.Perm != nil {
		perm = &authpb.Permission{PermType: authpb.Permission_Type(a.Perm.Type), Key: a.Perm.Key,
			RangeEnd: a.Perm.RangeEnd}
	}
	switch k {
	case dumplog.KindAuthEnable:
		q.AuthEnable = &pb.AuthEnableRequest{}
	case dumplog.KindAuthDisable:
		q.AuthDisable = &pb.AuthDisableRequest{}
	case dumplog.KindAuthStatus:
		q.AuthStatus = &pb.AuthStatusRequest{}
	case dumplog.KindAuthenticate:
		q.Authenticate = &pb.InternalAuthenticateRequest{Name: a.User, Password: a.Password, SimpleToken: a.SimpleToken}
	case dumplog.KindAuthUserAdd:
		q.AuthUserAdd = &pb.AuthUserAddRequest{Name: a.User, Password: a.Password, Options: opt,
			HashedPassword: a.HashedPassword}
	case dumplog.KindAuthUserDelete:
		q.AuthUserDelete = &pb.AuthUserDeleteRequest{Name: a.User}
	case dumplog.KindAuthUserGet:
		q.AuthUserGet = &pb.AuthUserGetRequest{Name: a.User}
	case dumplog.KindAuthUserChangePassword:
		q.AuthUserChangePassword = &pb.AuthUserChangePasswordRequest{Name: a.User, Password: a.Password,
			HashedPassword: a.HashedPassword}
	case dumplog.KindAuthUserGrantRole:
		q.AuthUserGrantRole = &pb.AuthUserGrantRoleRequest{User: a.User, Role: a.Role}
	case dumplog.KindAuthUserRevokeRole:
		q.AuthUserRevokeRole = &pb.AuthUserRevokeRoleRequest{Name: a.User, Role: a.Role}
	case dumplog.KindAuthUserList:
		q.AuthUserList = &pb.AuthUserListRequest{}
	case dumplog.KindAuthRoleList:
		q.AuthRoleList = &pb.AuthRoleListRequest{}
	case dumplog.KindAuthRoleAdd:
		q.AuthRoleAdd = &pb.AuthRoleAddRequest{Name: a.Role}
	case dumplog.KindAuthRoleDelete:
		q.AuthRoleDelete = &pb.AuthRoleDeleteRequest{Role: a.Role}
	case dumplog.KindAuthRoleGet:
		q.AuthRoleGet = &pb.AuthRoleGetRequest{Role: a.Role}
	case dumplog.KindAuthRoleGrantPermission:
		q.AuthRoleGrantPermission = &pb.AuthRoleGrantPermissionRequest{Name: a.Role, Perm: perm}
	case dumplog.KindAuthRoleRevokePermission:
		q.AuthRoleRevokePermission = &pb.AuthRoleRevokePermissionRequest{Role: a.Role, Key: a.Key, RangeEnd: a.RangeEnd}
	}
}

func apiPut(p *dumplog.PutRequest) *pb.PutRequest {
	return &pb.PutRequest{Key: p.Key, Value: p.Value, Lease: p.Lease, PrevKv: p.PrevKV, IgnoreValue: p.IgnoreValue,
		IgnoreLease: p.IgnoreLease}
}

func apiRange(r *dumplog.RangeRequest) *pb.RangeRequest {
	return &pb.RangeRequest{
		Key: r.Key, RangeEnd: r.RangeEnd, Limit: r.Limit, Revision: r.Revision,
		SortOrder: pb.RangeRequest_SortOrder(r.SortOrder), SortTarget: pb.RangeRequest_SortTarget(r.SortTarget),
		Serializable: r.Serializable, KeysOnly: r.KeysOnly, CountOnly: r.CountOnly,
		MinModRevision: r.MinModRevision, MaxModRevision: r.MaxModRevision,
		MinCreateRevision: r.MinCreateRevision, MaxCreateRevision: r.MaxCreateRevision,
	}
}

func apiDelete(r *dumplog.DeleteRangeRequest) *pb.DeleteRangeRequest {
	return &pb.DeleteRangeRequest{Key: r.Key, RangeEnd: r.RangeEnd, PrevKv: r.PrevKV}
}

func apiTxn(t *dumplog.TxnRequest) *pb.TxnRequest {
	q := &pb.TxnRequest{Success: apiOps(t.Success), Failure: apiOps(t.Failure)}
	for i := range t.Compare {
		c := &t.Compare[i]
		a := &pb.Compare{
			Result: pb.Compare_CompareResult(c.Result), Target: pb.Compare_CompareTarget(c.Target), Key: c.Key,
			RangeEnd: c.RangeEnd,
		}
		switch a.Target {
		case pb.Compare_VERSION:
			a.TargetUnion = &pb.Compare_Version{Version: c.Num}
		case pb.Compare_CREATE:
			a.TargetUnion = &pb.Compare_CreateRevision{CreateRevision: c.Num}
		case pb.Compare_MOD:
			a.TargetUnion = &pb.Compare_ModRevision{ModRevision: c.Num}
		case pb.Compare_VALUE:
			a.TargetUnion = &pb.Compare_Value{Value: c.Value}
		case pb.Compare_LEASE:
			a.TargetUnion = &pb.Compare_Lease{Lease: c.Num}
		}
		q.Compare = append(q.Compare, a)
	}
	return q
}

func apiOps(ops []dumplog.RequestOp) []*pb.RequestOp {
	var out []*pb.RequestOp
	for _, op := range ops {
		a := &pb.RequestOp{}
		switch {
		case op.Range != nil:
			a.Request = &pb.RequestOp_RequestRange{RequestRange: apiRange(op.Range)}
		case op.Put != nil:
			a.Request = &pb.RequestOp_RequestPut{RequestPut: apiPut(op.Put)}
		case op.DeleteRange != nil:
			a.Request = &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: apiDelete(op.DeleteRange)}
		case op.Txn != nil:
			a.Request = &pb.RequestOp_RequestTxn{RequestTxn: apiTxn(op.Txn)}
		}
		out = append(out, a)
	}
	return out
}
