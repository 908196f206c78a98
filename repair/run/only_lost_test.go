package run

import (
	"context"
	"errors"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// TestOldLogWithLease: a put above the database, with a lease that was granted above it, was only on that member.
func TestOldLogWithLease(t *testing.T) {
	c, m, dir := leftDir(t, func(h *clustertest.Hand) {
		h.RootRequest(7, 0, &etcdserverpb.InternalRaftRequest{
			LeaseGrant: &etcdserverpb.LeaseGrantRequest{ID: 77, TTL: 600}})
		h.RootRequest(8, 0, &etcdserverpb.InternalRaftRequest{
			Put: &etcdserverpb.PutRequest{Key: []byte("/leased"), Value: []byte("v"), Lease: 77}})
	})
	o, e := oldDirOf(t, c, m, dir)
	if err := o.readLog(t.Context(), e); err != nil || len(o.doubts) > 0 {
		t.Fatalf("%v, %q", err, o.doubts)
	}
	if got := o.keys["/leased"]; string(got.value) != "v" || got.lease != 77 {
		t.Errorf("%+v", got)
	}
}

// TestOldLogChangesAuth: up to 3.4 a database does not tell whether it holds a change of users above its consistent
// index.
func TestOldLogChangesAuth(t *testing.T) {
	for applied, want := range map[uint64]int{6: 0, 7: 1} {
		c, m, dir := leftDir(t, func(h *clustertest.Hand) {
			h.RootRequest(7, 0, &etcdserverpb.InternalRaftRequest{
				AuthUserAdd: &etcdserverpb.AuthUserAddRequest{Name: "u", Password: "p"}})
		})
		o, e := oldDirOf(t, c, m, dir)
		e.AppliedMax = applied
		if err := o.readLog(t.Context(), e); err != nil || len(o.doubts) != want {
			t.Errorf("applied up to %d: %v, %q", applied, err, o.doubts)
		}
	}
}

// TestSearchIsInterrupted: a search for the old data dir that is interrupted finds nothing, and does not say that
// nothing is there.
func TestSearchIsInterrupted(t *testing.T) {
	c, m, dir := leftDir(t, nil)
	for _, last := range []bool{false, true} {
		err := c.r.left.keepOnly(canceled(t), &plan.Step{ID: "x"}, m, []string{dir}, last)
		if !errors.Is(err, context.Canceled) || c.r.j.value("only:node2") != "" {
			t.Errorf("last %t: %v, %q", last, err, c.r.j.value("only:node2"))
		}
	}
}

// endedWatcher is that of a client that was closed.
type endedWatcher struct{ clientv3.Watcher }

func (endedWatcher) Watch(context.Context, string, ...clientv3.OpOption) clientv3.WatchChan {
	c := make(chan clientv3.WatchResponse)
	close(c)
	return c
}

// TestWatchOfClosedClient: changes that were not read are not taken for none.
func TestWatchOfClosedClient(t *testing.T) {
	c := newFake(t, fakePlan(t, 1))
	cli := clientv3.NewCtxClient(t.Context())
	cli.Watcher = endedWatcher{}
	if _, err := c.r.watch(t.Context(), cli, 2, 9, nil); !errors.Is(err, errWatchEnded) {
		t.Error(err)
	}
	if _, err := c.r.watch(canceled(t), cli, 2, 9, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
