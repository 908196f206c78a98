//go:build e2e

package confirm_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/repair/confirm"
)

// TestE2ERandomHistories has clusters of each line live through a random history, and wants a server of the same
// release, or of the next one that is at hand, to come to the content of every member; then one value of one member is
// altered, and that member alone is refuted.
func TestE2ERandomHistories(t *testing.T) {
	for _, c := range []struct{ wrote, runs string }{
		{"3.3.18", "3.3.18"}, {"3.3.18", "3.5.35"}, {"3.4.3", "3.4.3"}, {"3.4.3", "3.6.16"}, {"3.5.0", "3.5.35"},
		{"3.5.35", "3.5.35"},
		{"3.5.35", "3.6.16"}, {"3.6.16", "3.6.16"}, {"3.7.3", "3.7.3"},
	} {
		t.Run(c.wrote+"-"+c.runs, func(t *testing.T) {
			t.Parallel()
			randomHistory(t, c.wrote, c.runs, 1)
		})
	}
}

func randomHistory(t *testing.T, wrote, runs string, seed uint64) {
	c := clustertest.Start(t, clustertest.Server(t, wrote), 3, clustertest.Options{SnapshotCount: 60})
	w := &work{t: t, c: c, r: rand.New(rand.NewPCG(seed, 1)), old: wrote < "3.4.8"}
	w.steps(80)
	c.Kill(1)
	w.down = 1
	w.steps(20)
	c.Restart(1)
	c.WaitServing(1)
	w.down = 0
	if wrote >= "3.4" {
		i := c.Add(true)
		promote(t, c, i)
		w.steps(20)
	}
	w.auth()
	w.steps(40)
	if !w.old { // up to 3.4.7 a restart executes auth entries again: the defect, and no sound member
		c.Restart(0)
		c.WaitServing(0)
	}
	w.steps(30)
	c.Stop(2)
	w.down = 2
	w.steps(30)
	c.StopAll()
	o := confirm.Options{EtcdBinary: clustertest.Server(t, runs)}
	dirs := make([]string, c.Size())
	wanted := map[string]compare.ConfirmStatus{}
	for i := range dirs {
		dirs[i] = c.DataDir(i)
		wanted[c.Name(i)] = compare.Confirmed
	}
	want(t, ask(t, o, dirs...), wanted)
	altered := evidencetest.Copy(t, dirs[0])
	edit(t, altered, flip(3))
	wanted[c.Name(0)] = compare.Refuted
	want(t, ask(t, o, append([]string{altered}, dirs[1:]...)...), wanted)
}

// promote makes a voter of a learner as soon as it has caught up.
func promote(t *testing.T, c *clustertest.Cluster, i int) {
	c.WaitUntil("the learner is promoted", func(ctx context.Context) error {
		list, err := c.Client(0).MemberList(ctx)
		if err != nil {
			return err
		}
		for _, m := range list.Members {
			if len(m.PeerURLs) > 0 && m.PeerURLs[0] == c.PeerURL(i) && m.IsLearner {
				_, err = c.Client(0).MemberPromote(ctx, m.ID)
			}
		}
		return err
	})
}

// work writes at random.
type work struct {
	t    *testing.T
	c    *clustertest.Cluster
	r    *rand.Rand
	old  bool
	down int
	// leases are those that may still be there.
	leases []clientv3.LeaseID
	rev    int64
}

func (w *work) key() string { return fmt.Sprintf("/k/%02d", w.r.IntN(25)) }

func (w *work) value() string { return fmt.Sprint("value ", w.r.IntN(1000)) }

func (w *work) steps(n int) {
	for range n {
		w.step()
	}
}

// on picks a member that runs.
func (w *work) on() int {
	for {
		if i := w.r.IntN(3); i == 0 || i != w.down {
			return i
		}
	}
}

func (w *work) step() {
	ctx, cancel := context.WithTimeout(w.t.Context(), 20*time.Second)
	defer cancel()
	cli := w.c.Client(w.on())
	switch w.r.IntN(15) {
	case 14:
		w.alarm(ctx, cli)
	case 0:
		if l, err := cli.Grant(ctx, int64(1+w.r.IntN(3)*500)); err == nil {
			w.leases = append(w.leases, l.ID)
		}
	case 1:
		if len(w.leases) > 0 {
			_, _ = cli.Put(ctx, w.key(), w.value(), clientv3.WithLease(w.leases[w.r.IntN(len(w.leases))]))
		}
	case 2:
		if len(w.leases) > 3 {
			_, _ = cli.Revoke(ctx, w.leases[0])
			w.leases = w.leases[1:]
		}
	case 3:
		if w.rev > 20 {
			_, _ = cli.Compact(ctx, w.rev-int64(w.r.IntN(20)))
		}
	case 4:
		_, _ = cli.Delete(ctx, "/k/0", clientv3.WithRange(fmt.Sprintf("/k/%02d", w.r.IntN(10))))
	case 5:
		_, _ = cli.Delete(ctx, w.key())
	case 6, 7:
		k := w.key()
		_, _ = cli.Txn(ctx).If(clientv3.Compare(clientv3.Value(k), []string{"=", ">", "<", "!="}[w.r.IntN(4)],
			w.value())).
			Then(clientv3.OpPut(k, w.value()), clientv3.OpPut(w.key()+"x", w.value()), clientv3.OpGet(w.key())).
			Else(clientv3.OpDelete(k), clientv3.OpTxn([]clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(k), ">",
				0)}, []clientv3.Op{clientv3.OpPut(k, "nested")}, nil)).Commit()
	case 8:
		_, _ = cli.Put(ctx, w.key(), "", clientv3.WithIgnoreValue())
	case 9:
		_, _ = cli.Get(ctx, "/k", clientv3.WithPrefix())
	default:
		if r, err := cli.Put(ctx, w.key(), w.value()); err == nil {
			w.rev = r.Header.Revision
		}
	}
}

