package evidence

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/etcd-medic/etcd-medic/compare/evidence/archive"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// Set is all sources of one run.
type Set struct {
	Members []*Member
	// Failed are the sources that could not be used at all; the others are still reported.
	Failed  []FailedSource
	scratch []string
	access  Access
}

// FailedSource is a source that could not be used and why.
type FailedSource struct {
	Spec Spec
	Err  error
}

// Options tune Open.
type Options struct {
	// Hash takes digests of every file while it is read. List only lists files with their sizes; a digest is then taken when it is asked
	// for. Without either a source has no manifest.
	Hash, List bool
	// HashLater lets Open return while digests of data dirs are still being taken, so that what comes next and the digests share
	// the cores. Set.Digests waits for them.
	HashLater bool
	// Deep reads page graphs, MVCC truths and hashes of dbs; listing commands do without.
	Deep bool
	// NoHashes leaves out HashKV and the content hashes of buckets: with Deep, what a single source needs to be judged.
	NoHashes bool
	// Visit, if set, sees every entry of the log in the pass that Open makes anyway; see dumplog.Log.ScanWith. It is for a
	// single source.
	Visit func(segment int) func(*dumplog.Entry)
	// Access is how endpoints are reached.
	Access Access
	// Progress, if set, is told what is being read.
	Progress func(what string)
	// several is true when there is more than one source.
	several bool
}

// Open opens every source and reads its facts, several at a time. It fails only when the context ends or when not a single
// source can be used; a source that fails is listed in Failed.
func Open(ctx context.Context, specs []Spec, o Options) (*Set, error) {
	s := &Set{access: o.Access}
	sources, err := s.expand(ctx, specs)
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	nameSources(sources)
	o.several = o.Deep && len(sources) > 1
	h := newHashing(ctx)
	members := make([]*Member, len(sources))
	errs := make([]error, len(sources))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(2)
	for i, src := range sources {
		g.Go(func() error {
			if o.Progress != nil {
				o.Progress("reading " + src.Name)
			}
			members[i], errs[i] = load(gctx, src, o, h)
			return gctx.Err()
		})
	}
	if err := g.Wait(); err != nil {
		_ = s.Close()
		return nil, err
	}
	for i, m := range members {
		if errs[i] != nil {
			s.Failed = append(s.Failed, FailedSource{Spec: sources[i].spec, Err: errs[i]})
		}
		if m != nil {
			s.Members = append(s.Members, m)
		}
	}
	s.relabel()
	if len(s.Members) == 0 {
		return s, s.firstError()
	}
	return s, nil
}

// Digests waits until every file's digest is taken; without Options.HashLater they are. Files that can not be read are among the
// problems of their member only then. The error is that of the context of Open.
func (s *Set) Digests() error {
	for _, m := range s.Members {
		if err := m.digested(); err != nil {
			return err
		}
	}
	return nil
}

func (s *Set) firstError() error {
	if len(s.Failed) == 0 {
		return errors.New("no source was given")
	}
	var errs []error
	for _, f := range s.Failed {
		errs = append(errs, f.Err)
	}
	return errors.Join(errs...)
}

// expand turns specs into sources: archives are unpacked, folders of several data dirs are taken apart.
func (s *Set) expand(ctx context.Context, specs []Spec) ([]*Source, error) {
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
	where := spec.Where
	if st, err := os.Stat(where); err == nil && st.Mode().IsRegular() && archive.IsArchive(where) {
		dir, err := os.MkdirTemp("", "etcd-medic-")
		if err != nil {
			return nil, err
		}
		s.scratch = append(s.scratch, dir)
		if err := archive.Unpack(ctx, where, dir); err != nil {
			return nil, &SourceError{Where: where, Found: "an archive that does not unpack", Expected: "a sound .tar, .tar.gz or .tar.zst", Err: err}
		}
		where = dir
	}
	l, err := detectAs(where, spec)
	if err != nil {
		var se *SourceError
		if errors.As(err, &se) {
			se.Where = spec.Where
		}
		return nil, err
	}
	for i := range l.nested {
		l.nested[i].Backup = spec.Backup
	}
	if len(l.nested) > 0 && depth == 0 {
		var out []*Source
		for _, n := range l.nested {
			sub, err := s.expandOne(ctx, n, depth+1)
			if err != nil {
				s.Failed = append(s.Failed, FailedSource{Spec: n, Err: err})
			}
			if spec.Name != "" && len(l.nested) == 1 && len(sub) == 1 {
				sub[0].spec.Name = spec.Name
			}
			out = append(out, sub...)
		}
		return out, nil
	}
	return []*Source{{Kind: l.kind, Where: spec.Where, Missing: l.missing, spec: spec, layout: l}}, nil
}

