package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

var oneLeader = described(Check{
	ID:    R05,
	Needs: NeedLog | NeedTwo,
	Run:   runOneLeader,
})

func runOneLeader(in *Input) Result {
	begins, as := map[uint64][]termBegin{}, in.alteredLogs().find()
	logs := 0
	for _, m := range in.Members {
		if !m.HasLog() {
			continue
		}
		logs++
		for _, t := range begunTerms(m) {
			if !in.shiftedLogs().renumbered(m, t.First) && !isAmong(as, t.First) && !isAmong(as, t.First-1) {
				begins[t.Term] = append(begins[t.Term], termBegin{m, t.First})
			}
		}
	}
	if logs < 2 {
		return Result{Reason: "fewer than two logs with entries"}
	}
	var fs []Finding
	reported := map[uint64]bool{}
	for _, term := range slices.Sorted(maps.Keys(begins)) {
		if f := begunTwice(term, begins[term]); f != nil {
			reported[term] = true
			fs = append(fs, *f)
		}
	}
	return outcome(append(fs, sameTermFindings(in, reported)...), "")
}

// termBegin is where a term begins in the log of a member.
type termBegin struct {
	m     *evidence.Member
	index uint64
}

// begunTwice returns a finding if the term begins at different indexes. It names all members that hold a beginning, in
// the order of the indexes: nothing shows which of them is right.
func begunTwice(term uint64, begins []termBegin) *Finding {
	slices.SortStableFunc(begins, func(a, b termBegin) int { return cmp.Compare(a.index, b.index) })
	first, last := begins[0], begins[len(begins)-1]
	if first.index == last.index {
		return nil
	}
	f := &Finding{Kind: KindTermBegunTwice, Severity: Critical, Class: ClassDataDivergence,
		At: At{Term: term, Index: first.index},
		Title: fmt.Sprintf("term %d begins at index %d on %s and at %d on %s: it had two leaders", term, first.index,
			first.m.Label(), last.index, last.m.Label()),
		Explanation: "a leader begins its term with an entry at one index; two beginnings are two leaders " +
			"that a majority cannot both have elected"}
	for _, b := range begins {
		other := first.index
		if b.index == other {
			other = last.index
		}
		f.Members = append(f.Members, b.m.Label())
		f.Evidence = append(f.Evidence, Evidence{Member: b.m.Label(),
			Field:    fmt.Sprintf("first entry of term %d", term),
			Observed: fmt.Sprint(b.index), Expected: fmt.Sprintf("%d, or another term", other),
			Show: showLog(b.m, b.index)})
	}
	return f
}

// begunTerms are the terms whose first entry the log holds together with the entry before it. A log with falling terms
// was altered (R08): it does not show where its terms begin.
func begunTerms(m *evidence.Member) []evidence.TermEnd {
	if termsFell(m) {
		return nil
	}
	var out []evidence.TermEnd
	var last uint64
	for _, t := range m.WAL.LastByTerm {
		if t.First == last+1 {
			out = append(out, t)
		}
		last = t.Last
	}
	return out
}

// termsFell reports whether a term is lower than one before it, in the log of a member.
func termsFell(m *evidence.Member) bool {
	return slices.ContainsFunc(m.WAL.Summary.Damage,
		func(d *dumplog.DamageError) bool { return d.Kind == dumplog.DamageTermOrder })
}

func sameTermFindings(in *Input, told map[uint64]bool) []Finding {
	if in.Replay == nil {
		return nil
	}
	diffs := without(in.Replay.SameTerm, in.alteredLogs().find())
	if len(diffs) == 0 {
		return nil
	}
	d := diffs[0]
	f := Finding{Kind: KindEntriesDifferInTerm, Severity: Critical, Class: ClassDataDivergence, At: At{Index: d.Index},
		Title:       fmt.Sprintf("entry %d differs between logs in one term (%d such indexes)", d.Index, len(diffs)),
		Explanation: "one leader never creates two entries at one index; the logs belong to two leaders of one term"}
	for _, i := range in.Members.byLabel(d.By) {
		m := in.Members[i]
		f.Members = append(f.Members, m.Label())
		f.Evidence = append(f.Evidence, in.entryEvidence(i, d.Index, d.By[i], "one entry per term and index"))
		if t, ok := termOf(m, d.Index); ok {
			f.At.Term = t
		}
	}
	if told[f.At.Term] {
		return nil
	}
	return []Finding{in.cut(f)}
}

var oneVote = described(Check{
	ID:    R06,
	Needs: NeedLog,
	Run:   runOneVote,
})

type ballot struct {
	id   dumplog.ID
	term uint64
}

func runOneVote(in *Input) Result {
	type cast struct {
		m *evidence.Member
		v dumplog.Vote
	}
	seen := map[ballot]cast{}
	var fs []Finding
	for _, m := range in.Members {
		if !m.HasWAL() || m.MemberID == 0 {
			continue
		}
		for _, v := range m.WAL.Summary.Votes {
			if slices.ContainsFunc(m.WAL.Summary.OddVotes, func(o dumplog.Vote) bool { return o.Pos == v.Pos }) ||
				in.provenance().neverAMember(m, v) {
				continue // R08
			}
			b := ballot{m.MemberID, v.Term}
			old, ok := seen[b]
			if !ok {
				seen[b] = cast{m, v}
				continue
			}
			if old.v.For == v.For || old.m != m && in.provenance().apart(old.m, m) {
				continue
			}
			f := Finding{Kind: KindVotedTwice, Severity: Critical, Class: ClassMemberLostData,
				Members: []string{old.m.Label()},
				At:      termStart(m, v.Term),
				Title: fmt.Sprintf("member %s voted for %s and for %s in term %d", m.MemberID, old.v.For, v.For,
					v.Term),
				Explanation: "it forgot its vote: its data dir was rolled back or copied and ran twice; two leaders " +
					"may have been elected in that term",
				Evidence: []Evidence{voteEvidence(old.m, old.v, v.For), voteEvidence(m, v, old.v.For)}}
			if old.m != m {
				f.Members = append(f.Members, m.Label())
			}
			fs = append(fs, f)
		}
	}
	if len(seen) == 0 {
		return Result{Reason: "no log carries a vote"}
	}
	return outcome(fs, in.Members.unreadableParts("wal"))
}

