package replay

import (
	"cmp"
	"context"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// appliedRange is how far a member has applied: certainly min, possibly until. The replay may skip a gap of the log
// below min.
type appliedRange struct{ min, until uint64 }

func appliedRangeOf(m *evidence.Member) appliedRange {
	if m.IndexFrozen() {
		return appliedRange{m.AppliedMin, m.AppliedMax}
	}
	return appliedRange{m.AppliedMin, m.AppliedMin}
}

// writers counts the entries that may write keys in the last part of the log without a gap, as far as a member has
// applied. The survey collects them; logView.align asks them where to look.
type writers struct {
	appliedRange
	// first is the first index of the stretch, last the index noted last, total the number of entries that may write.
	first, last uint64
	total       int64
	// marks are the indexes of the entries 1, 1+markEvery, 1+2*markEvery, ... among those that may write.
	marks []uint64
	// alarms are the entries about alarms, each with the number of those before it that may write.
	alarms []alarmMark
}

// alarmMark is an entry about alarms and how many entries before it may write.
type alarmMark struct {
	index  uint64
	writes int64
}

// markEvery is the number of entries that may write between two marks. To find a window of the log, at most that many
// are read.
const markEvery = 256

// newWriters returns writers for every different applied range of the members.
func newWriters(r *Result) (out []*writers) {
	for _, m := range r.Members {
		at := appliedRangeOf(m.Member)
		if m.Member.HasDB() && !slices.ContainsFunc(out, func(w *writers) bool { return w.appliedRange == at }) {
			out = append(out, &writers{appliedRange: at})
		}
	}
	return out
}

// note takes the next entry.
func (w *writers) note(it *item) {
	idx := it.entry.Index
	if idx > w.until {
		return
	}
	if w.last == 0 || idx != w.last+1 && idx-1 < w.min {
		*w = writers{appliedRange: w.appliedRange, first: idx}
	}
	w.last = idx
	if it.req.Alarm != nil && len(w.alarms) < maxAlarmChanges {
		w.alarms = append(w.alarms, alarmMark{idx, w.total})
	}
	if !mayWrite(it.req) {
		return
	}
	if w.total%markEvery == 0 {
		w.marks = append(w.marks, idx)
	}
	w.total++
}

// after returns how many entries after the first one about alarms that follows an index may write. Up to that entry
// the same alarms are on. It is false if that entry is not known.
func (w *writers) after(index uint64) (n int64, known bool) {
	at, _ := slices.BinarySearchFunc(w.alarms, index+1, func(a alarmMark, index uint64) int {
		return cmp.Compare(a.index, index)
	})
	switch {
	case at < len(w.alarms):
		return w.total - w.alarms[at].writes, true
	case len(w.alarms) >= maxAlarmChanges:
		return 0, false
	}
	return 0, true
}

// mayWrite reports whether the request writes keys in any state of the key space.
func mayWrite(r *dumplog.Request) bool {
	if r.Kind != dumplog.KindTxn {
		return apply.WritesKeys(r.Kind)
	}
	return txnMayWrite(r.Txn, 0)
}

func txnMayWrite(t *dumplog.TxnRequest, depth int) bool {
	may := func(op dumplog.RequestOp) bool {
		return op.Put != nil || op.DeleteRange != nil || op.Txn != nil &&
			(depth >= apply.MaxTxnDepth || txnMayWrite(op.Txn, depth+1))
	}
	then, orElse := branches(t)
	return then && slices.ContainsFunc(t.Success, may) || orElse && slices.ContainsFunc(t.Failure, may)
}

// branches reports which branches of a transaction may be executed in some state of the key space.
func branches(t *dumplog.TxnRequest) (then, orElse bool) {
	return !slices.ContainsFunc(t.Compare, neverTrue), len(t.Compare) > 0
}

// neverTrue knows the compares that hold for no key, with which clients propose something that has no effect: no
// version and no revision is below 0.
func neverTrue(c dumplog.Compare) bool {
	switch c.Target {
	case apply.TargetVersion, apply.TargetCreate, apply.TargetMod:
		return c.Result == apply.ResultLess && c.Num <= 0 || c.Result == apply.ResultEqual && c.Num < 0
	}
	return false
}

// place is a point at which it is known which revision a database had: after the entry index its revision was rev.
// writes is how many entries of the stretch up to index may write.
type place struct {
	index  uint64
	rev    int64
	writes int64
}

// end returns the current place of the database: the consistent index moves with every write of keys, in every release.
func (lv *logView) end(w *writers) place {
	return place{index: w.until, rev: lv.m.CurrentRevision(), writes: w.total}
}

// floor is the revision above which the database holds every record that was written.
func (lv *logView) floor() int64 { return max(lv.compacted, 1) }

// align finds the first place from which on the records of the database and the entries of the log can be matched one
// by one. It is false where entries must have written records of which none is found.
func (lv *logView) align(ctx context.Context, w *writers) (at place, ok bool) {
	at = lv.end(w)
	above := lv.m.AppliedMin > lv.logEnd // entries that no log holds may have written the newest revisions
	switch {
	case w.total == 0 && above:
		return at, true
	case w.total == 0:
		return place{index: w.first - 1, rev: at.rev}, true
	}
	at.rev -= lv.unexplainedNewest(ctx, w)
	end, found := at, false
	at.rev -= lv.lost() // what the log ends with has this revision or a higher one
	for range maxAligns {
		win := lv.window(ctx, w, at)
		if win == nil {
			break
		}
		lv.dropAlarms(win)
		first, some := win.first()
		if !some {
			if found {
				break
			}
			if at, ok := win.atFloor(); ok {
				return lv.extend(ctx, w, at), true
			}
			if win.lost() {
				return win.counted(at)
			}
			break
		}
		found = true
		if first.writes >= at.writes {
			break
		}
		at = first
	}
	if !found && above {
		return end, true
	}
	return lv.extend(ctx, w, at), true
}

// maxAligns bounds how often a place is looked for further down. Each time the entries without effect since the compact
// revision are passed over but for those among them.
const maxAligns = 8
