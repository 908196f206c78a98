package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/shell"
)

var partsTogether = described(Check{
	ID:    X03,
	Needs: NeedLog,
	Run:   runPartsTogether,
})

func runPartsTogether(in *Input) Result {
	var fs []Finding
	checked := 0
	for _, m := range in.Members {
		if m.Source.Kind != evidence.KindDataDir {
			continue
		}
		checked++
		for _, look := range []func(*evidence.Member) *Finding{walBegunAnew, databaseRemoved,
			in.provenance().snapFileGone, in.provenance().backupAsDatabase} {
			if f := look(m); f != nil {
				fs = append(fs, *f)
			}
		}
	}
	if checked == 0 {
		return Result{Reason: "no source is a data dir"}
	}
	return outcome(fs, "")
}

// walBegunAnew: the log holds only the first entries of a new member, but the database or the snapshot files are from a
// later time.
func walBegunAnew(m *evidence.Member) *Finding {
	if !m.HasWAL() || len(m.WAL.Summary.Damage) > 0 || Restored(m) {
		return nil
	}
	s := &m.WAL.Summary
	if s.Start == dumplog.StartPurged || len(s.Segments) == 0 || s.Segments[0].Seq != 0 ||
		s.LastIndex > BootstrapVoters(m) &&
			len(s.Jumps) == 0 {
		return nil
	}
	f := &Finding{Kind: KindLogRemoved, Severity: Critical, Class: ClassMemberLostData, Members: []string{m.Label()},
		At:    At{Index: s.LastIndex + 1},
		Title: m.Label() + ": the log was started again, the rest of the data dir is older",
		Explanation: "the WAL was removed and the server started on the rest; its votes and what it had " +
			"acknowledged are forgotten. A separate WAL dir (--wal-dir) that was not given looks alike only if " +
			"another one is in its place"}
	ev := Evidence{Member: m.Label(), Field: "log started again",
		Expected: fmt.Sprintf("at most %d, where the log ends", m.LastIndex())}
	switch orphan := orphanSnap(m); {
	case m.HasDB() && m.ConsistentIndex() > m.LastIndex():
		ev.File, ev.Bucket, ev.Key, ev.Observed, ev.Show = m.DB.File, "meta", Bytes("consistent_index"),
			fmt.Sprint(m.ConsistentIndex()), showDB(m, "meta")
	case orphan != nil:
		ev.File, ev.Observed, ev.Show = orphan.File, fmt.Sprintf("a snapshot at %d/%d that the log does not know",
			orphan.Term, orphan.Index), showLogAs(m, "--snaps")
	default:
		return nil
	}
	f.Evidence = []Evidence{ev}
	return f
}

// orphanSnap is a sound .snap file from before the log: above its end, or below the snapshot that it begins with. A
// crash between writing the file and the record leaves a file within the range of the log.
func orphanSnap(m *evidence.Member) *dumplog.SnapFile {
	if !m.HasSnap() {
		return nil
	}
	s := &m.WAL.Summary
	for _, f := range m.Snap.Files {
		if f.Damage != nil || f.Broken || f.Index == 0 || s.SnapshotAt(f.Term, f.Index) != nil {
			continue
		}
		if f.Index > m.LastIndex() || len(s.Jumps) > 0 && s.Jumps[0].From <= BootstrapVoters(m)+1 &&
			f.Index <= s.Jumps[0].To {
			return f
		}
	}
	return nil
}