// alarm raises or clears one, as a member that is out of space does.
func (w *work) alarm(ctx context.Context, cli *clientv3.Client) {
	action := etcdserverpb.AlarmRequest_ACTIVATE
	if w.r.IntN(2) == 0 {
		action = etcdserverpb.AlarmRequest_DEACTIVATE
	}
	_, _ = etcdserverpb.NewMaintenanceClient(cli.ActiveConnection()).Alarm(ctx,
		&etcdserverpb.AlarmRequest{Action: action, MemberID: 7, Alarm: etcdserverpb.AlarmType_NOSPACE})
}

// auth makes users and roles and switches auth on.
func (w *work) auth() {
	ctx, cancel := context.WithTimeout(w.t.Context(), 30*time.Second)
	defer cancel()
	cli := w.c.Client(0)
	must := func(_ any, err error) {
		if err != nil {
			w.t.Fatal(err)
		}
	}
	must(cli.UserAdd(ctx, "root", "rootpw"))
	must(cli.RoleAdd(ctx, "root"))
	must(cli.UserGrantRole(ctx, "root", "root"))
	must(cli.UserAdd(ctx, "app", "apppw"))
	must(cli.RoleAdd(ctx, "app"))
	must(cli.RoleGrantPermission(ctx, "app", "/k/0", "/k/9", clientv3.PermissionType(clientv3.PermReadWrite)))
	must(cli.UserGrantRole(ctx, "app", "app"))
	must(cli.AuthEnable(ctx))
	w.c.Login("app", "apppw")
	w.steps(15)
	w.c.Login("root", "rootpw")
	must(w.c.Client(0).UserChangePassword(ctx, "app", "another"))
	must(w.c.Client(0).RoleRevokePermission(ctx, "app", "/k/0", "/k/9"))
}

// TestE2ERollingUpgrade: a log that four releases have written, from a v2 request for attributes to what 3.7 proposes,
// is executed by the last of them.
func TestE2ERollingUpgrade(t *testing.T) {
	t.Parallel()
	lines := []string{"3.4.3", "3.5.35", "3.6.16", "3.7.3"}
	c := clustertest.Start(t, clustertest.Server(t, lines[0]), 3, clustertest.Options{})
	w := &work{t: t, c: c, r: rand.New(rand.NewPCG(7, 7))}
	for n, line := range lines {
		for i := range 3 {
			if n > 0 {
				c.Stop(i)
				c.Use(i, clustertest.Server(t, line))
				c.StartProcess(i)
				c.WaitServing(i)
			}
			w.steps(10)
		}
		clusterVersion(t, c, line)
		w.steps(10)
	}
	dirs, wanted := ended(c)
	want(t, ask(t, confirm.Options{EtcdBinary: clustertest.Server(t, "3.7.3")}, dirs...), wanted)
}

// clusterVersion waits until the cluster has come to the version of its servers.
func clusterVersion(t *testing.T, c *clustertest.Cluster, line string) {
	c.WaitUntil("the cluster version is raised", func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Endpoint(0)+"/version", nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err == nil && !strings.Contains(string(b), `"etcdcluster":"`+line[:3]) {
			err = fmt.Errorf("%s", b)
		}
		return err
	})
}

// ended stops a cluster and returns its data dirs, of which every one is to be confirmed.
func ended(c *clustertest.Cluster) ([]string, map[string]compare.ConfirmStatus) {
	c.StopAll()
	wanted := map[string]compare.ConfirmStatus{}
	var dirs []string
	for i := range c.Size() {
		dirs = append(dirs, c.DataDir(i))
		wanted[c.Name(i)] = compare.Confirmed
	}
	return dirs, wanted
}

