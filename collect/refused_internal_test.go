package collect

import (
	"errors"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestRefusedSnapshot: what a member answers instead of a snapshot decides what the user does next.
func TestRefusedSnapshot(t *testing.T) {
	s := &running{endpoint: "http://h:1"}
	for want, err := range map[string]error{
		"is a learner, which sends no snapshot; --no-client copies its files": status.Error(codes.Unavailable, // of 3.4
			"etcdserver: rpc not supported for learner"),
		"use a user with role root": rpctypes.ErrGRPCPermissionDenied,
		"role root":                 errors.New("own"),
	} {
		if got := s.refused(err).Error(); !strings.Contains(got, want) || !strings.HasPrefix(got, "http://h:1 ") {
			t.Errorf("%v: %q", err, got)
		}
	}
}
