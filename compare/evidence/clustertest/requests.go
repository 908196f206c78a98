package clustertest

import "go.etcd.io/etcd/api/v3/etcdserverpb"

// PutRequest is a put of a key that a lease holds; lease 0 is none.
func PutRequest(key, value string, lease int64) *etcdserverpb.InternalRaftRequest {
	return &etcdserverpb.InternalRaftRequest{
		Put: &etcdserverpb.PutRequest{Key: []byte(key), Value: []byte(value), Lease: lease}}
}

// DeleteRequest is a delete of one key.
func DeleteRequest(key string) *etcdserverpb.InternalRaftRequest {
	return &etcdserverpb.InternalRaftRequest{DeleteRange: &etcdserverpb.DeleteRangeRequest{Key: []byte(key)}}
}

// GrantRequest grants a lease.
func GrantRequest(id, ttl int64) *etcdserverpb.InternalRaftRequest {
	return &etcdserverpb.InternalRaftRequest{LeaseGrant: &etcdserverpb.LeaseGrantRequest{ID: id, TTL: ttl}}
}

// RevokeRequest revokes a lease.
func RevokeRequest(id int64) *etcdserverpb.InternalRaftRequest {
	return &etcdserverpb.InternalRaftRequest{LeaseRevoke: &etcdserverpb.LeaseRevokeRequest{ID: id}}
}

// As is the step of a request by a user through the member at that position; it takes no effect on those to skip.
func As(user string, by int, r *etcdserverpb.InternalRaftRequest, skip ...int) Step {
	return Step{User: user, By: by, Req: r, Skip: skip}
}
