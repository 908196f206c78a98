package run

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// listener accepts connections and gives them to f, one after the other.
func listener(t *testing.T, f func(net.Conn)) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			f(c)
		}
	}()
	return "http://" + l.Addr().String()
}

// TestDownAndRunning: a member is down once nothing has its port; one that hangs is neither down nor running.
func TestDownAndRunning(t *testing.T) {
	c := newFake(t, fakePlan(t, 3, "node2"))
	c.r.limits = hasty
	s := serve(t, c)
	hangs := listener(t, func(c net.Conn) { t.Cleanup(func() { _ = c.Close() }) })
	tunnelled := listener(t, func(c net.Conn) { _ = c.Close() })
	f := s.live()
	m := c.r.plan.Member("node2")
	at := func(e string) { f.where.endpoints["node2"] = e }
	for name, tc := range map[string]struct {
		set           func()
		running, down bool
	}{
		"it serves":      {func() { at(s.urls["node2"]) }, true, false},
		"another member": {func() { at(s.urls["node3"]) }, false, false},
	} {
		tc.set()
		running, down := f.serves(t.Context(), m) == nil, f.down(t.Context(), m)
		if running != tc.running || down != tc.down {
			t.Errorf("%s: running %v, down %v", name, running, down)
		}
	}
	at(hangs)
	if f.down(t.Context(), m) {
		t.Error("a member that hangs is said to be down")
	}
	at("node2") // is no URL
	if f.down(t.Context(), m) {
		t.Error("a member at no known address is said to be down")
	}
	at(tunnelled)
	if !f.down(t.Context(), m) {
		t.Error("a tunnel to a free port is taken for a member")
	}
	s.stop("node2")
	at(s.urls["node2"])
	if f.serves(t.Context(), m) == nil || !f.down(t.Context(), m) {
		t.Error("nothing listens, and the member is not down")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if f.down(ended, m) {
		t.Error("a check that was ended says that the member is down")
	}
	s.start("node2", 2)
	if f.serves(t.Context(), m) != nil { // its client is that of the earlier process
		t.Error("the member serves again, and is not seen")
	}
	if err := f.r.note("", "id:node2", "65"); err != nil {
		t.Fatal(err)
	}
	if f.serves(t.Context(), m) == nil {
		t.Error("it serves under its old ID, and is said to run under the new one")
	}
}

// TestStopIsNotSkipped: a member whose address does not lead to it may serve the others. Only a host that refuses the
// connection shows that it is stopped already.
func TestStopIsNotSkipped(t *testing.T) {
	c := newFake(t, fakePlan(t, 3, "node2"))
	c.r.limits = hasty
	s := serve(t, c)
	f := s.live()
	f.r.host = f
	step := f.r.stepOf(plan.StepStop, "node2")
	for name, tc := range map[string]struct {
		at   string
		want bool
	}{
		"a name without an address":    {"http://node2.invalid:2379", false},
		"a proxy that cuts":            {listener(t, func(c net.Conn) { _ = c.Close() }), false},
		"it serves":                    {s.urls["node2"], false},
		"nothing listens":              {"http://127.0.0.1:1", true},
		"a socket that does not exist": {"unix://" + filepath.Join(t.TempDir(), "s"), true},
	} {
		f.where.endpoints["node2"] = tc.at
		if done, err := stopped(t.Context(), f.r, step); done != tc.want || err != nil {
			t.Errorf("%s: %v, %v", name, done, err)
		}
	}
}

// TestStopIsSeen: what was said to be stopped is believed once it is seen.
func TestStopIsSeen(t *testing.T) {
	c := newFake(t, fakePlan(t, 3, "node2"))
	c.r.limits = hasty
	c.r.limits.step = 5 * time.Second // a connection that takes as long counts as none
	s := serve(t, c)
	f := s.live()
	m := c.r.plan.Member("node2")
	f.where.endpoints["node2"] = s.urls["node2"]
	acts := 0
	f.o.HostActions = func(context.Context, HostStep) error { acts++; return nil }
	if err := f.stop(t.Context(), m); err == nil || !strings.Contains(err.Error(), "it still answers at "+
		s.urls["node2"]+" as member 2, although it was said to be stopped") || acts != 1 {
		t.Errorf("%v after %d acts", err, acts)
	}
	if err := f.r.note("", "id:node2", "65"); err != nil {
		t.Fatal(err)
	}
	f.where.endpoints["node2"] = listener(t, func(c net.Conn) {
		_, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
		_ = c.Close()
	})
	if err := f.stop(t.Context(), m); err == nil || !strings.Contains(err.Error(), "does not show that it has stopped") {
		t.Errorf("%v", err)
	}
	f.where.endpoints["node2"] = s.urls["node2"]
	f.o.HostActions = s.act
	if err := f.stop(t.Context(), m); err != nil {
		t.Error(err)
	}
	failed := errors.New("no way")
	f.o.HostActions = func(context.Context, HostStep) error { return failed }
	if err := f.stop(t.Context(), m); !errors.Is(err, failed) {
		t.Errorf("%v", err)
	}
	f.o.HostActions = func(context.Context, HostStep) error { return nil }
	m.ClientURLs = nil
	delete(f.where.endpoints, "node2")
	if err := f.stop(t.Context(), m); err != nil || len(f.r.out.Notes) != 1 ||
		!strings.Contains(f.r.out.Notes[0], "no client URL of it is known") {
		t.Errorf("%v, notes %q", err, f.r.out.Notes)
	}
}

// TestReadyAsItself: another member, or one on its old data dir, is not waited for.
func TestReadyAsItself(t *testing.T) {
	c := newFake(t, fakePlan(t, 3, "node2"))
	c.r.limits = hasty
	s := serve(t, c)
	f := s.live()
	m := c.r.plan.Member("node2")
	f.where.endpoints["node2"] = s.urls["node2"]
	if err := f.ready(t.Context(), m); err != nil {
		t.Errorf("it serves: %v", err)
	}
	if err := f.r.note("", "id:node2", "65"); err != nil {
		t.Fatal(err)
	}
	if err := f.ready(t.Context(), m); err == nil || !strings.Contains(err.Error(), "it serves under its old ID 2") {
		t.Errorf("%v", err)
	}
	f.where.endpoints["node2"] = s.urls["node3"]
	if err := f.ready(t.Context(), m); err == nil || !strings.Contains(err.Error(), "member 3 answers at "+
		s.urls["node3"]) || strings.Contains(err.Error(), "bootstrapped") {
		t.Errorf("%v", err)
	}
	c.of(3).cluster = 9
	if err := f.ready(t.Context(), m); err == nil || !strings.Contains(err.Error(), "member 3 of cluster 9 answers at "+
		s.urls["node3"]+": it was not started with") {
		t.Errorf("%v", err)
	}
}

// TestListening: how long a process may be silent, end, or be no etcd server.
func TestListening(t *testing.T) {
	f := whereOf(t, 3, []string{"http://a:1"}, map[string]string{"node1": "http://a:1"})
	f.r.limits.step = time.Minute
	long := time.Now().Add(-2 * time.Minute)
	m := f.r.plan.Member("node1")
	other := status.Error(codes.Unimplemented, "unknown service")
	var p permanent
	l := &listening{f: f, m: m, silent: time.Now(), odd: time.Now()}
	if err := l.look(never("no")); !errors.As(err, &p) || err.Error() != "no" || l.heard {
		t.Errorf("a permanent error: %v", err)
	}
	if err := l.look(errSilent); !errors.Is(err, errSilent) || errors.As(err, &p) {
		t.Errorf("silent since just now: %v", err)
	}
	if err := l.look(other); err == nil || errors.As(err, &p) || !l.heard {
		t.Errorf("no etcd server since just now: %v", err)
	}
	l.odd = long
	if err := l.look(errors.New("busy")); err == nil || errors.As(err, &p) ||
		!strings.Contains(err.Error(), "it does not answer yet: busy") {
		t.Errorf("an etcd server that does not answer: %v", err)
	}
	if err := l.look(other); errors.As(err, &p) {
		t.Errorf("it was an etcd server a moment ago: %v", err)
	}
	l.odd = long
	if err := l.look(other); !errors.As(err, &p) || !strings.Contains(err.Error(), "http://a:1 is not an etcd server") {
		t.Errorf("no etcd server for long: %v", err)
	}
	l.odd, l.silent, l.heard = long, long, true
	if err := l.look(errSilent); !errors.Is(err, errSilent) || l.heard || l.ends != 1 ||
		time.Since(l.odd) > time.Minute {
		t.Errorf("it ended just now: %v, %+v", err, l)
	}
	if err := l.look(errSilent); !errors.Is(err, errSilent) || l.ends != 1 {
		t.Errorf("silent still: %v, %+v", err, l)
	}
	l.silent = long
	if err := l.look(errSilent); !errors.As(err, &p) || !strings.Contains(err.Error(),
		"nothing listens at http://a:1") {
		t.Errorf("silent for long: %v", err)
	}
	l = &listening{f: f, m: m, silent: time.Now(), odd: time.Now()}
	for i := range starts {
		_ = l.look(errors.New("busy"))
		if err := l.look(errSilent); errors.As(err, &p) != (i == starts-1) ||
			i == starts-1 && !strings.Contains(err.Error(), "it was started and ended 3 times") {
			t.Errorf("end %d: %v", i+1, err)
		}
	}
}

// TestSeek: a member that comes up is found at one of the endpoints that are left over.
func TestSeek(t *testing.T) {
	c := newFake(t, fakePlan(t, 4, "node2"))
	c.r.limits = hasty
	for _, id := range []uint64{2, 3} {
		c.up[id] = false
	}
	s := serve(t, c)
	f := s.live()
	if err := f.where.locate(t.Context()); err != nil {
		t.Fatal(err)
	}
	two, three := c.r.plan.Member("node2"), c.r.plan.Member("node3")
	if e := f.where.seek(t.Context(), two); e != "" || len(f.where.free) != 2 || !f.down(t.Context(), two) {
		t.Errorf("it is down: %q, free %q", e, f.where.free)
	}
	c.set(2, true)
	s.start("node2", 2)
	if f.down(t.Context(), three) {
		t.Error("something listens that may be node3")
	}
	if e := f.where.seek(t.Context(), three); e != "" {
		t.Errorf("node3 is found at %s, where node2 answers", e)
	}
	if e := f.where.seek(t.Context(), two); e != s.urls["node2"] || f.where.endpoint(two) != e ||
		f.r.j.value("endpoint:node2") != e || len(f.where.free) != 1 || f.where.free[0] != s.urls["node3"] {
		t.Errorf("node2 is found at %q, free %q", e, f.where.free)
	}
	for name, m := range map[string]*plan.Member{"node1": c.r.plan.Member("node1"), "node4": c.r.plan.Member("node4")} {
		if e := f.where.seek(t.Context(), m); e != s.urls[name] {
			t.Errorf("%s is at %q", name, e)
		}
	}
}

// TestSyncTree: files and folders are synced, and what cannot be opened is an error.
func TestSyncTree(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "a", "f"), nil, 0o600),
		os.Symlink("missing", filepath.Join(dir, "a", "link"))); err != nil {
		t.Fatal(err)
	}
	if err := syncTree(dir); err != nil {
		t.Errorf("a link to a missing file is no file to sync: %v", err)
	}
	if err := syncTree(filepath.Join(dir, "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestStartedWronglyHint: a server that ends right after its start was perhaps started in one of two wrong ways. Its
// log distinguishes them.
func TestStartedWronglyHint(t *testing.T) {
	c := newFake(t, fakePlan(t, 3, "node2"))
	s := serve(t, c)
	l := &listening{f: s.live(), m: c.r.plan.Member("node2"), ends: starts}
	err := l.look(errSilent)
	wantError(t, "its old data dir", err, "permanently removed")
	wantError(t, "a new cluster", err, "--initial-cluster-state=new")
}
