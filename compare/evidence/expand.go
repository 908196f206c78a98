package evidence

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence/archive"
	"github.com/etcd-medic/etcd-medic/internal/objects"
	"github.com/etcd-medic/etcd-medic/internal/scratch"
)

// expand turns specs into sources. It unpacks archives, and splits folders with several data dirs.
func (s *Set) expand(ctx context.Context, specs []Spec) ([]*Source, error) {
	s.streams = s.beginStreams(ctx, specs)
	defer func() {
		for _, m := range s.streams {
			m.close()
		}
	}()
	var out []*Source
	for _, spec := range specs {
		sources, err := s.expandOne(ctx, spec, 0)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			s.Failed = append(s.Failed, FailedSource{Spec: spec, Err: err})
		}
		out = append(out, sources...)
	}
	return out, nil
}

func (s *Set) expandOne(ctx context.Context, spec Spec, depth int) ([]*Source, error) {
	if isEndpoint(spec.Where) {
		return s.expandEndpoint(ctx, spec)
	}
	given, inside := within(spec.Where)
	if inside != "" && spec.Name == "" {
		spec.Name = filepath.Base(inside)
	}
	where, err := s.fetched(ctx, given)
	if err != nil {
		return nil, err
	}
	if st, err := os.Stat(where); err == nil && st.Mode().IsRegular() && archive.IsArchive(where) {
		dir, err := s.unpack(ctx, where)
		if err != nil {
			return nil, err
		}
		if where == given { // what was fetched is not in storage a second time
			s.unpacked[dir] = given
		}
		where = filepath.Join(dir, inside)
	}
	l, err := detectAs(where, spec)
	if err != nil {
		var se *SourceError
		if errors.As(err, &se) {
			se.Where = spec.Where
		}
		return nil, err
	}
	if len(l.nested) > 0 {
		return s.expandNested(ctx, spec, l.nested, depth)
	}
	return []*Source{{Kind: l.kind, Where: spec.Where, Missing: l.missing, spec: spec, layout: l}}, nil
}

// expandNested turns the sources that a folder or an archive stands for into sources.
func (s *Set) expandNested(ctx context.Context, spec Spec, nested []Spec, depth int) (out []*Source, err error) {
	if depth == deepestNested {
		return nil, &SourceError{Where: spec.Where, Found: "archives in archives", Expected: expectedSource}
	}
	for _, n := range nested {
		n.Backup = spec.Backup
		sub, err := s.expandOne(ctx, n, depth+1)
		if err != nil {
			s.Failed = append(s.Failed, FailedSource{Spec: n, Err: err})
		}
		if len(nested) == 1 && len(sub) == 1 {
			sub[0].spec.Name = spec.Name // the folder's own name, such as etcd, is not unique
		}
		if out = append(out, sub...); len(out) > mostNested {
			return nil, tooMany(spec.Where, len(out))
		}
	}
	return out, nil
}

// deepestNested is how many times a source may stand for others: a folder of archives, each of several data dirs.
const deepestNested = 2

// unpack unpacks an archive into a folder of scratch and records the archive as an input.
func (s *Set) unpack(ctx context.Context, where string) (string, error) {
	dir, err := scratch.Dir("", "etcd-medic-")
	if err != nil {
		return "", err
	}
	s.scratch = append(s.scratch, dir)
	if s.unpacked == nil {
		s.unpacked = map[string]string{}
	}
	of, err := stamp(where)
	if err != nil {
		return "", err
	}
	s.archives = append(s.archives, of)
	if err := archive.Unpack(ctx, where, dir); err != nil {
		return "", &SourceError{Where: where, Found: "an archive that cannot be unpacked",
			Expected: "an intact .tar, .tar.gz or .tar.zst", Err: err}
	}
	return dir, nil
}

// within splits ARCHIVE#PATH: one source out of an archive of several. If the whole text is an existing path, it is
// that path.
func within(where string) (path, inside string) {
	at := strings.LastIndexByte(where, '#')
	if at < 1 {
		return where, ""
	}
	if _, err := os.Lstat(where); err == nil {
		return where, ""
	}
	path, inside = where[:at], filepath.FromSlash(where[at+1:])
	if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() || !filepath.IsLocal(inside) {
		return where, ""
	}
	return path, inside
}

// expandEndpoint streams a running member's database to scratch; it is then read like a backup.
func (s *Set) expandEndpoint(ctx context.Context, spec Spec) ([]*Source, error) {
	dir, err := scratch.Dir("", "etcd-medic-")
	if err != nil {
		return nil, err
	}
	s.scratch = append(s.scratch, dir)
	m := s.takeStream(spec.Where)
	path, err := m.save(ctx, dir)
	if err != nil {
		return nil, err
	}
	l, err := detect(path, "")
	if err != nil {
		return nil, err
	}
	l.kind = KindEndpoint
	return []*Source{{Kind: l.kind, Where: spec.Where, spec: spec, layout: l, running: m.said()}}, nil
}

// fetched copies objects from object storage to scratch and returns the path of the copy. It returns a path unchanged.
func (s *Set) fetched(ctx context.Context, where string) (string, error) {
	if !objects.IsURL(where) {
		return where, nil
	}
	dir, err := scratch.Dir("", "etcd-medic-")
	if err != nil {
		return "", err
	}
	s.scratch = append(s.scratch, dir)
	path, err := objects.Fetch(ctx, where, dir, scratch.Budget(dir))
	if err != nil {
		return "", &SourceError{Where: objects.Shown(where), Found: "object storage that cannot be read",
			Expected: "objects that the credentials may read", Err: err}
	}
	return path, nil
}

// Close releases all sources and removes the scratch folders of unpacked archives.
func (s *Set) Close() error {
	var errs []error
	for _, m := range s.Members {
		if m.Source.Manifest != nil {
			m.Source.Manifest.stopHash()
		}
		if m.HasWAL() {
			errs = append(errs, m.WAL.Log.Close())
		}
		if m.DB != nil && m.DB.Handle != nil {
			errs = append(errs, m.DB.Handle.Close())
		}
	}
	for _, d := range s.scratch {
		errs = append(errs, scratch.Remove(d))
	}
	return errors.Join(errs...)
}

// Unchanged verifies that no source has changed since Open, and no archive from which one was unpacked. Otherwise it
// returns a *ChangedError.
func (s *Set) Unchanged(ctx context.Context) error {
	for _, m := range s.Members {
		if m.Source.Manifest == nil {
			continue
		}
		if err := m.Source.Manifest.Unchanged(ctx); err != nil {
			var changed *ChangedError
			if errors.As(err, &changed) {
				changed.Source = m.Label()
			}
			return err
		}
	}
	return unchangedArchives(s.archives)
}

// unchangedArchives compares archives with their state when they were unpacked.
func unchangedArchives(archives []File) error {
	for _, a := range archives {
		now, err := stamp(a.Path)
		if err != nil || now != a {
			return &ChangedError{File: a.Path, How: "changed while it was read"}
		}
	}
	return nil
}

// stamp returns size, mode and modification time of a file, to detect changes.
func stamp(path string) (File, error) {
	st, err := os.Stat(path)
	if err != nil {
		return File{}, err
	}
	return File{Path: path, Size: st.Size(), Mode: st.Mode(), ModTime: st.ModTime()}, nil
}
