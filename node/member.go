package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/node/internal/ground"
)

// MemberConfig says what a member is. The URLs are those of the original cluster: they are advertised, so that the data stays what it
// was, and nothing listens there.
type MemberConfig struct {
	Name, DataDir, WALDir string
	PeerURLs, ClientURLs  []string
	// InitialCluster, Existing and Token matter for an empty dir only: NAME=PEERURL,… of the cluster to found or to join.
	InitialCluster  string
	Existing        bool
	Token           string
	ForceNewCluster bool
	// CatchupEntries is how many entries stay in memory behind a raft snapshot; 0 leaves the server's own number. See
	// Version.CanSetCatchup.
	CatchupEntries uint64
	// SnapshotCount is how many entries are applied between raft snapshots; 0 leaves the server's own number.
	SnapshotCount uint64
	// QuotaBytes is --quota-backend-bytes; 0 leaves the server's own.
	QuotaBytes int64
	// ListenClientURLs are further addresses for clients, beside the sandbox's own socket.
	ListenClientURLs []string
	// Extra are further flags; the caller answers for the server's knowing them.
	Extra []string
}

// Exit tells how a member's process ended.
type Exit = ground.Exit

// Member is a member that was started: one process.
type Member struct {
	sandbox     *Sandbox
	config      MemberConfig
	socket      string
	listenPeers []string
	loopback    []string // addresses that it listens on instead of being led to
	peer        pair
	server      pair
	pid         int
	logFile     string
	logStart    int64
	ended       chan struct{}
	exit        Exit // valid after ended
}

const (
	retryEvery     = 20 * time.Millisecond
	connectTimeout = 30 * time.Second
	// anyMember is a name that the certificates of all members carry, for clients of several.
	anyMember = "member.sandbox"
	// killAfter is how long a member may take to end when nothing else is said.
	killAfter = 10 * time.Second
)

var oddCharacters = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// Start starts a member and returns as soon as its process runs; Ready waits until it serves. A member that ended can be started again
// under its name.
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
		var r *RefusedError
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
	_ = os.Remove(m.socket) // left behind by a kill
	s, sv := m.sandbox, m.sandbox.options.Server
	pid, err := s.ground.Launch(ground.Launch{
		Path: sv.Path, Args: append(append([]string{}, sv.Args...), m.flags()...), Env: m.environment(), Dir: m.workDir(), Log: m.logFile,
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m.pid = pid
	return nil
}

// newMember takes the place of a name.
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
		m.logFile = filepath.Join(s.options.Dir, "logs", fmt.Sprintf("%d-%s.log", n, oddCharacters.ReplaceAllString(c.Name, "_")))
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
	exit, err := m.sandbox.ground.Wait(m.pid)
	if err != nil {
		exit = Exit{Code: -1, Signal: err.Error()}
		ground.AwaitEnd(m.pid) // the keeper ended first
	}
	m.exit = exit
	m.sandbox.takeBack(m)
	close(m.ended)
}

// Name returns the member's name.
func (m *Member) Name() string { return m.config.Name }

// Config returns what the member was started with.
func (m *Member) Config() MemberConfig { return m.config }

// Pid returns the process id, which is also that of its process group.
func (m *Member) Pid() int { return m.pid }

// LogFile returns the file that holds what the member wrote, over all of its starts.
func (m *Member) LogFile() string { return m.logFile }

// Endpoint returns where clients reach the member: a unix socket, which also leads into a namespace.
func (m *Member) Endpoint() string { return "unixs://" + m.socket }

// socketPort makes a socket's name look like HOST:PORT, the only form that servers before 3.5.13 take; they make the file in their
// working folder.
const socketPort = ":1"

// listenURL is the endpoint as the server must be told it.
func (m *Member) listenURL() string {
	if m.sandbox.options.Server.Version.takesSocketPaths() {
		return m.Endpoint()
	}
	return "unixs://" + filepath.Base(m.socket)
}

// workDir is the folder that the process runs in.
func (m *Member) workDir() string {
	if m.sandbox.options.Server.Version.takesSocketPaths() {
		return m.sandbox.options.Dir
	}
	return m.sandbox.sockets
}

// Exited tells how the process ended, false while it runs.
func (m *Member) Exited() (Exit, bool) {
	select {
	case <-m.ended:
		return m.exit, true
	default:
		return Exit{}, false
	}
}

// advertised returns the client URLs to publish. A member that never published any gets one that nobody can reach.
func (m *Member) advertised() []string {
	if len(m.config.ClientURLs) > 0 {
		return m.config.ClientURLs
	}
	return []string{"http://192.0.2.1:2379"}
}

// Ready waits until the member answers clients. It returns a *StartError when the process ends first. A member without quorum never
// answers; the error then says what was waited for.
func (m *Member) Ready(ctx context.Context) error {
	for {
		select {
		case <-m.ended:
			return m.startError()
		default:
		}
		err := m.answers(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not serve clients, which takes a quorum of running members: %w (last attempt: %w)", m.config.Name, ctx.Err(), err)
		case <-m.ended:
			return m.startError()
		case <-time.After(retryEvery):
		}
	}
}

// answers makes one attempt. The handshake waits until the server accepts, which it does once it has joined its cluster; a client made
// earlier would sit in its back-off.
func (m *Member) answers(ctx context.Context) error {
	t, err := m.sandbox.TLS(m)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // an ended process leaves its socket behind
		select {
		case <-m.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	d := tls.Dialer{Config: t, NetDialer: &net.Dialer{}}
	c, err := d.DialContext(ctx, "unix", m.socket)
	if err != nil {
		return err
	}
	_ = c.Close()
	cl, err := m.sandbox.dial([]*Member{m})
	if err != nil {
		return err
	}
	defer func() { _ = cl.Close() }()
	_, err = cl.Status(ctx, m.Endpoint())
	if refusesLogin(err) {
		return nil
	}
	return err
}

// Client returns a client of this member alone. It ends with the sandbox.
func (m *Member) Client() (*clientv3.Client, error) { return m.sandbox.Client(m) }

// Stop ends the member gracefully (SIGTERM: a leader hands over first) and waits. When ctx ends first, or after ten seconds without a
// deadline in ctx, it is killed.
func (m *Member) Stop(ctx context.Context) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, killAfter)
		defer cancel()
	}
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
	return m.sandbox.ground.Signal(m.pid, s)
}