// expandEndpoint streams a running member's database to scratch; it is then read like a backup.
func (s *Set) expandEndpoint(ctx context.Context, spec Spec) ([]*Source, error) {
	dir, err := os.MkdirTemp("", "etcd-medic-")
	if err != nil {
		return nil, err
	}
	s.scratch = append(s.scratch, dir)
	path, err := s.access.stream(ctx, spec.Where, dir)
	if err != nil {
		return nil, err
	}
	l, err := detect(path, "")
	if err != nil {
		return nil, err
	}
	l.kind = KindEndpoint
	return []*Source{{Kind: l.kind, Where: spec.Where, spec: spec, layout: l}}, nil
}

// nameSources gives every source a label: the given one, else the shortest tail of the path that tells it apart.
func nameSources(sources []*Source) {
	for _, src := range sources {
		src.Name = src.spec.Name
	}
	for depth := 1; depth <= 8; depth++ {
		seen := map[string]int{}
		for _, src := range sources {
			if src.spec.Name == "" {
				src.Name = pathTail(src.Where, depth)
			}
			seen[src.Name]++
		}
		if len(seen) == len(sources) {
			return
		}
	}
	uniq(sources)
}

// uniq numbers labels that are still equal, such as one path given twice.
func uniq(sources []*Source) {
	seen := map[string]int{}
	for _, src := range sources {
		seen[src.Name]++
		if n := seen[src.Name]; n > 1 {
			src.Name = fmt.Sprintf("%s#%d", src.Name, n)
		}
	}
}

func pathTail(p string, depth int) string {
	p = filepath.Clean(p)
	if abs, err := filepath.Abs(p); err == nil && (p == "." || p == "..") {
		p = abs
	}
	var parts []string
	for len(parts) < depth && p != "." && p != string(filepath.Separator) {
		parts = append([]string{filepath.Base(p)}, parts...)
		p = filepath.Dir(p)
	}
	tail := filepath.ToSlash(filepath.Join(parts...))
	if filepath.Dir(p) == p && filepath.IsAbs(p) && len(parts) < depth {
		// The whole of an absolute path is itself.
		return filepath.ToSlash(p) + tail
	}
	return tail
}

// Argument is the command line argument that names a source again with the same label, "" when there is none: it came out of
// an archive, or its WAL lies elsewhere.
func (s *Set) Argument(src *Source) string {
	where := src.Where
	if src.spec.WALDir != "" {
		return ""
	}
	for _, dir := range s.scratch {
		if strings.HasPrefix(where, dir) {
			return ""
		}
	}
	if where == src.Name {
		return where
	}
	return src.Name + "=" + where
}

// relabel prefers members' own names where the user gave none, if they are known and unambiguous.
func (s *Set) relabel() {
	seen := map[string]int{}
	for _, m := range s.Members {
		name := m.NodeName
		if m.Source.spec.Name != "" {
			name = m.Source.spec.Name
		}
		seen[name]++
	}
	for _, m := range s.Members {
		if m.Source.spec.Name == "" && m.NodeName != "" && seen[m.NodeName] == 1 && m.Source.Kind == KindDataDir {
			m.Source.Name = m.NodeName
		}
	}
}

// Close releases all sources and removes the scratch folders of unpacked archives.
func (s *Set) Close() error {
	var errs []error
	for _, m := range s.Members {
		if m.Source.Manifest != nil {
			m.Source.Manifest.stopHash()
		}
		if m.WAL != nil && m.WAL.Log != nil {
			errs = append(errs, m.WAL.Log.Close())
		}
		if m.DB != nil && m.DB.Handle != nil {
			errs = append(errs, m.DB.Handle.Close())
		}
	}
	for _, d := range s.scratch {
		errs = append(errs, os.RemoveAll(d)) //nolint:forbidigo // scratch that Open itself made
	}
	return errors.Join(errs...)
}

// Unchanged proves that no source changed since Open.
func (s *Set) Unchanged() error {
	for _, m := range s.Members {
		if m.Source.Manifest == nil {
			continue
		}
		if err := m.Source.Manifest.Unchanged(); err != nil {
			return fmt.Errorf("%s: %w", m.Label(), err)
		}
	}
	return nil
}
