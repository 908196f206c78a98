package casetest

import (
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"

	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// EditDB changes the database of a data dir, twice: the second transaction leaves nothing to be read of what was there
// before.
func EditDB(t *testing.T, dir string, change func(*bbolt.Tx) error) {
	t.Helper()
	EditDBOnce(t, dir, change)
	EditDBOnce(t, dir, func(tx *bbolt.Tx) error { return tx.Bucket([]byte("meta")).Put([]byte("another"), nil) })
	EditDBOnce(t, dir, func(tx *bbolt.Tx) error { return tx.Bucket([]byte("meta")).Delete([]byte("another")) })
}

// EditDBOnce changes the database of a data dir in one transaction.
func EditDBOnce(t *testing.T, dir string, change func(*bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(filepath.Join(dir, "member", "snap", "db"), 0o600, &bbolt.Options{NoFreelistSync: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(change); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// AlterRecords changes the first byte of the values of the records at revisions.
func AlterRecords(revs ...int64) func(*bbolt.Tx) error {
	return func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte("key"))
		for _, rev := range revs {
			var kv mvccpb.KeyValue
			key := dumpdb.Rev{Main: rev}.Bytes()
			if err := kv.Unmarshal(b.Get(key)); err != nil {
				return err
			}
			kv.Value[0] ^= 1
			v, err := kv.Marshal()
			if err != nil {
				return err
			}
			if err := b.Put(key, v); err != nil {
				return err
			}
		}
		return nil
	}
}

// StoreFreelist opens the database as a server on Windows or macOS does.
func StoreFreelist(t *testing.T, dir string) {
	t.Helper()
	db, err := bbolt.Open(filepath.Join(dir, "member", "snap", "db"), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists([]byte("alarm"))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// LeftOut is the type of a record that RewriteLog leaves out.
const LeftOut = -1

// RewriteLog rewrites the records of the first segment with a CRC chain that holds. edit changes a record in place.
func RewriteLog(t testing.TB, dir string, edit func(rec *walpb.Record)) {
	t.Helper()
	RewriteLogMore(t, dir, func(rec *walpb.Record) []walpb.Record {
		edit(rec)
		return nil
	})
}

// RewriteLogMore is RewriteLog for an edit that also returns records to write before the one it was given.
func RewriteLogMore(t testing.TB, dir string, edit func(rec *walpb.Record) (before []walpb.Record)) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
	if err != nil || len(names) == 0 {
		t.Fatal(dir, err)
	}
	name := names[0]
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var out []byte
	var chain uint32
	at := 0
	for at+8 <= len(b) {
		word := binary.LittleEndian.Uint64(b[at:])
		if word == 0 {
			break
		}
		n := int(word & (1<<56 - 1))
		var rec walpb.Record
		if err := rec.Unmarshal(b[at+8 : at+8+n]); err != nil {
			t.Fatal(err)
		}
		at += 8 + (n+7)&^7
		before := edit(&rec)
		for _, rec := range append(before, rec) {
			if rec.Type == LeftOut {
				continue
			}
			if rec.Type != 4 {
				chain = crc32.Update(chain, crc32.MakeTable(crc32.Castagnoli), rec.Data)
			}
			rec.Crc = chain
			out = append(out, frame(t, &rec)...)
		}
	}
	if err := os.WriteFile(name, append(out, make([]byte, max(0, len(b)-len(out)))...), 0o600); err != nil {
		t.Fatal(err)
	}
}

func frame(t testing.TB, rec *walpb.Record) []byte {
	t.Helper()
	data, err := rec.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	word := uint64(len(data))
	if pad := -len(data) & 7; pad > 0 {
		word |= uint64(0x80|pad) << 56
		data = append(data, make([]byte, pad)...)
	}
	return append(binary.LittleEndian.AppendUint64(nil, word), data...)
}
