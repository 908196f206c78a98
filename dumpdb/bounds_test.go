package dumpdb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"
)

// written is a database with what fill puts there.
func written(t *testing.T, fill func(tx *bbolt.Tx) error) *DB {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	b, err := bbolt.Open(path, 0o600, &bbolt.Options{NoSync: true, NoFreelistSync: true})
	if err == nil {
		err = errors.Join(b.Update(fill), b.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return open(t, path)
}

func eightBytes(i int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(i)) }

// TestSmallSize: the rows of small buckets count, those of bucket key do not, and the bucket with too many is named.
func TestSmallSize(t *testing.T) {
	db := written(t, func(tx *bbolt.Tx) error {
		for _, name := range []string{"key", "lease", "authRoles"} {
			b, err := tx.CreateBucket([]byte(name))
			if err != nil {
				return err
			}
			for i := range 1000 {
				if err := b.Put(eightBytes(i), make([]byte, 100)); err != nil {
					return err
				}
			}
		}
		return nil
	})
	size, err := db.SmallSize(MaxSmall)
	want := int64(1000 * (smallRow + 8 + 100 + smallRow + 8 + 28*100))
	if err != nil || size != want {
		t.Fatalf("%d bytes, want %d: %v", size, want, err)
	}
	var many *TooManyRowsError
	if _, err = db.SmallSize(want - 1); !errors.As(err, &many) || many.Bucket != "lease" {
		t.Errorf("a bound that is one too low: %v", err)
	}
	if _, err = db.SmallSize(smallRow); !errors.As(err, &many) || many.Rows != 0 || many.Bucket != "authRoles" {
		t.Errorf("a bound that is too low: %v", err)
	}
}

// TestManyBuckets: of many buckets those of etcd and some others are examined, and the damage counts the rest. Buckets
// inside of others are bounded as well, and so is the time.
func TestManyBuckets(t *testing.T) {
	begin := time.Now()
	const n = 30_000
	db := written(t, func(tx *bbolt.Tx) error {
		for _, name := range []string{"key", "meta"} {
			b, err := tx.CreateBucket([]byte(name))
			for i := 0; i < n && err == nil; i++ {
				_, err = b.CreateBucket(eightBytes(i))
			}
			if err != nil {
				return err
			}
		}
		for i := range n {
			if _, err := tx.CreateBucket(eightBytes(i)); err != nil {
				return err
			}
		}
		return nil
	})
	list, damage := db.Buckets()
	if len(list) != maxBuckets+2 || list[len(list)-1].Name != "meta" {
		t.Errorf("%d buckets", len(list))
	}
	if want := fmt.Sprintf("%d; all but", n+2); len(damage) != 1 || damage[0].Kind != DamageBuckets ||
		!strings.HasPrefix(damage[0].Observed, want) {
		t.Errorf("%v, want %s", damage, want)
	}
	rep, err := db.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	nested := 0
	for _, d := range rep.Damage {
		if d.Kind == DamageBuckets && strings.HasPrefix(d.Observed, fmt.Sprintf("%d; all but", n)) {
			nested++
		}
	}
	if nested != 2 {
		t.Errorf("%v", rep.Damage)
	}
	if took := time.Since(begin); took > 5*time.Minute { // a few seconds on an idle machine
		t.Errorf("took %v", took)
	}
}

// TestManyProblemsOfAPage: problems of one page beyond a bound are one, which loses all keys up to the end of the page.
func TestManyProblemsOfAPage(t *testing.T) {
	data := make([]byte, 4096)
	const n = 200
	le.PutUint64(data, 7)
	le.PutUint16(data[8:], flagLeaf)
	le.PutUint16(data[10:], n)
	for i := range n { // keys in falling order
		at, key := headerSize+i*elemSize, headerSize+n*elemSize+i
		le.PutUint32(data[at+4:], uint32(key-at))
		le.PutUint32(data[at+8:], 1)
		data[key] = byte(255 - i)
	}
	var found []*DamageError
	s := &scan{bucket: "key", onDamage: func(d *DamageError) bool { found = append(found, d); return true },
		onLeaf: func(*leaf) bool { return true }}
	lv := &s.levels[0]
	lv.page = parseHeader(data)
	s.leaf(lv, span{end: []byte{0xff, 0xff}})
	if len(found) != maxProblems+1 {
		t.Fatalf("%d problems", len(found))
	}
	last := found[maxProblems]
	want := fmt.Sprintf("%d more problems from element %d on", n-1-maxProblems, maxProblems+1)
	if last.Observed != want {
		t.Errorf("%q, want %q", last.Observed, want)
	}
	if string(last.LastKey) != "\xff\xff" || len(last.FirstKey) != 1 {
		t.Errorf("lost from %q to %q", last.FirstKey, last.LastKey)
	}
}

// TestEqualKeysOfAPage: keys of a page ascend; two that are equal are damage, and both are kept.
func TestEqualKeysOfAPage(t *testing.T) {
	for keys, problems := range map[string]int{"abc": 0, "abb": 1, "aab": 1, "acb": 1, "aaa": 2, "a": 0} {
		data := make([]byte, 4096)
		le.PutUint16(data[8:], flagLeaf)
		le.PutUint16(data[10:], uint16(len(keys)))
		for i, key := range []byte(keys) {
			at, pos := headerSize+i*elemSize, headerSize+len(keys)*elemSize+i
			le.PutUint32(data[at+4:], uint32(pos-at))
			le.PutUint32(data[at+8:], 1)
			data[pos] = key
		}
		p := parseHeader(data)
		elems, found := p.parseElems(nil, nil)
		if len(elems) != len(keys) || len(found) != problems {
			t.Errorf("%s: %d elements, problems %+v", keys, len(elems), found)
		}
		for _, pr := range found {
			if pr.kind != DamageKeyOrder {
				t.Errorf("%s: %+v", keys, pr)
			}
		}
	}
}

// TestNestedInAll: buckets inside of others are examined up to a number in all, which is said once.
func TestNestedInAll(t *testing.T) {
	db := written(t, func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket([]byte("top"))
		for i := 0; i < 4 && err == nil; i++ {
			_, err = b.CreateBucket(eightBytes(i))
		}
		return err
	})
	for before, want := range map[int]int{0: 0, maxNestedAll - 5: 0, maxNestedAll - 4: 1, maxNestedAll - 2: 1,
		maxNestedAll: 0} {
		c := db.newChecker()
		c.nestedSeen = before
		if err := c.bucket(t.Context(), &db.buckets[0], 0); err != nil {
			t.Fatal(err)
		}
		said := Damages(c.report.Damage)
		if len(said) != want || want > 0 && (said[0].Kind != DamageBuckets || said[0].Bucket != "top" ||
			said[0].Observed != "more than 10000 in all; the others are not examined") {
			t.Errorf("after %d: %v", before, said)
		}
		if seen := min(before+4, max(before+1, maxNestedAll)); c.nestedSeen != seen {
			t.Errorf("after %d: up to bucket %d, want %d", before, c.nestedSeen, seen)
		}
	}
}

