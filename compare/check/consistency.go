package check

import (
	"fmt"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

var dbTermMatchesLog = described(Check{
	ID:    D05,
	Needs: NeedDB,
	Run:   runDBTerm,
})

func runDBTerm(in *Input) Result {
	var fs []Finding
	checked := 0
	for _, m := range in.Members {
		if !m.HasDB() || m.DB.Meta.Term == nil || m.DB.Meta.ConsistentIndex == nil {
			continue
		}
		if !m.HasWAL() {
			made, found := backupTerm(in, m)
			checked += made
			fs = append(fs, found...)
			continue
		}
		if m.IndexFrozen() {
			continue // C01 reports a frozen index
		}
		if m.Version.Has(release.TermInMeta).Excluded() {
			continue // its servers store no term: the row is from the restore
		}
		want, ok := termOf(m, m.ConsistentIndex())
		if !ok {
			continue
		}
		checked++
		if have := *m.DB.Meta.Term; have != want {
			class := ClassTornCopy
			if have < want {
				class = ClassLatentDivergence // a binary of 3.4 or older moved the index alone
			}
			fs = append(fs, Finding{Kind: KindDBTermDiffers, Severity: Error, Class: class,
				Members: []string{m.Label()},
				At:      At{Term: want, Index: m.ConsistentIndex()},
				Title: fmt.Sprintf("%s: the database says term %d at index %d, the log says %d", m.Label(), have,
					m.ConsistentIndex(), want),
				Explanation: "database and log come from different times, or an older binary wrote the database last",
				Evidence: []Evidence{{Member: m.Label(), File: m.DB.File, Bucket: "meta", Key: Bytes("term"),
					Observed: fmt.Sprint(have),
					Expected: fmt.Sprintf("%d, the term of entry %d", want, m.ConsistentIndex()),
					Show:     showLog(m, m.ConsistentIndex())}}})
		}
	}
	made, found := databaseTerms(in)
	if checked += made; checked == 0 {
		return Result{Reason: "no source has a database of 3.5 or later whose entry at the consistent index is in " +
			"its log, or in another database with the same keys"}
	}
	return outcome(append(fs, found...), "")
}

// backupTerm compares the term in a database without a log with the committed entry at its consistent index in the
// other logs, which must agree about it and be of one cluster. After a restore only another database shows that it is
// not from before it. It also returns the number of comparisons.
func backupTerm(in *Input, m *evidence.Member) (made int, fs []Finding) {
	index, have := m.ConsistentIndex(), *m.DB.Meta.Term
	var want uint64
	var cluster dumplog.ID
	var from *evidence.Member
	restored, databases := false, false
	for _, other := range in.Members {
		if !other.HasWAL() {
			continue
		}
		restored, databases = restored || other.WAL.Summary.Start != dumplog.StartBootstrap, databases || other.HasDB()
		if cluster != 0 && other.ClusterID != cluster {
			return 0, nil // which of the clusters it is of is not known
		}
		cluster = other.ClusterID
		if other.Commit < index || other.Version.Has(release.TermInMeta).Excluded() {
			continue
		}
		t, ok := termOf(other, index)
		if ok && from != nil && t != want {
			return 0, nil
		}
		if ok {
			want, from = t, other
		}
	}
	if from == nil || restored && !databases {
		return 0, nil
	}
	if have == want {
		return 1, nil
	}
	return 1, []Finding{{Kind: KindBackupTermDiffers, Severity: Error, Class: ClassDataDivergence,
		Members: []string{m.Label()}, At: At{Term: want, Index: index},
		Title: fmt.Sprintf("%s: the database says term %d at index %d, the log of %s says %d", m.Label(), have, index,
			from.Label(), want),
		Explanation: "index and term are stored together: one of the two rows was altered, or the member that the " +
			"database was taken from could not move its index (3.5.0 to 3.5.2 after a restore), or an older binary " +
			"wrote it last, or it is of another log, from before a restore",
		Evidence: []Evidence{{Member: m.Label(), File: m.DB.File, Bucket: "meta", Key: Bytes("term"),
			Observed: fmt.Sprint(have), Expected: fmt.Sprintf("%d, the term of entry %d", want, index),
			Show: showLog(from, index)}}}}
}

// termOf returns the term of the entry or snapshot at index in the member's own log.
func termOf(m *evidence.Member, index uint64) (uint64, bool) {
	if t := m.WAL.TermAt(index); t > 0 {
		return t, true
	}
	for _, s := range m.WAL.Summary.Snapshots {
		if s.Index == index {
			return s.Term, true
		}
	}
	return 0, false
}

var commitInLog = described(Check{
	ID:    R03,
	Needs: NeedLog,
	Run:   runCommitInLog,
})

func runCommitInLog(in *Input) Result {
	var fs []Finding
	checked := 0
	for _, m := range in.Members {
		if !m.HasWAL() || m.WAL.Summary.HardState == nil {
			continue
		}
		checked++
		s, last := &m.WAL.Summary, m.LastIndex()
		commit := max(s.HardState.Commit, s.MaxCommit)
		if commit <= last {
			continue
		}
		fs = append(fs, Finding{Kind: KindCommitBeyondLog, Severity: Critical, Class: ClassWALDamage,
			Members: []string{m.Label()},
			At:      At{Index: last + 1},
			Title:   fmt.Sprintf("%s: HardState says commit %d, the log ends at %d", m.Label(), commit, last),
			Explanation: "entries that were committed are no longer in the log; " +
				in.Members.logs().holders(m, last+1, commit),
			Evidence: []Evidence{{Member: m.Label(), File: s.HardStatePos.Segment, Offset: Int64(s.HardStatePos.Offset),
				Field:    "HardState.commit",
				Observed: fmt.Sprint(commit), Expected: fmt.Sprintf("at most %d", last), Show: showLogAs(m, "--raw")}}})
	}
	if checked == 0 {
		return Result{Reason: "no log carries a HardState"}
	}
	return outcome(fs, "")
}
