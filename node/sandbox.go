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
)

// Options says how a sandbox runs its members.
type Options struct {
	// Dir is a scratch folder for certificates and logs. It is not removed at the end.
	Dir string
	// Server runs the members.
	Server Server
	// Isolation is Auto when empty.
	Isolation Isolation
	// Auth makes the sandbox's client certificate the login of user root: with auth enabled it may do everything,
	// without a password and without a change to the auth bucket. Otherwise clients log in as usual.
	Auth bool
	// Log is told what the sandbox does; may be nil.
	Log func(string)
	// UnsafeNoFsync lets members write without fsync (from 3.5 on): for dirs that are thrown away.
	UnsafeNoFsync bool
	// StrictReconfig keeps etcd's --strict-reconfig-check, which refuses membership changes until all members were
	// connected for 5 s.
	StrictReconfig bool
	// KnownPeers are all peer URLs that the copies hold, also those of members that are not started here. Without a
	// namespace the loopback ones among them are occupied, because members dial such addresses past the proxy.
	KnownPeers []string
}

// Sandbox is a closed place for the members of one cluster. It is safe for concurrent use.
type Sandbox struct {
	options   Options
	isolation isolation.Runtime
	ca        *authority
	client    pair
	sockets   string
	mode      Isolation // Namespace or Proxy

	mu      sync.Mutex
	members map[string]*Member // by name, the running or last one
	clients []*clientv3.Client
	held    map[string]bool
	closed  bool
}

// New prepares a sandbox. It returns a *RefusedError when the members could not be kept apart from the rest of the
// world.
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
	s := &Sandbox{options: o, members: map[string]*Member{}, held: map[string]bool{}}
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
	return s.hold(s.options.KnownPeers)
}

func (s *Sandbox) commonName() string {
	if s.options.Auth {
		return "root"
	}
	return "sandbox client"
}

// maxSocketPath is what fits into sockaddr_un on every system, less the name of a socket.
const maxSocketPath = 104 - len("/m9999.sock"+socketPort)

// notInURLs are characters that a path of a socket must not have: etcd takes lists of URLs, parted by commas.
const notInURLs = ", \t\n%?#\"'\\"

// socketDir makes a folder for unix sockets, whose paths must be short and plain: in the scratch folder, unless its own
// path is neither.
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
		"takes a shorter one")
}

// isolate finds the isolation that the members run in.
func (s *Sandbox) isolate(ctx context.Context) error {
	if s.options.Isolation != Proxy {
		g, err := isolation.Namespaced(ctx, self(), hiddenKeeper, filepath.Join(s.options.Dir, "keeper"))
		if err == nil {
			s.isolation, s.mode = g, Namespace
			return nil
		}
		if s.options.Isolation == Namespace {
			return &RefusedError{What: "isolation in a network namespace", Reason: err.Error(),
				Hint: "--isolation=proxy does without one"}
		}
		s.options.Log(fmt.Sprintf("no network namespace here (%v); the proxy alone stands between the members", err))
	}
	g, err := isolation.Local()
	if err != nil {
		return err
	}
	s.isolation, s.mode = g, Proxy
	return nil
}

// Isolation returns how the sandbox is isolated: Namespace or Proxy.
func (s *Sandbox) Isolation() Isolation { return s.mode }

// Server returns the server that the members run.
func (s *Sandbox) Server() Server { return s.options.Server }

// Members returns the members that were started, each once, by name.
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

// Stop ends all running members gracefully and waits. A leader that is asked to end hands over first; the last one
// waits seconds for a successor that is gone too. By then nothing can be committed any more and its database has been
// written (every 100 ms), so it is killed.
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
		case <-time.After(settle):
		}
		for _, m := range members {
			errs = append(errs, m.Kill())
		}
		errs = append(errs, <-gone)
	}
	return errors.Join(errs...)
}

// settle is how long the last member may take to write what it has.
const settle = 500 * time.Millisecond

// running returns the members whose processes run, by name.
func (s *Sandbox) running() []*Member {
	var out []*Member
	for _, m := range s.Members() {
		if _, ended := m.Exited(); !ended {
			out = append(out, m)
		}
	}
	return out
}

// Close kills the members that still run, ends clients, proxy and namespace. Data dirs, logs and certificates stay.
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
