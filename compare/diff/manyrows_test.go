package diff

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/compare/replay"
)

// differing is a set whose members hold different keys, and its replay.
func differing(t *testing.T) (*evidence.Set, *replay.Result) {
	t.Helper()
	set, err := evidence.Open(t.Context(), []evidence.Spec{{Where: evidencetest.Incident(t, "a-auth-revision-replay")}},
		evidence.Options{Deep: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.Close() })
	rp, err := replay.RunWithPlausibleIndex(t.Context(), set.Members, replay.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return set, rp
}

// TestRowsInOnePass: reading the records of many listed rows in one pass gives the cells that reading them one by one
// gives.
func TestRowsInOnePass(t *testing.T) {
	set, rp := differing(t)
	r := Align(set.Members, rp)
	b, err := keyComparer{r}.compare(t.Context(), Options{MaxRows: 1000, MaxMarks: defaultMaxMarks, Values: true})
	if err != nil || len(b.Rows) != 50 {
		t.Fatalf("%d rows, %v", len(b.Rows), err)
	}
	var kept []keyPlaces
	again := make([]Row, len(b.Rows))
	for n, row := range b.Rows {
		k := keyPlaces{key: string(row.Key), places: make([]int64, len(row.Cells))}
		again[n] = Row{Key: row.Key, Cells: make([]*Cell, len(row.Cells)), SameContent: row.SameContent}
		for i, c := range row.Cells {
			if c != nil {
				k.places[i] = c.Mod
			}
		}
		kept = append(kept, k)
	}
	for i := range set.Members {
		keyComparer{r}.readInOnePass(t.Context(), i, kept, again, true)
	}
	if diff := cmp.Diff(b.Rows, again); diff != "" {
		t.Errorf("(- one by one, + in one pass)\n%s", diff)
	}
}

// TestKeyRowsLater: rows beyond those of a comparison can be listed later, up to the number of places it kept.
func TestKeyRowsLater(t *testing.T) {
	set, rp := differing(t)
	all, err := Run(t.Context(), set.Members, rp, Options{})
	if err != nil {
		t.Fatal(err)
	}
	few, err := Run(t.Context(), set.Members, rp, Options{MaxRows: 3, Places: 20})
	if err != nil {
		t.Fatal(err)
	}
	want := all.Find("key").Rows
	if diff := cmp.Diff(want[:3], few.Find("key").Rows); diff != "" || few.Find("key").Differ != len(want) {
		t.Errorf("rows of the comparison: %s", diff)
	}
	for n, most := range map[int]int{2: 2, 10: 10, 1000: 20} {
		rows, err := few.KeyRows(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want[:most], rows); diff != "" {
			t.Errorf("%d rows later: %s", n, diff)
		}
	}
}

// TestSmallestKeepsTheFirst: whatever the order in which keys come, the first ones are kept, in order.
func TestSmallestKeepsTheFirst(t *testing.T) {
	for _, bound := range []int{1, 3, 7, 100} {
		s := smallest{bound: bound}
		m := &marks{live: []*liveKeys{}}
		for _, k := range []string{"h", "b", "a", "g", "c", "f", "e", "d"} {
			s.add(k, nil, m)
		}
		got := ""
		for _, k := range s.sort() {
			got += k.key
		}
		if want := "abcdefgh"[:min(bound, 8)]; got != want {
			t.Errorf("bound %d: %s, want %s", bound, got, want)
		}
	}
}
