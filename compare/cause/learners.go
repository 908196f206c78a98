package cause

import (
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

var promotionPropagated = Cause{
	ID: "learner-promotion-propagated", Title: "a wrong learner flag reached further members by snapshot",
	Doc: `A member of 3.5.1 to 3.5.19 kept the flag of a promoted learner in bucket members (learner-promotion-not-persisted). Members that were added or
replaced later received its database, flag included, although they never applied the promotion themselves: releases that would have written it
correctly show the same wrong bucket.
Proven on a member whose log does not hold the promotion, because it began with a snapshot from behind it.`,
	Affected:   []string{"3.5.20 - 3.5.23 in clusters that once ran 3.5.19 or older"},
	FixedIn:    []string{"3.5.24"},
	Refs:       refs("etcd-io/etcd", 20793),
	LookAlikes: "learner-promotion-not-persisted: there the log of the member holds the promotion",
	Recovery:   "restart all members on 3.5.24 or later, verify the buckets, then upgrade",
	Loss:       "none of data; an upgrade is blocked or changes the quorum",
	Match: func(in *Input) *Match {
		m := &Match{Certainty: Proof, RefutedBy: "the promotion in the member's own log"}
		for _, f := range in.Findings["M07"] {
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
}

// holdsChange tells whether the member's log holds the change that made id a voter.
func holdsChange(m *evidence.Member, id string) bool {
	return !m.HasWAL() || slices.ContainsFunc(m.WAL.Conf, func(c evidence.ConfEntry) bool {
		return !c.Refused && c.Change.NodeID.String() == id && c.Change.Type == dumplog.ConfChangeAddNode
	})
}

var bucketIsQuorum = Cause{
	ID: "members-bucket-is-quorum-37", Title: "bucket members differs between members of 3.7, which count their " +
		"quorum by it",
	Doc: `From 3.7 on a server builds raft's voters from bucket members at every start. A row that is wrong or missing on one member, left by an older
release, a restore or an edit, then gives that member another majority than the others have: in the worst case two decisions at once.
Proven as a hazard by buckets of 3.7 that differ in members or learner flags at one applied index, or that contradict raft's configuration.`,
	Affected:   []string{"3.7.0 and later, by design"},
	Refs:       refs("etcd-io/etcd", 20187),
	LookAlikes: "members that have applied a conf change and members that have not yet",
	Recovery: "reseed the odd member; on older releases repair the bucket before the upgrade (start once on 3.5.26 " +
		"or later, or on 3.6)",
	Loss: "none yet; contradicting decisions are possible",
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
}

// quorumFindings are those that speak of IDs or learner flags in bucket members: other peer URLs, removed members or
// the cluster version move no quorum.
func quorumFindings(in *Input) []string {
	out := ids(in, "M03", "M07")
	for _, f := range in.Findings["M02"] {
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
