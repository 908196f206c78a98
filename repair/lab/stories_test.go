package lab_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/repair/lab"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/repair/run"
)

// until waits until a condition on the members' statuses is met.
func until(t *testing.T, c *lab.Cluster, what string, met func([]lab.Status) bool) []lab.Status {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		st, err := c.Statuses(t.Context())
		if err == nil && met(st) {
			return st
		}
		if time.Now().After(end) {
			t.Fatalf("%s: %+v, %v", what, st, err)
		}
	}
}

// ahead are by how many revisions each member is ahead of node2.
func ahead(n1, n3 int64) func([]lab.Status) bool {
	return func(st []lab.Status) bool {
		return st[0].Revision == st[1].Revision+n1 && st[2].Revision == st[1].Revision+n3
	}
}

func write(t *testing.T, c *lab.Cluster, i int, prefix string, n int) {
	t.Helper()
	if got, err := c.Write(t.Context(), i, prefix, n); err != nil || got != n {
		t.Fatalf("through node%d: %d of %d acknowledged, %v", i+1, got, n, err)
	}
}

func authRevision(t *testing.T, c *lab.Cluster, i int) uint64 {
	t.Helper()
	cli, err := c.Client(i)
	if err != nil {
		t.Fatal(err)
	}
	st, err := cli.AuthStatus(t.Context())
	if err != nil || !st.Enabled {
		t.Fatal(st, err)
	}
	return st.AuthRevision
}

