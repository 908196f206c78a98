package cause

import (
	"slices"
	"strings"

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
			e := f.Evidence[0]
			if e.Field != "isLearner" || e.Observed != "learner" {
				continue
			}
			for _, x := range in.Members {
				if slices.Contains(f.Members, x.Label()) && !holdsChange(x, string(e.Key)) &&
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

// holdsChange tells whether the member's log holds the change that made id a voter.
func holdsChange(m *evidence.Member, id string) bool {
	return !m.HasWAL() || slices.ContainsFunc(m.WAL.Conf, func(c evidence.ConfEntry) bool {
		return !c.Refused && c.Change.NodeID.String() == id && c.Change.Type == dumplog.ConfChangeAddNode
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

// quorumFindings are those that speak of IDs or learner flags in bucket members: other peer URLs, removed members or
// the cluster version move no quorum.
func quorumFindings(in *Input) []string {
	out := ids(in, check.M03, check.M07)
	for _, f := range in.Findings[check.M02] {
		seen := map[string]map[string]bool{}
		for _, e := range f.Evidence {
			what := "voter"
			switch {
			case e.Bucket != "members":
				continue
			case e.Observed == "absent":
				what = "absent"
			case strings.HasSuffix(e.Observed, " learner"):
				what = "learner"
			}
			if seen[string(e.Key)] == nil {
				seen[string(e.Key)] = map[string]bool{}
			}
			seen[string(e.Key)][what] = true
		}
		for _, kinds := range seen {
			if len(kinds) > 1 {
				out = append(out, f.ID)
				break
			}
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
