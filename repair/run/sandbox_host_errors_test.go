package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// What a script does that is run as a server: it ends at once, or runs and never serves.
const (
	scriptEnds = "exit 3"
	scriptRuns = "exec sleep 600"
)

// scriptedServer is a program that says it is a server, and does what a script says.
func scriptedServer(t *testing.T, script string) node.Server {
	t.Helper()
	path := filepath.Join(t.TempDir(), "server")
	text := "#!/bin/sh\n[ \"$1\" = --version ] && echo 'etcd Version: 3.5.21' && exit 0\n" + script + "\n"
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return node.Server{Path: path, Version: node.Version{Major: 3, Minor: 5, Patch: 21}, Origin: node.FromOperator}
}

// scripted is a sandbox whose members do what a script says. Those of the plan have data dirs with a log.
func scripted(t *testing.T, p *plan.Plan, script string) *sandboxHost {
	t.Helper()
	s := &sandboxHost{dir: t.TempDir(), runs: map[string]*node.Member{}, clients: map[*node.Member]*clientv3.Client{},
		patience: time.Minute}
	box, err := node.New(t.Context(), node.Options{Dir: filepath.Join(s.dir, "sandbox"), Isolation: node.Proxy,
		Server: scriptedServer(t, script)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = box.Close() })
	s.box = box
	for i := range p.Members {
		p.Members[i].PeerURLs = []string{fmt.Sprintf("http://192.0.2.%d:2380", i+1)} // needs no name server
		folders(t, filepath.Join(s.dataDir(&p.Members[i]), "member", "wal"))
	}
	return s
}

// canceled is a context that has ended.
func canceled(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// TestSandboxMemberEnds: a process that ends is no member that runs. What asks for it says how it ended.
func TestSandboxMemberEnds(t *testing.T) {
	p := fakePlan(t, 1)
	s, m := scripted(t, p, scriptEnds), p.Member("node1")
	for _, how := range []startHow{{}, {initialCluster: "node1=http://192.0.2.1:2380"}} { // it joins, too
		if err := s.start(t.Context(), m, how); err != nil {
			t.Fatal(err)
		}
		var ended *node.StartError
		if err := s.ready(t.Context(), m); !errors.As(err, &ended) {
			t.Errorf("%+v: %v", how, err)
		}
		var gone permanent
		if _, _, err := s.client(m); !errors.As(err, &gone) || !strings.HasPrefix(err.Error(), "node1 ended: ") ||
			!strings.Contains(err.Error(), "3") {
			t.Errorf("%+v: %v", how, err)
		}
		if s.serves(t.Context(), m) == nil || !s.down(t.Context(), m) {
			t.Errorf("%+v: it runs", how)
		}
	}
}

// TestSandboxMemberWithoutClient: a client that cannot be made is an error, and is not kept.
func TestSandboxMemberWithoutClient(t *testing.T) {
	p := fakePlan(t, 1)
	s, m := scripted(t, p, scriptRuns), p.Member("node1")
	if err := s.start(t.Context(), m, startHow{}); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(s.dir, "sandbox", "tls")); err != nil {
		t.Fatal(err)
	}
	if c, _, err := s.client(m); c != nil || !errors.Is(err, fs.ErrNotExist) || len(s.clients) > 0 {
		t.Errorf("%v, %v, %d clients are kept", c, err, len(s.clients))
	}
}

// TestSandboxMemberIsNotStarted: a data dir that cannot be made, or a process that does not start, is an error.
func TestSandboxMemberIsNotStarted(t *testing.T) {
	p := fakePlan(t, 1)
	m := p.Member("node1")
	s := scripted(t, p, scriptEnds)
	if err := s.start(canceled(t), m, startHow{}); !errors.Is(err, context.Canceled) || s.newest(m) != nil {
		t.Errorf("%v, %v", err, s.newest(m))
	}
	s.dir = plainFile(t)
	wantError(t, "no folder", s.start(t.Context(), m, startHow{initialCluster: "x"}), "not a directory")
}

