//go:build e2e

package rebuild_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/repair/rebuild"
)

// TestE2ESkipStarts leaves a deletion of everything out of the logs of real servers: the result passes verify, and a
// server that etcdutl restores from it has the keys that the deletion took, at a revision that no client has seen.
func TestE2ESkipStarts(t *testing.T) {
	for version, etcdutl := range map[string]string{"3.4.23": "etcdutl-3.6", "3.5.35": "etcdutl-3.6",
		"3.6.16": "etcdutl-3.6", "3.7.3": "etcdutl-3.7"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			c := clustertest.Start(t, clustertest.Server(t, version), 1, clustertest.Options{})
			for i := range 60 {
				c.Put(0, fmt.Sprintf("k%02d", i%40), fmt.Sprint(i))
			}
			want := keysOf(t, c)
			mistake := c.Delete(0, "k", clientv3.WithPrefix())
			c.Put(0, "after", "it")
			last := c.Put(0, "after", "again")
			want["after"] = "again"
			c.StopAll()
			dir := evidencetest.Copy(t, c.DataDir(0))
			at := indexOf(t, dir, mistake)
			out := filepath.Join(t.TempDir(), "out.db")
			res, err := run(t, rebuild.Options{Logs: []evidence.Spec{{Where: dir}}, To: rebuild.Target{Last: true},
				Skip: []uint64{at}, Out: out})
			if err != nil || res.To.Revision != last || res.To.CompactRevision < mistake {
				t.Fatalf("%+v %v, want revision %d compacted at %d", res, err, last, mistake)
			}
			passes(t, out)
			if err := os.RemoveAll(c.DataDir(0)); err != nil {
				t.Fatal(err)
			}
			tool := filepath.Join(filepath.Dir(clustertest.Server(t, version)), etcdutl)
			b, err := exec.Command(tool, "snapshot", "restore", out, "--data-dir", c.DataDir(0), "--name", c.Name(0),
				"--initial-cluster", c.Name(0)+"="+c.PeerURL(0), "--initial-advertise-peer-urls",
				c.PeerURL(0)).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, b)
			}
			c.StartProcess(0)
			c.WaitServing(0)
			if d := cmp.Diff(want, keysOf(t, c)); d != "" {
				t.Errorf("(-wanted +served)\n%s", d)
			}
			if rev := c.Put(0, "next", "write"); rev != last+1 {
				t.Errorf("the next write has revision %d, want %d", rev, last+1)
			}
		})
	}
}

// indexOf is the index of the entry that made a revision.
func indexOf(t *testing.T, dir string, rev int64) uint64 {
	t.Helper()
	res, err := run(t, rebuild.Options{Logs: []evidence.Spec{{Where: dir}}, To: rebuild.Target{Revision: rev - 1}})
	if err != nil {
		t.Fatal(err)
	}
	return res.To.Index + 1
}

func keysOf(t *testing.T, c *clustertest.Cluster) map[string]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r, err := c.Client(0).Get(ctx, "\x00", clientv3.WithFromKey())
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, k := range r.Kvs {
		out[string(k.Key)] = string(k.Value)
	}
	return out
}

// TestE2ETimeSplits writes objects whose own times lie close together to real servers and rebuilds between any two of
// them: no entry that was proposed after the time asked for is executed.
func TestE2ETimeSplits(t *testing.T) {
	for _, version := range []string{"3.4.23", "3.5.35", "3.6.16", "3.7.3"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			c := clustertest.Start(t, clustertest.Server(t, version), 1, clustertest.Options{})
			begin := time.Now().UTC().Add(time.Hour).Truncate(time.Second) // later than what request IDs show
			at := func(i int) time.Time { return begin.Add(time.Duration(i) * 130 * time.Millisecond) }
			for i := range 20 {
				c.Put(0, fmt.Sprintf("/registry/configmaps/n/%02d", i),
					`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"managedFields":[{"time":"`+
						at(i).Format("2006-01-02T15:04:05.000000Z")+`"}]}}`)
			}
			c.StopAll()
			dir := evidencetest.Copy(t, c.DataDir(0))
			for i := range 19 {
				res, err := run(t, rebuild.Options{Logs: []evidence.Spec{{Where: dir}},
					To: rebuild.Target{Time: at(i).Add(60 * time.Millisecond)}})
				if err != nil || res.Keys != int64(i+1) {
					t.Errorf("after %d: %+v %v", i, res, err)
				}
			}
		})
	}
}