// TestManyDamagedBuckets: damage of the list of buckets is bounded, and its last line counts the rest.
func TestManyDamagedBuckets(t *testing.T) {
	const more = 3
	path := filepath.Join(t.TempDir(), "db")
	b, err := bbolt.Open(path, 0o600, &bbolt.Options{NoSync: true, PageSize: 4096})
	if err == nil {
		err = errors.Join(b.Update(func(tx *bbolt.Tx) (err error) {
			for i := 0; i < maxRootDamage+more && err == nil; i++ {
				_, err = tx.CreateBucket(eightBytes(i))
			}
			return err
		}), b.Close())
	}
	fatal(t, err)
	data, err := os.ReadFile(path)
	fatal(t, err)
	for page := 2 * 4096; page < len(data); page += 4096 {
		if p := parseHeader(data[page : page+4096]); p.flags == flagLeaf && p.id == uint64(page/4096) {
			for i := range p.count { // no row of it is a bucket any more
				le.PutUint32(data[page+headerSize+i*elemSize:], 0)
			}
		}
	}
	db, err := NewReader(bytes.NewReader(data), int64(len(data)))
	fatal(t, err)
	list, damage := db.Buckets()
	if len(list) != 0 || len(damage) != maxRootDamage+1 {
		t.Fatalf("%d buckets, %d damaged places", len(list), len(damage))
	}
	last := damage[maxRootDamage]
	if want := fmt.Sprint(more, " more damaged places"); last.Observed != want || last.Page != db.Meta().Root {
		t.Errorf("%v, want %s", last, want)
	}
}

