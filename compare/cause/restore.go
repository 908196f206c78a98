package cause

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

var restoredFromDifferent = described(Cause{
	ID:    RestoreFromDifferentSnapshots,
	Match: matchRestoredFromDifferent,
})

func matchRestoredFromDifferent(in *Input) *Match {
	if in.Replay == nil || len(in.Members) < 2 || !in.found(check.K02) || in.found(check.R01) {
		return nil // at equal revisions, rows that differ were edited or damaged as likely
	}
	bumps := map[int64]bool{}
	for i, m := range in.Members {
		if !check.Restored(m) || !m.HasDB() || m.DB.KV == nil {
			return nil
		}
		r := in.Replay.Members[i]
		if r.FirstBad() != nil || r.BelowCount+len(r.Extra)+len(r.Reruns)+len(r.Jumps) > 0 || r.Ahead != nil ||
			r.Unexplained != 0 {
			return nil
		}
		bumps[m.DB.KV.BumpMarker.Main] = true
	}
	m := &Match{Certainty: Proof, Members: membersOf(in, check.K01, check.K02), Because: ids(in, check.K02, check.K01),
		RefutedBy: "an entry after the restore that had different results on two members; the same revision on all " +
			"of them at the index at which the restore ends"}
	if len(bumps) > 1 {
		m.Certainty = Strong // one backup restored with different bumps gives other revisions as well
	}
	return m
}

var restoredSplit = described(Cause{
	ID: RestoreSplitIntoSingleClusters,
	Match: func(in *Input) *Match {
		if m := byKind(in, "a common entry that a server proposed after the restore",
			check.KindClusterRestoredTwice); m != nil {
			return m
		}
		if len(foreign(in)) == 0 {
			return nil
		}
		for _, m := range in.Members {
			if !check.Restored(m) || check.BootstrapVoters(m) != 1 {
				return nil
			}
		}
		return &Match{Certainty: Proof, Members: membersOf(in, check.M01), Because: foreign(in),
			RefutedBy: "two voters in the first entries of any of the logs"}
	},
})

var twinClusters = described(Cause{
	ID: SameTokenTwinClusters,
	Match: func(in *Input) *Match {
		if m := byKind(in, "a common entry that a server proposed", check.KindTwinClusters); m != nil {
			return m
		}
		m := byKind(in, "a log that holds the entries of both", check.KindOlderHistory)
		if m != nil {
			m.Certainty = Hint // a record of one of them may have been altered instead
		}
		return m
	},
})

var restoredOneOnly = described(Cause{
	ID: RestoredOneMemberOnly,
	Match: func(in *Input) *Match {
		if m := byKind(in, "the marks of the same restore in the other logs", check.KindMemberRestoredAlone); m != nil {
			return m
		}
		const refuted = "the marks of the same restore in the logs of a majority"
		if m := byKind(in, refuted, check.KindRestoredOrBefore); m != nil {
			m.Certainty = Hint
			return m
		}
		return restoredIntoOtherCluster(in)
	},
})

// restoredIntoOtherCluster: cluster IDs differ, one source was restored, and the sources of the other cluster were
// bootstrapped and have a member with the restored one's name or peer URL. A source whose log ends below what its
// database has applied, or whose database does not list the member in the head of its log, may have the log of another
// member: it says nothing of the cluster that it was in.
func restoredIntoOtherCluster(in *Input) *Match {
	if len(foreign(in)) == 0 {
		return nil
	}
	var alone []string
	others := 0
	for _, m := range in.Members {
		switch {
		case slices.Contains(membersOf(in, check.D04), m.Label()) || listsOthersOnly(m) ||
			check.Restored(m) && electedLeader(m):
			return nil
		case check.Restored(m) && slices.ContainsFunc(in.Members,
			func(o *evidence.Member) bool { return sameHost(m, o) }):
			alone = append(alone, m.Label())
		case m.HasWAL() && m.WAL.Summary.Start == dumplog.StartBootstrap:
			others++
		default:
			return nil
		}
	}
	if len(alone) != 1 || others == 0 {
		return nil
	}
	out := &Match{Certainty: Proof, Members: alone, Because: foreign(in),
		RefutedBy: "another peer URL of the restored member than the cluster knows"}
	if !majorityBootstrapped(in) {
		out.Certainty, out.RefutedBy = Hint, "the marks of the same restore in the logs of a majority"
	}
	return out
}

// electedLeader reports whether the restored cluster of several voters has committed entries: a majority of them was
// restored and ran, so the member was not restored alone.
func electedLeader(m *evidence.Member) bool {
	n := check.BootstrapVoters(m)
	return n > 1 && m.Commit > n
}