// TestSandboxMemberJoins: where the folder of the snapshots cannot be read, a member that joins is not waited for. One
// that has the database and does not serve is started a second time.
func TestSandboxMemberJoins(t *testing.T) {
	p := fakePlan(t, 1)
	record := filepath.Join(t.TempDir(), "record")
	s, m := scripted(t, p, "echo up >"+record+"\n"+scriptRuns), p.Member("node1")
	if err := s.start(t.Context(), m, startHow{initialCluster: "node1=http://192.0.2.1:2380"}); err != nil {
		t.Fatal(err)
	}
	first := s.newest(m)
	awaitWords(t, record, 1) // the script was opened
	part := filepath.Join(s.dataDir(m), "member")
	if err := errors.Join(os.RemoveAll(part), os.WriteFile(part, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	wantError(t, "no folder", s.ready(t.Context(), m), "not a directory")
	if err := os.Remove(part); err != nil {
		t.Fatal(err)
	}
	folders(t, filepath.Join(part, "snap", "a.snap"))
	if err := os.Remove(s.box.Server().Path); err != nil {
		t.Fatal(err)
	}
	if err := s.ready(t.Context(), m); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a program that is gone is started: %v", err)
	}
	if _, ended := first.Exited(); !ended {
		t.Error("the first process runs still")
	}
}

// TestSandboxDirStays: a data dir that cannot be moved aside is an error, and stays.
func TestSandboxDirStays(t *testing.T) {
	long := strings.Repeat("n", 250) // with its ID it is too long for a folder
	p := fakePlan(t, 1)
	m := &p.Members[0]
	m.NodeName, m.ID = long, 1<<63
	for name, before := range map[string]bool{"a file is there": true, "its name is too long": false} {
		s := &sandboxHost{dir: t.TempDir()}
		folders(t, s.dataDir(m))
		if before {
			if err := os.WriteFile(filepath.Join(s.dir, "before"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if where, err := s.aside(t.Context(), m); err == nil || where != "" {
			t.Errorf("%s: %q, %v", name, where, err)
		}
		if _, err := os.Stat(s.dataDir(m)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSandboxIsLaunched: a member that ends is reported, unless it is the one whose content is kept. One that cannot be
// started is an error.
func TestSandboxIsLaunched(t *testing.T) {
	c := newFake(t, fakePlan(t, 2))
	p := c.r.plan
	s := scripted(t, p, scriptEnds)
	notes, err := s.launch(t.Context(), c.r, []*plan.Member{p.Member("node2")})
	if err != nil || len(notes) != 1 || !strings.Contains(notes[0], "node2") {
		t.Errorf("%q, %v", notes, err)
	}
	var ended *node.StartError
	all := []*plan.Member{p.Member("node2"), p.Member("node1")}
	if notes, err = s.launch(t.Context(), c.r, all); !errors.As(err, &ended) || len(notes) != 1 {
		t.Errorf("the kept one: %q, %v", notes, err)
	}
	if err := os.RemoveAll(s.dataDir(p.Member("node2"))); err != nil {
		t.Fatal(err)
	}
	if notes, err = s.launch(t.Context(), c.r, all); !errors.Is(err, fs.ErrNotExist) || len(notes) > 0 {
		t.Errorf("without a log: %q, %v", notes, err)
	}
}

// TestSandboxJoinersComeLast: members that are joining are started once the leader has dropped the start of its log,
// which fails without one.
func TestSandboxJoinersComeLast(t *testing.T) {
	c := newFake(t, fakePlan(t, 2, "node2"))
	var empty string
	for _, st := range c.r.steps {
		if st.Kind == plan.StepStartEmpty {
			empty = st.ID
		}
	}
	if err := c.r.j.write(Record{State: StateDone, Step: empty}); err != nil {
		t.Fatal(err)
	}
	s := scripted(t, c.r.plan, scriptRuns)
	c.set(1, false)
	c.set(2, false)
	c.r.limits.step = 10 * time.Millisecond
	notes, err := s.up(t.Context(), c.r, plan.ForceNewCluster)
	if err == nil || len(notes) > 0 || s.newest(c.r.plan.Member("node2")) != nil {
		t.Errorf("%q, %v, %v", notes, err, s.runs)
	}
}

// TestSandboxEnds: copies that are published end gracefully, those that are thrown away at once.
func TestSandboxEnds(t *testing.T) {
	for _, throwAway := range []bool{true, false} {
		p := fakePlan(t, 2)
		record := filepath.Join(t.TempDir(), "record")
		s := scripted(t, p, "trap 'echo end >>"+record+"; exit' TERM\necho up >>"+record+
			"\nwhile :; do sleep 0.02; done")
		for i := range p.Members {
			if err := s.start(t.Context(), &p.Members[i], startHow{}); err != nil {
				t.Fatal(err)
			}
		}
		awaitWords(t, record, len(p.Members))
		if err := s.end(t.Context(), p, throwAway); err != nil {
			t.Fatal(err)
		}
		for i := range p.Members {
			if s.serves(t.Context(), &p.Members[i]) == nil {
				t.Errorf("%s runs", p.Members[i].Name)
			}
		}
		if ends := slices.Contains(words(record), "end"); ends == throwAway {
			t.Errorf("thrown away %v: %q", throwAway, words(record))
		}
	}
}

// words are what scripts wrote to a file.
func words(path string) []string {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return strings.Fields(string(b))
}

// awaitWords waits until scripts have written n words.
func awaitWords(t *testing.T, path string, n int) {
	t.Helper()
	for len(words(path)) < n {
		select {
		case <-t.Context().Done():
			t.Fatal("the scripts do not run")
		case <-time.After(time.Millisecond):
		}
	}
}
