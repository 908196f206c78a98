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

// MemberConfig describes a member. The URLs are those of the original cluster. They are advertised, so that the data
// does not change, but no process listens on them.
type MemberConfig struct {
	Name, DataDir, WALDir string
	PeerURLs, ClientURLs  []string
	// InitialCluster, Existing and Token matter only for an empty dir: NAME=PEERURL,… of the cluster to create or to
	// join.
	InitialCluster  string
	Existing        bool
	Token           string
	ForceNewCluster bool
	// CatchupEntries is how many entries stay in memory after a raft snapshot; 0 means the server's default. See
	// Version.CanSetCatchup.
	CatchupEntries uint64
	// SnapshotCount is how many entries are applied between raft snapshots; 0 means the server's default.
	SnapshotCount uint64
	// QuotaBytes is --quota-backend-bytes; 0 means the server's default.
	QuotaBytes int64
	// ListenClientURLs are additional addresses for clients, besides the sandbox's own socket.
	ListenClientURLs []string
	// Extra are additional flags. The caller makes sure that the server knows them.
	Extra []string
}

// Exit says how a member's process ended.
type Exit = isolation.Exit

// Member is one started process of a member.
type Member struct {
	sandbox     *Sandbox
	config      MemberConfig
	socket      string
	listenPeers []string
	loopback    []string // addresses on which it listens directly, without the proxy
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
	// answerTimeout is how long one attempt of Ready may take; a server answers Status without a quorum.
	answerTimeout = 10 * time.Second
	// anyMember is a name in the certificates of all members, for clients that use several.
	anyMember = "member.sandbox"
)

// Name returns the member's name.
func (m *Member) Name() string { return m.config.Name }

// Config returns the configuration with which the member was started.
func (m *Member) Config() MemberConfig { return m.config }

// Pid returns the process id, which is also the id of its process group.
func (m *Member) Pid() int { return m.pid }

// LogFile returns the file with the member's output of all its starts.
func (m *Member) LogFile() string { return m.logFile }

// Endpoint returns the member's address for clients: a unix socket, which also works across a namespace.
func (m *Member) Endpoint() string { return "unixs://" + m.socket }

// socketPort makes a socket's name look like HOST:PORT, the only form that servers before 3.5.13 accept. They create
// the file in their working folder.
const socketPort = ":1"

// listenURL returns the endpoint in the form that the server accepts.
func (m *Member) listenURL() string {
	if m.sandbox.options.Server.Version.takesSocketPaths() {
		return m.Endpoint()
	}
	return "unixs://" + filepath.Base(m.socket)
}

// workDir returns the working folder of the process.
func (m *Member) workDir() string {
	if m.sandbox.options.Server.Version.takesSocketPaths() {
		return m.sandbox.options.Dir
	}
	return m.sandbox.sockets
}

// advertised returns the client URLs to publish. A member that never published any gets an unreachable one.
func (m *Member) advertised() []string {
	if len(m.config.ClientURLs) > 0 {
		return m.config.ClientURLs
	}
	return []string{"http://192.0.2.1:2379"}
}

// Ready waits until the member serves clients. It returns a *StartError if the process ends first. Without a quorum a
// member never serves; the error then says so.
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
			return fmt.Errorf("%s does not serve clients; it needs a quorum of running members: %w (last attempt: %w)",
				m.config.Name, ctx.Err(), err)
		case <-m.ended:
			return m.startError()
		case <-time.After(retryEvery):
		}
	}
}

// answers makes one attempt. It dials only once the server accepts connections, which it does after it has joined its
// cluster. A client created earlier would wait in its back-off.
func (m *Member) answers(ctx context.Context) error {
	t, err := m.sandbox.TLS(m)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	go func() { // an ended process leaves its socket file
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

// Client returns a client of this member alone. The sandbox closes it.
func (m *Member) Client() (*clientv3.Client, error) { return m.sandbox.Client(m) }
