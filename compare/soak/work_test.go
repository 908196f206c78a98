package soak

import (
	"slices"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// kinds collects what operations ask for.
type kinds map[string]bool

func (k kinds) op(op clientv3.Op, depth int) {
	switch {
	case op.IsTxn():
		cmps, then, otherwise := op.Txn()
		k["txn"] = true
		if depth > 0 {
			k["nested txn"] = true
		}
		for _, c := range cmps {
			p := pb.Compare(c)
			k["compare "+p.Target.String()] = true
			k["compare "+p.Result.String()] = true
			if len(p.RangeEnd) > 0 {
				k["compare range"] = true
			}
		}
		for _, o := range slices.Concat(then, otherwise) {
			k.op(o, depth+1)
		}
	case op.IsPut():
		k["put"] = true
		switch {
		case len(op.ValueBytes()) == 0:
			k["put, value ignored"] = true
		case strings.HasPrefix(string(op.ValueBytes()), "value "):
			k["put, value"] = true
		}
	case op.IsDelete():
		k["delete"] = true
		if len(op.RangeBytes()) > 0 {
			k["delete range"] = true
		}
	case op.IsGet():
		k["range"] = true
		if depth > 0 {
			k["range in txn"] = true
		}
	}
}

func TestRequestsOfAllKinds(t *testing.T) {
	h := &History{rng: Rand(1, "history"), leases: []clientv3.LeaseID{7}}
	seen := kinds{}
	for range 3000 {
		seen.op(h.op(2), 0)
	}
	for _, want := range []string{"put", "put, value", "put, value ignored", "delete", "delete range", "txn",
		"nested txn", "range in txn",
		"compare VALUE", "compare VERSION", "compare CREATE", "compare MOD", "compare LEASE",
		"compare EQUAL", "compare NOT_EQUAL", "compare LESS", "compare GREATER", "compare range"} {
		if !seen[want] {
			t.Errorf("no request is a %s", want)
		}
	}
}

func TestSameSeedSameRequests(t *testing.T) {
	draw := func() (out []string) {
		h := &History{rng: Rand(5, "history"), leases: []clientv3.LeaseID{7}}
		for range 200 {
			op := h.op(2)
			out = append(out, string(op.KeyBytes())+"="+string(op.ValueBytes()))
		}
		return out
	}
	if !slices.Equal(draw(), draw()) {
		t.Error("one seed makes different requests")
	}
}

func TestRequestsAsideDoNotMoveTheOthers(t *testing.T) {
	draw := func(aside int) (uint64, int, int) {
		h := &History{rng: Rand(5, "history"), leases: []clientv3.LeaseID{7}}
		h.aside(func() {
			for range aside {
				h.op(2)
				h.leases = append(h.leases, 8)
			}
		})
		return h.rng.Uint64(), h.counter, len(h.leases)
	}
	a1, b1, c1 := draw(1)
	a2, b2, c2 := draw(50)
	if a1 != a2 || b1 != b2 || c1 != c2 {
		t.Errorf("after 1: %d %d %d, after 50: %d %d %d", a1, b1, c1, a2, b2, c2)
	}
}

func TestClientsAtOnceDrawOfTheirOwn(t *testing.T) {
	h := &History{rng: Rand(5, "history"), leases: []clientv3.LeaseID{7}}
	draw := func(h *History) (out []string) {
		for range 50 {
			op := h.op(0)
			out = append(out, string(op.KeyBytes())+"="+string(op.ValueBytes()))
		}
		return out
	}
	a, b := h.alone(0, &clientv3.Client{}), h.alone(1, &clientv3.Client{})
	if a.client() != a.only || a.only == b.only {
		t.Error("a client does not make its own requests")
	}
	a.leases = append(a.leases, 8)
	if slices.Equal(draw(a), draw(b)) {
		t.Error("two clients make the same requests")
	}
	if b.leases = append(b.leases, 9); a.leases[1] != 8 || len(h.leases) != 1 {
		t.Errorf("clients share leases: %v, %v, %v", h.leases, a.leases, b.leases)
	}
}
