package cause

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

var promotionPropagated = described(Cause{
	ID: LearnerPromotionPropagated,
	Match: func(in *Input) *Match {
		m := &Match{Certainty: Proof, RefutedBy: "the promotion in the member's own log"}
		for _, f := range in.Findings[check.M07] {
			if !f.Is(check.KindVoterListedAsLearner) {
				continue
			}
			for _, x := range in.Members {
				if slices.Contains(f.Members, x.Label()) && !holdsChanges(x, f.Facts.About) &&
					len(x.WAL.Summary.Jumps) > 0 {
					m.Members, m.Because = append(m.Members, x.Label()), append(m.Because, f.ID)
				}
			}
		}
		if len(m.Because) == 0 {
			return nil
		}
		return m
	},
})

// holdsChanges reports whether the member's log holds, for one of the IDs at least, the change that made it a voter.
func holdsChanges(m *evidence.Member, ids []dumplog.ID) bool {
	return !m.HasWAL() || slices.ContainsFunc(m.WAL.Conf, func(c evidence.ConfEntry) bool {
		return !c.Refused && slices.Contains(ids, c.Change.NodeID) && c.Change.Type == dumplog.ConfChangeAddNode
	})
}

var bucketIsQuorum = described(Cause{
	ID: MembersBucketIsQuorum37,
	Match: func(in *Input) *Match {
		m := &Match{Certainty: Proof, Because: quorumFindings(in), RefutedBy: "equal buckets at one applied index"}
		for _, x := range in.Members {
			if !x.Version.Follows(release.QuorumFromDB) {
				continue
			}
			for _, id := range m.Because {
				if slices.Contains(membersOfID(in, id), x.Label()) {
					m.Members = append(m.Members, x.Label())
					break
				}
			}
		}
		if len(m.Members) == 0 {
			return nil
		}
		return m
	},
})

// quorumFindings are those about IDs or learner flags in bucket members. Other peer URLs, removed members or the
// cluster version do not change a quorum.
func quorumFindings(in *Input) []string {
	out := ids(in, check.M03)
	for _, f := range in.Findings[check.M07] {
		if !f.Is(check.KindMemberListedAndRemoved) || !configured(in, f) {
			out = append(out, f.ID)
		}
	}
	for _, f := range in.Findings[check.M02] {
		if f.Facts.VotersDiffer {
			out = append(out, f.ID)
		}
	}
	return out
}

// membersOfID are the members of one finding.
func membersOfID(in *Input, id string) []string {
	for _, fs := range in.Findings {
		for _, f := range fs {
			if f.ID == id {
				return f.Members
			}
		}
	}
	return nil
}
