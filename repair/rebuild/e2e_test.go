//go:build e2e

package rebuild_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/repair/rebuild"
)

// seen is what a cluster showed at a revision.
func seen(t *testing.T, c *clustertest.Cluster, i int, rev int64) (keys []kv) {
	t.Helper()
	r, err := c.Client(i).Get(context.Background(), "\x00", clientv3.WithFromKey(), clientv3.WithRev(rev))
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range r.Kvs {
		keys = append(keys, kv{string(k.Key), string(k.Value), k.CreateRevision, k.ModRevision, k.Version, k.Lease})
	}
	return keys
}

// drive writes a random history through all members, with restarts, and samples what the cluster holds at revisions on
// the way.
func drive(t *testing.T, c *clustertest.Cluster) map[int64][]kv {
	t.Helper()
	rnd := rand.New(rand.NewPCG(11, 12))
	states := map[int64][]kv{}
	var leases []clientv3.LeaseID
	for i := range 240 {
		m := i % c.Size()
		k := fmt.Sprintf("k/%02d", rnd.IntN(40))
		var rev int64
		switch rnd.IntN(10) {
		case 0:
			rev = c.Delete(m, k)
		case 1:
			rev = c.Delete(m, k[:3], clientv3.WithPrefix())
		case 2:
			l, err := c.Client(m).Grant(context.Background(), 5000)
			if err != nil {
				t.Fatal(err)
			}
			leases = append(leases, l.ID)
			rev = c.Put(m, k, "leased", clientv3.WithLease(l.ID))
		case 3:
			if len(leases) > 3 {
				if _, err := c.Client(m).Revoke(context.Background(), leases[0]); err != nil {
					t.Fatal(err)
				}
				leases = leases[1:]
			}
			rev = c.Put(m, k, fmt.Sprint(i))
		case 4, 5:
			rev, _ = c.Txn(m, []clientv3.Cmp{clientv3.Compare(clientv3.Value(k), ">", "5")},
				[]clientv3.Op{clientv3.OpPut("t/"+k, fmt.Sprint(i)), clientv3.OpDelete("k/1", clientv3.WithPrefix()),
					clientv3.OpPut("t/x", "new")},
				[]clientv3.Op{clientv3.OpPut(k, "otherwise"), clientv3.OpGet(k)})
		default:
			rev = c.Put(m, k, fmt.Sprint(i))
		}
		if i%12 == 0 {
			states[rev] = seen(t, c, m, rev)
		}
		if i == 100 {
			c.Restart(1)
		}
		if i == 130 {
			if _, err := c.Client(0).Compact(context.Background(), rev-30); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.WaitEqual()
	return states
}

// TestE2ERebuild records clusters of every line and rebuilds them at sampled revisions, from the logs and over a backup
// taken in between; the end is held against all members.
func TestE2ERebuild(t *testing.T) {
	for _, version := range append(clustertest.Lines, clustertest.OldLines...) {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			c := clustertest.Start(t, clustertest.Server(t, version), 3, clustertest.Options{})
			states := drive(t, c)
			if !strings.HasPrefix(version, "3.3") {
				c.Add(true) // a learner, which 3.3 does not know
				c.WaitEqual()
			}
			var logs []evidence.Spec
			for _, s := range c.Sources() {
				spec, err := evidence.ParseSpec(s)
				if err != nil {
					t.Fatal(err)
				}
				logs = append(logs, spec)
			}
			last := ending(t, version, logs)
			base := ""
			for rev, want := range states {
				out := filepath.Join(t.TempDir(), "out.db")
				res, err := run(t, rebuild.Options{Logs: logs[:1], To: rebuild.Target{Revision: rev}, Out: out})
				if err != nil {
					t.Fatalf("revision %d: %v", rev, err)
				}
				if d := cmp.Diff(want, held(t, out, false)); d != "" || res.To.Revision != rev {
					t.Errorf("revision %d: %+v (-served +rebuilt)\n%s", rev, res, d)
				}
				base = out
			}
			over, err := run(t, rebuild.Options{Base: evidence.Spec{Name: "base", Where: base}, Logs: logs,
				To: rebuild.Target{Last: true}})
			if err != nil || over.HashKV != last.HashKV || over.To != last.To || over.Differs() {
				t.Errorf("over a base: %+v %v\nfrom the log: %+v", over, err, last)
			}
			resume(t, c, logs, last)
		})
	}
}

// ending rebuilds the end and wants every member to hold it, in every bucket that can be compared.
func ending(t *testing.T, version string, logs []evidence.Spec) *rebuild.Result {
	t.Helper()
	last, err := run(t, rebuild.Options{Logs: logs, To: rebuild.Target{Last: true}})
	if err != nil {
		t.Fatal(err)
	}
	if len(last.Verified) != len(logs) || last.Differs() || !last.Equal() {
		t.Errorf("%+v", last)
	}
	open := 0
	for _, v := range last.Verified {
		for _, b := range v.Buckets {
			if b.Equal == release.Unknown {
				open++
				t.Logf("%s %s: %s", v.Member, b.Bucket, b.Why)
			}
		}
	}
	if open > 0 && version >= "3.5" {
		t.Errorf("%d buckets were not compared", open)
	}
	return last
}

// resume gives every voter a database rebuilt at the middle of the log and lets the real servers execute the rest on
// it: they must end where they were, together with a member that kept its own.
func resume(t *testing.T, c *clustertest.Cluster, logs []evidence.Spec, last *rebuild.Result) {
	t.Helper()
	want := seenOffline(t, logs[0].Where)
	for i := range 3 {
		db := filepath.Join(c.DataDir(i), "member", "snap", "db")
		if err := os.Remove(db); err != nil {
			t.Fatal(err)
		}
		res, err := run(t, rebuild.Options{Logs: logs[:1], To: rebuild.Target{Index: last.To.Index/2 + uint64(i)},
			DBOut: db})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s goes on from entry %d/%d", c.Name(i), res.To.Term, res.To.Index)
	}
	for i := range c.Size() {
		c.StartProcess(i)
	}
	for i := range c.Size() {
		c.WaitServing(i)
	}
	_, rev := c.WaitEqual()
	if rev != last.To.Revision {
		t.Errorf("the servers end at revision %d, want %d", rev, last.To.Revision)
	}
	for i := range 3 { // a learner answers no reads
		if d := cmp.Diff(want, seen(t, c, i, 0)); d != "" {
			t.Errorf("%s (-before +after)\n%s", c.Name(i), d)
		}
		if h, _ := c.HashKV(i, rev); h != last.HashKV {
			t.Errorf("%s: HashKV %d, want %d", c.Name(i), h, last.HashKV)
		}
	}
}

// seenOffline are the live keys of a stopped member.
func seenOffline(t *testing.T, dir string) (keys []kv) {
	t.Helper()
	db, err := dumpdb.Open(filepath.Join(dir, "member", "snap", "db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for rev, err := range db.Query(context.Background(), dumpdb.Query{Live: true}) {
		if err != nil {
			t.Fatal(err)
		}
		k := rev.KV
		keys = append(keys, kv{string(k.Key), string(k.Value), k.CreateRevision, k.ModRevision, k.Version, k.Lease})
	}
	return keys
}
