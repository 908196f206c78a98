package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/internal/ctxtest"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// leftDir is a fake repair of a cluster whose node2 was stopped: its copy ended before it wrote /db, which is in its
// database, and /log, which is only in its log.
func leftDir(t *testing.T, fill func(h *clustertest.Hand)) (*fakeCluster, *plan.Member, string) {
	t.Helper()
	const id = 0xa2
	h := clustertest.NewHand(t, t.TempDir(), "node2", id, fakeClusterID)
	h.Found(false, 0xa1, id)
	h.Member(0xa1, false, true)
	h.Member(id, false, true)
	h.State(2, id, 3)
	h.Request(2, 3, nil)
	h.Put(2, 4, clustertest.RequestID(id, 1, 1), "/before", "x", true)
	h.Put(2, 5, clustertest.RequestID(id, 1, 2), "/db", "in its database", true)
	h.Put(2, 6, clustertest.RequestID(id, 1, 3), "/log", "in its log", false)
	if fill != nil {
		fill(h)
	}
	h.State(2, id, 20)
	dir := h.Close(5, 2)
	c := newFake(t, fakePlan(t, 3, "node2"))
	c.r.limits.step = 20 * time.Millisecond
	m := c.r.plan.Member("node2")
	m.ID, m.Revision, m.Applied = id, 2, 4
	return c, m, dir
}

// oldDirOf reads the data dir that a member left.
func oldDirOf(t *testing.T, c *fakeCluster, m *plan.Member, dir string) (*oldDir, *evidence.Member) {
	t.Helper()
	at, set := c.r.left.findOldDir(t.Context(), m, []string{dir})
	if at != dir {
		t.Fatalf("%s is not the data dir of %s", dir, m.Name)
	}
	t.Cleanup(func() { _ = set.Close() })
	return &oldDir{cluster: c.r.left.cluster, m: m, known: map[change]int32{}, h: newHistory(),
		keys: map[string]held{}}, set.Members[0]
}

// TestOldDirComesSecond: a place that holds no data dir is passed over.
func TestOldDirComesSecond(t *testing.T) {
	c, m, dir := leftDir(t, nil)
	places := []string{t.TempDir(), dir}
	if err := c.r.left.keepOnly(t.Context(), &plan.Step{ID: "x"}, m, places, true); err != nil {
		t.Fatal(err)
	}
	if o := c.r.onlyHeld(); len(o) != 1 || o[0].Dir != dir || o[0].Keys != 2 || o[0].Unknown != "" {
		t.Errorf("%+v", o)
	}
}

