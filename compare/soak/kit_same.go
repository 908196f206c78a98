package soak

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
)

// same reports whether two files or trees have the same names and bytes. For sound databases it compares the rows of
// all buckets, since bbolt may write different pages for the same rows. bbolt faults on damaged ones.
func same(a, b string, sound bool) bool {
	la, errA := list(a)
	lb, errB := list(b)
	if errA != nil || errB != nil || len(la) != len(lb) {
		return false
	}
	for name := range la {
		if !lb[name] || !sameFile(filepath.Join(a, name), filepath.Join(b, name), sound) {
			return false
		}
	}
	return true
}

func list(root string) (map[string]bool, error) {
	out := map[string]bool{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(root, name)
		out[rel] = true
		return err
	})
	return out, err
}

func sameFile(a, b string, sound bool) bool {
	read := os.ReadFile
	if filepath.Ext(a) == ".wal" {
		sa, errA := os.Stat(a)
		sb, errB := os.Stat(b)
		if errA != nil || errB != nil || sa.Size() != sb.Size() {
			return false
		}
		read = func(file string) ([]byte, error) { out, _, err := readUsed(file); return out, err }
	}
	x, errX := read(a)
	y, errY := read(b)
	if errX != nil || errY != nil {
		return false
	}
	if bytes.Equal(x, y) {
		return true
	}
	if filepath.Base(a) != "db" || !sound {
		return false
	}
	dx, okX := dump(a)
	dy, okY := dump(b)
	return okX && okY && dx == dy
}

// dump returns the rows of all buckets.
func dump(file string) (string, bool) {
	dir := filepath.Dir(filepath.Dir(filepath.Dir(file)))
	if dbFile(dir) != file {
		return "", false
	}
	var out bytes.Buffer
	err := viewDB(dir, func(tx *bolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bolt.Bucket) error {
			out.Write(name)
			return b.ForEach(func(k, v []byte) error {
				out.Write(append(append([]byte{'|'}, k...), '='))
				out.Write(v)
				return nil
			})
		})
	})
	return out.String(), err == nil
}
