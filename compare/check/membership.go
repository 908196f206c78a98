package check

import (
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/shell"
)

var oneCluster = described(Check{
	ID:  M01,
	Run: runOneCluster,
})

func runOneCluster(in *Input) Result {
	if len(in.Members)+len(in.Earlier) < 2 {
		return Result{Reason: needsTwo}
	}
	f := Finding{Kind: KindClustersMixed, Severity: Critical, Class: ClassForeignCluster,
		Title: "the sources belong to different clusters",
		Explanation: "compare and diagnose sources of one cluster at a time; if they should be one cluster, each was " +
			"restored or bootstrapped on its own"}
	for _, m := range in.Members {
		if m.ClusterID == 0 {
			continue
		}
		f.Members = append(f.Members, m.Label())
		f.Evidence = append(f.Evidence, Evidence{Member: m.Label(), Field: "cluster ID", Observed: m.ClusterID.String(),
			Expected: "one cluster ID", Show: showLogAs(m, "--raw")})
	}
	membersWithoutConfChange := 0
	for _, m := range in.Members {
		if !evidence.OfAnotherCluster(in.Members, m) {
			continue
		}
		membersWithoutConfChange++
		f.Members = append(f.Members, m.Label())
		f.Evidence = append(f.Evidence, otherMembers(m))
	}
	if membersWithoutConfChange == 0 && len(f.Members) < 2 && len(in.Earlier) == 0 {
		return Result{Reason: "fewer than two sources carry a cluster ID"}
	}
	var fs []Finding
	clusters := clustersOf(in.Members)
	if membersWithoutConfChange > 0 || len(clusters) > 1 {
		fs = append(fs, f)
	}
	for _, c := range clusters {
		fs = append(fs, alteredClusterIDs(c)...)
	}
	if len(fs) == 0 {
		return outcome(earlierFindings(in.Earlier), "")
	}
	return Result{Outcome: Violated, Findings: fs}
}

// Earlier is a backup from before the cluster was restored: the cluster continues its history in another log.
type Earlier struct {
	Backup *evidence.Member
	// OtherLog is why its index counts another log, if the cluster was restored with the member IDs that it had; nil if
	// its IDs are others.
	OtherLog *replay.OtherLog
	// Damaged is true if the backup's file is damaged or was altered: what it lacks, it may have lost.
	Damaged bool
	// Member is one whose database continues that of the backup. Records is how many records both hold. Without a
	// Member no data dir holds a record that shows whether the backup is of this cluster.
	Member  *evidence.Member
	Records int
}

func earlierFindings(list []Earlier) (fs []Finding) {
	for _, e := range list {
		switch {
		case e.OtherLog != nil:
			fs = append(fs, sameIDsFinding(&e))
		case e.Member == nil:
			fs = append(fs, unrelatedFinding(e.Backup))
		default:
			fs = append(fs, e.finding("its members are not those of this cluster, but "+e.continued(),
				otherMembers(e.Backup)))
		}
	}
	return fs
}

// finding is a note about a backup from before the restore.
func (e *Earlier) finding(why string, ev Evidence) Finding {
	b := e.Backup
	r := Remedy{Text: b.Label() + " is from before the cluster was restored: examine it on its own",
		Command: alone(b)}
	if e.Member != nil && b.Source.Kind != evidence.KindDataDir {
		r.Command = shell.Format("etcd-medic verify {} --against {}", shell.Source(b.Label()),
			shell.Source(e.Member.Label()))
	}
	return Finding{Kind: KindBackupBeforeRestore, Severity: Info, Members: []string{b.Label()},
		Title:       fmt.Sprintf("%s is a backup from before the cluster was restored", b.Label()),
		Explanation: why + ". It was compared with nothing else",
		Evidence:    []Evidence{ev}, Remedy: []Remedy{r}}
}

func (e *Earlier) continued() string {
	return fmt.Sprintf("%s continues its history: both hold the same records, %d of them, up to revision %d",
		e.Member.Label(), e.Records, e.Backup.DB.KV.LastRev.Main)
}

