package node

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/etcd-medic/etcd-medic/refusal"
)

// peer is a parsed peer URL.
type peer struct {
	scheme, host, port string
	loopback           bool
}

func (p peer) address() string { return net.JoinHostPort(p.host, p.port) }

// parsePeer reads a peer URL as etcd does (client/pkg/types/urls.go): http or https, HOST:PORT, no path.
func parsePeer(s string) (peer, error) {
	u, err := url.Parse(strings.TrimSpace(s))
	if err != nil {
		return peer{}, err
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return peer{}, &refusal.Error{What: "peer URL " + s,
			Reason: "the sandbox's proxy supports only http and https"}
	}
	host, port, err := net.SplitHostPort(u.Host)
	if err != nil {
		return peer{}, fmt.Errorf("peer URL %s: %w", s, err)
	}
	return peer{scheme: u.Scheme, host: host, port: port, loopback: isLoopback(host)}, nil
}

// isLoopback reports whether Go dials a host directly even if a proxy is set (golang.org/x/net/http/httpproxy,
// useProxy).
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// bindAddresses returns the addresses on which a loopback peer must listen, and which must be reserved while it does
// not run. localhost may mean both address families.
func (p peer) bindAddresses() []string {
	if strings.EqualFold(p.host, "localhost") {
		return []string{net.JoinHostPort("127.0.0.1", p.port), net.JoinHostPort("::1", p.port)}
	}
	return []string{p.address()}
}

// listen chooses where the member listens for its peers. The proxy connects other addresses to a free loopback port.
// Loopback addresses are never proxied, so the member listens on them directly.
func (m *Member) listen() error {
	if err := m.namesStayInside(); err != nil {
		return err
	}
	ports := map[string]string{} // scheme -> address
	for _, s := range m.config.PeerURLs {
		p, err := parsePeer(s)
		if err != nil {
			return err
		}
		if p.loopback {
			addr := p.bindAddresses()[0]
			m.loopback = append(m.loopback, addr)
			m.listenPeers = append(m.listenPeers, p.scheme+"://"+addr)
			continue
		}
		if ports[p.scheme] == "" {
			port, err := m.sandbox.isolation.FreePort()
			if err != nil {
				return err
			}
			ports[p.scheme] = fmt.Sprintf("127.0.0.1:%d", port)
			m.listenPeers = append(m.listenPeers, p.scheme+"://"+ports[p.scheme])
		}
		if err := m.sandbox.isolation.Map(p.address(), ports[p.scheme]); err != nil {
			return err
		}
	}
	if err := m.sandbox.reservePorts(append(clusterURLs(m.config.InitialCluster), m.config.PeerURLs...)); err != nil {
		return err
	}
	for _, addr := range m.loopback {
		if err := m.sandbox.isolation.ReleasePort(addr); err != nil {
			return err
		}
	}
	return nil
}

// namesStayInside refuses a start on an empty dir that would ask the real name server. A server that joins or creates a
// cluster resolves every host name of it (membership.VerifyBootstrap and similar functions), for up to half a minute. A
// restart resolves no names.
func (m *Member) namesStayInside() error {
	s := m.sandbox
	if s.options.Server.answersNames() || s.isolation.Info().Names || m.hasLog() {
		return nil
	}
	for _, u := range append(clusterURLs(m.config.InitialCluster), m.config.PeerURLs...) {
		p, err := parsePeer(u)
		if err != nil {
			return err
		}
		if p.loopback || net.ParseIP(p.host) != nil {
			continue
		}
		return &refusal.Error{
			What: fmt.Sprintf("starting %s with an empty data dir on %s", m.config.Name, s.options.Server),
			Reason: fmt.Sprintf("it would ask the real name server for %s, because it has no network namespace",
				p.host),
			Hint: "use a server that this program contains, or a machine that allows network namespaces",
		}
	}
	return nil
}

// hasLog reports whether the data dir was used before.
func (m *Member) hasLog() bool {
	dir := m.config.WALDir
	if dir == "" {
		dir = filepath.Join(m.config.DataDir, "member", "wal")
	}
	names, err := fs.Glob(os.DirFS(dir), "*.wal")
	return err == nil && len(names) > 0
}

// clusterURLs returns the URLs of NAME=URL,NAME=URL,….
func clusterURLs(initial string) []string {
	var out []string
	for _, one := range strings.Split(initial, ",") {
		if _, u, ok := strings.Cut(one, "="); ok {
			out = append(out, u)
		}
	}
	return out
}

// reservePorts occupies the loopback addresses among the URLs, in a sandbox without a namespace. Otherwise another
// process that answers there would be mistaken for a member. It skips addresses of running members.
func (s *Sandbox) reservePorts(urls []string) error {
	if s.mode == Namespace {
		return nil
	}
	for _, u := range urls {
		p, err := parsePeer(u)
		if err != nil {
			return err
		}
		if !p.loopback {
			continue
		}
		for i, addr := range p.bindAddresses() {
			if s.runsAt(addr) {
				continue
			}
			err := s.isolation.ReservePort(addr)
			if i > 0 && (errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT)) {
				continue // no IPv6 here
			}
			if err != nil {
				return &refusal.Error{
					What: "starting a sandbox without a network namespace",
					Reason: fmt.Sprintf("a member's address %s is in use or cannot be reserved: %v", addr,
						err),
					Hint: "use another machine, or one that allows network namespaces",
				}
			}
		}
	}
	return nil
}

// runsAt reports whether a running member listens on a loopback address.
func (s *Sandbox) runsAt(addr string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.members {
		if _, ended := m.Exited(); ended || m.pid == 0 {
			continue
		}
		for _, a := range m.loopback {
			if a == addr {
				return true
			}
		}
	}
	return false
}

// reserveAgain occupies the loopback addresses of a member that ended.
func (s *Sandbox) reserveAgain(m *Member) {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed || s.mode == Namespace {
		return
	}
	for _, addr := range m.loopback {
		_ = s.isolation.ReservePort(addr) // if this fails, a later start reports it
	}
}

// certify issues the certificates of a member: always for clients, and for peers if one of its peer URLs is https.
func (m *Member) certify() error {
	id := strings.TrimSuffix(m.socketName(), ".sock")
	var err error
	if m.server, err = m.sandbox.ca.issue(id+"-server", m.config.Name,
		[]string{m.socketName(), anyMember, "localhost", "127.0.0.1", "::1"}); err != nil {
		return err
	}
	hosts, https := []string{"127.0.0.1"}, false
	for _, s := range m.config.PeerURLs {
		p, err := parsePeer(s)
		if err != nil {
			return err
		}
		https = https || p.scheme == "https"
		if p.host != "127.0.0.1" {
			hosts = append(hosts, p.host)
		}
	}
	if !https {
		return nil
	}
	m.peer, err = m.sandbox.ca.issue(id+"-peer", m.config.Name, hosts)
	return err
}

func (m *Member) socketName() string {
	return strings.TrimSuffix(m.socket[strings.LastIndexByte(m.socket, '/')+1:], socketPort)
}

// tlsFlags returns the certificate flags, which all versions know.
func (m *Member) tlsFlags() []string {
	ca := m.sandbox.ca.caFile()
	args := []string{"--cert-file=" + m.server.cert, "--key-file=" + m.server.key, "--trusted-ca-file=" + ca}
	if m.sandbox.options.Auth {
		args = append(args, "--client-cert-auth")
	}
	if m.peer.cert != "" {
		args = append(args, "--peer-cert-file="+m.peer.cert, "--peer-key-file="+m.peer.key, "--peer-trusted-ca-file="+
			ca, "--peer-client-cert-auth")
	}
	return args
}
