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

// The key is derived from a sample of each source: the head of its largest files and blocks spread over the rest, or
// all of a small file. A log is filled from its start, a database everywhere.
const (
	keyFiles    = 8
	keyHead     = 64 << 10
	keyBlock    = 4 << 10
	keyBlocks   = 32
	keyWholeMax = keyHead + keyBlocks*keyBlock
)

// redactKey derives the key for digests from all sources, in any order. It is nil if no byte can be read.
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
		return nil, nil //nolint:nilnil // a nil key belongs to no source
	}
	slices.SortFunc(samples, bytes.Compare)
	return redact.New(bytes.Join(samples, nil)), nil
}

// sampleOf returns a hash of one source's sample, nil if nothing can be read. It starts with a fixed text, so it
// differs from any printed digest.
func sampleOf(ctx context.Context, man *Manifest) ([]byte, error) {
	var files []*File // their digests may be written meanwhile, so no File is copied
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

// sampleFile writes the sample of one file to w and returns its size. It skips what cannot be read.
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

// Digest returns the digest of a value. Within one run, equal digests mean equal values. A digest reveals nothing
// without the sources.
func (m *Member) Digest(value []byte) string {
	if m == nil {
		return (*redact.Key)(nil).Digest(value)
	}
	return m.Redact.Digest(value)
}

// Describe describes the request, with values as length and digest.
func (m *Member) Describe(r *dumplog.Request) string {
	return r.Describe(dumplog.DescribeOptions{Digest: m.Digest})
}