// databaseRemoved: the log has snapshots, so the database had content.
func databaseRemoved(m *evidence.Member) *Finding {
	if !m.HasWAL() || m.NewestRecord().Index == 0 {
		return nil
	}
	observed := ""
	switch {
	case m.DB == nil && m.HasSnap() && len(m.Snap.Files) > 0 &&
		slices.ContainsFunc(m.Source.Missing, func(p string) bool { return strings.HasSuffix(p, "db") }):
		observed = "absent, next to snapshot files"
	case m.HasDB() && len(m.DB.Damage) == 0 && m.DB.KV != nil && m.ConsistentIndex() == 0 && m.DB.KV.Revisions == 0:
		observed = "empty"
	default:
		return nil
	}
	f := &Finding{Kind: KindDBRemoved, Severity: Critical, Class: ClassMemberLostData, Members: []string{m.Label()},
		At: At{Index: 1},
		Title: fmt.Sprintf("%s: the database is %s, the log has a snapshot at index %d", m.Label(), observed,
			m.NewestRecord().Index),
		Evidence: []Evidence{{Member: m.Label(), File: "db", Field: "database removed", Observed: observed,
			Expected: fmt.Sprintf("a database that has applied at least %d", m.NewestRecord().Index),
			Show:     showLogAs(m, "--raw")}},
		Remedy: []Remedy{{Text: "keep the log until the member is reseeded: remove it, set its data dir aside, add " +
			"it again with an empty one", Command: removeMember(m.MemberID)}}}
	f.Explanation = "the database was removed while the log was kept; a server up to 3.6 starts on that only if the " +
		".snap files are gone as well and the log reaches back to its first entry, later ones never"
	return f
}

// snapFileGone is snapFilesRemoved, except that a copy of the snap folder may be older than the file. The database in
// the folder, which a server commits before it writes the file, is older then, too. Of a server that was not stopped in
// order, the list of files to copy may be older.
func (pv *provenance) snapFileGone(m *evidence.Member) *Finding {
	f := snapFilesRemoved(m)
	if f == nil {
		return nil
	}
	older := len(snapFolderSigns(m)) > 0
	if !older && !m.RootUnreadable() && stoppedInOrder(m) && !slices.ContainsFunc(pv.Members,
		func(o *evidence.Member) bool { return o.ClusterID == m.ClusterID && pv.tornCopy(o) != nil }) {
		return f
	}
	f.Kind = KindSnapshotFileNotCopied
	if older && f.Severity == Error && pv.tornCopy(m) != nil {
		f.Severity, f.Class, f.At = Warning, "", At{}
		f.Explanation = "the snap folder was copied before the log; a server cannot start on this copy"
	}
	return f
}

// snapFilesRemoved: the log knows a snapshot whose file is gone, on a release that reads it. Segments of another member
// know its snapshots.
func snapFilesRemoved(m *evidence.Member) *Finding {
	if !m.HasWAL() || !m.HasSnap() || m.MixedLog() || !m.Version.MayLack(release.SnapFileUnused) {
		return nil
	}
	// A newer sound file stands for older ones, which a server purged: then its record was lost with the end of the log
	// or with a damaged part of it. A server writes the record after entries above it.
	newest, end := m.NewestRecord().Index, m.LastIndex()
	if len(m.WAL.Summary.Damage) > 0 || max(m.ConsistentIndex(), m.WAL.Summary.MaxCommit) > end {
		end = newest
	}
	if newest == 0 || hasSnapDB(m, newest) ||
		slices.ContainsFunc(m.Snap.Files, func(f *dumplog.SnapFile) bool {
			index := max(f.Index, f.NameIndex)
			return index == newest || index > end && f.Damage == nil
		}) {
		return nil
	}
	f := &Finding{Kind: KindSnapshotFileGone, Severity: Warning, Members: []string{m.Label()},
		Title:       fmt.Sprintf("%s: the file of the newest raft snapshot (index %d) is gone", m.Label(), newest),
		Explanation: "an older one or the whole log serves instead; the server can start",
		Evidence: []Evidence{{Member: m.Label(), File: fmt.Sprintf("*-%016x.snap", newest),
			Field:    "snapshot file removed",
			Observed: "absent", Expected: "the file that the snapshot record of the log names",
			Show: showLogAs(m, "--raw")}}}
	_, cannot := usedSnapshot(m)
	if cannot == "" {
		return f
	}
	f.Severity, f.Class, f.At = Error, ClassSnapshotDamage, At{Index: newest}
	f.Explanation = cannot + ": a server of this version cannot start"
	return f
}

