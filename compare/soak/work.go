package soak

import (
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

func (h *History) next() int { h.counter++; return h.counter }

// burst makes n random requests through random members. A request that fails is part of the history.
func (h *History) burst(n int) {
	for range n {
		if len(h.voters()) == 0 { // the only member was killed meanwhile
			break
		}
		if h.authOn && h.rng.IntN(6) == 0 {
			h.authWork()
			continue
		}
		if h.authOn {
			h.asUser()
		}
		switch {
		case h.s.Shape.Kube:
			h.kubeWork()
		case h.rng.IntN(8) == 0:
			h.leaseWork()
		default:
			h.kvWork()
		}
	}
	if h.authOn {
		h.c.Login("root", "root secret")
	}
}

// asUser makes the next request one of root or of the user app.
func (h *History) asUser() {
	if h.rng.IntN(2) == 0 {
		h.c.Login("app", "app secret")
		return
	}
	h.c.Login("root", "root secret")
}

func (h *History) key() string { return fmt.Sprintf("/app/k%02d", h.rng.IntN(14)) }

func (h *History) value() string {
	return fmt.Sprintf("value %d %0*d", h.next(), pick(h.rng, 1, 8, 40, 200), h.rng.IntN(1000))
}

func (h *History) lease() clientv3.LeaseID {
	if len(h.leases) == 0 {
		return 0
	}
	return h.leases[h.rng.IntN(len(h.leases))]
}

// kvWork makes one random request on keys.
func (h *History) kvWork() {
	op := h.op(2)
	cli := h.client()
	ctx, cancel := h.context()
	defer cancel()
	_, _ = cli.Do(ctx, op)
}

// op draws an operation; depth bounds nested transactions.
func (h *History) op(depth int) clientv3.Op {
	switch n := h.rng.IntN(20); {
	case n < 8:
		return h.put()
	case n < 11:
		return clientv3.OpDelete(h.key())
	case n < 12:
		from := h.rng.IntN(14)
		return clientv3.OpDelete(fmt.Sprintf("/app/k%02d", from),
			clientv3.WithRange(fmt.Sprintf("/app/k%02d", from+1+h.rng.IntN(4))))
	case n < 13:
		return clientv3.OpDelete(fmt.Sprintf("/app/k%d", h.rng.IntN(3)), clientv3.WithPrefix(), clientv3.WithPrevKV())
	case n < 14 && depth < 2:
		return clientv3.OpGet("/app/", clientv3.WithPrefix())
	case depth > 0:
		return h.txn(depth)
	}
	return h.put()
}

func (h *History) put() clientv3.Op {
	key, val := h.key(), h.value()
	var opts []clientv3.OpOption
	switch n := h.rng.IntN(12); {
	case n < 2:
		opts = append(opts, clientv3.WithLease(h.lease()))
	case n < 3:
		opts = append(opts, clientv3.WithIgnoreLease())
	case n < 4:
		val, opts = "", append(opts, clientv3.WithIgnoreValue())
	case n < 5:
		opts = append(opts, clientv3.WithPrevKV())
	}
	return clientv3.OpPut(key, val, opts...)
}

// txn draws a transaction: compares of all targets and relations, both branches, reads, nested transactions.
func (h *History) txn(depth int) clientv3.Op {
	var cmps []clientv3.Cmp
	for range h.rng.IntN(3) {
		cmps = append(cmps, h.cmp())
	}
	branch := func() []clientv3.Op {
		var ops []clientv3.Op
		for range h.rng.IntN(4) {
			ops = append(ops, h.op(depth-1))
		}
		return ops
	}
	return clientv3.OpTxn(cmps, branch(), branch())
}

func (h *History) cmp() clientv3.Cmp {
	key, rel := h.key(), pick(h.rng, "=", "!=", "<", ">")
	number := func() int64 { return int64(h.rng.IntN(4 + h.counter)) }
	var c clientv3.Cmp
	switch h.rng.IntN(5) {
	case 0:
		c = clientv3.Compare(clientv3.Value(key), rel, fmt.Sprintf("value %d", number()))
	case 1:
		c = clientv3.Compare(clientv3.Version(key), rel, int64(h.rng.IntN(4)))
	case 2:
		c = clientv3.Compare(clientv3.CreateRevision(key), rel, pick(h.rng, 0, number()))
	case 3:
		c = clientv3.Compare(clientv3.ModRevision(key), rel, pick(h.rng, 0, number()))
	case 4:
		c = clientv3.Compare(clientv3.LeaseValue(key), rel, int64(h.lease()))
	}
	if h.rng.IntN(8) == 0 {
		c = c.WithPrefix()
	}
	return c
}

// leaseWork grants leases, some of which expire soon, and revokes them.
func (h *History) leaseWork() {
	kind, old := h.rng.IntN(5), h.lease()
	cli := h.client()
	ctx, cancel := h.context()
	defer cancel()
	switch {
	case kind == 0 && old != 0:
		_, _ = cli.Revoke(ctx, old)
	case kind == 1 && old != 0:
		_, _ = cli.KeepAliveOnce(ctx, old)
	default:
		ttl := int64(3600)
		if kind == 2 {
			ttl = 1
		}
		if r, err := cli.Grant(ctx, ttl); err == nil {
			h.leases = append(h.leases, r.ID)
			_, _ = cli.Put(ctx, h.key(), "leased", clientv3.WithLease(r.ID))
		} else {
			h.leases = append(h.leases, clientv3.LeaseID(h.counter+1))
		}
	}
}