func voteEvidence(m *evidence.Member, v dumplog.Vote, other dumplog.ID) Evidence {
	return Evidence{Member: m.Label(), File: v.Segment, Offset: Int64(v.Offset),
		Field:    fmt.Sprintf("HardState of term %d", v.Term),
		Observed: "vote " + v.For.String(), Expected: "one vote per term, not also " + other.String(),
		Show: showLogAs(m, "--raw")}
}

// termStart is the index of the first entry of the term in that log, 0 when unknown.
func termStart(m *evidence.Member, term uint64) At {
	for _, t := range m.WAL.LastByTerm {
		if t.Term == term {
			return At{Term: term, Index: t.First}
		}
	}
	return At{Term: term}
}

var commitNeverFalls = described(Check{
	ID:    R08,
	Needs: NeedLog,
	Run: func(in *Input) Result {
		var fs []Finding
		for _, m := range in.Members {
			if !m.HasWAL() {
				continue
			}
			fs = append(fs, placeFindings(m.WAL.Summary.CommitFalls, func(dumplog.CommitFall) string { return "" },
				func(c dumplog.CommitFall) Finding { return commitFalls(m, c) }, fallRanges)...)
			fs = append(fs, termFallFindings(in, m)...)
			fs = append(fs, commitAhead(m)...)
			fs = append(fs, in.Members.elections().leaderGaps(m)...)
			fs = append(fs, in.shiftedLogs().repeated(m)...)
			fs = append(fs, in.emptiedEntries(m)...)
			if f := in.authRevisions().alteredStampOf(m); f != nil {
				fs = append(fs, *f)
			}
			fs = append(fs, in.provenance().alteredVotes(m)...)
			if f := statesGone(in.Replay, m); f != nil {
				fs = append(fs, *f)
			}
		}
		return outcome(fs, in.Members.unreadableParts("wal"))
	},
})

func commitFalls(m *evidence.Member, c dumplog.CommitFall) Finding {
	return Finding{Kind: KindCommitFalls, Severity: Error, Class: ClassWALDamage, Members: []string{m.Label()},
		At:    At{Index: c.Now + 1},
		Title: fmt.Sprintf("%s: the commit index falls from %d to %d", m.Label(), c.Before, c.Now),
		Explanation: "a log only ever raises it; the records before and after this one come from " +
			"different times",
		Evidence: []Evidence{{Member: m.Label(), File: c.Segment, Offset: Int64(c.Offset),
			Field: "HardState.commit", Observed: fmt.Sprint(c.Now),
			Expected: fmt.Sprintf("at least %d", c.Before), Show: showLogAs(m, "--raw")}}}
}

// fallRanges says where the commit index falls.
func fallRanges(cs []dumplog.CommitFall) string {
	first, last := cs[0], cs[len(cs)-1]
	return fmt.Sprintf("from segment %s offset %d to segment %s offset %d", first.Segment, first.Offset, last.Segment,
		last.Offset)
}

var noJointConfig = described(Check{
	ID:  R09,
	Run: runNoJointConfig,
})

func runNoJointConfig(in *Input) Result {
	var fs []Finding
	seen := false
	for _, m := range in.Members {
		joint := func(file, field string, offset *int64, out, next []string) {
			seen = true
			if len(out)+len(next) == 0 {
				return
			}
			fs = append(fs, Finding{Kind: KindJointConfiguration, Severity: Error, Class: ClassMembership,
				Members:     []string{m.Label()},
				Title:       m.Label() + ": a joint configuration is stored",
				Explanation: "etcd never proposes one; majorities of two voter sets are then needed for every decision",
				Evidence: []Evidence{{Member: m.Label(), File: file, Offset: offset, Field: field,
					Observed: fmt.Sprintf("outgoing voters %v, learners to come %v", out, next),
					Expected: "neither"}}})
		}
		if m.HasWAL() {
			for _, s := range m.WAL.Summary.Snapshots {
				if s.ConfState != nil {
					joint(s.Segment, "snapshot record", Int64(s.Offset), hexes(s.ConfState.VotersOutgoing),
						hexes(s.ConfState.LearnersNext))
				}
			}
		}
		if m.HasSnap() {
			for _, s := range m.Snap.Files {
				joint(s.File, "ConfState", nil, hexes(s.ConfState.VotersOutgoing), hexes(s.ConfState.LearnersNext))
			}
		}
		if m.HasDB() && m.DB.Meta.ConfState != nil {
			joint(m.DB.File, "meta/confState", nil, hexes(m.DB.Meta.ConfState.VotersOutgoing),
				hexes(m.DB.Meta.ConfState.LearnersNext))
		}
	}
	if !seen {
		return Result{Reason: "no source stores a configuration"}
	}
	return outcome(fs, "")
}

func hexes[T fmt.Stringer](ids []T) []string {
	var out []string
	for _, id := range ids {
		out = append(out, id.String())
	}
	return out
}
