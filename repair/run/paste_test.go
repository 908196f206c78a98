package run

import (
	"fmt"
	"slices"
	"strings"
	"testing"

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
	f := &field{o: o, r: c.r, plan: "/plans/$(: >RAN).yaml", endpoints: map[string]string{},
		listed: map[string]string{}, given: map[string]string{}}
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
