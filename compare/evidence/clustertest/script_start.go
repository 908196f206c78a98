package clustertest

import (
	"go.etcd.io/etcd/api/v3/authpb"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

// NewScript returns a cluster of three members of a version, such as "3.4.0", with a first leader and all members
// started.
func NewScript(version string) *Script {
	s := &Script{Members: 3, Version: version, Of: map[int]ScriptMember{}}
	s.Add(Step{Empty: true})
	for m := range s.Members {
		s.Start(m)
	}
	return s
}

// EnableAuth adds the users root and app, allows app everything below /app/, and enables auth.
func (s *Script) EnableAuth() {
	const hash = "aGFzaA==" // not the hash of any password
	for _, r := range []*etcdserverpb.InternalRaftRequest{
		{AuthRoleAdd: &etcdserverpb.AuthRoleAddRequest{Name: "root"}},
		{AuthUserAdd: &etcdserverpb.AuthUserAddRequest{Name: "root", HashedPassword: hash}},
		{AuthUserGrantRole: &etcdserverpb.AuthUserGrantRoleRequest{User: "root", Role: "root"}},
		{AuthRoleAdd: &etcdserverpb.AuthRoleAddRequest{Name: "app"}},
		{AuthUserAdd: &etcdserverpb.AuthUserAddRequest{Name: "app", HashedPassword: hash}},
		{AuthUserGrantRole: &etcdserverpb.AuthUserGrantRoleRequest{User: "app", Role: "app"}},
		{AuthRoleGrantPermission: &etcdserverpb.AuthRoleGrantPermissionRequest{Name: "app",
			Perm: &authpb.Permission{PermType: authpb.READWRITE, Key: []byte("/app/"), RangeEnd: []byte("/app0")}}},
		{AuthEnable: &etcdserverpb.AuthEnableRequest{}},
	} {
		s.Add(Step{Req: r})
	}
}
