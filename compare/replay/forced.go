package replay

import (
	"context"
	"errors"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// Forced is a run of entries that --force-new-cluster wrote: removals of all other voters without request ID, at the
// indexes after the log's stored commit index (server/storage/util.go, etcdserver/bootstrap.go, 3.0 to 3.8).
type Forced struct {
	// Member is the position in Result.Members.
	Member            int
	Term, First, Last uint64
	Pos               dumplog.Pos
	Removed           []dumplog.ID
	// Dropped are the entries that the run replaced, in index order, bounded; they were in the log, but not known there
	// to be committed. Applied are those of them whose write the database holds nevertheless.
	Dropped, Applied []Dropped
}

// Dropped is an entry that a forced start cut off.
type Dropped struct {
	Pos         dumplog.Pos
	Term, Index uint64
	What        string
	// Rev is the revision at which the database holds its write, 0 when it does not.
	Rev  int64
	hash [2]uint64
	put  bool
}

// maxDropped bounds the list of cut off entries per run.
const maxDropped = 1000

// forced finds the runs of all members.
func forced(ctx context.Context, r *Result) error {
	for i, res := range r.Members {
		w := &res.Member.WAL
		if !w.Present() || len(w.Summary.ForceNewCluster) == 0 {
			continue
		}
		runs := forcedRuns(w.Conf, i)
		if err := findDropped(ctx, res.Member, runs); err != nil {
			return err
		}
		if err := appliedAfterAll(res, runs); err != nil {
			return err
		}
		r.Forced = append(r.Forced, runs...)
	}
	return nil
}

// isForcedRemoval: every removal that a client asks for has the ID of its request.
func isForcedRemoval(c *dumplog.ConfChange) bool {
	return c.ID == 0 && c.Type == dumplog.ConfChangeRemoveNode && len(c.Context) == 0
}

func forcedRuns(conf []evidence.ConfEntry, pos int) []Forced {
	var out []Forced
	for _, c := range conf {
		if !isForcedRemoval(&c.Change) {
			continue
		}
		if n := len(out); n > 0 && out[n-1].Last+1 == c.Index && out[n-1].Term == c.Term {
			out[n-1].Last = c.Index
			out[n-1].Removed = append(out[n-1].Removed, c.Change.NodeID)
			continue
		}
		out = append(out, Forced{Member: pos, Term: c.Term, First: c.Index, Last: c.Index, Pos: c.Pos,
			Removed: []dumplog.ID{c.Change.NodeID}})
	}
	return out
}

// findDropped collects the entries that each run replaced: those of the overwrite at the start of the run.
func findDropped(ctx context.Context, m *evidence.Member, runs []Forced) error {
	w := &m.WAL
	over := map[int]dumplog.Overwrite{}
	for i := range runs {
		for _, o := range w.Summary.Overwrites {
			if o.Pos == runs[i].Pos {
				over[i] = o
			}
		}
	}
	if len(over) == 0 {
		return nil
	}
	for e, err := range w.Log.Entries(ctx, &w.Summary) {
		if err != nil {
			var d *dumplog.DamageError
			if errors.As(err, &d) {
				continue
			}
			return err
		}
		if !e.Overwritten {
			continue
		}
		for i, o := range over {
			if e.Index >= o.Index && e.Index <= o.OldLast && before(w, e.Pos, o.Pos) &&
				len(runs[i].Dropped) < maxDropped {
				runs[i].drop(&e, m)
			}
		}
	}
	return nil
}

func before(w *evidence.WAL, a, b dumplog.Pos) bool {
	at := func(name string) int {
		return slices.IndexFunc(w.Summary.Segments, func(s dumplog.Segment) bool { return s.Name == name })
	}
	if a.Segment == b.Segment {
		return a.Offset < b.Offset
	}
	return at(a.Segment) < at(b.Segment)
}

// drop records a replaced entry. Of several replaced entries at one index the last counts.
func (f *Forced) drop(e *dumplog.Entry, m *evidence.Member) {
	d := Dropped{Pos: e.Pos, Term: e.Term, Index: e.Index}
	if req, err := e.Decode(); err == nil {
		d.What = m.Describe(req)
		if req.Put != nil && !req.Put.IgnoreValue {
			d.put, d.hash = true, contentHash(req.Put.Key, req.Put.Value)
		}
	}
	f.Dropped = slices.DeleteFunc(f.Dropped, func(o Dropped) bool { return o.Index == d.Index })
	f.Dropped = append(f.Dropped, d)
}

// appliedAfterAll finds the writes of replaced entries among the revisions that no entry of the log explains.
func appliedAfterAll(res *MemberResult, runs []Forced) error {
	extra := map[int64]bool{}
	for _, rev := range res.Extra {
		extra[rev] = true
	}
	if len(extra) == 0 || !res.Member.HasDB() {
		return nil
	}
	for rev, err := range res.Member.DB.Handle.Revisions() {
		if err != nil || rev.Err != nil || rev.Tombstone || !extra[rev.Main] {
			continue
		}
		h := contentHash(rev.KV.Key, rev.KV.Value)
		for i := range runs {
			for j := range runs[i].Dropped {
				if d := &runs[i].Dropped[j]; d.put && d.hash == h && d.Rev == 0 {
					d.Rev = rev.Main
					runs[i].Applied = append(runs[i].Applied, *d)
				}
			}
		}
	}
	return nil
}

// contentHash identifies a put by key and value.
func contentHash(key, value []byte) [2]uint64 { return [2]uint64{apply.SumOf(key), apply.SumOf(value)} }