// sameIDsFinding is about a backup from before a restore that gave the members the IDs that they had.
func sameIDsFinding(e *Earlier) Finding {
	b := e.Backup
	why := fmt.Sprintf("its index %d counts another log: %s. ", b.ConsistentIndex(), e.OtherLog)
	if e.OtherLog.AtLeast > 0 {
		why = fmt.Sprintf("its index %d counts another log: there this one had written revision %d or more, and the "+
			"backup is at %d. ", b.ConsistentIndex(), e.OtherLog.AtLeast, b.DB.KV.LastRev.Main)
	}
	switch {
	case e.OtherLog.Contradicted > 0:
		why = fmt.Sprintf("at its index %d this log wrote other keys: the index counts another log, or the backup was "+
			"altered. No database of a data dir shows which", b.ConsistentIndex())
	case e.OtherLog.Term > 0:
		why += "No database of a data dir shows which"
	case e.Member != nil:
		why += e.continued()
	case e.Damaged:
		why += "Its file is damaged, so its records do not show whether the cluster continues its history"
	default:
		why += "The data dirs have compacted all that it holds, so only the member IDs show that it is of this cluster"
	}
	if e.OtherLog.Inferred {
		why += ". No log at hand shows the restore: that there was one is inferred"
	}
	if e.OtherLog.Refused {
		why += ". The writes of this log carry an auth revision: a member with a higher one refuses them, so the " +
			"backup may also be of such a member, which then lacks them"
	}
	f := e.finding(why, e.otherLogEvidence())
	switch {
	case e.OtherLog.Refused:
		f.Title += ", or of a member that refused writes"
		f.Severity, f.Class = Warning, ClassInconclusive
		f.Remedy[0].Text = "examine " + b.Label() + " on its own, and compare auth revisions"
	case e.OtherLog.MayBeAltered():
		f.Title += ", or was altered"
		f.Severity, f.Class = Warning, ClassInconclusive
		f.Remedy[0].Text = "examine " + b.Label() + " on its own"
	case e.Damaged:
		f.Title += ", or has lost what the log wrote to it"
	}
	return f
}

// otherLogEvidence is what shows that the index of a backup counts another log.
func (e *Earlier) otherLogEvidence() Evidence {
	b := e.Backup
	ev := Evidence{Member: b.Label(), File: b.DB.File, Bucket: "key",
		Field: fmt.Sprintf("revision at index %d", b.ConsistentIndex()), Observed: fmt.Sprint(b.DB.KV.LastRev.Main),
		Expected: fmt.Sprintf("%d or more in the log that the restore began", e.OtherLog.AtLeast),
		Show:     showDB(b, "key", "--stats")}
	if e.OtherLog.AtLeast == 0 {
		ev.Field = "puts in the newest revisions"
		ev.Observed = fmt.Sprintf("none that the log's entries up to %d can have made", b.ConsistentIndex())
		ev.Expected = "those of these entries"
	}
	if n := e.OtherLog.Contradicted; n > 0 {
		ev.Field = fmt.Sprintf("keys at index %d", b.ConsistentIndex())
		ev.Observed = plural.Of(n, "key", "keys") + " with other content than the log wrote"
		ev.Expected = "what the log wrote"
	}
	if t := e.OtherLog.Term; t > 0 {
		ev.Bucket, ev.Field, ev.Key = "meta", "", Bytes("term")
		ev.Observed, ev.Expected = fmt.Sprint(*b.DB.Meta.Term), fmt.Sprintf("%d, the term of entry %d", t,
			b.ConsistentIndex())
		ev.Show = showDB(b, "meta")
	}
	return ev
}

