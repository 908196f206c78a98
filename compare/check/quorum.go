package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/shell"
)

var commitOnQuorum = described(Check{
	ID:    R07,
	Needs: NeedLog | NeedTwo,
	Run:   runCommitOnQuorum,
})

// holding is how far one voter's log provably reaches, by member ID; of several copies the longest counts. A member
// that continued after its copy is left out: later entries of its log are not known.
func (pv *provenance) holding() map[dumplog.ID]uint64 {
	out := map[dumplog.ID]uint64{}
	for _, m := range pv.Members {
		if m.MemberID != 0 && m.HasWAL() && !m.Source.Collected && !pv.copiedEarly(m) {
			out[m.MemberID] = max(out[m.MemberID], heldUpTo(m))
		}
	}
	return out
}

// heldUpTo is the last index of the log, or the last one before the first gap that no later snapshot covers.
func heldUpTo(m *evidence.Member) uint64 {
	last := m.LastIndex()
	for _, d := range m.WAL.Summary.Damage {
		if d.LostFrom > 0 && d.LostTo > 0 && d.LostTo >= m.NewestRecord().Index {
			last = min(last, d.LostFrom-1)
		}
	}
	return last
}

func runCommitOnQuorum(in *Input) Result {
	top := in.Members.configurations().newest()
	if top == nil || top.Commit == 0 {
		return Result{Reason: "no source shows raft's configuration"}
	}
	held := in.provenance().holding()
	candidates, committed := []uint64{top.Commit}, top.Commit
	if m := in.Members.appliedAbove(top.Commit, in.Replay); m != nil {
		candidates, committed = append(candidates, top.Commit+1), m.ConsistentIndex()
	}
	for _, h := range held {
		if h < committed {
			candidates = append(candidates, h+1)
		}
	}
	slices.Sort(candidates)
	for _, i := range candidates {
		voters, ok, _ := votersAt(top, i)
		if in.Membership().forcedBefore(top, i) {
			break // a forced start commits alone
		}
		if !ok || len(voters) < 2 && i <= top.Commit {
			continue
		}
		var without []string
		holders := 0
		for _, v := range voters {
			if h, here := held[v]; here && h < i {
				without = append(without, in.Members.MemberName(v))
			} else {
				holders++
			}
		}
		if holders >= len(voters)/2+1 || len(without) == 0 || in.partedFrom(top, without) {
			continue // R01 has histories that parted
		}
		return Result{Outcome: Violated, Findings: []Finding{in.provenance().belowQuorum(top, i, len(voters), holders,
			held,
			without)}}
	}
	return Result{Outcome: Holds}
}

// partedFrom reports whether the logs of these members end in another history than that of a source: they hold other
// committed entries, and up to their end entries of another term. Such a log did not lose its end.
func (in *Input) partedFrom(top *evidence.Member, labels []string) bool {
	for i, m := range in.Members {
		if !slices.Contains(labels, m.Label()) {
			continue
		}
		own, other := m.WAL.TermAt(m.LastIndex()), top.WAL.TermAt(m.LastIndex())
		if !m.HasLog() || !logParts(in.Replay, i) || other == 0 || own == other {
			return false
		}
	}
	return true
}

// appliedAbove is a source whose database has applied more than an index, and holds more than the others and all logs
// show: a backup, or one whose log is older; nil for none. Running members are not asked: they have applied more since
// the copies were made.
func (ss Sources) appliedAbove(index uint64, rp *replay.Result) *evidence.Member {
	for i, m := range ss {
		if m.Source.Kind != evidence.KindEndpoint && m.ConsistentIndex() > index &&
			(ss.NewestWithoutLog(m) || ss.aboveLogs(i) && ss.holdsMore(i, rp)) {
			return m
		}
	}
	return nil
}

// commitWitness is the source that shows an entry to be committed.
type commitWitness struct {
	// knows is how it shows it, as a clause; take is what can be done with it if it is right.
	knows, take string
	evidence    Evidence
}

