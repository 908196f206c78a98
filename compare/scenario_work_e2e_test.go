//go:build e2e

package compare_test

import (
	"context"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// leaseWork grants, revokes and lets expire, with keys attached, detached and moved between leases.
func (s *scenario) leaseWork(args []string) {
	ctx, cancel := s.context()
	defer cancel()
	i := s.node(args[0])
	cli := s.c.Client(i)
	lease := func(ttl int64) clientv3.LeaseID {
		r, err := cli.Grant(ctx, ttl)
		s.must(err)
		return r.ID
	}
	long, revoked, expired, empty := lease(3600), lease(3600), lease(1), lease(3600)
	for n := range 3 {
		s.c.Put(i, fmt.Sprint("/app/lease/long", n), "x", clientv3.WithLease(long))
		s.c.Put(i, fmt.Sprint("/app/lease/revoked", n), "x", clientv3.WithLease(revoked))
		s.c.Put(i, fmt.Sprint("/app/lease/expired", n), "x", clientv3.WithLease(expired))
	}
	s.c.Put(i, "/app/lease/revoked0", "moved", clientv3.WithLease(long))
	s.c.Put(i, "/app/lease/revoked1", "detached")
	s.c.Put(i, "/app/lease/long0", "kept lease", clientv3.WithIgnoreLease())
	s.c.Put(i, "/app/lease/long1", "", clientv3.WithIgnoreValue())
	s.c.Delete(i, "/app/lease/long2")
	_, err := cli.Revoke(ctx, revoked)
	s.must(err)
	_, err = cli.Revoke(ctx, empty)
	s.must(err)
	if _, err := cli.Put(ctx, "/app/lease/none", "x", clientv3.WithLease(revoked)); err == nil {
		s.Fatal("a put with a revoked lease went through")
	}
	if _, err := cli.Put(ctx, "/app/never", "", clientv3.WithIgnoreValue()); err == nil {
		s.Fatal("ignore_value without a key went through")
	}
	s.c.WaitUntil("the short lease has expired", func(ctx context.Context) error {
		r, err := cli.Get(ctx, "/app/lease/expired0")
		if err == nil && len(r.Kvs) > 0 {
			err = fmt.Errorf("its key is still there")
		}
		return err
	})
}

// txnWork runs transactions of every shape: nested, both branches, several writes of one key, deletes of ranges that
// the same transaction wrote, compares of all targets and over ranges, reads only.
func (s *scenario) txnWork(args []string) {
	i := s.node(args[0])
	p := fmt.Sprintf("/app/txn/%d/", s.next())
	s.c.Put(i, p+"a", "m")
	yes := []clientv3.Cmp{clientv3.Compare(clientv3.Value(p+"a"), "=", "m"),
		clientv3.Compare(clientv3.Version(p+"a"), "=", 1)}
	no := []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(p+"a"), "=", 0)}
	put := func(k, v string) clientv3.Op { return clientv3.OpPut(p+k, v) }
	nested := clientv3.OpTxn(yes, []clientv3.Op{put("n1", "1"),
		clientv3.OpTxn(no, []clientv3.Op{put("n2", "2")}, []clientv3.Op{put("n3", "3")})}, nil)
	s.c.Txn(i, yes, []clientv3.Op{put("b", "1"), nested, clientv3.OpGet(p + "b"),
		clientv3.OpDelete(p+"z", clientv3.WithPrefix())}, nil)
	s.c.Txn(i, no, []clientv3.Op{put("never", "1")}, []clientv3.Op{clientv3.OpGet(p + "a")})
	s.c.Txn(i, no, []clientv3.Op{put("never", "1")}, []clientv3.Op{put("else", "1"), clientv3.OpDelete(p + "b"),
		put("c", "2")})
	s.c.Txn(i, nil, []clientv3.Op{clientv3.OpDelete(p+"d", clientv3.WithPrefix()), put("e", "1")}, nil)
	s.c.Txn(i, []clientv3.Cmp{clientv3.Compare(clientv3.Value(p+"a"), "<", "z")}, []clientv3.Op{put("less", "1")},
		[]clientv3.Op{put("notless", "1")})
	s.c.Txn(i, []clientv3.Cmp{clientv3.Compare(clientv3.Value(p+"a"), ">", "z")}, []clientv3.Op{put("more", "1")},
		[]clientv3.Op{put("notmore", "1")})
	s.c.Txn(i, []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(p), ">", 1).WithPrefix()},
		[]clientv3.Op{put("all", "1")}, []clientv3.Op{put("notall", "1")})
	s.c.Txn(i, []clientv3.Cmp{clientv3.Compare(clientv3.LeaseValue(p+"a"), "=", 0)}, []clientv3.Op{put("nolease", "1")},
		nil)
	s.c.Txn(i, nil, []clientv3.Op{clientv3.OpGet(p, clientv3.WithPrefix())}, nil)
	s.c.Txn(i, []clientv3.Cmp{clientv3.Compare(clientv3.Value(p+"gone"), "!=", "x")}, []clientv3.Op{put("x1", "1")},
		[]clientv3.Op{put("x2", "1")})
	s.c.Delete(i, p+"nothing")
	s.c.Delete(i, p+"e", clientv3.WithPrefix(), clientv3.WithPrevKV())
	s.c.Put(i, p+"a", "again", clientv3.WithPrevKV())
	s.c.Delete(i, p+"a")
	s.c.Put(i, p+"a", "reborn")
}

