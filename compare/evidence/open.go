package evidence

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/redact"
)

// Set is all sources of one run.
type Set struct {
	Members []*Member
	// Failed are the sources that could not be used at all; the others are still reported.
	Failed  []FailedSource
	scratch []string
	// unpacked says which archive a folder of scratch holds.
	unpacked map[string]string
	// archives are the files that sources were unpacked from.
	archives []File
	access   Access
	streams  []*stream // while sources are expanded
}

// FailedSource is a source that could not be used and why.
type FailedSource struct {
	Spec Spec
	Err  error
}

// Options tune Open.
type Options struct {
	// Hash takes digests of every file while it is read. List only tries to open each, so that one that cannot be read
	// is known; a digest is then taken when it is asked for. Every file is listed in any case, so that Set.Unchanged
	// covers all of them.
	Hash, List bool
	// HashLater lets Open return while digests of data dirs are still being taken, so that what comes next and the
	// digests share the cores. Set.Digests waits for them.
	HashLater bool
	// Deep reads page graphs, MVCC truths and hashes of dbs; listing commands do without.
	Deep bool
	// NoHashes leaves out HashKV and the content hashes of buckets: with Deep, what a single source needs to be judged.
	NoHashes bool
	// Visit, if set, sees every entry of the log in the pass that Open makes anyway; see dumplog.Log.ScanWith. It is
	// for a single source.
	Visit func(segment int) func(*dumplog.Entry)
	// Access is how endpoints are reached.
	Access Access
	// Progress, if set, is told what is being read.
	Progress func(what string)
	// Redact, if set, makes the digests of values in place of a key of these sources: for reports that take in another
	// set's sources too.
	Redact *redact.Key
	// several is true when there is more than one source.
	several bool
	// sources is how many sources there are.
	sources int
}

// Open opens every source and reads its facts, several at a time. It fails only when the context ends or when not a
// single source can be used, and leaves no scratch then; a source that fails beside others is listed in Failed.
func Open(ctx context.Context, specs []Spec, o Options) (*Set, error) {
	s := &Set{access: o.Access}
	sources, err := s.expand(ctx, specs)
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	nameSources(sources)
	o.several, o.sources = o.Deep && len(sources) > 1, len(sources)
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
	reachOfBackups(s.Members)
	if len(s.Members) == 0 {
		return nil, errors.Join(s.firstError(), s.Close())
	}
	if err := s.shareKey(ctx, o.Redact); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// shareKey gives all members the key of digests.
func (s *Set) shareKey(ctx context.Context, k *redact.Key) (err error) {
	if k == nil {
		var sources []*Manifest
		for _, m := range s.Members {
			sources = append(sources, m.Source.Manifest)
		}
		if k, err = redactKey(ctx, sources...); err != nil {
			return err
		}
	}
	for _, m := range s.Members {
		m.Redact = k
	}
	return nil
}

// Digests waits until every file's digest is taken; without Options.HashLater they are. Files that cannot be read are
// among the problems of their member only then. The error is that of the context of Open.
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
