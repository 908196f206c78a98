package replay

import (
	"context"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// The newest revision of a database was written by an entry up to its consistent index, and not before the last of them
// that writes in every state of the key space. Where none of these entries can have written it, it was added, or the
// index is too low. Such revisions are excluded before log and database are aligned, because they belong to no entry.

// maxSurplus bounds the newest revisions that are excluded.
const maxSurplus = maxWindow

// unexplainedNewest counts the newest revisions that no entry up to the consistent index can have written.
func (lv *logView) unexplainedNewest(ctx context.Context, w *writers) int64 {
	if w.total == 0 || lv.lost() > 0 {
		return 0
	}
	known := lv.writersFrom(ctx, w, max(w.total-maxWindow+1, 1), w.total)
	items := lv.lastWriters(known)
	newest := lv.m.CurrentRevision()
	groups := slices.Collect(lv.groups(max(lv.floor(), newest-maxSurplus)+1, newest))
	var last *item
	if len(items) > 0 {
		last = items[0]
	}
	if n := lv.writtenAhead(groups, known, lv.above(ctx, w.until), last); n > 0 || last == nil {
		return n
	}
	if endsBefore(groups, known[:len(known)-len(items)]) {
		return 0
	}
	n := int64(0)
	for i := len(groups) - 1; i >= 0; i-- {
		g := groups[i]
		if g.hole || g.main != newest-n || lv.explained(g, items) {
			return n
		}
		n++
	}
	if newest-n > lv.floor() {
		return 0 // more than the limit
	}
	return n
}

// endsBefore reports whether the newest revisions are, in order, those of entries before the last one that must have
// written: then its own records were lost, and no revision was added.
func endsBefore(groups []*group, before []*item) bool {
	fits := 0
	for i, g := range slices.Backward(groups) {
		j := len(before) - 1
		for ; j >= 0 && !couldWrite(before[j].req, g); j-- {
		}
		if g.hole || j < 0 || i+1 < len(groups) && g.main+1 != groups[i+1].main {
			return false
		}
		before = before[:j]
		if g.records[0].del {
			continue
		}
		if fits++; fits >= enoughToSkip {
			return true
		}
	}
	return false
}

// writtenAhead counts the newest revisions that entries above the consistent index wrote. The known entries up to the
// index can have written some of these as well, but at least minAhead of them, by their content, only entries above it.
// The last entry that must have written is the newest one whose revision is certainly not among them. Where there is
// none, entries before the known ones may have written like those above the index. Then only transactions count that
// name the revision which their key had.
func (lv *logView) writtenAhead(groups []*group, known, above []*item, last *item) (n int64) {
	newest, only := lv.m.CurrentRevision(), 0
	for i, g := range slices.Backward(groups) {
		depth := int64(len(groups) - i)
		if g.hole || g.main != newest-depth+1 || last != nil && couldWrite(last.req, g) {
			break
		}
		could := func(it *item) bool { return couldWrite(it.req, g) }
		j := len(above) - 1
		for ; j >= 0 && !could(above[j]); j-- {
		}
		if j < 0 {
			break
		}
		named := last != nil || lv.namesBefore(above[j].req, g)
		above = above[:j]
		if !named || g.records[0].del || slices.ContainsFunc(known, could) {
			continue
		}
		if only++; only >= minAhead {
			n = depth
		}
	}
	return n
}

// namesBefore reports whether a transaction compares the mod revision of a key that the group writes with that of the
// key's record before it.
func (lv *logView) namesBefore(r *dumplog.Request, g *group) bool {
	return r.Txn != nil && slices.ContainsFunc(r.Txn.Compare, func(c dumplog.Compare) bool {
		if c.Target != apply.TargetMod || c.Result != apply.ResultEqual || c.Num <= 0 || c.Num >= g.main {
			return false
		}
		holds := func(x record) bool { return x.key == string(c.Key) }
		return slices.ContainsFunc(g.records, holds) && slices.ContainsFunc(slices.Collect(lv.groups(c.Num, c.Num)),
			func(before *group) bool { return slices.ContainsFunc(before.records, holds) })
	})
}

// minAhead is how many revisions must be of entries above the consistent index alone: one could be altered.
const minAhead = 2

// above reads the first entries above an index that may write.
func (lv *logView) above(ctx context.Context, index uint64) (out []*item) {
	for it, err := range lv.past(index + 1) {
		switch {
		case err != nil || ctx.Err() != nil || it.entry.Index > lv.logEnd || len(out) == maxSurplus:
			return out
		case it.entry.Index <= index:
			continue
		}
		if own := it.forMember(lv.pos); mayWrite(own.req) {
			out = append(out, own.keep())
		}
	}
	return out
}

// lastWriters returns the entries from the last one on that writes in every state of the key space, none if there is no
// such entry.
func (lv *logView) lastWriters(items []*item) []*item {
	for i := len(items) - 1; i >= 0; i-- {
		index := items[i].entry.Index
		if index > lv.m.AppliedMin {
			continue
		}
		if ops, sure := lv.sureOps(items[i].req, index); sure {
			for _, op := range ops {
				if op.Put != nil {
					return items[i:]
				}
			}
		}
	}
	return nil
}

// explained reports whether one of the entries can have written the records, or names their first key: then they may be
// its altered records. Records that cannot be read may be those of any entry.
func (lv *logView) explained(g *group, items []*item) bool {
	if slices.ContainsFunc(g.records, func(r record) bool { return r.bad }) {
		return true
	}
	var leases map[string]int64
	for _, it := range items {
		switch {
		case names(it.req, g):
			return true
		case !couldWrite(it.req, g):
		case it.req.LeaseRevoke == nil:
			return true
		default:
			if leases == nil {
				leases = lv.leasesBefore(g)
			}
			if revokes(it.req.LeaseRevoke.ID, g, leases) {
				return true
			}
		}
	}
	return false
}

// revokes reports whether a lease can have had all of the deleted keys.
func revokes(id int64, g *group, leases map[string]int64) bool {
	return !slices.ContainsFunc(g.records, func(r record) bool {
		lease, known := leases[r.key]
		return known && lease != id
	})
}

// leasesBefore are the leases that keys of a group had right before it, as far as their records can be read. A
// compaction keeps the state of a key before a delete above the compact revision.
func (lv *logView) leasesBefore(g *group) map[string]int64 {
	out := map[string]int64{}
	for before := range lv.groups(0, g.main-1) {
		if before.hole {
			clear(out)
		}
		for i := range before.records {
			r := &before.records[i]
			if slices.ContainsFunc(g.records, func(x record) bool { return x.key == r.key }) {
				out[r.key] = r.lease
			}
		}
	}
	return out
}
