package replay

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// TestReapplyIsWhatARestartRepeats: the copy is repeated, the state itself stays.
func TestReapplyIsWhatARestartRepeats(t *testing.T) {
	s := simOf(&subject{Model: apply.NewModel(release.AnyOf(4))})
	role := func(k dumplog.Kind) *dumplog.Request {
		return &dumplog.Request{Kind: k, Auth: &dumplog.AuthRequest{User: "new", Role: "app",
			Perm: &dumplog.Permission{Key: []byte("/x")}}}
	}
	s.Auth.Apply(role(dumplog.KindAuthRoleAdd))
	for i, r := range []*dumplog.Request{role(dumplog.KindAuthRoleGrantPermission), role(dumplog.KindAuthUserAdd),
		role(dumplog.KindAuthUserChangePassword)} {
		s.Auth.Apply(r)
		s.auth.authSeen = append(s.auth.authSeen, AuthEntry{Index: uint64(10 + i), Req: r})
	}
	possible, entries, state := s.auth.reapply()
	if possible != 2 || len(entries) != 2 || entries[0] != 10 || entries[1] != 12 {
		t.Errorf("possible %d by entries %v, want 2 by 10 and 12", possible, entries)
	}
	if s.Auth.Revision != 5 || state.Revision != 7 {
		t.Errorf("revision %d, repeated %d; want 5 and 7", s.Auth.Revision, state.Revision)
	}
}
