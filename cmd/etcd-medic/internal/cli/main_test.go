package cli

import (
	"context"
	"os"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/node"
)

// The members of a sandbox are this test's own binary, run again.
func TestMain(m *testing.M) {
	if handled, code := node.RunHidden(os.Args); handled {
		os.Exit(code)
	}
	if os.Getenv("TEST_RUN_CLI") != "" { // the program itself, for a terminal: see onTerminal
		os.Exit(Main(context.Background(), os.Args[1:], System()))
	}
	evidencetest.Main(m)
}
