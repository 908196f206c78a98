package extract

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// TestStates decides about a key by its records: p is a put of the tree, t a tombstone, f a put and u a tombstone that
// only an unused page has, each with its main revision. A capital letter does not meet the Kubernetes conditions.
func TestStates(t *testing.T) {
	for _, c := range []struct {
		records       string
		live, deleted string
		// noMeta is the answer for deleted keys where the meta pages do not say which pages are in use.
		noMeta string
	}{
		{"p2", "2", "2", "2"},
		{"p3 p2", "3", "3", "3"},
		{"P2", "", "", ""},
		{"p2 P3", "", "", ""},
		{"P2 p3", "3", "3", "3"},
		{"p2 t3", "", "2 deleted at 3", "2 deleted at 3"},
		{"p2 p3 t4", "", "3 deleted at 4", "3 deleted at 4"},
		{"P2 t3", "", "", ""},
		{"p2 T3", "", "2 deleted at 3", "2 deleted at 3"},
		{"p2 t3 p4", "4", "4", "4"},
		{"p2 t3 p4 t5", "", "4 deleted at 5", "4 deleted at 5"},
		{"t3", "", "no value", "no value"},
		{"T3", "", "", ""},
		{"f2", "2 gone", "2 gone", "2"},
		{"F2", "", "", ""},
		{"f2 f3", "3 gone", "3 gone", "3"},
		{"f2 t3", "2 gone deleted at 3", "2 gone deleted at 3", "2 deleted at 3"},
		{"f3 t3", "", "no value", "3 deleted at 3"},
		{"f4 t3", "", "no value", "4"},
		{"f2 p3", "3", "3", "3"},
		{"p2 f3", "2", "2", "3"},
		{"p2 f3 t4", "", "2 deleted at 4", "3 deleted at 4"},
		{"p2 u3", "2", "2", "2 deleted at 3"},
		{"u3", "", "", "no value"},
	} {
		for _, of := range []struct {
			x    *reader
			want string
		}{{&reader{o: &Options{}}, c.live}, {&reader{o: &Options{Deleted: true}}, c.deleted},
			{&reader{o: &Options{Deleted: true}, noMeta: true}, c.noMeta}} {
			x := of.x
			x.res, x.found, x.o.Memory = &Result{}, map[string]bool{}, 1<<20
			if got := decided(t, x, c.records); got != of.want {
				t.Errorf("%s, deleted %v, no meta %v: %q, want %q", c.records, x.o.Deleted, x.noMeta, got, of.want)
			}
		}
	}
}

