package evidencetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func decode(b []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	return d.Decode(to)
}

// Copy makes a private, writable copy of a file or tree in a directory of the test and returns its path, which has the
// same last element as src. It keeps modes (with write permission for the owner) and modification times. Zeros become
// sparse extents.
func Copy(t testing.TB, src string) string {
	t.Helper()
	dst := filepath.Join(t.TempDir(), filepath.Base(src))
	if err := copyTree(src, dst); err != nil {
		t.Fatalf("copy %s: %v", src, err)
	}
	return dst
}

// keptZeros is how many of the zeros at the end of a WAL segment remain.
const keptZeros = 64 << 10

// CutLogs shortens the WAL segments of a tree, and what etcd has allocated for the next one: 64 MB of zeros, which
// every command reads and digests. No test of what is found and said needs them.
func CutLogs(dir string) error {
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if ext := filepath.Ext(name); err != nil || d.IsDir() || ext != ".wal" && ext != ".tmp" {
			return err
		}
		return cutZeros(name)
	})
}

// cutZeros shortens a file to its last block that is not all zeros and keptZeros after that, and keeps its times.
func cutZeros(name string) error {
	st, err := os.Stat(name)
	if err != nil {
		return err
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	var end int64
	size, err := eachBlock(f, func(off int64, b []byte) error {
		end = off + int64(len(b))
		return nil
	})
	if err = errors.Join(err, f.Close()); err != nil || size <= end+keptZeros {
		return err
	}
	return errors.Join(os.Truncate(name, end+keptZeros), os.Chtimes(name, st.ModTime(), st.ModTime()))
}

func copyTree(src, dst string) error {
	var dirs []string
	err := filepath.WalkDir(src, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(src, name)
		if err != nil {
			return err
		}
		to := filepath.Join(dst, rel)
		switch {
		case d.IsDir():
			dirs = append(dirs, rel)
			return os.Mkdir(to, 0o700)
		case d.Type().IsRegular():
			return copyFile(name, to)
		}
		return fmt.Errorf("%s is neither a file nor a directory", name)
	})
	for i := len(dirs) - 1; err == nil && i >= 0; i-- { // last, since filling a directory changes its time
		err = copyAttributes(filepath.Join(src, dirs[i]), filepath.Join(dst, dirs[i]), 0o700)
	}
	return err
}

func copyFile(src, dst string) (err error) {
	in, err := os.Open(src)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // read only
	out, err := os.OpenFile(dst, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	size, err := eachBlock(in, func(off int64, b []byte) error {
		_, err := out.WriteAt(b, off)
		return err
	})
	if err == nil {
		err = out.Truncate(size)
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	return copyAttributes(src, dst, 0o600)
}

func copyAttributes(src, dst string, always fs.FileMode) error {
	st, err := os.Stat(src)
	if err != nil {
		return err
	}
	if err := os.Chmod(dst, st.Mode().Perm()|always); err != nil {
		return err
	}
	return os.Chtimes(dst, st.ModTime(), st.ModTime())
}

// blockSize is the unit in which zeros are detected.
const blockSize = 4096

// blocks are buffers of eachBlock: tests read very many small files.
var blocks = sync.Pool{New: func() any { b := make([]byte, 256*blockSize); return &b }}

// eachBlock calls fn for each aligned 4 KiB block of f that is not all zeros, in order, and returns the file's size. It
// skips sparse extents without reading them if the file system reports them.
func eachBlock(f *os.File, fn func(off int64, b []byte) error) (int64, error) {
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	size := st.Size()
	kept := blocks.Get().(*[]byte)
	defer blocks.Put(kept)
	buf := *kept
	zero := make([]byte, blockSize)
	for off := int64(0); off < size; {
		if off = nextData(f, off, size) / blockSize * blockSize; off >= size {
			break
		}
		n, err := f.ReadAt(buf, off)
		if err != nil && !errors.Is(err, io.EOF) {
			return size, err
		}
		if n == 0 {
			return size, io.ErrUnexpectedEOF
		}
		for i := 0; i < n; i += blockSize {
			b := buf[i:min(i+blockSize, n)]
			if bytes.Equal(b, zero[:len(b)]) {
				continue
			}
			if err := fn(off+int64(i), b); err != nil {
				return size, err
			}
		}
		off += int64(n)
	}
	return size, nil
}

// CopyTo copies a file or folder to dst, which must not exist. Sparse extents are kept.
func CopyTo(src, dst string) error { return copyTree(src, dst) }
