//go:build e2e

package compare_test

import (
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// put writes COUNT new keys below PREFIX through NODE.
func (s *scenario) put(args []string) {
	for range s.number(args, 2, 1) {
		n := s.next()
		s.c.Put(s.node(args[0]), fmt.Sprintf("%s%03d", args[1], n), fmt.Sprint("value ", n))
	}
}

// overwrite writes the keys PREFIX00.. COUNT times, wrapping after ten, so that they have history.
func (s *scenario) overwrite(args []string) {
	for i := range s.number(args, 2, 1) {
		s.c.Put(s.node(args[0]), fmt.Sprintf("%s%02d", args[1], i%10), fmt.Sprint("value ", s.next()))
	}
}

// load writes COUNT keys below PREFIX through NODE from many clients at once.
func (s *scenario) load(args []string) {
	cli := s.c.Client(s.node(args[0]))
	ctx, cancel := s.context()
	defer cancel()
	const clients = 32
	errs := make(chan error, clients)
	for w := range clients {
		go func() {
			for n := w; n < s.number(args, 2, 1); n += clients {
				if _, err := cli.Put(ctx, fmt.Sprintf("%s%04d", args[1], n%500), fmt.Sprint("value ", n)); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range clients {
		s.must(<-errs)
	}
}

func (s *scenario) del(args []string) {
	for _, k := range args[1:] {
		s.c.Delete(s.node(args[0]), k)
	}
}

func (s *scenario) delRange(args []string) {
	s.c.Delete(s.node(args[0]), args[1], clientv3.WithPrefix())
}

// compareAndSwap reads the keys PREFIX00.. from NODE itself and replaces each if its mod revision is still that, as the
// Kubernetes API server does. Every swap must succeed for its client.
func (s *scenario) compareAndSwap(args []string) {
	i := s.node(args[0])
	for n := range s.number(args, 2, 1) {
		key := fmt.Sprintf("%s%02d", args[1], n%10)
		ctx, cancel := s.context()
		r, err := s.c.Client(i).Get(ctx, key, clientv3.WithSerializable())
		cancel()
		s.must(err)
		var mod int64
		if len(r.Kvs) > 0 {
			mod = r.Kvs[0].ModRevision
		}
		_, held := s.c.Txn(i, []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(key), "=", mod)},
			[]clientv3.Op{clientv3.OpPut(key, fmt.Sprint("swapped ", s.next()))}, []clientv3.Op{clientv3.OpGet(key)})
		if !held {
			s.Fatalf("%s: the swap of %s at %d failed", s.line, key, mod)
		}
	}
}
