package cause

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

var restoredFromDifferent = Cause{
	ID: "restore-from-different-snapshots", Title: "the members of a restored cluster started from different backups",
	Doc: `Each host restored a backup of its own with the flags of one cluster. Logs and consistent indexes agree, but every member began from another
content at another revision, and each later entry makes another revision on each. Nothing in etcd notices.
Proven when all logs begin with the records of a restore of one cluster, no entry of the log ended differently for another reason, and the
contents or revisions differ all the same: they did before the first entry.`,
	LookAlikes: "--bump-revision on one member only (its database holds the empty record of a bump); entries that " +
		"one member skipped or refused later (they are named one by one)",
	Recovery: "stop the cluster; choose one backup, usually the one of the highest revision that verifies; restore " +
		"all members from it; write again what the log holds since",
	Loss:  "what only the other backups held",
	Match: matchRestoredFromDifferent,
}

func matchRestoredFromDifferent(in *Input) *Match {
	if in.Replay == nil || len(in.Members) < 2 || len(in.Findings["K01"])+len(in.Findings["K02"]) == 0 ||
		len(in.Findings["R01"]) > 0 {
		return nil
	}
	bumps := map[int64]bool{}
	for i, m := range in.Members {
		if !check.Restored(m) || !m.HasDB() || m.DB.KV == nil {
			return nil
		}
		r := in.Replay.Members[i]
		if r.FirstBad() != nil || len(r.Extra)+len(r.Reruns)+len(r.Jumps) > 0 || r.Ahead != nil || r.Unexplained != 0 {
			return nil
		}
		bumps[m.DB.KV.BumpMarker.Main] = true
	}
	m := &Match{Certainty: Proof, Members: membersOf(in, "K01", "K02"), Because: ids(in, "K02", "K01"),
		RefutedBy: "an entry behind the restore that ended differently on two members; the same revision on all of " +
			"them at the index at which the restore ends"}
	if len(bumps) > 1 {
		m.Certainty = Strong // one backup with different bumps gives other revisions as well
	}
	return m
}

var restoredSplit = Cause{
	ID: "restore-split-into-single-clusters", Title: "every host restored a cluster of its own",
	Doc: `The restore was run on every host with flags that name that host alone, often the same name everywhere. Each data dir then holds a cluster
of one voter: each elects itself, takes writes and never hears of the others. Member and cluster IDs are equal where name and peer URL were,
else they differ.
Proven when every log begins with the records of a restore, each with one voter, and IDs or histories contradict one cluster.`,
	LookAlikes: "one backup that was restored on purpose into clusters of their own, for a drill",
	Recovery:   "choose the one to keep; restore all members again with all names in --initial-cluster",
	Loss:       "writes made to the clusters that are given up",
	Match: func(in *Input) *Match {
		if m := byField(in, "a common entry that a server proposed behind the restore", "M12",
			check.FieldSplit); m != nil {
			return m
		}
		if len(foreign(in)) == 0 {
			return nil
		}
		for _, m := range in.Members {
			if !check.Restored(m) || check.Founded(m) != 1 {
				return nil
			}
		}
		return &Match{Certainty: Proof, Members: membersOf(in, "M01"), Because: foreign(in),
			RefutedBy: "two voters in the first entries of any of the logs"}
	},
}

var twinClusters = Cause{
	ID: "same-token-twin-clusters", Title: "two clusters have the same cluster ID and member IDs",
	Doc: `IDs are computed from names, peer URLs and the cluster token. A cluster that was bootstrapped or restored twice with the same ones has the same
IDs and another history. When members of both meet, raft takes them for one cluster and they overwrite each other.
A majority of members that lost their data dirs and were started as new founds such a second cluster too: only the others hold what was
before, and no member is best by content.
Proven when the logs begin with the same bootstrap or restore entries and have nothing in common behind them that a server proposed.`,
	Refs: refs("etcd-io/etcd", 11442),
	LookAlikes: "raft-log-divergence and data-dir-cloned-running-twice: there the logs share entries of servers " +
		"before they part",
	Recovery: "never let them reach each other; diagnose each cluster alone; restore one of them again with " +
		"another --initial-cluster-token",
	Loss: "the history of the cluster that is given up",
	Match: func(in *Input) *Match {
		return byField(in, "a common entry that a server proposed", "M12", check.FieldTwin)
	},
}

var restoredOneOnly = Cause{
	ID: "restored-one-member-only", Title: "one member was restored while the others went on",
	Doc: `A member was to be healed with a backup, but a restore founds a cluster: its log begins anew at term 1 with other entries than the cluster's.
With another token or member list it has another cluster ID and is refused; with the same ones the leader takes it for the old member.
Proven when one log begins with the records of a restore and the others with those of a bootstrap.`,
	Refs:       refs("etcd-io/etcd", 9096, 15699),
	LookAlikes: "a cluster that was restored as a whole: then all logs that reach back begin so",
	Recovery:   "remove the member, set its data dir aside, add it again with an empty one",
	Loss:       "none on the majority",
	Match: func(in *Input) *Match {
		if m := byField(in, "the marks of the same restore in the other logs", "M12",
			check.FieldRestoredAlone); m != nil {
			return m
		}
		return restoredIntoOtherCluster(in)
	},
}