// TestE2EStrippedRange: up to 3.6 the member that the client talks to refuses a transaction for a range that all others
// drop. Its database is what its release makes of the log: it is not refuted, and the others are confirmed.
func TestE2EStrippedRange(t *testing.T) {
	for _, version := range []string{"3.5.35", "3.6.16"} {
		t.Run(version, func(t *testing.T) { strippedRange(t, version) })
	}
}

func strippedRange(t *testing.T, version string) {
	t.Parallel()
	c := clustertest.Start(t, clustertest.Server(t, version), 3, clustertest.Options{})
	for i := range 20 {
		c.Put(i%3, fmt.Sprint("k", i%5), fmt.Sprint(i))
	}
	_, rev := c.WaitEqual()
	if _, err := c.Client(0).Compact(t.Context(), rev-2); err != nil {
		t.Fatal(err)
	}
	_, err := c.Client(1).Txn(t.Context()).Then(clientv3.OpPut("k1", "only elsewhere"),
		clientv3.OpGet("k1", clientv3.WithRev(rev-10))).Commit()
	if err == nil {
		t.Fatal("the server did not refuse the range")
	}
	for i := range 10 {
		if _, err := c.Client(0).Put(t.Context(), "later", fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	dirs, wanted := ended(c)
	wanted[c.Name(1)] = compare.NotPossible
	r := ask(t, confirm.Options{EtcdBinary: clustertest.Server(t, version)}, dirs...)
	want(t, r, wanted)
	if m := member(t, r, c.Name(1)); m.First == nil {
		t.Errorf("%+v", m)
	}
}

// TestE2EPurgedLog: a cluster whose log no longer reaches back to its first entry, written as kube-apiserver writes, is
// confirmed from a backup that was taken on the way, and not without it.
func TestE2EPurgedLog(t *testing.T) {
	for version, catchUp := range map[string]string{"3.5.35": "--experimental-snapshot-catchup-entries=5",
		"3.6.16": "--snapshot-catchup-entries=5"} {
		t.Run(version, func(t *testing.T) { purgedLog(t, version, catchUp) })
	}
}

func purgedLog(t *testing.T, version, catchUp string) {
	t.Parallel()
	c := clustertest.Start(t, clustertest.Server(t, version), 3, clustertest.Options{SnapshotCount: 10,
		Args: []string{"--max-wals=1", "--max-snapshots=1", catchUp}})
	large := strings.Repeat("x", 1<<20)
	for i := range 75 {
		c.Put(i%3, fmt.Sprint("large/", i%4), large)
	}
	c.WaitUntil("the first segments are purged", func(context.Context) error {
		c.Put(0, "small", "x")
		for i := range 3 {
			left, err := filepath.Glob(filepath.Join(c.DataDir(i), "member", "wal", "0000000000000000-*.wal"))
			if err != nil || len(left) > 0 {
				return fmt.Errorf("%v %w", left, err)
			}
		}
		return nil
	})
	guarded(t, c, 20)
	backup := save(t, c.Client(1))
	guarded(t, c, 60)
	_, rev := c.WaitEqual()
	if _, err := c.Client(2).Compact(t.Context(), rev-10, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	guarded(t, c, 20)
	dirs, wanted := ended(c)
	o := confirm.Options{EtcdBinary: clustertest.Server(t, version)}
	wanted["backup.db"] = compare.NotPossible
	r := ask(t, o, append(dirs, backup)...)
	want(t, r, wanted)
	if b := r.Confirm.Base; b == nil || b.Kind != "backup" || b.Revision < 75 {
		t.Errorf("%+v", b)
	}
	// Without it there is none, or that of the member that was stopped first.
	r = ask(t, o, dirs...)
	if b := r.Confirm.Base; b == nil && r.Confirm.Reason == "" || b != nil && b.Kind != "member-db" ||
		finding(r, "X10") {
		t.Errorf("%+v %+v", b, r.Confirm)
	}
}

// guarded writes as kube-apiserver does: every write is a transaction that compares the mod revision.
func guarded(t *testing.T, c *clustertest.Cluster, n int) {
	t.Helper()
	cli := c.Client(0)
	for i := range n {
		key := fmt.Sprint("/registry/pods/", i%7)
		got, err := cli.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		var rev int64
		if len(got.Kvs) > 0 {
			rev = got.Kvs[0].ModRevision
		}
		op := clientv3.OpPut(key, fmt.Sprint("object ", i))
		if i%5 == 4 {
			op = clientv3.OpDelete(key)
		}
		_, err = cli.Txn(t.Context()).If(clientv3.Compare(clientv3.ModRevision(key), "=",
			rev)).Then(op).Else(clientv3.OpGet(key)).Commit()
		if err != nil {
			t.Fatal(err)
		}
	}
}

// save writes a backup as etcdctl snapshot save does.
func save(t *testing.T, cli *clientv3.Client) string {
	t.Helper()
	rd, err := cli.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer rd.Close()
	path := filepath.Join(t.TempDir(), "backup.db")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(f, rd)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}
