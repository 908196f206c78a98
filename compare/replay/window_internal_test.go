package replay

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestMatchStops: records are read until enough entries were found and none of the next ones is of another. An entry
// whose record comes after that is not found.
func TestMatchStops(t *testing.T) {
	dir := handLogs(t, from1(1))[0]
	inDB(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte("key"))
		for i := int64(2); i <= enoughPairs+patience+1; i++ {
			kv := mvccpb.KeyValue{Key: fmt.Append(nil, "k", i), Value: []byte("v"), CreateRevision: i + 1,
				ModRevision: i + 1, Version: 1}
			text, err := kv.Marshal()
			if err := errors.Join(err, b.Put(revKey(i+1), text)); err != nil {
				return err
			}
		}
		return nil
	})(t, filepath.Join(dir, "member"))
	m := open(t, dir).Members[0]
	for name, c := range map[string]struct{ first, other, want int }{
		"within the patience": {enoughPairs, enoughPairs + patience, enoughPairs + 1},
		"beyond it":           {enoughPairs, enoughPairs + patience + 1, enoughPairs},
		"too few to stop":     {enoughPairs - 1, enoughPairs + patience + 1, enoughPairs},
		"no record":           {enoughPairs - 1, enoughPairs + patience + 2, enoughPairs - 1},
	} {
		var log []*dumplog.Request
		for i := range c.first {
			log = append(log, put(fmt.Sprint("k", i+1), "v"))
		}
		w := newWindow(append(log, put(fmt.Sprint("k", c.other), "v"))...)
		w.s = &logView{m: m}
		if w.match(1, m.DB.KV.CurrentRev); len(w.pairs) != c.want {
			t.Errorf("%s: %d entries, want %d", name, len(w.pairs), c.want)
		}
	}
}

// clearPages makes the pages of a database that hold a record unreadable.
func clearPages(t *testing.T, dir string, record []byte) {
	t.Helper()
	file := filepath.Join(dir, "member", "snap", "db")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	page := os.Getpagesize()
	for at := 0; at+page <= len(b); at += page {
		if bytes.Contains(b[at:at+page], record) {
			clear(b[at : at+page])
		}
	}
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestGroupsAroundAHole: the records of unreadable pages are missing, and only the first revision after them says so.
// What a key held before them may not be its newest state.
func TestGroupsAroundAHole(t *testing.T) {
	dir := handLogs(t, from1(1000))[0]
	clearPages(t, dir, clustertest.RevisionKey(501))
	m := open(t, dir).Members[0]
	var want, got, holes []int64
	for r, err := range m.DB.Handle.Revisions() {
		if err == nil {
			want = append(want, r.Main)
		}
	}
	lv := &logView{m: m}
	for g := range lv.groups(0, 2000) {
		if got = append(got, g.main); g.hole {
			holes = append(holes, g.main)
		}
	}
	if !slices.Equal(got, want) || len(got) > 990 || slices.Contains(got, 501) {
		t.Fatalf("%d revisions, want %d", len(got), len(want))
	}
	after := slices.IndexFunc(got, func(rev int64) bool { return rev > 501 })
	if !slices.Equal(holes, got[after:after+1]) {
		t.Errorf("a hole before %d, want one before %d", holes, got[after])
	}
	w := newWindow(txn(append(cmpMod("k5", 6), cmpMod("k900", 901)...), []dumplog.RequestOp{putOp("x", "1")}, nil))
	w.s = lv
	w.mod["old"], w.lease["old"] = 3, 7
	w.learnTo(2000)
	_, known := w.mod["k5"]
	_, leased := w.lease["k5"]
	if known || leased || w.mod["k900"] != 901 {
		t.Errorf("keys of compares are known at %v, their leases are %v", w.mod, w.lease)
	}
	w.mod["old"], w.lease["old"] = 3, 7
	w.learnTo(400)
	if len(w.mod) != 1 || w.mod["k5"] != 6 || len(w.lease) != 1 || w.lease["k5"] != 0 {
		t.Errorf("up to before the hole, keys of compares are known at %v, their leases are %v", w.mod, w.lease)
	}
}

// TestGroupsOfADividedRevision: of a revision with records in unreadable pages no record is used, nor is what a key
// held before them.
func TestGroupsOfADividedRevision(t *testing.T) {
	dir := handLogs(t, from1(1))[0]
	inDB(func(tx *bbolt.Tx) (err error) {
		b := tx.Bucket([]byte("key"))
		for i := range int64(401) {
			rev := dumpdb.Rev{Main: 3, Sub: i}
			if i == 400 {
				rev = dumpdb.Rev{Main: 4}
			}
			kv := mvccpb.KeyValue{Key: fmt.Append(nil, "n", i), Value: []byte("v"), CreateRevision: rev.Main,
				ModRevision: rev.Main, Version: 1}
			text, e := kv.Marshal()
			err = errors.Join(err, e, b.Put(rev.Bytes(), text))
		}
		return err
	})(t, filepath.Join(dir, "member"))
	clearPages(t, dir, dumpdb.Rev{Main: 3, Sub: 200}.Bytes())
	m := open(t, dir).Members[0]
	read := 0
	for _, err := range m.DB.Handle.RevisionsBetween(dumpdb.Rev{Main: 3}, dumpdb.Rev{Main: 3, Sub: 200}) {
		if err == nil {
			read++
		}
	}
	var got []string
	lv := &logView{m: m}
	for g := range lv.groups(0, 4) {
		got = append(got, fmt.Sprint(g.main, len(g.records), g.hole))
	}
	if read == 0 || !slices.Equal(got, []string{"2 1 false", "4 1 true"}) {
		t.Errorf("%q, and %d records before the hole", got, read)
	}
	k1 := rec(5, 0, "k1", "2")
	for main, known := range map[int64]int{3: 1, 5: 0} {
		k1.rev.Main = main
		if got := lv.leasesBefore(groupOf(k1)); len(got) != known {
			t.Errorf("before revision %d: the leases of keys are %v", main, got)
		}
	}
}
