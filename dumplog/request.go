package dumplog

// Kind names the request in an entry. The names are the field names of InternalRaftRequest, plus the few forms outside
// it.
type Kind string

// Kinds outside InternalRaftRequest.
const (
	KindEmpty        Kind = "empty"          // a leader's first entry of its term
	KindV2           Kind = "v2_request"     // a raw v2 Request, proposers up to 3.5
	KindConfChange   Kind = "conf_change"    // raftpb.ConfChange
	KindConfChangeV2 Kind = "conf_change_v2" // raftpb.ConfChangeV2, never proposed by etcd
	KindUnknown      Kind = "unknown"        // does not decode as a known request
)

// Kinds that are fields of InternalRaftRequest (api/etcdserverpb/raft_internal.proto).
const (
	KindRange                    Kind = "range"
	KindPut                      Kind = "put"
	KindDeleteRange              Kind = "delete_range"
	KindTxn                      Kind = "txn"
	KindCompaction               Kind = "compaction"
	KindLeaseGrant               Kind = "lease_grant"
	KindLeaseRevoke              Kind = "lease_revoke"
	KindAlarm                    Kind = "alarm"
	KindLeaseCheckpoint          Kind = "lease_checkpoint"
	KindAuthEnable               Kind = "auth_enable"
	KindAuthDisable              Kind = "auth_disable"
	KindAuthenticate             Kind = "authenticate"
	KindAuthStatus               Kind = "auth_status"
	KindAuthUserAdd              Kind = "auth_user_add"
	KindAuthUserDelete           Kind = "auth_user_delete"
	KindAuthUserGet              Kind = "auth_user_get"
	KindAuthUserChangePassword   Kind = "auth_user_change_password"
	KindAuthUserGrantRole        Kind = "auth_user_grant_role"
	KindAuthUserRevokeRole       Kind = "auth_user_revoke_role"
	KindAuthUserList             Kind = "auth_user_list"
	KindAuthRoleList             Kind = "auth_role_list"
	KindAuthRoleAdd              Kind = "auth_role_add"
	KindAuthRoleDelete           Kind = "auth_role_delete"
	KindAuthRoleGet              Kind = "auth_role_get"
	KindAuthRoleGrantPermission  Kind = "auth_role_grant_permission"
	KindAuthRoleRevokePermission Kind = "auth_role_revoke_permission"
	KindClusterVersionSet        Kind = "cluster_version_set"
	KindClusterMemberAttrSet     Kind = "cluster_member_attr_set"
	KindDowngradeInfoSet         Kind = "downgrade_info_set"
	KindDowngradeVersionTest     Kind = "downgrade_version_test"
)

// Header is the RequestHeader of an InternalRaftRequest.
type Header struct {
	// ID is the ID in the header, or the ID of the request itself (its field 1) if the header has none.
	ID           RequestID
	Username     string
	AuthRevision uint64
}

// Request is one decoded entry payload. Kind says which pointer is set; the others are nil. Slices alias the entry's
// data.
type Request struct {
	Kind   Kind
	Header Header

	Range           *RangeRequest
	Put             *PutRequest
	DeleteRange     *DeleteRangeRequest
	Txn             *TxnRequest
	Compaction      *CompactionRequest
	LeaseGrant      *LeaseGrantRequest
	LeaseRevoke     *LeaseRevokeRequest
	LeaseCheckpoint *LeaseCheckpointRequest
	Alarm           *AlarmRequest
	// Auth is set for every auth_* and authenticate request: they share their few fields.
	Auth          *AuthRequest
	ClusterVer    *ClusterVersionSet
	MemberAttr    *ClusterMemberAttrSet
	Downgrade     *DowngradeInfoSet
	DowngradeTest *DowngradeVersionTest
	V2            *V2Request
	ConfChange    *ConfChange
	ConfChangeV2  *ConfChangeV2
	// Unknown are the fields that this package does not know, in wire order. They are shown, never dropped.
	Unknown []UnknownField
}

// UnknownField is a protobuf field without a known name. Path names the message that contains it, such as "put".
type UnknownField struct {
	Path string
	Num  int32
	Wire int8
	Raw  []byte
}

// PutRequest is etcdserverpb.PutRequest.
type PutRequest struct {
	Key, Value               []byte
	Lease                    int64
	PrevKV                   bool
	IgnoreValue, IgnoreLease bool
}

// RangeRequest is etcdserverpb.RangeRequest.
type RangeRequest struct {
	Key, RangeEnd                        []byte
	Limit, Revision                      int64
	SortOrder, SortTarget                int32
	Serializable, KeysOnly, CountOnly    bool
	MinModRevision, MaxModRevision       int64
	MinCreateRevision, MaxCreateRevision int64
}

// DeleteRangeRequest is etcdserverpb.DeleteRangeRequest. A RangeEnd of one zero byte means the end of the key space.
type DeleteRangeRequest struct {
	Key, RangeEnd []byte
	PrevKV        bool
}

// TxnRequest is etcdserverpb.TxnRequest.
type TxnRequest struct {
	Compare          []Compare
	Success, Failure []RequestOp
}

// RequestOp is one operation of a transaction. Exactly one pointer is set, none if the operation is unknown.
type RequestOp struct {
	Range       *RangeRequest
	Put         *PutRequest
	DeleteRange *DeleteRangeRequest
	Txn         *TxnRequest
}

