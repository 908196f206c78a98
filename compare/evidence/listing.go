package evidence

import (
	"context"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/etcd-medic/etcd-medic/internal/regular"
)

// lister lists the files of one source. It follows a symbolic link to a file. It follows links to folders only in place
// of etcd's own folders, so that a link cannot pull a whole disk into the evidence.
type lister struct {
	ctx context.Context //nolint:containedctx // the lister exists for one call
	m   *Manifest
	// parts are the folders to read, as paths below the root.
	parts map[string]bool
}

// listFiles lists the files of a source (or its single file), without digests.
func listFiles(ctx context.Context, l layout) (*Manifest, error) {
	li := &lister{ctx: ctx, m: &Manifest{layout: l}, parts: map[string]bool{}}
	for _, dir := range []string{l.member, l.wal, l.snap} {
		if rel, err := filepath.Rel(l.root, dir); dir != "" && err == nil && filepath.IsLocal(rel) {
			li.parts[filepath.ToSlash(rel)] = true
		}
	}
	if err := li.walk(l.root, "."); err != nil {
		return nil, err
	}
	if l.walDirIsExternal {
		if err := li.walk(l.wal, li.nameOfWALDir()); err != nil {
			return nil, err
		}
	}
	return li.m, nil
}

// nameOfWALDir returns the name under which the files of a WAL outside the data dir are listed. It is the default place
// in the data dir, unless that exists, so that a copy with the WAL inside has the same digest.
func (li *lister) nameOfWALDir() string {
	rel, err := filepath.Rel(li.m.layout.root, filepath.Join(li.m.layout.member, "wal"))
	name := filepath.ToSlash(rel)
	taken := err != nil
	for i := range li.m.Files {
		taken = taken || li.m.Files[i].Path == name || strings.HasPrefix(li.m.Files[i].Path, name+"/")
	}
	if taken {
		return "--wal-dir"
	}
	return name
}

// walk lists a path under a name.
func (li *lister) walk(at, name string) error {
	real, err := filepath.EvalSymlinks(at)
	if err != nil {
		li.m.unread(at, err)
		return li.ctx.Err()
	}
	return filepath.WalkDir(real, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			li.m.unread(p, err)
			return li.ctx.Err()
		}
		rel, err := filepath.Rel(real, p)
		if err != nil {
			return err
		}
		as := path.Join(name, filepath.ToSlash(rel))
		switch {
		case d.IsDir():
			return li.ctx.Err()
		case d.Type()&fs.ModeSymlink != 0:
			return li.link(p, as)
		}
		st, err := d.Info()
		li.add(p, as, st, err)
		return li.ctx.Err()
	})
}

// link lists the target of a symbolic link.
func (li *lister) link(p, as string) error {
	st, err := os.Stat(p)
	switch {
	case err != nil:
		li.m.Files = append(li.m.Files, File{Path: as, Mode: fs.ModeSymlink, What: "a dangling symbolic link",
			at: p})
	case st.IsDir() && li.parts[as]:
		delete(li.parts, as) // once, so that cyclic links end
		return li.walk(p, as)
	case st.IsDir():
		li.m.Files = append(li.m.Files, File{Path: as, Mode: fs.ModeSymlink, What: "a symbolic link to a folder",
			at: p})
	default:
		li.add(p, as, st, nil)
	}
	return li.ctx.Err()
}

// add lists one file.
func (li *lister) add(p, as string, st fs.FileInfo, err error) {
	switch {
	case err != nil:
		li.m.unread(p, err)
	case !st.Mode().IsRegular():
		li.m.Files = append(li.m.Files, File{Path: as, Mode: st.Mode(), What: regular.What(st.Mode()), at: p})
	default:
		li.m.Files = append(li.m.Files, File{Path: as, Size: st.Size(), Mode: st.Mode(), ModTime: st.ModTime(), at: p})
		li.m.Bytes += st.Size()
	}
}
