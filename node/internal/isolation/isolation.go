// Package isolation is where the servers of a sandbox run: processes of their own groups that die with their parent,
// behind a forward proxy and a DNS server that know the sandbox and nothing else.
//
// etcd's peer transport takes its proxy from the environment (http.ProxyFromEnvironment, in 3.3 to 3.7), so a member
// that is told of the proxy sends all traffic between members there; the proxy leads the address that a peer was
// recorded with to the loopback port where its copy listens, and answers 502 for any other. Loopback addresses are
// never proxied by Go.
//
// A ground is either this process (Local) or a keeper: this program run again in a network namespace of its own, from
// which no packet can leave (Namespace).
package isolation

import (
	"fmt"
	"syscall"
)

// Launch is a process to start.
type Launch struct {
	Path string
	Args []string // without the program's name
	Env  []string // the whole environment, NAME=VALUE
	Dir  string   // working directory
	Log  string   // file that takes stdout and stderr; appended to
}

// Exit tells how a process ended.
type Exit struct {
	// Code is the exit code, -1 when a signal ended it.
	Code int
	// Signal is the name of the signal that ended it, "" when none did.
	Signal string
}

// String tells how the process ended, in words.
func (e Exit) String() string {
	if e.Signal != "" {
		return "ended by signal " + e.Signal
	}
	return fmt.Sprintf("exit code %d", e.Code)
}

// Info describes a ground.
type Info struct {
	// Proxy is the URL of the forward proxy and DNS the host:port of the name server, as processes on this ground reach
	// them.
	Proxy, DNS string
	// Namespace is true when the ground is a network namespace of its own.
	Namespace bool
	// Names is true when every program on this ground resolves names through DNS, not only those that are told of it.
	Names bool
	// Notes tell what could not be set up, and what was done instead.
	Notes []string
}

// Runtime starts processes and leads their traffic. It is safe for concurrent use.
type Runtime interface {
	Info() Info
	// Launch starts a process in a group of its own and returns its id.
	Launch(Launch) (int, error)
	// Wait returns when the process has ended; also to several callers.
	Wait(pid int) (Exit, error)
	// Signal signals the whole group of the process.
	Signal(pid int, s syscall.Signal) error
	// Map leads requests for target (host:port) to addr (a loopback host:port).
	Map(target, addr string) error
	// FreePort returns a TCP port of 127.0.0.1 that nobody listens on.
	FreePort() (int, error)
	// ReservePort occupies a loopback address, so that nothing answers there but a refusal; ReleasePort gives it back.
	// Holding what is held already does nothing.
	ReservePort(addr string) error
	ReleasePort(addr string) error
	// Traffic returns what was asked of proxy, name server and held addresses so far.
	Traffic() (Traffic, error)
	// Close kills what still runs and gives everything back.
	Close() error
}

// Traffic counts what processes asked for.
type Traffic struct {
	Targets []Target
	Names   []Name
}

// Target is one address that a process wanted to reach.
type Target struct {
	// Address is host:port as it was asked for.
	Address string
	// Via is the loopback address that it was led to; "" when it was refused.
	Via string
	// Tunnel is true for CONNECT (https peers), false for plain http.
	Tunnel bool
	// Requests counts requests to members of the sandbox, Down those of them whose member did not answer or was not up
	// yet. Refused counts requests that were answered 502 because the address is no member of the sandbox.
	Requests, Refused, Down int64
}

// Name is one host name that a process asked the name server for.
type Name struct {
	Name    string
	Answer  string
	Queries int64
}