func decided(t *testing.T, x *reader, records string) (out string) {
	t.Helper()
	s := x.newSpool(byKey, x.newest)
	for _, word := range strings.Fields(records) {
		lower := strings.ToLower(word)
		r := &ref{key: []byte("k"), match: lower == word, tombstone: lower[0] == 't' || lower[0] == 'u'}
		if lower[0] == 'f' || lower[0] == 'u' {
			r.origin = dumpdb.OriginFree
		}
		if _, err := fmt.Sscan(word[1:], &r.rev.Main); err != nil {
			t.Fatal(err)
		}
		if err := s.add(r); err != nil {
			t.Fatal(err)
		}
	}
	err := x.decide(s, func(k keyState) error {
		out += fmt.Sprint(k.put.rev.Main)
		if k.gone {
			out += " gone"
		}
		if k.tombstone != nil {
			out += fmt.Sprintf(" deleted at %d", k.tombstone.rev.Main)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if l := x.res.Lost; l.NoValueCount > 0 {
		out += "no value"
		if l.NoValueCount != 1 || len(l.NoValue) != 1 || string(l.NoValue[0]) != "k" || !x.found["k"] {
			t.Errorf("%s: %+v", records, l)
		}
	}
	return out
}

// TestSpool: records keep all that is known of them in a scratch file, and come back in order; one that is cut short
// is an error.
func TestSpool(t *testing.T) {
	rev := func(main, sub int64) dumpdb.Rev { return dumpdb.Rev{Main: main, Sub: sub} }
	all := []*ref{
		{key: []byte("a"), rev: rev(2, 0), place: dumpdb.Place{Page: 3, Offset: 700}, rawKey: []byte{}, raw: []byte{}},
		{key: []byte("a"), rev: rev(2, 1), tombstone: true, origin: dumpdb.OriginOlder, rawKey: []byte{},
			raw: []byte{}},
		{key: []byte("a"), rev: rev(9, 0), match: true, origin: dumpdb.OriginLive, rawKey: []byte{}, raw: []byte{}},
		{key: []byte("b"), rev: rev(3, 0), tombstone: true, match: true, origin: dumpdb.OriginFree,
			rawKey: []byte("raw key"), raw: []byte("raw")},
		{key: []byte("c"), rev: rev(1, 0), origin: dumpdb.OriginUnreachable, rawKey: []byte("r"), raw: []byte{0, 1}},
	}
	for _, budget := range []int{1, 400, 1 << 20} {
		s := &spool{dir: t.TempDir(), order: byKey, budget: budget}
		for _, i := range []int{3, 1, 4, 0, 2} {
			if err := s.add(all[i]); err != nil {
				t.Fatal(err)
			}
		}
		var got []*ref
		for r, err := range s.sorted() {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, r)
		}
		if d := cmp.Diff(all, got, cmp.AllowUnexported(ref{})); d != "" {
			t.Errorf("budget %d (-added +read)\n%s", budget, d)
		}
		if runs := map[int]int{1: 5, 400: 1, 1 << 20: 0}[budget]; len(s.runs) != runs {
			t.Errorf("budget %d: %d files, want %d", budget, len(s.runs), runs)
		}
	}
	if byRev(all[0], all[1]) >= 0 || byRev(all[1], all[0]) <= 0 || byRev(all[2], all[4]) <= 0 {
		t.Error("revisions are not in their order")
	}
	b := all[3].append(nil)
	for n := range len(b) {
		if r, err := readRef(bufio.NewReader(bytes.NewReader(b[:n]))); err == nil || err == io.EOF && n > 0 {
			t.Errorf("%d of %d bytes: %+v, %v", n, len(b), r, err)
		}
	}
}

// TestSpoolIsRead: a scratch file that is gone or cut short is an error, whichever it is, and no record is passed over.
func TestSpoolIsRead(t *testing.T) {
	for name, spoil := range map[string]func(path string, size int64) error{
		"gone":         func(path string, _ int64) error { return os.Remove(path) },
		"cut short":    func(path string, size int64) error { return os.Truncate(path, size-1) },
		"cut at first": func(path string, _ int64) error { return os.Truncate(path, 3) },
	} {
		for file := range 2 {
			x := &reader{o: &Options{Memory: 600}, dir: t.TempDir(), res: &Result{}, found: map[string]bool{}}
			s := x.newSpool(byKey, nil)
			for i := range 9 {
				r := &ref{key: []byte{'a' + byte(i)}, rev: dumpdb.Rev{Main: int64(i)}, match: true}
				if err := s.add(r); err != nil {
					t.Fatal(err)
				}
			}
			if len(s.runs) != 2 {
				t.Fatalf("%d files", len(s.runs))
			}
			info, err := os.Stat(s.runs[file])
			if err != nil {
				t.Fatal(err)
			}
			if err := spoil(s.runs[file], info.Size()); err != nil {
				t.Fatal(err)
			}
			if err := x.decide(s, func(keyState) error { return nil }); err == nil {
				t.Errorf("%s, file %d: no error", name, file)
			}
		}
	}
	x := &reader{o: &Options{Memory: 600}, dir: filepath.Join(t.TempDir(), "gone")}
	s, failed := x.newSpool(byKey, nil), 0
	for i := range 9 {
		if err := s.add(&ref{key: []byte{'a' + byte(i)}}); err != nil {
			failed++
		}
	}
	if failed == 0 {
		t.Error("records that cannot be written are taken")
	}
}

// TestPlacesAreReadAgain: a record that is no longer at its place, or does not decode there, is lost and not made up.
func TestPlacesAreReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	w, err := newDBWriter(path)
	if err != nil {
		t.Fatal(err)
	}
	for main := int64(2); main < 4; main++ {
		kv := dumpdb.KeyValue{Key: []byte("k"), Value: []byte("v")}
		if err := w.record(&Record{KeyValue: kv, Rev: dumpdb.Rev{Main: main}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.put("key", dumpdb.Rev{Main: 4}.Bytes(), []byte("\x0a\x01a\xff")), w.close()); err != nil {
		t.Fatal(err)
	}
	db, err := dumpdb.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	places := map[int64]dumpdb.Place{}
	for rev, err := range db.Revisions() {
		if err != nil {
			t.Fatal(err)
		}
		places[rev.Main] = rev.Place
	}
	moved, beyond := places[3], places[3]
	moved.Offset++
	beyond.Page += 1 << 20
	for name, c := range map[string]struct {
		place dumpdb.Place
		good  bool
	}{"at its place": {places[3], true}, "moved": {moved, false}, "beyond the end": {beyond, false},
		"it does not decode": {places[4], false}} {
		x := &reader{db: db, o: &Options{Memory: 1 << 20}, res: &Result{}}
		rec, err := x.load(db.RecordReader(), &ref{place: c.place})
		if (err == nil) != c.good || err == nil && string(rec.Value) != "v" || err != nil && rec != nil {
			t.Errorf("%s: %+v, %v", name, rec, err)
		}
	}
}

// TestWantsFree: what an unused page has counts for deleted keys, up to the current revision, and all of it without a
// meta page.
func TestWantsFree(t *testing.T) {
	for _, c := range []struct {
		deleted, noMeta bool
		main            int64
		want            bool
	}{{true, false, 5, true}, {true, false, 6, false}, {false, false, 5, false}, {false, true, 6, true}} {
		x := &reader{o: &Options{Deleted: c.deleted}, noMeta: c.noMeta, current: 5}
		if x.wantsFree(c.main) != c.want {
			t.Errorf("%+v", c)
		}
	}
}

// TestSpoolReduces: many records of few keys need no scratch file, and of many keys they do.
func TestSpoolReduces(t *testing.T) {
	const budget = 4 * 161
	for keys, runs := range map[int]int{1: 0, 2: 25} {
		x := &reader{o: &Options{Memory: budget}, dir: t.TempDir()}
		s := x.newSpool(byKey, x.newest)
		for i := range 100 {
			r := &ref{key: []byte{'a' + byte(i%keys)}, rev: dumpdb.Rev{Main: int64(i + 2)}}
			if err := s.add(r); err != nil {
				t.Fatal(err)
			}
		}
		newest := map[string]int64{}
		for r, err := range s.sorted() {
			if err != nil {
				t.Fatal(err)
			}
			newest[string(r.key)] = r.rev.Main
		}
		if len(newest) != keys || newest["a"] != 102-int64(keys) || len(s.runs) != runs {
			t.Errorf("%d keys: %v, %d files, want %d", keys, newest, len(s.runs), runs)
		}
	}
}

// TestUnfinishedDatabase: a database that is given up is removed and closed, also between two transactions.
func TestUnfinishedDatabase(t *testing.T) {
	for _, between := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "db")
		w, err := newDBWriter(path)
		if err != nil {
			t.Fatal(err)
		}
		if between {
			if err := w.tx.Commit(); err != nil {
				t.Fatal(err)
			}
			w.tx = nil
		}
		if err := w.abort(); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			t.Errorf("the file is still there (%v)", err)
		}
		if _, err := w.db.Begin(false); err == nil {
			t.Error("the database is still open")
		}
	}
	if w, err := newDBWriter(t.TempDir()); err == nil {
		t.Errorf("in the place of a folder: %v", w)
	}
}
