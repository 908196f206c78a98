package run

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/shell"
	"github.com/etcd-medic/etcd-medic/shell/shelltest"
)

// hostileNames are names of members that do something where a line takes them for more than data.
var hostileNames = []string{"-oProxyCommand=$(: >RAN)", "a'b\"; : >RAN; #|<b>&{x}",
	"`: >RAN`\x1b]0;t\x07\u202e\n: >RAN\n"}

// hostileFake is a cluster whose members have such names and URLs.
func hostileFake(t *testing.T) *fakeCluster {
	t.Helper()
	p := fakePlan(t, len(hostileNames), "node2")
	for i := range p.Members {
		m := &p.Members[i]
		m.Name, m.NodeName, m.Source = hostileNames[i], hostileNames[i], hostileNames[i]
		m.PeerURLs = []string{fmt.Sprintf("http://127.0.0.1:%d/$(: >RAN)", 2380+i)}
		m.ClientURLs = []string{fmt.Sprintf("https://127.0.0.1:%d/';: >RAN;'", 2379+i)}
	}
	p.Best.Name = hostileNames[0]
	return newFake(t, p)
}

// commandLines are the texts of commands among what a person is asked to do: they begin with where they are typed.
func commandLines(texts []string) (out []string) {
	for _, text := range texts {
		for _, with := range []string{"systemd", "static-pod", "etcd-medic", "etcdctl"} {
			rest, ok := strings.CutPrefix(text, fmt.Sprintf("  %-10s  ", with))
			if !ok {
				continue
			}
			if strings.HasPrefix(rest, "[") { // where it is typed is a quoted name
				rest = "etcd-medic " + strings.Replace(strings.TrimPrefix(rest, "["), "] ", " ; ", 1)
			}
			out = append(out, rest)
		}
	}
	return out
}

// TestPastedInstructions: what a live run asks a person to type on a host runs only the programs that it names, also
// when the text in front of it is pasted with it.
func TestPastedInstructions(t *testing.T) {
	c := hostileFake(t)
	initial := "n`: >RAN`=http://127.0.0.1:2380,$(: >RAN)=http://127.0.0.1:2382"
	o := &LiveOptions{DataDirs: map[string]string{"": "/var/lib/$(: >RAN) 'etcd"}}
	f := newLiveHost(t.Context(), o, "/plans/$(: >RAN).yaml")
	f.runBy(c.r)
	var texts []string
	for i := range c.r.plan.Members {
		m := &c.r.plan.Members[i]
		empty := plan.StepStartEmpty.ByHand(c.r.plan, m)[1:]
		for _, text := range [][]string{
			f.instructions(m, "stop", plan.StepStop.ByHand(c.r.plan, m), ""),
			f.instructions(m, "wipe", plan.StepSetAside.ByHand(c.r.plan, m), ""),
			f.instructions(m, "start", plan.StepStart.ByHand(c.r.plan, m), ""),
			f.instructions(m, "start", empty, initial),
			(&ruling{missing: []voter{{id: uint64(m.ID), name: m.Name, m: m, why: m.Name}}}).bringBack(c.r.plan),
		} {
			if len(commandLines(text)) == 0 {
				t.Errorf("no command was seen in %q", text)
			}
			texts = append(texts, text...)
		}
	}
	w := shelltest.New(t)
	for _, sh := range shelltest.Shells(t) {
		for _, line := range commandLines(texts) {
			if strings.Contains(line, "\n") {
				t.Errorf("a command is not one line: %q", line)
			}
			for _, call := range w.Run(sh, line) {
				if !slices.Contains([]string{"etcd-medic", "systemctl", "mv", "pgrep", "sleep", "etcd"}, call[0]) {
					t.Errorf("%s\nran %q", line, call)
				}
			}
		}
	}
}

