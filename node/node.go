// Package node runs etcd servers on copies of data dirs, cut off from everything else.
//
// A member is a child process that takes ordinary etcd flags: this program run again through a hidden command, the
// server of another line that was built in, or an operator's own binary. A crash or Fatal of etcd, normal on damaged
// dirs, ends the child only; its exit code and log are facts.
//
// A Sandbox stands around the members of one cluster. Copied dirs are not rewritten: they keep the peer URLs of the
// original cluster, and a forward proxy leads each of these to the loopback port where the copy listens. Where the
// kernel allows it, all of it runs in a network namespace of its own, from which no packet can leave. Clients come in
// through unix sockets, with certificates of a CA that lives as long as the sandbox.
//
// A program that uses this package calls RunHidden first thing in main (tests: in TestMain).
package node

import "fmt"

// Isolation is how a sandbox keeps its members from the rest of the world.
type Isolation string

// The kinds of isolation. The proxy always stands between the members; the namespace is a wall around both.
const (
	// Auto takes a namespace where the kernel allows one, and the proxy alone where it does not.
	Auto Isolation = "auto"
	// Namespace takes a network namespace or refuses.
	Namespace Isolation = "netns"
	// Proxy takes the proxy alone.
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
	return "", fmt.Errorf("%q is no isolation (want auto, netns or proxy)", s)
}

// RefusedError says that something is not done because it would not be safe.
type RefusedError struct {
	// What is refused, and the reason.
	What, Reason string
	// Hint says what would make it possible; may be empty.
	Hint string
}

// Error returns what is refused and why.
func (e *RefusedError) Error() string { return e.What + " refused: " + e.Reason }

// Refused tells that nothing was begun.
func (e *RefusedError) Refused() bool { return true }
