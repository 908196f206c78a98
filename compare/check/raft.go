package check

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/majority"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

var logsMatch = described(Check{
	ID:    R01,
	Needs: NeedLog | NeedTwo,
	Run:   runLogsMatch,
})

func runLogsMatch(in *Input) Result {
	if in.Replay == nil || in.Replay.First == 0 {
		return Result{Reason: "no log entries"}
	}
	logs := 0
	for _, m := range in.Members {
		if m.HasLog() {
			logs++
		}
	}
	if logs < 2 {
		return Result{Reason: "fewer than two logs with entries"}
	}
	var fs []Finding
	for _, s := range in.Replay.Shifts {
		if len(s.Short) > 0 { // else R08
			fs = append(fs, in.shiftedLogs().finding(s))
		}
	}
	odd := in.alteredLogs().find()
	for i := range odd {
		fs = append(fs, in.alteredLogs().finding(&odd[i]))
	}
	if diffs := without(in.Replay.LogDiffs, odd); len(diffs) > 0 {
		fs = append(fs, diffsFinding(in, diffs))
	}
	return outcome(fs, "")
}

func diffsFinding(in *Input, diffs []replay.LogDiff) Finding {
	first := diffs[0]
	f := Finding{Kind: KindCommittedEntriesDiffer, Severity: Critical, Class: ClassDataDivergence, Undecided: true,
		At:    At{Index: first.Index},
		Title: fmt.Sprintf("committed log entries differ from index %d on (%d indexes)", first.Index, len(diffs)),
		Explanation: "two members committed different entries at one index: raft's safety was broken, by data loss " +
			"on one of them or by two clusters of one name"}
	if r := forcedAt(in.Replay, first.Index); r != nil {
		f.Kind = KindForcedApart
		f.Title += ", where a new cluster was forced on " + in.Members[r.Member].Label()
		f.Explanation = "the forced start put removals in the place of entries that another member holds as " +
			"committed; from there on each side has its own history"
	}
	all := map[int]string{}
	for _, d := range diffs {
		maps.Copy(all, d.By)
		for _, i := range in.Members.byLabel(d.By) {
			in.add(&f, func() Evidence { return in.entryEvidence(i, d.Index, d.By[i], sameEntry) })
		}
	}
	f.Members = in.Members.labelsOf(in.Members.byLabel(all))
	return f
}

// forcedAt is the forced start that wrote the entry at that index, nil if none did.
func forcedAt(rp *replay.Result, index uint64) *replay.Forced {
	for i := range rp.Forced {
		if r := &rp.Forced[i]; r.First <= index && index <= r.Last {
			return r
		}
	}
	return nil
}

var committedKept = described(Check{
	ID:    R04,
	Needs: NeedLog,
	Run:   runCommittedKept,
})

func runCommittedKept(in *Input) Result {
	var fs []Finding
	for _, m := range in.Members {
		if !m.HasWAL() {
			continue
		}
		for _, o := range m.WAL.Summary.Overwrites {
			if o.Commit < o.Index {
				continue
			}
			class, because := ClassDataDivergence, "raft never does that: the log was edited, rolled back or forced "+
				"into a new cluster"
			if afterChainBreak(m, &o) {
				class, because = ClassWALDamage, "the chain of checksums breaks before the records that replace them: "+
					"they are not the continuation of this log"
			}
			fs = append(fs, Finding{Kind: KindCommittedReplaced, Severity: Critical, Class: class,
				Members: []string{m.Label()},
				At:      At{Term: o.Term, Index: o.Index},
				Title:   fmt.Sprintf("%s: committed entry %d was replaced", m.Label(), o.Index),
				Explanation: fmt.Sprintf("the log had stored commit %d and then replaced %s; %s", o.Commit,
					plural.Span(o.Index, o.OldLast, "entry", "entries"), because),
				Evidence: []Evidence{{Member: m.Label(), File: o.Segment, Offset: Int64(o.Offset),
					Field:    fmt.Sprintf("entry %d/%d", o.Term, o.Index),
					Observed: fmt.Sprintf("replaces entries up to %d/%d", o.OldTerm, o.OldLast),
					Expected: fmt.Sprintf("an index above %d", o.Commit), Show: showLog(m, o.Index)}}})
		}
	}
	return outcome(fs, in.Members.unreadableParts("wal"))
}

// afterChainBreak reports whether the log's chain of checksums breaks at or before the records that replace others.
func afterChainBreak(m *evidence.Member, o *dumplog.Overwrite) bool {
	return slices.ContainsFunc(m.WAL.Summary.Damage, func(d *dumplog.DamageError) bool {
		return d.Kind == dumplog.DamageChain && (d.Segment < o.Segment || d.Segment == o.Segment &&
			d.Offset <= o.Offset)
	})
}

var membersAtSameIndex = described(Check{
	ID:    R02,
	Needs: NeedLog | NeedTwo,
	Run:   runMembersLevel,
})

