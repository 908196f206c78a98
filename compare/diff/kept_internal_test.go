package diff

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// TestKeptIsBounded: keys beyond the bound are not remembered, and the result says that there are more.
func TestKeptIsBounded(t *testing.T) {
	k := &kept{byRev: map[int64]map[string][]int{}}
	for n := range int64(maxKept) {
		k.add(n, "k", 0)
	}
	if k.full || len(k.byRev) != maxKept {
		t.Errorf("%d, full %v", len(k.byRev), k.full)
	}
	if k.add(maxKept, "k", 0); !k.full || len(k.byRev) != maxKept {
		t.Errorf("%d, full %v", len(k.byRev), k.full)
	}
}

// TestMustHold: whichever database holds the key at the revision, the members that lack it are found.
func TestMustHold(t *testing.T) {
	at := dumpdb.Rev{Main: 5}
	cursor := func(key string) *recordCursor {
		return &recordCursor{rec: dumpdb.Revision{Rev: at, KV: dumpdb.KeyValue{Key: []byte(key)}}, ok: true}
	}
	r := with(evidence.DB{}, evidence.DB{}, evidence.DB{})
	r.kept.byRev = map[int64]map[string][]int{5: {"b": {2}}}
	m := &recordMerge{r: r, rev: at, cursors: []*recordCursor{cursor("a"), cursor("b")}}
	if got := m.mustHold(); len(got) != 1 || got[0] != 2 {
		t.Errorf("%v", got)
	}
	if m.cursors = m.cursors[:1]; m.mustHold() != nil {
		t.Error("no database holds it")
	}
}
