// Command line35 is the etcd server 3.5.35 as a sandbox runs it: it resolves host names where the sandbox says. It is a
// module of its own, because a program can hold one version of etcd's server only, and tiny, because their packages
// differ.
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
