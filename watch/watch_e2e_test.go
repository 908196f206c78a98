//go:build e2e

package watch_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/watch"
)

// slow gives elections room on a machine that others use too.
var slow = []string{"--heartbeat-interval=200", "--election-timeout=2000"}

func watching(t *testing.T, c *clustertest.Cluster, access evidence.Access, o watch.Options) *watch.Watcher {
	t.Helper()
	var endpoints []string
	for i := range c.Size() {
		endpoints = append(endpoints, c.Endpoint(i))
	}
	o.Members, o.Timeout = watch.Connect(endpoints, access), 20*time.Second
	o.Log = slog.New(slog.NewTextHandler(testLog{t}, nil))
	w := watch.New(o)
	t.Cleanup(func() { _ = w.Close() })
	return w
}

type testLog struct{ t *testing.T }

func (l testLog) Write(p []byte) (int, error) {
	l.t.Log(string(bytes.TrimSpace(p)))
	return len(p), nil
}

// raised runs rounds until a divergence of that kind and member is raised, for a minute at most.
func raised(t *testing.T, w *watch.Watcher, kind watch.Kind, member string) {
	t.Helper()
	for until := time.Now().Add(time.Minute); time.Now().Before(until); time.Sleep(time.Second) {
		_, events := w.Round(context.Background())
		for _, e := range events {
			if e.Kind == kind && slices.Equal(e.Members, []string{member}) {
				return
			}
			t.Errorf("unexpected: %+v", e)
		}
	}
	t.Errorf("no %s divergence of %s within a minute", kind, member)
	r, _ := w.Round(context.Background())
	for _, m := range r.Members {
		t.Logf("%s: %v, %+v, auth %+v", m.Endpoint, m.Err, m.Second, m.Auth)
	}
}

func quiet(t *testing.T, w *watch.Watcher, rounds int) {
	t.Helper()
	for range rounds {
		if _, events := w.Round(context.Background()); len(events) > 0 {
			t.Fatalf("%+v", events)
		}
	}
}

