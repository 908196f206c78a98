package cause

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/release"
)

var belowCompact2016 = Cause{
	ID: "revision-below-compact-2016", Title: "the current revision comes back below the compact revision",
	Doc: `3.0.0 to 3.0.12 take the revision of the newest record for the current one. After a delete, a compaction at its revision and a restart that is
below the compact revision: compactions and watches at revisions in between fail, and numbers are given twice.
A hint: the state is that of every database compacted at a trailing delete; only on data of 3.0 can it do harm.`,
	Affected: []string{"3.0.0 - 3.0.12"},
	FixedIn:  []string{"3.0.13", "3.1.0"},
	Refs:     append(refs("etcd-io/etcd", 6567, 6626), "https://github.com/etcd-io/etcd/pull/6633"),
	LookAlikes: "the same state on later releases, which count the compact revision; " +
		"revision-decrease-after-compaction-crash (the compaction is not finished)",
	Recovery: "upgrade before the next start",
	Loss:     "none",
	Match: func(in *Input) *Match {
		m := besideVerdict(byField(in, "a server of 3.0.13 or later", "K10", check.FieldBelowFinished))
		if m != nil {
			m.Certainty = Hint
		}
		return m
	},
}

var tombstoneNotIndexed = Cause{
	ID: "tombstone-only-key-not-indexed", Title: "a key of which only a tombstone was left was not indexed at a restart",
	Doc: `A compaction exactly at a delete keeps the tombstone (3.4.34, 3.5.16 and later). Up to 3.4.35 and 3.5.17 a restart does not index a key of
which nothing else is left, and the next compaction treats the record otherwise than on the members that were not restarted: tombstones
stand below a finished compaction on one member only.
A hint; the form on disk follows from the sources. Keys are not affected.`,
	Affected: []string{"3.4.34 - 3.4.35, possibly older", "3.5.16 - 3.5.17, less likely 3.5.0 - 3.5.15"},
	FixedIn:  []string{"3.4.36", "3.5.18", "3.6.0"},
	Refs: append(refs("etcd-io/etcd", 19179), "https://github.com/etcd-io/etcd/pull/19188",
		"https://github.com/etcd-io/etcd/pull/19249"),
	LookAlikes: "a compaction that was interrupted; defrag-orphan-merged, which brings back superseded puts as well; " +
		"a tombstone exactly at the compact revision",
	Recovery: "none needed; a later compaction removes them",
	Loss:     "none of data; watchers may miss a delete",
	Match: func(in *Input) *Match {
		if len(in.Findings["D07"]) > 0 || len(in.Members) > 1 && len(in.Findings["K11"]) == len(in.Members) {
			return nil
		}
		return onRelease(in, besideVerdict(proofOf(in, "K11", "the same tombstones on all members", every)),
			release.StrayTombstones, Hint, "K11")
	},
}

var restoreIndex320 = Cause{
	ID: "restore-index-damage-320", Title: "a compaction of 3.2.0 removed live keys, because the index was built " +
		"wrongly when it was loaded",
	Doc: `3.2.0 builds its key index wrongly while it loads it in parallel. A compaction after such a restart works from that index and removes records
of live keys.
A hint: on data of 3.2 one member lacks keys whose newest record on the others lies at or below its finished compaction, and nothing else differs.
That the loss goes through the compaction is inferred.`,
	Affected:   []string{"3.2.0"},
	FixedIn:    []string{"3.2.1"},
	Refs:       []string{"https://github.com/etcd-io/etcd/pull/8127"},
	LookAlikes: "rows lost with damaged pages; deletes that one member missed (they are named entry by entry)",
	Recovery:   "reseed the member from one that did not compact after a restart, or from a backup; upgrade",
	Loss:       "the keys removed by the wrong compaction",
	Match:      matchIndex320,
}

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
