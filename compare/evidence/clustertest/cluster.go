// Package clustertest runs real etcd servers for tests. Members are processes of a server binary on free loopback ports
// with data dirs below the test's own directory. `make test-servers` builds the binaries from the pinned modules under
// testdata/servers.
//
// Only tests may import it. No test is skipped: a missing binary or a cluster that does not start fails the test and
// shows the servers' logs. All processes are ended by their ids when the test ends.
package clustertest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// Lines are the versions of the server binaries that `make test-servers` builds: one per supported minor version, and
// 3.5.0 for its consistent index bug.
var Lines = []string{"3.5.0", "3.5.35", "3.6.16", "3.7.3"}

// OldLines are the versions before 3.5 that `make test-servers` builds. They always use fsync and have the auth
// revision bug of etcd issue 11651. 3.3 does not support learners.
var OldLines = []string{"3.3.18", "3.4.3"}

// Patience is how long a cluster may take to reach a state that a test waits for.
const Patience = 2 * time.Minute

// Options says how the members of a cluster run. The zero value means etcd's defaults.
type Options struct {
	// SnapshotCount is --snapshot-count: committed entries between raft snapshots. 0 means the server's default.
	SnapshotCount int
	// Fsync keeps fsync on, as on any server before 3.5. Without it a killed process loses nothing, only a machine
	// without power does, and tests are much faster.
	Fsync bool
	// TLS makes members speak https to clients and peers and ask both for a certificate.
	TLS bool
	// Args are further flags for every member.
	Args []string
	// Env is additional environment for every member, as NAME=VALUE. GOFAIL_FAILPOINTS works with binaries built for
	// it.
	Env []string
}

// Cluster is a running cluster. Members are counted from 0; their names are node1, node2, ….
type Cluster struct {
	t       testing.TB
	dir     string
	binary  string
	opts    Options
	members []*member
	// user and password of the clients; empty if auth is not used.
	user, password string
	// clients are cached by member and user: a login is itself a proposal, and slow.
	clients map[clientKey]*clientv3.Client
	// authority issues the certificates of a cluster with TLS.
	authority *Authority
}

type clientKey struct {
	member int
	user   string
}

// Server returns the path of the etcd server binary of a version in Lines.
func Server(t testing.TB, version string) string {
	t.Helper()
	dir := os.Getenv("ETCD_MEDIC_TEST_SERVERS")
	if dir == "" {
		dir = filepath.Join(evidencetest.Root(t), ".tools", "bin")
	}
	path := filepath.Join(dir, "etcd-"+version)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("etcd %s is not built (make test-servers): %v", version, err)
	}
	return path
}

// Start starts a new cluster of n voters and waits until each of them serves clients.
func Start(t testing.TB, binary string, n int, opts Options) *Cluster {
	t.Helper()
	c := &Cluster{t: t, dir: t.TempDir(), binary: binary, opts: opts, clients: map[clientKey]*clientv3.Client{}}
	t.Cleanup(c.end)
	if opts.TLS {
		c.authority = NewAuthority(t, t.TempDir())
		c.authority.Issue(operator)
	}
	var initial []string
	for i := range n {
		m := c.newMember(i)
		c.members = append(c.members, m)
		initial = append(initial, m.name+"="+m.peerURL)
	}
	for _, m := range c.members {
		m.initial, m.state = strings.Join(initial, ","), "new"
		m.start()
	}
	for i := range c.members {
		c.waitServing(i)
	}
	return c
}

func (c *Cluster) newMember(i int) *member {
	name := fmt.Sprintf("node%d", i+1)
	m := &member{
		c: c, name: name, dataDir: filepath.Join(c.dir, name), logFile: filepath.Join(c.dir, name+".log"),
		clientURL: c.scheme() + freeAddress(c.t), peerURL: c.scheme() + freeAddress(c.t),
	}
	if c.opts.TLS {
		c.authority.Issue(name, host(m.clientURL), host(m.peerURL), net.IPv4(127, 0, 0, 1)) // the source of connections
	}
	return m
}

// freeAddress returns a loopback address with an unused port.
func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", loopbackHost()+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// Size returns the number of members, running or not.
func (c *Cluster) Size() int { return len(c.members) }

