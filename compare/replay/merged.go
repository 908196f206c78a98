package replay

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"iter"
	"math"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// item is one index of the merged log.
type item struct {
	entry dumplog.Entry
	req   *dumplog.Request
	err   error
	// holders are the members whose log has this very entry; others those with a different one at this index.
	holders []int
	first   [1]int // the memory of holders, mostly
	// agreed is true for an entry that was read from one log only, since all logs that reach it hold the same.
	agreed bool
	// places are where the logs of the other holders have the entry, if it does not decode.
	places []dumplog.Pos
	others map[int]*item
	// instead are the entries that members are taken to have executed, although their log holds another one, as it does
	// of a doubted entry with which that was exchanged.
	instead map[int]*item
	// unsettled stands for the entry where a member's own log does not hold the index. It is set if another version of
	// the same term is as likely.
	unsettled *item
	// slot is the memory of the item, if it can be used again.
	slot *slot
	// fault is the error that ends the log; such an item carries nothing else.
	fault error
}

// forMember returns the entry as the member's own log has it. If that does not hold the index, and two versions are
// equally likely, it is not known.
func (it *item) forMember(i int) *item {
	switch o := it.others[i]; {
	case it.instead[i] != nil:
		return it.instead[i]
	case o != nil:
		return o
	case it.unsettled != nil && !slices.Contains(it.holders, i):
		return it.unsettled
	}
	return it
}

// keep returns the entry with its own copy of the data, which stays valid.
func (it *item) keep() *item {
	kept := &item{entry: it.entry}
	kept.entry.Data = slices.Clone(it.entry.Data)
	kept.req, kept.err = kept.entry.Decode()
	return kept
}

// source is one member's effective log as a pull iterator.
type source struct {
	next func() (dumplog.Entry, error, bool)
	stop func()
	cur  dumplog.Entry
	ok   bool
	last uint64
	// to is the last index that is wanted.
	to uint64
}

// advance moves to the next effective entry. Damage was collected by Scan; here it is only passed over.
func (s *source) advance() error {
	for {
		e, err, ok := s.next()
		if !ok {
			s.ok = false
			return nil
		}
		if err != nil {
			var d *dumplog.DamageError
			if !errors.As(err, &d) {
				return err
			}
			continue
		}
		if e.Overwritten || e.Index <= s.last {
			continue
		}
		s.cur, s.ok, s.last = e, e.Index <= s.to, e.Index
		return nil
	}
}

// logSet are the members whose logs are merged. The log of one that ends names is read up to that index only. Of
// entries between which nothing else decides, that of the member with the lowest rank is taken.
type logSet struct {
	members []*evidence.Member
	ends    map[int]uint64
	ranks   []int
	doubted []Doubted
}

// rankLogs orders the logs for ties, whatever the order of the arguments: those that no new cluster was forced on come
// first.
func rankLogs(members []*evidence.Member) []int {
	order := make([]int, len(members))
	for i := range order {
		order[i] = i
	}
	forced := func(m *evidence.Member) int {
		if m.HasWAL() && len(m.WAL.Summary.ForceNewCluster) > 0 {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := members[a], members[b]
		return cmp.Or(cmp.Compare(forced(x), forced(y)), cmp.Compare(x.MemberID, y.MemberID),
			cmp.Compare(x.Label(), y.Label()))
	})
	out := make([]int, len(members))
	for rank, i := range order {
		out[i] = rank
	}
	return out
}

// rankOf is the lowest rank of those that hold a version.
func (l *logSet) rankOf(v *item) int {
	rank := len(l.members)
	for _, h := range v.holders {
		if h < len(l.ranks) {
			rank = min(rank, l.ranks[h])
		}
	}
	return rank
}

// merged yields the union of the members' effective logs in index order, each index once, decoded.
func merged(ctx context.Context, logs logSet) iter.Seq2[*item, error] {
	return mergedBetween(ctx, logs, 1, math.MaxUint64, &itemArena{})
}

// mergedBetween is merged for the indexes from..to.
func mergedBetween(ctx context.Context, logs logSet, from, to uint64, t *itemArena) iter.Seq2[*item, error] {
	return func(yield func(*item, error) bool) {
		srcs := make([]*source, len(logs.members))
		defer func() {
			for _, s := range srcs {
				if s != nil {
					s.stop()
				}
			}
		}()
		for i, m := range logs.members {
			if !m.HasWAL() {
				continue
			}
			s := &source{last: max(from, 1) - 1, to: to}
			if end, ok := logs.ends[i]; ok {
				s.to = min(to, end)
			}
			s.next, s.stop = iter.Pull2(m.WAL.Log.EntriesFrom(ctx, &m.WAL.Summary, from))
			srcs[i] = s
			if err := s.advance(); err != nil {
				yield(nil, err)
				return
			}
		}
		for {
			it, err := lowest(srcs, &logs, t)
			if it == nil && err == nil {
				return
			}
			if !yield(it, err) || err != nil {
				return
			}
		}
	}
}

// ahead reads the log in another goroutine; an error comes as the last item.
func ahead(log iter.Seq2[*item, error]) *prefetch[*item] {
	return startPrefetch(func(yield func(*item) bool) {
		for it, err := range log {
			if err != nil {
				it = &item{fault: err}
			}
			if !yield(it) || err != nil {
				return
			}
		}
	}, func(it *item) int { return len(it.entry.Data) })
}

