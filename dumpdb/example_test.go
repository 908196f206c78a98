package dumpdb_test

import (
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"

	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// Reading the records of a db file: damage comes next to the rows, and reading continues.
func Example() {
	dir, err := os.MkdirTemp("", "dumpdb-example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "db")
	writeExample(path)

	db, err := dumpdb.Open(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	for r, err := range db.Revisions() {
		if err != nil {
			fmt.Println("damage:", err)
			continue
		}
		fmt.Printf("%s %s version %d\n", r.Rev, r.KV.Key, r.KV.Version)
	}
	// Output:
	// 2.0 /a version 1
	// 3.0 /a version 2
}

// writeExample writes what a server writes for two puts of one key.
func writeExample(path string) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	err = db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket([]byte("key"))
		if err != nil {
			return err
		}
		if err := b.Put(dumpdb.Rev{Main: 2}.Bytes(), []byte("\x0a\x02/a\x10\x02\x18\x02\x20\x01")); err != nil {
			return err
		}
		return b.Put(dumpdb.Rev{Main: 3}.Bytes(), []byte("\x0a\x02/a\x10\x02\x18\x03\x20\x02"))
	})
	if err != nil {
		fmt.Println(err)
	}
}
