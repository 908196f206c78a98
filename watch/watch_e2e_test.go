//go:build e2e

package watch_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/watch"
)

// slow gives elections room on a machine that others use too.
var slow = []string{"--heartbeat-interval=200", "--election-timeout=2000"}

// secured is a cluster with TLS and auth, as most are.
func secured(t *testing.T, line string, more clustertest.Options) (*clustertest.Cluster, evidence.Access) {
	t.Helper()
	more.TLS, more.Args = true, append([]string{"--bcrypt-cost=4"}, slow...)
	c := clustertest.Start(t, clustertest.Server(t, line), 3, more)
	a := evidence.Access{User: c.EnableAuth()}
	a.CACert, a.Cert, a.Key = c.Certificates()
	return c, a
}

// watching watches all members that the cluster has now.
func watching(t *testing.T, c *clustertest.Cluster, access evidence.Access, o watch.Options) *watch.Watcher {
	t.Helper()
	var endpoints []string
	for i := range c.Size() {
		if c.Running(i) {
			endpoints = append(endpoints, c.Endpoint(i))
		}
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

// raised runs the watch with its usual interval until a divergence of one of these kinds is raised of that member, for
// a minute at most, and then until done returns true.
func raised(t *testing.T, w *watch.Watcher, member string, done func() bool, kinds ...watch.Kind) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = w.Run(ctx) })
	defer wg.Wait()
	defer cancel()
	begun := time.Now()
	for len(w.Open()) == 0 {
		if time.Since(begun) > time.Minute {
			t.Errorf("no divergence of %s within a minute", member)
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	for _, e := range w.Open() {
		t.Logf("raised after %.1f s: %s, %s", time.Since(begun).Seconds(), e.Kind, e.Detail)
		if !slices.Contains(kinds, e.Kind) || !slices.Equal(e.Members, []string{member}) {
			t.Errorf("unexpected: %+v", e)
		}
	}
	for until := time.Now().Add(clustertest.Patience); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(until) {
			t.Error("evidence is not kept")
			return
		}
	}
}

// nothing is kept where no folder for evidence is named.
func nothing() bool { return true }

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

// TestE2EWatchAltered changes a value in the database of one member of a cluster that is written to.
func TestE2EWatchAltered(t *testing.T) {
	for _, line := range []string{"3.4.23", "3.5.35", "3.6.16", "3.7.3"} {
		t.Run(line, func(t *testing.T) {
			c, access := secured(t, line, clustertest.Options{})
			c.Put(0, "altered", "soundvalue")
			c.WaitEqual()
			defer load(t, c)()
			kept := t.TempDir()
			w := watching(t, c, access, watch.Options{Keep: kept})
			quiet(t, w, 3)
			c.Stop(2)
			edit(t, c.DataDir(2), func(tx *bbolt.Tx) error {
				b := tx.Bucket([]byte("key"))
				cur := b.Cursor()
				for k, v := cur.First(); k != nil; k, v = cur.Next() {
					if bytes.Contains(v, []byte("soundvalue")) {
						return b.Put(bytes.Clone(k), bytes.Replace(v, []byte("soundvalue"), []byte("otherthing"), 1))
					}
				}
				return errors.New("no record holds the value")
			})
			c.StartProcess(2)
			c.WaitServing(2)
			raised(t, w, "node3", func() bool {
				dbs, _ := filepath.Glob(filepath.Join(kept, "*-hash", "*.db"))
				next, _ := filepath.Glob(filepath.Join(kept, "*-hash", "next.txt"))
				return len(dbs) == 3 && len(next) == 1
			}, watch.KindHash)
		})
	}
}

// TestE2EWatchSkipped raises the consistent index of a stopped member, so that it skips entries when it starts, as
// 3.5.0 does by its own fault.
func TestE2EWatchSkipped(t *testing.T) {
	c, access := secured(t, "3.5.0", clustertest.Options{})
	c.Put(0, "k", "v")
	c.WaitEqual()
	w := watching(t, c, access, watch.Options{})
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
	raised(t, w, "node3", nothing, watch.KindRevision, watch.KindHash) // keys are lost, and so revisions
}

// TestE2EWatchAuthReplay restarts a member of 3.4.3, which then applies its last auth entries a second time (etcd issue
// 11651). The restart brings forward the snapshot streams, which are read once an hour.
func TestE2EWatchAuthReplay(t *testing.T) {
	c, access := secured(t, "3.4.3", clustertest.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c.Put(0, "k", "v")
	c.WaitEqual()
	w := watching(t, c, access, watch.Options{BucketInterval: time.Hour})
	quiet(t, w, 3)
	for n := range 5 { // after the last write of a key: the database does not say that they were applied
		_, err := c.Client(0).RoleGrantPermission(ctx, "app", fmt.Sprint(n), "",
			clientv3.PermissionType(clientv3.PermReadWrite))
		if err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(time.Second) // servers commit ten times a second
	c.Kill(1)
	c.StartProcess(1)
	c.WaitServing(1)
	raised(t, w, "node2", nothing, watch.KindAuth)
}

// minutes is how long the members of each line are disturbed; without WATCH_MINUTES it is done twice.
func minutes(t *testing.T) time.Duration {
	v := os.Getenv("WATCH_MINUTES")
	if v == "" {
		return 0
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		t.Fatalf("WATCH_MINUTES=%s", v)
	}
	return time.Duration(n) * time.Minute
}

// load writes, changes rights and compacts through the first member until the returned function is called.
func load(t *testing.T, c *clustertest.Cluster) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	cli := c.Client(0)
	wg.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			time.Sleep(10 * time.Millisecond)
			r, err := cli.Put(ctx, fmt.Sprintf("k%d", n%40), strings.Repeat("x", n%300))
			if err == nil && n%500 == 499 {
				_, _ = cli.Compact(ctx, r.Header.Revision-300)
			}
			if n%70 == 69 {
				_, _ = cli.RoleGrantPermission(ctx, "app", fmt.Sprint(n%3), "",
					clientv3.PermissionType(clientv3.PermRead))
				_, _ = cli.RoleRevokePermission(ctx, "app", fmt.Sprint(n%3), "")
			}
		}
	})
	return func() { cancel(); wg.Wait() }
}

