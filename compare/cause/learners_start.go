package cause

import (
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/release"
)

var promotionReplay36 = described(Cause{
	ID: LearnerPromotionReplay36,
	Match: func(in *Input) *Match {
		m := besideVerdict(byKind(in, "a server of another release than 3.6.0 to 3.6.3; a raft snapshot "+
			"after the promotion", check.KindPromotionReplayed))
		return onRelease(in, m, release.PromotionReplayFails, Strong, check.M14)
	},
})

var forcedLearnerPanic = described(Cause{
	ID: ForceNewClusterLearnerPanic,
	Match: func(in *Input) *Match {
		if !in.found(check.M05) {
			return nil
		}
		m := besideVerdict(byKind(in, "a server of 3.4.14 or later; a raft snapshot after the addition",
			check.KindLearnerReplayed))
		return onRelease(in, m, release.ForcedLearnerFails, Hint, check.M14)
	},
})

// onRelease keeps the members whose release may follow a rule and sets the certainty.
func onRelease(in *Input, m *Match, r *release.Rule, c Certainty, checks ...check.ID) *Match {
	if m == nil {
		return nil
	}
	out := &Match{Certainty: c, RefutedBy: m.RefutedBy, Secondary: m.Secondary, Because: []string{}}
	for _, label := range m.Members {
		if x := in.member(label); x != nil && x.Version.MayFollow(r) {
			out.Members, out.Because = append(out.Members, label), append(out.Because, idsOf(in, label, checks...)...)
		}
	}
	if len(out.Members) == 0 {
		return nil
	}
	return out
}
