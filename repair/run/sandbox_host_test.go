package run

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// TestSandboxHostOfNothing: what a host says of a member that was never started, and which data dirs it moves.
func TestSandboxHostOfNothing(t *testing.T) {
	m := fakePlan(t, 3, "node2").Member("node2")
	s := &sandboxHost{dir: t.TempDir(), runs: map[string]*node.Member{}, clients: map[*node.Member]*clientv3.Client{}}
	ctx := t.Context()
	if s.serves(ctx, m) == nil || !s.down(ctx, m) || s.stop(ctx, m) != nil || s.place(m) != "" {
		t.Error("a member that was not started runs")
	}
	var gone permanent
	if c, _, err := s.client(m); c != nil || !errors.As(err, &gone) || err.Error() != "node2 does not run" {
		t.Errorf("%v, %v", c, err)
	}
	if err := s.ready(ctx, m); err == nil || err.Error() != "node2 was not started" {
		t.Error(err)
	}
	if where, err := s.aside(ctx, m); where != "" || err != nil {
		t.Errorf("no data dir is moved to %q: %v", where, err)
	}
	// A server without a log would begin another cluster, unless it joins.
	if err := s.start(ctx, m, startHow{}); !errors.Is(err, os.ErrNotExist) ||
		!strings.HasPrefix(err.Error(), "node2 has no log to start on, and would begin a new cluster") {
		t.Error(err)
	}
	mark := filepath.Join(s.dataDir(m), "member", "mark")
	if err := errors.Join(os.MkdirAll(filepath.Dir(mark), 0o700), os.WriteFile(mark, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	where, err := s.aside(ctx, m)
	if err != nil || where != filepath.Join("before", "node2-2") {
		t.Fatalf("%q, %v", where, err)
	}
	if _, err := os.Stat(filepath.Join(s.dir, where, "member", "mark")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(s.dataDir(m)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the data dir is still there: %v", err)
	}
	if err := os.MkdirAll(s.dataDir(m), 0o700); err != nil {
		t.Fatal(err)
	}
	if where, err := s.aside(ctx, m); err == nil || !strings.HasSuffix(err.Error(), "exists already") {
		t.Errorf("an older data dir is replaced: %q, %v", where, err)
	}
	if _, err := os.Stat(s.dataDir(m)); err != nil {
		t.Error(err)
	}
	if err := s.end(ctx, fakePlan(t, 3), true); err != nil {
		t.Error(err)
	}
}

// TestSandboxHostWithoutFolder: a scratch folder that cannot be read or made is an error.
func TestSandboxHostWithoutFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p := fakePlan(t, 3)
	s := &sandboxHost{dir: filepath.Join(file, "scratch")}
	if err := s.arrives(t.Context(), p.Member("node2"), nil); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("a member arrives: %v", err)
	}
	run := sandboxRun{&session{plan: p}}
	for _, dir := range []string{s.dir, "\x00"} {
		if _, err := run.copySources(t.Context(), &sandboxHost{dir: dir}, &evidence.Set{}); err == nil {
			t.Errorf("copies in %q", dir)
		}
	}
}

// TestRunsNow: which members run at a point of the journal.
func TestRunsNow(t *testing.T) {
	steps := []plan.Step{{ID: "1", Kind: plan.StepStop, Member: "node2"}, {ID: "2", Kind: plan.StepStartEmpty,
		Member: "node2"}, {ID: "3", Kind: plan.StepStart, Member: "node3"}, {ID: "4", Kind: plan.StepForceNew,
		Member: "node3"}, {ID: "5", Kind: plan.StepStop, Member: "node3"}}
	for name, c := range map[string]struct {
		member string
		done   string // the IDs of the steps that are done
		way    plan.Mode
		set    func(m *plan.Member)
		want   bool
	}{
		"at the start":           {"node2", "", plan.Live, nil, true},
		"not startable":          {"node2", "", plan.Live, func(m *plan.Member) { m.Startable = false }, false},
		"without a source":       {"node2", "", plan.Live, func(m *plan.Member) { m.Source = "" }, false},
		"another way":            {"node2", "", plan.ForceNewCluster, nil, false},
		"stopped":                {"node2", "1", plan.Live, nil, false},
		"started again":          {"node2", "12", plan.Live, nil, true},
		"the steps of another":   {"node1", "1", plan.Live, nil, true},
		"started":                {"node3", "3", plan.ForceNewCluster, nil, true},
		"forced":                 {"node3", "4", plan.ForceNewCluster, nil, true},
		"forced, and then ended": {"node3", "45", plan.ForceNewCluster, nil, false},
	} {
		f := newFake(t, fakePlan(t, 3, "node2"))
		f.r.steps = steps
		for i := range steps {
			if strings.Contains(c.done, steps[i].ID) {
				if err := f.r.j.write(Record{Step: steps[i].ID, State: StateDone}); err != nil {
					t.Fatal(err)
				}
			}
		}
		m := f.r.plan.Member(c.member)
		if c.set != nil {
			c.set(m)
		}
		if got := runsNow(f.r, m, c.way); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestSnapshotTrailer: a snapshot is whole if its last 32 bytes are the sum of what is before, in pieces of any size.
func TestSnapshotTrailer(t *testing.T) {
	data := bytes.Repeat([]byte("snapshot "), 20)
	sum := sha256.Sum256(data)
	whole := append(bytes.Clone(data), sum[:]...)
	empty := sha256.Sum256(nil)
	for name, c := range map[string]struct {
		b    []byte
		want bool
	}{
		"whole": {whole, true}, "cut by one": {whole[:len(whole)-1], false}, "cut": {whole[:len(data)], false},
		"one more": {append(bytes.Clone(whole), 0), false}, "nothing": {nil, false}, "a sum of nothing": {empty[:], true},
		"less than a sum": {empty[:31], false}, "another": {append([]byte("x"), whole[1:]...), false},
	} {
		for _, size := range []int{1, 31, 32, 33, 64, 1000} {
			x := &tail{h: sha256.New()}
			for b := c.b; len(b) > 0; b = b[min(size, len(b)):] {
				if n, err := x.Write(b[:min(size, len(b))]); err != nil || n != min(size, len(b)) {
					t.Fatal(n, err)
				}
			}
			if got := x.fits(); got != c.want {
				t.Errorf("%s, in pieces of %d: %v", name, size, got)
			}
		}
	}
}

// TestKeptLogins: a client is kept until its borrowed token may have expired, or until it is forgotten.
func TestKeptLogins(t *testing.T) {
	l := &logins{o: &LiveOptions{}, ctx: t.Context(), clients: map[string]*loggedIn{}}
	defer l.close()
	const e = "http://127.0.0.1:1"
	for name, c := range map[string]struct {
		until  time.Time
		forget bool
		same   bool
	}{
		"without end": {time.Time{}, false, true}, "still valid": {time.Now().Add(time.Hour), false, true},
		"expired": {time.Now().Add(-time.Second), false, false}, "forgotten": {time.Time{}, true, false},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		kept := clientv3.NewCtxClient(ctx)
		l.clients[e] = &loggedIn{c: kept, until: c.until}
		if c.forget {
			l.forget(e)
			if len(l.clients) != 0 {
				t.Errorf("%s: %v", name, l.clients)
			}
		}
		got, err := l.dial(e)
		if err != nil || (got == kept) != c.same || l.clients[e].c != got {
			t.Errorf("%s: the same %v, %v", name, got == kept, err)
		}
		if again, err := l.dial(e); err != nil || again != got {
			t.Errorf("%s: the next call makes another client: %v", name, err)
		}
		cancel()
	}
}

// TestSecure: TLS is used with certificates, or where an endpoint asks for it.
func TestSecure(t *testing.T) {
	for name, c := range map[string]struct {
		o       LiveOptions
		tls, ok bool
	}{
		"plain":          {LiveOptions{Endpoints: []string{"http://a:1", "b:1"}}, false, true},
		"https":          {LiveOptions{Endpoints: []string{"http://a:1", "https://b:1"}}, true, true},
		"no such CA":     {LiveOptions{CACert: "/none/ca.crt"}, false, false},
		"no certificate": {LiveOptions{Cert: "/none/a.crt", Key: "/none/a.key"}, false, false},
	} {
		l := &logins{o: &c.o}
		if err := l.secure(); (err == nil) != c.ok || c.ok && (l.tls != nil) != c.tls {
			t.Errorf("%s: %+v, %v", name, l.tls, err)
		}
	}
}

// TestSandboxHostForgets: the client of a member's newest process is closed when it is forgotten. Another member's
// stays.
func TestSandboxHostForgets(t *testing.T) {
	p := fakePlan(t, 3)
	s := &sandboxHost{runs: map[string]*node.Member{"node1": {}, "node2": {}},
		clients: map[*node.Member]*clientv3.Client{}}
	kept, forgotten := clientv3.NewCtxClient(t.Context()), clientv3.NewCtxClient(t.Context())
	s.clients[s.runs["node1"]], s.clients[s.runs["node2"]] = kept, forgotten
	s.forget(p.Member("node3")) // it was never started
	for range 2 {
		s.forget(p.Member("node2"))
		if len(s.clients) != 1 || s.clients[s.runs["node1"]] != kept {
			t.Errorf("%d clients are left", len(s.clients))
		}
	}
	if forgotten.Ctx().Err() == nil || kept.Ctx().Err() != nil {
		t.Errorf("the client that is forgotten: %v, the other one: %v", forgotten.Ctx().Err(), kept.Ctx().Err())
	}
}

// TestNewestLogsStartFirst: copies of a running cluster end at different entries. A majority of the older copies would
// elect a leader that lacks entries which a newer copy shows as committed.
func TestNewestLogsStartFirst(t *testing.T) {
	p := fakePlan(t, 5)
	s := &sandboxHost{logs: map[string]logEnd{"node1": {2, 90}, "node2": {3, 80}, "node3": {2, 109}, "node4": {2, 96}}}
	p.Members[4].Learner = true
	p.Cluster.Voters = 4
	var all []*plan.Member
	for i := range p.Members {
		all = append(all, &p.Members[i])
	}
	first, rest := s.newestLogs(p, all)
	if got := names(first) + "; " + names(rest); got != "node2 node3 node4; node1 node5" {
		t.Error(got)
	}
	if first, rest = s.newestLogs(p, all[:1]); names(first) != "node1" || len(rest) > 0 {
		t.Errorf("%s; %s", names(first), names(rest))
	}
}

// TestSandboxWaitsForLeader: the other members are started once those with the newest logs serve, or one of them ended.
func TestSandboxWaitsForLeader(t *testing.T) {
	c := newFake(t, fakePlan(t, 3))
	p := c.r.plan
	s := scripted(t, p, scriptRuns)
	s.logs = map[string]logEnd{"node1": {1, 5}, "node2": {1, 4}, "node3": {1, 3}}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	all := []*plan.Member{p.Member("node3"), p.Member("node2"), p.Member("node1")}
	if _, err := s.launch(ctx, c.r, all); err == nil || s.newest(p.Member("node1")) == nil ||
		s.newest(p.Member("node2")) == nil || s.newest(p.Member("node3")) != nil {
		t.Errorf("%v, %v", err, s.runs)
	}
	s = scripted(t, p, scriptEnds)
	s.logs = map[string]logEnd{"node1": {1, 5}, "node2": {1, 4}, "node3": {1, 3}}
	if _, err := s.launch(t.Context(), c.r, all); err == nil || s.newest(p.Member("node3")) == nil {
		t.Errorf("a majority that ended keeps the others from starting: %v", err)
	}
}

func names(members []*plan.Member) string {
	var out []string
	for _, m := range members {
		out = append(out, m.Name)
	}
	return strings.Join(out, " ")
}
