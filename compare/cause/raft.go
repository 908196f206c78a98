package cause

import (
	"cmp"
	"math"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
)

var belowQuorum = described(Cause{
	ID: CommittedEntryBelowQuorum,
	Match: func(in *Input) *Match {
		if !in.found(check.R07) {
			return nil
		}
		m := &Match{Certainty: Hint, Secondary: true, Members: membersOf(in, check.R07), Because: ids(in, check.R07),
			RefutedBy: "copies of the same members, taken after they stopped, that hold the entry"}
		switch f := in.Findings[check.R07][0]; {
		case f.Is(check.KindBelowQuorumLogsLost):
			m.Certainty, m.Secondary = Proof, false
		case f.Is(check.KindBelowQuorumLogsOlder):
			m.Certainty, m.Secondary = Strong, false
		}
		return weigh(in, m)
	},
})

var logDivergence = described(Cause{
	ID: RaftLogDivergence,
	Match: func(in *Input) *Match {
		return proofOf(in, check.R01, "the same entry in both logs, read from other copies",
			func(f check.Finding) bool { return !isAltered(f) && !f.Is(check.KindForcedApart) })
	},
})

var logEntryAltered = described(Cause{
	ID: LogEntryAltered,
	Match: func(in *Input) *Match {
		m := proofOf(in, check.R01, "the same entry in another copy of this log", isAltered)
		if m == nil {
			return cmp.Or(alteredInOne(in), alteredAlone(in))
		}
		m.Certainty = Strong
		if slices.ContainsFunc(in.Findings[check.R01],
			func(f check.Finding) bool { return isAltered(f) && len(f.Members) > 1 }) {
			m.Certainty = Hint
		}
		return m
	},
})

// alteredInOne matches what one log shows of itself: an entry whose term does not fit its neighbors, entries that are
// gone or there twice.
func alteredInOne(in *Input) *Match {
	m := byKind(in, "a HardState of that term, another copy of this log with the same entry", check.KindTermAltered,
		check.KindCommitAheadOfLog, check.KindRequestRepeated, check.KindStampAltered, check.KindEntryEmptied)
	if m != nil {
		m.Certainty = Strong
	}
	return m
}

// alteredAlone matches an entry of the only logs that hold it, against which more databases agree.
func alteredAlone(in *Input) *Match {
	if in.Replay == nil || in.found(check.R01) {
		return nil
	}
	m := &Match{Certainty: Hint, Because: ids(in, check.K03),
		RefutedBy: "the same entry in another copy of this log, or another database with what it writes"}
	for i := range in.Replay.Doubted {
		for _, pos := range in.Replay.Doubted[i].Logs {
			if label := in.Members[pos].Label(); !slices.Contains(m.Members, label) {
				m.Members = append(m.Members, label)
			}
		}
	}
	if len(m.Members) == 0 || len(m.Because) == 0 {
		return nil
	}
	return m
}

func isAltered(f check.Finding) bool {
	return f.Is(check.KindEntriesAltered, check.KindEntriesRenumbered)
}

var twoLeaders = described(Cause{
	ID: TwoLeadersOneTerm,
	Match: func(in *Input) *Match {
		if !in.found(check.R05) {
			return nil
		}
		m := &Match{Certainty: Proof, Members: membersOf(in, check.R05), Because: ids(in, check.R05),
			RefutedBy: "other copies of the logs in which the term begins at one index"}
		if !haveCommonEntry(in, m.Members) {
			m.Certainty, m.RefutedBy = Hint, "data dirs of two clusters with the same IDs, as around a restore"
		}
		return m
	},
})

// haveCommonEntry reports whether the logs of two of these members hold an entry of one index and term below the
// first one that differs, after those with which a cluster is founded. Without one, nothing shows that they are of
// one cluster.
func haveCommonEntry(in *Input, names []string) bool {
	differ := uint64(math.MaxUint64)
	if in.Replay != nil {
		for _, d := range slices.Concat(in.Replay.LogDiffs, in.Replay.SameTerm) {
			differ = min(differ, d.Index)
		}
	}
	for _, f := range in.Findings[check.R05] {
		differ = min(differ, f.At.Index)
	}
	for i, a := range in.Members {
		for _, b := range in.Members[:i] {
			if !slices.Contains(names, a.Label()) || !slices.Contains(names, b.Label()) || !a.HasLog() || !b.HasLog() {
				continue
			}
			at := max(a.WAL.Summary.FirstIndex, b.WAL.Summary.FirstIndex,
				min(check.BootstrapVoters(a), check.BootstrapVoters(b))+1)
			if at < differ && a.WAL.Holds(at) && b.WAL.Holds(at) && a.WAL.TermAt(at) == b.WAL.TermAt(at) {
				return true
			}
		}
	}
	return false
}

var doubleVote = described(Cause{
	ID: DoubleVote,
	Match: func(in *Input) *Match {
		if !in.found(check.R06) {
			return nil
		}
		return &Match{Certainty: Proof, Members: membersOf(in, check.R06), Because: ids(in, check.R06),
			RefutedBy: "other copies of the log without one of the two records"}
	},
})

var hardStateRegress = described(Cause{
	ID: HardstateRegress,
	Match: func(in *Input) *Match {
		return byKind(in, "a copy of the log in which they rise", check.KindCommitFalls, check.KindTermFalls,
			check.KindVoteAltered)
	},
})

var jointConfig = described(Cause{
	ID: JointConfigLeft,
	Match: func(in *Input) *Match {
		if !in.found(check.R09) {
			return nil
		}
		return &Match{Certainty: Strong, Members: membersOf(in, check.R09), Because: ids(in, check.R09),
			RefutedBy: "a release of etcd that proposes joint changes"}
	},
})
