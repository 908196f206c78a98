package run

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// abortsOf runs a plan's live way on a fake cluster and asks after each step how to go back.
func abortsOf(t *testing.T, p *plan.Plan) map[plan.StepKind]*WayBack {
	t.Helper()
	return abortsWith(t, p, "/data/etcd", "http://127.0.0.9:2379")
}

// abortsWith is abortsOf with what the journal says of a data dir and an endpoint.
func abortsWith(t *testing.T, p *plan.Plan, dir, endpoint string) map[plan.StepKind]*WayBack {
	t.Helper()
	c := newFake(t, p)
	file := filepath.Join(t.TempDir(), "plan.yaml")
	if err := errors.Join(p.Seal(), p.Save(file)); err != nil {
		t.Fatal(err)
	}
	if w, err := Abort(file); err != nil || w.Run != 0 || w.State != "not begun" {
		t.Errorf("before the first run: %v, %+v", err, w)
	}
	out := map[plan.StepKind]*WayBack{}
	c.journal(t, file, func(r Record, flushed bool) {
		if !flushed || r.State != StateDone {
			return
		}
		w, err := Abort(file)
		if err != nil {
			t.Error(err)
		}
		for _, s := range p.Way(plan.Live).Steps {
			if s.ID == r.Step {
				out[s.Kind] = w
			}
		}
	})
	if err := errors.Join(c.r.note("", "dir:node2", dir),
		c.r.note("", "endpoint:node1", endpoint)); err != nil {
		t.Fatal(err)
	}
	if err := c.r.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return out
}

// backOf is what is said of one member, as text.
func backOf(w *WayBack, name string) (text string, final bool) {
	for _, m := range w.Members {
		if m.Name != name {
			continue
		}
		text, final = m.State, m.Final
		for _, c := range m.Back {
			text += "\n" + c.Prefix() + c.Run
		}
	}
	return text, final
}

// TestAbort: after each step the way back is that from this very step, with commands that can be pasted.
func TestAbort(t *testing.T) {
	ways := abortsOf(t, fakePlan(t, 3, "node2"))
	for _, tc := range []struct {
		after plan.StepKind
		final bool
		says  []string
	}{
		{plan.StepSave, false, nil},
		{plan.StepStop, false, []string{"stopped, and still a member", "[node2] systemctl start etcd"}},
		{plan.StepRemove, true, []string{"the ID 2 never comes back", "one voter fewer",
			"mv -T /data/etcd /data/etcd.before-repair",
			"etcdctl --endpoints http://127.0.0.9:2379 member add --learner --peer-urls=http://node2:2380 -- node2"}},
		{plan.StepSetAside, true, []string{"the ID 2 never comes back", "member add --learner"}},
		{plan.StepAdd, true, []string{"added under the ID 65", "member remove 65", "systemctl stop etcd"}},
		{plan.StepPromote, true, []string{"a voter under its new ID 65"}},
	} {
		w := ways[tc.after]
		if w == nil {
			t.Errorf("nothing is said after %s", tc.after)
			continue
		}
		text, final := backOf(w, "node2")
		for _, s := range tc.says {
			if !strings.Contains(text, s) {
				t.Errorf("after %s %q is not said:\n%s", tc.after, s, text)
			}
		}
		if tc.after == plan.StepSetAside && strings.Contains(text, "mv -T /data/etcd") {
			t.Errorf("the data dir that was moved aside is moved again:\n%s", text)
		}
		if final != tc.final || (text == "") != (len(tc.says) == 0) {
			t.Errorf("after %s: final %v\n%s", tc.after, final, text)
		}
		if len(w.Done)+len(w.Left) != len(ways[plan.StepVerify].Done) || w.UnderWay != nil {
			t.Errorf("after %s: %d steps done, %d left, %+v under way", tc.after, len(w.Done), len(w.Left), w.UnderWay)
		}
	}
	if f := ways[plan.StepVerify].Files; len(f) != 2 {
		t.Errorf("files %q", f)
	}
}

// TestAbortWithoutLearners: a member of 3.3 votes as soon as it is added; of two voters it has to run before it can be
// removed.
func TestAbortWithoutLearners(t *testing.T) {
	p := fakePlan(t, 2, "node2")
	p.Cluster.Minor = 3
	ways := abortsOf(t, p)
	text, final := backOf(ways[plan.StepAdd], "node2")
	start, remove := strings.Index(text, "systemctl start etcd"), strings.Index(text, "member remove 65")
	if !final || !strings.Contains(text, "a voter from then on") || start < 0 || remove < start {
		t.Errorf("final %v\n%s", final, text)
	}
	for _, k := range []plan.StepKind{plan.StepWait, plan.StepVerify} {
		if text, final := backOf(ways[k], "node2"); !final || !strings.HasPrefix(text, "a voter under its new ID 65") ||
			strings.Contains(text, "member remove") {
			t.Errorf("after %s: final %v\n%s", k, final, text)
		}
	}
}