// majorityBootstrapped reports whether the sources hold a majority of the voters of a cluster that was not restored.
// Fewer may be old data dirs from before the restore.
func majorityBootstrapped(in *Input) bool {
	ids := map[dumplog.ID]bool{}
	most := uint64(0)
	for _, m := range in.Members {
		if m.HasWAL() && m.WAL.Summary.Start == dumplog.StartBootstrap {
			ids[m.MemberID] = true
			most = max(most, uint64(len(m.Membership.Voters)))
		}
	}
	return uint64(len(ids)) > most/2
}

// listsOthersOnly reports whether the database lists members, and not the one in the head of the log.
func listsOthersOnly(m *evidence.Member) bool {
	return len(m.Membership.Bucket) > 0 && !slices.Contains(m.Membership.Bucket, m.MemberID)
}

// sameHost reports whether the cluster of o knows a member at a peer URL of m under another ID.
func sameHost(m, o *evidence.Member) bool {
	if o.ClusterID == m.ClusterID {
		return false
	}
	for _, url := range m.Membership.PeerURLs[m.MemberID] {
		for _, urls := range o.Membership.PeerURLs {
			if slices.Contains(urls, url) {
				return true
			}
		}
	}
	return false
}

var restoreKeepsMembers = described(Cause{
	ID: RestoreKeepsOldMembers,
	Match: func(in *Input) *Match {
		m := &Match{Certainty: Proof, Because: ids(in, check.M03, check.M07),
			RefutedBy: "a conf change in the log that " +
				"added these members"}
		for _, x := range in.Members {
			if check.Restored(x) && x.WAL.Summary.FirstIndex == 1 && len(membersWithoutConfChange(x)) > 0 {
				m.Members = append(m.Members, x.Label())
			}
		}
		if len(m.Members) == 0 {
			return nil
		}
		return m
	},
})

// membersWithoutConfChange are members of the bucket that no conf change of the whole log names.
func membersWithoutConfChange(m *evidence.Member) []dumplog.ID {
	return slices.DeleteFunc(slices.Clone(m.Membership.Bucket), func(id dumplog.ID) bool {
		return slices.ContainsFunc(m.WAL.Conf, func(c evidence.ConfEntry) bool {
			return c.Change.NodeID == id && !c.Refused
		})
	})
}

var baseMissingOnJoiners = described(Cause{
	ID:    RestoredBaseMissingOnJoiners,
	Match: matchBaseMissing,
})

func matchBaseMissing(in *Input) *Match {
	if in.Replay == nil || !in.found(check.K01, check.K02) || in.found(check.M12) {
		return nil // of another history is a member that did not join
	}
	m := &Match{Certainty: Proof, Because: ids(in, check.K02, check.K01),
		RefutedBy: "a snapshot in the joiner's log; " +
			"content on the joiner from before the restore"}
	restored := false
	for i, x := range in.Members {
		r := in.Replay.Members[i]
		switch {
		case !r.Checked || !x.HasWAL() || r.FirstBad() != nil:
			return nil
		case check.Restored(x):
			restored = restored || r.BaseRevision > 1
		case x.WAL.Summary.FirstIndex == 1 && len(x.WAL.Summary.Jumps) == 0 && r.BaseRevision <= 1+writesBefore(r):
			m.Members = append(m.Members, x.Label())
		default:
			return nil
		}
	}
	if !restored || len(m.Members) == 0 {
		return nil
	}
	return m
}

// writesBefore bounds how many revisions the entries up to the member's base can have made.
func writesBefore(r *replay.MemberResult) int64 { return int64(r.BaseIndex) }

var noRevisionBump = described(Cause{
	ID:    RestoreWithoutRevisionBump,
	Match: matchNoBump,
})

func matchNoBump(in *Input) *Match {
	m := &Match{Certainty: Proof, Because: foreign(in), RefutedBy: "a record of a bump in the restored database; " +
		"another history of the source with the higher revision"}
	if len(m.Because) == 0 {
		return nil // an altered cluster ID does not make another cluster
	}
	for _, x := range in.Members {
		if !check.Restored(x) || !x.HasDB() || x.DB.KV == nil || x.DB.KV.BumpMarker.Main != 0 {
			continue
		}
		for _, o := range in.Members {
			if o.ClusterID != 0 && o.ClusterID != x.ClusterID &&
				slices.Contains(x.Membership.MetaConfState, o.MemberID) && o.CurrentRevision() > x.CurrentRevision() {
				m.Members = append(m.Members, x.Label())
				break
			}
		}
	}
	if len(m.Members) == 0 {
		return nil
	}
	return m
}
