package run

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

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
	_, err := doSetAside(t.Context(), c.r, &plan.Step{ID: "x", Member: "node2"}) // it is compared before it is moved
	wantError(t, "it is not moved", err, "is still at "+dir)
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

// TestOnlyHeldWithAWALDir: the log of a server with --wal-dir is found in its place and where it was moved, with the
// data dir where that is. A moved log does not make an old data dir of what is new in its place.
func TestOnlyHeldWithAWALDir(t *testing.T) {
	c, m, dir := leftDir(t, nil)
	base := t.TempDir()
	data, wal := filepath.Join(base, "data"), filepath.Join(base, "wal")
	if err := os.CopyFS(data, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(data, "member", "wal"), wal); err != nil {
		t.Fatal(err)
	}
	c.r.live.DataDirs = map[string]string{"node2": data}
	before, _ := c.r.left.oldDirs(m)
	find := func(places []string) string {
		at, set := c.r.left.findOldDir(t.Context(), m, places)
		if set != nil {
			_ = set.Close()
		}
		return at
	}
	if at := find(before); at != "" {
		t.Errorf("without its log %s is taken for that of node2", at)
	}
	c.r.live.WALDirs = map[string]string{"": wal}
	if at := find(before); at != data {
		t.Errorf("with its log %q is found", at)
	}
	if err := os.Rename(wal, wal+".aside"); err != nil {
		t.Fatal(err)
	}
	if at := find(before); at != "" {
		t.Errorf("with a log that was moved %s is taken for the old data dir", at)
	}
	if err := os.Rename(data, data+".aside"); err != nil {
		t.Fatal(err)
	}
	_, after := c.r.left.oldDirs(m)
	if err := c.r.left.keepOnly(t.Context(), &plan.Step{ID: "x"}, m, after, true); err != nil {
		t.Fatal(err)
	}
	if o := c.r.onlyHeld(); len(o) != 1 || o[0].Dir != data+".aside" || o[0].Keys != 2 {
		t.Errorf("%+v", o)
	}
}

