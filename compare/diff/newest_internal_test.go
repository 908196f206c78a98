package diff

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// TestMarksFromTheNewest: read from the newest records on, in stretches of any length, the live keys have the same
// marks as read from the oldest on.
func TestMarksFromTheNewest(t *testing.T) {
	var dirs []string
	for _, name := range evidencetest.Incidents(t) {
		found, err := filepath.Glob(filepath.Join(evidencetest.Incident(t, name), "node1"))
		if err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, found...)
	}
	for i, dir := range dirs {
		evidencetest.Unchanged(t, dir)
		r := keyComparerOf(t, fmt.Sprint("n", i), dir)
		if m := r.Members[0]; m.DB == nil || m.DB.KV == nil || m.DB.KVDamaged {
			continue
		}
		want := marksOf(t.Context(), r, 0)
		for _, stretch := range []int64{1, 2, 7, 50, newestFirst} {
			m := &marks{live: make([]*liveKeys, 1), whole: make([]bool, 1), hidden: make([]int64, 1)}
			if !r.markNewest(t.Context(), m, 0, stretch) {
				t.Errorf("%s, stretches of %d: not read", dir, stretch)
				continue
			}
			if got := marksIn(m.live[0]); !maps.Equal(got, want) {
				t.Errorf("%s, stretches of %d: %d keys, want %d", dir, stretch, len(got), len(want))
			}
		}
	}
}

// TestMarksNotFromTheNewest: a member that is damaged, is compared at an earlier revision, or has deleted many more
// keys than it has, is read in full.
func TestMarksNotFromTheNewest(t *testing.T) {
	dir := filepath.Join(evidencetest.Incident(t, "m-healthy-3.5"), "node1")
	r := keyComparerOf(t, "n", dir)
	m := &marks{live: make([]*liveKeys, 1), whole: make([]bool, 1), hidden: make([]int64, 1)}
	r.Revs[0]--
	if r.markNewest(t.Context(), m, 0, 1) {
		t.Error("read for an earlier revision")
	}
	r.Revs[0]++
	r.Members[0].DB.KVDamaged = true
	if r.markNewest(t.Context(), m, 0, 1) {
		t.Error("read although it is damaged")
	}
	nl := newestLive{liveKeys: newLiveKeys(0), most: -1}
	if _, ok := nl.read(t.Context(), r.Members[0].DB.Handle, 0, r.Revs[0]+1); ok {
		t.Error("read with more deleted keys than are kept")
	}
}

func keyComparerOf(t *testing.T, name, dir string) keyComparer {
	t.Helper()
	set, err := evidence.Open(t.Context(), []evidence.Spec{{Name: name, Where: dir}}, evidence.Options{Deep: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = set.Close() })
	return keyComparer{&Result{Members: set.Members, Revs: []int64{set.Members[0].CurrentRevision()}}}
}

func marksOf(ctx context.Context, r keyComparer, i int) map[string]mark {
	m := &marks{live: []*liveKeys{newLiveKeys(0)}, whole: []bool{true}, hidden: []int64{0}}
	r.markMember(ctx, m, i, 0, 1)
	return marksIn(m.live[0])
}

func marksIn(l *liveKeys) map[string]mark {
	out := map[string]mark{}
	for key, i := range l.at {
		out[key] = l.list[i]
	}
	return out
}