// TestManyBadRecords: records that do not decode are listed up to a bound, and the others counted.
func TestManyBadRecords(t *testing.T) {
	var p records
	l := &leaf{page: &page{id: 3}}
	for range maxViolations + 3 {
		if _, ok := p.add(l, elem{key: []byte("short"), value: encodeKV(KeyValue{Key: []byte("k")})}); ok {
			t.Fatal("a row without a revision is a record")
		}
	}
	if len(p.bad) != maxViolations || p.moreBad != 3 || len(p.recs) != 0 {
		t.Errorf("%d listed, %d more, %d records", len(p.bad), p.moreBad, len(p.recs))
	}
	if _, ok := p.add(l, elem{key: Rev{Main: 2}.Bytes(), value: encodeKV(KeyValue{Key: []byte("k")})}); !ok ||
		len(p.recs) != 1 || p.moreBad != 3 {
		t.Errorf("a record after them: %d records, %d bad", len(p.recs), p.moreBad)
	}
}

// TestJoinedViolations: of the violations of several passes the first by revision are kept.
func TestJoinedViolations(t *testing.T) {
	var odd, even violations
	for i := range int64(maxViolations/2 + 2) {
		odd.add(Violation{Rev: Rev{Main: 2*i + 1}})
		even.add(Violation{Rev: Rev{Main: 2*i + 2}})
	}
	odd.join(&even)
	if len(odd.list) != maxViolations || odd.more != 4 {
		t.Fatalf("%d listed, %d more", len(odd.list), odd.more)
	}
	for i, v := range odd.list {
		if v.Main != int64(i+1) {
			t.Fatalf("number %d is %s", i, v.Rev)
		}
	}
}

// TestTooLargeRows: a small bucket whose rows would take too much memory is not read.
func TestTooLargeRows(t *testing.T) {
	db := written(t, func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket([]byte("authRoles"))
		for i := 0; i < 2 && err == nil; i++ {
			err = b.Put([]byte{'a' + byte(i)}, make([]byte, MaxSmall/28/2))
		}
		return err
	})
	rows := 0
	var many *TooManyRowsError
	if err := db.eachRow("authRoles", func(Row) error { rows++; return nil }); !errors.As(err, &many) ||
		many.Rows != 1 || rows != 1 {
		t.Errorf("%d rows read: %v", rows, err)
	}
}

// TestOddRecords: a record that does not decode is not the newest of its key, and there is no hash with it.
func TestOddRecords(t *testing.T) {
	const bad = "\nset key " + `"\x00\x00\x00\x00\x00\x00\x00\x05_\x00\x00\x00\x00\x00\x00\x00\x00" "\x0a\x01l\xff"`
	db := made(t, "put 2.0 k v\nput 3.0 l v\ndel 4.0 k"+bad)
	got, err := Newest(t.Context(), db, map[string]struct{}{"k": {}, "l": {}},
		func(r *Revision) (int64, bool) { return r.Main, true })
	if want := map[string]int64{"k": 2, "l": 3}; err != nil || !maps.Equal(got, want) {
		t.Errorf("newest: %v, %v", got, err)
	}
	var d *DamageError
	if _, err := db.HashKV(t.Context(), 0); !errors.As(err, &d) || d.Kind != DamageRow {
		t.Errorf("HashKV: %v", err)
	}
	if h, err := db.ContentHash(t.Context(), -1, 0); h != "" || !errors.As(err, &d) || d.Kind != DamageRow {
		t.Errorf("content: %q, %v", h, err)
	}
	if _, err := db.HashKV(t.Context(), 4); err != nil {
		t.Errorf("HashKV below it: %v", err)
	}
}
