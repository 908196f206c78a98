package diff

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/casetest"
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
		for _, k := range []string{"h", "b", "a", "g", "c", "f", "e", "d"} {
			s.add(k)
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

// TestSmallestOfNone: of no keys none is first.
func TestSmallestOfNone(t *testing.T) {
	for _, bound := range []int{0, 1, 5} {
		if got := (&smallest{bound: bound}).sort(); len(got) > 0 {
			t.Errorf("bound %d: %v", bound, got)
		}
	}
}

// TestManyRecordsInOnePass: of many thousand records each listed one is read, to the last; nothing is read once the
// caller has given up.
func TestManyRecordsInOnePass(t *testing.T) {
	set := casetest.Open(t, casetest.Build(t, []casetest.Line{{Verb: "hands", Rest: "a1 a2"}, {Verb: "elect"},
		{Verb: "puts", Rest: "9000"}}), evidence.Options{})
	r := Align(set.Members, nil)
	var kept []keyPlaces
	for rev, err := range set.Members[0].DB.Handle.Revisions() {
		if err != nil {
			t.Fatal(err)
		}
		if rev.Main%1000 == 2 {
			kept = append(kept, keyPlaces{key: string(rev.KV.Key), places: []int64{rev.Main, 0}})
		}
	}
	rows := func() []Row {
		out := make([]Row, len(kept))
		for n, k := range kept {
			out[n] = Row{Key: []byte(k.key), Cells: make([]*Cell, 2)}
		}
		return out
	}
	list := rows()
	keyComparer{r}.readInOnePass(t.Context(), 0, kept, list, false)
	keyComparer{r}.readInOnePass(t.Context(), 1, kept, list, false)
	for n, row := range list {
		if c := row.Cells[0]; c == nil || c.Mod != kept[n].places[0] || row.Cells[1] != nil {
			t.Errorf("row %d: %+v, %+v", n, c, row.Cells[1])
		}
	}
	if len(list) != 9 || list[0].Cells[0].Value != nil {
		t.Errorf("%d rows, value %q", len(list), list[0].Cells[0].Value)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	list = rows()
	keyComparer{r}.readInOnePass(ctx, 0, kept, list, false)
	if list[8].Cells[0] != nil {
		t.Error("the pass continues after its context ended")
	}
	one, err := keyComparer{r}.readRows(ctx, []int{0, 1}, kept, false)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", one, err)
	}
	for n := range one {
		if one[n].Cells[0] != nil {
			t.Errorf("row %d is read after the context ended", n)
		}
	}
}
