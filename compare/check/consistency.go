package check

import (
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

var dbTermMatchesLog = Check{
	ID: "D05", Title: "meta/term is the term of the entry at the consistent index",
	Doc: `From 3.5 on index and term are stored together, so they name one entry of the log. Another term there means that database and log come
from different times, or that a binary of 3.4 or older wrote last.
Not checked when the entry was purged from the log.`,
	Needs: NeedDB | NeedLog,
	Run:   runDBTerm,
}

func runDBTerm(in *Input) Result {
	var fs []Finding
	checked := 0
	for _, m := range in.Members {
		if !m.HasDB() || !m.HasWAL() || m.DB.Meta.Term == nil || m.DB.Meta.ConsistentIndex == nil || m.IndexFrozen() {
			continue // a frozen index is told by C01
		}
		want, ok := termOf(m, m.ConsistentIndex())
		if !ok {
			continue
		}
		checked++
		if have := *m.DB.Meta.Term; have != want {
			class := "torn-copy"
			if have < want {
				class = "latent-divergence" // a binary of 3.4 or older moved the index alone
			}
			fs = append(fs, Finding{Severity: Error, Class: class, Members: []string{m.Label()},
				At: At{Term: want, Index: m.ConsistentIndex()},
				Title: fmt.Sprintf("%s: the database says term %d at index %d, the log says %d", m.Label(), have,
					m.ConsistentIndex(), want),
				Explanation: "database and log come from different times, or an older binary wrote the database last",
				Evidence: []Evidence{{Member: m.Label(), File: m.DB.File, Bucket: "meta", Key: Bytes("term"),
					Observed: fmt.Sprint(have),
					Expected: fmt.Sprintf("%d, the term of entry %d", want, m.ConsistentIndex()),
					Show:     showLog(m, m.ConsistentIndex())}}})
		}
	}
	if checked == 0 {
		return Result{Reason: "no source has a database of 3.5 or later whose entry at the consistent index is in its log"}
	}
	return outcome(fs, "")
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

var commitInLog = Check{
	ID: "R03", Title: "the commit index of HardState lies within the log",
	Doc: `HardState.commit never exceeds the last entry or snapshot: a commit beyond it means that the tail of the log is gone. A server refuses to
start ("state.commit N is out of range").`,
	Needs: NeedLog,
	Run:   runCommitInLog,
}

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
		fs = append(fs, Finding{Severity: Critical, Class: "wal-damage", Members: []string{m.Label()},
			At:          At{Index: last + 1},
			Title:       fmt.Sprintf("%s: HardState says commit %d, the log ends at %d", m.Label(), commit, last),
			Explanation: "entries that were committed are no longer in the log; " + in.holders(m, last+1, commit),
			Evidence: []Evidence{{Member: m.Label(), File: s.HardStatePos.Segment, Offset: Int64(s.HardStatePos.Offset),
				Field:    "HardState.commit",
				Observed: fmt.Sprint(commit), Expected: fmt.Sprintf("at most %d", last), Show: showLogAs(m, "--raw")}}})
	}
	if checked == 0 {
		return Result{Reason: "no log carries a HardState"}
	}
	return outcome(fs, "")
}

var learnerFlags = Check{
	ID: "M07", Title: "bucket members and raft agree on who is a learner, and none is both member and removed",
	Doc: `isLearner in bucket members follows from the conf changes. Up to 3.5.19 a promotion reached only the v2 store, and an update of a
learner's peer URLs cleared the flag up to 3.4.45, 3.5.30 and 3.6.11. From 3.6 on a server boots with the bucket, and 3.7 builds raft's voters
from it. An ID in both members and members_removed, or in the bucket without raft knowing it, is a zombie: up to 3.5 nothing shows it, and the
upgrade to 3.6 brings it to life on all members at once, with a vote from 3.7 on. A restore by a tool of 3.4 or older leaves such rows.
Not judged where the log has a hole between raft's newest configuration and what the database has applied.`,
	Needs: NeedDB | NeedLog,
	Run:   runLearnerFlags,
}

func runLearnerFlags(in *Input) Result {
	var fs []Finding
	checked := 0
	for _, m := range in.Members {
		if !m.HasDB() || !m.ConfigurationCurrent() || len(m.DB.Members) == 0 || m.AppliedMax < in.confIndexOf(m) {
			continue
		}
		checked++
		for i := range m.DB.Members {
			if f := in.learnerFinding(m, &m.DB.Members[i]); f != nil {
				fs = append(fs, *f)
			}
		}
	}
	if checked == 0 {
		return Result{Reason: "no source tells both raft's configuration and the member list at its applied index"}
	}
	return outcome(fs, "")
}

func (in *Input) confIndexOf(m *evidence.Member) uint64 {
	if !m.HasWAL() {
		return 0
	}
	return in.confIndex(m).Index
}

func (in *Input) learnerFinding(m *evidence.Member, row *dumpdb.Member) *Finding {
	id := dumplog.ID(row.ID)
	ms := &m.Membership
	f := &Finding{Severity: Error, Class: "membership", Members: []string{m.Label()}}
	ev := Evidence{Member: m.Label(), File: m.DB.File, Page: Uint64(row.Page), Bucket: "members",
		Key: Bytes(id.String()), Show: showDB(m, "members")}
	if m.HasWAL() {
		f.At = in.confIndex(m)
	}
	switch {
	case slices.Contains(m.DB.Removed, row.ID):
		f.Title, ev.Field = fmt.Sprintf("%s: member %s is listed and removed at once", m.Label(), id), "zombie"
		ev.Observed, ev.Expected = "in members and in members_removed", "in one of them"
	case row.IsLearner && ms.IsVoter(id):
		f.Title, ev.Field = fmt.Sprintf("%s: member %s is a voter for raft and a learner in bucket members", m.Label(),
			id), "isLearner"
		ev.Observed, ev.Expected = "learner", "voter, as raft's configuration says"
	case !row.IsLearner && slices.Contains(ms.Learners, id):
		f.Title, ev.Field = fmt.Sprintf("%s: member %s is a learner for raft and a voter in bucket members", m.Label(),
			id), "isLearner"
		ev.Observed, ev.Expected = "voter", "learner, as raft's configuration says"
	case !ms.IsVoter(id) && !slices.Contains(ms.Learners, id):
		f.Title, ev.Field = fmt.Sprintf("%s: member %s is in bucket members, raft does not know it", m.Label(), id),
			"zombie"
		ev.Observed, ev.Expected = "in members", "a voter or learner of raft's configuration"
	default:
		return nil
	}
	f.Explanation = "the server counts votes by raft's configuration; from 3.6 on it lists members, and from 3.7 on " +
		"builds its voters, from the bucket"
	f.Evidence = []Evidence{ev}
	return f
}
