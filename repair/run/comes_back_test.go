package run

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// movingHost moves a data dir when it is asked to, if it is there.
type movingHost struct {
	*fakeCluster
	dir    string
	moves  bool
	starts int
}

func (h *movingHost) aside(context.Context, *plan.Member) (string, error) {
	if h.moves {
		return "", os.Rename(h.dir, h.dir+".aside")
	}
	return "", nil
}

func (h *movingHost) start(ctx context.Context, m *plan.Member, how startHow) error {
	h.starts++
	return h.fakeCluster.start(ctx, m, how)
}

// TestOldDataDirComesBack: a server that someone started while its data dir was moved leaves one under the old ID, with
// which no server joins. It is moved aside before the member is started, not waited for in vain.
func TestOldDataDirComesBack(t *testing.T) {
	c, m, from := oldDirRunner(t, 60)
	h := &movingHost{fakeCluster: c, dir: filepath.Join(t.TempDir(), "data")}
	if err := os.CopyFS(h.dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	c.r.host, c.r.live.DataDirs = h, map[string]string{"node2": h.dir}
	if err := c.r.startsEmpty(t.Context(), m); err != nil || len(c.r.out.Notes) > 0 {
		t.Fatalf("a member that has its ID still starts on its data dir: %v, %q", err, c.r.out.Notes)
	}
	if err := c.r.note("x", "id:node2", "abc"); err != nil {
		t.Fatal(err)
	}
	step := &plan.Step{ID: "x", Kind: plan.StepStartEmpty, Member: "node2"}
	wantError(t, "it runs", c.r.startAgain(t.Context(), m), "node2 runs on its old data dir "+h.dir)
	c.set(uint64(m.ID), false)
	_, err := doStartEmpty(t.Context(), c.r, step)
	wantError(t, "it is not moved", err, "is still at "+h.dir)
	if h.moves = true; h.starts > 0 {
		t.Error("it is started on its old data dir")
	}
	if err := c.r.startAgain(t.Context(), m); err != nil || h.starts != 1 {
		t.Errorf("started %d times: %v", h.starts, err)
	}
	if _, err := os.Stat(h.dir); err == nil || !slices.ContainsFunc(c.r.out.Notes, func(s string) bool {
		return strings.Contains(s, "a data dir of node2 under its old ID c834da0311299bc7 is at "+h.dir+" again")
	}) {
		t.Errorf("%v, %q", err, c.r.out.Notes)
	}
}

// TestDeletedDataDirIsNoted: a wipe hook that deletes leaves nothing that can be found. The result says so.
func TestDeletedDataDirIsNoted(t *testing.T) {
	for name, hook := range map[string]string{
		"deleted": `rm -rf -- "$ETCD_MEDIC_DATA_DIR"`,
		"moved":   `mv -- "$ETCD_MEDIC_DATA_DIR" "$ETCD_MEDIC_SET_ASIDE"`, // the tool makes its folder
	} {
		c, m, from := oldDirRunner(t, 60)
		dir := filepath.Join(t.TempDir(), "data")
		if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		f := newLiveHost(t.Context(), c.r.live, c.r.planFile())
		f.runBy(c.r)
		c.r.live.DataDirs, c.r.live.HookWipe = map[string]string{"node2": dir}, hook
		c.r.live.HostActions, c.r.live.HookTimeout, c.r.live.Output = nil, time.Minute, io.Discard
		c.r.host = hookedHost{c, f}
		c.set(uint64(m.ID), false)
		if _, err := doSetAside(t.Context(), c.r, &plan.Step{ID: "x", Member: "node2"}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		notes := strings.Join(c.r.out.Notes, "; ")
		want := "the old data dir of node2 was at " + dir + ", and is neither next to it nor at "
		if name == "deleted" != strings.HasPrefix(notes, want) {
			t.Errorf("%s: %q", name, notes)
		}
	}
}

// hookedHost moves data dirs with a hook.
type hookedHost struct {
	*fakeCluster
	live *liveHost
}

func (h hookedHost) aside(ctx context.Context, m *plan.Member) (string, error) {
	return h.live.aside(ctx, m)
}

// TestUnlistedDataDirIsMoved: a start with --initial-cluster-state=new leaves a data dir of the same cluster under an
// ID that it does not list. No server joins with it. One of a listed member is left where it is.
func TestUnlistedDataDirIsMoved(t *testing.T) {
	for listed, note := range map[bool]string{
		true: "", false: "a data dir of node2 under ID c834da0311299bc7, which the cluster does not list, is at "} {
		c, m, from := oldDirRunner(t, 60)
		h := &movingHost{fakeCluster: c, dir: filepath.Join(t.TempDir(), "data"), moves: true}
		if err := os.CopyFS(h.dir, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		_, set := c.r.left.findOldDir(t.Context(), m, []string{h.dir})
		if set == nil {
			t.Fatal("no data dir")
		}
		c.r.plan.Cluster.ID = set.Members[0].ClusterID
		if err := set.Close(); err != nil {
			t.Fatal(err)
		}
		stray := uint64(m.ID)
		m.ID = 2
		c.r.host, c.r.live.DataDirs = h, map[string]string{"node2": h.dir}
		c.list[1] = &etcdserverpb.Member{ID: 0xabc, Name: m.Name, PeerURLs: m.PeerURLs}
		if listed {
			c.list = append(c.list, &etcdserverpb.Member{ID: stray, Name: "node9"})
		}
		if err := c.r.note("x", "id:node2", "abc"); err != nil {
			t.Fatal(err)
		}
		c.set(0xabc, true)
		if err := c.r.startsEmpty(t.Context(), m); !listed {
			wantError(t, "it runs", err, "node2 runs on the data dir "+h.dir+" under ID c834da0311299bc7")
		}
		c.set(0xabc, false)
		c.set(2, false)
		c.set(stray, true)
		if err := c.r.startsEmpty(t.Context(), m); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(h.dir); (err == nil) != listed {
			t.Errorf("listed %v: %v", listed, err)
		}
		if notes := strings.Join(c.r.out.Notes, "; "); !strings.HasPrefix(notes, note) || listed && notes != "" {
			t.Errorf("listed %v: %s", listed, notes)
		}
	}
}

// TestNewMemberRemoved: someone removes the member that has just joined. It is not waited for, and the next run adds it
// once more.
func TestNewMemberRemoved(t *testing.T) {
	for _, at := range []plan.StepKind{plan.StepWait, plan.StepPromote} {
		c := newFake(t, fakePlan(t, 3, "node2"))
		c.journal(t, filepath.Join(t.TempDir(), "plan.yaml"), func(Record, bool) {})
		all := c.r.steps
		i := slices.IndexFunc(all, func(s plan.Step) bool { return s.Kind == at })
		c.r.steps = all[:i]
		if err := c.r.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		m := c.r.plan.Member("node2")
		id := c.id(m)
		c.list = slices.DeleteFunc(c.list, func(l *etcdserverpb.Member) bool { return l.GetID() == id })
		c.set(id, false)
		c.r.steps = all
		err := c.r.run(t.Context())
		wantError(t, string(at), err, "someone has removed it: node2 ("+hexID(id)+")")
		c.r.out = &Outcome{}
		if err := c.r.run(t.Context()); err != nil || c.id(m) == id || len(c.list) != 3 {
			t.Errorf("%s: %v, ID %x after %x", at, err, c.id(m), id)
		}
	}
}
