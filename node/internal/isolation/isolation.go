// Package isolation runs the servers of a sandbox. Each is a process in a separate process group that dies with its
// parent. It uses a forward proxy and a DNS server that know only the sandbox.
//
// etcd's peer transport takes its proxy from the environment (http.ProxyFromEnvironment, in 3.3 to 3.7), so members
// send all their traffic to each other through the proxy. The proxy maps the recorded address of a peer to the loopback
// port where its copy listens, and answers 502 for any other. Go never uses a proxy for loopback addresses.
//
// A Runtime is either this process (Local) or an agent: this program run again in a separate network namespace, from
// which no packet can leave (Namespaced).
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
	Log  string   // file for stdout and stderr, opened for append
}

// Exit says how a process ended.
type Exit struct {
	// Code is the exit code, -1 if a signal ended the process.
	Code int
	// Signal is the name of the signal that ended the process, "" if none did.
	Signal string
}

// String says how the process ended, in words.
func (e Exit) String() string {
	if e.Signal != "" {
		return "ended by signal " + e.Signal
	}
	return fmt.Sprintf("exit code %d", e.Code)
}

// Info describes a Runtime.
type Info struct {
	// Proxy is the URL of the forward proxy and DNS the host:port of the name server, as seen by the processes of the
	// Runtime.
	Proxy, DNS string
	// Namespace is true if the processes run in a separate network namespace.
	Namespace bool
	// Names is true if every process resolves names through DNS, not only those with the environment variable.
	Names bool
	// Notes say what could not be set up, and what was done instead.
	Notes []string
}

// Runtime starts processes and routes their traffic. It is safe for concurrent use.
type Runtime interface {
	Info() Info
	// Launch starts a process in a new process group and returns its id.
	Launch(Launch) (int, error)
	// Wait returns when the process has ended. Several callers may wait.
	Wait(pid int) (Exit, error)
	// Signal signals the whole group of the process.
	Signal(pid int, s syscall.Signal) error
	// Map routes requests for target (host:port) to addr (a loopback host:port).
	Map(target, addr string) error
	// FreePort returns an unused TCP port of 127.0.0.1.
	FreePort() (int, error)
	// ReservePort occupies a loopback address, so that connections to it are refused; ReleasePort frees it. Reserving
	// it twice has no further effect.
	ReservePort(addr string) error
	ReleasePort(addr string) error
	// Traffic returns the requests so far to the proxy, the name server and the reserved addresses.
	Traffic() (Traffic, error)
	// Close kills the processes that still run and frees everything.
	Close() error
}

// Traffic counts requests of the processes.
type Traffic struct {
	Targets []Target
	Names   []Name
}

// Target is one address that a process tried to reach.
type Target struct {
	// Address is the requested host:port.
	Address string
	// Via is the loopback address that it was routed to; "" if it was refused.
	Via string
	// Tunnel is true for CONNECT (https peers), false for plain http.
	Tunnel bool
	// Requests counts requests to members of the sandbox. Down counts those whose member did not answer or was not up
	// yet. Refused counts requests answered with 502 because the address does not belong to a member of the sandbox.
	Requests, Refused, Down int64
}

// Name is one host name that a process asked the name server for.
type Name struct {
	Name    string
	Answer  string
	Queries int64
}
