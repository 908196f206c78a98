package run

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// oldDirRunner is a fake repair of a cluster whose node2 is a member of a real one that was stopped; its copy ended at
// a revision.
func oldDirRunner(t *testing.T, revision int64) (*fakeCluster, *plan.Member, string) {
	t.Helper()
	dir := filepath.Join(evidencetest.Incident(t, "a-auth-revision-replay"), "node1")
	evidencetest.Unchanged(t, dir)
	p := fakePlan(t, 3, "node2")
	c := newFake(t, p)
	m := p.Member("node2")
	m.ID, m.Revision = dumplog.ID(0xc834da0311299bc7), revision
	c.set(uint64(m.ID), true)
	c.r.live.DataDirs = map[string]string{"node2": dir}
	return c, m, dir
}

// TestOnlyHeld: what a stopped member took in since its copy and the cluster does not hold is listed and saved.
func TestOnlyHeld(t *testing.T) {
	c, m, dir := oldDirRunner(t, 60)
	if _, err := doSetAside(t.Context(), c.r, &plan.Step{ID: "x", Member: "node2"}); err == nil {
		t.Fatal("a member that runs is set aside")
	}
	c.set(0xc834da0311299bc7, false)
	if _, err := doSetAside(t.Context(), c.r, &plan.Step{ID: "x", Member: "node2"}); err != nil {
		t.Fatal(err)
	}
	only := c.r.onlyHeld()
	if len(only) != 1 || only[0].Keys != 5 || only[0].Dir != dir || len(only[0].KeyNames) != 5 {
		t.Fatalf("%+v", only)
	}
	script, err := os.ReadFile(only[0].Script)
	if err != nil || strings.Count(string(script), ` put -- `) != 5 ||
		!strings.Contains(string(script), "What only node2 held when it was stopped") {
		t.Errorf("%v\n%s", err, script)
	}
	if out, err := exec.CommandContext(t.Context(), "sh", "-n", only[0].Script).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if text := only[0].Text(); !strings.Contains(text, "only node2 held 5 keys when it was stopped: ") ||
		!strings.Contains(text, only[0].Script) {
		t.Error(text)
	}
	before, after := c.r.left.oldDirs(m)
	if err := c.r.left.keepOnly(t.Context(), &plan.Step{ID: "x"}, m, append(before, after...), true); err != nil ||
		len(c.r.onlyHeld()) != 1 {
		t.Error("it is compared twice", err)
	}
}

// TestOnlyHeldElsewhere: a dir of another member does not count, one that was moved aside or that a hook brought does;
// and where there is none that is said with the command.
func TestOnlyHeldElsewhere(t *testing.T) {
	c, m, dir := oldDirRunner(t, 68)
	base := filepath.Join(t.TempDir(), "etcd [1]")
	for name, from := range map[string]string{"data": filepath.Join(filepath.Dir(dir), "node3"),
		"data.before-repair": dir} {
		if err := os.CopyFS(filepath.Join(base, name), os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	c.r.live.DataDirs["node2"] = filepath.Join(base, "data")
	before, after := c.r.left.oldDirs(m)
	if err := c.r.left.keepOnly(t.Context(), &plan.Step{ID: "x"}, m, before, false); err != nil ||
		len(c.r.onlyHeld()) > 0 {
		t.Errorf("the data dir of another member was compared: %v, %+v", err, c.r.onlyHeld())
	}
	if err := c.r.left.keepOnly(t.Context(), &plan.Step{ID: "x"}, m, after, true); err != nil {
		t.Fatal(err)
	}
	if o := c.r.onlyHeld(); len(o) != 1 || o[0].Dir != filepath.Join(base, "data.before-repair") || o[0].Keys != 0 ||
		o[0].Script != "" {
		t.Errorf("%+v", o)
	}
	c, m, dir = oldDirRunner(t, 67)
	c.r.live.DataDirs = nil
	if err := os.CopyFS(AsidePath(c.r.planFile(), m), os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	_, after = c.r.left.oldDirs(m)
	if err := c.r.left.keepOnly(t.Context(), &plan.Step{ID: "x"}, m, after, true); err != nil ||
		c.r.onlyHeld()[0].Keys != 1 {
		t.Errorf("%v, %+v", err, c.r.onlyHeld())
	}
	c, m, _ = oldDirRunner(t, 67)
	c.r.live.DataDirs = nil
	_, after = c.r.left.oldDirs(m)
	if err := c.r.left.keepOnly(t.Context(), &plan.Step{ID: "x"}, m, after, true); err != nil {
		t.Fatal(err)
	}
	if o := c.r.onlyHeld()[0]; !strings.Contains(o.Text(),
		"was not compared: its old data dir cannot be read from here") ||
		!strings.Contains(o.Command, "etcd-medic compare ") {
		t.Errorf("%+v", o)
	}
}

// TestOnlyHeldInItsLog: a process that was killed leaves acknowledged writes in its log that its database does not have
// yet.
func TestOnlyHeldInItsLog(t *testing.T) {
	const id, cluster = 0xa2, 0xc1
	h := clustertest.NewHand(t, t.TempDir(), "node2", id, cluster)
	h.Found(false, 0xa1, id)
	h.Member(0xa1, false, true)
	h.Member(id, false, true)
	h.State(2, id, 3)
	h.Request(2, 3, nil)
	h.Put(2, 4, clustertest.RequestID(id, 1, 1), "/before", "x", true)
	h.Put(2, 5, clustertest.RequestID(id, 1, 2), "/db", "in its database", true)
	h.Put(2, 6, clustertest.RequestID(id, 1, 3), "/log", "in its log", false)
	h.State(2, id, 6)
	dir := h.Close(5, 2)

	c := newFake(t, fakePlan(t, 3, "node2"))
	m := c.r.plan.Member("node2")
	m.ID, m.Revision, m.Applied = id, 2, 4
	c.r.live.DataDirs = map[string]string{"node2": dir}
	before, _ := c.r.left.oldDirs(m)
	if err := c.r.left.keepOnly(t.Context(), &plan.Step{ID: "x"}, m, before, true); err != nil {
		t.Fatal(err)
	}
	only := c.r.onlyHeld()
	if len(only) != 1 || only[0].Keys != 2 || only[0].Unknown != "" {
		t.Fatalf("%+v", only)
	}
	script, err := os.ReadFile(only[0].Script)
	if err != nil || !strings.Contains(string(script), "'in its log' | \"$etcdctl\" put -- '/log'") ||
		!strings.Contains(string(script), "'/db'") || strings.Contains(string(script), "/before") {
		t.Errorf("%v\n%s", err, script)
	}
}

// TestOnlyHeldByARemovedMember: a member that does not come back is compared once its server has ended; one that goes
// on is named.
func TestOnlyHeldByARemovedMember(t *testing.T) {
	for _, ends := range []bool{true, false} {
		c, m, dir := oldDirRunner(t, 60)
		c.r.limits.step = 200 * time.Millisecond
		m.Action = plan.Remove
		if ends {
			c.set(uint64(m.ID), false)
		}
		if err := c.r.left.keepRemoved(t.Context(), &plan.Step{ID: "x", Member: "node2"}, m); err != nil {
			t.Fatal(err)
		}
		only := c.r.onlyHeld()
		switch {
		case len(only) != 1:
			t.Errorf("ended %v: %+v", ends, only)
		case ends && (only[0].Keys != 5 || only[0].Dir != dir || only[0].Script == ""):
			t.Errorf("ended: %+v", only[0])
		case !ends && !strings.Contains(only[0].Text(), "was not compared: its server still runs"):
			t.Errorf("still running: %s", only[0].Text())
		}
	}
}