// TestMovedWithoutIndex: servers of 3.3 do not say their applied index, which is not 0.
func TestMovedWithoutIndex(t *testing.T) {
	ds := newFake(t, fakePlan(t, 2, "node2")).r.drifts
	d := &Drift{Member: "node1", PlannedRevision: 5, Revision: 7, PlannedIndex: 66}
	if got, want := ds.tell(d), "node1 went from revision 5 to 7 since its data dir was copied"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	d = &Drift{Member: "node1", PlannedRevision: 7, Revision: 7, PlannedIndex: 66, AppliedIndex: 66}
	if got, want := ds.tell(d), "node1 is at revision 7, as its copy"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestAbortSaysWhatEtcdctlNeeds: pasted as they are, its commands fail at a cluster with TLS or auth.
func TestAbortSaysWhatEtcdctlNeeds(t *testing.T) {
	for name, tc := range map[string]struct {
		endpoint string
		auth     bool
		want     []string
	}{
		"plain": {"http://127.0.0.9:2379", false, nil},
		"TLS":   {"https://127.0.0.9:2379", false, []string{"ETCDCTL_CACERT, ETCDCTL_CERT and ETCDCTL_KEY"}},
		"auth":  {"http://127.0.0.9:2379", true, []string{"ETCDCTL_USER=root"}},
		"both":  {"https://127.0.0.9:2379", true, []string{"ETCDCTL_CACERT", "; ETCDCTL_USER=root"}},
	} {
		p := fakePlan(t, 3, "node2")
		p.Cluster.Auth = tc.auth
		look := abortsWith(t, p, "/data/etcd", tc.endpoint)[plan.StepStop].Look
		if len(look) != 2+min(1, len(tc.want)) {
			t.Errorf("%s: %+v", name, look)
		}
		for _, s := range tc.want {
			if !strings.Contains(look[0].Note, s) {
				t.Errorf("%s: %q is missing in %+v", name, s, look[0])
			}
		}
	}
}

// TestAbortStandby: as long as the old member is there, the new one can go again.
func TestAbortStandby(t *testing.T) {
	ways := abortsOf(t, standbyPlan(t, 3))
	if text, final := backOf(ways[plan.StepPromote], "node9"); final || !strings.Contains(text, "member remove 65") ||
		!strings.Contains(text, "node2, whose place it is to take, still is a member") {
		t.Error(final, text)
	}
	if text, final := backOf(ways[plan.StepRemove], "node9"); !final ||
		!strings.Contains(text, "a voter under its new ID") {
		t.Error(final, text)
	}
	if text, final := backOf(ways[plan.StepRemove], "node2"); !final || strings.Contains(text, "member add") {
		t.Error(final, text)
	}
}

// TestAbortAtWork: while a process is at work there is no saying where it will be.
func TestAbortAtWork(t *testing.T) {
	p := fakePlan(t, 3, "node2")
	if err := p.LayOut(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "plan.yaml")
	if err := errors.Join(p.Seal(), p.Save(file)); err != nil {
		t.Fatal(err)
	}
	unlock, err := lock(file + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	var refused *refusal.Error
	if _, err := Abort(file); !errors.As(err, &refused) || !strings.Contains(refused.Hint, "^C") {
		t.Error(err)
	}
}

// TestAbortHostile: whatever members, hosts, folders and URLs are called, each command of a way back runs the programs
// that it names and nothing else.
func TestAbortHostile(t *testing.T) {
	p := fakePlan(t, 3, "node2")
	for i := range p.Members {
		m := &p.Members[i]
		m.NodeName = []string{"$(: >RAN)", "a'b\"`: >RAN`;#|<b>&{x}\\", "!!python *~ $HOME"}[i]
		m.PeerURLs = []string{fmt.Sprintf("http://127.0.0.%d:2380/$(: >RAN)", i+1),
			fmt.Sprintf("http://127.0.0.%d:2380/';: >RAN;'", i+1)}
	}
	commands := map[string]bool{}
	for _, w := range abortsWith(t, p, "/data/$(: >RAN)'; : >RAN", "http://127.0.0.9:2379/`: >RAN`") {
		for _, c := range w.Look {
			commands[c.Run] = true
		}
		for _, m := range w.Members {
			for _, c := range m.Back {
				commands[c.Run] = true
			}
		}
		for _, next := range w.Next {
			commands[next] = true
		}
	}
	delete(commands, "") // of a note
	if len(commands) < 10 {
		t.Errorf("%d commands", len(commands))
	}
	bin := t.TempDir()
	for _, name := range []string{"etcdctl", "etcd-medic", "systemctl", "mv", "pgrep", "sleep"} {
		end := map[string]string{"pgrep": "exit 1"}[name]
		script := "#!/bin/sh\necho " + name + " >>" + bin + "/record\n" + end + "\n"
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for line := range commands {
		for _, sh := range []string{"sh", "bash"} {
			path, err := exec.LookPath(sh)
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(path, "-c", line)
			cmd.Dir, cmd.Env = t.TempDir(), []string{"PATH=" + bin}
			if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("%s: %s\n%v %s", sh, line, err, out)
			}
			if made, err := os.ReadDir(cmd.Dir); err != nil || len(made) > 0 {
				t.Errorf("%s: %s\nmade %v, %v: data was executed", sh, line, made, err)
			}
			if err := os.Remove(filepath.Join(bin, "record")); err != nil {
				t.Errorf("%s: %s\nran nothing: %v", sh, line, err)
			}
		}
	}
}