// TestOnlyHeldInItsLog: a process that was killed leaves acknowledged writes in its log that its database does not have
// yet.
func TestOnlyHeldInItsLog(t *testing.T) {
	c, m, dir := leftDir(t, nil)
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

// TestOnlyHeldIs: a change counts unless the best member made it too; a state counts if it is not that of the best
// member. What could not be seen is said.
func TestOnlyHeldIs(t *testing.T) {
	const id = 0xa2
	tombstone := func(h *clustertest.Hand, rev byte, key string) {
		h.Row("key", "\x00\x00\x00\x00\x00\x00\x00"+string(rev)+"_\x00\x00\x00\x00\x00\x00\x00\x00t",
			"\x0a"+string(rune(len(key)))+key)
	}
	put := func(h *clustertest.Hand, index uint64, r *etcdserverpb.PutRequest) {
		h.Request(2, index, &etcdserverpb.InternalRaftRequest{
			Header: &etcdserverpb.RequestHeader{ID: clustertest.RequestID(id, 1, index)}, Put: r})
	}
	for name, tc := range map[string]struct {
		fill    func(*clustertest.Hand)
		set     func(*fakeCluster, *plan.Member, string)
		keys    int
		names   string
		unknown string
		script  string
	}{
		"all": {keys: 2, names: "/db /log", script: "put -- '/db'"},
		"the best member has one too": {set: func(c *fakeCluster, _ *plan.Member, _ string) {
			c.wrote(1, 12, "/db", "in its database")
		}, keys: 1, names: "/log", script: "put -- '/log'"},
		"the best member has it, and another value since": {set: func(c *fakeCluster, _ *plan.Member, _ string) {
			c.wrote(1, 12, "/db", "in its database")
			c.wrote(1, 13, "/db", "new")
		}, keys: 1, names: "/log", script: "put -- '/log'"},
		"the best member has another value": {set: func(c *fakeCluster, _ *plan.Member, _ string) {
			c.wrote(1, 12, "/db", "other")
		}, keys: 2, names: "/db /log", script: "put -- '/db'"},
		"the best member had the value before its copy": {set: func(c *fakeCluster, _ *plan.Member, _ string) {
			c.wrote(1, 9, "/db", "in its database")
			c.wrote(1, 10, "/db", "new")
		}, keys: 2, names: "/db /log", script: "put -- '/db'"},
		"the copy of the best member is newer": {set: func(c *fakeCluster, m *plan.Member, _ string) {
			c.r.plan.Best.AppliedIndex = m.Applied + 2
			c.wrote(1, 9, "/db", "in its database")
			c.wrote(1, 10, "/db", "new")
		}, keys: 1, names: "/log", script: "put -- '/log'"},
		"the best member was compacted": {set: func(c *fakeCluster, _ *plan.Member, _ string) {
			c.wrote(1, 13, "l", "v")
			c.of(1).compact = 12
		}, keys: 2, names: "/db /log", unknown: "node1 was compacted at revision 12: a key that both changed before",
			script: "put -- '/db'"},
		"a delete that the best member has not": {fill: func(h *clustertest.Hand) { tombstone(h, 9, "/gone") },
			set:  func(c *fakeCluster, _ *plan.Member, _ string) { c.of(1).keys["/gone"] = "x" },
			keys: 3, names: "/db /gone /log", script: "del -- '/gone'"},
		"a delete of what the best member has not either": {fill: func(h *clustertest.Hand) { tombstone(h, 9, "/gone") },
			keys: 2, names: "/db /log", script: "put -- '/db'"},
		"a lease": {fill: func(h *clustertest.Hand) {
			h.LeasedRevision("/leased", "l", 7)
			h.Row("lease", "\x00\x00\x00\x00\x00\x00\x00\x07", "\x08\x07\x10\x63")
		}, keys: 3, names: "/db /leased /log", script: "lease_7=$(grant 99)"},
		"a record that does not decode": {fill: func(h *clustertest.Hand) {
			h.Row("key", "\x00\x00\x00\x00\x00\x00\x00\x09_\x00\x00\x00\x00\x00\x00\x00\x00", "\xff")
		}, keys: 1, names: "/db", unknown: "1 place of its database cannot be read; its log above", script: "put -- '/db'"},
		"compacted": {fill: func(h *clustertest.Hand) {
			h.Row("meta", "finishedCompactRev", "\x00\x00\x00\x00\x00\x00\x00\x03_\x00\x00\x00\x00\x00\x00\x00\x00")
		}, keys: 2, names: "/db /log", unknown: "its database is compacted at revision 3: deletes up to there",
			script: "put -- '/db'"},
		"compacted before its copy": {fill: func(h *clustertest.Hand) {
			h.Row("meta", "finishedCompactRev", "\x00\x00\x00\x00\x00\x00\x00\x02_\x00\x00\x00\x00\x00\x00\x00\x00")
		}, keys: 2, names: "/db /log", script: "put -- '/db'"},
		"a value that the log does not have": {fill: func(h *clustertest.Hand) {
			put(h, 7, &etcdserverpb.PutRequest{Key: []byte("/db"), IgnoreValue: true})
		}, keys: 2, names: "/db /log", unknown: "the outcome of 1 of 2 writes in its log above its database is unknown",
			script: "put -- '/db'"},
		"a key with a zero byte": {fill: func(h *clustertest.Hand) {
			put(h, 7, &etcdserverpb.PutRequest{Key: []byte("/z\x00"), Value: []byte("v")})
		}, keys: 3, names: "/db /log /z\x00",
			unknown: "the script cannot contain 1 key with a zero byte", script: "put -- '/log'"},
		"no database": {set: func(_ *fakeCluster, _ *plan.Member, dir string) {
			if err := os.Truncate(filepath.Join(dir, "member", "snap", "db"), 0); err != nil {
				panic(err)
			}
		}, unknown: "its database cannot be read"},
		"the cluster does not answer": {set: func(c *fakeCluster, _ *plan.Member, _ string) {
			c.set(1, false)
		}, unknown: "the changes of node1 could not be read: "},
	} {
		t.Run(name, func(t *testing.T) {
			h := clustertest.NewHand(t, t.TempDir(), "node2", id, 0xc1)
			h.Found(false, 0xa1, id)
			h.Member(0xa1, false, true)
			h.Member(id, false, true)
			h.State(2, id, 3)
			h.Request(2, 3, nil)
			h.Put(2, 4, clustertest.RequestID(id, 1, 1), "/before", "x", true)
			h.Put(2, 5, clustertest.RequestID(id, 1, 2), "/db", "in its database", true)
			h.Put(2, 6, clustertest.RequestID(id, 1, 3), "/log", "in its log", false)
			if tc.fill != nil {
				tc.fill(h)
			}
			h.State(2, id, 7)
			dir := h.Close(5, 2)
			c := newFake(t, fakePlan(t, 3, "node2"))
			m := c.r.plan.Member("node2")
			m.ID, m.Revision, m.Applied = id, 2, 4
			c.r.live.DataDirs = map[string]string{"node2": dir}
			if tc.set != nil {
				tc.set(c, m, dir)
			}
			taken := strings.TrimSuffix(savePath(c.r.backup, m), ".db") + ".only.sh"
			if err := os.WriteFile(taken, []byte("older"), 0o600); err != nil {
				t.Fatal(err)
			}
			before, _ := c.r.left.oldDirs(m)
			if err := c.r.left.keepOnly(t.Context(), &plan.Step{ID: "x"}, m, before, true); err != nil {
				t.Fatal(err)
			}
			o := c.r.onlyHeld()[0]
			var names []string
			for _, k := range o.KeyNames {
				names = append(names, string(k))
			}
			if o.Keys != tc.keys || strings.Join(names, " ") != tc.names || !strings.HasPrefix(o.Unknown, tc.unknown) ||
				tc.unknown == "" && o.Unknown != "" || (o.Script == "") != (tc.script == "") {
				t.Fatalf("%+v", o)
			}
			if o.Script == "" {
				return
			}
			script, err := os.ReadFile(o.Script)
			if err != nil || !strings.Contains(string(script), tc.script) ||
				o.Script != strings.TrimSuffix(taken, "sh")+"2.sh" {
				t.Errorf("%s: %v\n%s", o.Script, err, script)
			}
			if old, err := os.ReadFile(taken); err != nil || string(old) != "older" {
				t.Errorf("%s, %v", old, err)
			}
		})
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
