// Package lines contains the built-in servers of other etcd versions: compressed programs, one per minor version. `make
// build` puts them next to this file and builds with the tag "lines". A plain build contains none.
package lines

import (
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Full are the minor versions of the servers that `make build` adds: one per folder node/lineXY.
var Full = []string{"3.5", "3.7"}

// Versions returns the versions of the built-in servers, such as "3.5.35".
func Versions() []string {
	names, err := fs.Glob(files, "etcd-*.zst")
	if err != nil {
		return nil
	}
	var out []string
	for _, n := range names {
		out = append(out, strings.TrimSuffix(strings.TrimPrefix(path.Base(n), "etcd-"), ".zst"))
	}
	return out
}

// Unpack writes the program of one of Versions to w.
func Unpack(version string, w io.Writer) error {
	f, err := files.Open("etcd-" + version + ".zst")
	if err != nil {
		return fmt.Errorf("etcd %s is not built in: %w", version, err)
	}
	defer func() { _ = f.Close() }()
	d, err := zstd.NewReader(f)
	if err != nil {
		return err
	}
	defer d.Close()
	_, err = d.WriteTo(w)
	return err
}
