package dumplog

// The fields of InternalRaftRequest that are not operations: the ID of the request, which servers set in the header
// instead, and the header.
const (
	fieldID     = 1
	fieldHeader = 100
)

// requestField is one operation of InternalRaftRequest.
type requestField struct {
	num    int32
	kind   Kind
	decode func(*Decoder, []byte) error
}

// requestFields lists every operation of InternalRaftRequest of etcd 3.0 to 3.8 (api/etcdserverpb/raft_internal.proto).
// To add one, add a line here and a Kind.
var requestFields = []requestField{
	{2, KindV2, (*Decoder).v2},
	{3, KindRange, (*Decoder).rangeRequest},
	{4, KindPut, (*Decoder).put},
	{5, KindDeleteRange, (*Decoder).deleteRange},
	{6, KindTxn, (*Decoder).txn},
	{7, KindCompaction, (*Decoder).compaction},
	{8, KindLeaseGrant, (*Decoder).leaseGrant},
	{9, KindLeaseRevoke, (*Decoder).leaseRevoke},
	{10, KindAlarm, (*Decoder).alarm},
	{11, KindLeaseCheckpoint, (*Decoder).leaseCheckpoint},
	{1000, KindAuthEnable, authFields(nil)},
	{1011, KindAuthDisable, authFields(nil)},
	{1012, KindAuthenticate, authFields(authFieldsAuthenticate)},
	{1013, KindAuthStatus, authFields(nil)},
	{1100, KindAuthUserAdd, authFields(authFieldsUserAdd)},
	{1101, KindAuthUserDelete, authFields(authFieldsUser)},
	{1102, KindAuthUserGet, authFields(authFieldsUser)},
	{1103, KindAuthUserChangePassword, authFields(authFieldsChangePassword)},
	{1104, KindAuthUserGrantRole, authFields(authFieldsUserRole)},
	{1105, KindAuthUserRevokeRole, authFields(authFieldsUserRole)},
	{1106, KindAuthUserList, authFields(nil)},
	{1107, KindAuthRoleList, authFields(nil)},
	{1200, KindAuthRoleAdd, authFields(authFieldsRole)},
	{1201, KindAuthRoleDelete, authFields(authFieldsRole)},
	{1202, KindAuthRoleGet, authFields(authFieldsRole)},
	{1203, KindAuthRoleGrantPermission, authFields(authFieldsGrantPermission)},
	{1204, KindAuthRoleRevokePermission, authFields(authFieldsRevokePermission)},
	{1300, KindClusterVersionSet, (*Decoder).clusterVersion},
	{1301, KindClusterMemberAttrSet, (*Decoder).memberAttr},
	{1302, KindDowngradeInfoSet, (*Decoder).downgradeInfo},
	{9900, KindDowngradeVersionTest, (*Decoder).downgradeTest},
}

// lowKinds indexes the fields of nearly all entries, to avoid a search.
var lowKinds = func() (t [16]*requestField) {
	for i := range requestFields {
		if f := &requestFields[i]; int(f.num) < len(t) {
			t[f.num] = f
		}
	}
	return t
}()

// requestKind returns the operation of a field number, nil if the field is not an operation.
func requestKind(num int32) *requestField {
	if num >= 0 && int(num) < len(lowKinds) {
		return lowKinds[num]
	}
	for i := range requestFields {
		if requestFields[i].num == num {
			return &requestFields[i]
		}
	}
	return nil
}

// Kinds returns every kind of entry: first those outside InternalRaftRequest, then its fields in order.
func Kinds() []Kind {
	kinds := []Kind{KindEmpty, KindConfChange, KindConfChangeV2, KindUnknown}
	for i := range requestFields {
		kinds = append(kinds, requestFields[i].kind)
	}
	return kinds
}

// IsAuth reports whether the auth store handles the request: users, roles, enable and disable, authenticate.
func (k Kind) IsAuth() bool {
	switch k {
	case KindAuthEnable, KindAuthDisable, KindAuthenticate, KindAuthStatus:
		return true
	}
	return k.in(1100, 1204)
}

// ChangesAuth reports whether the request increments the auth revision if it succeeds.
func (k Kind) ChangesAuth() bool {
	switch k {
	case KindAuthUserGet, KindAuthUserList, KindAuthRoleGet, KindAuthRoleList, KindAuthStatus, KindAuthenticate,
		KindAuthDisable:
		return k == KindAuthDisable
	}
	return k.IsAuth()
}

// IsKV reports whether the request reads or writes keys.
func (k Kind) IsKV() bool { return k.in(3, 7) }

// IsLease reports whether the request is about leases themselves.
func (k Kind) IsLease() bool {
	return k == KindLeaseGrant || k == KindLeaseRevoke || k == KindLeaseCheckpoint
}

// IsMembership reports whether the request is about members: conf changes and published attributes. For a v2 request
// see V2Request.MemberAttr.
func (k Kind) IsMembership() bool {
	return k == KindConfChange || k == KindConfChangeV2 || k == KindClusterMemberAttrSet
}

// HasSecrets reports whether the request can contain a password, a password hash or a token.
func (k Kind) HasSecrets() bool {
	return k == KindAuthenticate || k == KindAuthUserAdd || k == KindAuthUserChangePassword
}

func (k Kind) in(from, to int32) bool {
	for i := range requestFields {
		if f := &requestFields[i]; f.kind == k {
			return f.num >= from && f.num <= to
		}
	}
	return false
}