// denied makes requests that the user app has no permission for: they must be refused.
func (s *scenario) denied(args []string) {
	s.c.Login("app", "app secret")
	defer s.c.Login("root", "root secret")
	cli := s.c.Client(s.node(args[0]))
	ctx, cancel := s.context()
	defer cancel()
	_, put := cli.Put(ctx, "/other", "x")
	_, del := cli.Delete(ctx, "/", clientv3.WithPrefix())
	_, txn := cli.Txn(ctx).If(clientv3.Compare(clientv3.Version("/other"), "=", 0)).Then(clientv3.OpPut("/app/x",
		"1")).Commit()
	_, els := cli.Txn(ctx).Then(clientv3.OpPut("/app/x", "1")).Else(clientv3.OpPut("/other", "1")).Commit()
	_, role := cli.RoleAdd(ctx, "mine")
	for _, err := range []error{put, del, txn, els, role} {
		if err == nil {
			s.Fatalf("%s: a request without permission went through", s.line)
		}
	}
	s.c.Put(s.node(args[0]), "/app/mine", "allowed")
}

// fill writes large values through NODE until the NOSPACE alarm refuses them.
func (s *scenario) fill(args []string) {
	cli := s.c.Client(s.node(args[0]))
	ctx, cancel := s.context()
	defer cancel()
	for n := 0; ; n++ {
		if _, err := cli.Put(ctx, fmt.Sprintf("/app/fill%d", n%3),
			strings.Repeat("x", 50_000)+fmt.Sprint(n)); err != nil {
			s.Logf("refused after %d: %v", n, err)
			return
		}
		if n > 200 {
			s.Fatalf("%s: no alarm", s.line)
		}
	}
}

func (s *scenario) disarm(args []string) {
	ctx, cancel := s.context()
	defer cancel()
	_, err := s.c.Client(s.node(args[0])).AlarmDisarm(ctx, &clientv3.AlarmMember{})
	s.must(err)
}

// refused makes requests that a NOSPACE alarm refuses and some that it lets through.
func (s *scenario) refused(args []string) {
	cli := s.c.Client(s.node(args[0]))
	ctx, cancel := s.context()
	defer cancel()
	s.c.WaitUntil("puts are refused", func(ctx context.Context) error {
		if _, err := cli.Put(ctx, "/app/nospace", "x"); err == nil {
			return fmt.Errorf("a put went through")
		}
		return nil
	})
	_, _ = cli.Grant(ctx, 100)
	_, _ = cli.Txn(ctx).Then(clientv3.OpPut("/app/nospace2", "x")).Commit()
	_, _ = cli.Txn(ctx).Then(clientv3.OpDelete("/app/fill0")).Commit() // some versions refuse it before it is proposed
	_, err := cli.Delete(ctx, "/app/fill1")
	s.must(err)
}

// badTxn proposes a writing transaction with a read that must fail (a future revision): the server that the client
// talks to refuses it, up to 3.6 the others apply it.
func (s *scenario) badTxn(args []string) {
	ctx, cancel := s.context()
	defer cancel()
	_, err := s.c.Client(s.node(args[0])).Txn(ctx).Then(clientv3.OpGet("/app/x", clientv3.WithRev(1<<40)),
		clientv3.OpPut("/app/stripped", "1")).Commit()
	if err == nil {
		s.Fatal("the transaction went through")
	}
}
