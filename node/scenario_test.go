package node_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/node"
)

// scenario goes through what a repair does with a cluster: found it, enable auth, stop it, bring the stopped dirs up
// again, and reseed the last member: removed, added as a learner under its old peer URL, started empty, promoted. It
// takes no testing.T, because it also runs in a traced process.
func scenario(ctx context.Context, dir, urls string, o node.Options) error {
	data := filepath.Join(dir, "data")
	configs := trio(data, urls)
	if err := run(ctx, filepath.Join(dir, "first"), o, configs, enableAuth); err != nil {
		return fmt.Errorf("first life: %w", err)
	}
	o.Auth = true
	second := reseedLast
	if v := o.Server.Version; v.Known() && !v.AtLeast(node.Version{Major: 3, Minor: 4}) {
		second = writeAsRoot // 3.3 knows no learners
	}
	if err := run(ctx, filepath.Join(dir, "second"), o, configs, second); err != nil {
		return fmt.Errorf("second life: %w", err)
	}
	return nil
}

// trio are the configurations of three members of one cluster. urls is a peer URL with %d for the number.
func trio(dir, urls string) []node.MemberConfig {
	var out []node.MemberConfig
	var initial []string
	for i := 1; i <= 3; i++ {
		name := fmt.Sprintf("n%d", i)
		u := fmt.Sprintf(urls, i)
		initial = append(initial, name+"="+u)
		out = append(out, node.MemberConfig{
			Name: name, DataDir: filepath.Join(dir, name), PeerURLs: []string{u},
			ClientURLs: []string{fmt.Sprintf("http://10.9.9.%d:2379", i)}, Token: "t",
		})
	}
	for i := range out {
		out[i].InitialCluster = strings.Join(initial, ",")
	}
	return out
}