// unrelatedFinding is about a backup of other members whose records the data dirs neither hold nor contradict.
func unrelatedFinding(b *evidence.Member) Finding {
	return Finding{Kind: KindBackupUnrelated, Severity: Warning, Class: ClassInconclusive,
		Members: []string{b.Label()},
		Title:   fmt.Sprintf("%s is from before the cluster was restored, or of another cluster", b.Label()),
		Explanation: "its members are not those of this cluster, and no data dir holds a record that shows whether " +
			"it continues the history of the backup. The backup was compared with nothing else",
		Evidence: []Evidence{otherMembers(b)},
		Remedy: []Remedy{{Text: "examine " + b.Label() + " on its own",
			Command: alone(b)}}}
}

// alone is the command that examines a backup, or a data dir without a log, on its own.
func alone(m *evidence.Member) shell.Command {
	if m.Source.Kind == evidence.KindDataDir {
		return shell.Format("etcd-medic inspect {}", shell.Source(m.Label()))
	}
	return shell.Format("etcd-medic verify {}", shell.Source(m.Label()))
}

// otherMembers shows that the members in a backup are none that the data dirs know.
func otherMembers(b *evidence.Member) Evidence {
	return Evidence{Member: b.Label(), File: b.DB.File, Bucket: "members", Field: "member IDs",
		Observed: fmt.Sprint(b.Membership.Bucket), Expected: "a member that the other sources know",
		Show: showDB(b, "members")}
}

var distinctMembers = described(Check{
	ID:    X01,
	Needs: NeedTwo,
	Run:   runDistinctMembers,
})

func runDistinctMembers(in *Input) Result {
	byID, twice := map[string][]*evidence.Member{}, map[string][]*evidence.Member{}
	for _, m := range in.Members {
		if m.MemberID != 0 && !m.MixedLog() {
			byID[idInCluster(m)] = append(byID[idInCluster(m)], m)
		}
	}
	for _, m := range in.Members {
		key := ""
		switch { // snapshots of one member differ from moment to moment, those of several may be equal to the byte
		case m.Source.Kind == evidence.KindEndpoint:
			key = idInCluster(m)
		case likeAnother(in.Members, m):
			key = m.Source.Manifest.Digest()
		default:
			continue
		}
		twice[key] = append(twice[key], m)
	}
	var fs []Finding
	told := map[string]bool{}
	for _, h := range sortedGroup(twice) {
		if ms := twice[h]; len(ms) > 1 {
			for _, m := range ms {
				told[m.Label()] = true
			}
			fs = append(fs, twiceFinding(ms))
		}
	}
	for _, key := range sortedGroup(byID) {
		if ms := byID[key]; len(ms) > 1 && !told[ms[0].Label()] {
			fs = append(fs, copyFindings(in, ms)...)
		}
	}
	return outcome(fs, "")
}

// twiceFinding is about sources that are one.
func twiceFinding(ms []*evidence.Member) Finding {
	f := Finding{Kind: KindSourceTwice, Severity: Warning, Class: ClassInconclusive,
		Title:       "one source was given more than once",
		Explanation: "the files of these sources are byte-identical, so they count as one"}
	field, value := "sha256", ms[0].Source.Manifest.Digest
	if id, _ := ms[0].AnsweredAs(); id != 0 {
		f.Explanation = "one running member answers at these endpoints, so they count as one"
		field, value = "member ID", id.String
	}
	for _, m := range ms {
		f.Members = append(f.Members, m.Label())
		f.Evidence = append(f.Evidence, Evidence{Member: m.Label(), Field: field, Observed: value(),
			Expected: "different sources"})
	}
	f.Remedy = []Remedy{{Text: "give it once: leave out " + plural.List(f.Members[1:])}}
	return f
}

// identity is the member that a source is of: as its log says, or as the running member says itself.
func identity(m *evidence.Member) (member, cluster dumplog.ID) {
	if m.MemberID != 0 {
		return m.MemberID, m.ClusterID
	}
	return m.AnsweredAs()
}

// idInCluster is a member's ID with that of its cluster: it is unique only there.
func idInCluster(m *evidence.Member) string {
	member, cluster := identity(m)
	return fmt.Sprintf("%016x of %016x", uint64(cluster), uint64(member))
}

