package node_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/node"
)

// TestStopEndsAHungMember: a member that does not react is killed long before the caller's patience ends.
func TestStopEndsAHungMember(t *testing.T) {
	t.Parallel() // mostly waiting
	s := newSandbox(t, node.Options{})
	c := trio(t.TempDir(), "http://10.1.2.%d:2380")[0]
	c.InitialCluster = c.Name + "=" + c.PeerURLs[0]
	m := startAll(t, s, []node.MemberConfig{c})[0]
	if err := syscall.Kill(m.Pid(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	begin := time.Now()
	if err := m.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	exit, ended := m.Exited()
	if took := time.Since(begin); !ended || exit.Signal != syscall.SIGKILL.String() || took > time.Minute {
		t.Errorf("ended %v with %+v after %v", ended, exit, took)
	}
}
