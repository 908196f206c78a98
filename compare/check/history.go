package check

import (
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/shell"
)

var oneHistory = described(Check{
	ID:    M12,
	Needs: NeedLog | NeedTwo,
	Run:   runOneHistory,
})

func runOneHistory(in *Input) Result {
	if in.Replay == nil {
		return Result{Reason: "the logs could not be replayed"}
	}
	var fs []Finding
	for _, c := range in.Replay.Copies {
		if c.Forked {
			fs = append(fs, forkFinding(in.Members, c))
		}
	}
	if f := in.provenance().twinFinding(); f != nil {
		fs = append(fs, *f)
	}
	for _, m := range in.Members {
		if o := in.Members.logs().restoredAlone(m); o != nil {
			f := restoredAloneFinding(m, o)
			if !in.Members.logs().majorityNotRestored(m) {
				f.orFromBefore(m, o)
			}
			fs = append(fs, f)
		}
	}
	var unchecked string
	for _, o := range in.Replay.Overlaps {
		shownBy := []uint64{o.Publish, o.Old, o.New}
		if i := slices.IndexFunc(shownBy, in.Replay.Contradicts); i >= 0 {
			unchecked = fmt.Sprintf("a database contradicts entry %d, which would show two processes of member %s",
				shownBy[i], o.Member)
			continue
		}
		fs = append(fs, overlapFinding(in.Members, o))
	}
	return outcome(fs, unchecked)
}

// BootstrapVoters returns the number of conf changes of a bootstrap or a restore with which a log begins, 0 if it does
// not begin with them.
func BootstrapVoters(m *evidence.Member) uint64 {
	if !m.HasWAL() || m.WAL.Summary.Start != dumplog.StartBootstrap && m.WAL.Summary.Start != dumplog.StartRestore {
		return 0
	}
	return bootstrapAdds(m)
}

// bootstrapAdds counts the conf changes at the beginning of a log that a bootstrap or a restore wrote.
func bootstrapAdds(m *evidence.Member) (n uint64) {
	for _, c := range m.WAL.Conf {
		if c.Index != n+1 || c.Term != 1 || c.Change.ID != 0 || c.Change.Type != dumplog.ConfChangeAddNode {
			break
		}
		n++
	}
	return n
}

// holdsBootstrap reports whether the log begins with the bootstrap of a cluster that was not restored. The log of a
// member that joined does if it received the entries from the first one on: a restored member starts from the raft
// snapshot that the restore made after them, so it has only that to send (server/etcdserver/bootstrap.go, 3.3 to 3.8).
func holdsBootstrap(m *evidence.Member) bool {
	if !m.HasLog() || bootstrapAdds(m) == 0 {
		return false
	}
	start := m.WAL.Summary.Start
	return start == dumplog.StartBootstrap || start == dumplog.StartJoin && m.WAL.Summary.FirstIndex == 1
}

// Restored reports whether a restore wrote the first records of the member's log.
func Restored(m *evidence.Member) bool {
	return m.HasWAL() && m.WAL.Summary.Start == dumplog.StartRestore
}

// nothingShared reports whether a log that differs at an index from another one with the same bootstrap shares no entry
// with it that a server proposed.
func nothingShared(m *evidence.Member, founded, differ uint64) bool {
	return founded > 0 && differ > founded && (m.WAL.First.Index == 0 || m.WAL.First.Index >= differ)
}

func forkFinding(ss Sources, c replay.Copies) Finding {
	a, b := ss[c.A], ss[c.B]
	f := Finding{Kind: KindDataDirCloned, Severity: Critical, Class: ClassMemberLostData,
		Members: []string{a.Label(), b.Label()},
		At:      At{Index: c.Index + 1, Term: ss.logs().termAt(c.Index + 1)},
		Title: fmt.Sprintf("member %s has two histories: %s and %s diverge after index %d", a.MemberID, a.Label(),
			b.Label(), c.Index)}
	field := "cloned data dir"
	f.Explanation = "both copies of the data dir continued after they were copied: two processes ran under one " +
		"identity, and each broke promises of the other"
	if n := min(BootstrapVoters(a), BootstrapVoters(b)); n > 0 && nothingShared(a, n, c.Index+1) {
		f.Kind, f.Class, field = KindTwinClusters, ClassForeignCluster, "twin cluster"
		f.Explanation = "they have the beginning in common and nothing else: two clusters were founded with the same " +
			"name, peer URL and token"
		if Restored(a) && Restored(b) && n == 1 {
			f.Kind, field = KindClusterRestoredTwice, "cluster restored on its own"
			f.Explanation = "each was restored as a cluster of one voter, with the same name and peer URL"
		}
	}
	f.Evidence = []Evidence{recordEvidence(a, field, c.PosA), recordEvidence(b, field, c.PosB)}
	return f
}

func recordEvidence(m *evidence.Member, field string, pos dumplog.Pos) Evidence {
	return Evidence{Member: m.Label(), File: pos.Segment, Offset: Int64(pos.Offset), Field: field,
		Observed: "a record that the other copy has not", Expected: "the same records, up to where one copy ends",
		Show: showLogAs(m, "--raw")}
}

