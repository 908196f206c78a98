package dumpdb

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
)

// TestEmptyLeaf: a leaf page without rows below a branch page is damage that names what it may have held. bbolt itself,
// whatever it deletes, leaves no such page, and an empty bucket is sound.
func TestEmptyLeaf(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	ref, err := bbolt.Open(path, 0o600, &bbolt.Options{NoSync: true, PageSize: 1024})
	fatal(t, err)
	random := rand.New(rand.NewPCG(1, 2))
	key := func() []byte { return Rev{Main: 1 + random.Int64N(200)}.Bytes() }
	for range 40 {
		fatal(t, ref.Update(func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists([]byte("key"))
			fatal(t, err)
			for range 30 {
				fatal(t, b.Put(key(), make([]byte, 40)))
			}
			return nil
		}))
		fatal(t, ref.Update(func(tx *bbolt.Tx) error {
			for from, c := key(), tx.Bucket([]byte("key")).Cursor(); len(from) > 0; from = nil {
				for k, _ := c.Seek(from); k != nil && random.IntN(40) > 0; k, _ = c.Seek(from) {
					fatal(t, c.Delete())
				}
			}
			return nil
		}))
		r, err := open(t, path).Check(t.Context())
		fatal(t, err)
		if len(r.Damage) > 0 {
			t.Fatalf("bbolt wrote %v", r.Damage)
		}
	}
	fatal(t, ref.Update(func(tx *bbolt.Tx) error {
		for i := range 200 {
			fatal(t, tx.Bucket([]byte("key")).Put(Rev{Main: int64(i + 1)}.Bytes(), make([]byte, 40)))
		}
		return nil
	}))
	fatal(t, ref.Close())
	emptied(t, path)
}

// emptied takes the rows of the second leaf of bucket key away.
func emptied(t *testing.T, path string) {
	b, err := os.ReadFile(path)
	fatal(t, err)
	db := open(t, path)
	key, ok := db.find("key")
	if !ok {
		t.Fatal("no bucket key")
	}
	root, err := db.Page(key.Root)
	for {
		fatal(t, err)
		child, err := db.Page(root.Elements[0].Child)
		if fatal(t, err); child.Type == "leaf" {
			break
		}
		root = child
	}
	if len(root.Elements) < 3 {
		t.Fatalf("too few leaves: %d", len(root.Elements))
	}
	at := root.Elements[1].Child * 1024
	le.PutUint16(b[at+10:], 0)
	hostile, err := NewReader(bytes.NewReader(b), int64(len(b)))
	fatal(t, err)
	r, err := hostile.Check(t.Context())
	fatal(t, err)
	if len(r.Damage) != 1 || r.Damage[0].Kind != DamageEmpty || r.Complete {
		t.Fatalf("%v", r.Damage)
	}
	from, to := r.Damage[0].Revisions()
	if !bytes.Equal(from.Bytes(), root.Elements[1].Key) || !bytes.Equal(to.Bytes(), root.Elements[2].Key) {
		t.Errorf("%v to %v may be lost", from, to)
	}
}

// TestShortenedLastRow: the last row of a page loses its value when its size becomes zero. No other row shows that, but
// the bytes of the value are still there.
func TestShortenedLastRow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	ref, err := bbolt.Open(path, 0o600, &bbolt.Options{NoSync: true})
	fatal(t, err)
	fatal(t, ref.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists([]byte("key"))
		fatal(t, err)
		for i := range 200 {
			fatal(t, b.Put(Rev{Main: int64(i + 1)}.Bytes(), bytes.Repeat([]byte{1}, 40)))
		}
		return nil
	}))
	fatal(t, ref.Close())
	b, err := os.ReadFile(path)
	fatal(t, err)
	key, _ := open(t, path).find("key")
	root, err := open(t, path).Page(key.Root)
	fatal(t, err)
	id := root.Elements[0].Child
	leaf, err := open(t, path).Page(id)
	fatal(t, err)
	size := int(id)*os.Getpagesize() + headerSize + (len(leaf.Elements)-1)*elemSize + 12
	for _, n := range []uint32{0, 39} {
		le.PutUint32(b[size:], n)
		hostile, err := NewReader(bytes.NewReader(b), int64(len(b)))
		fatal(t, err)
		r, err := hostile.Check(t.Context())
		fatal(t, err)
		if len(r.Damage) != 1 || r.Damage[0].Kind != DamagePage || r.Damage[0].Page != id {
			t.Errorf("value size %d: %v", n, r.Damage)
		}
	}
}