// lowest removes the lowest index from all sources that have reached it. Of different entries, the cluster's is the
// entry that its holder knows to be committed. The term does not decide, since a lower term can win (raft paper, figure
// 8).
func lowest(srcs []*source, logs *logSet, t *itemArena) (*item, error) {
	at := -1
	for i, s := range srcs {
		if s != nil && s.ok && (at < 0 || s.cur.Index < srcs[at].cur.Index) {
			at = i
		}
	}
	if at < 0 {
		return nil, nil
	}
	index := srcs[at].cur.Index
	var versions []*item
	for i, s := range srcs {
		if s == nil || !s.ok || s.cur.Index != index {
			continue
		}
		if v := findVersion(versions, &s.cur); v != nil {
			v.holders = append(v.holders, i)
			if v.err != nil {
				v.places = append(v.places, s.cur.Pos)
			}
		} else {
			versions = append(versions, t.newItem(s.cur, i))
		}
		if err := s.advance(); err != nil {
			return nil, err
		}
	}
	kept, exchanged := logs.exchanged(versions)
	it := logs.choose(kept)
	for _, v := range exchanged {
		it.putBack(v)
	}
	if logs.isDoubted(index) {
		return it.unknown(), nil
	}
	return it, nil
}

func findVersion(versions []*item, e *dumplog.Entry) *item {
	for _, v := range versions {
		if sameEntry(&v.entry, e) {
			return v
		}
	}
	return nil
}

// doubtful reports whether hardly a server proposed this version of an entry: it does not decode, or it has no content
// although the leader of its term made others before it. raft makes such an entry of a conf change that it refuses.
func (l *logSet) doubtful(v *item) bool {
	return v.err != nil || v.isEmpty() && !slices.ContainsFunc(v.holders, func(h int) bool {
		return l.members[h].WAL.TermAt(v.entry.Index-1) != v.entry.Term
	})
}

// choose makes the committed version the item and adds the others to it. Of several committed ones it is the version of
// most members, but of one term it is one that is not doubtful. The databases then show whether that one was executed.
func (l *logSet) choose(versions []*item) *item {
	score := func(v *item) int {
		n := len(v.holders)
		for _, h := range v.holders {
			if v.entry.Index <= l.members[h].Commit {
				n += 1000
			}
		}
		return n
	}
	best := versions[0]
	for _, v := range versions[1:] {
		n := cmp.Compare(score(v), score(best))
		switch doubtful := l.doubtful(v); {
		case v.entry.Term == best.entry.Term && doubtful != l.doubtful(best):
			if !doubtful {
				best = v
			}
		case n > 0 || n == 0 && l.rankOf(v) < l.rankOf(best):
			best = v
		}
	}
	for _, v := range versions {
		if v == best {
			continue
		}
		if best.others == nil {
			best.others = map[int]*item{}
		}
		if v.entry.Term == best.entry.Term && v.err == nil && best.err == nil && score(v) == score(best) {
			best.unsettled = (&item{entry: best.entry}).unknown()
		}
		for _, h := range v.holders {
			best.others[h] = v
		}
	}
	return best
}

// sameEntry compares by meaning. Record bytes differ between raft 3.6 and 3.7 for the same entry. Data does not, except
// in the conf changes of a bootstrap or a restore: no leader sends these, each member writes its own.
func sameEntry(a, b *dumplog.Entry) bool {
	if a.Term != b.Term || a.Type != b.Type {
		return false
	}
	return bytes.Equal(a.Data, b.Data) || a.Type == dumplog.EntryConfChange && sameConfChange(a, b)
}

// sameConfChange compares the fields of two conf changes. Releases before 3.7 also write those that are 0.
func sameConfChange(a, b *dumplog.Entry) bool {
	ra, errA := a.Decode()
	rb, errB := b.Decode()
	if errA != nil || errB != nil || ra.ConfChange == nil || rb.ConfChange == nil {
		return false
	}
	x, y := ra.ConfChange, rb.ConfChange
	return x.ID == y.ID && x.Type == y.Type && x.NodeID == y.NodeID && bytes.Equal(x.Context, y.Context)
}

// noteConflict records different entries at one index if more than one of them is committed in its log.
func (r *Result) noteConflict(it *item) {
	index := it.entry.Index
	if len(it.others) == 0 || len(r.LogDiffs) >= maxLogDiffs {
		return
	}
	d, versions := LogDiff{Index: index, By: map[int]string{}}, it.versions()
	committed := map[*item]bool{}
	describe := func(i int, x *item) {
		if index <= r.Members[i].Member.Commit {
			d.By[i] = r.describeVersion(x, versions)
			committed[x] = true
		}
	}
	for _, h := range it.holders {
		describe(h, it)
	}
	for i, o := range it.others {
		describe(i, o)
	}
	if len(committed) > 1 {
		r.addVersions(&d, versions)
		r.LogDiffs = append(r.LogDiffs, d)
	}
}

// maxLogDiffs bounds the list: two logs that have diverged differ at every later index.
const maxLogDiffs = 1000

func (r *Result) logs() logSet {
	out := logSet{members: make([]*evidence.Member, len(r.Members)), ends: map[int]uint64{}, doubted: r.Doubted}
	for i, m := range r.Members {
		out.members[i] = m.Member
	}
	out.ranks = rankLogs(out.members)
	for _, s := range r.Shifts {
		for _, i := range s.Altered() {
			out.ends[i] = s.Index - 1
		}
	}
	return out
}
