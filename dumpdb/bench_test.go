package dumpdb

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"go.etcd.io/bbolt"
)

// The benchmark db has the size of a busy cluster: a million records of 200,000 keys in 1.4 GB, the first record of
// each key at or below the compact revision.
const (
	benchKeys    = 200_000
	benchRecords = 1_000_000
	benchValue   = 1090
)

var benchMade atomic.Bool

var benchDB = sync.OnceValues(func() (string, error) {
	benchMade.Store(true)
	dir, err := os.MkdirTemp("", "dumpdb-bench-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "db")
	return path, writeBenchDB(path, benchKeys, benchRecords, benchValue)
})

// writeBenchDB fills a file as a server does: records in revision order, 10,000 to a transaction, pages 90 % full.
func writeBenchDB(path string, keys, records, value int) error {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoSync: true, NoFreelistSync: true,
		FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return err
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	val := make([]byte, value)
	versions := make([]int64, keys)
	for done := 0; done < records; {
		err = db.Update(func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists([]byte("key"))
			if err != nil {
				return err
			}
			b.FillPercent = 0.9
			for n := 0; n < 10000 && done < records; n++ {
				k := done
				if done >= keys {
					k = rnd.IntN(keys)
				}
				versions[k]++
				binary.LittleEndian.PutUint64(val[rnd.IntN(value-8):], rnd.Uint64())
				main := int64(done) + 2
				kv := encodeKV(KeyValue{Key: fmt.Appendf(nil, "/registry/pods/namespace-%d/pod-%d", k%100, k),
					CreateRevision: int64(k) + 2,
					ModRevision:    main, Version: versions[k], Value: val})
				if err := b.Put(Rev{Main: main}.Bytes(), kv); err != nil {
					return err
				}
				done++
			}
			meta, err := tx.CreateBucketIfNotExists([]byte("meta"))
			if err != nil {
				return err
			}
			return meta.Put([]byte("finishedCompactRev"), Rev{Main: int64(keys) + 1}.Bytes())
		})
		if err != nil {
			return err
		}
	}
	return db.Close()
}

// encodeKV writes mvccpb.KeyValue.
func encodeKV(kv KeyValue) []byte {
	var b []byte
	bytesField := func(num byte, v []byte) {
		if len(v) > 0 {
			b = append(binary.AppendUvarint(append(b, num<<3|2), uint64(len(v))), v...)
		}
	}
	varint := func(num byte, v int64) {
		if v != 0 {
			b = binary.AppendUvarint(append(b, num<<3), uint64(v))
		}
	}
	bytesField(1, kv.Key)
	varint(2, kv.CreateRevision)
	varint(3, kv.ModRevision)
	varint(4, kv.Version)
	bytesField(5, kv.Value)
	varint(6, kv.Lease)
	return b
}

func openBench(b *testing.B) *DB {
	b.Helper()
	path, err := benchDB()
	if err != nil {
		b.Fatal(err)
	}
	db, err := Open(path)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	b.SetBytes(db.Size())
	b.ReportAllocs()
	return db
}

func BenchmarkHashKV(b *testing.B) {
	db := openBench(b)
	for b.Loop() {
		if _, err := db.HashKV(context.Background(), 0); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkInspect(b *testing.B) {
	db := openBench(b)
	for b.Loop() {
		in, err := db.Inspect(context.Background())
		if err != nil || in.KVErr != nil || in.HashErr != nil || len(in.Pages.Damage) > 0 {
			b.Fatal(in, err)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	db := openBench(b)
	for b.Loop() {
		if r, err := db.Check(context.Background()); err != nil || len(r.Damage) > 0 {
			b.Fatal(r, err)
		}
	}
}

func BenchmarkKVStats(b *testing.B) {
	db := openBench(b)
	for b.Loop() {
		if st, err := db.KVStats(context.Background()); err != nil || len(st.Violations) > 0 {
			b.Fatal(st, err)
		}
	}
}

func BenchmarkBucketHash(b *testing.B) {
	db := openBench(b)
	for b.Loop() {
		if _, err := db.BucketHash(context.Background(), "key"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRevisions(b *testing.B) {
	db := openBench(b)
	for b.Loop() {
		n := 0
		for _, err := range db.Revisions() {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != benchRecords {
			b.Fatal(n)
		}
	}
}
