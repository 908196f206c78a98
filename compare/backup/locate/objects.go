package locate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/backup/chain"
	"github.com/etcd-medic/etcd-medic/internal/objects"
	"github.com/etcd-medic/etcd-medic/internal/scratch"
)

// object is the object from which an item is read.
type object struct {
	store *objects.Store
	objects.Object
}

// objects finds the backups below an address of object storage. It reads only the head of each object; the rest is read
// when the backup is verified. It copies archives and the folders of chains at once, since several of their files
// belong together.
func (f *finder) objects() []*Item {
	where := objects.Shown(f.given.Where)
	store, err := objects.Open(f.ctx, f.given.Where)
	if err != nil {
		return []*Item{f.failed(where, err)}
	}
	f.found.stores = append(f.found.stores, store)
	var all []objects.Object
	more, err := store.List(f.ctx, maxFiles, func(o objects.Object) error {
		all = append(all, o)
		return nil
	})
	if err != nil {
		if errors.Is(err, objects.ErrNone) {
			err = &NoBackupError{where, err.Error()}
		}
		return []*Item{f.failed(where, err)}
	}
	if more {
		f.items = append(f.items, f.failed(where,
			fmt.Errorf("%s: more than %d objects; the others were skipped: name a longer prefix", where,
				maxFiles)))
	}
	named := len(all) == 1 && objects.Shown(all[0].URL) == where
	for _, o := range all {
		if f.ctx.Err() != nil {
			return nil
		}
		f.count++
		shown := objects.Shown(o.URL)
		if !named {
			shown = strings.TrimSuffix(where, "/") + "/" + o.Name
		}
		if !named && f.elsewhere(shown) {
			continue
		}
		f.object(&object{store, o}, shown, named)
	}
	return f.decideCandidates(where, fmt.Sprintf("%d objects, none of them a backup", len(all)))
}

// object checks one object.
func (f *finder) object(o *object, shown string, named bool) {
	it := &Item{Given: objects.Shown(f.given.Where), Shown: shown, name: f.given.Name, FromFolder: !named,
		Series: seriesOf(shown), Modified: o.Modified, object: o}
	if _, ok := chain.ParseName(o.Name); ok {
		f.local(o, it, named)
		return
	}
	switch {
	case !named && hasSuffix(o.Name, unfinished):
		f.skip(shown, "an incomplete object, perhaps still being written")
		return
	case !named && inDataDir(o.Name):
		f.skip(shown, "part of a data dir: use etcd-medic inspect or diagnose")
		return
	}
	head, err := o.head(f.ctx)
	if err != nil {
		it.Err = err
		f.items = append(f.items, it)
		return
	}
	u, err := unwrap(bytes.NewReader(head))
	if err != nil {
		it.packed = true
		f.unreadableHead(it, err, named)
		return
	}
	defer u.close()
	it.packed = len(u.layers) > 0
	inner, err := u.Peek(headLen)
	if err != nil && len(inner) == 0 && len(head) > 0 {
		f.unreadableHead(it, &packingError{"head", err}, named)
		return
	}
	is, name := recognise(inner)
	if is == isZip || is == isTar {
		f.local(o, it, named)
		return
	}
	f.decide(it, is, name, named)
}

// head reads the start of an object, as much as is needed to recognize it. Compressed bytes unpack to more, so this is
// enough for both.
func (o *object) head(ctx context.Context) ([]byte, error) {
	r, err := o.store.Read(ctx, o.Object, min(headLen, o.Size))
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }() // read as far as needed
	return io.ReadAll(io.LimitReader(r, headLen))
}

// local copies an object to scratch and checks the copy under the object's name. Objects of one folder are copied to
// one folder.
func (f *finder) local(o *object, it *Item, named bool) {
	base := objects.Shown(f.given.Where)
	dir := f.copies[base]
	if dir == "" {
		var err error
		if dir, err = scratch.Dir(f.o.Scratch, "etcd-medic-"); err != nil {
			it.Err = err
			f.items = append(f.items, it)
			return
		}
		f.found.scratch = append(f.found.scratch, dir)
		f.copies = map[string]string{base: dir}
	}
	to, err := o.copyTo(f.ctx, dir)
	if err != nil {
		it.Err = err
		f.items = append(f.items, it)
		return
	}
	f.file(to, it.Shown, named)
}

// copyTo copies the object below a folder of scratch, under its name.
func (o *object) copyTo(ctx context.Context, dir string) (string, error) {
	name := path.Clean("/" + o.Name)[1:]
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		name = "object"
	}
	to := filepath.Join(dir, filepath.FromSlash(name))
	if allowed := budget(dir); o.Size > allowed {
		return "", &scratch.RoomError{Dir: dir, Allowed: allowed}
	}
	return to, o.store.Copy(ctx, o.Object, to)
}

// openObject copies the object to scratch and opens the copy.
func (it *Item) openObject(ctx context.Context, below string) (*Opened, error) {
	dir, err := scratch.Dir(below, "etcd-medic-")
	if err != nil {
		return nil, err
	}
	copied := *it
	copied.object = nil
	if copied.path, err = it.object.copyTo(ctx, dir); err != nil {
		return nil, errors.Join(err, scratch.Remove(dir))
	}
	o, err := copied.Open(ctx, below)
	if err != nil || copied.packed {
		return o, errors.Join(err, scratch.Remove(dir))
	}
	o.scratch = dir
	return o, nil
}
