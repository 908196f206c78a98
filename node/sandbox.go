package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/node/internal/isolation"
	"github.com/etcd-medic/etcd-medic/refusal"
)

// Options says how a sandbox runs its members.
type Options struct {
	// Dir is a scratch folder for certificates and logs. It is not removed at the end.
	Dir string
	// Server runs the members.
	Server Server
	// Isolation is Auto if empty.
	Isolation Isolation
	// Auth makes the sandbox's client certificate log in as user root. With auth enabled it has all permissions,
	// without a password and without a change to the auth bucket. Otherwise clients log in as usual.
	Auth bool
	// Log receives messages about what the sandbox does; may be nil.
	Log func(string)
	// UnsafeNoFsync lets members write without fsync (3.5 and later), for dirs that are not kept.
	UnsafeNoFsync bool
	// StrictReconfig keeps etcd's --strict-reconfig-check, which refuses membership changes until all members have been
	// connected for 5 s.
	StrictReconfig bool
	// KnownPeers are all peer URLs in the copies, including those of members that are not started here. Without a
	// namespace the loopback ones are reserved, because members dial them without the proxy.
	KnownPeers []string
}

// Sandbox runs the members of one cluster in isolation. It is safe for concurrent use.
type Sandbox struct {
	options   Options
	isolation isolation.Runtime
	ca        *authority
	client    pair
	sockets   string
	mode      Isolation // Namespace or Proxy

	mu       sync.Mutex
	members  map[string]*Member // by name, the running or the last one
	clients  []*clientv3.Client
	reserved map[string]bool
	closed   bool
}

// New prepares a sandbox. It returns a *refusal.Error if the members cannot be isolated.
func New(ctx context.Context, o Options) (*Sandbox, error) {
	if err := inChild(); err != nil {
		return nil, err
	}
	if o.Dir == "" {
		return nil, errors.New("a sandbox needs a scratch folder")
	}
	var err error
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return nil, err
	}
	if o.Server.Path == "" {
		o.Server = Bundled()
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	if err := os.MkdirAll(filepath.Join(o.Dir, "logs"), 0o700); err != nil {
		return nil, err
	}
	s := &Sandbox{options: o, members: map[string]*Member{}, reserved: map[string]bool{}}
	if err := s.prepare(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Sandbox) prepare(ctx context.Context) error {
	var err error
	if s.sockets, err = socketDir(s.options.Dir); err != nil {
		return err
	}
	if s.ca, err = newAuthority(filepath.Join(s.options.Dir, "tls")); err != nil {
		return err
	}
	if s.client, err = s.ca.issue("client", s.commonName(), nil); err != nil {
		return err
	}
	if err := s.isolate(ctx); err != nil {
		return err
	}
	return s.reservePorts(s.options.KnownPeers)
}

func (s *Sandbox) commonName() string {
	if s.options.Auth {
		return "root"
	}
	return "sandbox client"
}

// maxSocketPath is the longest path that fits into sockaddr_un on every system, less the name of a socket.
const maxSocketPath = 104 - len("/m9999.sock"+socketPort)

// notInURLs are characters that a socket's path must not contain: etcd parses lists of URLs, separated by commas.
const notInURLs = ", \t\n%?#\"'\\"

// socketDir creates a folder for unix sockets, whose paths must be short and plain. It is in the scratch folder if that
// folder's path allows it.
func socketDir(scratch string) (string, error) {
	if dir := filepath.Join(scratch, "s"); len(dir) <= maxSocketPath && !strings.ContainsAny(dir, notInURLs) {
		return dir, os.MkdirAll(dir, 0o700)
	}
	for _, parent := range []string{"", "/tmp"} {
		dir, err := os.MkdirTemp(parent, "sandbox-")
		if err != nil {
			continue
		}
		if len(dir) <= maxSocketPath && !strings.ContainsAny(dir, notInURLs) {
			return dir, nil
		}
		_ = os.Remove(dir)
	}
	return "", errors.New("no folder for sockets: the scratch folder's path is too long, and neither TMPDIR nor /tmp " +
		"is usable and shorter")
}

// isolate sets up the isolation of the members.
func (s *Sandbox) isolate(ctx context.Context) error {
	if s.options.Isolation != Proxy {
		g, err := isolation.Namespaced(ctx, self(), hiddenAgent, filepath.Join(s.options.Dir, "agent"))
		if err == nil {
			s.isolation, s.mode = g, Namespace
			return nil
		}
		if s.options.Isolation == Namespace {
			return &refusal.Error{What: "isolation in a network namespace", Reason: err.Error(),
				Hint: "--isolation=proxy works without a namespace"}
		}
		s.options.Log(fmt.Sprintf("network namespaces are not available (%v); using only the proxy", err))
	}
	g, err := isolation.Local()
	if err != nil {
		return err
	}
	s.isolation, s.mode = g, Proxy
	return nil
}

// Isolation returns how the members are isolated: Namespace or Proxy.
func (s *Sandbox) Isolation() Isolation { return s.mode }

// Server returns the server that the members run.
func (s *Sandbox) Server() Server { return s.options.Server }

// Members returns every member that was started, by name.
func (s *Sandbox) Members() []*Member {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*Member
	for _, m := range s.members {
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b *Member) int { return strings.Compare(a.config.Name, b.config.Name) })
	return out
}

// Stop ends all running members gracefully and waits. A leader first transfers its leadership. The last leader would
// wait for seconds, because it has no successor. Nothing can be committed any more at that point, and its database has
// been written (every 100 ms), so it is killed.
func (s *Sandbox) Stop(ctx context.Context) error {
	members := s.running()
	gone := make(chan error, len(members))
	for _, m := range members {
		go func() { gone <- m.Stop(ctx) }()
	}
	var errs []error
	for left := len(members); left > 0; left-- {
		if left > 1 || len(members) == 1 {
			errs = append(errs, <-gone)
			continue
		}
		select {
		case err := <-gone:
			errs = append(errs, err)
			continue
		case <-time.After(lastMemberGrace):
		}
		for _, m := range members {
			errs = append(errs, m.Kill())
		}
		errs = append(errs, <-gone)
	}
	return errors.Join(errs...)
}

// lastMemberGrace is how long the last member may take to write its data.
const lastMemberGrace = 500 * time.Millisecond

// running returns the running members, by name.
func (s *Sandbox) running() []*Member {
	var out []*Member
	for _, m := range s.Members() {
		if _, ended := m.Exited(); !ended {
			out = append(out, m)
		}
	}
	return out
}

// Close kills the members that still run and ends clients, proxy and namespace. Data dirs, logs and certificates stay.
func (s *Sandbox) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	clients := s.clients
	s.mu.Unlock()
	for _, c := range clients {
		_ = c.Close()
	}
	var err error
	if s.isolation != nil {
		err = s.isolation.Close()
	}
	for _, m := range s.Members() {
		<-m.ended
	}
	if s.sockets != "" {
		err = errors.Join(err, os.RemoveAll(s.sockets))
	}
	return err
}
