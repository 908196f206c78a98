package datadir

import (
	"bytes"
	"context"
	"fmt"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/release"
)

// maxTail bounds the bytes of entries that a clone copies.
const maxTail = 256 << 20

// tailOf returns the committed entries after the consistent index that every clone can apply at its first start. All
// have the same outcome, since all start from the same database. They end before the first entry that cannot be copied:
//
//   - a gap or damage in the log;
//   - a conf change: the clones already have the newest member list, and servers up to 3.5 stop on adding a member
//     twice;
//   - up to 3.4 an auth entry: it may be in the database although the consistent index does not say so, and would count
//     twice.
func tailOf(ctx context.Context, m *evidence.Member, commit uint64) (tail []Entry, why string, err error) {
	if !m.HasLog() {
		return nil, "", nil
	}
	size, next := 0, m.ConsistentIndex()+1
	for e, err := range m.WAL.Log.Entries(ctx, &m.WAL.Summary) {
		if ctx.Err() != nil {
			return nil, "", ctx.Err()
		}
		if err != nil || e.Overwritten || e.Index < next || e.Index > commit {
			continue
		}
		if e.Index > next {
			return tail, fmt.Sprintf("entry %d is not in the log", next), nil
		}
		if why = blocks(&e, m.Version.Release()); why != "" {
			return tail, why, nil
		}
		if size += len(e.Data); size > maxTail {
			return tail, fmt.Sprintf("they take more than %s", plural.Size(maxTail)), nil
		}
		tail = append(tail, Entry{Type: e.Type, Term: e.Term, Index: e.Index, Data: bytes.Clone(e.Data)})
		next++
	}
	return tail, "", nil
}

func blocks(e *dumplog.Entry, v release.Version) string {
	if e.Type != dumplog.EntryNormal {
		return fmt.Sprintf("entry %d is a conf change", e.Index)
	}
	r, err := e.Decode()
	switch {
	case err != nil:
		return fmt.Sprintf("entry %d does not decode", e.Index)
	case !v.Has(release.IndexWithEveryEntry).Certain() && r.Kind.IsAuth():
		return fmt.Sprintf("entry %d changes auth and may have taken effect already", e.Index)
	}
	return ""
}

// tailNote describes what happens to the log after the consistent index.
func tailNote(m *evidence.Member, kept int, why string) []string {
	index := m.ConsistentIndex()
	last := max(m.LastIndex(), index)
	var notes []string
	if kept > 0 {
		notes = append(notes, fmt.Sprintf("the committed entries %d to %d of the log of %s follow in the new logs "+
			"and are applied at the first start", index+1, index+uint64(kept), m.Label()))
		index += uint64(kept)
	}
	if last > index {
		if why == "" && kept > 0 {
			why = "nothing proves them committed"
		}
		n := fmt.Sprintf("the last %d entries of the log of %s, %d to %d, are not in its database and are not "+
			"carried over", last-index, m.Label(), index+1, last)
		if why != "" {
			n += ": " + why
		}
		notes = append(notes, n)
	}
	return notes
}
