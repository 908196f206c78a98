package cause

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

var wipedMember = described(Cause{
	ID: WipedMemberRejoinedSameID,
	Match: func(in *Input) *Match {
		if !in.found(check.M04) {
			return nil
		}
		return weigh(in, &Match{Certainty: Proof, Members: membersOf(in, check.M04), Because: ids(in, check.M04),
			RefutedBy: "a conf change that added this ID after the last entry the member proposed"})
	},
})

var quorumLostAfterAdd = described(Cause{
	ID: QuorumLostAfterMemberAdd,
	Match: func(in *Input) *Match {
		for _, f := range in.Findings[check.M05] {
			if f.Class != check.ClassMembership {
				continue
			}
			m := &Match{Certainty: Strong, Members: f.Members, Because: ids(in, check.M05),
				RefutedBy: "the voter answers at its peer URL, or has its own data dir"}
			if f.Facts.VotersAbsent {
				m.Certainty, m.RefutedBy = Hint, m.RefutedBy+"; the voters that are not among the sources run"
			}
			return m
		}
		return nil
	},
})

var promotionNotPersisted = described(Cause{
	ID: LearnerPromotionNotPersisted,
	Match: func(in *Input) *Match {
		return learnerDrift(in, check.KindVoterListedAsLearner, "a conf change that made it a learner again")
	},
})

var updateDropsLearner = described(Cause{
	ID: MemberUpdateDropsLearner,
	Match: func(in *Input) *Match {
		m := learnerDrift(in, check.KindLearnerListedAsVoter, "a promotion of the member")
		if m == nil {
			return nil
		}
		switch updatedAfterAdd(in, m) {
		case excluded:
			return nil
		case damaged:
			m.Certainty, m.Secondary = Hint, true // not ruled out, but nothing speaks for it
		case unseen:
			m.Certainty = Hint // what remains of the log does not hold the update
		}
		return m
	},
})

// learnerDrift matches findings of M07 in which bucket members says the opposite of raft.
func learnerDrift(in *Input, kind check.Kind, refutedBy string) *Match {
	m := &Match{Certainty: Proof, RefutedBy: refutedBy}
	for _, f := range in.Findings[check.M07] {
		if f.Is(kind) {
			m.Because = append(m.Because, f.ID)
			m.Members = append(m.Members, f.Members...)
		}
	}
	if len(m.Because) == 0 {
		return nil
	}
	return m
}

// update is what the logs show of the update of a learner, from what explains the row best to what excludes it.
type update int

const (
	updated  update = iota // a log holds it
	unseen                 // no log holds it, and none has every entry that could be it
	damaged                // a log from the addition on shows none, but lost entries to damage or with its end
	excluded               // a log has every entry from the addition to what the databases have applied, without it
)

// updatedAfterAdd returns what the logs show of the updates of the learners that are voters in bucket members. One
// without an update leaves the cause open or, if all are without, speaks against it.
func updatedAfterAdd(in *Input, m *Match) update {
	best, worst := excluded, updated
	for _, f := range in.Findings[check.M07] {
		if !slices.Contains(m.Because, f.ID) {
			continue
		}
		for _, id := range f.Facts.About {
			u := updateOf(in, id, f.Members)
			best, worst = min(best, u), max(worst, u)
		}
	}
	if best >= damaged {
		return best
	}
	return min(worst, unseen)
}

// updateOf returns what the logs show of the update of one learner, which the databases of members have applied.
func updateOf(in *Input, id dumplog.ID, members []string) update {
	var applied uint64
	for _, x := range in.Members {
		if slices.Contains(members, x.Label()) {
			applied = max(applied, x.AppliedMax)
		}
	}
	out := unseen
	for _, x := range in.Members {
		if !x.HasWAL() {
			continue
		}
		added, changed := updateInLog(x, id)
		switch {
		case changed:
			return updated
		case added > 0 && hasEveryEntry(&x.WAL.Summary, added, applied):
			out = excluded
		case added > 0 && reachesBack(&x.WAL.Summary, added, applied):
			out = max(out, damaged)
		}
	}
	return out
}

