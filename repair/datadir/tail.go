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

// LeftOut are committed entries in the log of a member that its clones do not get.
type LeftOut struct {
	From, To uint64
	// Writes counts those that write keys or leases, or may do so.
	Writes int
	Why    string
}

// LeftOutOf returns the committed entries that clones of a member lack, nil for none. commit is as in CloneOptions.
func LeftOutOf(ctx context.Context, m *evidence.Member, commit uint64) (*LeftOut, error) {
	_, left, err := tailOf(ctx, m, max(m.Commit, commit))
	return left, err
}

// tailOf returns the committed entries after the consistent index that every clone can apply at its first start. All
// have the same outcome, since all start from the same database. An empty entry takes the place of a conf change: the
// clones already have the newest member list, and servers up to 3.5 stop on adding a member twice. The entries end
// before the first one that cannot be copied, and left says why:
//
//   - a gap or damage in the log;
//   - a conf change that the member list may lack;
//   - up to 3.4 a change of users or roles: it may be in the database although the consistent index does not say so,
//     and would count twice.
func tailOf(ctx context.Context, m *evidence.Member, commit uint64) (tail []Entry, left *LeftOut, err error) {
	if !m.HasLog() {
		return nil, nil, nil
	}
	size, next, end := 0, m.ConsistentIndex()+1, min(commit, m.LastIndex())
	for e, err := range m.WAL.Log.Entries(ctx, &m.WAL.Summary) {
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		if err != nil || e.Overwritten || e.Index < next || e.Index > end {
			continue
		}
		if left == nil {
			left = fits(&e, m, next, size+len(e.Data))
		}
		if left != nil {
			left.count(&e, next)
			next = e.Index + 1
			continue
		}
		c := Entry{Type: dumplog.EntryNormal, Term: e.Term, Index: e.Index}
		if e.Type == dumplog.EntryNormal {
			c.Data = bytes.Clone(e.Data)
		}
		size += len(c.Data)
		tail, next = append(tail, c), next+1
	}
	if next <= end {
		if left == nil {
			left = &LeftOut{From: next, Why: fmt.Sprintf("entry %d is not in the log", next)}
		}
		left.Writes += int(end + 1 - next)
	}
	if left != nil {
		left.To = end
	}
	return tail, left, nil
}

// fits says why the entry that should have index next cannot be copied, nil if it can. size is that of all together.
func fits(e *dumplog.Entry, m *evidence.Member, next uint64, size int) *LeftOut {
	why := ""
	switch {
	case e.Index > next:
		why = fmt.Sprintf("entry %d is not in the log", next)
	case e.Type != dumplog.EntryNormal && (e.Index > m.Commit || !m.ConfigurationCurrent()):
		why = fmt.Sprintf("entry %d is a conf change", e.Index)
	case e.Type == dumplog.EntryNormal:
		why = blocks(e, m.Version.Release())
	}
	if why == "" && size > maxTail {
		why = fmt.Sprintf("they take more than %s", plural.Size(maxTail))
	}
	if why == "" {
		return nil
	}
	return &LeftOut{From: next, Why: why}
}

// count counts an entry that is left out. Those before it that are not in the log may write too.
func (l *LeftOut) count(e *dumplog.Entry, next uint64) {
	l.Writes += int(e.Index - next)
	if e.Type != dumplog.EntryNormal {
		return
	}
	if r, err := e.Decode(); err != nil || r.Kind.IsKV() || r.Kind.IsLease() {
		l.Writes++
	}
}

func blocks(e *dumplog.Entry, v release.Version) string {
	r, err := e.Decode()
	switch {
	case err != nil:
		return fmt.Sprintf("entry %d does not decode", e.Index)
	case !v.Has(release.IndexWithEveryEntry).Certain() && r.Kind.ChangesAuth():
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