func edit(t *testing.T, dataDir string, f func(tx *bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(filepath.Join(dataDir, "member", "snap", "db"), 0o600, &bbolt.Options{Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(f); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestE2EWatchAltered changes a value in the database of one member.
func TestE2EWatchAltered(t *testing.T) {
	for _, line := range []string{"3.4.23", "3.5.35", "3.6.16", "3.7.3"} {
		t.Run(line, func(t *testing.T) {
			c := clustertest.Start(t, clustertest.Server(t, line), 3, clustertest.Options{Args: slow})
			for n := range 20 {
				c.Put(0, fmt.Sprintf("k%d", n), "soundvalue")
			}
			c.WaitEqual()
			kept := t.TempDir()
			w := watching(t, c, evidence.Access{}, watch.Options{Keep: kept})
			quiet(t, w, 3)
			c.Stop(2)
			edit(t, c.DataDir(2), func(tx *bbolt.Tx) error {
				b := tx.Bucket([]byte("key"))
				k, v := b.Cursor().Last()
				return b.Put(bytes.Clone(k), bytes.Replace(v, []byte("soundvalue"), []byte("otherthing"), 1))
			})
			c.StartProcess(2)
			c.WaitServing(2)
			raised(t, w, watch.KindHash, "node3")
			if dbs, _ := filepath.Glob(filepath.Join(kept, "*-hash", "*.db")); len(dbs) != 3 {
				t.Errorf("kept %q", dbs)
			}
		})
	}
}

// TestE2EWatchSkipped raises the consistent index of a stopped member, so that it skips entries when it starts, as
// 3.5.0 does by its own fault.
func TestE2EWatchSkipped(t *testing.T) {
	c := clustertest.Start(t, clustertest.Server(t, "3.5.0"), 3, clustertest.Options{Args: slow})
	c.Put(0, "k", "v")
	c.WaitEqual()
	w := watching(t, c, evidence.Access{}, watch.Options{})
	quiet(t, w, 3)
	c.Stop(2)
	c.Leader()
	for n := range 6 {
		c.Put(0, fmt.Sprintf("k%d", n), "v")
	}
	edit(t, c.DataDir(2), func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte("meta"))
		i := binary.BigEndian.Uint64(b.Get([]byte("consistent_index")))
		return b.Put([]byte("consistent_index"), binary.BigEndian.AppendUint64(nil, i+4))
	})
	c.StartProcess(2)
	c.WaitServing(2)
	raised(t, w, watch.KindRevision, "node3")
}

// TestE2EWatchAuthReplay restarts a member of 3.4.3, which then applies its last auth entries a second time (etcd issue
// 11651).
func TestE2EWatchAuthReplay(t *testing.T) {
	c := clustertest.Start(t, clustertest.Server(t, "3.4.3"), 3, clustertest.Options{Args: slow})
	c.Put(0, "k", "v")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cli := c.Client(0)
	for _, do := range []func() error{
		func() error { _, err := cli.UserAdd(ctx, "root", "pw"); return err },
		func() error { _, err := cli.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := cli.RoleAdd(ctx, "r"); return err },
		func() error {
			_, err := cli.RoleGrantPermission(ctx, "r", "a", "b", clientv3.PermissionType(clientv3.PermReadWrite))
			return err
		},
		func() error { _, err := cli.AuthEnable(ctx); return err },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	c.Login("root", "pw")
	w := watching(t, c, evidence.Access{User: "root:pw"}, watch.Options{BucketInterval: time.Millisecond})
	quiet(t, w, 3)
	for n := range 5 { // after the last write of a key: the database does not say that they were applied
		_, err := c.Client(0).RoleGrantPermission(ctx, "r", fmt.Sprint(n), "",
			clientv3.PermissionType(clientv3.PermReadWrite))
		if err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(time.Second) // servers commit ten times a second
	c.Kill(1)
	c.StartProcess(1)
	c.WaitServing(1)
	raised(t, w, watch.KindAuth, "node2")
}

// rounds is how often the members of each line are disturbed. WATCH_MINUTES asks for that many minutes in all.
func rounds(t *testing.T) int {
	v := os.Getenv("WATCH_MINUTES")
	if v == "" {
		return 1
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		t.Fatalf("WATCH_MINUTES=%s", v)
	}
	return n // four lines, and a round takes about a quarter of a minute
}

// moveLeader hands the leadership to another member.
func moveLeader(t *testing.T, c *clustertest.Cluster) {
	t.Helper()
	leader := c.Leader()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	st, err := c.Client((leader+1)%3).Status(ctx, c.Endpoint((leader+1)%3))
	if err != nil {
		t.Fatal(err)
	}
	// a leader that lost its office meanwhile is refused, and has moved as well
	_, _ = c.Client(leader).MoveLeader(ctx, st.Header.MemberId)
	c.Leader()
}

// promote makes a voter of a learner as soon as it has caught up.
func promote(t *testing.T, c *clustertest.Cluster, i int) {
	t.Helper()
	c.WaitUntil("the learner is promoted", func(ctx context.Context) error {
		st, err := c.Client(i).Status(ctx, c.Endpoint(i))
		if err == nil {
			_, err = c.Client(c.Leader()).MemberPromote(ctx, st.Header.MemberId)
		}
		return err
	})
}

// TestE2EWatchQuiet: load, compaction, restarts, a leader that moves, and a learner that is added, promoted and removed
// raise nothing.
func TestE2EWatchQuiet(t *testing.T) {
	long := rounds(t)
	for _, line := range []string{"3.4.23", "3.5.35", "3.6.16", "3.7.3"} {
		t.Run(line, func(t *testing.T) {
			c := clustertest.Start(t, clustertest.Server(t, line), 3,
				clustertest.Options{Args: slow, SnapshotCount: 100})
			c.Leader()
			w := watching(t, c, evidence.Access{}, watch.Options{BucketInterval: time.Second})
			ctx, cancel := context.WithCancel(context.Background())
			var wg sync.WaitGroup
			cli := c.Client(0)
			wg.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					time.Sleep(3 * time.Millisecond)
					r, err := cli.Put(ctx, fmt.Sprintf("k%d", n%40), strings.Repeat("x", n%300))
					if err == nil && n%50 == 49 {
						_, _ = cli.Compact(ctx, r.Header.Revision-10)
					}
				}
			})
			done := make(chan error, 1)
			var events []watch.Event
			wg.Go(func() {
				for ctx.Err() == nil {
					_, es := w.Round(ctx)
					events = append(events, es...)
				}
				done <- nil
			})
			for round := range long {
				time.Sleep(2 * time.Second)
				c.Restart(1)
				c.Kill(2)
				time.Sleep(2 * time.Second)
				c.StartProcess(2)
				c.WaitServing(2)
				moveLeader(t, c)
				if round == 0 { // a learner that catches up, is promoted and goes away again; nobody watches it
					added := c.Add(true)
					promote(t, c, added)
					time.Sleep(2 * time.Second)
					c.Remove(added)
				}
				time.Sleep(2 * time.Second)
			}
			cancel()
			wg.Wait()
			if len(events) > 0 {
				t.Errorf("false alarm: %+v", events)
			}
			c.WaitEqual()
			quiet(t, w, 3)
		})
	}
}
