package soak

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/raft/v3/raftpb"
)

// errNotHere is returned by a fault that finds nothing in the data dir that it could alter.
var errNotHere = errors.New("nothing to alter")

// dbFile is the database in a data dir; a backup is one itself.
func dbFile(dir string) string {
	if strings.HasSuffix(dir, ".db") {
		return dir
	}
	return filepath.Join(dir, "member", "snap", "db")
}

// editDB changes the database of a copy.
func editDB(dir string, fn func(tx *bolt.Tx) error) error {
	db, err := bolt.Open(dbFile(dir), 0o600, &bolt.Options{NoFreelistSync: true, NoSync: true,
		Timeout: 5 * time.Second})
	if err != nil {
		return err
	}
	return errors.Join(db.Update(fn), db.Close())
}

// viewDB reads the database of a copy.
func viewDB(dir string, fn func(tx *bolt.Tx) error) error {
	db, err := bolt.Open(dbFile(dir), 0o600, &bolt.Options{ReadOnly: true, PreLoadFreelist: true,
		Timeout: 5 * time.Second})
	if err != nil {
		return err
	}
	return errors.Join(db.View(fn), db.Close())
}

// row is one row of a bucket.
type row struct{ bucket, key, value string }

func rows(dir, bucket string) ([]row, error) {
	var out []row
	err := viewDB(dir, func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte(bucket))
		if b == nil {
			return nil
		}
		return b.ForEach(func(k, v []byte) error {
			out = append(out, row{bucket, string(k), string(v)})
			return nil
		})
	})
	return out, err
}

// holds reports whether the database in dir has the row.
func (r row) holds(dir string) bool {
	found := false
	err := viewDB(dir, func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte(r.bucket))
		found = b != nil && bytes.Equal(b.Get([]byte(r.key)), []byte(r.value)) &&
			(r.value != "" || b.Get([]byte(r.key)) != nil)
		return nil
	})
	return err == nil && found
}

// rowValue is the value of the row in that database, "" without one.
func rowValue(dir string, r row) string {
	all, err := rows(dir, r.bucket)
	if err != nil {
		return ""
	}
	for _, o := range all {
		if o.key == r.key {
			return o.value
		}
	}
	return ""
}

// put and drop are edits of one row.
func (r row) put(value string) func(tx *bolt.Tx) error {
	return func(tx *bolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists([]byte(r.bucket))
		if err != nil {
			return err
		}
		return b.Put([]byte(r.key), []byte(value))
	}
}

func (r row) drop() func(tx *bolt.Tx) error {
	return func(tx *bolt.Tx) error { return tx.Bucket([]byte(r.bucket)).Delete([]byte(r.key)) }
}

// record is a row of bucket key.
type record struct {
	row
	main, sub int64
	tombstone bool
	kv        mvccpb.KeyValue
	// live is true for the newest record of a key that is not a tombstone.
	live bool
}

// keyspace is what a database holds of the key space.
type keyspace struct {
	records []record
	// compact is the highest revision up to which superseded records may be gone, also by a compaction that has not
	// come to its end.
	compact int64
	last    int64
}

func readKeyspace(dir string) (*keyspace, error) {
	all, err := rows(dir, "key")
	if err != nil {
		return nil, err
	}
	ks := &keyspace{compact: max(number(dir, "finishedCompactRev"), number(dir, "scheduledCompactRev"))}
	newest := map[string]int{}
	for _, r := range all {
		if len(r.key) < 17 {
			continue
		}
		rec := record{row: r, main: int64(binary.BigEndian.Uint64([]byte(r.key))),
			sub: int64(binary.BigEndian.Uint64([]byte(r.key[9:]))), tombstone: len(r.key) == 18}
		if err := rec.kv.Unmarshal([]byte(r.value)); err != nil {
			return nil, err
		}
		ks.last = max(ks.last, rec.main)
		newest[string(rec.kv.Key)] = len(ks.records)
		ks.records = append(ks.records, rec)
	}
	for _, i := range newest {
		ks.records[i].live = !ks.records[i].tombstone
	}
	return ks, nil
}

// sel returns the records that fit.
func (k *keyspace) sel(fits func(*record) bool) []record {
	var out []record
	for i := range k.records {
		if fits(&k.records[i]) {
			out = append(out, k.records[i])
		}
	}
	return out
}

// wrote reports whether the entry is a plain put with a record above the compact revision. Values are unique enough.
func (k *keyspace) wrote(e *raftpb.Entry) bool {
	r := request(e)
	if r == nil || r.Put == nil || len(r.Put.Value) < 7 || r.Put.IgnoreLease || r.Put.IgnoreValue {
		return false
	}
	return len(k.sel(func(o *record) bool {
		return o.main > k.compact && bytes.Equal(o.kv.Key, r.Put.Key) && bytes.Equal(o.kv.Value, r.Put.Value)
	})) > 0
}

// number reads an 8 byte row of bucket meta, 0 when there is none.
func number(dir, key string) int64 {
	all, err := rows(dir, "meta")
	if err != nil {
		return 0
	}
	i := slices.IndexFunc(all, func(r row) bool { return r.key == key })
	if i < 0 || len(all[i].value) < 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64([]byte(all[i].value)))
}

func be64(n int64) string { return string(binary.BigEndian.AppendUint64(nil, uint64(n))) }

// revision is a row key of bucket key.
func revision(main, sub int64, tombstone bool) string {
	s := be64(main) + "_" + be64(sub)
	if tombstone {
		s += "t"
	}
	return s
}

func marshal(kv mvccpb.KeyValue) string {
	b, err := kv.Marshal()
	if err != nil {
		return ""
	}
	return string(b)
}

// leafPages returns the offsets of the leaf pages that fit, and the page size.
func leafPages(dir string, fits func(page []byte) bool) (offsets []int64, size int64, err error) {
	b, err := os.ReadFile(dbFile(dir))
	if err != nil {
		return nil, 0, err
	}
	size = int64(os.Getpagesize())
	inUse := map[int64]bool{}
	err = viewDB(dir, func(tx *bolt.Tx) error {
		size = int64(tx.DB().Info().PageSize)
		for id := 2; ; id++ {
			p, err := tx.Page(id)
			if err != nil || p == nil {
				return nil
			}
			if p.Type == "leaf" {
				inUse[int64(id)] = true
			}
			id += p.OverflowCount
		}
	})
	for id := int64(2); (id+1)*size <= int64(len(b)); id++ {
		if inUse[id] && fits(b[id*size:(id+1)*size]) {
			offsets = append(offsets, id*size)
		}
	}
	return offsets, size, err
}

// isKeyLeaf reports whether a leaf page holds revisions.
func isKeyLeaf(page []byte) bool {
	if len(page) < 32 || binary.LittleEndian.Uint16(page[10:]) == 0 {
		return false
	}
	pos, ksize := uint64(binary.LittleEndian.Uint32(page[20:])), binary.LittleEndian.Uint32(page[24:])
	at := 16 + pos
	return (ksize == 17 || ksize == 18) && at+9 < uint64(len(page)) && page[at+8] == '_'
}

func writeAt(file string, offset int64, b []byte) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, offset)
	return errors.Join(err, f.Close())
}

// flip changes one bit.
func flip(file string, offset int64) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if offset < 0 || offset >= int64(len(b)) {
		return errNotHere
	}
	return writeAt(file, offset, []byte{b[offset] ^ 8})
}
