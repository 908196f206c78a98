package clustertest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/etcd-medic/etcd-medic/release"
)

// member is one server process, or a member that does not run.
type member struct {
	c                      *Cluster
	name, dataDir, logFile string
	clientURL, peerURL     string
	initial, state         string // --initial-cluster and --initial-cluster-state
	binary                 string // if not the cluster's
	flags                  []string
	process                *os.Process
	exited                 chan struct{} // closed when the process has been waited for
	exitErr                error         // valid after exited
	starts                 int
	removed                bool // from the cluster
	once                   []string
}

func (m *member) args() []string {
	a := []string{
		"--name", m.name, "--data-dir", m.dataDir,
		"--listen-client-urls", m.clientURL, "--advertise-client-urls", m.clientURL,
		"--listen-peer-urls", m.peerURL, "--initial-advertise-peer-urls", m.peerURL,
		"--initial-cluster", m.initial, "--initial-cluster-state", m.state, "--initial-cluster-token", "clustertest",
	}
	version := releaseOf(m.path())
	if version.Has(release.FlagLogger).Certain() {
		a = append(a, "--logger", "zap")
	}
	if !m.c.opts.Fsync && version.Has(release.NoFsyncKeepsLog).Certain() {
		a = append(a, "--unsafe-no-fsync")
	}
	if n := m.c.opts.SnapshotCount; n > 0 {
		a = append(a, "--snapshot-count", fmt.Sprint(n))
	}
	return slices.Concat(a, m.tlsFlags(), m.c.opts.Args, m.flags, m.once)
}

// path returns the binary for the next start.
func (m *member) path() string {
	if m.binary != "" {
		return m.binary
	}
	return m.c.binary
}

// releaseOf returns the release in the name of a binary of Server; its flags depend on it. Any other binary counts as
// new.
func releaseOf(binary string) release.Version {
	text, _ := strings.CutPrefix(filepath.Base(binary), "etcd-")
	if v, err := release.Parse(text); err == nil {
		return v
	}
	return release.NewestOf(release.Newest)
}

// start starts the process and returns without waiting for it to serve clients.
func (m *member) start() {
	m.c.t.Helper()
	if m.running() {
		m.c.t.Fatalf("%s runs already", m.name)
	}
	log, err := os.OpenFile(m.logFile, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		m.c.t.Fatal(err)
	}
	m.c.forgetClients(m)
	cmd := exec.Command(m.path(), m.args()...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(cleanEnv(), m.c.opts.Env...)
	cmd.SysProcAttr = processAttributes()
	m.exited = make(chan struct{})
	started := make(chan error)
	go func() {
		// The parent-death signal belongs to the thread that started the process, so this goroutine stays on it until
		// the process ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			m.exitErr = cmd.Wait()
		}
		_ = log.Close()
		close(m.exited)
	}()
	if err := <-started; err != nil {
		m.c.t.Fatalf("start %s: %v", m.name, err)
	}
	m.process = cmd.Process
	m.starts++
}

// cleanEnv returns the environment without variables that etcd would read as flags.
func cleanEnv() []string {
	var env []string
	for _, e := range os.Environ() {
		if len(e) < 5 || e[:5] != "ETCD_" {
			env = append(env, e)
		}
	}
	return env
}

func (m *member) running() bool {
	if m.process == nil {
		return false
	}
	select {
	case <-m.exited:
		return false
	default:
		return true
	}
}

// stop asks the process to end and waits. If it does not end within Patience, the test fails.
func (m *member) stop() {
	m.c.t.Helper()
	m.signal(syscall.SIGTERM)
	select {
	case <-m.exited:
	case <-time.After(Patience):
		m.kill()
		m.c.t.Errorf("%s did not end within %v of SIGTERM", m.name, Patience)
	}
}

// kill ends the process at once.
func (m *member) kill() {
	m.c.t.Helper()
	m.signal(syscall.SIGKILL)
	<-m.exited
}

func (m *member) signal(s syscall.Signal) {
	m.c.t.Helper()
	if m.process == nil {
		m.c.t.Fatalf("%s was not started", m.name)
	}
	if err := m.process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		m.c.t.Errorf("%s: signal %v: %v", m.name, s, err)
	}
}

// end kills the processes that still run, and shows the logs of a failed test.
func (c *Cluster) end() {
	for _, m := range c.members {
		if m.running() {
			m.kill()
		}
	}
	if !c.t.Failed() {
		return
	}
	for _, m := range c.members {
		c.t.Logf("last lines of %s:\n%s", m.logFile, tail(m.logFile, 4000))
	}
}

func tail(name string, n int) string {
	b, err := os.ReadFile(name)
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-n):])
}
