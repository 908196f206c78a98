package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"github.com/etcd-medic/etcd-medic/node/internal/isolation"
	"github.com/etcd-medic/etcd-medic/refusal"
)

// killAfter is how long a member may take to end. A leader waits up to its request timeout (7 s) for its successor.
const killAfter = 20 * time.Second

var oddCharacters = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// Start starts a member and returns as soon as its process runs; Ready waits until it serves clients. A member that
// ended can be started again under its name.
func (s *Sandbox) Start(ctx context.Context, c MemberConfig) (*Member, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m, err := s.newMember(c)
	if err != nil {
		return nil, err
	}
	if err := m.launch(); err != nil {
		s.forget(m)
		var r *refusal.Error
		if errors.As(err, &r) {
			return nil, err
		}
		return nil, fmt.Errorf("start %s: %w", c.Name, err)
	}
	go m.watch()
	s.options.Log(fmt.Sprintf("%s: started, process %d", c.Name, m.pid))
	return m, nil
}

func (m *Member) launch() error {
	if err := m.listen(); err != nil {
		return err
	}
	if err := m.certify(); err != nil {
		return err
	}
	if st, err := os.Stat(m.logFile); err == nil {
		m.logStart = st.Size()
	}
	_ = os.Remove(m.socket) // left over from a kill
	s, sv := m.sandbox, m.sandbox.options.Server
	pid, err := s.isolation.Launch(isolation.Launch{
		Path: sv.Path, Args: append(append([]string{}, sv.Args...), m.flags()...), Env: m.environment(),
		Dir: m.workDir(), Log: m.logFile,
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m.pid = pid
	return nil
}

// newMember registers a member under its name.
func (s *Sandbox) newMember(c MemberConfig) (*Member, error) {
	if c.Name == "" || c.DataDir == "" || len(c.PeerURLs) == 0 {
		return nil, errors.New("a member needs a name, a data dir and a peer URL")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.New("the sandbox is closed")
	}
	old := s.members[c.Name]
	if old != nil {
		if _, ended := old.Exited(); !ended {
			return nil, fmt.Errorf("%s runs already", c.Name)
		}
	}
	m := &Member{sandbox: s, config: c, ended: make(chan struct{})}
	if old != nil {
		m.socket, m.logFile = old.socket, old.logFile
	} else {
		n := len(s.members) + 1
		m.socket = filepath.Join(s.sockets, fmt.Sprintf("m%d.sock", n))
		if !s.options.Server.Version.takesSocketPaths() {
			m.socket += socketPort
		}
		m.logFile = filepath.Join(s.options.Dir, "logs",
			fmt.Sprintf("%d-%s.log", n, oddCharacters.ReplaceAllString(c.Name, "_")))
	}
	s.members[c.Name] = m
	return m, nil
}

// forget marks a member that never ran as ended.
func (s *Sandbox) forget(m *Member) {
	m.exit = Exit{Code: -1}
	close(m.ended)
}

func (m *Member) watch() {
	exit, err := m.sandbox.isolation.Wait(m.pid)
	if err != nil {
		exit = Exit{Code: -1, Signal: err.Error()}
		isolation.AwaitEnd(m.pid) // the agent ended first
	}
	m.exit = exit
	m.sandbox.reserveAgain(m)
	close(m.ended)
}

// Exited returns how the process ended, false while it runs.
func (m *Member) Exited() (Exit, bool) {
	select {
	case <-m.ended:
		return m.exit, true
	default:
		return Exit{}, false
	}
}

// Stop ends the member gracefully and waits: at SIGTERM a leader first transfers its leadership. Stop kills the member
// when ctx ends, or after twenty seconds.
func (m *Member) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, killAfter)
	defer cancel()
	if err := m.signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-m.ended:
		return nil
	case <-ctx.Done():
		return m.Kill()
	}
}

// Kill ends the member at once and waits.
func (m *Member) Kill() error {
	if err := m.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-m.ended
	return nil
}

func (m *Member) signal(s syscall.Signal) error {
	if _, ended := m.Exited(); ended {
		return nil
	}
	return m.sandbox.isolation.Signal(m.pid, s)
}
