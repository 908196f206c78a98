package node

import (
	"context"
	"net"
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"

	"github.com/etcd-medic/etcd-medic/node/internal/isolation"
)

// The hidden commands: they make this program, run again, an etcd server or a helper process.
const (
	hiddenServer = "__etcd-server"
	hiddenAgent  = "__sandbox-agent"
)

// RunHidden turns the process into an etcd server or a namespace agent if args (os.Args) ask for it. Every program that
// starts a Sandbox, tests included, calls it first. If handled is true, the program ends with the exit code.
func RunHidden(args []string) (handled bool, exitCode int) {
	if len(args) < 2 {
		return false, 0
	}
	switch args[1] {
	case hiddenServer:
		resolveInSandbox(os.Getenv(envDNS))
		etcdmain.Main(append([]string{"etcd"}, args[2:]...))
		return true, 0
	case hiddenAgent:
		return true, isolation.RunAgent(args[2:])
	}
	return runHiddenLine(args[1:])
}

// envDNS names the variable with the address of the sandbox's name server. It must not start with ETCD_, which etcd
// reads.
const envDNS = "SANDBOX_DNS"

// resolveInSandbox sends every host name lookup of this process to the name server of the sandbox. Otherwise a joining
// member asks the real one for every name in its initial cluster, and retries for half a minute.
func resolveInSandbox(addr string) {
	if addr == "" {
		return
	}
	net.DefaultResolver = &net.Resolver{
		PreferGo: true,
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, network, addr)
		},
	}
}
