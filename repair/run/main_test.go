package run

import (
	"os"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/node"
)

// The members of a sandbox are this test's own binary, run again; so is the process that tests kill.
func TestMain(m *testing.M) {
	if handled, code := node.RunHidden(os.Args); handled {
		os.Exit(code)
	}
	if job := os.Getenv(envVictim); job != "" {
		os.Exit(victim(job))
	}
	evidencetest.Main(m)
}
