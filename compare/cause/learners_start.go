package cause

import (
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/release"
)

var promotionReplay36 = Cause{
	ID: "learner-promotion-replay-36", Title: "3.6.0 to 3.6.3 do not start on this: they replay a promotion that " +
		"bucket members already shows",
	Doc: `A learner was promoted and the member restarted before its next raft snapshot. The start replays the promotion on a member list that already
shows a voter; 3.6.0 to 3.6.3 fail at that. Nothing on disk is wrong.
Strong as the reason why such a server does not start: the promotion lies between the newest snapshot and the consistent index, on data of 3.6.
That this server was tried on it no file tells.`,
	Affected: []string{"3.6.0 - 3.6.3"},
	FixedIn:  []string{"3.6.4"},
	Refs: append(refs("etcd-io/etcd", 20340), "https://github.com/etcd-io/etcd/pull/20387",
		"https://github.com/etcd-io/etcd/pull/20391"),
	LookAlikes: "learner-promotion-not-persisted, where bucket members still shows a learner; two learners at once, " +
		"which 3.6 refuses for another reason",
	Recovery: "start the member with 3.6.4 or later",
	Loss:     "none",
	Match: func(in *Input) *Match {
		m := besideVerdict(byField(in, "a server of another release than 3.6.0 to 3.6.3; a raft snapshot behind the promotion", "M14", check.FieldPromotionReplayed))
		return onRelease(in, m, release.PromotionReplayFails, Strong, "M14")
	},
}

var forcedLearnerPanic = Cause{
	ID: "force-new-cluster-learner-panic", Title: "3.4.0 to 3.4.13 do not start on this with --force-new-cluster: " +
		"the log adds a learner",
	Doc: `3.4.0 to 3.4.13 fail to start with --force-new-cluster when the log behind the newest raft snapshot adds a learner: the code that collects
the members to remove does not know that kind of change.
A hint, and named only where a forced start is near: a majority of the voters can not be started, on data of 3.4.`,
	Affected:   []string{"3.4.0 - 3.4.13"},
	FixedIn:    []string{"3.4.14", "3.5.0"},
	Refs:       []string{"https://github.com/etcd-io/etcd/pull/12288"},
	LookAlikes: "none",
	Recovery:   "force the cluster with 3.4.14 or later, or start the voters that are down",
	Loss:       "none",
	Match: func(in *Input) *Match {
		if len(in.Findings["M05"]) == 0 {
			return nil
		}
		m := besideVerdict(byField(in, "a server of 3.4.14 or later; a raft snapshot behind the addition", "M14",
			check.FieldLearnerReplayed))
		return onRelease(in, m, release.ForcedLearnerFails, Hint, "M14")
	},
}

// onRelease keeps the members whose release may follow a rule and sets the certainty.
func onRelease(in *Input, m *Match, r *release.Rule, c Certainty, checks ...string) *Match {
	if m == nil {
		return nil
	}
	out := &Match{Certainty: c, RefutedBy: m.RefutedBy, Aside: m.Aside, Because: []string{}}
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
