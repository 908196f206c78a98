package run

import (
	"context"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/credentials"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	grpccredentials "google.golang.org/grpc/credentials"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// loggedIn is a client of one endpoint. A client with a borrowed token is valid until the token may have expired.
type loggedIn struct {
	c     *clientv3.Client
	until time.Time // zero: without end
}

// connectTimeout is how long a connection to a member that may be down may take.
const connectTimeout = 5 * time.Second

// borrowed is how long a borrowed token is used. Servers drop a token that was not used for five minutes.
const borrowed = time.Minute

// dial returns the client of an endpoint, which is kept until forget.
func (f *field) dial(endpoint string) (*clientv3.Client, error) {
	f.mu.Lock()
	have := f.clients[endpoint]
	f.mu.Unlock()
	if have != nil && (have.until.IsZero() || time.Now().Before(have.until)) {
		return have.c, nil
	}
	c, err := f.login(endpoint)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch now := f.clients[endpoint]; now {
	case nil:
	case have:
		_ = have.c.Close()
	default: // someone else was faster
		_ = c.c.Close()
		return now.c, nil
	}
	f.clients[endpoint] = c
	return c.c, nil
}

func (f *field) login(endpoint string) (*loggedIn, error) {
	c, err := f.connect(endpoint, f.o.User, nil)
	if err != nil && f.o.User != "" && strings.Contains(err.Error(),
		rpctypes.ErrorDesc(rpctypes.ErrGRPCNotSupportedForLearner)) {
		return f.borrow(endpoint)
	}
	if err != nil {
		return nil, err
	}
	return &loggedIn{c: c}, nil
}

// connect makes a client of one endpoint; user "" makes one that does not log in. The end of the run ends a login, and
// the deadline of a single request does not.
func (f *field) connect(endpoint, user string, creds grpccredentials.PerRPCCredentials) (*clientv3.Client, error) {
	cfg := clientv3.Config{Endpoints: []string{endpoint}, TLS: f.tls, Logger: zap.NewNop(),
		DialKeepAliveTime: 5 * time.Second, DialKeepAliveTimeout: 5 * time.Second,
		DialOptions: []grpc.DialOption{grpc.WithNoProxy(), grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.DefaultConfig, MinConnectTimeout: connectTimeout})}}
	if user != "" {
		cfg.Username, cfg.Password = user, f.o.Password
	}
	if creds != nil {
		cfg.DialOptions = append(cfg.DialOptions, grpc.WithPerRPCCredentials(creds))
	}
	return evidence.Login(f.runCtx, cfg)
}

// borrow makes a client of a learner, which refuses logins but requires a token. Tokens are granted through raft, so a
// learner knows a token of the best member once it has applied that entry.
func (f *field) borrow(endpoint string) (*loggedIn, error) {
	ctx, cancel := context.WithTimeout(f.runCtx, evidence.LoginTimeout)
	defer cancel()
	best, _, err := f.client(f.r.best())
	if err != nil {
		return nil, err
	}
	resp, err := best.Authenticate(ctx, f.o.User, f.o.Password)
	if err != nil {
		return nil, err
	}
	token := credentials.NewPerRPCCredentialBundle()
	token.UpdateAuthToken(resp.Token)
	c, err := f.connect(endpoint, "", token.PerRPCCredentials())
	if err != nil {
		return nil, err
	}
	if _, err := c.Status(ctx, endpoint); err != nil {
		_ = c.Close()
		return nil, notYet{err}
	}
	return &loggedIn{c: c, until: time.Now().Add(borrowed)}, nil
}

// notYet marks an error of a member that has not caught up, or that refused a token: trying again helps.
type notYet struct{ err error }

// Error returns the message of the marked error.
func (n notYet) Error() string { return n.err.Error() }

// forget closes a member's client: a new process does not know the old tokens, and a client that failed waits in its
// back-off.
func (f *field) forget(m *plan.Member) {
	e := f.endpoint(m)
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.clients[e]; c != nil {
		_ = c.c.Close()
		delete(f.clients, e)
	}
}

func (f *field) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.clients {
		_ = c.c.Close()
	}
}
