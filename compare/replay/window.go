package replay

import (
	"context"
	"iter"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

const (
	// maxWindow is how many entries are matched with records at a time, enoughPairs how many matches suffice, and
	// patience how many records after the last match are read.
	maxWindow   = 512
	enoughPairs = 64
	patience    = 4096
)

// pair is an entry of the window and the only group of records that it can have written, which no other entry of it can
// have. strong is set if no equal entry before the window can have written the group instead, with this entry without
// effect.
type pair struct {
	entry  int
	rev    int64
	strong bool
}

// window is some consecutive entries that may write, and the content of the database where their effects are.
type window struct {
	s     *logView
	items []*item
	// writes is the number of the first entry among those that may write, starting with 1.
	writes int64
	pairs  []pair
	// dense is the first item whose effect cannot be compacted; groups counts for each item those that it can have
	// written.
	dense  int
	groups []int
	// read is the span of revisions that were matched.
	read span
	// whole is true when no entry before the window can have written anything that is still there.
	whole bool

	byKey   map[string][]int
	byLease map[int64][]int
	// wide are entries that may begin with any key: range deletes and nested transactions.
	wide []int
	// guards are the keys that compares name.
	guards map[string]struct{}
	// lease and mod are those of the keys read so far.
	lease map[string]int64
	mod   map[string]int64
}

// window matches the entries before a place with the records there. It chooses the entries so that all their effects
// are above the compact revision: of n revisions up to the place, the last n entries that may write made the last ones.
// It is nil if there is nothing to match.
func (lv *logView) window(ctx context.Context, w *writers, upto place) *window {
	n := upto.rev - lv.floor()
	if n <= 0 || upto.writes == 0 {
		return nil
	}
	// Entries before them are included as well: they may have written the first of the records, or others like them.
	start := max(upto.writes-n+1, 1)
	win := &window{s: lv, writes: max(start-maxWindow, 1), byKey: map[string][]int{}, byLease: map[int64][]int{},
		guards: map[string]struct{}{}, lease: map[string]int64{}, mod: map[string]int64{}}
	win.items = lv.writersFrom(ctx, w, win.writes, min(start+maxWindow-1, upto.writes))
	win.dense = int(start - win.writes)
	win.whole = win.writes == 1 && lv.fromStart
	for i, it := range win.items {
		win.index(i, it.req)
	}
	from := lv.floor() + 1
	if start == 1 {
		// The log begins above the compact revision. A restart of old releases may have applied entries twice.
		from = max(from, upto.rev-2*upto.writes-1000)
	}
	win.match(from, upto.rev)
	win.chain()
	if _, ok := win.first(); !ok && len(win.guards) > 0 {
		win.learnTo(from - 1)
		win.match(from, upto.rev)
		win.chain()
	}
	return win
}

// learnTo reads what the keys of compares held at a revision. Above it, the window learns by itself. That takes a pass
// over the database, so it is done only where nothing else shows a place.
func (w *window) learnTo(rev int64) {
	clear(w.mod)
	clear(w.lease)
	for g := range w.groupsIn(span{0, rev + 1}) {
		if g.hole { // what it held may have been newer
			clear(w.mod)
			clear(w.lease)
		}
		w.learn(g)
	}
}

// writersFrom reads the entries that may write by their number, from..to.
func (lv *logView) writersFrom(ctx context.Context, w *writers, from, to int64) []*item {
	mark := (from - 1) / markEvery
	if mark >= int64(len(w.marks)) {
		return nil
	}
	var out []*item
	n := mark * markEvery
	for it, err := range lv.past(w.marks[mark]) {
		if err != nil || ctx.Err() != nil || it.entry.Index > w.until {
			break
		}
		if !mayWrite(it.req) {
			continue
		}
		if n++; n >= from {
			out = append(out, it.forMember(lv.pos).keep())
		}
		if n >= to {
			break
		}
	}
	return out
}

// index files what an entry can begin its records with.
func (w *window) index(i int, r *dumplog.Request) {
	switch {
	case r.LeaseRevoke != nil:
		w.byLease[r.LeaseRevoke.ID] = append(w.byLease[r.LeaseRevoke.ID], i)
	case r.Put != nil:
		w.byKey[string(r.Put.Key)] = append(w.byKey[string(r.Put.Key)], i)
	case r.DeleteRange != nil && len(r.DeleteRange.RangeEnd) == 0:
		w.byKey[string(r.DeleteRange.Key)] = append(w.byKey[string(r.DeleteRange.Key)], i)
	case r.DeleteRange != nil:
		w.wide = append(w.wide, i)
	case r.Txn != nil:
		w.indexTxn(i, r.Txn)
	}
}

func (w *window) indexTxn(i int, t *dumplog.TxnRequest) {
	for i := range t.Compare {
		w.guards[string(t.Compare[i].Key)] = struct{}{}
	}
	keys, wide := map[string]bool{}, false
	for _, ops := range [][]dumplog.RequestOp{t.Success, t.Failure} {
		for _, op := range ops {
			switch {
			case op.Put != nil:
				keys[string(op.Put.Key)] = true
			case op.DeleteRange != nil && len(op.DeleteRange.RangeEnd) == 0:
				keys[string(op.DeleteRange.Key)] = true
			case op.DeleteRange != nil || op.Txn != nil:
				wide = true
			}
		}
	}
	if wide {
		w.wide = append(w.wide, i)
		return
	}
	for k := range keys {
		w.byKey[k] = append(w.byKey[k], i)
	}
}

// match reads the groups of a span of revisions and keeps those that exactly one entry can have written, where that
// entry can have written no other.
func (w *window) match(from, to int64) {
	w.groups, w.pairs, w.read = make([]int, len(w.items)), nil, span{from, to + 1}
	at := make([]pair, len(w.items))
	n, idle := 0, 0
	for g := range w.groupsIn(w.read) {
		who, several := -1, false
		if !g.records[0].unread {
			who, several = w.writer(g)
		}
		strong := who >= 0 && w.strong(w.items[who].req, g)
		w.learn(g)
		switch {
		case several:
			for _, i := range w.candidates(g) {
				if couldWrite(w.items[i].req, g) {
					w.groups[i]++ // this may be its effect: no proof for another place
				}
			}
		case who >= 0:
			if w.groups[who]++; w.groups[who] == 1 {
				at[who] = pair{who, g.main, strong}
				n++
				idle = 0
			}
		}
		if idle++; n >= enoughPairs && idle > patience {
			break
		}
	}
	for i, p := range at {
		if w.groups[i] == 1 && p.rev != 0 {
			w.pairs = append(w.pairs, p)
		}
	}
}

// candidates are the entries of the window that may begin with the first record of a group.
func (w *window) candidates(g *group) []int {
	first := &g.records[0]
	out := slices.Concat(w.byKey[first.key], w.wide)
	if !first.del {
		return out
	}
	if lease, ok := w.lease[first.key]; ok {
		return append(out, w.byLease[lease]...)
	}
	for _, list := range w.byLease {
		out = append(out, list...)
	}
	return out
}

// writer is the entry of the window that can have written the group, -1 when there is none or several.
func (w *window) writer(g *group) (who int, several bool) {
	who = -1
	for _, i := range w.candidates(g) {
		if !couldWrite(w.items[i].req, g) || !w.guardFits(w.items[i].req, g) || who == i {
			continue
		}
		if who >= 0 {
			return -1, true
		}
		who = i
	}
	return who, false
}

// guardFits compares the mod revisions in compares with the keys' records so far.
func (w *window) guardFits(r *dumplog.Request, g *group) bool {
	return guardFits(r, g, func(key string, rev int64) bool {
		mod, ok := w.mod[key]
		return !ok || mod == rev
	})
}

// learn keeps mod revision and lease of the keys of a group.
func (w *window) learn(g *group) {
	for i := range g.records {
		r := &g.records[i]
		if r.unread {
			continue
		}
		if r.del {
			w.mod[r.key] = 0
			delete(w.lease, r.key)
			continue
		}
		w.mod[r.key], w.lease[r.key] = r.rev.Main, r.lease
	}
}

// chain keeps the longest run of pairs that can all be true: the entries in order of their revisions, and no more
// revisions between two of them than entries that may write.
func (w *window) chain() {
	best, from := make([]int, len(w.pairs)), make([]int, len(w.pairs))
	last := -1
	for i, p := range w.pairs {
		best[i], from[i] = 1, -1
		for j, q := range w.pairs[:i] {
			if q.rev < p.rev && p.rev-q.rev <= int64(p.entry-q.entry) && best[j] >= best[i] {
				best[i], from[i] = best[j]+1, j
			}
		}
		if last < 0 || best[i] > best[last] {
			last = i
		}
	}
	var out []pair
	for ; last >= 0; last = from[last] {
		out = append(out, w.pairs[last])
	}
	slices.Reverse(out)
	w.pairs = out
}

// strong reports whether the entry wrote the group beyond what its content says. A put always writes, unless it keeps
// what its key holds, which may not be there; a transaction that names the mod revision that its key had succeeds once.
// Deletes and other conditions can have been without effect, and an earlier one like them not.
func (w *window) strong(r *dumplog.Request, g *group) bool {
	switch {
	case r.Kind == dumplog.KindPut:
		return !keeps(r.Put)
	case r.Txn == nil:
		return false
	case len(r.Txn.Compare) == 0:
		return !slices.ContainsFunc(r.Txn.Success, func(op dumplog.RequestOp) bool {
			return op.Txn != nil || op.Put != nil && keeps(op.Put)
		}) && !slices.ContainsFunc(g.records, func(x record) bool { return x.del })
	}
	for i := range r.Txn.Compare {
		c := &r.Txn.Compare[i]
		if c.Target != apply.TargetMod || c.Result != apply.ResultEqual || len(c.RangeEnd) > 0 || c.Num == 0 {
			continue
		}
		if mod, ok := w.mod[string(c.Key)]; ok && mod == c.Num {
			return true
		}
	}
	return false
}

// keeps reports whether a put keeps the value or the lease of its key, which then must be there.
func keeps(p *dumplog.PutRequest) bool { return p.IgnoreValue || p.IgnoreLease }

// first is the place before the first entry that is matched for certain.
func (w *window) first() (place, bool) {
	at := slices.IndexFunc(w.pairs, func(p pair) bool { return p.strong || w.whole })
	if at < 0 {
		return place{}, false
	}
	p := w.pairs[at]
	return place{index: w.items[p.entry].entry.Index - 1, rev: p.rev - 1, writes: w.writes + int64(p.entry) - 1}, true
}

// lost reports whether an entry must have written a record that would still exist, whatever the state of the database
// was, and no record fits.
func (w *window) lost() bool {
	if len(w.pairs) > 0 {
		return false
	}
	from := w.dense
	if w.read.len() > 0 {
		from = min(from, w.afterRecords(w.groupsIn(w.read)))
	}
	for i := from; i < len(w.items); i++ {
		if PlainPut(w.items[i].req) && w.groups[i] == 0 && w.s.alwaysWrites(w.items[i].req, w.items[i].entry.Index) {
			return true
		}
	}
	return false
}

// afterRecords is the first item that comes after the last possible writer of some record that was matched: what it and
// later ones wrote is above that record, so it cannot be compacted.
func (w *window) afterRecords(groups iter.Seq[*group]) int {
	after := len(w.items)
	for g := range groups {
		if g.hole {
			return len(w.items)
		}
		if g.records[0].unread {
			continue
		}
		last := -1
		for i, it := range slices.Backward(w.items) {
			if couldWrite(it.req, g) {
				last = i
				break
			}
		}
		if last >= 0 {
			after = min(after, last+1)
		}
	}
	return after
}

// atFloor is the place after the entry that wrote the record at the compact revision, if that is still there: nothing
// later up to that revision wrote its key. The entry is the last one about the key and certainly wrote, or it is the
// only one that fits the record, by more than the key. Others after it that may have no effect may have written the key
// above.
func (w *window) atFloor() (place, bool) {
	floor := w.s.floor()
	for g := range w.s.groups(floor, floor) {
		b := &backwards{s: w.s, items: w.items, groups: []*group{g}}
		last := true
		for i, it := range slices.Backward(w.items) {
			if !touchesKey(it.req, []byte(g.records[0].key)) {
				continue
			}
			sure := PlainPut(it.req) && w.s.alwaysWrites(it.req, it.entry.Index)
			if !sure && !couldWrite(it.req, g) {
				last = false
				continue
			}
			only := b.guardFits(it.req, g) && b.tellingAt(i, g) &&
				!slices.ContainsFunc(w.items[:i], func(x *item) bool { return couldWrite(x.req, g) })
			mayFail := it.req.Txn != nil || it.req.Put != nil && it.req.Put.Lease != 0
			wrote := couldWrite(it.req, g) && (sure && (last || only) || mayFail && only)
			return place{index: it.entry.Index, rev: floor, writes: w.writes + int64(i)}, wrote
		}
	}
	return place{}, false
}

// counted is the place before the last entries up to another place, as far as each of them certainly wrote one
// revision, whatever the database holds there. It is false where the last entry may have had no effect.
func (w *window) counted(upto place) (place, bool) {
	i := len(w.items)
	if w.writes+int64(i)-1 != upto.writes {
		return upto, false
	}
	at := upto
	for i--; i >= w.dense && PlainPut(w.items[i].req) && w.s.alwaysWrites(w.items[i].req, w.items[i].entry.Index); i-- {
		at = place{index: w.items[i].entry.Index - 1, rev: at.rev - 1, writes: at.writes - 1}
	}
	return at, at.writes < upto.writes
}

// alwaysWrites reports whether neither auth nor an alarm can have refused a request at an entry.
func (lv *logView) alwaysWrites(r *dumplog.Request, index uint64) bool {
	return lv.passesAuth(r, index, nil) && lv.refusedByAlarm(r, index).Excluded()
}

// PlainPut reports whether a request is a put that writes in every state of the key space and of the leases.
func PlainPut(r *dumplog.Request) bool {
	p := r.Put
	return r.Kind == dumplog.KindPut && p.Lease == 0 && !keeps(p)
}

// groups yields the records of a span of revisions, one main revision at a time.
func (lv *logView) groups(from, to int64) iter.Seq[*group] {
	return groupsOf(rowsBetween(lv.m.DB.Handle, lv.m.DB.KV.BumpMarker, span{from, to + 1}, nil))
}

// groupsOf makes groups of records. One that begins with an unread record is valid until the next one.
func groupsOf(rows iter.Seq[row]) iter.Seq[*group] {
	return func(yield func(*group) bool) {
		var g *group
		hole, passing := false, new(group)
		for row := range rows {
			switch {
			case row.err != nil:
				return
			case row.hole:
				if hole = true; g != nil && g.main == row.divided {
					g = nil
				}
				continue
			case g != nil && g.main == row.rev.Main:
				g.records = append(g.records, row.record)
				continue
			case g != nil && !yield(g):
				return
			}
			if g = passing; !row.unread {
				g = new(group)
			}
			g.begin(&row.record, hole)
			hole = false
		}
		if g != nil {
			yield(g)
		}
	}
}
