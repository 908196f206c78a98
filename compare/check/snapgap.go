package check

import (
	"fmt"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/release"
)

// gapFields are the fields of the first evidence of S02, by the kind of entries between the database and the newest
// raft snapshot.
var gapFields = map[Kind]string{
	// Every entry in the gap is known and has no effect, so nothing is lost.
	KindGapAlarmQueries: "gap of alarm queries",
	KindGapRefused:      "gap of refused entries",
	KindGapAlarmRaises:  "gap of repeated alarms",
	// The database holds effects of entries in the gap or after it; only its index is too low.
	KindGapOverwritten: "gap with its effects present",
	// A leader's snapshot was received and hardly anything follows it; the database is the one from before.
	KindGapNotInstalled: "gap of a received snapshot",
	// Entries of this cluster are not in the database at all.
	KindGapForeign: "database of another cluster",
	// Entries with effects, or entries that no log holds.
	KindGapOther: "gap with effects",
}

// shortlyAfter is how many entries may follow a received snapshot whose database was never installed. The member cannot
// start again, so its log ends soon after the snapshot.
const shortlyAfter = 16

// snapGap returns the kind of the gap between the member's database and the snapshot.
func snapGap(rp *replay.Result, m *evidence.Member, snap dumplog.SnapshotRecord) Kind {
	var r *replay.MemberResult
	if rp != nil {
		for _, x := range rp.Members {
			if x.Member == m {
				r = x
			}
		}
	}
	received := Received(m, snap.Index)
	switch {
	case r != nil && r.Checked && (r.Ahead != nil || received && len(r.Extra) > 0):
		return KindGapOverwritten
	case r != nil && r.Behind != nil && r.Behind.Harmless() && r.Behind.Refused > 0:
		return KindGapRefused
	case r != nil && r.Behind != nil && r.Behind.Harmless() && r.Behind.AlarmQueries > 0:
		return KindGapAlarmQueries
	case r != nil && r.Behind != nil && r.Behind.Harmless() && r.Behind.AlarmRaises > 0:
		return KindGapAlarmRaises
	case received && m.LastIndex() <= snap.Index+shortlyAfter && reachesJump(rp, m, snap):
		return KindGapNotInstalled
	}
	return KindGapOther
}

// lastBefore is the last entry that the member's log holds below an index.
func lastBefore(m *evidence.Member, index uint64) (last uint64) {
	for _, t := range m.WAL.Summary.Terms {
		if t.First < index {
			last = max(last, min(t.Last, index-1))
		}
	}
	return last
}

// reachesJump reports whether the database holds all that the member knew to be committed when it received the
// snapshot. A member that waits for a snapshot applies nothing, so its database is at the end of its log; an older one
// was put back. Up to 3.4 the index lags behind entries that write no key.
func reachesJump(rp *replay.Result, m *evidence.Member, snap dumplog.SnapshotRecord) bool {
	ci := m.ConsistentIndex()
	if ci >= min(snap.Commit, lastBefore(m, snap.Index)) {
		return true
	}
	return m.Version.MayLack(release.IndexWithEveryEntry) && rp != nil && rp.Survey != nil &&
		rp.Survey.KeyWrite(ci+1, snap.Commit) == 0
}

// Received reports whether the snapshot at that index came from a leader: the member's log never held its entry.
func Received(m *evidence.Member, index uint64) bool {
	s := &m.WAL.Summary
	return s.TermAt(index) == 0 && (s.FirstIndex == 0 || s.FirstIndex > index || s.LastIndex < index ||
		hasJump(s, index))
}

func hasJump(s *dumplog.Summary, index uint64) bool {
	for _, j := range s.Jumps {
		if j.From <= index && index <= j.To {
			return true
		}
	}
	return false
}

// judgeGap sets class and explanation of a finding of S02 according to the entries in the gap.
func judgeGap(rp *replay.Result, f *Finding, m *evidence.Member, snap dumplog.SnapshotRecord) {
	f.Kind = snapGap(rp, m, snap)
	f.Evidence[0].Field = gapFields[f.Kind]
	const refuses = "the server refuses to start: it cannot bridge the entries between the database and the snapshot"
	switch f.Kind {
	case KindGapAlarmQueries, KindGapRefused, KindGapAlarmRaises:
		f.Class = ClassLatentDivergence
		f.Explanation = fmt.Sprintf("%s. None of them has an effect, so the database lacks nothing", refuses)
	case KindGapOverwritten:
		f.Class = ClassLatentDivergence
		f.Explanation = "the database holds effects of entries above its index: only the index is too low. A server " +
			"refuses to start, or applies these entries a second time"
	case KindGapNotInstalled:
		f.Class = ClassSnapshotDamage
		f.Explanation = refuses + fmt.Sprintf(". The snapshot came from a leader; the file %016x.snap.db with its "+
			"database is gone", snap.Index)
	default:
		f.Class, f.Explanation = ClassMemberLostData, refuses
	}
}

// foreignDatabase turns the finding of an older database into one of a database that another cluster wrote.
func (ss Sources) foreignDatabase(f *Finding, m *evidence.Member) {
	if f.Kind != KindGapOther || !m.DatabaseOfAnotherCluster(ss) {
		return
	}
	f.Kind = KindGapForeign
	f.Evidence[0].Field = gapFields[f.Kind]
	title, row, names := listsStrangers(m)
	f.Title = title
	f.Explanation = fmt.Sprintf("no log, snapshot or other database at hand of this cluster names %s, not even as "+
		"removed. The database (consistent index %d) is older than the newest raft snapshot too, so the server "+
		"refuses to start", names, m.ConsistentIndex())
	f.Evidence = append(f.Evidence, row)
}

// listsStrangers is the title of a finding of a database that another cluster wrote, its row of evidence, and the
// members that the database lists.
func listsStrangers(m *evidence.Member) (title string, row Evidence, names string) {
	ids := make([]string, 0, len(m.Membership.Bucket))
	for _, id := range m.Membership.Bucket {
		ids = append(ids, id.String())
	}
	names = plural.Some(ids, namedRows)
	return fmt.Sprintf("%s holds the database of another cluster: it lists %s, which nothing else names", m.Label(),
			names), Evidence{Member: m.Label(), File: m.DB.File, Bucket: "members", Field: "member IDs",
			Observed: names, Expected: "members of this cluster", Show: showDB(m, "members")}, names
}
