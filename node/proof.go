package node

import (
	"fmt"
	"os"
	"strings"

	"github.com/etcd-medic/etcd-medic/node/internal/isolation"
)

// Target is one address that a member tried to reach.
type Target = isolation.Target

// Name is one host name that a member tried to resolve.
type Name = isolation.Name

// Proof lists what the members of a sandbox tried to reach.
type Proof struct {
	// Isolation is how the members were isolated: Namespace or Proxy.
	Isolation Isolation
	// Notes say what could not be set up, and what was done instead.
	Notes []string
	// Targets are the addresses requested from the proxy, and the reserved loopback addresses.
	Targets []Target
	// Names are the host names requested from the sandbox's name server. No real name server was asked.
	Names []Name
}

// Proof returns what was observed so far.
func (s *Sandbox) Proof() Proof {
	p := Proof{Isolation: s.mode}
	if s.isolation == nil {
		return p
	}
	p.Notes = s.isolation.Info().Notes
	if t, err := s.isolation.Traffic(); err == nil {
		p.Targets, p.Names = t.Targets, t.Names
	} else {
		p.Notes = append(p.Notes, "the counts are lost: "+err.Error())
	}
	return p
}

// Refused returns how many requests to addresses outside the sandbox were refused.
func (p Proof) Refused() int64 {
	var n int64
	for _, t := range p.Targets {
		n += t.Refused
	}
	return n
}

// Lines returns the proof as text, one fact per line.
func (p Proof) Lines() []string {
	var out []string
	if p.Isolation == Namespace {
		out = append(out, "isolation: network namespace and forward proxy; no packet could leave")
	} else {
		out = append(out, "isolation: forward proxy on 127.0.0.1")
	}
	for _, t := range p.Targets {
		switch {
		case t.Refused > 0:
			out = append(out, fmt.Sprintf("%s: refused %d times, not a running member of the sandbox", t.Address,
				t.Refused))
		case t.Down > 0:
			out = append(out, fmt.Sprintf("%s: %d requests forwarded to %s, %d while the member was down", t.Address,
				t.Requests, t.Via, t.Down))
		default:
			out = append(out, fmt.Sprintf("%s: %d requests forwarded to %s", t.Address, t.Requests, t.Via))
		}
	}
	for _, n := range p.Names {
		out = append(out, fmt.Sprintf("name %s: answered %s in the sandbox, %d queries", n.Name, n.Answer, n.Queries))
	}
	for _, n := range p.Notes {
		out = append(out, "note: "+n)
	}
	return out
}

// ClientFlags returns flags for etcdctl that reach a member, or all running ones if m is nil.
func (s *Sandbox) ClientFlags(m *Member) []string {
	var endpoints []string
	if m != nil {
		endpoints = []string{m.Endpoint()}
	} else {
		for _, m := range s.running() {
			endpoints = append(endpoints, m.Endpoint())
		}
	}
	return []string{
		"--endpoints=" + strings.Join(endpoints, ","), "--cacert=" + s.ca.caFile(), "--cert=" + s.client.cert,
		"--key=" + s.client.key,
	}
}

// inChild refuses to create a sandbox in a process that should have become something else. A program that does not call
// RunHidden would start itself again and again.
func inChild() error {
	if os.Getenv(envDNS) != "" || os.Getenv(isolation.EnvAgent) != "" {
		return fmt.Errorf("this process belongs to a sandbox: the program must call node.RunHidden first")
	}
	return nil
}
