package datadir_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// openSet reads data dirs as a command would.
func openSet(t testing.TB, dirs ...string) *evidence.Set {
	t.Helper()
	var specs []evidence.Spec
	for _, d := range dirs {
		specs = append(specs, evidence.Spec{Name: filepath.Base(d), Where: d})
	}
	set, err := evidence.Open(context.Background(), specs, evidence.Options{})
	ok(t, err)
	t.Cleanup(func() { ok(t, set.Close()) })
	return set
}

func targets(t testing.TB, set *evidence.Set) (out []datadir.Target) {
	t.Helper()
	for _, m := range set.Members {
		x, err := datadir.TargetOf(m)
		ok(t, err)
		out = append(out, x)
	}
	return out
}

func TestCloneIsReadByEtcd(t *testing.T) {
	dirs := clustertest.Synth{Members: 3, Entries: 500, Keys: 40, Value: 100}.Write(t, t.TempDir())
	evidencetest.Unchanged(t, dirs...)
	set := openSet(t, dirs...)
	dst := filepath.Join(t.TempDir(), "clone")
	res, err := datadir.Clone(context.Background(), set.Members[1], targets(t, set), dst, datadir.CloneOptions{})
	ok(t, err)
	if len(res.Dirs) != 3 || len(res.Notes) != 0 {
		t.Fatalf("result %+v", res)
	}
	for i, w := range res.Dirs {
		r := readWithEtcd(t, filepath.Join(dst, w.Name))
		if uint64(w.MemberID) != r.metadata.NodeID || r.metadata.NodeID != uint64(set.Members[i].MemberID) ||
			r.metadata.ClusterID != 0xc1 {
			t.Errorf("%s: metadata %+v", w.Name, r.metadata)
		}
		if r.snap.Metadata.Index != 503 || r.snap.Metadata.Term != 2 || r.state.Commit != 503 || r.state.Term != 3 ||
			r.state.Vote != 0 || len(r.entries) != 0 {
			t.Errorf("%s: snapshot %+v, state %+v, %d entries", w.Name, r.snap.Metadata, r.state, len(r.entries))
		}
		if r.index != 503 || r.term != 2 {
			t.Errorf("%s: consistent index %d/%d", w.Name, r.term, r.index)
		}
		ids := []uint64{0xa1, 0xa2, 0xa3}
		if d := cmp.Diff(ids, r.snap.Metadata.ConfState.Voters) + cmp.Diff(ids, r.bucket); d != "" ||
			len(r.members) != 3 {
			t.Errorf("%s: voters and bucket %s, %d members in the .snap", w.Name, d, len(r.members))
		}
		if m := r.members["a2"]; m == nil || m.Name != "node2" || m.PeerURLs[0] != "http://127.0.0.1:2382" ||
			m.ClientURLs[0] != "http://127.0.0.1:2381" {
			t.Errorf("%s: member a2 is %+v", w.Name, m)
		}
	}
	again := openSet(t, filepath.Join(dst, "node1"), filepath.Join(dst, "node3"))
	for _, m := range again.Members {
		if len(m.WAL.Summary.Damage) != 0 || m.CurrentRevision() != set.Members[1].CurrentRevision() {
			t.Errorf("%s: damage %v, revision %d", m.Label(), m.WAL.Summary.Damage, m.CurrentRevision())
		}
	}
}

// TestCloneKeepsTail: what the best member has committed and not yet in its database follows in the new logs.
func TestCloneKeepsTail(t *testing.T) {
	ahead := clustertest.Synth{Members: 3, Entries: 500, Keys: 40, Value: 100}
	dirs := ahead.Write(t, t.TempDir())
	ok(t, os.Remove(filepath.Join(dirs[0], "member", "snap", "db")))
	clustertest.Synth{Members: 3, Entries: 450, Keys: 40, Value: 100}.WriteDB(t,
		filepath.Join(dirs[0], "member", "snap", "db"))
	evidencetest.Unchanged(t, dirs...)
	set := openSet(t, dirs...)
	for keep, want := range map[bool]int{false: 0, true: 50} {
		dst := filepath.Join(t.TempDir(), "clone")
		res, err := datadir.Clone(context.Background(), set.Members[0], targets(t, set), dst,
			datadir.CloneOptions{KeepTail: keep})
		ok(t, err)
		r := readWithEtcd(t, filepath.Join(dst, "node2"))
		if len(r.entries) != want || r.state.Commit != uint64(453+want) || r.snap.Metadata.Index != 453 ||
			r.index != 453 || len(res.Notes) != 1 {
			t.Errorf("keep %v: %d entries, state %+v, snapshot %d, db %d; %v", keep, len(r.entries), r.state,
				r.snap.Metadata.Index, r.index, res.Notes)
		}
		if keep && (r.entries[49].Index != 503 || r.entries[49].Term != 2) {
			t.Errorf("last entry %+v", r.entries[49])
		}
	}
}

