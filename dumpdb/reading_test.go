package dumpdb

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"go.etcd.io/bbolt"
)

// TestRanges: a range in etcd's words: one key, a prefix, from a key on, all keys, or from one key to another.
func TestRanges(t *testing.T) {
	for _, c := range []struct{ key, end, want string }{
		{"a", "", `key "a"`}, {"", "\x00", "all keys"}, {"\x00", "\x00", "all keys"}, {"a", "\x00", `from "a"`},
		{"\x00a", "\x00", `from "\x00a"`}, {"b", "a", `range ["b", "a")`}, {"a/", "a0", `prefix "a/"`},
		{"a", "c", `range ["a", "c")`}, {"a\xff", "b", `prefix "a\xff"`}, {"a", "\x00\x00", `range ["a", "\x00\x00")`},
		{"", "a", `range ["", "a")`}, {"\xff", "\x00", `from "\xff"`},
	} {
		if got := RangeString([]byte(c.key), []byte(c.end)); got != c.want {
			t.Errorf("%q, %q: %s, want %s", c.key, c.end, got, c.want)
		}
	}
	for key, want := range map[string]string{"a": "b", "ab": "ac", "a\xff": "b", "\xff\xff": "\x00", "": "\x00",
		"a\xff\xfe": "a\xff\xff"} {
		if got := PrefixEnd([]byte(key)); string(got) != want {
			t.Errorf("end of prefix %q: %q, want %q", key, got, want)
		}
	}
	for kind, want := range map[int32]string{0: "READ", 1: "WRITE", 2: "READWRITE", 3: "permission(3)",
		-1: "permission(-1)"} {
		if got := (Permission{Type: kind, Key: []byte("k")}).String(); got != want+` key "k"` {
			t.Errorf("%d: %s", kind, got)
		}
	}
}

// TestIDsAndRevisions in text and back; what is none is refused.
func TestIDsAndRevisions(t *testing.T) {
	var id ID
	if err := id.UnmarshalText([]byte("8e9e05c52164694d")); err != nil || id != 0x8e9e05c52164694d {
		t.Errorf("%x, %v", uint64(id), err)
	}
	if err := id.UnmarshalText([]byte("node1")); err == nil {
		t.Error("a name is read as an ID")
	}
	for s, want := range map[string]Rev{"7": {7, 0}, "7.3": {7, 3}} {
		if r, err := ParseRev(s); err != nil || r != want {
			t.Errorf("%s: %v, %v", s, r, err)
		}
	}
	for _, s := range []string{"", "x", "7.x", "7.3.1", "x.3"} {
		if r, err := ParseRev(s); err == nil || r != (Rev{}) {
			t.Errorf("%q: %v", s, r)
		}
	}
	order := []Rev{{1, 5}, {2, 0}, {2, 1}, {3, 0}}
	for i := range order {
		for j := range order {
			if order[i].Less(order[j]) != (i < j) {
				t.Errorf("%s before %s: %t", order[i], order[j], i >= j)
			}
		}
	}
}

// TestLostMainRevisions: the main revisions that may be lost, from the keys around damage.
func TestLostMainRevisions(t *testing.T) {
	key := func(main, sub int64) []byte { return Rev{main, sub}.Bytes() }
	tomb := func(main int64) []byte { return append(key(main, 0), 't') }
	for name, c := range map[string]struct {
		d           DamageError
		first, last int64
		ok          bool
	}{
		"between":               {DamageError{FirstKey: key(5, 0), LastKey: key(9, 0)}, 5, 8, true},
		"within a transaction":  {DamageError{FirstKey: key(5, 2), LastKey: key(9, 1)}, 5, 9, true},
		"up to after a record":  {DamageError{FirstKey: key(5, 0), LastKey: append(key(5, 0), 0)}, 5, 5, true},
		"up to a tombstone":     {DamageError{FirstKey: key(5, 0), LastKey: tomb(9)}, 5, 9, true},
		"from a tombstone":      {DamageError{FirstKey: tomb(5), LastKey: key(9, 0)}, 5, 8, true},
		"to the end":            {DamageError{FirstKey: key(5, 0)}, 5, 0, true},
		"from the start":        {DamageError{LastKey: key(9, 0)}, 0, 8, true},
		"open":                  {DamageError{}, 0, 0, false},
		"another bucket":        {DamageError{Bucket: "lease", FirstKey: key(5, 0)}, 0, 0, false},
		"the first is no key":   {DamageError{FirstKey: []byte("x"), LastKey: key(9, 0)}, 0, 0, false},
		"the last is no key":    {DamageError{FirstKey: key(5, 0), LastKey: []byte("x")}, 0, 0, false},
		"the last is no key so": {DamageError{FirstKey: key(5, 0), LastKey: []byte("no key of a record")}, 0, 0, false},
	} {
		if c.d.Bucket == "" {
			c.d.Bucket = "key"
		}
		if first, last, ok := c.d.LostRevisions(); first != c.first || last != c.last || ok != c.ok {
			t.Errorf("%s: %d, %d, %t; want %d, %d, %t", name, first, last, ok, c.first, c.last, c.ok)
		}
	}
}