// TestPastedHints: the commands in the errors and notes of a live run, and those that put new data dirs in place.
func TestPastedHints(t *testing.T) {
	c := hostileFake(t)
	c.journal(t, t.TempDir()+"/-pl'an $(: >RAN).yaml", func(Record, bool) {})
	back, _ := strings.CutPrefix(strings.TrimSuffix(c.r.orBack(), " says how to go back"), "; ")
	commands := []string{back}
	for i := range c.r.plan.Members {
		compare := (&leftDirs{cluster: &cluster{runState: c.r.runState}}).compareCommand(&c.r.plan.Members[i])
		commands = append(commands, compare.String())
	}
	s := &session{plan: c.r.plan, out: &Outcome{}}
	for i := range c.r.plan.Ways {
		s.install(c.r.plan.Ways[i].Mode, "-new dirs $(: >RAN)")
	}
	installs := 0
	for _, x := range s.out.Install {
		if x.Run != "" {
			commands = append(commands, x.Run)
			installs++
		}
		if !shell.IsSafe([]byte(x.Prefix())) {
			t.Errorf("%q holds what a terminal obeys", x.Prefix())
		}
	}
	if installs == 0 || back == "" {
		t.Errorf("%d commands put data dirs in place; %q goes back", installs, back)
	}
	w := shelltest.New(t)
	for _, sh := range shelltest.Shells(t) {
		for _, line := range commands {
			w.Run(sh, line)
		}
	}
}

// TestHooksRunNothingElse: a hook that quotes its variables runs what it names, with the bytes of the cluster, and no
// hook runs for a member whose name a program takes for a flag or a terminal obeys. Pasting the log of all hooks runs
// nothing at all.
func TestHooksRunNothingElse(t *testing.T) {
	c := hostileFake(t)
	w := shelltest.New(t)
	for _, sh := range shelltest.Shells(t) {
		if err := os.Symlink(sh, filepath.Join(w.Bin, filepath.Base(sh))); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(w.Work)
	t.Setenv("PATH", w.Bin)
	t.Setenv("RECORD", filepath.Join(w.Bin, "record"))
	f := newLiveHost(t.Context(), &LiveOptions{DataDirs: map[string]string{"": "/var/lib/$(: >RAN) 'etcd"},
		HookTimeout: time.Minute, Output: io.Discard}, filepath.Join(t.TempDir(), "plan $(: >RAN).yaml"))
	f.runBy(c.r)
	const initial = "n`: >RAN`=http://127.0.0.1:2380,$(: >RAN)=http://127.0.0.1:2382"
	ran := 0
	for i := range c.r.plan.Members {
		m := &c.r.plan.Members[i]
		err := f.runHook(t.Context(), m, "start", `ssh -- "$ETCD_MEDIC_MEMBER_NAME" "$ETCD_MEDIC_DATA_DIR" `+
			`"$ETCD_MEDIC_PEER_URLS" "$ETCD_MEDIC_CLIENT_URLS" "$ETCD_MEDIC_INITIAL_CLUSTER" "$ETCD_MEDIC_SET_ASIDE"`,
			initial)
		calls := w.Calls()
		if m.Name != hostileNames[1] { // a flag, and a terminal's title with a line feed
			if err == nil || len(calls) > 0 || !strings.Contains(err.Error(), "by hand") {
				t.Errorf("member %q: %v, ran %q", m.Name, err, calls)
			}
			continue
		}
		want := []string{"ssh", "--", m.Name, f.dataDir(m), m.PeerURLs[0], m.ClientURLs[0], initial,
			AsidePath(f.plan, m)}
		if err != nil || len(calls) != 1 || !slices.Equal(calls[0], want) {
			t.Errorf("member %q: %v, ran %q, want %q", m.Name, err, calls, want)
		}
		ran++
	}
	log, err := os.ReadFile(HooksLogPath(f.plan))
	if err != nil || ran != 1 || !shell.IsSafe(log) || strings.Count(string(log), "\n") != 1 {
		t.Fatalf("%d hooks ran, the log is %q, %v", ran, log, err)
	}
	for _, sh := range shelltest.Shells(t) {
		if calls := w.Run(sh, string(log)+"etcd-medic"); len(calls) != 1 || len(calls[0]) != 1 {
			t.Errorf("%s ran %q of the log", sh, calls)
		}
	}
}
