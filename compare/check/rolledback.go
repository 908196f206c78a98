package check

import (
	"fmt"
	"path"
	"slices"
	"strings"
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

// forgotten is what it means that a data dir is older than its member.
const forgotten = ". It forgot votes and entries that it had acknowledged; the leader panics it with " +
	"\"tocommit(N) is out of range\", or it votes a second time"

func olderFinding(m *evidence.Member, kind Kind, at At, explanation string, ev ...Evidence) *Finding {
	return &Finding{Kind: kind, Severity: Critical, Class: ClassMemberLostData, Members: []string{m.Label()}, At: at,
		Title: fmt.Sprintf("%s: the data dir is older than what the member has stored: its log ends at %d/%d",
			m.Label(), m.WAL.Summary.LastTerm, m.LastIndex()),
		Explanation: explanation + forgotten, Evidence: ev,
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
		begun := replay.StartTime(sv.ID)
		switch at := pv.lastWritten(m); {
		case at.Before(begun):
			f = copiedBefore(f, m, at, begun)
		case at.Before(begun.Add(longestStart)):
			f.orCopiedBefore(m, "its server had started", fmt.Sprintf("its files were last written %s, while that "+
				"process may have been starting", at.UTC().Format(timeLayout)))
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
	if f := pv.servedBeyond(m); f != nil {
		return f.Class == ""
	}
	x := pv.Members.elections().missingVotes(m)
	return x != nil && pv.writtenSince(m, x.term.First) == notSince
}

// firstRelease is the day of etcd 3.0. A file with an older time has lost its own in copying.
var firstRelease = time.Date(2016, time.June, 30, 0, 0, 0, 0, time.UTC)

// lastWritten is the newest modification time of the member's log segments and its database; the present time when it
// is unknown, as where it is older than a process that published itself in the same log.
func (pv *provenance) lastWritten(m *evidence.Member) time.Time {
	newest := firstRelease
	if man := m.Source.Manifest; man != nil {
		for _, f := range man.Files {
			if base := path.Base(f.Path); (base == "db" || path.Ext(base) == ".wal") && f.ModTime.After(newest) {
				newest = f.ModTime
			}
		}
	}
	if newest == firstRelease || pv.showsLater(m, newest) {
		return time.Now()
	}
	return newest
}

// showsLater reports whether the member's log reaches to the publish entry of a process that began after a time.
func (pv *provenance) showsLater(m *evidence.Member, at time.Time) bool {
	if pv.Replay == nil || pv.Replay.Survey == nil {
		return false
	}
	for _, starts := range pv.Replay.Survey.Starts {
		for _, st := range starts {
			if m.HasWAL() && st.Index <= m.LastIndex() && replay.StartTime(st.ID).After(at) {
				return true
			}
		}
	}
	return false
}

// since says whether files were written after a moment of which the log shows no exact time.
type since int

const (
	unknownSince since = iota
	notSince
	writtenSince
)

// writtenSince reports whether the log or the database of a member was written after the term of an entry began, by the
// times of the files and those of processes. A process began before it published itself. So a term began after every
// process that published itself before, and before the next process of a member that proposed an entry of the term or
// a later one.
func (pv *provenance) writtenSince(m *evidence.Member, first uint64) since {
	if m.Source.Manifest == nil {
		return unknownSince
	}
	after, before := pv.termBegan(first)
	switch at := pv.lastWritten(m); {
	case at.Before(after):
		return notSince
	case !before.IsZero() && at.After(before):
		return writtenSince
	}
	return unknownSince
}

// termBegan bounds the time at which the term that begins with an entry began; before is zero when no bound is known.
func (pv *provenance) termBegan(first uint64) (after, before time.Time) {
	for id, starts := range pv.Replay.Survey.Starts {
		for i, st := range starts {
			begun := replay.StartTime(st.ID)
			if st.Index < first {
				if begun.After(after) {
					after = begun
				}
				continue
			}
			ended := i > 0 && starts[i-1].Index >= first ||
				slices.ContainsFunc(pv.Replay.Survey.Served[id], func(sv replay.Served) bool {
					return sv.Index >= first && sv.Index < st.Index
				})
			if ended && (before.IsZero() || begun.Before(before)) {
				before = begun
			}
		}
	}
	return after, before
}

// copiedBefore turns the finding into a warning: the files are older than the process that they do not show.
func copiedBefore(f *Finding, m *evidence.Member, at, begun time.Time) *Finding {
	f.nothingRan(m, at, "the member was started again", "that process began")
	f.Evidence = append(f.Evidence, Evidence{Member: m.Label(), Field: "last write to log and database",
		Observed: at.UTC().Format(timeLayout), Expected: "after " + begun.UTC().Format(timeLayout)})
	return f
}

// nothingRan turns the finding into a warning: the files were last written before what they do not show.
func (f *Finding) nothingRan(m *evidence.Member, at time.Time, copied, written string) {
	f.Severity, f.Class = Warning, ""
	f.Title = fmt.Sprintf("%s was copied before %s: its log ends at %d/%d", m.Label(), copied,
		m.WAL.Summary.LastTerm, m.LastIndex())
	f.Explanation = fmt.Sprintf("its files were last written %s, before %s, so nothing ran on this "+
		"copy since. That is normal if members are copied one after another; "+
		"then copy it again to see the member's current state. If the host holds exactly this now, an older copy was "+
		"put back: start no server on it", at.UTC().Format(timeLayout), written)
	f.Remedy = []Remedy{{Text: "copy " + m.Label() + " again, and diagnose the new copy together with the others; " +
		"start no server on this one"}}
}

// orCopiedBefore says of a log that ends early that it may be sound, and only copied too early.
func (f *Finding) orCopiedBefore(m *evidence.Member, copied, why string) {
	f.Severity, f.Class = Warning, ClassInconclusive
	f.Title = fmt.Sprintf("%s was copied before %s, or its data dir is older than what the member has stored: its "+
		"log ends at %d/%d", m.Label(), copied, m.WAL.Summary.LastTerm, m.LastIndex())
	f.Explanation = fmt.Sprintf("%s. Either it was copied before that, which is normal while members run, or its data "+
		"dir was put back or lost its end: %s", strings.TrimSuffix(f.Explanation, forgotten), why)
	f.Remedy = []Remedy{
		{Text: "copy " + m.Label() + " again, and diagnose the new copy together with the others"},
		{Text: "if its host holds exactly this now, treat it as a member that lost its data: start no server on it, " +
			"and replace it", Precondition: "the new copy ends there too"}}
}

// longestStart is how long a server takes from the start of its process until it has published itself, where nothing
// holds it up: a copy that was made meanwhile has no sign of the process.
const longestStart = 10 * time.Second

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
	f := olderFinding(m, KindVoteMissing, At{Term: x.term.Term, Index: x.term.First},
		fmt.Sprintf("%s was elected in term %d; the logs of all other voters hold %s, %d needed, so this "+
			"member gave one", leader, x.term.Term, plural.Of(x.votes, "vote", "votes"), x.need),
		Evidence{Member: m.Label(), Field: "vote that must have been stored",
			Observed: fmt.Sprintf("highest term %d", m.HighestTerm()),
			Expected: fmt.Sprintf("HardState of term %d with a vote", x.term.Term), Show: showLogAs(m, "--raw")},
		Evidence{Member: x.top.Label(), Field: fmt.Sprintf("first entry of term %d", x.term.Term),
			Observed: fmt.Sprint(x.term.First), Expected: "a leader that a majority elected",
			Show: showLog(x.top, x.term.First)})
	switch pv.writtenSince(m, x.term.First) {
	case notSince:
		f.nothingRan(m, pv.lastWritten(m), fmt.Sprintf("term %d began", x.term.Term),
			"a process began that published itself before that term")
	case unknownSince:
		began := fmt.Sprintf("term %d began", x.term.Term)
		f.orCopiedBefore(m, began, "nothing shows when "+began)
	}
	return f
}
