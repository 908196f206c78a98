package evidence_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
)

// silentMember accepts connections and never answers. It reports each connection.
func silentMember(t *testing.T) (endpoint string, connected <-chan struct{}) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan struct{}, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
			seen <- struct{}{}
		}
	}()
	t.Cleanup(func() { _ = l.Close() })
	return "http://" + l.Addr().String(), seen
}

// TestALoginThatHangsEnds: an interrupt ends whatever logs in to a member that accepts connections and never answers.
func TestALoginThatHangsEnds(t *testing.T) {
	access := evidence.Access{User: "root:secret"}
	for name, use := range map[string]func(ctx context.Context, endpoint string) error{
		"dial": func(ctx context.Context, endpoint string) error {
			_, err := access.Dial(ctx, []string{endpoint})
			return err
		},
		"list of members": func(ctx context.Context, endpoint string) error {
			_, err := access.Members(ctx, []string{endpoint})
			return err
		},
		"snapshot": func(ctx context.Context, endpoint string) error {
			s, err := evidence.Open(ctx, []evidence.Spec{{Where: endpoint}}, evidence.Options{Access: access})
			if s != nil {
				_ = s.Close()
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			endpoint, connected := silentMember(t)
			ctx, interrupt := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- use(ctx, endpoint) }()
			<-connected
			interrupt()
			begin := time.Now()
			select {
			case err := <-ended:
				if !errors.Is(err, context.Canceled) {
					t.Errorf("%v", err)
				}
				t.Logf("ended after %v", time.Since(begin))
			case <-time.After(4 * time.Second): // every limit of a login is longer
				t.Error("the interrupt does not end the login")
			}
		})
	}
}

// TestWhyALoginFails: a login that takes longer than connecting may take is given up when the endpoint accepts no
// connection, and the reason is named.
func TestWhyALoginFails(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	access := evidence.Access{User: "root:secret", DialTimeout: time.Second} // a busy machine needs more than 100 ms
	begin := time.Now()
	_, err = access.Dial(t.Context(), []string{"http://" + l.Addr().String()})
	if err == nil || !strings.Contains(err.Error(), "refused") || time.Since(begin) > evidence.LoginTimeout/2 {
		t.Errorf("after %v: %v", time.Since(begin), err)
	}
}

// slowLogin is a member that needs time for a login.
type slowLogin struct {
	pb.UnimplementedAuthServer
	takes time.Duration
}

// Authenticate grants a token after a while.
func (s *slowLogin) Authenticate(context.Context, *pb.AuthenticateRequest) (*pb.AuthenticateResponse, error) {
	time.Sleep(s.takes)
	return &pb.AuthenticateResponse{Header: &pb.ResponseHeader{}, Token: "token"}, nil
}

// TestASlowLoginIsNotCutOff: a member that answers is given more time for a login than for connecting, and its client
// serves after the context of the login has ended.
func TestASlowLoginIsNotCutOff(t *testing.T) {
	m := &runningMember{id: 1, committed: 7, version: "3.6.0"}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	pb.RegisterMaintenanceServer(s, m)
	pb.RegisterAuthServer(s, &slowLogin{takes: time.Second})
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	access := evidence.Access{User: "root:secret", DialTimeout: time.Second} // a busy machine needs more than 100 ms
	ctx, cancel := context.WithCancel(t.Context())
	c, err := access.Dial(ctx, []string{"http://" + l.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	cancel()
	if c.Ctx().Err() != nil {
		t.Error("the client ended with the context of its login")
	}
	if st, err := c.Status(t.Context(), c.Endpoints()[0]); err != nil || st.RaftIndex != 7 {
		t.Errorf("%v, %v", st, err)
	}
}
