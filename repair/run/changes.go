package run

import (
	"cmp"
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// changes reads a member's changes of keys in a range of revisions, from its own database. gap is the revision up to
// which changes were compacted, 0 when none were. Of these the keys that were live at gap are still there, and are read
// as the puts that they came from. A key may be read twice if the member is compacted meanwhile.
func (cl *cluster) changes(ctx context.Context, m *plan.Member, from, to int64,
	f func(*clientv3.Event) error) (gap int64,
	err error) {
	for from <= to {
		c, _, err := cl.host.client(m)
		if err != nil {
			return gap, err
		}
		at, err := cl.watch(ctx, c, from, to, f)
		if err != nil || at == 0 {
			return gap, err
		}
		gap = at
		switch err := cl.remaining(ctx, m, from, at, f); {
		case sameError(err, rpctypes.ErrCompacted):
			continue // once more, at the newer compact revision
		case err != nil:
			return gap, err
		}
		from = at + 1
	}
	return gap, nil
}

// livePage is how many keys one request lists.
const livePage = 10_000

// remaining reads the keys that were live at a revision and last changed since another. A server that filters keys by
// revision itself reads all values at once for that, so the keys are listed in pages.
func (cl *cluster) remaining(ctx context.Context, m *plan.Member, from, at int64, f func(*clientv3.Event) error) error {
	for next := "\x00"; ; {
		page, err := cl.serializably(ctx, m, next, clientv3.WithFromKey(), clientv3.WithRev(at),
			clientv3.WithKeysOnly(), clientv3.WithLimit(livePage))
		if err != nil {
			return err
		}
		for _, kv := range page.Kvs {
			next = string(kv.Key) + "\x00"
			if kv.ModRevision < from {
				continue
			}
			whole, err := cl.serializably(ctx, m, string(kv.Key), clientv3.WithRev(at))
			if err != nil {
				return err
			}
			for _, kv := range whole.Kvs {
				if err := f(&clientv3.Event{Type: clientv3.EventTypePut, Kv: kv}); err != nil {
					return err
				}
			}
		}
		if !page.More || len(page.Kvs) == 0 {
			return nil
		}
	}
}

func (cl *cluster) watch(ctx context.Context, c *clientv3.Client, from, to int64,
	f func(*clientv3.Event) error) (compactRevision int64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for resp := range c.Watch(ctx, "\x00", clientv3.WithFromKey(), clientv3.WithRev(from)) {
		if resp.CompactRevision > 0 {
			return resp.CompactRevision, nil
		}
		if err := resp.Err(); err != nil {
			return 0, err
		}
		for _, e := range resp.Events {
			if e.Kv.ModRevision > to {
				return 0, nil
			}
			if err := f(e); err != nil {
				return 0, err
			}
		}
		if n := len(resp.Events); n > 0 && resp.Events[n-1].Kv.ModRevision >= to {
			return 0, nil
		}
	}
	return 0, cmp.Or(ctx.Err(), errWatchEnded)
}

// errWatchEnded: a watch whose client was closed says no more.
var errWatchEnded = errors.New("the watch ended before all changes were read")
