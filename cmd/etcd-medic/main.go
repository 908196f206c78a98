// Command etcd-medic reads copied etcd data dirs, finds what broke first, names the cause and the best member.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/cli"
	"github.com/etcd-medic/etcd-medic/node"
)

func main() {
	if handled, code := node.RunHidden(os.Args); handled {
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Main(ctx, os.Args[1:], cli.System())
	stop()
	os.Exit(code)
}
