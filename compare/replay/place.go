package replay

import (
	"context"
	"maps"
	"math"
	"slices"
)

// If a log reaches back to the first entry and its outcomes are certain, the place at which it meets the database
// follows from the log. An altered record can make another place look right. Then both are tried, and the place that
// explains more of the database is kept.

// unexplained counts what the replay of a member leaves open.
func (m *MemberResult) unexplained() int {
	return m.Counts[Missing] + m.Counts[Contradicted] + m.Counts[AppliedTwice] + len(m.Extra) + m.BelowCount
}

// replace replays the members again whose place contradicts a certain log, and keeps the result that explains more.
func replace(ctx context.Context, r *Result, o Options) error {
	before := map[int]int{}
	r.late = map[int]bool{}
	for i, m := range r.Members {
		if m.misplaced {
			before[i], r.late[i] = m.unexplained(), true
		}
	}
	if len(before) == 0 {
		return nil
	}
	r.blank()
	if err := simulateGroups(ctx, r, o, equivalentMembers(r, true)); err != nil {
		return err
	}
	for i, n := range before {
		if m := r.Members[i]; m.unexplained() > n || m.unexplained() == n && !m.endsShort {
			delete(r.late, i)
		}
	}
	if len(r.late) == len(before) {
		return nil
	}
	r.blank()
	return simulateGroups(ctx, r, o, equivalentMembers(r, true))
}

// fromOneBackup replays members of a restored cluster again that seem to have begun at a higher revision than another
// one. If they began where that one did, and then executed a part of the log twice after a restart, their newest
// records look as if all before them came from a backup. The place of the other one is kept if it explains everything.
func fromOneBackup(ctx context.Context, r *Result, o Options) error {
	if !restored(r) {
		return nil
	}
	r.given = lowerPlaces(r)
	for n := 0; len(r.given) != n; { // until all that are left explain everything
		n = len(r.given)
		r.blank()
		if err := simulateGroups(ctx, r, o, equivalentMembers(r, true)); err != nil {
			return err
		}
		maps.DeleteFunc(r.given, func(i int, _ place) bool {
			m := r.Members[i]
			return m.unexplained() > 0 || len(m.Reruns) == 0 || m.Unexplained != 0
		})
	}
	return nil
}

// lowerPlaces gives the members that were started again the lowest revision at which a member began at their index.
func lowerPlaces(r *Result) map[int]place {
	var low *MemberResult
	for _, m := range r.Members {
		if m.Checked && m.BaseRevision > 0 && (low == nil || m.BaseRevision < low.BaseRevision) {
			low = m
		}
	}
	given := map[int]place{}
	for i, m := range r.Members {
		if low != nil && m.Checked && m.BaseIndex == low.BaseIndex && m.BaseRevision > low.BaseRevision &&
			len(r.Survey.Starts[m.Member.MemberID]) > 1 {
			given[i] = place{index: m.BaseIndex, rev: low.BaseRevision}
		}
	}
	return given
}

// fromExplained replays members again, where logs differ, from the place at which a member began whose database its log
// explains to the end: an entry that was altered in a log can make another place look right. The place is kept where it
// explains more.
func fromExplained(ctx context.Context, r *Result, o Options) error {
	given := r.explainedPlaces()
	if len(given) == 0 {
		return nil
	}
	before, were := map[int]int{}, maps.Clone(r.given)
	for i := range given {
		before[i] = r.Members[i].unexplained()
	}
	for n := -1; len(given) != n; { // until all that are left explain more
		n = len(given)
		r.given = maps.Clone(were)
		if r.given == nil {
			r.given = map[int]place{}
		}
		maps.Copy(r.given, given)
		r.blank()
		if err := simulateGroups(ctx, r, o, equivalentMembers(r, true)); err != nil {
			return err
		}
		maps.DeleteFunc(given, func(i int, _ place) bool {
			return !r.Members[i].Checked || r.Members[i].unexplained() >= before[i]
		})
	}
	return nil
}

// explainedPlaces gives the members whose log leaves something of their database open, and that began elsewhere, the
// place of one of which it leaves nothing open.
func (r *Result) explainedPlaces() map[int]place {
	at := slices.IndexFunc(r.Members, func(m *MemberResult) bool {
		return m.Checked && m.BaseRevision > 0 && m.unexplained() == 0 && m.LastWrite > 0
	})
	if at < 0 || !r.disputed {
		return nil
	}
	from, given := r.Members[at], map[int]place{}
	for i, m := range r.Members {
		if m.Checked && m.unexplained() > 0 && m.BaseRevision > 0 && m.BaseRevision != from.BaseRevision &&
			m.Member.CompactRevision() <= from.BaseRevision && m.Member.AppliedMin > from.BaseIndex {
			given[i] = place{index: from.BaseIndex, rev: from.BaseRevision, writes: from.baseWrites}
		}
	}
	return given
}

// postpone ignores the place that the records suggest. The database takes over where, according to the log, nothing
// more is compacted.
func (be *belowPlace) postpone() { be.suggested, be.meet.index = be.meet, math.MaxUint64 }

// comeLate ends a model that has not reached the compact revision. If its outcomes were certain, the member's applied
// index is too low for the content of its database. Otherwise the suggested place is used after all.
func (be *belowPlace) comeLate() {
	switch {
	case be.suggested.index == 0:
	case be.Loose:
		be.meet = be.suggested
		be.res.BaseIndex, be.res.BaseRevision = be.meet.index, be.meet.rev
	default:
		be.meet = place{index: min(be.m.AppliedMax, be.logEnd), rev: be.m.CurrentRevision()}
		be.res.BaseIndex, be.res.BaseRevision = be.meet.index, be.meet.rev
		be.res.endsShort = true
	}
	be.arrive()
}