// values are the values of the keys in a copied data dir.
func values(t *testing.T, dir string) map[string]string {
	t.Helper()
	db, err := dumpdb.Open(filepath.Join(dir, "member", "snap", "db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	out := map[string]string{}
	for r, err := range db.Revisions() {
		if err != nil || r.Err != nil {
			t.Fatal(err, r.Err)
		}
		out[string(r.KV.Key)] = string(r.KV.Value)
	}
	return out
}

// TestStories breaks one cluster in the ways of the stories, one after the other: each has the effect that it tells of,
// and the members acknowledge writes all the same.
func TestStories(t *testing.T) {
	dir := t.TempDir()
	o := lab.Options{Dir: filepath.Join(dir, "lab"), Server: node.Bundled()}
	c, err := lab.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := lab.Start(t.Context(), o); err == nil {
		t.Error("a folder that exists is used")
	}
	stories := map[string]lab.Story{}
	for _, s := range lab.Stories() {
		stories[s.Name] = s
	}
	if lab.Stories()[0].Name != "auth" || len(stories) != 4 {
		t.Errorf("%+v", lab.Stories())
	}
	write(t, c, 1, "/a/", 3)
	st := until(t, c, "equal members", ahead(0, 0))
	leaders := 0
	for i, s := range st {
		if s.Name != []string{"node1", "node2", "node3"}[i] || !s.Healthy || s.Index < 6 || s.Revision != 4 ||
			s.Ended != "" {
			t.Errorf("%+v", s)
		}
		if s.Leader {
			leaders++
		}
	}
	if leaders != 1 {
		t.Errorf("%d leaders: %+v", leaders, st)
	}
	breakIt := func(name string) {
		t.Helper()
		if err := c.Break(t.Context(), stories[name]); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	breakIt("index")
	until(t, c, "a write is missing in node2", ahead(1, 1))
	breakIt("value")
	before := authRevision(t, c, 1)
	breakIt("auth")
	if after := authRevision(t, c, 1); after != before+9 || authRevision(t, c, 0) != before {
		t.Errorf("auth revision %d, then %d", before, after)
	}
	write(t, c, 0, "/b/", 2)
	until(t, c, "node2 drops writes", ahead(3, 3))
	copies := filepath.Join(dir, "copies")
	if err := c.Copies(t.Context(), copies); err != nil {
		t.Fatal(err)
	}
	checkCopies(t, copies)
	until(t, c, "the members run again", ahead(3, 3))
	if d := cmp.Diff([]string{"node1=" + filepath.Join(o.Dir, "data", "node1"),
		"node2=" + filepath.Join(o.Dir, "data", "node2"), "node3=" + filepath.Join(o.Dir, "data", "node3")},
		c.DataDirs()); d != "" {
		t.Error(d)
	}
	breakIt("wiped")
	lost := until(t, c, "node3 ends", func(st []lab.Status) bool { return st[2].Ended != "" })[2]
	if lost.Name != "node3" || lost.Healthy || lost.Revision != 0 {
		t.Errorf("%+v", lost)
	}
	if err := c.StartAll(t.Context()); err != nil { // not node3
		t.Error(err)
	}
	replace(t, c)
}

// checkCopies wants the copies to be complete, and node2's to have another value and to lack writes.
func checkCopies(t *testing.T, copies string) {
	t.Helper()
	sound, bad := values(t, filepath.Join(copies, "node1")), values(t, filepath.Join(copies, "node2"))
	if d := cmp.Diff(map[string]string{"/a/0000": "value 0 through node2", "/a/0001": "value 1 through node2",
		"/a/0002": "value 2 through node2", "/b/0000": "value 0 through node1", "/b/0001": "value 1 through node1"},
		sound); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(map[string]string{"/a/0000": "walue 0 through node2", "/a/0001": "value 1 through node2"},
		bad); d != "" {
		t.Error(d)
	}
	err := filepath.WalkDir(copies, func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".tmp") {
			t.Errorf("%s was copied", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// replace does what a repair has done on the hosts: node3 joins again with an empty data dir.
func replace(t *testing.T, c *lab.Cluster) {
	t.Helper()
	ctx, live := t.Context(), c.Live()
	for _, file := range []string{live.CACert, live.Cert, live.Key} {
		if _, err := os.Stat(file); err != nil {
			t.Error(err)
		}
	}
	if len(live.Endpoints) != 3 || live.CACert == live.Cert || live.Cert == live.Key {
		t.Errorf("%+v", live)
	}
	step := func(member, action, initial string) error {
		return live.HostActions(ctx, run.HostStep{Action: action, Member: &plan.Member{Name: member},
			InitialCluster: initial})
	}
	if err := step("node4", "stop", ""); err == nil || !strings.Contains(err.Error(), "no member node4") {
		t.Errorf("an unknown member: %v", err)
	}
	if err := step("node3", "hide", ""); err == nil || !strings.Contains(err.Error(), `no action "hide"`) {
		t.Errorf("an unknown action: %v", err)
	}
	data := strings.TrimPrefix(c.DataDirs()[2], "node3=")
	for range 2 { // doing it again does no harm
		if err := step("node3", "stop", ""); err != nil {
			t.Fatal(err)
		}
		if err := step("node3", "wipe", ""); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(data); err == nil {
			t.Fatal("the data dir is still there")
		}
	}
	if _, err := os.Stat(data + ".before-repair"); err != nil {
		t.Error(err)
	}
	cli, err := c.Client(0)
	if err != nil {
		t.Fatal(err)
	}
	members, err := cli.MemberList(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var initial []string
	for _, m := range members.Members {
		initial = append(initial, m.Name+"="+m.PeerURLs[0])
		if m.Name != "node3" {
			continue
		}
		retry(t, func() error { return second(cli.MemberRemove(ctx, m.ID)) })
		retry(t, func() error { return second(cli.MemberAdd(ctx, m.PeerURLs)) })
	}
	for range 2 {
		if err := step("node3", "start", strings.Join(initial, ",")); err != nil {
			t.Fatal(err)
		}
	}
	until(t, c, "node3 has everything again", func(st []lab.Status) bool {
		return st[2].Healthy && st[2].Revision == st[0].Revision
	})
	if err := step("node2", "stop", ""); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if n, err := c.Write(short, 1, "/c/", 2); n != 0 || err == nil {
		t.Errorf("%d writes through a stopped member, %v", n, err)
	}
	if err := c.StartAll(ctx); err != nil {
		t.Fatal(err)
	}
	until(t, c, "node2 runs again", func(st []lab.Status) bool { return st[1].Ended == "" })
}

func second[T any](_ T, err error) error { return err }

// retry repeats what a server refuses in the first seconds after a member started.
func retry(t *testing.T, do func() error) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		err := do()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}
