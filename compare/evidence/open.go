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
	// Failed are the sources that could not be used; the others are still reported.
	Failed  []FailedSource
	scratch []string
	// unpacked maps a scratch folder to the archive that was unpacked there.
	unpacked map[string]string
	// archives are the files from which sources were unpacked.
	archives []File
	access   Access
	streams  []*stream // while sources are expanded
}

// FailedSource is an unusable source and the reason.
type FailedSource struct {
	Spec Spec
	Err  error
}

// Options tune Open.
type Options struct {
	// Hash computes digests of every file while it is read. List only tries to open each file, so that unreadable ones
	// are known; a digest is then computed on demand. All files are listed in any case, so Set.Unchanged covers all of
	// them.
	Hash, List bool
	// HashLater lets Open return before all digests of data dirs are computed, so that the next step runs in parallel.
	// Set.Digests waits for them.
	HashLater bool
	// Deep reads page graphs, MVCC invariants and hashes of dbs; listing commands do not need them.
	Deep bool
	// NoHashes skips HashKV and the content hashes of buckets. With Deep, this is enough to judge a single source.
	NoHashes bool
	// Listing is set by commands that list a log entry by entry: one entry that is too large to be decoded does not
	// keep them from the others.
	Listing bool
	// Visit, if set, is called for every entry of the log during the pass of Open; see dumplog.Log.ScanWith. It works
	// only for a single source.
	Visit func(segment int) func(*dumplog.Entry)
	// Access says how to connect to endpoints.
	Access Access
	// Progress, if set, is called with what is being read.
	Progress func(what string)
	// Redact, if set, replaces the key derived from these sources, for reports that also include sources of another
	// set.
	Redact *redact.Key
	// several is true if there is more than one source.
	several bool
	// sources is how many sources there are.
	sources int
}

// Open opens every source and reads its facts, several at a time. It fails only if the context ends or no source can be
// used; then it removes its scratch. Otherwise unusable sources are in Failed.
func Open(ctx context.Context, specs []Spec, o Options) (*Set, error) {
	s := &Set{access: o.Access}
	sources, err := s.expand(ctx, specs)
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	s.nameSources(sources)
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

// shareKey gives all members the same key for digests.
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

// Digests waits until every file's digest is computed, which is already so without Options.HashLater. Only then are
// unreadable files among the problems of their member. It returns the error of Open's context.
func (s *Set) Digests() error {
	for _, m := range s.Members {
		if err := m.loading().digested(); err != nil {
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