// CompareResult is the relation that a compare requires: 0 equal, 1 greater, 2 less, 3 not equal.
type CompareResult int32

// CompareTarget is what a compare reads: 0 version, 1 create revision, 2 mod revision, 3 value, 4 lease.
type CompareTarget int32

// Compare is etcdserverpb.Compare. Value is the value, Num the version, create revision, mod revision or lease, as
// Target says. A request may give another of them than its target; servers then compare with zero or nothing.
type Compare struct {
	Result        CompareResult
	Target        CompareTarget
	Key, RangeEnd []byte
	Num           int64
	Value         []byte
}

// CompactionRequest is etcdserverpb.CompactionRequest.
type CompactionRequest struct {
	Revision int64
	Physical bool
}

// LeaseGrantRequest is etcdserverpb.LeaseGrantRequest; TTL in seconds.
type LeaseGrantRequest struct{ TTL, ID int64 }

// LeaseRevokeRequest is etcdserverpb.LeaseRevokeRequest.
type LeaseRevokeRequest struct{ ID int64 }

// LeaseCheckpoint is one lease of a checkpoint request; RemainingTTL in seconds.
type LeaseCheckpoint struct{ ID, RemainingTTL int64 }

// LeaseCheckpointRequest is etcdserverpb.LeaseCheckpointRequest, 3.4 and later.
type LeaseCheckpointRequest struct{ Checkpoints []LeaseCheckpoint }

// AlarmRequest is etcdserverpb.AlarmRequest. Action: 0 get, 1 activate, 2 deactivate. Alarm: 0 none, 1 NOSPACE, 2
// CORRUPT.
type AlarmRequest struct {
	Action   int32
	MemberID ID
	Alarm    int32
}

// Permission is authpb.Permission. Type: 0 READ, 1 WRITE, 2 READWRITE.
type Permission struct {
	Type          int32
	Key, RangeEnd []byte
}

// AuthRequest is the union of the auth requests. The request's Kind says which fields are used.
type AuthRequest struct {
	// User and Role are the user and the role that the request changes.
	User, Role string
	// Password, HashedPassword and SimpleToken are secrets, shown only on demand. Password is plain text in requests of
	// proposers up to 3.4; HashedPassword is base64 bcrypt since 3.5.
	Password, HashedPassword, SimpleToken string
	// HasOptions is set for a user add with options (3.4 and later). 3.4.0 to 3.4.9 hash the password only with
	// options.
	HasOptions bool
	NoPassword bool
	// Perm is the permission of auth_role_grant_permission; nil if the request has none.
	Perm *Permission
	// Key and RangeEnd are set by auth_role_revoke_permission.
	Key, RangeEnd []byte
}

// ClusterVersionSet is membershippb.ClusterVersionSetRequest, 3.5 and later.
type ClusterVersionSet struct{ Version string }

// ClusterMemberAttrSet is membershippb.ClusterMemberAttrSetRequest, 3.5 and later. Each member sends it after it has
// started.
type ClusterMemberAttrSet struct {
	MemberID   ID
	Name       string
	ClientURLs []string
}

// DowngradeInfoSet is membershippb.DowngradeInfoSetRequest, 3.5 and later.
type DowngradeInfoSet struct {
	Enabled bool
	Version string
}

// DowngradeVersionTest is etcdserverpb.DowngradeVersionTestRequest, 3.6 and later.
type DowngradeVersionTest struct{ Version string }

// V2Request is etcdserverpb.Request, the raw v2 request of proposers up to 3.5.
type V2Request struct {
	ID                                           RequestID
	Method, Path, Val, PrevValue                 string
	Dir, Wait, Recursive, Sorted, Quorum, Stream bool
	PrevIndex, Since                             uint64
	PrevExist, Refresh                           *bool
	Expiration, Time                             int64
}

// ConfChangeType is raftpb.ConfChangeType: 0 add node, 1 remove node, 2 update node, 3 add learner.
type ConfChangeType int32

// The changes of raft 3.x. A promotion is an AddNode whose context has isPromote set.
const (
	ConfChangeAddNode        ConfChangeType = 0
	ConfChangeRemoveNode     ConfChangeType = 1
	ConfChangeUpdateNode     ConfChangeType = 2
	ConfChangeAddLearnerNode ConfChangeType = 3
)

// ConfChange is raftpb.ConfChange with its JSON context decoded.
type ConfChange struct {
	ID      RequestID
	Type    ConfChangeType
	NodeID  ID
	Context []byte
	// Member is the decoded context; nil if there is none or it does not decode.
	Member *MemberContext
}

// MemberContext is the JSON context of a ConfChange (membership.ConfigChangeContext).
type MemberContext struct {
	ID         ID
	Name       string
	PeerURLs   []string
	ClientURLs []string
	IsLearner  bool
	IsPromote  bool
}

// ConfChangeSingle is raftpb.ConfChangeSingle.
type ConfChangeSingle struct {
	Type   ConfChangeType
	NodeID ID
}

// ConfChangeV2 is raftpb.ConfChangeV2. Transition: 0 auto, 1 joint implicit, 2 joint explicit.
type ConfChangeV2 struct {
	Transition int32
	Changes    []ConfChangeSingle
	Context    []byte
}
