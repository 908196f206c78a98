package node

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"path/filepath"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/node/internal/isolation"
)

// MemberConfig says what a member is. The URLs are those of the original cluster: they are advertised, so that the data
// stays what it was, and nothing listens there.
type MemberConfig struct {
	Name, DataDir, WALDir string
	PeerURLs, ClientURLs  []string
	// InitialCluster, Existing and Token matter for an empty dir only: NAME=PEERURL,… of the cluster to found or to
	// join.
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
type Exit = isolation.Exit

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
)

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

// socketPort makes a socket's name look like HOST:PORT, the only form that servers before 3.5.13 take; they make the
// file in their working folder.
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

// advertised returns the client URLs to publish. A member that never published any gets one that nobody can reach.
func (m *Member) advertised() []string {
	if len(m.config.ClientURLs) > 0 {
		return m.config.ClientURLs
	}
	return []string{"http://192.0.2.1:2379"}
}

// Ready waits until the member answers clients. It returns a *StartError when the process ends first. A member without
// quorum never answers; the error then says what was waited for.
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

// answers makes one attempt. The handshake waits until the server accepts, which it does once it has joined its
// cluster; a client made earlier would sit in its back-off.
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
