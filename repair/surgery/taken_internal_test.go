package surgery

import (
	"errors"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// rowsFrom reads rows such as "a=1 b=2".
func rowsFrom(list string) (out []pair) {
	for word := range strings.FieldsSeq(list) {
		k, v, _ := strings.Cut(word, "=")
		out = append(out, pair{[]byte(k), []byte(v)})
	}
	return out
}

// rebuilding is a new database with these buckets.
func rebuilding(t *testing.T, all map[string][]pair, peers ...*evidence.Member) *rebuilder {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	buckets(t, path, all)
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() }) // only a test reads it
	return &rebuilder{w: workOn(5, peers...), ctx: t.Context(), dst: db, log: replayedDB{tried: true}}
}

// rowsIn are the rows of a bucket of the new database, as rowsFrom reads them.
func rowsIn(t *testing.T, b *rebuilder, bucket string) string {
	t.Helper()
	var out []string
	err := b.dst.View(func(tx *bolt.Tx) error {
		return tx.Bucket([]byte(bucket)).ForEach(func(k, v []byte) error {
			out = append(out, string(k)+"="+string(v))
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(out, " ")
}

// TestTakenRows: afterwards the bucket has exactly the given rows, and only those that differed are counted.
func TestTakenRows(t *testing.T) {
	for name, c := range map[string]struct {
		own, given string
		n          int
	}{
		"equal":              {"a=1 b=2", "a=1 b=2", 0},
		"both empty":         {"", "", 0},
		"a value":            {"a=1 b=2 c=3", "a=1 b=9 c=3", 1},
		"one more":           {"a=1 c=3", "a=1 b=2 c=3", 1},
		"one more at first":  {"b=2", "a=1 b=2", 1},
		"more at the end":    {"a=1", "a=1 b=2 c=3", 2},
		"one less":           {"a=1 b=2 c=3", "a=1 c=3", 1},
		"less at first":      {"a=1 b=2 c=3", "c=3", 2},
		"less at the end":    {"a=1 b=2 c=3", "a=1", 2},
		"none is left":       {"a=1 b=2", "", 2},
		"into an empty one":  {"", "a=1 b=2", 2},
		"others":             {"a=1 c=3 e=5", "b=2 d=4", 5},
		"an empty value":     {"a=1", "a=", 1},
		"a value of nothing": {"a=", "a=1", 1},
		"one more, empty":    {"a=1", "a=1 b=", 1},
		"one more, alike":    {"b=1", "a=1 b=1", 1},
	} {
		b := rebuilding(t, map[string][]pair{"lease": rowsFrom(c.own)})
		given := func(yield func(dumpdb.Row, error) bool) {
			for _, r := range rowsFrom(c.given) {
				if !yield(dumpdb.Row{Key: r.key, Value: r.value}, nil) {
					return
				}
			}
		}
		n, err := b.takeRows("lease", given)
		if got := rowsIn(t, b, "lease"); err != nil || n != c.n || got != c.given {
			t.Errorf("%s: %d rows, now %q, %v", name, n, got, err)
		}
	}
}

// TestUnreadableRowsAreNotTaken: rows that end with damage replace nothing.
func TestUnreadableRowsAreNotTaken(t *testing.T) {
	bad := errors.New("damage")
	var given iter.Seq2[dumpdb.Row, error] = func(yield func(dumpdb.Row, error) bool) {
		_ = yield(dumpdb.Row{Key: []byte("a"), Value: []byte("9")}, nil) && yield(dumpdb.Row{}, bad)
	}
	b := rebuilding(t, map[string][]pair{"lease": rowsFrom("a=1 b=2")})
	if n, err := b.takeRows("lease", given); !errors.Is(err, bad) || n != 0 || rowsIn(t, b, "lease") != "a=1 b=2" {
		t.Errorf("%d rows, %v, now %q", n, err, rowsIn(t, b, "lease"))
	}
}

// wholeBuckets are all buckets of a new database; the given ones have rows.
func wholeBuckets(with map[string][]pair) map[string][]pair {
	all := map[string][]pair{"key": nil}
	for _, name := range smallBuckets {
		all[name] = nil
	}
	for name, rows := range with {
		all[name] = rows
	}
	return all
}

// TestTakeAll: rows of all buckets but meta are those of the better member. Not those of a bucket that entries between
// the two databases may change, and no records if the two are compacted at different revisions. Where nothing differs
// that is refused.
func TestTakeAll(t *testing.T) {
	const k, l = "k0123456789abcdef", "l0123456789abcdef" // as long as revisions
	own := map[string][]pair{"lease": rowsFrom("a=1"), "meta": rowsFrom("x=1"), "key": rowsFrom(k + "=1 " + l + "=1")}
	for name, c := range map[string]struct {
		better    map[string][]pair
		between   map[string]bool
		compacted int64
		did       string
		notes     int
		refused   bool
	}{
		"a bucket": {map[string][]pair{"lease": rowsFrom("a=2 b=2"), "meta": own["meta"], "key": own["key"]}, nil, 4,
			"2 rows of bucket lease are those of peer9", 0, false},
		"one row": {map[string][]pair{"lease": rowsFrom("a=2"), "meta": own["meta"], "key": own["key"]}, nil, 4,
			"1 row of bucket lease is that of peer9", 0, false},
		"records": {map[string][]pair{"lease": own["lease"], "meta": own["meta"], "key": rowsFrom(k + "=2 " + l + "=2")}, nil, 4,
			"2 records of bucket key are those of peer9", 0, false},
		"one record and one row": {map[string][]pair{"lease": rowsFrom("a=2"), "key": rowsFrom(k + "=1 " + l + "=2")}, nil, 4,
			"1 row of bucket lease is that of peer9\n1 record of bucket key is that of peer9", 0, false},
		"meta alone": {map[string][]pair{"lease": own["lease"], "meta": rowsFrom("x=2"), "key": own["key"]}, nil, 4,
			"", 0, true},
		"a bucket that may change": {map[string][]pair{"lease": rowsFrom("a=2"), "key": own["key"]},
			map[string]bool{"lease": true}, 4, "", 0, true},
		"another compaction": {map[string][]pair{"lease": rowsFrom("a=2"), "key": rowsFrom(k + "=2")}, nil, 3,
			"1 row of bucket lease is that of peer9", 1, false},
		"another compaction alone": {map[string][]pair{"lease": own["lease"], "key": rowsFrom(k + "=2")}, nil, 3, "", 1,
			true},
	} {
		path := filepath.Join(t.TempDir(), "db")
		buckets(t, path, wholeBuckets(c.better))
		db, err := dumpdb.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		p := peer(9)
		p.DB = &evidence.DB{Handle: db, KV: &dumpdb.KVStats{CompactRev: c.compacted}}
		b := rebuilding(t, wholeBuckets(own), p)
		b.compact = 4
		says := ""
		if c.refused {
			says = "nothing differs from what peer9 holds"
		}
		wantRefusal(t, name, b.takeAll(p, c.between), "", says)
		r := b.w.report
		if strings.Join(r.Did, "\n") != c.did || len(r.Notes) != c.notes || rowsIn(t, b, "meta") != "x=1" {
			t.Errorf("%s: did %q, notes %q, meta %s", name, r.Did, r.Notes, rowsIn(t, b, "meta"))
		}
		_ = db.Close() // only read
	}
}

// holding is a member whose bucket key is the given one.
func holding(t *testing.T, name, list string) *evidence.Member {
	t.Helper()
	m := peer(9)
	m.Source.Name, m.DB = name, &evidence.DB{Handle: revisions(t, list)}
	return m
}

// TestTakenRecords: a record that is proven wrong is replaced by that of the first member that holds the right one,
// also a tombstone, and also by none. Records that no member named holds stay, and are given up.
func TestTakenRecords(t *testing.T) {
	row := func(main, sub int64, names ...string) compare.LostRecord {
		return compare.LostRecord{Revision: check.Rev{Main: main, Sub: sub}, HeldBy: names}
	}
	key := func(main, sub int64, more string) []byte {
		return append(dumpdb.Rev{Main: main, Sub: sub}.Bytes(), more...)
	}
	own := []pair{{key(5, 0, ""), []byte("own")}, {key(6, 0, ""), []byte("own")}, {key(6, 1, ""), []byte("own")},
		{key(7, 0, "t"), []byte("own")}, {key(8, 0, ""), []byte("own")}}
	for name, c := range map[string]struct {
		rows []compare.LostRecord
		// replaced are the revisions whose record is another one afterwards, gone those that have none.
		replaced, gone []string
		did, gives     string
		says           string
	}{
		"one": {[]compare.LostRecord{row(5, 0, "b")}, []string{"5"}, nil,
			"1 record of bucket key that is proven wrong is now that of b", "", ""},
		"one of a revision": {[]compare.LostRecord{row(6, 1, "b")}, []string{"6.1"}, nil,
			"1 record of bucket key that is proven wrong is now that of b", "", ""},
		"a tombstone": {[]compare.LostRecord{row(7, 0, "b")}, []string{"7"}, []string{"7t"},
			"1 record of bucket key that is proven wrong is now that of b", "", ""},
		"none in its place": {[]compare.LostRecord{row(8, 0, "c")}, nil, []string{"8"},
			"1 record of bucket key that is proven wrong is now that of c", "", ""},
		"of two members": {[]compare.LostRecord{row(5, 0, "c"), row(6, 0, "b", "c"), row(7, 0, "b")},
			[]string{"5", "6", "7"}, []string{"7t"},
			"2 records of bucket key that are proven wrong are now those of b\n" +
				"1 record of bucket key that is proven wrong is now that of c", "", ""},
		"some are left": {[]compare.LostRecord{row(5, 0, "b"), row(6, 1, "x"), row(8, 0)}, []string{"5"}, nil,
			"1 record of bucket key that is proven wrong is now that of b",
			"the right content of 2 records that are proven wrong, at revision 6.1, 8.0: no member named by --with " +
				"is known to hold it", ""},
		"none is known": {[]compare.LostRecord{row(6, 1, "x")}, nil, nil, "", "", "1 record is proven wrong, and no " +
			"member named by --with is known to hold the right one: revision 6.1"},
	} {
		b := rebuilding(t, map[string][]pair{"key": own}, holding(t, "b", "5 6 6.1 7"), holding(t, "c", "5 6"))
		wantRefusal(t, name, b.takeRecords(&compare.LostRecords{Count: len(c.rows), Rows: c.rows}), "", c.says)
		r := b.w.report
		if strings.Join(r.Did, "\n") != c.did || strings.Join(r.GivesUp, "\n") != c.gives {
			t.Errorf("%s: did %q, gives up %q", name, r.Did, r.GivesUp)
		}
		var replaced []string
		gone := []string{"5", "6", "6.1", "7t", "8"}
		err := b.dst.View(func(tx *bolt.Tx) error {
			return tx.Bucket([]byte("key")).ForEach(func(k, v []byte) error {
				word := revisionsOf(&rebuilder{batch: []pair{{k, v}}})
				if len(k) == 18 {
					word += "t"
				}
				if string(v) != "own" {
					replaced = append(replaced, word)
				}
				gone = slices.DeleteFunc(gone, func(s string) bool { return s == word })
				return nil
			})
		})
		if err != nil || !slices.Equal(replaced, c.replaced) || !slices.Equal(gone, c.gone) {
			t.Errorf("%s: %v, replaced %q, gone %q", name, err, replaced, gone)
		}
	}
}

// TestSickAsBefore: a result is as damaged as its source if it has every error of it. Differences are no error of a
// member that the diagnosis calls best, warnings are no errors, and a sound source cannot be as damaged as before.
func TestSickAsBefore(t *testing.T) {
	type of = []check.Finding
	finding := func(id check.ID, s check.Severity, members ...string) check.Finding {
		return check.Finding{Check: id, Severity: s, Members: members}
	}
	each := finding("A01", check.Error, "source", "b")
	each.Each = true
	one, two := finding("A01", check.Error, "source"), finding("A02", check.Error, "source")
	placed := func(f check.Finding, places int) check.Finding {
		for range places {
			f.Evidence = append(slices.Clone(f.Evidence), check.Evidence{Member: "source"}, check.Evidence{Member: "b"})
		}
		return f
	}
	for name, c := range map[string]struct {
		before, after of
		best          []string
		want          bool
	}{
		"none":                 {nil, nil, nil, false},
		"the same":             {of{one}, of{one}, nil, true},
		"cured":                {of{one}, nil, nil, false},
		"one of two":           {of{one, finding("A02", check.Error, "source")}, of{one}, nil, false},
		"another":              {of{one}, of{finding("A02", check.Error, "source")}, nil, false},
		"one more":             {of{one}, of{finding("A02", check.Error, "source"), one}, nil, true},
		"worse":                {of{one}, of{finding("A01", check.Critical, "source")}, nil, true},
		"a warning":            {of{finding("A01", check.Warning, "source")}, of{one}, nil, false},
		"a warning afterwards": {of{one}, of{finding("A01", check.Warning, "source")}, nil, false},
		"two of three places":  {of{placed(one, 3)}, of{placed(one, 1)}, nil, false},
		"fewer places of one, more of another": {of{placed(one, 3), placed(two, 1)},
			of{placed(one, 1), placed(two, 2)}, nil, true},
		"one place, listed or not": {of{placed(one, 1)}, of{one}, nil, true},
		"of another member":        {of{finding("A01", check.Error, "b")}, of{one}, nil, false},
		"a difference": {of{finding("A01", check.Error, "b", "source")}, of{finding("A01", check.Error, "source", "b")},
			nil, true},
		"a difference from the best": {of{finding("A01", check.Error, "b", "source")},
			of{finding("A01", check.Error, "source", "b")}, []string{"source"}, false},
		"another is the best": {of{finding("A01", check.Error, "b", "source")},
			of{finding("A01", check.Error, "source", "b")}, []string{"b"}, true},
		"its own error, and the best":    {of{one}, of{one}, []string{"b", "source"}, true},
		"an error of each, and the best": {of{each}, of{each}, []string{"source"}, true},
		"of the set":                     {of{finding("A01", check.Error)}, of{finding("A01", check.Error)}, nil, true},
		"of the set, and the best": {of{finding("A01", check.Error)}, of{finding("A01", check.Error)},
			[]string{"source"}, false},
	} {
		report := func(f of) *compare.Report {
			r := &compare.Report{Findings: f}
			if c.best != nil {
				r.Best = &compare.Best{Members: c.best}
			}
			return r
		}
		w := workOn(5)
		w.before = report(c.before)
		if got := w.sickAsBefore(report(c.after)); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestJudgedResult: a result in which a check finds a new error needs consent, and the refusal names the first such
// check. What is cured is listed. Warnings count in neither, nor do errors of other members alone.
func TestJudgedResult(t *testing.T) {
	report := func(list string) *compare.Report {
		r := &compare.Report{Verdict: compare.Verdict{Class: "c", Summary: "s", Health: check.Healthy}}
		for word := range strings.FieldsSeq(list) {
			id, severity, _ := strings.Cut(word, ":")
			s := map[string]check.Severity{"": check.Error, "c": check.Critical, "w": check.Warning,
				"i": check.Info}[severity]
			f := check.Finding{Check: check.ID(id), Severity: s, Title: "title of " + id}
			if name, others := strings.CutPrefix(severity, "@"); others {
				f.Severity, f.Members = check.Error, strings.Split(name, "+")
			}
			r.Findings = append(r.Findings, f)
		}
		return r
	}
	for name, c := range map[string]struct{ before, after, says, cured, broken string }{
		"nothing":      {"", "", "", "", ""},
		"the same":     {"A01", "A01:c", "", "", ""},
		"cured":        {"B02 E05 A01 D04 A01 C03", "", "", "A01 B02 C03 D04 E05", ""},
		"to a warning": {"A01", "A01:w", "", "A01", ""},
		"a warning":    {"", "A01:w", "", "", ""},
		"from warning": {"A01:w", "A01", "(A01): title of A01", "", "A01"},
		"new ones": {"", "C03 E05 A01 D04 B02", "the result breaks what held before (A01): title of A01", "",
			"A01 B02 C03 D04 E05"},
		"one, one gone": {"A01", "B02", "(B02): title of B02", "A01", "B02"},
		"of another":    {"A01:@source", "B02:@o", "", "A01", ""},
		"of both":       {"", "B02:@o B02:@o+source", "(B02): title of B02", "", "B02"},
		"moved here":    {"B02:@o", "B02:@source", "(B02): title of B02", "", "B02"},
		"moved away":    {"B02:@source", "B02:@o", "", "", ""},
	} {
		w := workOn(5)
		wantRefusal(t, name, w.judge(report(c.before), report(c.after)), AcceptDivergence, c.says)
		join := func(ids []check.ID) string {
			var out []string
			for _, id := range ids {
				out = append(out, string(id))
			}
			return strings.Join(out, " ")
		}
		if cured, broken := join(w.report.Cured), join(w.report.New); cured != c.cured || broken != c.broken {
			t.Errorf("%s: cured %s, new %s", name, cured, broken)
		}
	}
	s := stateOf(report("A01 B02:w C03:i D04:c"))
	if len(s.Findings) != 3 || s.Findings[1].Check != "B02" || s.Findings[1].Title != "title of B02" ||
		s.Health != check.Healthy || s.Class != "c" || s.Summary != "s" {
		t.Errorf("in short: %+v", s)
	}
}
