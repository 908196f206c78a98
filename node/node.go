// Package node runs etcd servers on copies of data dirs, isolated from everything else.
//
// A member is a child process with ordinary etcd flags. It is this program run again with a hidden command, a built-in
// server of another version, or the operator's own binary. A crash or Fatal of etcd, normal on damaged dirs, ends only
// the child; its exit code and log are facts.
//
// A Sandbox runs the members of one cluster. Copied dirs are not rewritten: they keep the peer URLs of the original
// cluster. A forward proxy connects each of these URLs to the loopback port where the copy listens. Where the kernel
// allows it, everything runs in a separate network namespace, from which no packet can leave. Clients connect through
// unix sockets, with certificates of a CA that exists only as long as the sandbox.
//
// A program that uses this package calls RunHidden first in main (tests: in TestMain).
package node

import "fmt"

// Isolation says how a sandbox isolates its members.
type Isolation string

// The kinds of isolation. Members always reach each other through the proxy; the namespace encloses both.
const (
	// Auto uses a namespace if the kernel allows one, else only the proxy.
	Auto Isolation = "auto"
	// Namespace uses a network namespace or refuses.
	Namespace Isolation = "netns"
	// Proxy uses only the proxy.
	Proxy Isolation = "proxy"
)

// ParseIsolation reads auto, netns or proxy; empty is auto.
func ParseIsolation(s string) (Isolation, error) {
	switch i := Isolation(s); i {
	case "":
		return Auto, nil
	case Auto, Namespace, Proxy:
		return i, nil
	}
	return "", fmt.Errorf("%q is not an isolation (want auto, netns or proxy)", s)
}
