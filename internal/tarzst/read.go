package tarzst

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// Limits bound what Read accepts, since an archive may come from anyone.
type Limits struct {
	// Files is the maximum number of files, Bytes the maximum of their total size.
	Files int
	Bytes int64
}

// errManifest says that an archive does not end with a manifest.
var errManifest = errors.New("the archive does not end with a manifest")

// Read calls visit for every file but the manifest, in order, and reads what visit leaves unread. Then it compares the
// manifest with the files: a missing, additional or altered file is an error. visit sees contents that are not verified
// yet.
func Read(ctx context.Context, r io.Reader, l Limits,
	visit func(name string, size int64, r io.Reader) error) (*Manifest, error) {
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(256<<20))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	var seen []File
	var m *Manifest
	t, left := tar.NewReader(z), l.Bytes
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if left -= h.Size; h.Typeflag != tar.TypeReg || len(seen) >= l.Files || left < 0 || m != nil {
			return nil, fmt.Errorf("entry %q: not a file, more than %d files or %d bytes, or after the manifest",
				h.Name, l.Files, l.Bytes)
		}
		if h.Name == ManifestName {
			if m, err = readManifest(t, h.Size); err != nil {
				return nil, err
			}
			continue
		}
		sum := sha256.New()
		in := io.TeeReader(t, sum)
		if err := visit(h.Name, h.Size, in); err != nil {
			return nil, err
		}
		if _, err := io.Copy(io.Discard, in); err != nil {
			return nil, fmt.Errorf("%s: %w", h.Name, err)
		}
		seen = append(seen, File{Name: h.Name, Size: h.Size, SHA256: hex.EncodeToString(sum.Sum(nil))})
	}
	if m == nil {
		return nil, errManifest
	}
	return m, compare(m.Files, seen)
}

// maxManifest bounds a manifest.
const maxManifest = 64 << 20

func readManifest(r io.Reader, size int64) (*Manifest, error) {
	if size > maxManifest {
		return nil, fmt.Errorf("the manifest has %s", plural.Size(size))
	}
	m := &Manifest{}
	if err := json.NewDecoder(r).Decode(m); err != nil {
		return nil, fmt.Errorf("%w: %w", errManifest, err)
	}
	if m.Format != manifestFormat {
		return nil, fmt.Errorf("the manifest has format %d, but this program reads only format %d", m.Format,
			manifestFormat)
	}
	return m, nil
}

// compare returns an error that names the first file that differs from the manifest.
func compare(want, got []File) error {
	for i, f := range got {
		if i >= len(want) || want[i] != f {
			return fmt.Errorf("%s differs from the manifest: the archive was altered", f.Name)
		}
	}
	if len(want) > len(got) {
		return fmt.Errorf("%s is in the manifest but not in the archive", want[len(got)].Name)
	}
	return nil
}

// Find returns the file with a name.
func (m *Manifest) Find(name string) (File, bool) {
	i := slices.IndexFunc(m.Files, func(f File) bool { return f.Name == name })
	if i < 0 {
		return File{}, false
	}
	return m.Files[i], true
}