// TestOnlyHeldIsInterrupted: a comparison that is interrupted notes nothing, so that the next process makes it.
func TestOnlyHeldIsInterrupted(t *testing.T) {
	c, m, dir := leftDir(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	c.read = func(uint64) { cancel() }
	if err := c.r.left.keepOnly(ctx, &plan.Step{ID: "x"}, m, []string{dir}, true); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	m.Action = plan.Remove
	c.set(uint64(m.ID), true)
	c.r.limits.poll, c.r.limits.step = time.Hour, time.Hour // it is not waited for
	later, end := context.WithCancel(t.Context())
	once := ctxtest.Asked{Context: later, Do: func() error { // it ends after the first question
		defer end()
		return later.Err()
	}}
	for _, ctx := range []context.Context{canceled(t), once} {
		err := c.r.left.keepRemoved(ctx, &plan.Step{ID: "x", Member: "node2"}, m)
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	if o := c.r.onlyHeld(); len(o) > 0 {
		t.Errorf("noted: %+v", o)
	}
}

// TestOnlyHeldIsNotKnown: where the keys cannot be compared, or the script cannot be written, that is said.
func TestOnlyHeldIsNotKnown(t *testing.T) {
	for name, tc := range map[string]struct {
		set  func(c *fakeCluster)
		want string
	}{
		"the kept one ends": {func(c *fakeCluster) { c.read = func(uint64) { c.set(1, false) } }, "read from node1: "},
		"no place for the script": {func(c *fakeCluster) {
			c.r.backup = filepath.Join(t.TempDir(), "gone", "backup.db")
		}, "no such file"},
	} {
		c, m, dir := leftDir(t, nil)
		tc.set(c)
		if err := c.r.left.keepOnly(t.Context(), &plan.Step{ID: "x"}, m, []string{dir}, true); err != nil {
			t.Fatal(err)
		}
		o := c.r.onlyHeld()
		if len(o) != 1 || o[0].Script != "" || !strings.Contains(o[0].Unknown, tc.want) {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

// TestOldDirHoldsTooMuch: what does not fit in memory is an error of each part that is read.
func TestOldDirHoldsTooMuch(t *testing.T) {
	c, m, dir := leftDir(t, nil)
	o, e := oldDirOf(t, c, m, dir)
	o.bytes = heldBytes
	wantError(t, "its database", o.readDB(e), "it changed more than 256 MiB")
	wantError(t, "its log", o.readLog(t.Context(), e), "it changed more than 256 MiB")
	c.wrote(1, 12, "k", "v")
	o.known = make(map[change]int32, driftEvents)
	for i := range uint64(driftEvents) {
		o.known[change{i}] = 1
	}
	if err := o.readBest(t.Context()); !errors.Is(err, errTooMany) {
		t.Errorf("the changes of node1: %v", err)
	}
}

// TestOldLogIsNotRead: a log that is missing or is not read to its end is an error.
func TestOldLogIsNotRead(t *testing.T) {
	c, m, dir := leftDir(t, nil)
	o, e := oldDirOf(t, c, m, dir)
	wantError(t, "no log", o.readLog(t.Context(), &evidence.Member{}), "it has none")
	if err := o.readLog(canceled(t), e); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if len(o.doubts) > 0 {
		t.Errorf("%q", o.doubts)
	}
}

// TestOldLogIsUnsure: entries whose effect depends on what is not known, or that are no requests, are counted.
func TestOldLogIsUnsure(t *testing.T) {
	for name, tc := range map[string]struct {
		fill func(h *clustertest.Hand)
		want string
	}{
		"it reads what is not there yet": {func(h *clustertest.Hand) {
			h.RootRequest(7, 0, &etcdserverpb.InternalRaftRequest{Txn: &etcdserverpb.TxnRequest{
				Success: []*etcdserverpb.RequestOp{{Request: &etcdserverpb.RequestOp_RequestRange{
					RequestRange: &etcdserverpb.RangeRequest{Key: []byte("z"), Revision: 1000}}}}}})
		}, "the outcome of 1 of 2 writes in its log above its database is unknown"},
		"no request": {func(h *clustertest.Hand) {
			h.Request(2, 7, &etcdserverpb.InternalRaftRequest{Header: &etcdserverpb.RequestHeader{ID: 7}})
		}, "the outcome of 1 of 1 writes in its log above its database is unknown"},
	} {
		c, m, dir := leftDir(t, tc.fill)
		o, e := oldDirOf(t, c, m, dir)
		if err := o.readLog(t.Context(), e); err != nil || !slices.Equal(o.doubts, []string{tc.want}) {
			t.Errorf("%s: %v, %q", name, err, o.doubts)
		}
	}
}

// TestOldKeysAreTooMany: as many keys as drifts compare are compared, and the rest is said.
func TestOldKeysAreTooMany(t *testing.T) {
	c, m, dir := leftDir(t, nil)
	o, _ := oldDirOf(t, c, m, dir)
	for i := range driftKeys + 1 {
		o.keys[fmt.Sprintf("k%05d", i)] = held{value: []byte("v")}
	}
	keys, err := o.differing(t.Context())
	want := []string{"it changed 10001 keys; the first 10000 were compared"}
	if err != nil || len(keys) != driftKeys || keys[driftKeys-1] != "k09999" || !slices.Equal(o.doubts, want) {
		t.Errorf("%d keys, %v, %q", len(keys), err, o.doubts)
	}
}

// TestScriptHasNoLeases: a script is written without the leases that cannot be read, and says so.
func TestScriptHasNoLeases(t *testing.T) {
	c, m, dir := leftDir(t, func(h *clustertest.Hand) { h.Row("lease", "short", "\xff") })
	o, e := oldDirOf(t, c, m, dir)
	o.keys["/db"] = held{value: []byte("v")}
	path, err := o.save(e, []string{"/db"})
	if err != nil || !slices.Equal(o.doubts, []string{"its leases cannot be read"}) {
		t.Errorf("%v, %q", err, o.doubts)
	}
	o.backup = filepath.Join(t.TempDir(), "gone", "backup.db")
	if other, err := o.save(e, []string{"/db"}); !errors.Is(err, fs.ErrNotExist) || other != "" || path == "" {
		t.Errorf("%q, %v", other, err)
	}
}
