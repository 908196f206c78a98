package run

import (
	"context"
	"crypto/tls"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/credentials"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	grpccredentials "google.golang.org/grpc/credentials"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
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

// logins keeps the clients of endpoints, logged in.
type logins struct {
	o   *LiveOptions
	tls *tls.Config
	// ctx ends with the run: it bounds logins, of which clients are kept from step to step.
	ctx context.Context
	// best returns a client of the best member, whose tokens learners know.
	best func() (*clientv3.Client, error)

	mu      sync.Mutex
	clients map[string]*loggedIn
}

// secure reads the certificates.
func (l *logins) secure() error {
	if l.o.CACert == "" && l.o.Cert == "" {
		for _, e := range l.o.Endpoints {
			if strings.HasPrefix(e, "https://") {
				l.tls = &tls.Config{MinVersion: tls.VersionTLS12}
			}
		}
		return nil
	}
	info := transport.TLSInfo{CertFile: l.o.Cert, KeyFile: l.o.Key, TrustedCAFile: l.o.CACert}
	c, err := info.ClientConfig()
	l.tls = c
	return err
}

// dial returns the client of an endpoint, which is kept until forget.
func (l *logins) dial(endpoint string) (*clientv3.Client, error) {
	l.mu.Lock()
	have := l.clients[endpoint]
	l.mu.Unlock()
	if have != nil && (have.until.IsZero() || time.Now().Before(have.until)) {
		return have.c, nil
	}
	c, err := l.login(endpoint)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch now := l.clients[endpoint]; now {
	case nil:
	case have:
		_ = have.c.Close()
	default: // someone else was faster
		_ = c.c.Close()
		return now.c, nil
	}
	l.clients[endpoint] = c
	return c.c, nil
}

func (l *logins) login(endpoint string) (*loggedIn, error) {
	c, err := l.connect(endpoint, l.o.User, nil)
	if err != nil && l.o.User != "" && strings.Contains(err.Error(),
		rpctypes.ErrorDesc(rpctypes.ErrGRPCNotSupportedForLearner)) {
		return l.borrow(endpoint)
	}
	if err != nil {
		return nil, err
	}
	return &loggedIn{c: c}, nil
}

// connect makes a client of one endpoint; user "" makes one that does not log in. The end of the run ends a login, and
// the deadline of a single request does not.
func (l *logins) connect(endpoint, user string, creds grpccredentials.PerRPCCredentials) (*clientv3.Client, error) {
	cfg := clientv3.Config{Endpoints: []string{endpoint}, TLS: l.tls, Logger: zap.NewNop(),
		DialKeepAliveTime: 5 * time.Second, DialKeepAliveTimeout: 5 * time.Second,
		DialOptions: []grpc.DialOption{grpc.WithNoProxy(), grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.DefaultConfig, MinConnectTimeout: connectTimeout})}}
	if user != "" {
		cfg.Username, cfg.Password = user, l.o.Password
	}
	if creds != nil {
		cfg.DialOptions = append(cfg.DialOptions, grpc.WithPerRPCCredentials(creds))
	}
	return evidence.Login(l.ctx, cfg)
}

// borrow makes a client of a learner, which refuses logins but requires a token. Tokens are granted through raft, so a
// learner knows a token of the best member once it has applied that entry.
func (l *logins) borrow(endpoint string) (*loggedIn, error) {
	ctx, cancel := context.WithTimeout(l.ctx, evidence.LoginTimeout)
	defer cancel()
	c, err := l.granted(ctx, endpoint)
	if err != nil {
		return nil, err
	}
	if _, err := c.Status(ctx, endpoint); err != nil {
		_ = c.Close()
		return nil, notYet{err}
	}
	return &loggedIn{c: c, until: time.Now().Add(borrowed)}, nil
}

// granted makes a client with a token that the best member has just granted, without one if auth is off. A client that
// logs in by itself asks for another token each time that one is refused, until its time limit.
func (l *logins) granted(ctx context.Context, endpoint string) (*clientv3.Client, error) {
	best, err := l.best()
	if err != nil {
		return nil, err
	}
	resp, err := best.Authenticate(ctx, l.o.User, l.o.Password)
	if sameError(err, rpctypes.ErrAuthNotEnabled) { // it was turned off since the learner was asked to log in
		return l.connect(endpoint, "", nil)
	}
	if err != nil {
		return nil, err
	}
	token := credentials.NewPerRPCCredentialBundle()
	token.UpdateAuthToken(resp.Token)
	return l.connect(endpoint, "", token.PerRPCCredentials())
}

// refused reports whether an endpoint refuses a token that the best member has just granted.
func (l *logins) refused(endpoint string) bool {
	if l.o.User == "" {
		return false
	}
	ctx, cancel := context.WithTimeout(l.ctx, evidence.LoginTimeout)
	defer cancel()
	c, err := l.granted(ctx, endpoint)
	if err != nil {
		return false
	}
	defer func() { _ = c.Close() }()
	_, err = c.Get(ctx, probeKey, clientv3.WithCountOnly(), clientv3.WithSerializable())
	return sameError(err, rpctypes.ErrInvalidAuthToken)
}

// notYet marks an error of a member that has not caught up, or that refused a token: trying again helps.
type notYet struct{ err error }

// Error returns the message of the marked error.
func (n notYet) Error() string { return n.err.Error() }

// forget closes the client of an endpoint: a new process does not know the old tokens, and a client that failed waits
// in its back-off.
func (l *logins) forget(e string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.clients[e]; c != nil {
		_ = c.c.Close()
		delete(l.clients, e)
	}
}

func (l *logins) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.clients {
		_ = c.c.Close()
	}
}
