package clustertest

import (
	"context"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Client returns a client of member i alone, closed when the test ends. It uses the credentials of Login. A login is a
// proposal and hashes a password, which a loaded machine can delay for longer than one attempt; Client repeats it
// until Patience.
func (c *Cluster) Client(i int) *clientv3.Client {
	c.t.Helper()
	var cli *clientv3.Client
	c.WaitUntil("a client of "+c.Name(i)+" is logged in", func(context.Context) (err error) {
		cli, err = c.dial(i)
		if err != nil && !isLoginLate(err) {
			c.t.Fatalf("client of %s: %v", c.Name(i), err)
		}
		return err
	})
	return cli
}

// isLoginLate reports whether err is only about time: another attempt can succeed. A server's own timeout and a member
// without a leader are Unavailable.
func isLoginLate(err error) bool {
	code := status.Code(err)
	var e interface{ Code() codes.Code } // the client's form of a server's error
	if errors.As(err, &e) {
		code = e.Code()
	}
	return errors.Is(err, context.DeadlineExceeded) || code == codes.DeadlineExceeded || code == codes.Unavailable
}

func (c *Cluster) dial(i int) (*clientv3.Client, error) {
	key := clientKey{i, c.user}
	if cli := c.clients[key]; cli != nil {
		return cli, nil
	}
	cfg := clientv3.Config{Endpoints: []string{c.members[i].clientURL}, DialTimeout: 5 * time.Second,
		Logger: zap.NewNop(), Username: c.user, Password: c.password}
	if c.opts.TLS {
		cfg.TLS = c.authority.Client(operator)
	}
	cli, err := clientv3.New(cfg)
	if err != nil {
		return nil, err
	}
	c.t.Cleanup(func() { _ = cli.Close() })
	c.clients[key] = cli
	return cli, nil
}

// forgetClients drops the cached clients of a member. A restarted server does not know their tokens. One of 3.4 repeats
// the same refusal forever to a client that logs in again within the same call.
func (c *Cluster) forgetClients(m *member) {
	for key := range c.clients {
		if key.member < len(c.members) && c.members[key.member] == m {
			delete(c.clients, key)
		}
	}
}

// status asks member i for its state. With auth enabled, some patch releases require a login for that, so it uses the
// client that Login chose.
func (c *Cluster) status(ctx context.Context, i int) (*clientv3.StatusResponse, error) {
	cli, err := c.dial(i)
	if err != nil {
		return nil, err
	}
	return cli.Status(ctx, c.Endpoint(i))
}

// Login makes later clients log in. Empty arguments undo that.
func (c *Cluster) Login(user, password string) { c.user, c.password = user, password }

func (c *Cluster) context() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), Patience)
}
