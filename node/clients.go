package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TLS returns the TLS settings for a client of the member.
func (s *Sandbox) TLS(m *Member) (*tls.Config, error) {
	return s.ca.clientTLS(s.client, m.socketName())
}

// Client returns a client for these members, or for all running ones if none is named. The sandbox closes it.
func (s *Sandbox) Client(members ...*Member) (*clientv3.Client, error) {
	if len(members) == 0 {
		members = s.running()
	}
	if len(members) == 0 {
		return nil, errors.New("no member is running")
	}
	c, err := s.dial(members)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.Join(errors.New("the sandbox is closed"), c.Close())
	}
	s.clients = append(s.clients, c)
	return c, nil
}

// dial returns a client that the caller closes.
func (s *Sandbox) dial(members []*Member) (*clientv3.Client, error) {
	var endpoints []string
	for _, m := range members {
		endpoints = append(endpoints, m.Endpoint())
	}
	t, err := s.ca.clientTLS(s.client, anyMember)
	if err != nil {
		return nil, err
	}
	return clientv3.New(clientv3.Config{
		Endpoints: endpoints, TLS: t, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{
			// unix sockets need no proxy, and the proxy of the user's shell must not see this traffic
			grpc.WithNoProxy(),
			// A member that has just started refuses the first attempts; the usual back-off would take seconds.
			grpc.WithConnectParams(grpc.ConnectParams{Backoff: quickly, MinConnectTimeout: connectTimeout}),
		},
	})
}

var quickly = backoff.Config{BaseDelay: retryEvery, Multiplier: 1.3, Jitter: 0.2, MaxDelay: 20 * retryEvery}

// Leader returns the running leader and waits for an election if there is none. With auth enabled, MemberPromote must
// be sent to the leader. Other members forward the call without the user, and repeat the refusal for seconds.
func (s *Sandbox) Leader(ctx context.Context) (*Member, error) {
	err := errors.New("no member is running")
	for {
		for _, m := range s.running() {
			var leads bool
			if leads, err = m.leads(ctx); leads {
				return m, nil
			}
			if refusesLogin(err) {
				return nil, fmt.Errorf("%s does not name a leader: %w", m.config.Name, err)
			}
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("there is no leader: %w", ctx.Err()), err)
		case <-time.After(retryEvery):
		}
	}
}

func (m *Member) leads(ctx context.Context) (bool, error) {
	c, err := m.sandbox.dial([]*Member{m})
	if err != nil {
		return false, err
	}
	defer func() { _ = c.Close() }()
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	st, err := c.Status(ctx, m.Endpoint())
	return err == nil && st.Leader == st.Header.GetMemberId(), err
}

// refusesLogin reports whether a server answered, if only to ask for a login.
func refusesLogin(err error) bool {
	switch status.Code(err) {
	case codes.PermissionDenied, codes.Unauthenticated, codes.InvalidArgument:
		return true
	}
	return false
}
