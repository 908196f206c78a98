package cause

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

var belowQuorum = Cause{
	ID: "committed-entry-below-quorum", Title: "fewer logs than a majority hold a committed entry",
	Doc: `An entry was committed, so a majority of the voters held it in a synced log. Now the logs of so many of them end before it that no majority can
hold it: they were wiped, put back to an older copy, or written without fsync. A leader without the entry can be elected, and what a client
was told is then gone.
Proven when one of the members without the entry shows that it had it: its own commit index or database lies beyond its log, it was wiped, or its
log is damaged. Strong when one of them must have voted or served behind the end of its log: it was put back to an older copy, or copied long before
the others. A hint otherwise: sources that were copied one after the other from running members look the same.`,
	LookAlikes: "sources that were copied at different moments while the members ran; learners, which do not count; " +
		"a change of configuration, which moves the majority",
	Recovery: "start none of the members without the entry; use the one with the highest commit index as the " +
		"source for all",
	Loss: "the entries, if a leader without them was elected",
	Match: func(in *Input) *Match {
		if len(in.Findings["R07"]) == 0 {
			return nil
		}
		m := &Match{Certainty: Hint, Aside: true, Members: membersOf(in, "R07"), Because: ids(in, "R07"),
			RefutedBy: "copies of the same members, taken after they stopped, that hold the entry"}
		switch f := in.Findings["R07"][0]; {
		case fieldIs(f, []string{check.FieldLogsLost}):
			m.Certainty, m.Aside = Proof, false
		case fieldIs(f, []string{check.FieldLogsOlder}):
			m.Certainty, m.Aside = Strong, false
		}
		return weigh(in, m)
	},
}

var logDivergence = Cause{
	ID: "raft-log-divergence", Title: "two logs hold different committed entries at one index",
	Doc: `Two members committed different entries at one index, and no twin cluster, copied data dir or forced start explains it: votes or entries were
lost on a majority (no fsync, a rolled back volume), or memory or disk changed a log while it was written.
Proven by the two entries, both at or below the commit index of the log that holds them.`,
	LookAlikes: "entries above the commit index, which a later leader may replace; same-token-twin-clusters; " +
		"data-dir-cloned-running-twice; force-new-cluster",
	Recovery: "never let the members meet; choose the history by what clients know; reseed the others from it",
	Loss:     "one of the histories",
	Match: func(in *Input) *Match {
		return proofOf(in, "R01", "the same entry in both logs, read from other copies",
			func(f check.Finding) bool { return !isAltered(f) })
	},
}

var logEntryAltered = Cause{
	ID: "log-entry-altered", Title: "an entry of one log was altered",
	Doc: `The logs agree before and after the entry, so one leader made them all, and one log holds another entry at that index. The CRC chain holds:
memory altered the entry before it was written, or somebody edited the log and wrote new CRCs. A server does not notice, and executes the altered
entry when it applies its log again.
Strong where the log differs from most others, or where the member's own database holds another effect than the entry in its log. A hint with
two logs of which nothing tells the altered one.`,
	LookAlikes: "two leaders in one term and two clusters of one name, whose logs go on to differ; an altered " +
		"database (value-bytes-altered), beside which the logs agree",
	Recovery: "reseed the member; test the memory of its machine",
	Loss:     "none, the other logs hold the entry",
	Match: func(in *Input) *Match {
		m := proofOf(in, "R01", "the same entry in another copy of this log", isAltered)
		if m == nil {
			return nil
		}
		m.Certainty = Strong
		if slices.ContainsFunc(in.Findings["R01"],
			func(f check.Finding) bool { return isAltered(f) && len(f.Members) > 1 }) {
			m.Certainty = Hint
		}
		return m
	},
}

func isAltered(f check.Finding) bool { return fieldIs(f, []string{check.FieldAltered}) }

var twoLeaders = Cause{
	ID: "two-leaders-one-term", Title: "two leaders proposed entries in one term",
	Doc: `A term has one leader. Here two logs hold a beginning of one term at different indexes, or different entries of one term at one index, even if
none of them was committed. A vote was forgotten or given twice, or the logs belong to two clusters.`,
	LookAlikes: "entries of different terms above the commit index, which are normal",
	Recovery: "as for raft-log-divergence: find out which member's votes were lost first (double-vote, " +
		"data-dir-cloned-running-twice)",
	Loss: "one of the histories",
	Match: func(in *Input) *Match {
		if len(in.Findings["R05"]) == 0 {
			return nil
		}
		return &Match{Certainty: Proof, Members: membersOf(in, "R05"), Because: ids(in, "R05"),
			RefutedBy: "other copies of the logs in which the term begins at one index"}
	},
}

var doubleVote = Cause{
	ID: "double-vote", Title: "a member voted for two candidates in one term",
	Doc: `The HardStates of one member name two candidates in one term. It forgot its first vote: its data dir was put back to an older copy, or was
copied and ran twice, or the log was written without fsync.`,
	LookAlikes: "a HardState without a vote that is followed by one with a vote",
	Recovery:   "remove the member and add it again with an empty dir; look for two leaders in that term",
	Loss:       "raft's safety is in doubt from that term on",
	Match: func(in *Input) *Match {
		if len(in.Findings["R06"]) == 0 {
			return nil
		}
		return &Match{Certainty: Proof, Members: membersOf(in, "R06"), Because: ids(in, "R06"),
			RefutedBy: "other copies of the log without one of the two records"}
	},
}

var hardStateRegress = Cause{
	ID: "hardstate-regress", Title: "the HardStates of one log contradict each other",
	Doc: `Records of one log carry terms or commit indexes that fall, or votes that no member can have given. etcd never writes them so: segments of
different age were put together, memory altered a record before it was written, or the file was edited.`,
	LookAlikes: "none known: a server takes both over from the last HardState when it starts",
	Recovery:   "find out by the CRC chain which segments belong together; reseed the member",
	Loss:       "what the newer records held and the older ones do not",
	Match: func(in *Input) *Match {
		return byField(in, "a copy of the log in which they rise", "R08", "HardState.commit",
			string(dumplog.DamageTermOrder), check.FieldVote)
	},
}

var jointConfig = Cause{
	ID: "joint-config-left", Title: "a joint configuration is stored",
	Doc: `A snapshot or meta/confState names outgoing voters or learners to come. etcd's server never proposes a joint change, so something else wrote it,
or it is damage.`,
	LookAlikes: "none known",
	Recovery:   "look at it by hand; reseed the member from one with a simple configuration",
	Loss:       "none",
	Match: func(in *Input) *Match {
		if len(in.Findings["R09"]) == 0 {
			return nil
		}
		return &Match{Certainty: Strong, Members: membersOf(in, "R09"), Because: ids(in, "R09"),
			RefutedBy: "a release of etcd that proposes joint changes"}
	},
}
