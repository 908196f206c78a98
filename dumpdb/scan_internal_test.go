package dumpdb

import (
	"bytes"
	"os"
	"slices"
	"testing"

	"github.com/cockroachdb/datadriven"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// TestWantedSpans: a page is read when its span, which ends before its last key, meets the wanted one.
func TestWantedSpans(t *testing.T) {
	key := func(s string) []byte {
		if s == "" {
			return nil
		}
		return []byte(s)
	}
	for _, tc := range []struct {
		wantFirst, wantEnd, first, end string
		read                           bool
	}{
		{"", "", "a", "b", true},
		{"", "", "", "", true},
		{"c", "", "a", "b", false},
		{"c", "", "a", "c", false}, // its keys are below c
		{"c", "", "a", "d", true},
		{"c", "", "a", "", true},
		{"", "c", "b", "d", true},
		{"", "c", "c", "d", false}, // keys below c are wanted
		{"", "c", "d", "", false},
		{"b", "c", "b", "c", true},
	} {
		s := &scan{want: span{key(tc.wantFirst), key(tc.wantEnd)}}
		if got := s.wanted(span{key(tc.first), key(tc.end)}); got != tc.read {
			t.Errorf("%q to %q of %q to %q: %v", tc.wantFirst, tc.wantEnd, tc.first, tc.end, got)
		}
	}
}

// TestDeepestPage: a page is read down to the last level that a tree may have.
func TestDeepestPage(t *testing.T) {
	db := made(t, "many 40 2.0 /k 300")
	root := db.buckets[db.byName["key"]].Root
	s := db.newScan(t.Context(), "key")
	if _, _, dmg := s.load([]elem{{child: root}}, 0, maxDepth-1); dmg != nil {
		t.Errorf("the last level: %v", dmg)
	}
	_, _, dmg := s.load([]elem{{child: root}}, 0, maxDepth)
	if dmg == nil || dmg.Kind != DamagePage || dmg.Page != root || dmg.Observed != "a deeper one" {
		t.Errorf("one more level: %v", dmg)
	}
}

// TestRecordInAValue: bytes in a value that look like a record are none. What follows the record is found.
func TestRecordInAValue(t *testing.T) {
	record := func(main int64, value []byte) []byte {
		b, err := (&mvccpb.KeyValue{Key: []byte("k"), CreateRevision: main, ModRevision: main, Version: 1,
			Value: value}).Marshal()
		fatal(t, err)
		return append(Rev{Main: main}.Bytes(), b...)
	}
	outer := record(7, record(9, []byte("v")))
	p := &page{off: 4096, data: slices.Concat(make([]byte, headerSize+5), outer, record(8, []byte("v")),
		make([]byte, 64))}
	var got []Rev
	for _, f := range p.scanBytes(nil, map[int]bool{}) {
		got = append(got, f.rev)
	}
	if want := []Rev{{Main: 7}, {Main: 8}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestBreakAtDamage: a caller that stops at damage, of whatever kind, gets no more of it.
func TestBreakAtDamage(t *testing.T) {
	sc := &script{t: t}
	sc.create(&datadriven.TestData{Input: "many 40 2.0 /k 300"})
	sound, err := os.ReadFile(sc.path)
	fatal(t, err)
	db := open(t, sc.path)
	root := int(db.buckets[db.byName["key"]].Root) * 4096
	var leaf int
	for r, err := range db.RevisionsFrom(Rev{Main: 10}) {
		fatal(t, err)
		leaf = int(r.Page) * 4096
		break
	}
	elem := func(page, n int) int { return page + headerSize + n*elemSize }
	for name, change := range map[string]func(b []byte){
		"a leaf out of order": func(b []byte) {
			copy(b[elem(leaf, 1)+int(le.Uint32(b[elem(leaf, 1)+4:])):], make([]byte, 8))
		},
		"a leaf that starts too early": func(b []byte) {
			copy(b[elem(leaf, 0)+int(le.Uint32(b[elem(leaf, 0)+4:])):], make([]byte, 8))
		},
		"a branch out of order": func(b []byte) {
			copy(b[elem(root, 1)+int(le.Uint32(b[elem(root, 1):])):], make([]byte, 8))
		},
		"a branch without a child": func(b []byte) { le.PutUint16(b[root+10:], 0) },
		"an overflow that is used": func(b []byte) { le.PutUint32(b[root-4096+12:], 1) },
		"a page of another type":   func(b []byte) { le.PutUint16(b[leaf+8:], flagFreelist) },
		"a page twice":             func(b []byte) { copy(b[elem(root, 2)+8:elem(root, 2)+16], b[elem(root, 1)+8:]) },
	} {
		b := bytes.Clone(sound)
		change(b)
		db, err := NewReader(bytes.NewReader(b), int64(len(b)))
		fatal(t, err)
		for list, each := range map[string]func(use func(error) bool){
			"rows": func(use func(error) bool) { db.Rows("key")(func(_ Row, err error) bool { return use(err) }) },
			"revisions": func(use func(error) bool) {
				db.Revisions()(func(_ Revision, err error) bool { return use(err) })
			},
			"live": func(use func(error) bool) {
				db.Query(t.Context(), Query{Live: true})(func(_ Revision, err error) bool { return use(err) })
			},
			"salvage": func(use func(error) bool) {
				db.SalvageRevisions(t.Context())(func(_ Salvaged, err error) bool { return use(err) })
			},
		} {
			damaged, more := 0, 0
			each(func(err error) bool {
				if damaged > 0 {
					more++
				}
				if err != nil {
					damaged++
				}
				return damaged == 0
			})
			if damaged != 1 || more != 0 {
				t.Errorf("%s, %s: damage %d times, and %d more", name, list, damaged, more)
			}
		}
	}
}

// TestLostFromTheTree: a record of an unused page was lost to damage if its page is not on the stored freelist, or if a
// damaged page of the tree covers its key. Without bucket key, only damage of the root page can have taken it.
func TestLostFromTheTree(t *testing.T) {
	const free, used, above = 4, 5, 100
	rev := Rev{Main: 7}
	covering := &DamageError{FirstKey: Rev{Main: 7}.Bytes(), LastKey: Rev{Main: 8}.Bytes()}
	before := &DamageError{LastKey: Rev{Main: 7}.Bytes()}
	for name, c := range map[string]struct {
		id       uint64
		noList   bool
		noBucket bool
		root     []*DamageError
		damage   []*DamageError
		want     bool
	}{
		"a free page":                       {id: free},
		"not on the freelist":               {id: used, want: true},
		"the first above the high water":    {id: above},
		"the last below the high water":     {id: above - 1, want: true},
		"without a freelist":                {id: used, noList: true},
		"covered by damage":                 {id: free, damage: []*DamageError{before, covering}, want: true},
		"damage before it":                  {id: free, damage: []*DamageError{before}},
		"no bucket key":                     {id: free, noBucket: true, damage: []*DamageError{covering}},
		"no bucket key, damage of the root": {id: free, noBucket: true, root: []*DamageError{before}, want: true},
		"damage of the root":                {id: free, root: []*DamageError{before}},
	} {
		db := &DB{byName: map[string]int{"key": 0}, buckets: []bucket{{}}, rootDamage: c.root,
			meta: Meta{Freelist: 3, HighWater: above}}
		if c.noList {
			db.meta.Freelist = noFreelist
		}
		if c.noBucket {
			db.byName = nil
		}
		o := &owners{free: newBitmap(2 * above), damage: c.damage}
		o.free.set(free)
		if got := o.lost(db, c.id, rev); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
