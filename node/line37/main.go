// Command line37 is the etcd server 3.7.3 for a sandbox: it resolves host names through the sandbox's name server. It
// is a separate module, because a program can contain only one version of etcd's server.
package main

import (
	"context"
	"net"
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	if addr := os.Getenv("SANDBOX_DNS"); addr != "" {
		net.DefaultResolver = &net.Resolver{
			PreferGo: true,
			Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, addr)
			},
		}
	}
	etcdmain.Main(os.Args)
}
