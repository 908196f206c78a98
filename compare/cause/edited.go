package cause

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
)

var changedOutsideLog = Cause{
	ID: "rows-changed-outside-the-log", Title: "the last transaction of a database changed rows that no entry of the log changes",
	Doc: `A bbolt file keeps the state before its last transaction. There the member still holds what the others hold, at the same consistent index; its
last transaction changed rows of leases, users, alarms or members without an entry that does, or a record of bucket key, which no server ever
changes. The file was written by something else than a server: a database editor, a script, a repair that was done on one member only.
Proven by the two states of the file. Up to 3.4 small buckets change without the index, so only records of bucket key are told there.`,
	Affected: []string{"all"},
	LookAlikes: "an entry that was cut off in the middle (cindex-ahead-of-apply), which changes rows that the entry " +
		"at the index names",
	Recovery: "reseed the member from one that was not changed; if the change was intended, make it again through the API",
	Loss:     "the change itself",
	Match: func(in *Input) *Match {
		m := &Match{Certainty: Proof, RefutedBy: "an entry of the log that changes these rows; other pages in the " +
			"file before its last transaction"}
		for _, id := range []string{"A03", "A08", "A09", "L01", "L04", "M17", "M02", "K12"} {
			for _, f := range in.Findings[id] {
				if len(f.ByHand) == 0 || f.Severity.Rank() < check.Error.Rank() {
					continue
				}
				m.Because = append(m.Because, f.ID)
				for _, label := range f.ByHand {
					if !slices.Contains(m.Members, label) {
						m.Members = append(m.Members, label)
					}
				}
			}
		}
		if len(m.Because) == 0 {
			return nil
		}
		return m
	},
}
