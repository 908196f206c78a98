package cause_test

import (
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// stored tells of a cluster that takes v2 requests and then a snapshot, whose v2 store one member changes as told.
func stored(storage string, change func(v *clustertest.V2), requests ...v2Request) func(t *testing.T, root string) {
	return grown(storage, func(s *chronicle) {
		for _, h := range s.hands {
			h.Member(a4, true, true)
		}
		for _, r := range requests {
			s.on(func(h *clustertest.Hand, index uint64) { h.V2Request(s.term, index, r.req, r.keys...) })
		}
		s.commit()
		for i, h := range s.hands {
			if i == 1 && change != nil {
				change(&h.V2)
			}
			h.Snapshot(s.term, s.index, a1, a2, a3)
		}
	})
}

// v2Request is a request and the keys that the store holds behind it.
type v2Request struct {
	req  pb.Request
	keys []string
}

func TestV2Store(t *testing.T) {
	put := func(path string, keys ...string) v2Request { return v2Request{v2Put(path), keys} }
	del := func(path string, recursive bool, keys ...string) v2Request {
		r := v2Put(path)
		r.Method, r.Recursive = "DELETE", recursive
		return v2Request{r, keys}
	}
	cond := func(path string, keys ...string) v2Request {
		r := v2Put(path)
		exists := true
		r.PrevExist = &exists
		return v2Request{r, keys}
	}
	ttl := func(path string, keys ...string) v2Request {
		r := v2Put(path)
		r.Expiration = 1_800_000_000_000_000_000
		return v2Request{r, keys}
	}
	keys := func(list ...string) func(v *clustertest.V2) { return func(v *clustertest.V2) { v.Keys = list } }
	bad := []string{"M15"}
	quiet := []string{"v2-content-blocks-36"}
	runTales(t, []tale{
		{name: "as the log says", tell: stored("", nil), class: "healthy", not: quiet},
		{name: "keys as the log says", tell: stored("", nil, put("/1/a", "/1/a"), put("/1/d/b", "/1/a", "/1/d/b"),
			del("/1/a", false, "/1/d/b"), del("/1/d", true)), class: "healthy", not: quiet},
		{name: "a member is missing", tell: stored("", func(v *clustertest.V2) { v.Members = v.Members[1:] }),
			class: "membership", checks: bad},
		{name: "a member too many", tell: stored("", func(v *clustertest.V2) {
			v.Members = append(v.Members, clustertest.V2Member{ID: 0xbb, Peer: "http://127.0.0.1:1"})
		}), class: "membership", checks: bad},
		{name: "another peer URL", tell: stored("",
			func(v *clustertest.V2) { v.Members[0].Peer = "http://elsewhere:2380" }), class: "membership", checks: bad},
		{name: "not a learner", tell: stored("", func(v *clustertest.V2) { v.Members[3].Learner = false }),
			class: "membership", checks: bad},
		{name: "removed too much", tell: stored("", func(v *clustertest.V2) { v.Removed = []uint64{0xbb} }),
			class: "membership", checks: bad},
		{name: "a single member", of: []string{"node2"},
			tell:  stored("", func(v *clustertest.V2) { v.Members[0].Peer = "http://elsewhere:2380" }),
			class: "membership", checks: bad},
		{name: "a single member with a learner", of: []string{"node2"}, tell: stored("", nil), class: "healthy"},
		{name: "3.6 does not boot with it", tell: stored("3.6.0",
			func(v *clustertest.V2) { v.Members = v.Members[1:] }), class: "healthy", checks: bad},
		{name: "a key is missing", tell: stored("", keys("/1/b"), put("/1/a", "/1/a"), put("/1/b", "/1/a", "/1/b")),
			class: "data-divergence", checks: bad},
		{name: "all keys were dropped", of: []string{"node2"}, tell: stored("", keys(), put("/1/a", "/1/a")),
			class: "healthy", checks: bad},
		{name: "all keys were dropped on one of three", tell: stored("", keys(), put("/1/a", "/1/a")),
			class: "membership", checks: bad},
		{name: "a key that nobody wrote", tell: stored("", keys("/1/x")), class: "data-divergence", checks: bad},
		{name: "a deleted key", of: []string{"node2"},
			tell: stored("", keys("/1/a"), put("/1/a", "/1/a"), del("/1/a", false)), class: "db-damage", checks: bad},
		{name: "a key of a condition", of: []string{"node2"}, tell: stored("", keys("/1/a"), cond("/1/a")),
			class: "healthy"},
		{name: "a key that expires", of: []string{"node2"}, tell: stored("", keys(), ttl("/1/a", "/1/a")),
			class: "healthy"},
	})
}