// updateInLog returns the index at which the member's log adds id as a learner, 0 if it does not, and whether it
// updates it later.
func updateInLog(m *evidence.Member, id dumplog.ID) (added uint64, changed bool) {
	for _, c := range m.WAL.Conf {
		switch {
		case c.Refused || c.Change.NodeID != id:
		case c.Change.Type == dumplog.ConfChangeAddLearnerNode:
			added = c.Index
		case added > 0 && c.Change.Type == dumplog.ConfChangeUpdateNode:
			return added, true
		}
	}
	return added, false
}

// hasEveryEntry reports whether a log has all entries from one index to another. What is damaged after them does not
// matter.
func hasEveryEntry(s *dumplog.Summary, from, to uint64) bool {
	return to <= s.LastIndex && reachesBack(s, from, to) &&
		!slices.ContainsFunc(s.Damage, func(d *dumplog.DamageError) bool { return mayHideEntry(d, from, to) })
}

// reachesBack reports whether a log was written with all entries from one index to another, or to its end. Damage may
// have taken some of them.
func reachesBack(s *dumplog.Summary, from, to uint64) bool {
	return !s.Unmarked && s.FirstIndex <= from &&
		!slices.ContainsFunc(s.Jumps, func(j dumplog.Jump) bool { return j.From <= to && from <= j.To })
}

// mayHideEntry reports whether a damaged place may have held one of the entries from one index to another. A place
// without known indexes comes after the entry that it follows.
func mayHideEntry(d *dumplog.DamageError, from, to uint64) bool {
	if d.LostFrom > 0 {
		return d.LostFrom <= to && (d.LostTo == 0 || from <= d.LostTo)
	}
	return d.After < to
}

var zombieMembers = described(Cause{
	ID: ZombieMembersV3Bucket,
	Match: func(in *Input) *Match {
		return weigh(in, proofOf(in, check.M07, "a conf change that added the member again after its removal",
			func(f check.Finding) bool {
				return f.Is(check.KindMemberZombie) || f.Is(check.KindMemberListedAndRemoved) && !configured(in, f)
			}))
	},
})

// configured reports whether one of the members that a finding is about is in raft's configuration: then what says that
// it was removed is wrong, and not its row.
func configured(in *Input, f check.Finding) bool {
	return slices.ContainsFunc(f.Members, func(label string) bool {
		ms := &in.member(label).Membership
		return slices.ContainsFunc(f.Facts.About, func(id dumplog.ID) bool {
			return ms.IsVoter(id) || slices.Contains(ms.Learners, id)
		})
	})
}

var foreignCluster = described(Cause{
	ID: ForeignCluster,
	Match: func(in *Input) *Match {
		m := proofOf(in, check.M01, "equal cluster IDs in the WAL metadata",
			func(f check.Finding) bool { return f.Class == check.ClassForeignCluster })
		if m == nil {
			return foreignDatabase(in)
		}
		ids := map[dumplog.ID]bool{}
		for _, x := range in.Members {
			if x.ClusterID != 0 {
				ids[x.ClusterID] = true
			}
		}
		if len(ids) < 2 { // what says so is a list of members
			m.Certainty, m.RefutedBy = Strong, "the removal of every member that the backup lists, in the log of "+
				"this cluster"
		}
		return m
	},
})

// foreignDatabase matches a data dir whose database another cluster wrote.
func foreignDatabase(in *Input) *Match {
	const refutedBy = "a conf change of this cluster that adds or removes a member that the database lists"
	m, beyond := byKind(in, refutedBy, check.KindGapForeign), byKind(in, refutedBy, check.KindIndexForeign)
	switch {
	case m == nil:
		m = beyond
	case beyond != nil:
		m.Because, m.Members = append(m.Because, beyond.Because...), append(m.Members, beyond.Members...)
	}
	if m != nil {
		m.Certainty = Strong
	}
	return m
}

// foreign lists the findings about sources of different clusters, without those about one cluster ID that was altered.
func foreign(in *Input) []string {
	out := []string{}
	for _, f := range in.Findings[check.M01] {
		if f.Class == check.ClassForeignCluster {
			out = append(out, f.ID)
		}
	}
	return out
}
