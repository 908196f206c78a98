package extract

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/etcd-medic/etcd-medic/dumpdb/kube"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// folder writes one manifest per Kubernetes object: NAMESPACE/KIND/NAME.yaml, objects without a namespace below
// _cluster. A value that does not decode is written unchanged below _stored, named after its key.
type folder struct {
	x      *reader
	dir    string
	owners int
	leased int
}

func newFolder(x *reader) (*folder, error) {
	if x.o.Stream != nil {
		return nil, errors.New("manifests are files in a folder")
	}
	return &folder{x: x, dir: x.out.Path}, nil
}

func (f *folder) put(rec *Record) error {
	m, ok := kube.NewManifest(rec.Value)
	switch {
	case !ok:
		f.x.res.leave("not an object of Kubernetes", rec.Key)
		return nil
	case m.Err != nil:
		f.x.res.leave(m.Reason()+"; the stored bytes are below _stored", rec.Key)
		return f.write([]string{"_stored", fileName(string(rec.Key))}, "", rec.Value)
	}
	f.owners += min(m.Owners, 1)
	if rec.Lease != 0 {
		f.leased++
	}
	namespace := "_cluster"
	if m.Namespace != "" {
		namespace = fileName(m.Namespace)
	}
	kind := strings.ToLower(m.Kind)
	if group, _, ok := strings.Cut(m.APIVersion, "/"); ok {
		kind += "." + group
	}
	return f.write([]string{namespace, fileName(kind), fileName(m.Name)}, ".yaml", m.YAML)
}

// write creates a new file below the folder, with a number if the name is in use.
func (f *folder) write(path []string, ext string, content []byte) error {
	dir := filepath.Join(append([]string{f.dir}, path[:len(path)-1]...)...)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for n := 1; ; n++ {
		name := path[len(path)-1] + ext
		if n > 1 {
			name = fmt.Sprintf("%s~%d%s", path[len(path)-1], n, ext)
		}
		out, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if errors.Is(err, os.ErrExist) && n < 1000 {
			continue
		}
		if err != nil {
			return err
		}
		_, err = out.Write(content)
		f.x.res.Files++
		return errors.Join(err, out.Close())
	}
}

func (f *folder) close(err error) error {
	if f.owners > 0 {
		f.x.res.note("%s named owners by UID; these references were taken out, as the garbage collector "+
			"deletes objects whose owner it does not find", plural.Of(f.owners, "object", "objects"))
	}
	if f.leased > 0 {
		f.x.res.note("%s stored with a lease (as events are, which expire); a manifest knows no leases",
			plural.Of(f.leased, "object was", "objects were"))
	}
	if errors.Is(err, errNothing) && f.x.res.Files > 0 {
		err = nil // stored bytes alone are a result
	}
	if err != nil {
		return err
	}
	return f.x.out.Commit()
}

// fileName returns a safe file name for any bytes: special characters become %XX, and a long name is cut.
func fileName(s string) string {
	var b strings.Builder
	for i := 0; i < len(s) && b.Len() < 200; i++ {
		c := s[i]
		plain := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' ||
			c == '.' && i > 0
		if plain {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	if b.Len() == 0 {
		return "_"
	}
	return b.String()
}