func (ss Sources) commitWitness(top *evidence.Member, i uint64, rp *replay.Result) commitWitness {
	if m := ss.appliedAbove(top.Commit, rp); i > top.Commit && m != nil {
		return commitWitness{fmt.Sprintf("%s has applied entry %d", m.Label(), m.ConsistentIndex()),
			"restore all members from " + m.Label(), Evidence{Member: m.Label(), File: m.DB.File, Bucket: "meta",
				Key: Bytes("consistent_index"), Show: showDB(m, "meta"),
				Observed: fmt.Sprintf("consistent index %d", m.ConsistentIndex()), Expected: "held by a majority"}}
	}
	return commitWitness{fmt.Sprintf("%s knows commit %d", top.Label(), top.Commit),
		"take " + top.Label() + " as the source for all", Evidence{Member: top.Label(),
			Observed: fmt.Sprintf("commit index %d", top.Commit), Expected: "held by a majority",
			Show: showLog(top, i)}}
}

func (pv *provenance) belowQuorum(top *evidence.Member, i uint64, voters, holders int, held map[dumplog.ID]uint64,
	without []string) Finding {
	w := pv.Members.commitWitness(top, i, pv.Replay)
	f := Finding{Kind: KindBelowQuorum, Severity: Critical, Class: ClassMemberLostData, Members: without,
		At:    At{Term: pv.Members.logs().termAt(i), Index: i},
		Title: fmt.Sprintf("entry %d is committed, but at most %d of %d voters can hold it", i, holders, voters),
		Explanation: fmt.Sprintf("%s; the logs of %s end before it. Either they lost entries that they had "+
			"acknowledged, or the sources were copied at different moments while the members ran",
			w.knows, strings.Join(without, ", ")),
		Evidence: []Evidence{w.evidence},
		Remedy: []Remedy{
			{Text: "if any member ran while they were copied, take new copies of all, stopped or with this on each " +
				"host, and diagnose those", Command: shell.Format("etcd-medic collect -o <MEMBER>.tar.zst")},
			{Text: "if every member was stopped before the first copy, " + w.take,
				Precondition: "no member without the entry has been started alone"}}}
	var short []*evidence.Member
	for _, m := range pv.Members {
		if h, ok := held[m.MemberID]; ok && h < i && slices.Contains(without, m.Label()) {
			f.Evidence = append(f.Evidence, Evidence{Member: m.Label(), Field: "last index", Observed: fmt.Sprint(h),
				Expected: fmt.Sprintf("at least %d", i), Show: showLog(m, h)})
			short = append(short, m)
		}
	}
	kind, why := pv.lostLogs(short)
	lost := pv.lostEnds(short)
	if i > top.Commit && kind == KindBelowQuorumLogsLost && holders+len(lost) < voters/2+1 {
		kind = KindBelowQuorum // also with what they lost: the backup may be newer than the copies
	}
	f.Kind, f.Evidence[0].Field = kind, belowQuorumFields[kind]
	if kind == KindBelowQuorum {
		f.Severity, f.Class = Warning, ClassInconclusive
		f.Title += ": copies of different moments, or logs that lost their ends"
		return f
	}
	f.Explanation = fmt.Sprintf("%s; the logs of %s end before it, and %s", w.knows, strings.Join(without, ", "), why)
	if len(lost) == 1 && holders+1 >= voters/2+1 {
		f.Severity, f.Class, f.Members = Warning, "", lost
		f.Explanation += ". The others may be sound prefixes"
	}
	return f
}

// lostEnds names the members whose own files show that their log once reached further.
func (pv *provenance) lostEnds(short []*evidence.Member) []string {
	var out []string
	for _, m := range short {
		if pv.lostLog(m) != "" {
			out = append(out, m.Label())
		}
	}
	return out
}

// belowQuorumFields are the fields of the first evidence of R07: one of the logs is shown to have lost entries, or to
// be older than what its member had stored, or the sources may be copies of different moments.
var belowQuorumFields = map[Kind]string{
	KindBelowQuorumLogsLost:  "commit index beyond logs that lost entries",
	KindBelowQuorumLogsOlder: "commit index beyond logs that are older than their members",
	KindBelowQuorum:          "commit index beyond the other logs",
}

