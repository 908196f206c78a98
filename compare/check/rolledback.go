package check

import (
	"fmt"
	"path"
	"time"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

var logNotOlder = described(Check{
	ID:    R10,
	Needs: NeedLog | NeedTwo,
	Run:   runLogNotOlder,
})

func runLogNotOlder(in *Input) Result {
	if in.Replay == nil || in.Replay.Survey == nil {
		return Result{Reason: "the logs could not be merged"}
	}
	var fs []Finding
	for _, m := range in.Members {
		if m.MemberID == 0 || !m.HasWAL() || len(m.WAL.Summary.Damage) > 0 || in.provenance().wiped(m) != nil ||
			in.Members.logs().longerCopyOf(m) {
			continue
		}
		if f := in.provenance().servedBeyond(m); f != nil {
			fs = append(fs, *f)
		} else if f := in.provenance().voteMissing(m); f != nil {
			fs = append(fs, *f)
		}
	}
	return outcome(fs, "")
}

func olderFinding(m *evidence.Member, kind Kind, at At, explanation string, ev ...Evidence) *Finding {
	return &Finding{Kind: kind, Severity: Critical, Class: ClassMemberLostData, Members: []string{m.Label()}, At: at,
		Title: fmt.Sprintf("%s: the data dir is older than what the member has stored: its log ends at %d/%d",
			m.Label(), m.WAL.Summary.LastTerm, m.LastIndex()),
		Explanation: explanation + ". It forgot votes and entries that it had acknowledged; the leader panics it " +
			"with \"tocommit(N) is out of range\", or it votes a second time", Evidence: ev,
		Remedy: []Remedy{{Text: "treat it as a member that lost its data: remove it, set the dir aside, add it again " +
			"with an empty one", Command: removeMember(m.MemberID)}}}
}

// servedBeyond: a process of the member served clients after a publish entry that its log does not reach.
func (pv *provenance) servedBeyond(m *evidence.Member) *Finding {
	last := m.LastIndex()
	for _, sv := range pv.Replay.Survey.Served[m.MemberID] {
		if sv.Publish <= last {
			continue
		}
		holder := pv.Members.logs().holderOf(sv.Index)
		if holder == nil {
			continue
		}
		f := olderFinding(m, KindLogEndsBeforeServed, At{Index: last + 1, Term: pv.Members.logs().termAt(last + 1)},
			fmt.Sprintf("the process that began %s published itself at %d and then proposed entry %d for a client, "+
				"so the member had applied its log up to %d at least",
				replay.StartTime(sv.ID).Format(timeLayout), sv.Publish, sv.Index, sv.Publish),
			Evidence{Member: m.Label(), Field: "log ends before what the member served",
				Observed: fmt.Sprintf("last index %d", last),
				Expected: fmt.Sprintf("at least %d", sv.Publish), Show: showLog(m, last)},
			Evidence{Member: holder.Label(), Field: fmt.Sprintf("entry %d", sv.Index), Observed: sv.What +
				", proposed by " + m.MemberID.String(), Expected: "a log of that member that holds its publish entry",
				Show: showLog(holder, sv.Index)})
		if begun := replay.StartTime(sv.ID); lastWritten(m).Before(begun) {
			f = copiedBefore(f, m, begun)
		}
		return f
	}
	return nil
}

// copiedEarly reports whether the source is a copy that no server ran on, of a member that continued after it.
func (pv *provenance) copiedEarly(m *evidence.Member) bool {
	if pv.Replay == nil || pv.Replay.Survey == nil {
		return false
	}
	f := pv.servedBeyond(m)
	return f != nil && f.Severity == Warning
}

// lastWritten is the newest modification time of the member's log segments and its database; the present time when it
// is unknown.
func lastWritten(m *evidence.Member) time.Time {
	var newest time.Time
	if man := m.Source.Manifest; man != nil {
		for _, f := range man.Files {
			if base := path.Base(f.Path); (base == "db" || path.Ext(base) == ".wal") && f.ModTime.After(newest) {
				newest = f.ModTime
			}
		}
	}
	if newest.IsZero() {
		return time.Now()
	}
	return newest
}

// copiedBefore turns the finding into a warning: the files are older than the process that they do not show.
func copiedBefore(f *Finding, m *evidence.Member, begun time.Time) *Finding {
	at := lastWritten(m).UTC().Format(timeLayout)
	f.Severity, f.Class = Warning, ""
	f.Title = fmt.Sprintf("%s was copied before the member was started again: its log ends at %d/%d", m.Label(),
		m.WAL.Summary.LastTerm, m.LastIndex())
	f.Explanation = fmt.Sprintf("its files were last written %s, before that process began, so nothing ran on this "+
		"copy since. That is normal if members are stopped, copied and started one after another; "+
		"then copy it again to see the member's current state. If the host holds exactly this now, an older copy was "+
		"put back: start no server on it", at)
	f.Evidence = append(f.Evidence, Evidence{Member: m.Label(), Field: "last write to log and database", Observed: at,
		Expected: "after " + begun.UTC().Format(timeLayout)})
	f.Remedy = nil
	return f
}

const timeLayout = "2006-01-02T15:04:05Z"

// voteMissing: a leader was elected in a term that the member's log does not know, and the votes of all other voters,
// whose logs know the term, are one too few.
func (pv *provenance) voteMissing(m *evidence.Member) *Finding {
	x := pv.Members.elections().missingVotes(m)
	if x == nil {
		return nil
	}
	leader := "a leader"
	if x.leader != 0 {
		leader = pv.Members.MemberName(x.leader)
	}
	return olderFinding(m, KindVoteMissing, At{Term: x.term.Term, Index: x.term.First},
		fmt.Sprintf("%s was elected in term %d; the logs of all other voters hold %s, %d needed, so this "+
			"member gave one", leader, x.term.Term, plural.Of(x.votes, "vote", "votes"), x.need),
		Evidence{Member: m.Label(), Field: "vote that must have been stored",
			Observed: fmt.Sprintf("highest term %d", m.HighestTerm()),
			Expected: fmt.Sprintf("HardState of term %d with a vote", x.term.Term), Show: showLogAs(m, "--raw")},
		Evidence{Member: x.top.Label(), Field: fmt.Sprintf("first entry of term %d", x.term.Term),
			Observed: fmt.Sprint(x.term.First), Expected: "a leader that a majority elected",
			Show: showLog(x.top, x.term.First)})
}