// TestCloneCarriesRaftsList: the databases get raft's own list where the bucket differs from it. A member without a dir
// is named, and sources that changed meanwhile leave nothing.
func TestCloneCarriesRaftsList(t *testing.T) {
	dirs := clustertest.Synth{Members: 3, Entries: 50, Keys: 4, Value: 10}.Write(t, t.TempDir())
	ok(t, datadir.EditNew(filepath.Join(dirs[0], "member", "snap", "db"),
		datadir.SetMembers([]datadir.Member{{ID: 0xdead, Name: "old", PeerURLs: []string{"http://x:1"}}}, nil)))
	set := openSet(t, dirs...)
	dst, two := filepath.Join(t.TempDir(), "clone"), targets(t, set)[:2]
	changed := errors.New("changed")
	o := datadir.CloneOptions{Ready: func(context.Context) error { return changed }}
	if _, err := datadir.Clone(t.Context(), set.Members[0], two, dst, o); !errors.Is(err, changed) {
		t.Errorf("a source that changed: %v", err)
	}
	gone(t, dst)
	res, err := datadir.Clone(t.Context(), set.Members[0], two, dst, datadir.CloneOptions{})
	ok(t, err)
	notes := strings.Join(res.Notes, "\n")
	if len(res.Notes) != 2 || !strings.Contains(notes, "something else than raft's own list") ||
		!strings.Contains(notes, "member a3 gets no dir; it must not start on its old one") {
		t.Errorf("%q", res.Notes)
	}
	for _, w := range res.Dirs {
		r := readWithEtcd(t, filepath.Join(dst, w.Name))
		if d := cmp.Diff([]uint64{0xa1, 0xa2, 0xa3}, r.bucket); d != "" {
			t.Errorf("%s: bucket members %s", w.Name, d)
		}
	}
}

func TestCloneRefuses(t *testing.T) {
	dirs := clustertest.Synth{Members: 3, Entries: 50, Keys: 4, Value: 10}.Write(t, t.TempDir())
	set := openSet(t, dirs...)
	best, all := set.Members[0], targets(t, set)
	foreign, stranger := all[1], all[1]
	foreign.ClusterID, stranger.MemberID = 0xdead, 0xdead
	dup := all[0]
	var refused *refusal.Error
	for name, list := range map[string][]datadir.Target{"foreign cluster": {foreign}, "no member": {stranger}} {
		dst := filepath.Join(t.TempDir(), "clone")
		if _, err := datadir.Clone(context.Background(), best, list, dst, datadir.CloneOptions{}); !errors.As(err,
			&refused) {
			t.Errorf("%s: %v", name, err)
		}
		gone(t, dst)
	}
	if _, err := datadir.Clone(context.Background(), best, []datadir.Target{dup, dup}, filepath.Join(t.TempDir(), "c"),
		datadir.CloneOptions{}); err == nil {
		t.Error("the same member twice is taken")
	}
	dst := t.TempDir()
	if _, err := datadir.Clone(context.Background(), best, all, dst, datadir.CloneOptions{}); !errors.Is(err,
		datadir.ErrExists) {
		t.Errorf("an existing path: %v", err)
	}
}

// gone proves that nothing stands under a name nor under its partial.
func gone(t *testing.T, path string) {
	t.Helper()
	for _, p := range []string{path, path + ".partial"} {
		if _, err := os.Lstat(p); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is there: %v", p, err)
		}
	}
}