// restoredIntoOtherCluster: cluster IDs differ, one source was restored, and the sources of the other cluster were
// bootstrapped and know the restored one's name or peer URL as a member of theirs.
func restoredIntoOtherCluster(in *Input) *Match {
	if len(foreign(in)) == 0 {
		return nil
	}
	var alone []string
	others := 0
	for _, m := range in.Members {
		switch {
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
	return &Match{Certainty: Proof, Members: alone, Because: foreign(in),
		RefutedBy: "another peer URL of the restored member than the cluster knows"}
}

// sameHost tells whether the cluster of o knows a member at a peer URL of m under another ID.
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

var restoreKeepsMembers = Cause{
	ID: "restore-keeps-old-members", Title: "a restore by a tool of 3.4 or older kept the members of the old cluster",
	Doc: `etcdctl up to 3.4 meant to delete the old members at a restore, but deleted in the key space instead. Bucket members of a restored data dir
then names members of the old cluster, alone before the first start and beside the new ones after. Releases that boot with the bucket (3.5.0,
3.6 and later) list and count them.
Proven when the log begins with the records of a restore and the bucket names members that no conf change of the log ever added.`,
	Affected: []string{"etcdctl up to 3.4.45"},
	FixedIn:  []string{"etcdctl and etcdutl 3.5.0"},
	Refs:     refs("etcd-io/etcd", 20967),
	LookAlikes: "members that were added later: the log has their conf change; meta/confState, which every restore " +
		"leaves stale",
	Recovery: "restore again with a newer tool; or let every member start once on 3.5.26 or later, which cleans " +
		"up. Keys that are named like a member ID were deleted by the tool",
	Loss: "none of data; see zombie-members-v3-bucket",
	Match: func(in *Input) *Match {
		m := &Match{Certainty: Proof, Because: ids(in, "M03", "M07"), RefutedBy: "a conf change in the log that " +
			"added these members"}
		for _, x := range in.Members {
			if check.Restored(x) && x.WAL.Summary.FirstIndex == 1 && len(strangers(x)) > 0 {
				m.Members = append(m.Members, x.Label())
			}
		}
		if len(m.Members) == 0 {
			return nil
		}
		return m
	},
}

// strangers are members of the bucket that no conf change of the whole log names.
func strangers(m *evidence.Member) []dumplog.ID {
	return slices.DeleteFunc(slices.Clone(m.Membership.Bucket), func(id dumplog.ID) bool {
		return slices.ContainsFunc(m.WAL.Conf, func(c evidence.ConfEntry) bool { return c.Change.NodeID == id })
	})
}

var baseMissingOnJoiners = Cause{
	ID: "restored-base-missing-on-joiners", Title: "members that joined a restored one lack the data of the backup",
	Doc: `A member was restored and others joined it. A joining member must receive the database, but this one replayed the log from its first entry:
the backup is not in the log, so it holds only what was written since. Old releases sent no database while the log reached back; later ones do
only if the restored log and database were separated (--wal-dir).
Proven when the joiner's log begins at index 1, its content is what the log gives from nothing, and the restored member holds more.`,
	Affected:   []string{"3.0 and 3.1; later only with a wal dir that was not restored along"},
	FixedIn:    []string{"3.2.0"},
	Refs:       refs("etcd-io/etcd", 6361, 7834, 9109),
	LookAlikes: "a joiner that received a snapshot: its log has a gap up to it",
	Recovery:   "let the restored member take a snapshot, then remove the joiners and add them again with empty dirs",
	Loss:       "none while the restored member survives",
	Match:      matchBaseMissing,
}

func matchBaseMissing(in *Input) *Match {
	if in.Replay == nil || len(in.Findings["K01"])+len(in.Findings["K02"]) == 0 {
		return nil
	}
	m := &Match{Certainty: Proof, Because: ids(in, "K02", "K01"), RefutedBy: "a snapshot in the joiner's log; " +
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

var noRevisionBump = Cause{
	ID: "restore-without-revision-bump", Title: "revisions went back at a restore",
	Doc: `A cluster was restored from an older backup without --bump-revision. Its revisions begin again at numbers that the old cluster has already
given to other changes. Clients that go on from before (watches, informers, leader election by revision) miss changes or act on stale ones.
Proven when the restored member still names a member of the old cluster in meta/confState, that member is among the sources, and its revision
is higher than the restored one's.`,
	FixedIn: []string{"the option exists in 3.4.27, 3.5.10 and 3.6.0"},
	Refs:    refs("etcd-io/etcd", 16029),
	LookAlikes: "a restore into a new cluster that no former client uses; a bumped revision (an empty record at it " +
		"marks the jump)",
	Recovery: "restart all clients that watch; or restore again with --bump-revision and --mark-compacted",
	Loss:     "no data; what clients have cached is wrong",
	Match:    matchNoBump,
}

func matchNoBump(in *Input) *Match {
	m := &Match{Certainty: Proof, Because: foreign(in), RefutedBy: "a record of a bump in the restored database; " +
		"another history of the source with the higher revision"}
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
