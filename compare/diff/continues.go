package diff

import (
	"context"
	"fmt"
	"iter"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// Continues returns how many records of bucket key a database shares with an older one whose history it continues, as
// a cluster does that was restored from a backup: up to the last revision of the older one, neither holds a record that
// the other one should have. If one does, differs is true. Without a common record and without a difference nothing
// shows whether the history is the same: one of them cannot be read as a whole, or the newer one has compacted all
// records that the older one holds.
//
// What one of them has compacted says nothing about the other: only the records above both compact revisions must be in
// both, and of those below, the newer one must hold no other than the older one. Nor does a difference say anything if
// the records of one of them contradict themselves.
func Continues(ctx context.Context, older, newer *evidence.Member) (common int, differs bool, err error) {
	if !comparable(older) || !comparable(newer) {
		return 0, false, nil
	}
	possible := len(older.DB.KV.Violations)+len(newer.DB.KV.Violations) == 0
	last := dumpdb.Rev{Main: older.DB.KV.LastRev.Main + 1}
	compact := max(older.CompactRevision(), newer.CompactRevision())
	a, stopA := iter.Pull2(older.DB.Handle.RevisionsBetween(dumpdb.Rev{}, last))
	defer stopA()
	b, stopB := iter.Pull2(newer.DB.Handle.RevisionsBetween(dumpdb.Rev{}, last))
	defer stopB()
	old, errA, more := a()
	for rec, errB, ok := b(); ok || more; {
		if err := firstOf(ctx.Err(), errA, errB); err != nil {
			return 0, false, fmt.Errorf("compare %s with %s: %w", newer.Label(), older.Label(), err)
		}
		order := 0
		switch {
		case !more:
			order = 1
		case !ok:
			order = -1
		default:
			order = compareRevs(old.Rev, rec.Rev)
		}
		switch {
		case order < 0 && old.Main > compact, order > 0 && rec.Main > older.CompactRevision():
			return 0, possible, nil
		case order == 0 && !sameRecord(&old, &rec):
			return 0, possible, nil
		case order == 0:
			common++
		}
		if order <= 0 {
			old, errA, more = a()
		}
		if order >= 0 {
			rec, errB, ok = b()
		}
	}
	return common, false, nil
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// comparable reports whether the whole bucket key of the member can be read.
func comparable(m *evidence.Member) bool {
	return m.HasDB() && m.DB.KV != nil && !m.DB.KVDamaged
}