// run starts the members, does something with them and stops them.
func run(ctx context.Context, dir string, o node.Options, configs []node.MemberConfig,
	do func(context.Context, *node.Sandbox, []*node.Member) error) (err error) {
	o.Dir = dir
	o.UnsafeNoFsync = true
	s, err := node.New(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	var ms []*node.Member
	for _, c := range configs {
		m, err := s.Start(ctx, c)
		if err != nil {
			return err
		}
		ms = append(ms, m)
	}
	for _, m := range ms {
		if err := m.Ready(ctx); err != nil {
			return err
		}
	}
	if err := do(ctx, s, ms); err != nil {
		return fmt.Errorf("%w\n%s", err, strings.Join(s.Proof().Lines(), "\n"))
	}
	if err := s.Stop(ctx); err != nil {
		return err
	}
	return nil
}

// enableAuth writes through every member and enables auth with a password that is forgotten.
func enableAuth(ctx context.Context, s *node.Sandbox, ms []*node.Member) error {
	c, err := s.Client(ms...)
	if err != nil {
		return err
	}
	for i, m := range ms {
		mc, err := m.Client()
		if err != nil {
			return err
		}
		put := func(ctx context.Context) error { _, err := mc.Put(ctx, fmt.Sprintf("/k%d", i), "v"); return err }
		if err := done(ctx, put); err != nil {
			return err
		}
	}
	for _, step := range []struct {
		what    string
		ask     func(context.Context) error
		already error
	}{
		{"add role root", func(ctx context.Context) error { _, err := c.RoleAdd(ctx, "root"); return err },
			rpctypes.ErrRoleAlreadyExist},
		{"add user root", func(ctx context.Context) error { _, err := c.UserAdd(ctx, "root", "forgotten"); return err },
			rpctypes.ErrUserAlreadyExist},
		{"grant root", func(ctx context.Context) error { _, err := c.UserGrantRole(ctx, "root", "root"); return err },
			nil},
		{"enable auth", func(ctx context.Context) error { _, err := c.AuthEnable(ctx); return err },
			rpctypes.ErrUserEmpty},
	} {
		if err := done(ctx, step.ask, step.already); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return nil
}

// done asks until the answer is that it is done, now or by an attempt before: on a busy machine an election can take
// the answer away.
func done(ctx context.Context, ask func(context.Context) error, already ...error) error {
	_, err := retry(ctx, func(ctx context.Context) (struct{}, error) {
		err := ask(ctx)
		if slices.ContainsFunc(already, func(a error) bool { return errors.Is(err, a) }) {
			err = nil
		}
		return struct{}{}, err
	})
	return err
}

// writeAsRoot writes without the forgotten password.
func writeAsRoot(ctx context.Context, s *node.Sandbox, ms []*node.Member) error {
	c, err := s.Client(ms...)
	if err != nil {
		return err
	}
	return done(ctx, func(ctx context.Context) error { _, err := c.Put(ctx, "/after", "v"); return err })
}

// reseedLast replaces the third member by a learner that starts empty.
func reseedLast(ctx context.Context, s *node.Sandbox, ms []*node.Member) error {
	c, err := s.Client(ms[0], ms[1])
	if err != nil {
		return err
	}
	if err := writeAsRoot(ctx, s, ms[:2]); err != nil {
		return fmt.Errorf("write as root without a password: %w", err)
	}
	fresh, id, err := asLearner(ctx, s, c, ms[2])
	if err != nil {
		return err
	}
	leader, err := s.Leader(ctx)
	if err != nil {
		return err
	}
	lc, err := leader.Client()
	if err != nil {
		return err
	}
	if err := done(ctx, func(ctx context.Context) error { _, err := lc.MemberPromote(ctx, id); return err },
		rpctypes.ErrMemberNotLearner); err != nil {
		return fmt.Errorf("promote: %w", err)
	}
	fc, err := fresh.Client()
	if err != nil {
		return err
	}
	// It refuses reads as a learner does until it has heard of its promotion.
	r, err := retry(ctx, func(ctx context.Context) (*clientv3.GetResponse, error) {
		return fc.Get(ctx, "/", clientv3.WithPrefix())
	})
	if err != nil {
		return fmt.Errorf("read from the new member: %w", err)
	}
	if len(r.Kvs) != 4 {
		return fmt.Errorf("the new member holds %d keys of 4", len(r.Kvs))
	}
	return nil
}

// asLearner stops and removes a member, and adds and starts it again, empty.
func asLearner(ctx context.Context, s *node.Sandbox, c *clientv3.Client, old *node.Member) (fresh *node.Member,
	id uint64, err error) {
	members := func(ctx context.Context) (*clientv3.MemberListResponse, error) { return c.MemberList(ctx) }
	list, err := retry(ctx, members)
	if err != nil {
		return nil, 0, err
	}
	if err := old.Stop(ctx); err != nil {
		return nil, 0, err
	}
	for _, m := range list.Members {
		if m.Name == old.Name() {
			if err := done(ctx, func(ctx context.Context) error { _, err := c.MemberRemove(ctx, m.ID); return err },
				rpctypes.ErrMemberNotFound); err != nil {
				return nil, 0, fmt.Errorf("remove: %w", err)
			}
		}
	}
	conf := old.Config()
	add := func(ctx context.Context) error { _, err := c.MemberAddAsLearner(ctx, conf.PeerURLs); return err }
	if err := done(ctx, add, rpctypes.ErrPeerURLExist, rpctypes.ErrMemberExist); err != nil {
		return nil, 0, fmt.Errorf("add the learner: %w", err)
	}
	if list, err = retry(ctx, members); err != nil {
		return nil, 0, err
	}
	for _, m := range list.Members {
		if m.IsLearner {
			id = m.ID
		}
	}
	conf.DataDir += ".new"
	conf.Existing = true
	if fresh, err = s.Start(ctx, conf); err != nil {
		return nil, 0, err
	}
	return fresh, id, fresh.Ready(ctx)
}

// attempt is how long one call may take; a server gives up after 7 s.
const attempt = 20 * time.Second

// retry calls until a call succeeds or ctx ends. It returns the last error.
func retry[T any](ctx context.Context, f func(context.Context) (T, error)) (T, error) {
	for {
		once, cancel := context.WithTimeout(ctx, attempt)
		r, err := f(once)
		cancel()
		if err == nil || ctx.Err() != nil {
			return r, err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}