// tally is what a watch did in the background.
type tally struct {
	rounds, compared atomic.Int64
	events           []watch.Event // to be read at the end
	end              func()
}

// background makes rounds without a pause until end is called.
func background(w *watch.Watcher) *tally {
	ctx, cancel := context.WithCancel(context.Background())
	n := &tally{}
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			r, es := w.Round(ctx)
			n.rounds.Add(1)
			if watch.Compared(&r) {
				n.compared.Add(1)
			}
			n.events = append(n.events, es...)
		}
	})
	n.end = func() { cancel(); wg.Wait() }
	return n
}

// silent ends a watch and wants it to have compared at least that often and to have raised nothing.
func (n *tally) silent(t *testing.T, least int64) {
	t.Helper()
	n.end()
	if n.compared.Load() < least {
		t.Errorf("%d of %d rounds compared the content of all members, %d make the case", n.compared.Load(),
			n.rounds.Load(), least)
	}
	if len(n.events) > 0 {
		t.Errorf("false alarm: %+v", n.events)
	}
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

// promote makes a voter of a learner as soon as it has caught up. With auth on only the leader does so, and a learner
// takes no login.
func promote(t *testing.T, c *clustertest.Cluster, learner int) {
	t.Helper()
	c.WaitUntil("the learner is promoted", func(ctx context.Context) error {
		for i := range learner {
			if !c.Running(i) {
				continue
			}
			cli := c.Client(i)
			st, err := cli.Status(ctx, c.Endpoint(i))
			if err != nil {
				return err
			}
			if st.Leader != st.Header.MemberId {
				continue
			}
			list, err := cli.MemberList(ctx)
			if err != nil {
				return err
			}
			for _, m := range list.Members {
				if slices.Contains(m.PeerURLs, c.PeerURL(learner)) && m.IsLearner {
					_, err := cli.MemberPromote(ctx, m.ID)
					return err
				}
			}
			return nil
		}
		return rpctypes.ErrNoLeader
	})
	c.WaitServing(learner)
}

// grow adds a learner, which catches up, is promoted, is watched beside the others, and goes away again.
func grow(t *testing.T, c *clustertest.Cluster, access evidence.Access) {
	t.Helper()
	added := c.Add(true)
	n := background(watching(t, c, access, watch.Options{BucketInterval: time.Second}))
	promote(t, c, added)
	for until := time.Now().Add(clustertest.Patience); n.compared.Load() < 2; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(until) {
			t.Errorf("with %s, none of %d rounds compared all members", c.Name(added), n.rounds.Load())
			break
		}
	}
	c.Remove(added)
	c.Kill(added)
	time.Sleep(2 * time.Second)
	n.silent(t, 2)
}

// TestE2EWatchQuiet: load, compaction, changed rights, restarts, killed members, a leader that moves, and members that
// are added as learners, promoted and removed raise nothing.
func TestE2EWatchQuiet(t *testing.T) {
	long := minutes(t)
	for _, line := range []string{"3.4.23", "3.5.35", "3.6.16", "3.7.3"} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			c, access := secured(t, line, clustertest.Options{SnapshotCount: 100})
			c.Leader()
			w := watching(t, c, access, watch.Options{BucketInterval: time.Second})
			n, stop := background(w), load(t, c)
			begun := time.Now()
			for round := 0; round < 2 || time.Since(begun) < long; round++ {
				time.Sleep(2 * time.Second)
				c.Restart(1)
				c.Kill(2)
				time.Sleep(2 * time.Second)
				c.StartProcess(2)
				c.WaitServing(2)
				moveLeader(t, c)
				if round%5 == 0 {
					grow(t, c, access)
				}
				time.Sleep(2 * time.Second)
				if t.Failed() {
					break
				}
				t.Logf("after %v: disturbed %d times", time.Since(begun).Round(time.Second), round+1)
			}
			stop()
			n.silent(t, 1+int64(time.Since(begun)/(2*time.Minute))) // content is asked for 4 times a minute
			t.Logf("%d rounds, %d of them compared the content of all members", n.rounds.Load(), n.compared.Load())
			c.WaitEqual()
			quiet(t, w, 3)
		})
	}
}
