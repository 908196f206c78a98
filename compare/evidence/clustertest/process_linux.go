package clustertest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// processAttributes makes the kernel end a server whose test process died, for example at its timeout.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// loopbackHost returns an address of 127.0.0.0/8 that outgoing connections do not use as their source. So a port that
// is free on it is still free when the server uses it.
func loopbackHost() string { return fmt.Sprintf("127.%d.%d.1", 64+rand.IntN(128), rand.IntN(256)) }

// ticks is how many of them the kernel counts per second in /proc.
const ticks = 100

// CPU is the processor time that a process has used. It does not depend on what else the machine does, as wall time
// does.
func CPU(t testing.TB, pid int) time.Duration {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(b, []byte(") ")) // the name of the program may hold anything but this
	f := bytes.Fields(rest)
	if len(f) < 13 {
		t.Fatalf("/proc/%d/stat: %s", pid, b)
	}
	user, err1 := strconv.Atoi(string(f[11]))
	system, err2 := strconv.Atoi(string(f[12]))
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	return time.Duration(user+system) * time.Second / ticks
}

// CPU is the processor time that the servers which run have used since they were started.
func (c *Cluster) CPU() (sum time.Duration) {
	c.t.Helper()
	for _, m := range c.members {
		if m.running() {
			sum += CPU(c.t, m.process.Pid)
		}
	}
	return sum
}
