package lab_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/repair"
)

// The members of a cluster are this test's own binary, run again; so is the process that tests kill.
func TestMain(m *testing.M) {
	if handled, code := node.RunHidden(os.Args); handled {
		os.Exit(code)
	}
	if args := os.Getenv(envVictim); args != "" {
		os.Exit(victim(strings.Split(args, "\x1e")))
	}
	evidencetest.Main(m)
}

// envVictim holds plan, endpoints, cacert, cert, key and hook, one a line, for a process that applies a plan live and is killed.
const envVictim = "ETCD_MEDIC_TEST_LIVE_VICTIM"

func victim(args []string) int {
	o := repair.LiveOptions{Endpoints: strings.Split(args[1], ","), CACert: args[2], Cert: args[3], Key: args[4],
		HookStop: args[5], HookWipe: args[5], HookStart: args[5], Output: os.Stderr}
	out, err := repair.Apply(context.Background(), args[0], repair.ApplyOptions{Mode: repair.Live, Live: o})
	if err != nil || !out.Reached {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
