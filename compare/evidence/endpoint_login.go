package evidence

import (
	"context"
	"errors"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// LoginTimeout bounds connection and login: a member computes the hash of the password, and all agree on the token.
// With a high --bcrypt-cost or a busy processor that takes seconds.
const LoginTimeout = 20 * time.Second

// Login is clientv3.New with LoginTimeout, but it returns at once when ctx ends. The client does not end with ctx.
func Login(ctx context.Context, cfg clientv3.Config) (*clientv3.Client, error) {
	return login(ctx, cfg, nil)
}

// login is Login. If the login takes longer than the configured time for connecting, whyNot finds out why the endpoints
// accept no connection; its error ends the login.
func login(ctx context.Context, cfg clientv3.Config, whyNot func(context.Context) error) (*clientv3.Client, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	own, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	var mu sync.Mutex
	over := false // from then on own is the client's alone
	end := func(why error) {
		mu.Lock()
		defer mu.Unlock()
		if !over {
			cancel(why)
		}
	}
	defer context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })()
	if cfg.Username != "" && whyNot != nil {
		defer time.AfterFunc(cfg.DialTimeout, func() {
			if why := whyNot(own); why != nil {
				end(why)
			}
		}).Stop()
	}
	cfg.Context, cfg.DialTimeout = own, max(cfg.DialTimeout, LoginTimeout)
	c, err := clientv3.New(cfg)
	mu.Lock()
	over = true
	mu.Unlock()
	why := context.Cause(own)
	switch {
	case err == nil && why == nil:
		return c, nil
	case err == nil:
		return nil, errors.Join(why, c.Close())
	case why == nil:
		cancel(err) // a probe that still runs ends
		return nil, err
	}
	return nil, why
}