// Name returns the name of member i.
func (c *Cluster) Name(i int) string { return c.members[i].name }

// DataDir returns the data dir of member i. It changes while the member runs, so stop the member and copy the dir
// before reading it as evidence.
func (c *Cluster) DataDir(i int) string { return c.members[i].dataDir }

// Endpoint returns the client URL of member i.
func (c *Cluster) Endpoint(i int) string { return c.members[i].clientURL }

// PeerURL returns the peer URL of member i.
func (c *Cluster) PeerURL(i int) string { return c.members[i].peerURL }

// Sources stops all members gracefully and returns NAME=DIR for a private copy of each data dir, in the form of the
// command line.
func (c *Cluster) Sources() []string {
	c.t.Helper()
	c.StopAll()
	var out []string
	for i, m := range c.members {
		out = append(out, c.Name(i)+"="+evidencetest.Copy(c.t, m.dataDir))
	}
	return out
}

// Stop ends member i gracefully (SIGTERM) and waits for it.
func (c *Cluster) Stop(i int) { c.t.Helper(); c.members[i].stop() }

// Kill ends member i at once (SIGKILL) and waits for it.
func (c *Cluster) Kill(i int) { c.t.Helper(); c.members[i].kill() }

// StopAll ends every running member gracefully.
func (c *Cluster) StopAll() {
	c.t.Helper()
	for _, m := range c.members {
		if m.running() {
			m.stop()
		}
	}
}

// Restart ends member i gracefully if it runs, starts it again on its data dir and waits until it serves clients.
func (c *Cluster) Restart(i int) {
	c.t.Helper()
	if c.members[i].running() {
		c.members[i].stop()
	}
	c.members[i].start()
	c.waitServing(i)
}

// StartProcess starts member i on its data dir and does not wait for it, for members that should fail or run alone.
func (c *Cluster) StartProcess(i int) { c.t.Helper(); c.members[i].start() }

// StartOnce is StartProcess with additional flags for this one start.
func (c *Cluster) StartOnce(i int, args ...string) {
	c.t.Helper()
	c.members[i].once = args
	c.members[i].start()
	c.members[i].once = nil
}

// Twin copies the data dir of member i, which must not run, and starts a second process with the same identity at other
// addresses. It returns the number of the new member.
func (c *Cluster) Twin(i int) int {
	c.t.Helper()
	m := c.newMember(len(c.members))
	m.initial, m.state = c.members[i].initial, "existing"
	if err := os.CopyFS(m.dataDir, os.DirFS(c.members[i].dataDir)); err != nil {
		c.t.Fatal(err)
	}
	c.members = append(c.members, m)
	m.start()
	return len(c.members) - 1
}

// WaitServing waits until member i, started by StartProcess, answers and knows a leader.
func (c *Cluster) WaitServing(i int) { c.t.Helper(); c.waitServing(i) }

// WaitExit waits until the process of member i has ended by itself.
func (c *Cluster) WaitExit(i int) {
	c.t.Helper()
	select {
	case <-c.members[i].exited:
	case <-time.After(Patience):
		c.t.Fatalf("%s still runs", c.Name(i))
	}
}

// Pause suspends the process of member i: to its peers it looks unreachable. Resume continues it.
func (c *Cluster) Pause(i int) { c.t.Helper(); c.members[i].signal(syscall.SIGSTOP) }

// Resume continues a paused member.
func (c *Cluster) Resume(i int) { c.t.Helper(); c.members[i].signal(syscall.SIGCONT) }

// Running reports whether the process of member i runs.
func (c *Cluster) Running(i int) bool { return c.members[i].running() }

// Wipe deletes the data dir of member i, which must not run. Its next start is that of a new member with the old flags.
func (c *Cluster) Wipe(i int) {
	c.t.Helper()
	if err := os.RemoveAll(c.members[i].dataDir); err != nil {
		c.t.Fatal(err)
	}
}

// Use sets another binary for member i from its next start on: upgrades, downgrades and mixed clusters.
func (c *Cluster) Use(i int, binary string) { c.members[i].binary = binary }

// Flags adds flags for member i from its next start on.
func (c *Cluster) Flags(i int, flags ...string) {
	c.members[i].flags = append(c.members[i].flags, flags...)
}
