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
	ID: "revision-below-compact-2016",
	Match: func(in *Input) *Match {
		m := besideVerdict(byField(in, "a server of 3.0.13 or later", "K10", check.FieldBelowFinished))
		if m != nil {
			m.Certainty = Hint
		}
		return m
	},
})

var tombstoneNotIndexed = described(Cause{
	ID: "tombstone-only-key-not-indexed",
	Match: func(in *Input) *Match {
		if len(in.Findings["D07"]) > 0 || len(in.Members) > 1 && len(in.Findings["K11"]) == len(in.Members) {
			return nil
		}
		return onRelease(in, besideVerdict(proofOf(in, "K11", "the same tombstones on all members", every)),
			release.StrayTombstones, Hint, "K11")
	},
})

var restoreIndex320 = described(Cause{
	ID:    "restore-index-damage-320",
	Match: matchIndex320,
})

// matchIndex320 wants every differing key to be absent on one member of 3.2 alone, and older than its compaction
// elsewhere.
func matchIndex320(in *Input) *Match {
	if in.Diff == nil || len(in.Findings["K01"]) == 0 || replayedWrong(in) ||
		len(in.Findings["K06"])+len(in.Findings["D02"])+len(in.Findings["A01"])+len(in.Findings["R01"])+len(in.Findings["K02"]) > 0 {
		return nil
	}
	b := in.Diff.Find("key")
	if b == nil || len(b.Rows) == 0 {
		return nil
	}
	odd := -1
	for _, row := range b.Rows {
		i := missingOn(row)
		if i < 0 || odd >= 0 && odd != i || !compactedBelow(in.Members[i], row) {
			return nil
		}
		odd = i
	}
	x := in.Members[odd]
	if x.Version.Text != "3.2.x" {
		return nil
	}
	return &Match{Certainty: Hint, Members: []string{x.Label()}, Because: ids(in, "K01", "K03"),
		RefutedBy: "an entry of the log that deletes these keys; a member that never ran 3.2.0"}
}

// replayedWrong tells whether an entry above the compact revision did not end as the log asks, on any member.
func replayedWrong(in *Input) bool {
	if in.Replay == nil {
		return false
	}
	return slices.ContainsFunc(in.Replay.Members, func(r *replay.MemberResult) bool {
		return r.FirstBad() != nil || len(r.Extra)+len(r.StateDiffs) > 0
	})
}

// missingOn is the only member without the row, -1 when it is not exactly one.
func missingOn(row diff.Row) int {
	at := slices.Index(row.Cells, nil)
	if at < 0 || slices.Contains(row.Cells[at+1:], nil) {
		return -1
	}
	return at
}

// compactedBelow tells whether the record that the others hold lies at or below what the member has compacted.
func compactedBelow(m *evidence.Member, row diff.Row) bool {
	f := m.DB.Meta.FinishedCompact
	return f != nil && !slices.ContainsFunc(row.Cells, func(c *diff.Cell) bool { return c != nil && c.Mod > f.Main })
}