// TestEmptyTails: an empty last leaf is found in a tree of several pages only, and not if it cannot be read.
func TestEmptyTails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	ref, err := bbolt.Open(path, 0o600, &bbolt.Options{NoSync: true, PageSize: 4096})
	fatal(t, err)
	fatal(t, ref.Update(func(tx *bbolt.Tx) error {
		for name, rows := range map[string]int{"big": 60, "one": 20, "tiny": 1} {
			b, err := tx.CreateBucket([]byte(name))
			fatal(t, err)
			for i := range rows {
				fatal(t, b.Put(fmt.Appendf(nil, "%02d", i), make([]byte, 150)))
			}
		}
		return nil
	}))
	fatal(t, ref.Close())
	sound, err := os.ReadFile(path)
	fatal(t, err)
	db := open(t, path)
	if got := db.EmptyTails(); len(got) > 0 {
		t.Errorf("sound: %+v", got)
	}
	var last, only uint64
	for row, err := range db.Rows("big") {
		fatal(t, err)
		last = row.Page
	}
	for row, err := range db.Rows("one") {
		fatal(t, err)
		only = row.Page
	}
	changed := func(change func(b []byte)) []EmptyTail {
		b := bytes.Clone(sound)
		change(b)
		db, err := NewReader(bytes.NewReader(b), int64(len(b)))
		fatal(t, err)
		return db.EmptyTails()
	}
	empty := func(b []byte, page uint64) {
		clear(b[page*4096+10 : page*4096+12])
		clear(b[page*4096+headerSize : (page+1)*4096])
	}
	got := changed(func(b []byte) { empty(b, last); empty(b, only) })
	want := EmptyTail{Bucket: "big", Place: Place{last, int64(last) * 4096}}
	if !slices.Equal(got, []EmptyTail{want}) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := changed(func(b []byte) { clear(b[last*4096+10 : last*4096+12]) }); len(got) > 0 {
		t.Errorf("rows that are not counted are no rows: %+v", got)
	}
	if got := changed(func(b []byte) { clear(b[last*4096 : last*4096+16]) }); len(got) > 0 {
		t.Errorf("a page that cannot be read is empty: %+v", got)
	}
	root := db.buckets[db.byName["big"]].Root
	if got := changed(func(b []byte) { clear(b[root*4096+10 : root*4096+12]) }); len(got) > 0 {
		t.Errorf("a branch without children: %+v", got)
	}
	if got := changed(func(b []byte) {
		last := int(le.Uint16(b[root*4096+10:])) - 1
		le.PutUint64(b[int(root)*4096+headerSize+last*elemSize+8:], root)
	}); len(got) > 0 {
		t.Errorf("a branch page below itself: %+v", got)
	}
	if got := changed(func(b []byte) { b[root*4096+8] = flagMeta }); len(got) > 0 {
		t.Errorf("a page of another type: %+v", got)
	}
}

