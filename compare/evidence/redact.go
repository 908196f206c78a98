package evidence

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/redact"
	"github.com/etcd-medic/etcd-medic/internal/regular"
)

// What of each source goes into the key of digests: the head of its largest files and blocks spread over the rest of
// them, or all of what is small. A log is filled from its beginning, a database everywhere.
const (
	keyFiles    = 8
	keyHead     = 64 << 10
	keyBlock    = 4 << 10
	keyBlocks   = 32
	keyWholeMax = keyHead + keyBlocks*keyBlock
)

// redactKey derives the key of digests from all sources, whatever their order. It is nil where not a byte can be read.
func redactKey(ctx context.Context, sources ...*Manifest) (*redact.Key, error) {
	var samples [][]byte
	for _, man := range sources {
		s, err := sampleOf(ctx, man)
		if err != nil {
			return nil, err
		}
		if s != nil {
			samples = append(samples, s)
		}
	}
	if len(samples) == 0 {
		return nil, nil //nolint:nilnil // a nil key is one that no source gives
	}
	slices.SortFunc(samples, bytes.Compare)
	return redact.New(bytes.Join(samples, nil)), nil
}

// sampleOf is a hash of what the key takes of one source, nil where nothing can be read. It is unlike any digest that
// is printed: the sum begins with a text of its own.
func sampleOf(ctx context.Context, man *Manifest) ([]byte, error) {
	var files []*File // their digests may be written meanwhile: no file is copied whole
	for i := range man.Files {
		if f := &man.Files[i]; f.What == "" && f.Size > 0 {
			files = append(files, f)
		}
	}
	slices.SortFunc(files, func(a, b *File) int {
		return cmp.Or(cmp.Compare(b.Size, a.Size),
			cmp.Compare(a.Path, b.Path))
	})
	h := sha256.New()
	read := int64(0)
	for _, f := range files[:min(len(files), keyFiles)] {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		fmt.Fprintf(h, "etcd-medic: key of values, %d bytes\n", f.Size)
		read += sampleFile(h, f.at)
	}
	if read == 0 {
		return nil, nil
	}
	return h.Sum(nil), nil
}

// sampleFile writes the sample of one file to w and returns its size. What cannot be read is left out.
func sampleFile(w io.Writer, path string) int64 {
	f, size, err := regular.Open(filepath.Clean(path))
	if err != nil {
		return 0
	}
	defer func() { _ = f.Close() }()
	if size <= keyWholeMax {
		n, _ := io.Copy(w, io.NewSectionReader(f, 0, size))
		return n
	}
	n, _ := io.Copy(w, io.NewSectionReader(f, 0, keyHead))
	step := (size - keyHead) / keyBlocks
	for i := range int64(keyBlocks) {
		part, _ := io.Copy(w, io.NewSectionReader(f, keyHead+i*step, keyBlock))
		n += part
	}
	return n
}

// Digest shows a value: equal digests mean equal values inside one run, and whoever lacks the sources learns nothing
// from them.
func (m *Member) Digest(value []byte) string {
	if m == nil {
		return (*redact.Key)(nil).Digest(value)
	}
	return m.Redact.Digest(value)
}

// Describe is the request in words, with values as length and digest.
func (m *Member) Describe(r *dumplog.Request) string {
	return r.Describe(dumplog.DescribeOptions{Digest: m.Digest})
}
