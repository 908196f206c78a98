package cause

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/release"
)

var belowCompact2016 = described(Cause{
	ID: RevisionBelowCompact2016,
	Match: func(in *Input) *Match {
		m := besideVerdict(byKind(in, "a server of 3.0.13 or later", check.KindRevisionBelowFinished))
		if m != nil {
			m.Certainty = Hint
		}
		return m
	},
})

var tombstoneNotIndexed = described(Cause{
	ID: TombstoneOnlyKeyNotIndexed,
	Match: func(in *Input) *Match {
		if in.found(check.D07) || len(in.Members) > 1 && len(in.Findings[check.K11]) == len(in.Members) {
			return nil
		}
		return onRelease(in, besideVerdict(proofOf(in, check.K11, "the same tombstones on all members", every)),
			release.StrayTombstones, Hint, check.K11)
	},
})

var restoreIndex320 = described(Cause{
	ID:    RestoreIndexDamage320,
	Match: matchIndex320,
})

// matchIndex320 requires every differing key to be absent on one member of 3.2 alone, and older than its compaction
// elsewhere.
func matchIndex320(in *Input) *Match {
	if in.Diff == nil || !in.found(check.K01) || replayedWrong(in) ||
		in.found(check.K06, check.D02, check.A01, check.R01, check.K02) {
		return nil
	}
	b := in.Diff.Find("key")
	if b == nil || len(b.Rows) == 0 {
		return nil
	}
	odd := -1
	for _, row := range b.Rows {
		i := missingOn(in.Diff, row)
		if i < 0 || odd >= 0 && odd != i || !compactedBelow(in.Members[i], row) {
			return nil
		}
		odd = i
	}
	x := in.Members[odd]
	if !mayAffect(RestoreIndexDamage320, x) {
		return nil
	}
	return &Match{Certainty: Hint, Members: []string{x.Label()}, Because: ids(in, check.K01, check.K03),
		RefutedBy: "an entry of the log that deletes these keys; a member that never ran 3.2.0"}
}

// replayedWrong reports whether an entry above the compact revision did not end as the log asks, on any member.
func replayedWrong(in *Input) bool {
	if in.Replay == nil {
		return false
	}
	return slices.ContainsFunc(in.Replay.Members, func(r *replay.MemberResult) bool {
		return r.FirstBad() != nil || len(r.Extra)+len(r.StateDiffs) > 0
	})
}

// missingOn is the only compared member without the row, -1 when it is not exactly one.
func missingOn(d *diff.Result, row diff.Row) int {
	missing := -1
	for i, c := range row.Cells {
		switch {
		case c != nil || !d.TookPart("key", i):
		case missing >= 0:
			return -1
		default:
			missing = i
		}
	}
	return missing
}

// compactedBelow reports whether the record that the others hold is at or below the member's compact revision.
func compactedBelow(m *evidence.Member, row diff.Row) bool {
	f := m.DB.Meta.FinishedCompact
	return f != nil && !slices.ContainsFunc(row.Cells, func(c *diff.Cell) bool { return c != nil && c.Mod > f.Main })
}