func runMembersLevel(in *Input) Result {
	commit, by := in.Members.Committed(in.Replay), in.Members.HeldByMajority()
	var fs []Finding
	for i, m := range in.Members {
		if !m.HasWAL() || in.provenance().wiped(m) != nil || in.Membership().IsRemoved(m) &&
			!in.Membership().allRemoved() || logParts(in.Replay, i) {
			continue
		}
		last := max(m.LastIndex(), m.ConsistentIndex())
		if last < commit && changesAfter(in, last) {
			fs = append(fs, Finding{Kind: KindMemberLags, Severity: Info, Class: ClassLagging,
				Members: []string{m.Label()},
				At:      At{Index: last},
				Title:   m.Label() + " lags by " + plural.Of(commit-last, "entry", "entries"),
				Explanation: fmt.Sprintf("its log ends at %d, the others have committed up to %d; %s", last, commit,
					in.Members.logs().prefixText(m)),
				Evidence: []Evidence{{Member: m.Label(), Field: "last index", Observed: fmt.Sprint(last),
					Expected: fmt.Sprint(commit), Show: showLog(m, last)}}})
		}
		if m.LastIndex() > commit {
			fs = append(fs, Finding{Kind: KindTailUncommitted, Severity: Info, Class: ClassUncommittedTail,
				Members: []string{m.Label()},
				At:      At{Index: commit + 1},
				Title: fmt.Sprintf("%s holds %s that no source proves committed", m.Label(),
					plural.Of(m.LastIndex()-commit, "entry", "entries")),
				Explanation: tailText(by, m, commit),
				Evidence: []Evidence{{Member: m.Label(), Field: "last index", Observed: fmt.Sprint(m.LastIndex()),
					Expected: fmt.Sprintf("commit %d", commit), Show: showLog(m, commit+1)}}})
		}
	}
	return outcome(fs, "")
}

// tailText says what becomes of the entries of a log above a commit index. by is nil if no majority holds any of
// them.
func tailText(by *majority.Commit, m *evidence.Member, commit uint64) string {
	switch {
	case by == nil || by.Index <= commit || !by.IsIn(m):
		return fmt.Sprintf("above the highest commit index of all sources: %s; a later leader may replace what is "+
			"there", plural.Span(commit+1, m.LastIndex(), "entry", "entries"))
	case by.Index < m.LastIndex():
		return fmt.Sprintf("%s. A later leader may replace what comes after entry %d", by.Says(commit+1), by.Index)
	}
	return by.Says(commit + 1)
}

// logParts reports whether the log of a member and another one hold different committed entries. Then the member does
// not lag, it diverged.
func logParts(rp *replay.Result, member int) bool {
	return rp != nil && slices.ContainsFunc(rp.LogDiffs, func(d replay.LogDiff) bool {
		_, ok := d.By[member]
		return ok
	})
}

// changesAfter reports whether the cluster committed anything above index that changes data.
func changesAfter(in *Input, index uint64) bool {
	return in.Replay == nil || in.Replay.ChangesAfter(index, in.Members.SaidCommitted(in.Replay))
}

var ackedLogKept = described(Check{
	ID:    M04,
	Needs: NeedLog | NeedTwo,
	Run:   runAckedLogKept,
})

func runAckedLogKept(in *Input) Result {
	var fs []Finding
	for _, m := range in.Members {
		if f := in.provenance().wiped(m); f != nil {
			fs = append(fs, *f)
		} else if f := in.provenance().recovered(m); f != nil {
			fs = append(fs, *f)
		}
	}
	return outcome(fs, "")
}

// recovered recognises a member that was started with an empty data dir under its old identity and has received a
// snapshot since. Its log begins with the entries of a new member and a received snapshot, and the member served
// clients after a publish entry that the snapshot skips.
func (pv *provenance) recovered(m *evidence.Member) *Finding {
	if !m.HasWAL() || m.MemberID == 0 || pv.Replay == nil || pv.Replay.Survey == nil {
		return nil
	}
	s := &m.WAL.Summary
	if len(s.Jumps) == 0 || len(s.Segments) == 0 || s.Segments[0].Seq != 0 || len(s.Damage) > 0 || Restored(m) ||
		s.Jumps[0].From > BootstrapVoters(m)+1 {
		return nil
	}
	for _, sv := range pv.Replay.Survey.Served[m.MemberID] {
		holder := pv.Members.logs().holderOf(sv.Index)
		if sv.Publish < s.Jumps[0].From || sv.Publish > s.Jumps[0].To || holder == nil {
			continue
		}
		return &Finding{Kind: KindMemberCameBack, Severity: Warning, Members: []string{m.Label()},
			At: At{Index: s.Jumps[0].From, Term: pv.Members.logs().termAt(s.Jumps[0].From)},
			Title: fmt.Sprintf("%s had lost its data and came back under its old ID: its log begins with a "+
				"snapshot at %d, before which it had served clients", m.Label(), s.Jumps[0].To),
			Explanation: "its data dir was wiped and started again, and a leader sent it everything; what it had " +
				"acknowledged before was forgotten meanwhile. Its content is that of the leader now",
			Evidence: []Evidence{{Member: m.Label(), File: s.Jumps[0].Segment, Offset: Int64(s.Jumps[0].Offset),
				Field: "start of the log", Observed: fmt.Sprintf("a received snapshot that skips the entries %d..%d",
					s.Jumps[0].From, s.Jumps[0].To),
				Expected: fmt.Sprintf("a log that holds the member's publish entry %d", sv.Publish),
				Show:     showLogAs(m, "--raw")},
				{Member: holder.Label(), Field: fmt.Sprintf("entry %d", sv.Index), Observed: sv.What +
					", proposed by " + m.MemberID.String(), Expected: "no entry of a member that had not joined yet",
					Show: showLog(holder, sv.Index)}}}
	}
	return nil
}

