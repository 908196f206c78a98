package surgery

import (
	"context"
	"fmt"

	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// setIndex moves the consistent index. Entries between the old and the new value are either never applied, or applied
// again. The replay shows which of them have an effect, and whether the database has it.
func setIndex(ctx context.Context, c *Meta, w *work) ([]datadir.Edit, error) {
	if c.ConsistentIndex == nil {
		return nil, nil
	}
	m, to := w.source(), *c.ConsistentIndex
	from := m.StoredIndex()
	if to == from {
		return nil, refusef("", "the consistent index is %d already", to)
	}
	if s := newestUsable(m); to < s {
		return nil, refusef("", "the newest raft snapshot is at %d: a server does not start on an older database", s)
	}
	if m.HasLog() && to > m.LastIndex() {
		return nil, refusef("", "the log ends at %d: entries up to %d would be skipped that are not written yet",
			m.LastIndex(), to)
	}
	edits := []datadir.Edit{datadir.SetConsistentIndex(to)}
	if t := termOf(w, to); t > 0 && m.DB.Meta.Term != nil {
		edits = append(edits, datadir.SetTerm(t))
		w.did("meta/term is set to %d, that of entry %d", t, to)
	}
	w.did("meta/consistent_index is set from %d to %d", from, to)
	if from = w.fitting(ctx); from == to {
		w.note("the database ends with entry %d: its stored index is impossible", to)
		return edits, nil
	}
	return edits, w.judgeIndex(ctx, from, to)
}

// fitting returns the consistent index that matches the source's database: the stored one, unless the replay shows that
// it is impossible.
func (w *work) fitting(ctx context.Context) uint64 {
	if _, err := replay.RunWithPlausibleIndex(ctx, w.set.Members, replay.Options{}); err != nil {
		return w.source().StoredIndex()
	}
	return w.source().ConsistentIndex()
}

func termOf(w *work, index uint64) uint64 {
	for _, m := range w.set.Members {
		if m.HasWAL() {
			if t := m.WAL.Summary.TermAt(index); t > 0 {
				return t
			}
		}
	}
	return 0
}

// judgeIndex refuses if entries would be skipped whose effect is missing, or applied again whose effect exists.
func (w *work) judgeIndex(ctx context.Context, from, to uint64) error {
	low, high := min(from, to)+1, max(from, to)
	changing, seen := 0, uint64(0)
	var at span
	first := ""
	for _, m := range w.set.Members {
		if !m.HasWAL() || seen > 0 {
			continue
		}
		for e, err := range m.WAL.Log.Entries(ctx, &m.WAL.Summary) {
			if err != nil || e.Overwritten || e.Index < low || e.Index > high {
				continue
			}
			seen++
			req, err := e.Decode()
			if err == nil && !changesState(req) {
				continue
			}
			at.to = e.Index
			if changing++; first == "" {
				at.from = e.Index
				first = fmt.Sprintf("%d/%d %s", e.Term, e.Index, req.Kind)
			}
		}
	}
	n := high - low + 1
	switch {
	case seen < n:
		return w.need(AcceptDivergence, "give the data dir, or a member whose log reaches that far, with --with",
			fmt.Sprintf("only %d of the %d entries between %d and %d can be looked at", seen, n, low, high))
	case changing == 0:
		w.note("nothing is changed by %s", entries(span{low, high}))
		return nil
	case to > from && !w.shown(ctx, at):
		w.givesUp("the effect of entries %d to %d, where the database does not hold it: they are never applied", low,
			high)
		return w.need(AcceptDivergence, "", fmt.Sprintf("of %s, %d change something, first %s; with the index raised "+
			"they are never applied here", entries(span{low, high}), changing, first))
	case to < from && !w.absent(ctx, at):
		w.givesUp("equality with the other members: entries %d to %d are applied again", low, high)
		return w.need(AcceptDivergence, "", fmt.Sprintf("of %s, %d change something and the database shows it, first "+
			"%s; with the index lowered they are applied twice", entries(span{low, high}), changing, first))
	}
	return nil
}

// changesState reports whether applying an entry can change the database.
func changesState(r *dumplog.Request) bool {
	switch r.Kind {
	case dumplog.KindEmpty, dumplog.KindRange, dumplog.KindAuthenticate, dumplog.KindAuthStatus,
		dumplog.KindAuthUserGet, dumplog.KindAuthUserList,
		dumplog.KindAuthRoleGet, dumplog.KindAuthRoleList, dumplog.KindV2, dumplog.KindClusterMemberAttrSet,
		dumplog.KindClusterVersionSet, dumplog.KindDowngradeVersionTest:
		return false
	}
	return true
}

// shown reports whether the database has the effects of all entries of a span above the consistent index (Ahead in the
// replay).
func (w *work) shown(ctx context.Context, s span) bool {
	_, m := w.replayed(ctx)
	return m != nil && m.Ahead != nil && m.Ahead.From <= s.from && m.Ahead.To >= s.to
}

func (w *work) absent(ctx context.Context, s span) bool {
	res, m := w.replayed(ctx)
	if m == nil || m.From > s.from || m.To < s.to {
		return false
	}
	missing := map[uint64]bool{}
	for _, e := range res.Events {
		if e.Outcomes[0].State == replay.Missing {
			missing[e.Index] = true
		}
	}
	for e, err := range w.source().WAL.Log.Entries(ctx, &w.source().WAL.Summary) {
		if err != nil || e.Overwritten || e.Index < s.from || e.Index > s.to || missing[e.Index] {
			continue
		}
		if req, err := e.Decode(); err != nil || changesState(req) {
			return false
		}
	}
	return true
}

// replayed replays the log over all sources and returns the result with the source's own part; both are nil if it could
// not be checked.
func (w *work) replayed(ctx context.Context) (*replay.Result, *replay.MemberResult) {
	res, err := replay.Run(ctx, w.set.Members, replay.Options{})
	if err != nil || len(res.Members) == 0 || !res.Members[0].Checked {
		return nil, nil
	}
	return res, res.Members[0]
}