// lostLogs says which of these fields applies, and why.
func (pv *provenance) lostLogs(short []*evidence.Member) (kind Kind, why string) {
	for _, m := range short {
		if why = pv.lostLog(m); why != "" {
			return KindBelowQuorumLogsLost, why
		}
	}
	if pv.Replay == nil || pv.Replay.Survey == nil || len(short) == 0 ||
		slices.ContainsFunc(short, pv.Members.logs().longerCopyOf) {
		return KindBelowQuorum, ""
	}
	for _, m := range short {
		if f := pv.servedBeyond(m); f != nil && f.Severity == Critical {
			return KindBelowQuorumLogsOlder, fmt.Sprintf("%s served clients after its end", m.Label())
		}
	}
	x := pv.Members.elections().missingVotes(short...)
	if x != nil && !slices.ContainsFunc(short, func(m *evidence.Member) bool {
		return pv.writtenSince(m, x.term.First) != writtenSince // it may have been copied before it voted
	}) {
		return KindBelowQuorumLogsOlder, fmt.Sprintf("one of them voted in term %d, which its log does not know: "+
			"the others hold %d of %d votes that are needed", x.term.Term, x.votes, x.need)
	}
	return KindBelowQuorum, ""
}

// lostLog says what shows that the member's log lost entries, "" when it may be a sound prefix.
func (pv *provenance) lostLog(m *evidence.Member) string {
	s, last := &m.WAL.Summary, m.LastIndex()
	switch {
	case pv.tornCopy(m) != nil:
		return "" // the copy ends there, not the log
	case m.ConsistentIndex() > last:
		return fmt.Sprintf("the database of %s has applied %d", m.Label(), m.ConsistentIndex())
	case s.MaxCommit > last:
		return fmt.Sprintf("%s has stored commit %d", m.Label(), s.MaxCommit)
	case len(s.Damage) > 0:
		return fmt.Sprintf("the log of %s is damaged", m.Label())
	case pv.wiped(m) != nil:
		return fmt.Sprintf("%s was started as new under its old identity", m.Label())
	}
	return ""
}

// votersAt is the configuration of the member's log at an index. known is false when the log does not hold every later
// change up to a known one. exact is false when nothing shows whether a member that was removed since was a voter: it
// is among the voters then.
func votersAt(m *evidence.Member, index uint64) (voters []dumplog.ID, known, exact bool) {
	ms := &m.Membership
	voters, exact = slices.Clone(ms.Voters), true
	for k := len(m.WAL.Conf) - 1; k >= 0; k-- {
		c := m.WAL.Conf[k]
		if c.Index > m.Commit || c.Index < index || c.Refused {
			continue
		}
		switch c.Change.Type {
		case dumplog.ConfChangeAddNode:
			voters = slices.DeleteFunc(voters, func(id dumplog.ID) bool { return id == c.Change.NodeID })
		case dumplog.ConfChangeRemoveNode:
			voted, shown := votedBefore(m, k)
			exact = exact && shown
			if voted || !shown {
				voters = append(voters, c.Change.NodeID)
			}
		}
	}
	return voters, ms.RaftKnown && holdsAll(m, max(index, 1)-1, min(m.Commit, m.WAL.Summary.LastIndex)), exact
}

// votedBefore reports whether the member that a removal names was a voter until then: by the last change before it that
// added or promoted the member, or else by the configuration of a snapshot before it.
func votedBefore(m *evidence.Member, removal int) (voter, shown bool) {
	at, id := m.WAL.Conf[removal].Index, m.WAL.Conf[removal].Change.NodeID
	for _, c := range slices.Backward(m.WAL.Conf[:removal]) {
		switch {
		case c.Refused || c.Change.NodeID != id:
		case c.Change.Type == dumplog.ConfChangeAddNode:
			return true, true
		case c.Change.Type == dumplog.ConfChangeAddLearnerNode:
			return false, true
		}
	}
	newest := uint64(0)
	see := func(index uint64, cs *dumplog.ConfState) {
		if cs == nil || index >= at || index < newest || len(cs.Voters) == 0 {
			return
		}
		voter, newest = slices.Contains(cs.Voters, id), index
		shown = voter || slices.Contains(cs.Learners, id)
	}
	for i := range m.WAL.Summary.Snapshots {
		see(m.WAL.Summary.Snapshots[i].Index, m.WAL.Summary.Snapshots[i].ConfState)
	}
	for _, f := range m.Snap.Files {
		see(f.Index, &f.ConfState)
	}
	return voter, shown
}
