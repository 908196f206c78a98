package dumpdb

import (
	"encoding/binary"
	"errors"
	"fmt"
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
