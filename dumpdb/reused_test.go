package dumpdb

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/bbolt"
)

// TestReusedPage: a leaf of bucket key that holds the list of buckets, or rows of bucket lease, was used again after
// its parent was written. The rows that the parent means are lost, and what is there is not read as records.
func TestReusedPage(t *testing.T) {
	const size, rows = 1024, 200
	path := filepath.Join(t.TempDir(), "db")
	ref, err := bbolt.Open(path, 0o600, &bbolt.Options{NoSync: true, PageSize: size})
	fatal(t, err)
	fatal(t, ref.Update(func(tx *bbolt.Tx) error {
		for _, name := range []string{"key", "lease", "meta"} {
			b, err := tx.CreateBucket([]byte(name))
			fatal(t, err)
			for i := range int64(rows) {
				key := Rev{Main: i + 1}.Bytes()
				if name != "key" {
					key = key[:8]
				}
				fatal(t, b.Put(key, make([]byte, 40)))
			}
		}
		return nil
	}))
	fatal(t, ref.Close())
	file, err := os.ReadFile(path)
	fatal(t, err)
	db := open(t, path)
	leaf := func(root uint64) uint64 {
		for {
			p, err := db.Page(root)
			if fatal(t, err); p.Type == "leaf" {
				return root
			}
			root = p.Elements[len(p.Elements)-1].Child
		}
	}
	key, _ := db.find("key")
	lease, _ := db.find("lease")
	at := leaf(key.Root)
	for _, from := range []uint64{db.Meta().Root, leaf(lease.Root)} {
		b := bytes.Clone(file)
		copy(b[at*size:(at+1)*size], file[from*size:(from+1)*size])
		le.PutUint64(b[at*size:], at)
		torn, err := NewReader(bytes.NewReader(b), int64(len(b)))
		fatal(t, err)
		r, err := torn.Check(t.Context())
		fatal(t, err)
		if d := r.Damage; len(d) != 1 || d[0].Kind != DamageReused || d[0].Page != at || d[0].Bucket != "key" {
			t.Errorf("page %d there: %v", from, r.Damage)
		}
		stats, err := torn.KVStats(t.Context())
		if err == nil || slices.ContainsFunc(stats.Violations, func(v Violation) bool { return v.Page == at }) {
			t.Errorf("page %d there is read as records, %v", from, err)
		}
	}
}
