package cause

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
)

var mvccContradiction = described(Cause{
	ID: "mvcc-record-contradiction",
	Match: func(in *Input) *Match {
		m := aside(in, "K04", "the same records read from another copy of this database",
			func(check.Finding) bool { return true })
		if m != nil {
			// Where the log or other members show what should be there, that says more than the state of the file.
			m.Secondary = len(in.Findings["K01"])+len(in.Findings["K03"]) > 0 &&
				!slices.ContainsFunc(in.Findings["K04"], check.Undecodable)
		}
		return m
	},
})

var revisionDecrease = described(Cause{
	ID: "revision-decrease-after-compaction-crash",
	Match: func(in *Input) *Match {
		m := aside(in, "K10", "a record at the scheduled revision; a finished compaction",
			func(f check.Finding) bool { return fieldIs(f, []string{"scheduledCompactRev"}) })
		if done := aside(in, "K10", "contents that differ in more than revision numbers",
			func(f check.Finding) bool { return f.Severity == check.Critical }); done != nil {
			m, done.Certainty, done.Secondary = done, Strong, false
			m.Because = append(m.Because, ids(in, "K03", "K02", "K01")...)
		}
		return m
	},
})

var tombstoneDropped = described(Cause{
	ID: "tombstone-dropped-at-compact-revision",
	Match: func(in *Input) *Match {
		if len(in.Findings["K01"]) > 0 {
			return nil
		}
		return aside(in, "K07", "the key of one of the tombstones alive on a member",
			func(check.Finding) bool { return true })
	},
})
