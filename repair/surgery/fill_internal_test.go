package surgery

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// revisions writes a database with these revisions, each of a key and a value: "5 6.1 7t 8!" is a record of revision 5,
// the second record of revision 6, a tombstone, and a record that does not decode.
func revisions(t *testing.T, list string) *dumpdb.DB {
	t.Helper()
	var rows []pair
	for word := range strings.FieldsSeq(list) {
		main, sub, _ := strings.Cut(strings.TrimRight(word, "t!"), ".")
		rev := dumpdb.Rev{Main: int64(number(t, main))}
		if sub != "" {
			rev.Sub = int64(number(t, sub))
		}
		v, err := (&mvccpb.KeyValue{Key: []byte("k"), Value: []byte(word), ModRevision: rev.Main, CreateRevision: 1,
			Version: 1}).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		row := pair{rev.Bytes(), v}
		if strings.HasSuffix(word, "t") {
			row.key = append(row.key, 't')
		}
		if strings.HasSuffix(word, "!") {
			row.value = []byte{0xff}
		}
		rows = append(rows, row)
	}
	path := filepath.Join(t.TempDir(), "db")
	buckets(t, path, map[string][]pair{"key": rows, "meta": nil})
	db, err := dumpdb.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() }) // only read
	return db
}

// buckets writes rows into a new database.
func buckets(t *testing.T, path string, all map[string][]pair) {
	t.Helper()
	b, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }() // closed below if it was written
	err = b.Update(func(tx *bolt.Tx) error {
		for name, rows := range all {
			x, err := tx.CreateBucket([]byte(name))
			if err != nil {
				return err
			}
			for _, r := range rows {
				if err := x.Put(r.key, r.value); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

// revisionsOf are the records that a rebuilder has not written yet, in the form of revisions.
func revisionsOf(b *rebuilder) string {
	var out []string
	for _, r := range b.batch {
		word := fmt.Sprint(binary.BigEndian.Uint64(r.key))
		if sub := binary.BigEndian.Uint64(r.key[9:]); sub > 0 {
			word += fmt.Sprint(".", sub)
		}
		out = append(out, word)
	}
	return strings.Join(out, " ")
}

// withRevisions is another member whose database has these revisions, at an entry, and says so of itself.
func withRevisions(t *testing.T, list string, index uint64, current, compacted int64) *evidence.Member {
	t.Helper()
	m := peer(index)
	m.DB = &evidence.DB{Handle: revisions(t, list), Meta: dumpdb.MetaBucket{ConsistentIndex: &index},
		KV: &dumpdb.KVStats{CurrentRev: current, CompactRev: compacted}}
	return m
}

// TestHoleOfOthers: missing revisions come from a member that has all of them, undamaged and not compacted, else from a
// replay of the log. Without both the gap stays.
func TestHoleOfOthers(t *testing.T) {
	const all = "5 6 7 8"
	damaged := withRevisions(t, all, 9, 8, 4)
	damaged.DB.KVDamaged = true
	for name, c := range map[string]struct {
		peers  []*evidence.Member
		replay string
		want   string
		from   string
	}{
		"none":        {nil, "", "", ""},
		"a log alone": {[]*evidence.Member{peer(9)}, "", "", ""},
		"a member":    {[]*evidence.Member{withRevisions(t, all, 9, 8, 4)}, "", all, "the database of peer9"},
		"not compacted": {[]*evidence.Member{withRevisions(t, all, 9, 8, -1)}, "", all,
			"the database of peer9"},
		"one that ends before":  {[]*evidence.Member{withRevisions(t, all, 9, 7, 4)}, "", "", ""},
		"one compacted at it":   {[]*evidence.Member{withRevisions(t, all, 9, 8, 5)}, "", "", ""},
		"a damaged one":         {[]*evidence.Member{damaged}, "", "", ""},
		"one with a gap":        {[]*evidence.Member{withRevisions(t, "5 6 8", 9, 9, 4)}, "", "", ""},
		"one with half of them": {[]*evidence.Member{withRevisions(t, "5 6 7", 9, 9, 4)}, "", "", ""},
		"without the first":     {[]*evidence.Member{withRevisions(t, "6 7 8 9", 9, 9, 4)}, "", "", ""},
		"not decodable":         {[]*evidence.Member{withRevisions(t, "5 6! 7 8", 9, 9, 4)}, "", "", ""},
		"several of one revision": {[]*evidence.Member{withRevisions(t, "4 5 5.1 6 7t 8 8.1 9", 9, 9, 4)}, "",
			"5 5.1 6 7 8 8.1", "the database of peer9"},
		"the second": {[]*evidence.Member{withRevisions(t, all, 8, 7, 4), withRevisions(t, all, 9, 8, 4)}, "", all,
			"the database of peer9"},
		"the first of two": {[]*evidence.Member{withRevisions(t, all, 8, 8, 4), withRevisions(t, all, 9, 8, 4)}, all,
			all, "the database of peer8"},
		"a replay": {[]*evidence.Member{withRevisions(t, all, 9, 8, 5)}, "4 5 6 7 8 9", all,
			"a replay of the log"},
		"a replay that lacks one": {nil, "5 6 7", "", ""},
	} {
		b := &rebuilder{w: workOn(5, c.peers...), log: replayedDB{tried: true}, last: 4}
		if c.replay != "" {
			b.log.db = revisions(t, c.replay)
		}
		if err := b.hole(span{5, 8}); err != nil {
			t.Fatal(err)
		}
		filled, last := c.want != "", int64(4)
		if filled {
			last = 8
		}
		if got := revisionsOf(b); got != c.want || b.from != c.from || (len(b.filled) == 1) != filled ||
			(len(b.holes) == 0) != filled || b.last != last || b.records != len(strings.Fields(got)) {
			t.Errorf("%s: %q from %q, filled %v, holes %v, last %d", name, got, b.from, b.filled, b.holes, b.last)
		}
	}
}

// TestGapBeforeRecord: above the compact revision every revision has a record, so that what is between two records is
// missing. The first revision of an empty store is 1 and has none.
func TestGapBeforeRecord(t *testing.T) {
	for name, c := range map[string]struct {
		last, compact, at int64
		hole              span
	}{
		"the next":             {5, -1, 6, span{}},
		"one between":          {5, -1, 7, span{6, 6}},
		"several between":      {5, -1, 10, span{6, 9}},
		"of the same revision": {5, -1, 5, span{}},
		"the first":            {0, -1, 2, span{}},
		"not the first":        {0, -1, 3, span{2, 2}},
		"below the compaction": {5, 10, 8, span{}},
		"at the compaction":    {5, 10, 10, span{}},
		"after the compaction": {5, 10, 11, span{}},
		"later":                {5, 10, 13, span{11, 12}},
	} {
		b := &rebuilder{w: workOn(5), log: replayedDB{tried: true}, last: c.last, compact: c.compact}
		err := b.record(&dumpdb.Salvaged{Revision: dumpdb.Revision{Rev: dumpdb.Rev{Main: c.at}, RawKey: []byte{1}}})
		if err != nil || len(b.holes) > 1 || (len(b.holes) == 1) != (c.hole != span{}) ||
			len(b.holes) == 1 && b.holes[0] != c.hole || b.last != c.at || b.records != 1 || b.salvaged != 0 {
			t.Errorf("%s: holes %v, last %d, %d records, %d salvaged, %v", name, b.holes, b.last, b.records, b.salvaged,
				err)
		}
	}
}

// TestSalvagedRecords: records outside the tree are counted, and those of which several versions were found.
func TestSalvagedRecords(t *testing.T) {
	b := &rebuilder{w: workOn(5), log: replayedDB{tried: true}}
	for _, s := range []dumpdb.Salvaged{{Origin: dumpdb.OriginOlder, Conflicts: 1}, {Origin: dumpdb.OriginUnreachable},
		{Origin: dumpdb.OriginUnreachable, Copies: 2}, {Origin: dumpdb.OriginUnreachable, Conflicts: 1}} {
		s.Revision = dumpdb.Revision{Rev: dumpdb.Rev{Main: b.last + 1}, RawKey: []byte{1}}
		if err := b.record(&s); err != nil {
			t.Fatal(err)
		}
	}
	if b.records != 4 || b.salvaged != 3 || b.conflicts != 1 {
		t.Errorf("%d records, %d salvaged, %d in several versions", b.records, b.salvaged, b.conflicts)
	}
}

// TestEndOfRecords: damage at the end of the bucket hides where it ends. A sound member at the same entry shows it,
// else a replay of the log.
func TestEndOfRecords(t *testing.T) {
	open, closed := &dumpdb.DamageError{Bucket: "key", FirstKey: dumpdb.Rev{Main: 6}.Bytes()},
		&dumpdb.DamageError{Bucket: "key", FirstKey: dumpdb.Rev{Main: 2}.Bytes(), LastKey: dumpdb.Rev{Main: 4}.Bytes()}
	unknown := &dumpdb.DamageError{Bucket: "key"}
	damaged := withRevisions(t, "5", 5, 5, -1)
	damaged.DB.KVDamaged = true
	at := func(index uint64, list string, current int64) []*evidence.Member {
		return []*evidence.Member{withRevisions(t, list, index, current, -1)}
	}
	for name, c := range map[string]struct {
		damage []*dumpdb.DamageError
		peers  []*evidence.Member
		replay string
		want   string
		ended  bool
	}{
		"no damage":            {nil, at(5, "6 7", 7), "", "", false},
		"an end that is known": {[]*dumpdb.DamageError{closed}, at(5, "6 7", 7), "", "", false},
		"the same entry":       {[]*dumpdb.DamageError{open}, at(5, "6 7", 7), "", "6 7", true},
		"damage anywhere":      {[]*dumpdb.DamageError{unknown}, at(5, "6 7", 7), "", "6 7", true},
		"one of two":           {[]*dumpdb.DamageError{closed, open}, at(5, "6 7", 7), "", "6 7", true},
		"the other of two":     {[]*dumpdb.DamageError{open, closed}, at(5, "6 7", 7), "", "6 7", true},
		"another entry":        {[]*dumpdb.DamageError{open}, at(6, "6 7", 7), "", "", false},
		"a damaged member":     {[]*dumpdb.DamageError{open}, []*evidence.Member{damaged}, "", "", false},
		"a log alone":          {[]*dumpdb.DamageError{open}, []*evidence.Member{peer(5)}, "", "", false},
		"nothing more":         {[]*dumpdb.DamageError{open}, at(5, "5", 5), "", "", true},
		"a member below":       {[]*dumpdb.DamageError{open}, at(5, "4", 4), "", "", false},
		"without the records":  {[]*dumpdb.DamageError{open}, at(5, "7", 7), "", "", false},
		"a replay":             {[]*dumpdb.DamageError{open}, nil, "4 5 6 7", "6 7", true},
		"a replay to the end":  {[]*dumpdb.DamageError{open}, nil, "4 5", "", true},
		"a replay below":       {[]*dumpdb.DamageError{open}, nil, "3 4", "", false},
	} {
		b := &rebuilder{w: workOn(5, c.peers...), log: replayedDB{tried: true}, last: 5, damage: c.damage}
		if c.replay != "" {
			b.log.db = revisions(t, c.replay)
		}
		if err := b.tail(); err != nil {
			t.Fatal(err)
		}
		if got := revisionsOf(b); got != c.want || b.ended != c.ended {
			t.Errorf("%s: %q, ended %v, holes %v", name, got, b.ended, b.holes)
		}
	}
}