// wiped recognises a member that was started with an empty data dir under its old identity. Its log holds only conf
// changes of a bootstrap, while other members prove that this member took part in the cluster later.
func (pv *provenance) wiped(m *evidence.Member) *Finding {
	if !m.HasWAL() || m.MemberID == 0 {
		return nil
	}
	s := &m.WAL.Summary
	bootstrapOnly := s.LastIndex > 0 && s.LastIndex == uint64(len(m.WAL.Conf)) && s.LastTerm <= 1 &&
		len(s.Snapshots) <= 1
	if !bootstrapOnly && s.LastIndex > 0 {
		return nil
	}
	if m.LastIndex() > s.LastIndex || s.LastIndex == 0 && pv.copiedWhileJoining(m) {
		return nil
	}
	for _, o := range pv.Members {
		if o == m || o.ClusterID != m.ClusterID || !o.HasLog() || o.Commit <= s.LastIndex ||
			!tookPart(pv.Replay, o, m) {
			continue
		}
		f := Finding{Kind: KindMemberWiped, Severity: Critical, Class: ClassMemberLostData,
			Members: []string{m.Label()},
			At:      At{Index: s.LastIndex + 1},
			Title: fmt.Sprintf("%s lost its data: its log holds %d bootstrap entries only, the cluster is at %d",
				m.Label(), s.LastIndex, o.Commit),
			Explanation: fmt.Sprintf("member %s is known to have run before under this ID; its data dir was wiped "+
				"and started again as a new cluster's. The leader counts it as up to date, so it panics with "+
				"\"tocommit(N) is out of range [lastIndex(%d)]\" whenever it hears the commit index", m.MemberID,
				s.LastIndex)}
		f.Evidence = []Evidence{
			{Member: m.Label(), Field: "last index", Observed: fmt.Sprintf("%d (bootstrap conf changes, term %d)",
				s.LastIndex, s.LastTerm), Expected: fmt.Sprintf("about %d, as on %s", o.LastIndex(), o.Label()),
				Show: showLogAs(m)},
			{Member: o.Label(), Field: "member " + m.MemberID.String(), Observed: "published itself in the log of " +
				o.Label(), Show: showLogAs(o, "--proposer", m.MemberID)},
		}
		return &f
	}
	return nil
}

// madeWithin is how long a process takes until it has made the files of an empty data dir. It writes no more to them
// until it receives something.
const madeWithin = 2 * time.Second

// copiedWhileJoining reports whether the source of an empty log may be a copy of a member that had joined and received
// nothing yet: its files were last written when its newest known process made them. Those of a member that is wiped
// later are newer. A member that was bootstrapped has entries at once.
func (pv *provenance) copiedWhileJoining(m *evidence.Member) bool {
	if pv.Replay == nil || pv.Replay.Survey == nil || m.Source.Manifest == nil || pv.founded(m.MemberID) {
		return false
	}
	at := pv.lastWritten(m)
	return slices.ContainsFunc(pv.Replay.Survey.Starts[m.MemberID], func(st replay.Start) bool {
		return at.Before(replay.StartTime(st.ID).Add(madeWithin))
	})
}

// founded reports whether a log shows that the cluster began with a member.
func (pv *provenance) founded(id dumplog.ID) bool {
	return slices.ContainsFunc(pv.Members, func(o *evidence.Member) bool {
		return o.HasWAL() && slices.ContainsFunc(o.WAL.Conf[:bootstrapAdds(o)], func(c evidence.ConfEntry) bool {
			return c.Change.NodeID == id
		})
	})
}

// tookPart reports whether the log or the member list of o shows that m once ran.
func tookPart(rp *replay.Result, o, m *evidence.Member) bool {
	if rp != nil && rp.Survey != nil && len(rp.Survey.Starts[m.MemberID]) > 0 {
		return true
	}
	return o.Membership.Started[m.MemberID]
}
