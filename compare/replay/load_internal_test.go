package replay

import (
	"iter"
	"path/filepath"
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// TestLoadedKeys: read from the newest records on, in parts of any length, the keys at a revision are those that
// the records up to it lead to.
func TestLoadedKeys(t *testing.T) {
	compared := 0
	for name, m := range soundDBs(t) {
		last := m.CurrentRevision()
		for _, at := range []int64{1, last / 3, last - last/5, last} {
			be := &belowPlace{subject: &subject{logView: &logView{m: m}, meet: place{rev: at},
				cur: newCursor(m.DB.Handle, m.DB.KV.BumpMarker)}}
			have, whole := be.takeKeys()
			be.cur.stop()
			if !whole {
				t.Errorf("%s: records are hidden", name)
			}
			want := keysIn(have)
			if got := keysIn(be.loadKeys(at)); !slices.Equal(got, want) {
				t.Errorf("%s, revision %d: %d keys, want %d", name, at, len(got), len(want))
			}
			for _, size := range []int64{1, 3, 40, last} {
				p := keyParts(m.DB.Handle, m.DB.KV.BumpMarker)
				p.size, p.most = size, 20
				l := keyLoader{keys: apply.NewKeys(), dead: map[string]int64{}, most: int(last)}
				if !l.load(p, at) {
					t.Errorf("%s, revision %d, parts of %d: not loaded", name, at, size)
				}
				if got := keysIn(l.keys); !slices.Equal(got, want) {
					t.Errorf("%s, revision %d, parts of %d: %d keys, want %d", name, at, size, len(got), len(want))
				}
			}
			compared += len(want)
		}
	}
	if compared < 1000 {
		t.Errorf("only %d keys were compared", compared)
	}
}

// soundDBs yields a member of each set of testdata whose keys can be read in full, by the name of the set.
func soundDBs(t *testing.T) iter.Seq2[string, *evidence.Member] {
	return func(yield func(string, *evidence.Member) bool) {
		for _, name := range slices.Concat(evidencetest.Incidents(t), evidencetest.Shapes(t)) {
			dirs := dataDirs(t, filepath.Join(evidencetest.Incident(t, name), "*"))
			if len(dirs) == 0 {
				continue
			}
			m := open(t, dirs[0]).Members[0]
			if m.HasDB() && m.DB.KV != nil && !m.DB.KVDamaged && !yield(name, m) {
				return
			}
		}
	}
}

// TestKeysThatAreReadInOrder: where pages are damaged, or many keys deleted, the records are read in order.
func TestKeysThatAreReadInOrder(t *testing.T) {
	m := open(t, filepath.Join(evidencetest.Incident(t, "m-healthy-3.5"), "node1")).Members[0]
	l := keyLoader{keys: apply.NewKeys(), dead: map[string]int64{}, most: -1}
	if l.load(keyParts(m.DB.Handle, m.DB.KV.BumpMarker), m.CurrentRevision()) {
		t.Error("read with more deleted keys than are kept")
	}
	m.DB.KVDamaged = true
	if su := (&subject{logView: &logView{m: m}}); su.loadKeys(m.CurrentRevision()) != nil {
		t.Error("read although it is damaged")
	}
}

func keysIn(k *apply.Keys) (out []apply.Key) {
	k.All(func(k *apply.Key) bool {
		out = append(out, *k)
		return true
	})
	return out
}
