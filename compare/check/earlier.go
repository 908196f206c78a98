package check

import (
	"context"

	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// earlierStates keeps the databases as they were before their last transaction, and their rows.
type earlierStates struct {
	before     map[*evidence.Member]*evidence.Member
	beforeRows map[beforeKey]map[string]string
	records    map[*evidence.Member]*recordWindow
}

type beforeKey struct {
	m      *evidence.Member
	bucket string
	kind   diff.RowKind
}

// stateBefore returns the member before its last transaction, nil if that state proves nothing; see
// evidence.Member.Before.
func (es *earlierStates) stateBefore(m *evidence.Member) *evidence.Member {
	b, ok := es.before[m]
	if !ok {
		if es.before == nil {
			es.before, es.beforeRows = map[*evidence.Member]*evidence.Member{}, map[beforeKey]map[string]string{}
		}
		b = m.Before()
		es.before[m] = b
	}
	return b
}

// rowsBefore are the rows of a small bucket before the member's last transaction.
func (es *earlierStates) rowsBefore(m *evidence.Member, bucket string, kind diff.RowKind) map[string]string {
	k := beforeKey{m, bucket, kind}
	rows, ok := es.beforeRows[k]
	if !ok {
		rows = diff.RowsOf(es.stateBefore(m), bucket, kind)
		es.beforeRows[k] = rows
	}
	return rows
}

// recordBefore returns a record that a member held before its last transaction, nil when it does not exist, does not
// decode, or that state proves nothing.
func (es *earlierStates) recordBefore(ctx context.Context, m *evidence.Member, rev dumpdb.Rev) *diff.RecordCell {
	before := es.stateBefore(m)
	if before == nil {
		return nil
	}
	w := es.records[m]
	if w == nil {
		if es.records == nil {
			es.records = map[*evidence.Member]*recordWindow{}
		}
		w = &recordWindow{m: before}
		es.records[m] = w
	}
	return w.at(ctx, rev)
}

// recordWindow reads single records of a database. Those asked for one after the other are read together: where all
// records differ, each would cost a way through the tree.
type recordWindow struct {
	m *evidence.Member
	// next is the first main revision that was not read, width how many revisions were read last.
	next, width int64
	records     map[dumpdb.Rev]*diff.RecordCell
}

// nearby is how far behind what was read a revision may be to be one of a row of them, in revisions.
const nearby = 16

// maxWindow is how many revisions are read together at most. Of a revision in which a transaction wrote many keys, each
// record is described, asked for or not.
const maxWindow = 64

func (w *recordWindow) at(ctx context.Context, rev dumpdb.Rev) *diff.RecordCell {
	if rev.Main < w.next-w.width || rev.Main >= w.next {
		w.read(ctx, rev.Main)
	}
	return w.records[rev]
}

func (w *recordWindow) read(ctx context.Context, from int64) {
	if w.width > 0 && from >= w.next && from < w.next+nearby {
		w.width = min(2*w.width, maxWindow)
	} else {
		w.width = 1
	}
	w.next, w.records = from+w.width, map[dumpdb.Rev]*diff.RecordCell{}
	for rec, err := range w.m.DB.Handle.Query(ctx, dumpdb.Query{FromRev: from, ToRev: w.next - 1}) {
		if err == nil && rec.Err == nil && w.records[rec.Rev] == nil {
			w.records[rec.Rev] = diff.CellOf(w.m, &rec)
		}
	}
}

// compactedSince reports whether the member's last transaction may have compacted records.
func (es *earlierStates) compactedSince(m *evidence.Member) bool {
	was, now := &es.stateBefore(m).DB.Meta, &m.DB.Meta
	return !sameRev(was.ScheduledCompact, now.ScheduledCompact) || !sameRev(was.FinishedCompact, now.FinishedCompact) ||
		!sameRev(now.ScheduledCompact, now.FinishedCompact)
}

func sameRev(a, b *dumpdb.Rev) bool { return a == b || a != nil && b != nil && *a == *b }

// lackedBefore reports whether it is certain that the member did not hold a record before its last transaction although
// it held a later one. A server writes its records in the order of their revisions.
func (es *earlierStates) lackedBefore(ctx context.Context, m *evidence.Member, rev dumpdb.Rev) bool {
	before := es.stateBefore(m)
	if before == nil {
		return false
	}
	for rec, err := range before.DB.Handle.Query(ctx, dumpdb.Query{FromRev: rev.Main}) {
		switch {
		case err != nil || rec.Err != nil || rec.Rev == rev:
			return false
		case rec.Rev.Main > rev.Main:
			return true
		}
	}
	return false
}