// usedSnapshot is the index of the newest usable snapshot file, 0 for none, and why the log does not continue it, ""
// where it does.
func usedSnapshot(m *evidence.Member) (from uint64, cannot string) {
	if s := m.NewestSnap(); s != nil {
		from = s.Index
	}
	switch s := &m.WAL.Summary; {
	case s.FirstIndex > from+1:
		return from, fmt.Sprintf("the log begins at index %d and no usable snapshot file reaches it", s.FirstIndex)
	case slices.ContainsFunc(s.Jumps, func(j dumplog.Jump) bool { return j.To > from }):
		return from, "a snapshot was received from another member: the log lacks entries before it, and only its " +
			"file stands for them"
	}
	return from, ""
}

// backupAsDatabase: the database of a data dir still has the trailer that only snapshot save writes.
func (pv *provenance) backupAsDatabase(m *evidence.Member) *Finding {
	if !m.HasDB() {
		return nil
	}
	t := m.DB.Trailer
	if t.State == "" || t.State == "absent" {
		return pv.strippedBackup(m)
	}
	if t.State != "match" && slices.ContainsFunc(m.DB.Damage, cutShort) {
		return nil // a file that lost its end can have the size of a backup by chance
	}
	f := &Finding{Kind: KindBackupUsedAsDB, Severity: Error, Class: ClassTornCopy, Members: []string{m.Label()},
		At:    At{Index: max(m.ConsistentIndex(), 1)},
		Title: m.Label() + ": the database is a backup file that was copied into its place",
		Explanation: fmt.Sprintf("it ends with the sha256 of a snapshot save; its consistent index is %d, the log "+
			"ends at %d. Use a backup by restoring it, which creates its own log",
			m.ConsistentIndex(), m.LastIndex()),
		Evidence: []Evidence{{Member: m.Label(), File: m.DB.File, Offset: Int64(m.DB.Handle.Size() - 32), Length: 32,
			Field: "sha256 trailer", Observed: t.State, Expected: "no trailer"}},
		Remedy: []Remedy{{Text: "restore the backup into a new data dir",
			Command: shell.Format("etcdutl snapshot restore <BACKUP> --data-dir <NEW>")}}}
	return f
}

// strippedBackup: the database is a copy that bbolt wrote, without a trailer, and it was not received from a leader.
// The log shows that someone put it there: it has applied entries that the log does not hold, or a server started after
// its index and would have written to it.
func (pv *provenance) strippedBackup(m *evidence.Member) *Finding {
	if !m.HasWAL() || len(m.DB.Damage) > 0 || !neverCommitted(m) || pristineReceived(m) || justInstalled(m) ||
		m.ConsistentIndex() == 0 {
		return nil
	}
	ci, why := m.ConsistentIndex(), ""
	if ci > m.LastIndex() {
		why = fmt.Sprintf("the log ends at %d", m.LastIndex())
	}
	if pv.Replay != nil && pv.Replay.Survey != nil {
		for _, st := range pv.Replay.Survey.Starts[m.MemberID] {
			if why == "" && st.Index > ci && m.WAL.Summary.TermAt(st.Index) != 0 {
				why = fmt.Sprintf("a server published its start at %d, and would have written to the database",
					st.Index)
			}
		}
	}
	if why == "" {
		return nil
	}
	return &Finding{Kind: KindCopyUsedAsDB, Severity: Error, Class: ClassTornCopy, Members: []string{m.Label()},
		At:    At{Index: ci},
		Title: m.Label() + ": the database is a copy that no server has written to, and does not fit the log",
		Explanation: fmt.Sprintf("its meta pages are those of a snapshot save; its consistent index is %d, and %s", ci,
			why),
		Evidence: []Evidence{{Member: m.Label(), File: m.DB.File, Page: Uint64(0), Offset: Int64(0),
			Field: "meta pages of a copy", Observed: "equal meta pages but for their transaction IDs",
			Expected: "two transactions, or a received snapshot at its index",
			Show:     showDB(m, "--pages")}}}
}

// cutShort reports whether the damage shows a file without its end.
func cutShort(d *dumpdb.DamageError) bool {
	return d.Kind == dumpdb.DamageTruncated || d.Kind == dumpdb.DamageOutOfFile
}
