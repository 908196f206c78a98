package collect

import (
	"io"
	"time"

	"github.com/etcd-medic/etcd-medic/internal/tarzst"
)

// packed is the .tar.zst while it is written, with a list of its files for the manifest.
type packed struct {
	*tarzst.Writer
	files []File
}

// newPacked starts an archive that uses little memory, since it shares the host with a server. It has its own manifest.
func newPacked(w io.Writer) (*packed, error) {
	t, err := tarzst.NewWriter(w, tarzst.Options{Fast: true, Small: true, Bare: true})
	if err != nil {
		return nil, err
	}
	return &packed{Writer: t}, nil
}

// add writes one file of exactly size bytes.
func (a *packed) add(name string, size int64, modTime time.Time, r io.Reader) error {
	if err := a.Add(tarzst.Entry{Name: name, Size: size, Time: modTime}, r); err != nil {
		return err
	}
	all := a.Manifest().Files
	f := all[len(all)-1]
	a.files = append(a.files, File{Name: name, Size: size, ModTime: modTime, SHA256: f.SHA256})
	return nil
}
