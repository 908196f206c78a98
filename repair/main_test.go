package repair

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/node"
)

// The members of a sandbox are this test's own binary, run again; so is the process that tests kill.
func TestMain(m *testing.M) {
	if handled, code := node.RunHidden(os.Args); handled {
		os.Exit(code)
	}
	if args := os.Getenv(envVictim); args != "" {
		os.Exit(victim(strings.Split(args, "\n")))
	}
	evidencetest.Main(m)
}

// envVictim holds plan, mode and output folder, one a line, for a process that carries the plan out.
const envVictim = "ETCD_MEDIC_TEST_VICTIM"

// victim ends as the command would: 0 reached, 5 refused, 6 unfinished, 1 else.
func victim(args []string) int {
	signal.Ignore(syscall.SIGXFSZ) // a write beyond the limit then fails, as on a full disk
	file, mode, out := args[0], Mode(args[1]), args[2]
	var err error
	if mode == rehearsal {
		_, err = Rehearse(context.Background(), file, RunOptions{})
	} else {
		_, err = Apply(context.Background(), file, ApplyOptions{Mode: mode, Out: out, RunOptions: RunOptions{AllowUpgrade: true}})
	}
	var refused *RefusedError
	var unfinished *UnfinishedError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &refused):
		fmt.Fprintln(os.Stderr, err)
		return 5
	case errors.As(err, &unfinished):
		fmt.Fprintln(os.Stderr, err)
		return 6
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}
