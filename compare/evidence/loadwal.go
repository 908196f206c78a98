package evidence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// leastSmallBytes is how much memory the rows of the small buckets of a source may take at least (dumpdb.MaxSmall).
const leastSmallBytes = 100 << 20

// leastV2Nodes is how many nodes of v2 stores are kept of a source at least (dumplog.MaxV2Nodes).
const leastV2Nodes = 20_000

// leastMarks is how many marks the summary of a log may have at least (dumplog.MaxMarks), however many sources there
// are.
const leastMarks = 2000

func (m loading) wal(ctx context.Context, dir string, o Options) error {
	if dir == "" {
		return nil
	}
	l, err := dumplog.Open(dir)
	if err != nil {
		m.problem("wal", dir, err)
		return nil
	}
	l.Bound(max(dumplog.MaxMarks/max(o.sources, 1), leastMarks))
	if o.Listing {
		l.GoWithoutMarks()
	}
	w := WAL{Log: l}
	if err := w.scan(ctx, o); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		m.problem("wal", dir, err)
		return nil
	}
	m.WAL = w
	if md := w.Summary.Metadata; md != nil {
		m.MemberID, m.ClusterID = md.MemberID, md.ClusterID
	}
	return nil
}

// notAllowed returns the error of a segment that this process may not read. That says nothing about its content, so it
// does not count as damage, and nothing is concluded from the other segments.
func notAllowed(sum *dumplog.Summary) error {
	for _, d := range sum.Damage {
		if errors.Is(d.Err, fs.ErrPermission) {
			return fmt.Errorf("%s: %w: the log is left out", d.Segment, d.Err)
		}
	}
	return nil
}

// scan reads the log once and collects what later steps need of its entries: membership changes and the extent of each
// term, and of several sources what sets it apart from other logs.
func (w *WAL) scan(ctx context.Context, o Options) error {
	conf, parts := newConfLog(w.Log.Segments(), o.sources), make([]*LogSums, w.Log.Segments())
	large := make([]error, w.Log.Segments())
	sum, err := w.Log.ScanWith(ctx, func(i int) func(*dumplog.Entry) {
		var see func(*dumplog.Entry)
		if o.Visit != nil {
			see = o.Visit(i)
		}
		if parts[i] = NewLogSums(); !o.several {
			parts[i] = nil
		}
		var dec dumplog.Decoder
		return func(e *dumplog.Entry) {
			if err := dec.TooLarge(e); err != nil && large[i] == nil && !o.Listing {
				large[i] = fmt.Errorf("entry %d/%d: %w: the log is not examined", e.Term, e.Index, err)
			}
			if parts[i] != nil {
				parts[i].Note(e)
			}
			conf.note(i, e)
			if see != nil {
				see(e)
			}
		}
	})
	if err := cmp.Or(append([]error{err}, large...)...); err != nil {
		return err
	}
	if err := notAllowed(sum); err != nil && !o.Listing {
		return err
	}
	w.Summary = *sum
	w.Conf, err = conf.effective(sum)
	if many := new(TooManyConfChangesError); o.Listing && errors.As(err, &many) {
		w.Summary.Damage = append(w.Summary.Damage, &dumplog.DamageError{Pos: many.Places[0], Kind: dumplog.DamageMarks,
			Err: err})
	} else if err != nil {
		return err
	}
	if o.several && len(w.Summary.Overwrites) == 0 {
		w.sum(parts)
	}
	for _, t := range w.Summary.Terms {
		if n := len(w.LastByTerm); n > 0 && w.LastByTerm[n-1].Term == t.Term {
			w.LastByTerm[n-1].Last = t.Last // the log has a gap inside the term
		} else {
			w.LastByTerm = append(w.LastByTerm, TermEnd(t))
		}
	}
	if err := w.findFirst(ctx); err != nil {
		return err
	}
	return w.findIdle(ctx)
}

// findFirst looks for the first request of a server, which is among the first few entries of a log that was not purged.
// It returns an error only if the context ends; damage is reported elsewhere.
func (w *WAL) findFirst(ctx context.Context) error {
	if w.Summary.Start != dumplog.StartBootstrap && w.Summary.Start != dumplog.StartRestore {
		return nil
	}
	for e, err := range w.Log.Entries(ctx, &w.Summary) {
		if err != nil {
			return ctx.Err()
		}
		if r, err := e.Decode(); err == nil && !e.Overwritten && r.ProposerID() != 0 {
			w.First = FirstRequest{Index: e.Index, ID: r.ProposerID()}
			return nil
		}
	}
	return nil
}

// maxIdle bounds the runs of entries without a key write above the commit index of the last HardState.
const maxIdle = 100

// IndexRange is a run of entries, both ends included.
type IndexRange struct{ From, To uint64 }

// findIdle looks for the entries above the commit index of the last HardState that write no key. It returns an error
// only if the context ends; damage is reported elsewhere.
func (w *WAL) findIdle(ctx context.Context) error {
	commit := uint64(0)
	if hs := w.Summary.HardState; hs != nil {
		commit = hs.Commit
	}
	if commit >= w.Summary.LastIndex {
		return nil
	}
	for e, err := range w.Log.EntriesFrom(ctx, &w.Summary, commit+1) {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil || e.Overwritten || e.Index <= commit:
			continue
		}
		r, err := e.Decode()
		n := len(w.Idle)
		switch {
		case err != nil:
			return nil
		case apply.WritesKeys(r.Kind) && r.Kind != dumplog.KindLeaseRevoke:
		case n > 0 && w.Idle[n-1].To+1 == e.Index:
			w.Idle[n-1].To = e.Index
		case n == maxIdle:
			return nil
		default:
			w.Idle = append(w.Idle, IndexRange{e.Index, e.Index})
		}
	}
	return nil
}

// IdleAfter returns the last of the entries right above an index that write no key, 0 if there is none, or if the index
// is below the commit index of the last HardState.
func (w *WAL) IdleAfter(index uint64) uint64 {
	for _, r := range w.Idle {
		if r.From <= index+1 && index < r.To {
			return r.To
		}
	}
	return 0
}

func (w *WAL) sum(parts []*LogSums) {
	w.Sums = NewLogSums()
	for _, p := range parts {
		if p != nil { // a segment that does not open is not visited
			w.Sums.join(p)
		}
	}
}
