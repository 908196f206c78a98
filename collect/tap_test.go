package collect

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
)

// boltFile makes a file with many free pages and the given index; wide makes the root page a branch, and bucket meta
// inline or not.
func boltFile(t *testing.T, index, term uint64, wide, inline bool) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	put := func(tx *bbolt.Tx, bucket, key string, value []byte) {
		b, err := tx.CreateBucketIfNotExists([]byte(bucket))
		if err == nil {
			err = b.Put([]byte(key), value)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for round := uint64(1); round <= 40; round++ {
		err := db.Update(func(tx *bbolt.Tx) error {
			put(tx, "meta", "consistent_index", binary.BigEndian.AppendUint64(nil, index-40+round))
			if term > 0 {
				put(tx, "meta", "term", binary.BigEndian.AppendUint64(nil, term))
			}
			if !inline {
				put(tx, "meta", "confState", make([]byte, 2000))
			}
			for k := range 20 {
				put(tx, "key", fmt.Sprint(round, k), make([]byte, 300))
			}
			if wide {
				for n := range 12 {
					put(tx, fmt.Sprintf("bucket%02d", n), "x", make([]byte, 900))
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// The index that the tap finds is that of the newest transaction, whatever way leads to it and however the stream is
// cut into pieces.
func TestTapFindsTheIndex(t *testing.T) {
	for _, wide := range []bool{false, true} {
		for _, inline := range []bool{false, true} {
			for _, term := range []uint64{0, 7} {
				b, err := os.ReadFile(boltFile(t, 4711, term, wide, inline))
				if err != nil {
					t.Fatal(err)
				}
				tap := &dbTap{}
				for len(b) > 0 {
					n := min(1+rand.IntN(9000), len(b))
					_, _ = tap.Write(b[:n])
					b = b[n:]
				}
				if i, got, err := tap.Result(); err != nil || i != 4711 || got != term {
					t.Errorf("wide %v, inline %v, term %d: %d, %d, %v", wide, inline, term, i, got, err)
				}
				if wide && le.Uint16(tap.root[8:]) != boltBranch {
					t.Error("the root is not a branch: the case is not made")
				}
			}
		}
	}
}

// Whatever bytes come, the tap ends with an error and not with an index that is not there.
func TestTapOnDamage(t *testing.T) {
	b, err := os.ReadFile(boltFile(t, 4711, 7, false, false))
	if err != nil {
		t.Fatal(err)
	}
	for _, cut := range []int{0, 10, 79, 4096, 8192} {
		tap := &dbTap{}
		_, _ = tap.Write(b[:cut])
		if i, _, err := tap.Result(); err == nil {
			t.Errorf("cut at %d: index %d", cut, i)
		}
	}
	for range 300 {
		c := append([]byte(nil), b...)
		for range 200 {
			c[rand.IntN(len(c))] ^= byte(1 << rand.IntN(8))
		}
		tap := &dbTap{}
		_, _ = tap.Write(c)
		_, _, _ = tap.Result()
	}
}

// Stale pages do not make memory grow without end, and the newest index stays.
func TestTapForgetsStalePages(t *testing.T) {
	tap := &dbTap{indexes: map[uint64]tapIndex{}}
	page := make([]byte, 4096)
	le.PutUint16(page[8:], boltLeaf)
	le.PutUint16(page[10:], 1)
	le.PutUint32(page[boltHeader+4:], leafElement)
	le.PutUint32(page[boltHeader+8:], 16)
	le.PutUint32(page[boltHeader+12:], 8)
	copy(page[boltHeader+leafElement:], "consistent_index")
	for n := range uint64(maxTapped + 10) {
		be.PutUint64(page[boltHeader+leafElement+16:], n)
		tap.leaf(n, page)
	}
	if len(tap.indexes) > maxTapped || tap.indexes[maxTapped+9].index != maxTapped+9 {
		t.Errorf("%d kept, newest %v", len(tap.indexes), tap.indexes[maxTapped+9])
	}
}
