//go:build e2e

package extract_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/repair/extract"
)

// served is what a running member holds, with its history left out.
func served(t *testing.T, c *clustertest.Cluster) map[string]string {
	t.Helper()
	r, err := c.Client(0).Get(context.Background(), "\x00", clientv3.WithFromKey())
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, k := range r.Kvs {
		out[string(k.Key)] = fmt.Sprintf("%q lease %v", k.Value, k.Lease != 0)
	}
	return out
}

// fill writes keys of all sorts; those below /keep/ are extracted later.
func fill(t *testing.T, c *clustertest.Cluster) {
	t.Helper()
	l, err := c.Client(0).Grant(context.Background(), 3600)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		c.Put(0, fmt.Sprintf("/keep/%03d", i%120), fmt.Sprintf("value %d", i))
		c.Put(0, fmt.Sprintf("/drop/%03d", i), "x")
	}
	c.Put(0, "/keep/leased", "expires", clientv3.WithLease(l.ID))
	c.Put(0, "/keep/binary\x01\xfe", "\x00\xff\n'\"\\ $HOME `id` %s\n")
	c.Put(0, "/keep/empty", "")
	c.Put(0, "/keep/newline\n", "tail\n")
	c.Put(0, "-dash", "not below")
	c.Put(0, "/keep/-o'clock \"$x\" `y` \\", "quoted")
	c.Delete(0, "/keep/007")
}

// kept are the keys that the extracts of these tests select.
func kept(all map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range all {
		if strings.HasPrefix(k, "/keep/") {
			out[k] = v
		}
	}
	return out
}

var below = extract.Selection{Prefixes: [][]byte{[]byte("/keep/")}}

func dbOf(t *testing.T, where string) string {
	t.Helper()
	p, err := evidence.LocateWith(context.Background(), evidence.Spec{Where: where}, evidence.Access{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p.DB
}

// tool is a program that the Makefile builds.
func tool(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(filepath.Dir(clustertest.Server(t, "3.6.16")), name)
}

func command(t *testing.T, env []string, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), env...)
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, b)
	}
}

// TestE2EBackupServes extracts a backup from a running member and from its data dir, restores it with the real etcdutl,
// and starts a real server on it.
func TestE2EBackupServes(t *testing.T) {
	for _, line := range []struct{ server, etcdutl string }{{"3.4.3", "etcdutl-3.6"}, {"3.5.35", "etcdutl-3.6"},
		{"3.6.16", "etcdutl-3.6"}, {"3.7.3", "etcdutl-3.7"}} {
		t.Run(line.server, func(t *testing.T) {
			t.Parallel()
			c := clustertest.Start(t, clustertest.Server(t, line.server), 1, clustertest.Options{})
			fill(t, c)
			want := kept(served(t, c))
			rev := c.Put(0, "/drop/last", "x")
			live := filepath.Join(t.TempDir(), "live.db")
			res := run(t, dbOf(t, c.Endpoint(0)), extract.Options{Format: extract.Backup, Select: below, Out: live})
			soundBackup(t, live, res)
			c.Stop(0)
			offline := filepath.Join(t.TempDir(), "offline.db")
			run(t, dbOf(t, evidencetest.Copy(t, c.DataDir(0))),
				extract.Options{Format: extract.Backup, Select: below, Out: offline})
			for _, backup := range []string{live, offline} {
				if err := os.RemoveAll(c.DataDir(0)); err != nil {
					t.Fatal(err)
				}
				command(t, nil, tool(t, line.etcdutl), "snapshot", "restore", backup, "--data-dir", c.DataDir(0),
					"--name", c.Name(0),
					"--initial-cluster", c.Name(0)+"="+c.PeerURL(0), "--initial-advertise-peer-urls", c.PeerURL(0))
				c.StartProcess(0)
				c.WaitServing(0)
				if d := cmp.Diff(want, served(t, c)); d != "" {
					t.Errorf("%s (-served +restored)\n%s", filepath.Base(backup), d)
				}
				if next := c.Put(0, "/new", "x"); next != rev+1 {
					t.Errorf("the next revision is %d, want %d", next, rev+1)
				}
				c.Stop(0)
			}
		})
	}
}

// TestE2EScriptsPlay plays the scripts with the real etcdctl against a real server.
func TestE2EScriptsPlay(t *testing.T) {
	for _, version := range []string{"3.4.23", "3.5.35", "3.6.16", "3.7.3"} {
		t.Run(version, func(t *testing.T) { scriptsPlay(t, version) })
	}
}

func scriptsPlay(t *testing.T, version string) {
	t.Parallel()
	c := clustertest.Start(t, clustertest.Server(t, version), 1, clustertest.Options{})
	fill(t, c)
	want := kept(served(t, c))
	source := dbOf(t, c.Endpoint(0))
	env := []string{"ETCDCTL=" + tool(t, "etcdctl-3.6"), "ETCDCTL_ENDPOINTS=" + c.Endpoint(0)}
	for _, o := range []extract.Options{{Format: extract.Put}, {Format: extract.Txn},
		{Format: extract.Txn, OnlyIfAbsent: true}} {
		name := fmt.Sprintf("%s-%v", o.Format, o.OnlyIfAbsent)
		o.Select, o.Out = below, filepath.Join(t.TempDir(), name+".sh")
		if res := run(t, source, o); res.Short() {
			t.Fatalf("%s: %+v", name, res)
		}
		c.Delete(0, "\x00", clientv3.WithFromKey())
		command(t, env, "sh", o.Out)
		if d := cmp.Diff(want, served(t, c)); d != "" {
			t.Errorf("%s (-served +played)\n%s", name, d)
		}
	}
	c.Put(0, "/keep/001", "changed")
	only := filepath.Join(t.TempDir(), "only.sh")
	run(t, source, extract.Options{Format: extract.Txn, OnlyIfAbsent: true, Select: below, Out: only})
	command(t, env, "sh", only)
	if got := served(t, c)["/keep/001"]; !strings.Contains(got, "changed") {
		t.Errorf("an existing key was overwritten: %s", got)
	}
}

// TestE2EAcrossLines copies keys from a member of one line into a cluster of another.
func TestE2EAcrossLines(t *testing.T) {
	from := clustertest.Start(t, clustertest.Server(t, "3.4.3"), 1, clustertest.Options{})
	to := clustertest.Start(t, clustertest.Server(t, "3.7.3"), 3, clustertest.Options{})
	fill(t, from)
	want := kept(served(t, from))
	res, err := extract.ToCluster(context.Background(), dbOf(t, from.Endpoint(0)), extract.Options{Select: below},
		extract.Target{Client: to.Client(0), Write: true})
	if err != nil || res.Short() {
		t.Fatalf("%+v %v", res, err)
	}
	if d := cmp.Diff(want, served(t, to)); d != "" {
		t.Errorf("(-source +target)\n%s", d)
	}
}
