package evidence

import (
	"bytes"
	"cmp"
	"context"
	"math"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

func (m *Member) loadWAL(ctx context.Context, dir string, o Options) error {
	if dir == "" {
		return nil
	}
	l, err := dumplog.Open(dir)
	if err != nil {
		m.problem("wal", dir, err)
		return nil
	}
	w := WAL{Log: l}
	if err := w.scan(ctx, o.Visit, o.several); err != nil {
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

// scan reads the log once and collects what later steps need of its entries: membership changes and the extent of each
// term, and with sums set what tells it from other logs.
func (w *WAL) scan(ctx context.Context, also func(int) func(*dumplog.Entry), sums bool) error {
	conf, parts := make([][]ConfEntry, w.Log.Segments()), make([]*LogSums, w.Log.Segments())
	sum, err := w.Log.ScanWith(ctx, func(i int) func(*dumplog.Entry) {
		var see func(*dumplog.Entry)
		if also != nil {
			see = also(i)
		}
		if parts[i] = NewLogSums(); !sums {
			parts[i] = nil
		}
		return func(e *dumplog.Entry) {
			if parts[i] != nil {
				parts[i].Note(e)
			}
			if e.Type == dumplog.EntryConfChange {
				own := *e
				own.Data = bytes.Clone(e.Data)
				if r, err := own.Decode(); err == nil && r.ConfChange != nil {
					conf[i] = append(conf[i],
						ConfEntry{Pos: e.Pos, Term: e.Term, Index: e.Index, Change: *r.ConfChange})
				}
			}
			if see != nil {
				see(e)
			}
		}
	})
	if err != nil {
		return err
	}
	w.Summary = *sum
	w.Conf = effective(sum, conf)
	if sums && len(w.Summary.Overwrites) == 0 {
		w.sum(parts)
	}
	for _, t := range w.Summary.Terms {
		if n := len(w.LastByTerm); n > 0 && w.LastByTerm[n-1].Term == t.Term {
			w.LastByTerm[n-1].Last = t.Last // the log jumps inside of the term
		} else {
			w.LastByTerm = append(w.LastByTerm, TermEnd(t))
		}
	}
	return w.findFirst(ctx)
}

// findFirst looks for the first request of a server, which stands within the first few entries of a log that was not
// purged. The error is that of the context: what else ends the reading is told as damage.
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

func (w *WAL) sum(parts []*LogSums) {
	w.Sums = NewLogSums()
	for _, p := range parts {
		if p != nil { // a segment that does not open is not visited
			w.Sums.join(p)
		}
	}
}

// effective joins the membership changes of all segments and drops those that a later append replaced.
func effective(s *dumplog.Summary, conf [][]ConfEntry) []ConfEntry {
	at := map[string]int{}
	for i := range s.Segments {
		at[s.Segments[i].Name] = i
	}
	// Both lists are in physical order, so what comes after a change is a tail of the overwrites; low is the lowest
	// index of such a tail.
	low := make([]uint64, len(s.Overwrites)+1)
	low[len(s.Overwrites)] = math.MaxUint64
	for i := len(s.Overwrites) - 1; i >= 0; i-- {
		low[i] = min(low[i+1], s.Overwrites[i].Index)
	}
	var out []ConfEntry
	next := 0
	for i := range conf {
		for _, c := range conf[i] {
			for next < len(s.Overwrites) && cmp.Or(cmp.Compare(at[s.Overwrites[next].Segment], i),
				cmp.Compare(s.Overwrites[next].Offset, c.Pos.Offset)) <= 0 {
				next++
			}
			if low[next] > c.Index {
				out = append(out, c)
			}
		}
	}
	return out
}
