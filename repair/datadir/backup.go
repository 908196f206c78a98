package datadir

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
)

// WriteBackup writes the database at dbPath with its sha256 appended to the new file dst, as snapshot save does.
// etcdutl snapshot restore accepts it. It omits a trailer that dbPath already has, right or wrong. The caller must know
// that the content is intact. It returns the sum of the database.
func WriteBackup(ctx context.Context, dst, dbPath string) (sum []byte, err error) {
	err = newFile(dst, func(partial string) error {
		sum, err = writeBackup(ctx, partial, dbPath)
		return err
	})
	return sum, err
}

func writeBackup(ctx context.Context, path, src string) (sum []byte, err error) {
	in, size, err := openDB(src)
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }() // only read
	if size%512 != 0 || size == 0 {
		return nil, fmt.Errorf("%s has %d bytes, no multiple of 512: it is cut short, and no reader would find the "+
			"trailer", src, size)
	}
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	h := sha256.New()
	buf := make([]byte, 1<<20)
	for left := size; left > 0; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n, err := io.ReadFull(in, buf[:min(left, int64(len(buf)))])
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", src, err)
		}
		if _, err := out.Write(buf[:n]); err != nil {
			return nil, err
		}
		_, _ = h.Write(buf[:n]) // a hash never fails to write
		left -= int64(n)
	}
	sum = h.Sum(nil)
	if _, err := out.Write(sum); err != nil {
		return nil, err
	}
	return sum, out.Sync()
}

// DropTrailer removes the sha256 that WriteBackup has just appended: nothing proves the content, and a sum would.
func DropTrailer(path string) error {
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	return os.Truncate(path, st.Size()-sha256.Size)
}