// twinFinding: members of one cluster ID whose logs differ at a committed index and share only their beginning.
func (pv *provenance) twinFinding() *Finding {
	if len(pv.Replay.LogDiffs) == 0 {
		return nil
	}
	d := pv.Replay.LogDiffs[0]
	f := &Finding{Kind: KindTwinClusters, Severity: Critical, Class: ClassForeignCluster, At: At{Index: d.Index},
		Title: fmt.Sprintf("the logs have nothing in common after their beginning: they differ from index %d on",
			d.Index),
		Explanation: "the sources carry one cluster ID, but belong to two clusters that were founded with the same " +
			"names, peer URLs and token"}
	restored, whole := 0, false
	for _, i := range pv.Members.byLabel(d.By) {
		m := pv.Members[i]
		if n := BootstrapVoters(m); n == 0 || !nothingShared(m, n, d.Index) {
			return nil
		}
		if Restored(m) {
			restored++
			whole = whole || pv.Members.logs().restoredAsWhole(m)
		}
		f.Members = append(f.Members, m.Label())
		f.Evidence = append(f.Evidence, Evidence{Member: m.Label(), Field: "twin cluster", Observed: d.By[i],
			Expected: "one entry per index", Show: showLog(m, d.Index)})
	}
	switch {
	case restored == 0 || restored == len(f.Members):
	case !whole:
		return nil // reported as a member that was restored alone
	default:
		f.Explanation = "a majority of the voters began with a restore: the others are data dirs of the cluster from " +
			"before it, with the same names, peer URLs and token"
	}
	return f
}

// apart reports whether two members belong to clusters that only share IDs: their logs differ at the first committed
// index at which logs differ, and share only the entries of a bootstrap. Votes and terms of one then say nothing about
// the other.
func (pv *provenance) apart(a, b *evidence.Member) bool {
	if a.ClusterID != b.ClusterID {
		return true
	}
	if pv.Replay == nil || len(pv.Replay.LogDiffs) == 0 {
		return false
	}
	d := pv.Replay.LogDiffs[0]
	entry := map[*evidence.Member]string{}
	for i, e := range d.By {
		entry[pv.Members[i]] = e
	}
	for _, m := range []*evidence.Member{a, b} {
		if n := BootstrapVoters(m); entry[m] == "" || n == 0 || !nothingShared(m, n, d.Index) {
			return false
		}
	}
	return entry[a] != entry[b]
}

func restoredAloneFinding(m, o *evidence.Member) Finding {
	n := BootstrapVoters(m)
	return Finding{Kind: KindMemberRestoredAlone, Severity: Critical, Class: ClassMemberLostData,
		Members: []string{m.Label()},
		At:      At{Term: 1, Index: n},
		Title: fmt.Sprintf("%s was restored from a backup while its cluster kept running: its log starts at "+
			"term 1, the cluster is at %d/%d", m.Label(), o.WAL.Summary.LastTerm, o.Commit),
		Explanation: "the other members were not restored; the leader counts this one by what it once acknowledged, " +
			"and entries after the restore contradict the cluster's",
		Evidence: []Evidence{
			{Member: m.Label(), Field: "member restored alone",
				Observed: fmt.Sprintf("%s of a restore at term 1, last index %d", plural.Of(n, "entry", "entries"),
					m.WAL.Summary.LastIndex),
				Expected: "the log of the cluster, as on " + o.Label(), Show: showLogAs(m)},
			{Member: o.Label(), Field: "start of the log", Observed: string(o.WAL.Summary.Start),
				Expected: "a restore on all members or on none", Show: showLogAs(o)}},
		Remedy: []Remedy{{Text: "remove the member, set its data dir aside and add it again with an empty one",
			Command: removeMember(m.MemberID)}}}
}

// orFromBefore says of a member that was restored alone that the whole cluster may have been restored instead.
func (f *Finding) orFromBefore(m, o *evidence.Member) {
	f.Kind = KindRestoredOrBefore
	f.Title = fmt.Sprintf("%s began with a restore and %s did not: it was restored alone, or %s is from before the "+
		"restore of the cluster", m.Label(), o.Label(), o.Label())
	f.Explanation = "the data dirs of a majority of the voters show which: if they were not restored either, this " +
		"one has to be removed and added again; if they were, the other one is an old data dir"
	f.Remedy = []Remedy{{Text: "copy the data dirs of the other members too and diagnose them together, before any " +
		"is removed"}}
}

func overlapFinding(ss Sources, o replay.Overlap) Finding {
	name := ss.MemberName(o.Member)
	f := Finding{Kind: KindTwoProcesses, Severity: Critical, Class: ClassMemberLostData, Members: []string{name},
		At:    At{Index: o.Old, Term: ss.logs().termAt(o.Old)},
		Title: fmt.Sprintf("two processes of member %s proposed at the same time", o.Member),
		Explanation: fmt.Sprintf("the process that published itself at %d is newer than the process that proposed "+
			"entry %d, and the older process proposed entry %d after that: the data dir was copied and both ran",
			o.Publish, o.Old, o.New)}
	show := func(index uint64) shell.Command {
		for _, m := range ss {
			if m.HasLog() && m.WAL.Summary.FirstIndex <= index && index <= m.WAL.Summary.LastIndex {
				return showLog(m, index)
			}
		}
		return shell.Command{}
	}
	start := func(id dumplog.RequestID) string {
		return "proposed by a process that began " + replay.StartTime(id).Format("2006-01-02T15:04:05.000Z")
	}
	f.Evidence = []Evidence{{Field: "two processes of one member", Observed: start(o.OldID),
		Expected: "one process at a time",
		Show:     show(o.Old)},
		{Field: fmt.Sprintf("entry %d", o.New), Observed: start(o.NewID), Show: show(o.New)}}
	return f
}
