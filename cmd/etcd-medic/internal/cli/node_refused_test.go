package cli

import (
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// TestRefusedIsolationLeavesNothing: where the members cannot be kept apart from what listens on this machine, no
// command that runs servers leaves copies.
func TestRefusedIsolationLeavesNothing(t *testing.T) {
	dir := evidencetest.Incident(t, "h-misconfigured-member-add")
	set, err := evidence.Open(t.Context(), []evidence.Spec{{Where: dir}}, evidence.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = set.Close() }()
	m := set.Members[0]
	var where string
	for _, urls := range m.Membership.PeerURLs {
		if u, err := url.Parse(urls[0]); err == nil && where == "" {
			where = u.Host
		}
	}
	l := listenOnceFree(t, where)
	defer func() { _ = l.Close() }()
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	for _, args := range [][]string{{"node", "run", "--isolation", "proxy", dir},
		{"diagnose", "--confirm", "--isolation", "proxy", dir}} {
		_, errs, code := medicOn(t, 0, args)
		if args[0] == "node" && code != ExitRefused {
			t.Errorf("%q: exit code %d, want a refusal: %s", args[:2], code, errs)
		}
		left, err := os.ReadDir(tmp)
		if err != nil || len(left) > 0 {
			t.Errorf("%q leaves %v: %v", args[:2], left, err)
		}
		for _, e := range left {
			_ = os.RemoveAll(filepath.Join(tmp, e.Name()))
		}
	}
}

// listenOnceFree listens on an address of the incident as soon as no other run of the tests on this machine does.
func listenOnceFree(t *testing.T, where string) net.Listener {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		l, err := net.Listen("tcp", where)
		if err == nil {
			return l
		}
		if !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(deadline) {
			t.Fatalf("%q: %v", where, err)
		}
	}
}
