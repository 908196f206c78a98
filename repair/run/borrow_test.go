package run

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// authServer grants a token, or refuses logins, and serves status to those who show a token that it knows.
type authServer struct {
	etcdserverpb.UnimplementedAuthServer
	etcdserverpb.UnimplementedMaintenanceServer
	grants, knows string
	refuses       error

	mu     sync.Mutex
	logins []string
	shown  []string
}

func (s *authServer) Authenticate(_ context.Context,
	r *etcdserverpb.AuthenticateRequest) (*etcdserverpb.AuthenticateResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logins = append(s.logins, r.Name+":"+r.Password)
	return &etcdserverpb.AuthenticateResponse{Token: s.grants}, s.refuses
}

func (s *authServer) Status(ctx context.Context,
	_ *etcdserverpb.StatusRequest) (*etcdserverpb.StatusResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	md, _ := metadata.FromIncomingContext(ctx)
	s.shown = append(s.shown, md.Get(rpctypes.TokenFieldNameGRPC)...)
	if s.knows != "" && !slices.Contains(md.Get(rpctypes.TokenFieldNameGRPC), s.knows) {
		return nil, rpctypes.ErrGRPCInvalidAuthToken
	}
	return &etcdserverpb.StatusResponse{Header: &etcdserverpb.ResponseHeader{MemberId: 5}}, nil
}

// listen serves it at a port of this machine.
func (s *authServer) listen(t *testing.T) (endpoint string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	etcdserverpb.RegisterAuthServer(g, s)
	etcdserverpb.RegisterMaintenanceServer(g, s)
	go func() { _ = g.Serve(l) }()
	t.Cleanup(g.Stop)
	return "http://" + l.Addr().String()
}

// loginsAt are logins as root, of which best is the best member.
func loginsAt(t *testing.T, best string) *logins {
	t.Helper()
	l := &logins{o: &LiveOptions{User: "root", Password: "secret"}, ctx: t.Context(), clients: map[string]*loggedIn{}}
	l.best = func() (*clientv3.Client, error) { return l.dial(best) }
	t.Cleanup(l.close)
	return l
}

// TestBorrowedToken: a learner refuses logins, so its client shows a token of the best member, for a limited time.
// Other members get a login, whose client renews its token.
func TestBorrowedToken(t *testing.T) {
	best := &authServer{grants: "granted", knows: "granted"}
	learner := &authServer{knows: "granted", refuses: rpctypes.ErrGRPCNotSupportedForLearner}
	l, at := loginsAt(t, best.listen(t)), learner.listen(t)
	before := time.Now()
	c, err := l.dial(at)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Status(t.Context(), at); err != nil {
		t.Errorf("the learner does not know the token: %v", err)
	}
	after := time.Now()
	if until := l.clients[at].until; until.Before(before.Add(borrowed)) || until.After(after.Add(borrowed)) {
		t.Errorf("the token is used until %v, it was borrowed between %v and %v", until, before, after)
	}
	if want := []string{"root:secret", "root:secret"}; !slices.Equal(best.logins, want) {
		t.Errorf("logins %q, want that of the best member's client, and that which borrows", best.logins)
	}
	for e, client := range l.clients {
		if (e == at) == client.until.IsZero() {
			t.Errorf("%s: until %v", e, client.until)
		}
	}
	again, err := l.dial(at)
	if err != nil || again != c || len(best.logins) != 2 {
		t.Errorf("the next step borrows again: %v, logins %q", err, best.logins)
	}
}

// TestTokenThatIsNotKnownYet: a learner that has not applied the entry with the token refuses it. That is worth another
// try, and no client of it is kept.
func TestTokenThatIsNotKnownYet(t *testing.T) {
	best := &authServer{grants: "granted"}
	learner := &authServer{knows: "another", refuses: rpctypes.ErrGRPCNotSupportedForLearner}
	l, at := loginsAt(t, best.listen(t)), learner.listen(t)
	c, err := l.dial(at)
	var later notYet
	if c != nil || !errors.As(err, &later) || !transient(err) || l.clients[at] != nil {
		t.Errorf("%v, kept %v", err, l.clients[at])
	}
	learner.mu.Lock()
	defer learner.mu.Unlock()
	if !slices.Contains(learner.shown, "granted") {
		t.Errorf("the learner was shown %q", learner.shown)
	}
}

// TestNothingToBorrow: auth was turned off while a learner joins, which refuses every login and needs none then.
func TestNothingToBorrow(t *testing.T) {
	learner := &authServer{refuses: rpctypes.ErrGRPCNotSupportedForLearner}
	best := &authServer{grants: "granted"}
	at, from := learner.listen(t), best.listen(t)
	l := loginsAt(t, from)
	if _, err := l.dial(from); err != nil {
		t.Fatal(err)
	}
	best.mu.Lock()
	best.refuses = rpctypes.ErrGRPCAuthNotEnabled
	best.mu.Unlock()
	c, err := l.dial(at)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Status(t.Context(), at); err != nil || l.clients[at].until.IsZero() {
		t.Errorf("%v, kept until %v", err, l.clients[at].until)
	}
}

// TestNothingIsBorrowed: a wrong password is no reason to borrow a token, nor is there one to borrow without a user. A
// learner is not reached while the best member is not.
func TestNothingIsBorrowed(t *testing.T) {
	noBest := errors.New("the best member is down")
	for name, tc := range map[string]struct {
		user    string
		refuses error
		best    bool
		want    error // nil is a client
	}{
		"a wrong password":   {"root", rpctypes.ErrGRPCAuthFailed, false, rpctypes.ErrAuthFailed},
		"no user":            {"", rpctypes.ErrGRPCNotSupportedForLearner, false, nil},
		"the best is down":   {"root", rpctypes.ErrGRPCNotSupportedForLearner, true, noBest},
		"a login that works": {"root", nil, false, nil},
	} {
		s := &authServer{refuses: tc.refuses}
		l, at, asked := loginsAt(t, ""), s.listen(t), false
		l.o.User = tc.user
		l.best = func() (*clientv3.Client, error) { asked = true; return nil, noBest }
		c, err := l.dial(at)
		if (c != nil) != (tc.want == nil) || tc.want == nil && err != nil ||
			tc.want != nil && !errors.Is(err, tc.want) && !sameError(err, tc.want) || asked != tc.best {
			t.Errorf("%s: %v, the best member was asked %v", name, err, asked)
		}
		if tc.want == nil && !l.clients[at].until.IsZero() || tc.user == "" && len(s.logins) > 0 {
			t.Errorf("%s: until %v, logins %q", name, l.clients[at].until, s.logins)
		}
	}
}
