// Package lab builds a small real cluster and breaks it on purpose, so that anyone can try the whole way from a silent
// divergence to a proven repair.
//
// The cluster runs in a sandbox of package node with auth and TLS. Stories lists the ways to break it. The first is
// that of etcd issue 11651: one member's auth revision is raised, so it drops the writes of the others although each is
// acknowledged. No release of etcd reports that.
package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/internal/progress"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/repair/run"
)

// Options say how to create the cluster.
type Options struct {
	// Dir is a scratch folder that does not exist yet.
	Dir string
	// Server is what the members run, by default the bundled one.
	Server    node.Server
	Isolation node.Isolation
	Log       func(string)
}

// Cluster is a running cluster of three members, node1 to node3.
type Cluster struct {
	o       Options
	box     *node.Sandbox
	members []*node.Member
	configs []node.MemberConfig
	// down are members that cannot serve clients; they stay stopped until the repair starts them.
	down [size]bool
}

const (
	size = 3
	// patience is how long a member may take until it serves clients.
	patience = time.Minute
	// snapshotCount makes servers take raft snapshots early, as in an old cluster.
	snapshotCount = 50
)

// Start creates the cluster and enables auth with a user root; the sandbox's client certificate logs in as root.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	if err := os.Mkdir(o.Dir, 0o700); err != nil {
		return nil, err
	}
	box, err := node.New(ctx, node.Options{Dir: filepath.Join(o.Dir, "sandbox"), Server: o.Server,
		Isolation: o.Isolation, Auth: true,
		Log: o.Log, UnsafeNoFsync: true, StrictReconfig: true})
	if err != nil {
		return nil, err
	}
	c := &Cluster{o: o, box: box, members: make([]*node.Member, size)}
	var initial []string
	for i := range size {
		name := fmt.Sprintf("node%d", i+1)
		peer := fmt.Sprintf("http://10.42.0.%d:2380", i+1)
		initial = append(initial, name+"="+peer)
		c.configs = append(c.configs, node.MemberConfig{Name: name, DataDir: filepath.Join(o.Dir, "data", name),
			PeerURLs:   []string{peer},
			ClientURLs: []string{fmt.Sprintf("http://10.42.0.%d:2379", i+1)}, Token: "lab",
			SnapshotCount: snapshotCount})
	}
	for i := range c.configs {
		c.configs[i].InitialCluster = strings.Join(initial, ",")
	}
	if err = c.StartAll(ctx); err == nil {
		err = c.enableAuth(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Close ends all members. Their data dirs stay.
func (c *Cluster) Close() error { return c.box.Close() }

// StartAll starts the stopped members, except those that cannot serve clients, and waits until they do.
func (c *Cluster) StartAll(ctx context.Context) error {
	for i := range c.configs {
		if c.down[i] {
			continue
		}
		if err := c.launch(ctx, i); err != nil {
			return err
		}
	}
	for i, m := range c.members {
		if c.down[i] {
			continue
		}
		if err := ready(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) launch(ctx context.Context, i int) error {
	if m := c.members[i]; m != nil {
		if _, ended := m.Exited(); !ended {
			return nil
		}
	}
	m, err := c.box.Start(ctx, c.configs[i])
	if err == nil { // one that has ended stays, for what is asked of it
		c.members[i] = m
	}
	return err
}

func ready(ctx context.Context, m *node.Member) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	defer progress.Wait(ctx, "waiting for "+m.Name()).End()
	return m.Ready(ctx)
}

// StopAll ends the members, the followers first.
func (c *Cluster) StopAll(ctx context.Context) error {
	var errs []error
	for _, m := range c.members {
		ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
		errs = append(errs, m.Stop(ctx))
		cancel()
	}
	return errors.Join(errs...)
}

func (c *Cluster) enableAuth(ctx context.Context) error {
	cli, err := c.box.Client(c.members[0])
	if err != nil {
		return err
	}
	_, e1 := cli.UserAdd(ctx, "root", "lab-only")
	_, e2 := cli.RoleAdd(ctx, "root")
	if e2 != nil && strings.Contains(e2.Error(), "already") {
		e2 = nil
	}
	_, e3 := cli.UserGrantRole(ctx, "root", "root")
	_, e4 := cli.AuthEnable(ctx)
	return errors.Join(e1, e2, e3, e4)
}

// Client returns a client of member i (from 0) alone, logged in as root.
func (c *Cluster) Client(i int) (*clientv3.Client, error) { return c.members[i].Client() }

// Write puts n keys below prefix through member i and returns how many of them were acknowledged.
func (c *Cluster) Write(ctx context.Context, i int, prefix string, n int) (acknowledged int, err error) {
	cli, err := c.Client(i)
	if err != nil {
		return 0, err
	}
	for k := range n {
		call, cancel := context.WithTimeout(ctx, 10*time.Second)
		_, err := cli.Put(call, fmt.Sprintf("%s%04d", prefix, k), fmt.Sprintf("value %d through node%d", k, i+1))
		cancel()
		if err != nil {
			return acknowledged, err
		}
		acknowledged++
	}
	return acknowledged, nil
}

// Copies copies the data dirs below dir, which must not exist, as an operator would: it stops the members first and
// starts them again.
func (c *Cluster) Copies(ctx context.Context, dir string) error {
	if err := c.StopAll(ctx); err != nil {
		return err
	}
	if err := os.CopyFS(dir, withoutTmp{os.DirFS(filepath.Join(c.o.Dir, "data"))}); err != nil {
		return err
	}
	return c.StartAll(ctx)
}

// withoutTmp hides the segments that etcd has preallocated.
type withoutTmp struct{ fs.FS }

// ReadDir lists a folder without these segments.
func (s withoutTmp) ReadDir(name string) ([]fs.DirEntry, error) {
	all, err := fs.ReadDir(s.FS, name)
	var out []fs.DirEntry
	for _, e := range all {
		if !strings.HasSuffix(e.Name(), ".tmp") {
			out = append(out, e)
		}
	}
	return out, err
}

// Live says how repair apply --mode live reaches this cluster; what is to be done on hosts is done to its processes.
func (c *Cluster) Live() run.LiveOptions {
	o := run.LiveOptions{HostActions: c.hands}
	for _, m := range c.members {
		o.Endpoints = append(o.Endpoints, m.Endpoint())
	}
	for _, f := range c.box.ClientFlags(nil) {
		name, value, _ := strings.Cut(strings.TrimPrefix(f, "--"), "=")
		switch name {
		case "cacert":
			o.CACert = value
		case "cert":
			o.Cert = value
		case "key":
			o.Key = value
		}
	}
	return o
}

// hands stops a member, moves its data dir aside, or starts it.
func (c *Cluster) hands(ctx context.Context, s run.HostStep) error {
	for i := range c.configs {
		cfg := &c.configs[i]
		if cfg.Name != s.Member.ServerName() {
			continue
		}
		switch s.Action {
		case "stop":
			return c.members[i].Stop(ctx)
		case "wipe":
			aside := cfg.DataDir + ".before-repair"
			if _, err := os.Stat(aside); err == nil {
				return nil
			}
			return os.Rename(cfg.DataDir, aside)
		case "start":
			if s.InitialCluster != "" {
				cfg.InitialCluster, cfg.Existing = s.InitialCluster, true
			}
			c.down[i] = false
			return c.launch(ctx, i)
		}
	}
	return fmt.Errorf("no member %s, or no action %q", s.Member.Name, s.Action)
}

// DataDirs returns NAME=DIR of every member.
func (c *Cluster) DataDirs() []string {
	var out []string
	for i := range c.configs {
		out = append(out, c.configs[i].Name+"="+c.configs[i].DataDir)
	}
	return out
}