// TestReadersByPlace: records by key, revision and place; a place that has none is damage.
func TestReadersByPlace(t *testing.T) {
	for _, lines := range []string{"put 2.0 a 1\nput 3.0 b 1\nput 3.1 a 2\ndel 4.0 b", "many 40 2.0 /k 300"} {
		db := made(t, lines)
		rd := db.RecordReader()
		var places []Place
		for r, err := range db.Revisions() {
			fatal(t, err)
			places = append(places, r.Place)
		}
		n := 0
		for r, err := range db.Revisions() {
			fatal(t, err)
			again, err := rd.At(places[n])
			if err != nil || again.Rev != r.Rev || !bytes.Equal(again.Raw, r.Raw) {
				t.Errorf("%s: %s, %v", r.Rev, again.Rev, err)
			}
			n++
		}
		var d *DamageError
		if _, err := rd.At(Place{places[0].Page, places[0].Offset + 1}); !errors.As(err, &d) ||
			d.Expected != "the record seen before" {
			t.Errorf("a place without a record: %v", err)
		}
		if _, err := rd.At(Place{9999, 0}); !errors.As(err, &d) || d.Kind != DamageOutOfFile {
			t.Errorf("a page that does not exist: %v", err)
		}
		// The first page after the end of the file, and of the pages in use.
		next := min(uint64(db.Size())/uint64(db.PageSize()), db.Meta().HighWater)
		_, err := rd.At(Place{next, int64(next) * int64(db.PageSize())})
		if !errors.As(err, &d) || d.Kind != DamageOutOfFile {
			t.Errorf("the first page outside of the file: %v", err)
		}
		if again, err := rd.At(places[n-1]); err != nil || again.Place != places[n-1] {
			t.Errorf("after a failure: %s, %v", again.Rev, err)
		}
	}
	db := made(t, "put 2.0 a 1\nput 3.0 b 1\nput 3.1 a 2\ndel 4.0 b\nset lease x 1\nset lease y 2")
	var got []string
	add := func(r Revision, err error) {
		fatal(t, err)
		got = append(got, r.Rev.String())
	}
	for r, err := range db.RevisionsBetween(Rev{3, 0}, Rev{4, 0}) {
		add(r, err)
	}
	for r, err := range db.History(t.Context(), []byte("b")) {
		add(r, err)
	}
	if want := []string{"3.0", "3.1", "3.0", "4.0"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for from, want := range map[string]int{"": 2, "x": 2, "xx": 1, "y": 1, "z": 0} {
		n := 0
		for _, err := range db.RowsFrom("lease", []byte(from)) {
			fatal(t, err)
			n++
		}
		if n != want {
			t.Errorf("rows from %q: %d, want %d", from, n, want)
		}
	}
}

// TestTrailers: the last 32 bytes of a backup are the sum of what is before; other files have none.
func TestTrailers(t *testing.T) {
	dir := t.TempDir()
	data := bytes.Repeat([]byte("not a database. "), 64)
	sum := sha256.Sum256(data)
	for name, c := range map[string]struct {
		b              []byte
		computed, want string
	}{
		"match":    {append(bytes.Clone(data), sum[:]...), hex.EncodeToString(sum[:]), "match"},
		"mismatch": {append(bytes.Clone(data), sum[:]...), hex.EncodeToString(make([]byte, 32)), "mismatch"},
		"absent":   {data, "", "absent"},
	} {
		path := filepath.Join(dir, name)
		fatal(t, os.WriteFile(path, c.b, 0o600))
		got, err := ReadTrailer(path, c.computed)
		if err != nil || got.State != c.want || (got.Expected == "") != (c.want == "absent") {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if _, err := ReadTrailer(filepath.Join(dir, "none"), ""); err == nil {
		t.Error("a file that does not exist has a trailer")
	}
}

// TestWritten: only a transaction at the meta page where no commit puts it, or a trailer, proves a copy.
func TestWritten(t *testing.T) {
	saved := []Meta{{Valid: true, Root: 3, Txid: 9, HighWater: 8}, {Valid: true, Root: 3, Txid: 8, HighWater: 8}}
	even := func(m []Meta) { m[0].Txid, m[1].Txid = 8, 7 }
	for name, c := range map[string]struct {
		change  func(m []Meta)
		trailer int64
		want    Written
	}{
		"saved":                   {func([]Meta) {}, 0, WrittenAsCopy},
		"as a commit may leave":   {even, 0, WrittenUnknown},
		"even, with a trailer":    {even, trailerSize, WrittenAsCopy},
		"another root":            {func(m []Meta) { m[1].Root = 4 }, 0, WrittenByCommit},
		"another freelist":        {func(m []Meta) { m[1].Freelist = 4 }, 0, WrittenByCommit},
		"another high-water mark": {func(m []Meta) { m[1].HighWater = 7 }, 0, WrittenByCommit},
		"meta 1 is newer":         {func(m []Meta) { m[0].Txid, m[1].Txid = 8, 9 }, 0, WrittenByCommit},
		"two apart":               {func(m []Meta) { m[0].Txid = 10 }, 0, WrittenByCommit},
		"meta 0 is not valid":     {func(m []Meta) { m[0].Valid = false }, 0, WrittenUnknown},
		"meta 1 is not valid":     {func(m []Meta) { m[1].Valid = false }, 0, WrittenUnknown},
	} {
		m := slices.Clone(saved)
		c.change(m)
		db := &DB{metas: m, f: &file{data: 4096, size: 4096 + c.trailer}}
		if got := db.Written(); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestMetaProblems: everything that makes a meta page one that bbolt refuses.
func TestMetaProblems(t *testing.T) {
	for name, c := range map[string]struct {
		change func(h []byte, m *Meta)
		want   string
	}{
		"sound":         {func([]byte, *Meta) {}, ""},
		"magic":         {func(h []byte, _ *Meta) { h[0]++ }, "the magic is"},
		"version":       {func(h []byte, _ *Meta) { h[4]++ }, "the format version is 3"},
		"sum":           {func(_ []byte, m *Meta) { m.Computed++ }, "the checksum is"},
		"page size":     {func(_ []byte, m *Meta) { m.PageSize = 3000 }, "the page size 3000 is not a power of two"},
		"small page":    {func(_ []byte, m *Meta) { m.PageSize = 256 }, "the page size 256"},
		"smallest page": {func(_ []byte, m *Meta) { m.PageSize = minPageSize }, ""},
		"largest page":  {func(_ []byte, m *Meta) { m.PageSize = maxPageSize }, ""},
		"large page":    {func(_ []byte, m *Meta) { m.PageSize = 2 * maxPageSize }, "the page size 262144"},
		"root at the mark": {func(_ []byte, m *Meta) { m.Root = 9 },
			"the root page 9 is not below the high-water mark 9"},
	} {
		h := make([]byte, metaSize)
		le.PutUint32(h, metaMagic)
		le.PutUint32(h[4:], metaVersion)
		m := Meta{PageSize: 4096, Root: 8, HighWater: 9}
		c.change(h, &m)
		if got := metaProblem(h, &m); (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	for i, want := range [][]Meta{{{Valid: true, Txid: 5}, {Valid: true, Txid: 4}}, {{Valid: true, Txid: 5},
		{Valid: true, Txid: 6}}, {{Txid: 9}, {Txid: 8}}, {{Txid: 9}, {Valid: true, Txid: 8}},
		{{Valid: true, Txid: 8}, {Txid: 9}}, {{Valid: true, Txid: 5}, {Valid: true, Txid: 5}}} {
		if got := pickMeta(want); got != []int{0, 1, -1, 1, 0, 0}[i] {
			t.Errorf("%+v: %d", want, got)
		}
	}
	db := made(t, "put 2.0 k v")
	for n, ok := range map[int]bool{-1: false, 0: true, 1: true, 2: false} {
		if v, err := db.OpenMeta(n); (err == nil) != ok || (v != nil) != ok || ok && v.Close() != nil {
			t.Errorf("meta page %d: %v", n, err)
		}
	}
}

// TestManyBadRows: damage of a small bucket is listed up to a bound, the rest is counted.
func TestManyBadRows(t *testing.T) {
	var lines strings.Builder
	for i := range maxBadRows + 3 {
		fmt.Fprintf(&lines, "set lease x%04d v\n", i)
	}
	_, err := made(t, lines.String()).Leases()
	var all Damages
	if !errors.As(err, &all) || len(all) != maxBadRows || !strings.HasSuffix(err.Error(), "(and 3 more)") {
		t.Errorf("%d listed: %.80v", len(all), err)
	}
	lines.Reset()
	for i := range maxBadRows {
		fmt.Fprintf(&lines, "set lease x%04d v\n", i)
	}
	if _, err = made(t, lines.String()).Leases(); !errors.As(err, &all) || len(all) != maxBadRows ||
		strings.Contains(err.Error(), "more)") {
		t.Errorf("%d listed: %.80v", len(all), err)
	}
	many := &TooManyRowsError{Bucket: "lease", Rows: 7}
	if want := "bucket lease has more rows than are kept in memory (7 fit)"; many.Error() != want {
		t.Errorf("%q", many.Error())
	}
}

// TestNestingIsBounded: buckets in one another are examined down to a depth.
func TestNestingIsBounded(t *testing.T) {
	db := written(t, func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket([]byte("top"))
		for i := 0; i < maxNesting+2 && err == nil; i++ {
			b, err = b.CreateBucket([]byte("in"))
		}
		return err
	})
	r, err := db.Check(t.Context())
	fatal(t, err)
	deepest := "top" + strings.Repeat("/in", maxNesting)
	if len(r.Damage) != 1 || r.Damage[0].Observed != "another" || r.Damage[0].Bucket != deepest || r.Complete {
		t.Errorf("%v", r.Damage)
	}
}

// TestFreelistOfManyPages: a count that does not fit its field is in front of the list. A list that is not
// ascending is damage.
func TestFreelistOfManyPages(t *testing.T) {
	s := &script{t: t}
	d := &datadriven.TestData{Input: "many 40 2.0 /k 300\ncommit\nset key x y\ndrop key x",
		CmdArgs: []datadriven.CmdArg{{Key: "freelist"}}}
	s.create(d)
	sound, err := os.ReadFile(s.path)
	fatal(t, err)
	at := open(t, s.path).Meta().Freelist * 4096
	for name, c := range map[string]struct {
		change func(b []byte)
		want   string
	}{
		"sound": {func([]byte) {}, ""},
		"a long count": {func(b []byte) {
			copy(b[at+24:at+24+32], bytes.Clone(b[at+16:at+16+32]))
			le.PutUint16(b[at+10:], 0xffff)
			le.PutUint64(b[at+16:], 4)
		}, ""},
		"a long count that is too high": {func(b []byte) {
			le.PutUint16(b[at+10:], 0xffff)
			le.PutUint64(b[at+16:], 510)
		}, "at most 509 entries, observed 510"},
		"not ascending": {func(b []byte) {
			le.PutUint64(b[at+16:], 11)
			le.PutUint64(b[at+24:], 10)
		}, "a page above 11, observed page 10"},
		"one twice":    {func(b []byte) { le.PutUint64(b[at+24:], 10) }, "a page above 10, observed page 10"},
		"a meta page":  {func(b []byte) { le.PutUint64(b[at+16:], 1) }, "a page above 1, observed page 1"},
		"another page": {func(b []byte) { le.PutUint16(b[at+8:], flagLeaf) }, "a freelist page, observed type leaf"},
	} {
		b := bytes.Clone(sound)
		c.change(b)
		db, err := NewReader(bytes.NewReader(b), int64(len(b)))
		fatal(t, err)
		r, err := db.Check(t.Context())
		fatal(t, err)
		text := Damages(r.Damage)
		if (len(r.Damage) == 0) != (c.want == "") || len(r.Damage) > 0 && !strings.Contains(text.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, r.Damage, c.want)
		}
		if c.want == "" && (r.Free != 4 || r.Lost != 0) {
			t.Errorf("%s: free %d, lost %d", name, r.Free, r.Lost)
		}
	}
}

// TestKeyValueOfOtherWriters: fields in the long form of their tags are read as those in the short form.
func TestKeyValueOfOtherWriters(t *testing.T) {
	long := func(num, wire byte, rest ...byte) []byte { return append([]byte{num<<3 | wire | 0x80, 0}, rest...) }
	b := bytes.Join([][]byte{long(1, 2, 1, 'k'), long(2, 0, 2), long(3, 0, 3), long(4, 0, 4), long(5, 2, 1, 'v'),
		long(6, 0, 6), {7 << 3, 9}}, nil)
	got, err := DecodeKeyValue(b)
	if err != nil || string(got.Key) != "k" || got.CreateRevision != 2 || got.ModRevision != 3 || got.Version != 4 ||
		string(got.Value) != "v" || got.Lease != 6 {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range [][]byte{{1 << 3, 1}, {2<<3 | 2, 1, 'x'}, {5 << 3, 1}, {6<<3 | 2, 0},
		{1<<3 | 2, 2, 'k'}, {0x0a}} {
		if got, err := DecodeKeyValue(bad); err == nil {
			t.Errorf("%x: %+v", bad, got)
		}
	}
}

// TestOfNothing: a database without bucket key, no keys that are asked for, and a context that has ended.
func TestOfNothing(t *testing.T) {
	empty := made(t, "set lease \"\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x10\" \"\\x08\\x10\\x10\\x3c\\x18\\x05\"")
	leases, err := empty.Leases()
	if err != nil || len(leases) != 1 || leases[0].ID != 16 || leases[0].TTL != 60 || leases[0].RemainingTTL != 5 {
		t.Errorf("%+v, %v", leases, err)
	}
	each := func(*Revision) (int, bool) { return 1, true }
	keys := map[string]struct{}{"k": {}}
	if got, err := Newest(t.Context(), empty, keys, each); got != nil || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	db := made(t, "put 2.0 k v\nput 3.0 l v")
	if got, err := Newest(t.Context(), db, nil, each); got != nil || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := Newest(t.Context(), db, keys, each); len(got) != 1 || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, of := range []*DB{empty, made(t, "many 40 2.0 /k 300")} {
		if _, err := Newest(ctx, of, keys, each); !errors.Is(err, context.Canceled) {
			t.Errorf("newest: %v", err)
		}
	}
	for range 2 {
		n := 0
		for _, err := range db.Query(ctx, Query{}) {
			if n++; !errors.Is(err, context.Canceled) {
				t.Errorf("query: %v", err)
			}
		}
		for _, err := range db.Pages(ctx) {
			if n++; !errors.Is(err, context.Canceled) {
				t.Errorf("pages: %v", err)
			}
		}
		if n != 2 {
			t.Errorf("%d errors", n)
		}
	}
	if sound, err := OpenSalvage(t.Context(), filepath.Join(t.TempDir(), "none")); err == nil {
		t.Errorf("%+v", sound)
	}
}

// TestSalvageOfOtherPageSizes: without a meta page the page size is that at which most pages have their own number.
func TestSalvageOfOtherPageSizes(t *testing.T) {
	for _, size := range []int{1024, 4096, 16384} {
		path := filepath.Join(t.TempDir(), "db")
		ref, err := bbolt.Open(path, 0o600, &bbolt.Options{NoSync: true, PageSize: size})
		fatal(t, err)
		fatal(t, ref.Update(func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucket([]byte("key"))
			for i := int64(2); i < 200 && err == nil; i++ {
				kv := KeyValue{Key: []byte("k"), CreateRevision: 2, ModRevision: i, Version: i - 1,
					Value: make([]byte, 200)}
				err = b.Put(Rev{Main: i}.Bytes(), encodeKV(kv))
			}
			return err
		}))
		fatal(t, ref.Close())
		b, err := os.ReadFile(path)
		fatal(t, err)
		clear(b[:2*size])
		fatal(t, os.WriteFile(path, b, 0o600))
		db, err := OpenSalvage(t.Context(), path)
		fatal(t, err)
		n := 0
		for _, err := range db.SalvageRevisions(t.Context()) {
			if err == nil {
				n++
			}
		}
		if db.PageSize() != size || n != 198 {
			t.Errorf("page size %d, want %d; %d records", db.PageSize(), size, n)
		}
		fatal(t, db.Close())
	}
}

// TestRowsOfAnother: a row whose value is a user, role or member of another name than its key does not decode.
func TestRowsOfAnother(t *testing.T) {
	db := made(t, `set authUsers a "\x0a\x01a\x1a\x01r\x1a\x01q\x22\x02\x08\x01"
set authUsers b "\x0a\x01a"
set authRoles r "\x0a\x01r\x12\x06\x08\x02\x12\x02/a\x12\x09\x08\x01\x12\x01b\x1a\x02/c"
set authRoles q "\x0a\x01r"
set auth authEnabled "\x01"`)
	a, err := db.Auth()
	var all Damages
	if !errors.As(err, &all) || len(all) != 2 || !strings.Contains(all[0].Error()+all[1].Error(), `is the user "a"`) ||
		!strings.Contains(all[0].Error()+all[1].Error(), `is the role "r"`) {
		t.Errorf("%v", err)
	}
	if len(a.Users) != 1 || !slices.Equal(a.Users[0].Roles, []string{"r", "q"}) || !a.Users[0].NoPassword ||
		!a.Users[0].HasOptions || !a.Enabled {
		t.Errorf("%+v", a.Users)
	}
	if len(a.Roles) != 1 || len(a.Roles[0].Perms) != 2 || a.Roles[0].Perms[0].String() != `READWRITE key "/a"` ||
		a.Roles[0].Perms[1].String() != `WRITE range ["b", "/c")` {
		t.Errorf("%+v", a.Roles)
	}
}
