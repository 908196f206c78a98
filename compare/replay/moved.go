package replay

import (
	"context"
	"slices"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// maxMoved bounds the revisions among which the records of a moved entry are looked for.
const maxMoved = 64

// withoutMoved drops overlaps of which the older process is shown by one entry that was moved within its log: only one
// log holds it, and the database has its records in another place, where the log does not explain them.
func withoutMoved(ctx context.Context, r *Result) error {
	r.Overlaps = slices.DeleteFunc(r.Overlaps, func(o Overlap) bool { return r.isMoved(ctx, o.Old) })
	return ctx.Err()
}

func (r *Result) isMoved(ctx context.Context, index uint64) bool {
	req, holder := r.onlyCopy(ctx, index)
	if req == nil || req.Put == nil || len(req.Put.Value) == 0 || keeps(req.Put) {
		return false
	}
	m := r.Members[holder].Member
	if !m.HasDB() || m.DB.KV == nil {
		return false
	}
	lv := &logView{m: m, pos: holder, compacted: m.CompactRevision()}
	return slices.ContainsFunc(r.strange(holder, index), func(rev int64) bool {
		for g := range lv.groups(rev, rev) {
			if !g.hole && couldWrite(req, g) {
				return true
			}
		}
		return false
	})
}

// strange are revisions of a member that no entry explains, or that hold other records than those of their entry,
// bounded; not those of the entry at an index.
func (r *Result) strange(pos int, except uint64) []int64 {
	out := slices.Clone(r.Members[pos].Extra)
	for _, e := range r.Events {
		if o := e.Outcomes[pos]; o.State == Contradicted && o.Rev > 0 && e.Index != except {
			out = append(out, o.Rev)
		}
	}
	return out[:min(len(out), maxMoved)]
}

// onlyCopy returns the request at an index that one log holds, with the position of its member; nil if several hold it,
// or if it does not decode.
func (r *Result) onlyCopy(ctx context.Context, index uint64) (req *dumplog.Request, holder int) {
	var holders []int
	for i, m := range r.Members {
		if m.Member.HasWAL() && m.Member.WAL.Holds(index) {
			holders = append(holders, i)
		}
	}
	if len(holders) != 1 {
		return nil, 0
	}
	m := r.Members[holders[0]].Member
	for e, err := range m.WAL.Log.EntriesFrom(ctx, &m.WAL.Summary, index) {
		if err != nil || e.Overwritten || e.Index < index {
			continue
		}
		if e.Index > index {
			break
		}
		if req, err = e.Decode(); err != nil {
			return nil, 0
		}
		return req, holders[0]
	}
	return nil, 0
}
