package cause

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
)

var changedOutsideLog = described(Cause{
	ID: RowsChangedOutsideTheLog,
	Match: func(in *Input) *Match {
		m := &Match{Certainty: Proof, RefutedBy: "an entry of the log that changes these rows; other pages in the " +
			"file before its last transaction"}
		for _, id := range []check.ID{check.A03, check.A08, check.A09, check.L01, check.L04, check.M17, check.M02,
			check.K12, check.K01} {
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
})
