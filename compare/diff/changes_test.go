package diff

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/casetest"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// built are the members of a case, given as lines "verb rest", and their replay.
func built(t *testing.T, lines ...string) ([]*evidence.Member, *replay.Result) {
	t.Helper()
	var ls []casetest.Line
	for i, l := range lines {
		verb, rest, _ := strings.Cut(l, " ")
		ls = append(ls, casetest.Line{No: i + 1, Verb: verb, Rest: rest})
	}
	set := casetest.Open(t, casetest.Build(t, ls), evidence.Options{})
	rp, err := replay.Run(t.Context(), set.Members, replay.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return set.Members, rp
}

// TestChangesAreRefused: no change is named where one of the two was not compared or cannot be read as a whole, since
// keys that exist might be deleted.
func TestChangesAreRefused(t *testing.T) {
	members, rp := built(t, "hands a1 a2", "elect", "puts 4", "unapplied node2", "commit")
	for name, c := range map[string]struct {
		change func(r *Result)
		want   string
	}{
		"left out":        {func(r *Result) { r.NotCompared[1] = "no database" }, "node2 was not compared: no database"},
		"left out, first": {func(r *Result) { r.NotCompared[0] = "no database" }, "node1 was not compared: no database"},
		"apart":           {func(r *Result) { r.KeysNotCompared[1] = "node2 lags" }, "cannot be"},
		"apart, first":    {func(r *Result) { r.KeysNotCompared[0] = "node1 lags" }, "cannot be"},
	} {
		r := Align(members, rp)
		c.change(r)
		err := r.Changes(t.Context(), 0, 1, Options{}, func(Change) error {
			t.Errorf("%s: a change",
				name)
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), c.want) && !strings.Contains(err.Error(), "lags") {
			t.Errorf("%s: %v", name, err)
		}
	}
	damaged, rpd := built(t, "hands a1 a2", "elect", "puts 200", "commit", "zeroleaf node2")
	for _, pair := range [][2]int{{0, 1}, {1, 0}} {
		err := Align(damaged, rpd).Changes(t.Context(), pair[0], pair[1], Options{}, func(Change) error {
			t.Errorf("%v: a change", pair)
			return nil
		})
		if err == nil || err.Error() != "part of bucket key of node2 cannot be read" {
			t.Errorf("%v: %v", pair, err)
		}
	}
}

// TestChangesEnd: an error of the caller ends the changes, be they deletes or puts, and so does the context.
func TestChangesEnd(t *testing.T) {
	members, rp := built(t, "hands a1 a2", "elect", "puts 4", "unapplied node2", "commit")
	r := Align(members, rp)
	stop := errors.New("stop")
	for _, pair := range [][2]int{{0, 1}, {1, 0}} {
		n := 0
		err := r.Changes(t.Context(), pair[0], pair[1], Options{}, func(c Change) error {
			n++
			if string(c.Key) != "/k/unapplied" || c.Delete != (pair[0] == 0) || c.New != (pair[0] == 1) ||
				(string(c.Was) == "v") != c.Delete || (string(c.Value) == "v") == c.Delete || c.Mod == 0 {
				t.Errorf("%v: %+v", pair, c)
			}
			return stop
		})
		if n != 1 || !errors.Is(err, stop) {
			t.Errorf("%v: %d changes, %v", pair, n, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Changes(ctx, 0, 1, Options{}, func(Change) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	err := r.Changes(ctx, 0, 1, Options{}, func(Change) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("ended at the last change: %v", err)
	}
}

// TestManyRows: many listed rows are read in one pass, with the cells that reading them one by one gives.
func TestManyRows(t *testing.T) {
	members, rp := built(t, "hands a1 a2", "elect", "puts 20", "unapplied node2", "commit")
	r := Align(members, rp)
	kept := make([]keyPlaces, 0, manyRows)
	for rev, err := range members[0].DB.Handle.Revisions() {
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, keyPlaces{key: string(rev.KV.Key), places: []int64{rev.Main, 0}})
	}
	n := len(kept)
	for len(kept) < manyRows {
		kept = append(kept, kept[len(kept)%n])
	}
	for _, list := range [][]keyPlaces{kept, kept[:manyRows-1]} {
		rows, err := keyComparer{r}.readRows(t.Context(), []int{0, 1}, list, true)
		if err != nil || len(rows) != len(list) {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		for i, row := range rows {
			if c := row.Cells[0]; c == nil || c.Mod != list[i].places[0] || len(c.Value) == 0 || row.Cells[1] != nil ||
				row.SameContent || string(row.Key) != list[i].key {
				t.Fatalf("row %d of %d: %+v", i, len(list), row)
			}
		}
	}
}

// TestEqualRecordsAreNotRead: members with one hash of all records have no record that differs.
func TestEqualRecordsAreNotRead(t *testing.T) {
	db := func(hash string, compact int64) evidence.DB {
		return evidence.DB{RecordsHash: hash, KV: &dumpdb.KVStats{CurrentRev: 9, CompactRev: compact}}
	}
	r := with(db("h", -1), db("h", -1))
	if err := r.EachRecord(t.Context(), 0, func(*RecordRow) { t.Error("a record") }); err != nil {
		t.Error(err)
	}
	x, err := r.CompareRecords(t.Context(), Options{})
	if err != nil || !x.Equal.Certain() {
		t.Errorf("%+v, %v", x, err)
	}
	for name, c := range map[string]struct {
		dbs  []evidence.DB
		want int
	}{
		"another hash":    {[]evidence.DB{db("h", -1), db("x", -1), db("h", -1)}, 2},
		"no hash":         {[]evidence.DB{db("", -1), db("", -1)}, 2},
		"another compact": {[]evidence.DB{db("h", -1), db("h", 4)}, 2},
		"equal":           {[]evidence.DB{db("h", 4), db("h", 4), db("h", 4)}, 1},
	} {
		r := with(c.dbs...)
		if got := (keyComparer{r}).distinctRecords(r.taking()); len(got) != c.want {
			t.Errorf("%s: %v are read", name, got)
		}
	}
	m := r.Members[0]
	rec := &dumpdb.Revision{Tombstone: true, KV: dumpdb.KeyValue{Key: []byte("k")}, Place: dumpdb.Place{Page: 4,
		Offset: 9}}
	if c := CellOf(m,
		rec); c.Text != `tombstone of key "k"` || c.Content != "tombstone" || c.Page != 4 || c.Offset != 9 {
		t.Errorf("%+v", c)
	}
	rec.Tombstone, rec.KV.ModRevision, rec.KV.Value = false, 5, []byte("v")
	if c := CellOf(m, rec); !strings.HasPrefix(c.Text,
		`key "k" create 0 mod 5 version 0 lease 0 value <len 1 digest `) ||
		c.Text != `key "k" `+c.Content {
		t.Errorf("%+v", c)
	}
}
