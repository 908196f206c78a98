package replay

import (
	"context"
	"errors"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// Emptied is an entry without data in the middle of a term that raft did not write: its data was removed from the log.
//
// A leader puts such an entry in the place of a conf change that comes before it has applied an earlier one, or what
// its log held when it was elected (raft.go, stepLeader and becomeLeader, 3.4 to 3.8). It applies what is committed one
// Ready later. A message with entries holds all that follow, up to maxBatch bytes, and a member stores each message
// with a HardState. So three times an entry and then a HardState that commits it, after one that commits the conf
// change, show that the leader had applied that.
type Emptied struct {
	dumplog.Pos
	Index, Term uint64
	// Member is the position of the member whose log it is, Pending the conf change before it, or the first entry of
	// the term or of what the log holds in one piece.
	Member  int
	Pending uint64
}

const (
	// maxBatch is below the size at which a leader splits what it sends (etcdserver/raft.go, maxSizePerMsg).
	maxBatch = 256 << 10
	// batchesApplied is how many batches show that the leader had applied what was committed before, maxBatchMarks how
	// many records are remembered to find them.
	batchesApplied = 3
	maxBatchMarks  = 512
)

// findEmptied looks at the entries without data in each log.
func findEmptied(ctx context.Context, r *Result) error {
	if len(r.Survey.emptied) == 0 {
		return nil
	}
	for i, m := range r.Members {
		if m.Member.Version.Has(release.PendingByIndex).Certain() && slices.ContainsFunc(r.Survey.emptied,
			func(e entryID) bool { return holdsEntry(m.Member, e.Term, e.Index) }) {
			if err := r.emptiedOf(ctx, i, m.Member); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *Result) emptiedOf(ctx context.Context, pos int, m *evidence.Member) error {
	var b batches
	for rec, err := range m.WAL.Log.RecordsOf(ctx, &m.WAL.Summary) {
		var d *dumplog.DamageError
		switch {
		case errors.As(err, &d):
			b = batches{}
		case err != nil:
			return err
		case rec.Type == dumplog.RecordState:
			if h, err := dumplog.DecodeHardState(rec.Data); err == nil {
				b.add(batchMark{commit: h.Commit})
			}
		case rec.Type == dumplog.RecordEntry:
			e, err := rec.Entry()
			if err == nil && b.next(&e) && len(r.Emptied) < maxEmptied {
				r.Emptied = append(r.Emptied, Emptied{Pos: e.Pos, Index: e.Index, Term: e.Term, Member: pos,
					Pending: b.pending})
			}
		}
	}
	return ctx.Err()
}

// batches follows the entries and HardStates of a log since the last conf change, the last term or the last gap.
type batches struct {
	term, last, pending uint64
	marks               []batchMark
}

// batchMark is a record: an entry with its size, or the commit index of a HardState.
type batchMark struct {
	index, commit uint64
	size          int
}

func (b *batches) add(m batchMark) {
	if len(b.marks) == maxBatchMarks {
		b.marks = slices.Delete(b.marks, 0, maxBatchMarks/2)
	}
	b.marks = append(b.marks, m)
}

// next adds an entry, and reports whether it has no data and was not written by raft.
func (b *batches) next(e *dumplog.Entry) (emptied bool) {
	if e.Term != b.term || e.Index != b.last+1 || e.Type != dumplog.EntryNormal {
		b.term, b.pending, b.marks = e.Term, e.Index, b.marks[:0]
	} else if len(e.Data) == 0 {
		emptied = b.applied()
	}
	b.last = e.Index
	b.add(batchMark{index: e.Index, size: len(e.Data)})
	return emptied
}

// applied reports whether the leader had applied the pending entry when it appended what comes next.
func (b *batches) applied() bool {
	end := len(b.marks)
	for range batchesApplied {
		state := lastMark(b.marks[:end], func(m batchMark) bool { return m.commit > 0 })
		if state < 0 {
			return false
		}
		end = lastMark(b.marks[:state], func(m batchMark) bool {
			return m.index > b.pending && m.index <= b.marks[state].commit
		})
		if end < 0 {
			return false
		}
	}
	size := 0
	for _, m := range b.marks[end:] {
		size += m.size
	}
	return size < maxBatch &&
		slices.ContainsFunc(b.marks[:end], func(m batchMark) bool { return m.commit >= b.pending })
}

// lastMark is the position of the last record that fits, -1 if none does.
func lastMark(marks []batchMark, fits func(batchMark) bool) int {
	for i := len(marks) - 1; i >= 0; i-- {
		if fits(marks[i]) {
			return i
		}
	}
	return -1
}