// likeAnother reports whether some other source has the same number of files and bytes, and no other member ID: only
// then can they be identical, so that a digest is worth its time.
func likeAnother(members []*evidence.Member, m *evidence.Member) bool {
	man := m.Source.Manifest
	return man != nil && slices.ContainsFunc(members, func(o *evidence.Member) bool {
		other := o.Source.Manifest
		return o != m && other != nil && idInCluster(o) == idInCluster(m) && len(other.Files) == len(man.Files) &&
			other.Bytes == man.Bytes
	})
}

func sortedGroup[K ~string | ~uint64, V any](m map[K]V) []K {
	out := make([]K, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

var memberListsEqual = described(Check{
	ID:    M02,
	Needs: NeedDB | NeedTwo,
	Run: func(in *Input) Result {
		return in.contents().stateEqual(ClassMembership, nil, "members", "members_removed", "cluster")
	},
})

var memberListsAgree = described(Check{
	ID:    M03,
	Needs: NeedDB | NeedLog,
	Run:   runMemberListsAgree,
})

func runMemberListsAgree(in *Input) Result {
	var fs []Finding
	checked := 0
	for _, m := range in.Members {
		ms := &m.Membership
		if !m.ListComparable() || len(ms.Bucket) == 0 || m.AppliedMin < m.Commit &&
			m.Version.Follows(release.MemberRowsGated) {
			continue
		}
		checked++
		raft := append(slices.Clone(ms.Voters), ms.Learners...)
		sort.Slice(raft, func(i, j int) bool { return raft[i] < raft[j] })
		if slices.Equal(raft, ms.Bucket) {
			continue
		}
		sev, class := Error, ClassMembership
		if !m.Version.Follows(release.MembersFromDB) {
			sev, class = Warning, ""
		}
		fs = append(fs, Finding{Kind: KindMemberListsDisagree, Severity: sev, Class: class,
			Members: []string{m.Label()}, At: confIndex(m),
			Title:       m.Label() + ": raft's configuration and bucket members disagree",
			Explanation: "the server counts votes by the first and lists members by the second",
			Evidence: []Evidence{{Member: m.Label(), File: m.DB.File, Bucket: "members",
				Observed: fmt.Sprint(ms.Bucket), Expected: fmt.Sprintf("%v, raft's voters and learners", raft),
				Show: showDB(m, "members")}}})
	}
	if checked == 0 {
		return Result{Reason: "no source shows both raft's configuration and the member list at its applied index"}
	}
	return outcome(fs, "")
}

var alarms = described(Check{
	ID:    M06,
	Needs: NeedDB,
	Run:   runAlarms,
})

func runAlarms(in *Input) Result {
	type key struct {
		id  dumpdb.ID
		typ int32
	}
	found := map[key]*raisedAlarm{}
	var order []*raisedAlarm
	for _, m := range in.Members {
		if !m.HasDB() {
			continue
		}
		show := showDB(m, "alarm")
		for _, a := range m.DB.Alarms {
			k := key{a.MemberID, a.Type}
			if found[k] == nil {
				found[k] = &raisedAlarm{Alarm: a}
				order = append(order, found[k])
			}
			r := found[k]
			r.members = append(r.members, m.Label())
			r.rows = append(r.rows, Evidence{Member: m.Label(), File: m.DB.File, Page: Uint64(a.Page), Bucket: "alarm",
				Key:      Bytes(a.MemberID.String()),
				Observed: fmt.Sprintf("memberID:%d alarm:%s", uint64(a.MemberID), evidence.AlarmName(a.Type)),
				Expected: "no alarm", Show: show})
		}
	}
	fs := placeFindings(order, (*raisedAlarm).kind, func(a *raisedAlarm) Finding {
		return alarmFinding(in.Members, a)
	}, alarmRanges)
	for i := range fs {
		fs[i] = in.cut(fs[i])
	}
	return outcome(fs, "")
}

// raisedAlarm is an alarm of a member with the sources that hold it.
type raisedAlarm struct {
	dumpdb.Alarm
	members []string
	rows    []Evidence
}

// kind is equal for alarms that one finding can be about.
func (a *raisedAlarm) kind() string { return fmt.Sprintf("%d %q", a.Type, a.members) }

func alarmFinding(ss Sources, a *raisedAlarm) Finding {
	f := Finding{Kind: KindAlarmRaised, Severity: Warning, Members: a.members, Evidence: a.rows,
		Title: fmt.Sprintf("alarm %s of member %s is raised", evidence.AlarmName(a.Type),
			ss.MemberName(a.MemberID)),
		Explanation: "writes are refused until the database is below its quota and the alarm is disarmed"}
	disarm := shell.Format("etcdctl alarm disarm")
	switch a.Type {
	case alarmCorrupt:
		f.Severity, f.Class = Error, ClassAlarm
		f.Explanation = "a server found its data to differ from its peers'; every request is refused " +
			"until the alarm is disarmed"
		f.Remedy = []Remedy{{Text: "find out which member differs and repair it first; disarm only after that",
			Command: disarm, Risk: "disarms all alarms: members that differ serve different data again"}}
	default:
		compact := shell.Format("etcdctl compact <REVISION>")
		if rev := ss.labelled(a.members).databases().newestRecord(); rev > 0 {
			compact = shell.Format("etcdctl compact {}", rev)
		}
		f.Remedy = []Remedy{
			{Text: "remove the history: compact at the newest revision", Command: compact},
			{Text: "free the space: defragment every member (each does not answer meanwhile)",
				Command: shell.Format("etcdctl defrag --cluster")},
			{Text: "disarm, once every database is below its quota", Command: disarm}}
	}
	return f
}

// alarmRanges says between which IDs the members of many alarms are.
func alarmRanges(as []*raisedAlarm) string {
	first, last := as[0].MemberID, as[0].MemberID
	for _, a := range as {
		first, last = min(first, a.MemberID), max(last, a.MemberID)
	}
	return fmt.Sprintf("of members %s to %s", first, last)
}

var leasesEqual = described(Check{
	ID:    L01,
	Needs: NeedDB | NeedTwo,
	Run: func(in *Input) Result {
		return in.contents().stateEqual(ClassLatentDivergence,
			func(row *diff.Row) bool { return row.Kind == diff.WholeRow }, "lease")
	},
})

// unreadableTitle names the file once. A file that can be read may not open as a database.
func unreadableTitle(m *evidence.Member, p *evidence.Problem) string {
	says := "cannot be read"
	if de := (*dumpdb.DamageError)(nil); p.Part == "db" && errors.As(p.Err, &de) {
		says = "does not open as a database"
	}
	if m.Label() == p.File {
		return m.Label() + " " + says
	}
	return fmt.Sprintf("%s: %s %s", m.Label(), p.File, says)
}

var partsPresent = described(Check{
	ID:    X02,
	Needs: 0,
	Run: func(in *Input) Result {
		var fs []Finding
		for _, m := range in.Members {
			for _, p := range m.Source.Missing {
				fs = append(fs, Finding{Kind: KindPartMissing, Severity: Warning, Class: ClassInconclusive,
					Members: []string{m.Label()},
					Title:   m.Label() + " has no " + p,
					Explanation: "the source is a data dir, but this part of it is not there; checks that need it " +
						"could not be made for this member",
					Evidence: []Evidence{{Member: m.Label(), File: p, Observed: "absent",
						Expected: "present in a data dir"}}})
			}
			for _, p := range m.Problems {
				fs = append(fs, Finding{Kind: KindFileUnreadable, Severity: Warning, Class: ClassInconclusive,
					Members:     []string{m.Label()},
					Title:       unreadableTitle(m, &p),
					Explanation: p.Err.Error(),
					Evidence: []Evidence{{Member: m.Label(), File: p.File, Observed: p.Err.Error(),
						Expected: "readable"}}})
			}
		}
		return outcome(fs, "")
	},
})
