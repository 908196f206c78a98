package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// snapFile is a .snap file of this v2 store.
func snapFile(store []byte, index uint64) []byte {
	meta := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), fields(7))
	meta = protowire.AppendVarint(protowire.AppendTag(meta, 2, protowire.VarintType), index)
	meta = protowire.AppendVarint(protowire.AppendTag(meta, 3, protowire.VarintType), 1)
	snap := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), store)
	snap = protowire.AppendBytes(protowire.AppendTag(snap, 2, protowire.BytesType), meta)
	return protowire.AppendBytes(protowire.AppendTag(fields(uint64(crc32.Checksum(snap, castagnoli))), 2,
		protowire.BytesType), snap)
}

// writeSnap writes .snap files of up to 200 MB whose v2 stores have small nodes.
func writeSnap(t *testing.T, dir string, size int64, node func(w *strings.Builder, i int)) {
	memberDirs(t, dir)
	for n := uint64(1); size > 0; n++ {
		var w strings.Builder
		w.WriteString(`{"Root":{"Children":{"0":{},"1":{"Children":{"0":{}`)
		for i := 1; int64(w.Len()) < min(size, 200<<20); i++ {
			node(&w, i)
		}
		w.WriteString(`}}}}}`)
		size -= int64(w.Len())
		name := fmt.Sprintf("%016x-%016x.snap", 1, n)
		if err := os.WriteFile(filepath.Join(dir, "member", "snap", name), snapFile([]byte(w.String()), n),
			0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// memberFiles are the files of a small member.
func memberFiles(i int) map[string][]byte {
	w := &logWriter{}
	w.add(crcType, nil)
	w.add(1, fields(uint64(i)+1, 9))
	w.add(5, fields(0, 0))
	w.entry(0, 1, nil)
	return map[string][]byte{fmt.Sprintf("n%d/member/wal/0000000000000000-0000000000000000.wal", i): w.b}
}

// archiveOf writes an archive of many small files; size is that of what it holds with the heads of its files.
func archiveOf(most int, files func(i int) map[string][]byte) func(*testing.T, string, int64) {
	return func(t *testing.T, dir string, size int64) {
		f, err := os.Create(filepath.Join(dir, "a.tar.gz"))
		if err != nil {
			t.Fatal(err)
		}
		z := gzip.NewWriter(f)
		w := tar.NewWriter(z)
		for i, n := 0, 0; size > 0 && n < most; i++ {
			for name, b := range files(i) {
				if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(b))}); err != nil {
					t.Fatal(err)
				}
				if _, err := io.Copy(w, bytes.NewReader(b)); err != nil {
					t.Fatal(err)
				}
				size -= 512 + (int64(len(b))+511)/512*512
				n++
			}
		}
		for _, c := range []io.Closer{w, z, f} {
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
