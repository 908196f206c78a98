package clustertest

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// slowLogin refuses the first logins with the error of a server that has no time for them.
type slowLogin struct {
	etcdserverpb.UnimplementedAuthServer
	refusals int32
	logins   atomic.Int32
}

func (s *slowLogin) Authenticate(context.Context, *etcdserverpb.AuthenticateRequest) (
	*etcdserverpb.AuthenticateResponse, error) {
	if s.logins.Add(1) <= s.refusals {
		return nil, rpctypes.ErrGRPCTimeout
	}
	return &etcdserverpb.AuthenticateResponse{Header: &etcdserverpb.ResponseHeader{}, Token: "token"}, nil
}

func TestClientRepeatsLateLogin(t *testing.T) {
	l, err := net.Listen("tcp", loopbackHost()+":0")
	if err != nil {
		t.Fatal(err)
	}
	auth := &slowLogin{refusals: 2}
	server := grpc.NewServer()
	etcdserverpb.RegisterAuthServer(server, auth)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	c := &Cluster{t: t, members: []*member{{name: "node1", clientURL: "http://" + l.Addr().String()}},
		clients: map[clientKey]*clientv3.Client{}}
	c.Login("root", "root secret")
	cli := c.Client(0)
	if got := auth.logins.Load(); cli == nil || got != 3 {
		t.Errorf("a client after %d logins, want 3", got)
	}
	if c.Client(0) != cli {
		t.Error("the client is not cached")
	}
}

func TestOnlyLateLoginsAreRepeated(t *testing.T) {
	for err, want := range map[error]bool{
		context.DeadlineExceeded:                true,
		rpctypes.ErrGRPCTimeout:                 true,
		rpctypes.Error(rpctypes.ErrGRPCTimeout): true,
		rpctypes.ErrNoLeader:                    true,
		rpctypes.ErrAuthFailed:                  false,
		rpctypes.ErrGRPCAuthFailed:              false,
		rpctypes.ErrRootUserNotExist:            false,
		errors.New("no certificate"):            false,
	} {
		if got := isLoginLate(err); got != want {
			t.Errorf("%v: repeated %v, want %v", err, got, want)
		}
	}
}
