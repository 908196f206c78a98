package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// fieldAltered is the field of the first evidence of a finding about entries that were altered in the logs of some
// members.
const fieldAltered = "altered entry"

// altered is a range of indexes at which logs differ, between entries on which they agree.
type altered struct {
	diffs []replay.LogDiff
	// odd are the positions of the members whose log was altered, or of all that hold the index if nothing shows who is
	// wrong.
	odd []int
	// why says what shows that these logs were altered; "" when nothing does.
	why string
	// records are those that show it, if nothing else does.
	records []Evidence
	// believes is true when the database of each odd member holds the effect of the entry in its own log.
	believes bool
}

// alteredLogs finds entries that were altered in the logs of some members, and which logs these are.
type alteredLogs struct{ *Input }

func (in *Input) alteredLogs() alteredLogs { return alteredLogs{in} }

// find finds the ranges of indexes at which the logs differ although they agree before and after: one entry
// was altered in one log. The logs of two leaders of one term, of two clusters or of two incarnations of one member do
// not agree again.
func (in alteredLogs) find() (out []altered) {
	if in.Replay == nil || !in.Replay.DiffsComplete() {
		return nil
	}
	diffs := allDiffs(in.Replay)
	for i := 0; i < len(diffs); {
		n := 1
		for i+n < len(diffs) && diffs[i+n].Index == diffs[i].Index+uint64(n) {
			n++
		}
		if a := (altered{diffs: diffs[i : i+n]}); in.isAltered(a.diffs) {
			in.blame(&a)
			out = append(out, a)
		}
		i += n
	}
	blameAlike(out)
	return out
}

// blameAlike decides ranges about which nothing else does: the logs that were altered at other indexes are those that
// were altered here too.
func blameAlike(as []altered) {
	var odd []int
	first := uint64(0)
	for i := range as {
		if a := &as[i]; a.why != "" && !a.believes {
			odd = append(odd, a.odd...)
			if first == 0 {
				first = a.diffs[0].Index
			}
		}
	}
	for i := range as {
		a := &as[i]
		if a.why != "" {
			continue
		}
		var here []int
		sound := 0
		for _, v := range a.diffs[0].Versions {
			n := 0
			for _, pos := range v {
				if slices.Contains(odd, pos) {
					n++
				}
			}
			switch n {
			case 0:
				sound++
			case len(v):
				here = append(here, v...)
			}
		}
		if sound == 1 && len(here) > 0 {
			a.odd, a.why = here, fmt.Sprintf("this log was altered at entry %d too", first)
		}
	}
}

// allDiffs are the indexes at which logs differ, in order.
func allDiffs(rp *replay.Result) []replay.LogDiff {
	all := slices.Clone(rp.LogDiffs)
	for _, d := range rp.SameTerm {
		if !slices.ContainsFunc(all, func(o replay.LogDiff) bool { return o.Index == d.Index }) {
			all = append(all, d)
		}
	}
	slices.SortFunc(all, func(a, b replay.LogDiff) int {
		if a.Index < b.Index {
			return -1
		}
		return 1
	})
	return all
}

// isAltered: the logs that differ agree on the entry after the range, in one term. Or the range is the very last entry,
// or the same requests in another order, and the logs agree on entries of servers before it, in the same term: its
// leader made them all. A forced start continues that term with other ones.
func (in alteredLogs) isAltered(diffs []replay.LogDiff) bool {
	ss := in.Members
	first, last := diffs[0].Index, diffs[len(diffs)-1].Index
	var holders []int
	for _, v := range diffs[0].Versions {
		holders = append(holders, v...)
	}
	after, before := true, forcedAt(in.Replay, first) == nil
	for _, i := range holders {
		m := ss[i]
		after = after && agreeAt(m, ss[holders[0]], last+1)
		before = before && agreeAt(m, ss[holders[0]], first-1) &&
			m.WAL.TermAt(first-1) == m.WAL.TermAt(first) && !nothingShared(m, BootstrapVoters(m), first)
	}
	return (after || before && (len(diffs) == 1 || reordered(diffs))) && !copiesDiffer(ss, diffs[0].Versions)
}

// reordered reports whether all logs hold the same requests in a range, in different orders. No two leaders make
// requests with the same IDs.
func reordered(diffs []replay.LogDiff) bool {
	of := map[int][]string{}
	for _, d := range diffs {
		for v, h := range d.Headers {
			if h.ID == 0 {
				return false
			}
			for _, i := range d.Versions[v] {
				of[i] = append(of[i], string(d.Sums[v][:]))
			}
		}
	}
	var all []string
	for _, sums := range of {
		slices.Sort(sums)
		if all == nil {
			all = sums
		}
		if len(sums) != len(diffs) || !slices.Equal(sums, all) {
			return false
		}
	}
	return len(of) > 1
}

// copiesDiffer reports whether two data dirs of one member hold different entries, which M12 judges.
func copiesDiffer(ss Sources, versions [][]int) bool {
	version := map[dumplog.ID]int{}
	for n, v := range versions {
		for _, i := range v {
			if was, ok := version[ss[i].MemberID]; ok && was != n {
				return true
			}
			version[ss[i].MemberID] = n
		}
	}
	return false
}

// agreeAt reports whether both logs hold the index in the same term. If they do, and logs do not differ at the index,
// they hold the same entry.
func agreeAt(a, b *evidence.Member, index uint64) bool {
	return a.WAL.Holds(index) && b.WAL.Holds(index) && a.WAL.TermAt(index) == b.WAL.TermAt(index)
}

// blame finds out whose log was altered. These are all members whose own database holds another effect than the entry
// in their log. If no database decides, it is the log that differs from most others.
func (in alteredLogs) blame(a *altered) {
	votes := a.diffs[0].Versions
	total := 0
	for _, v := range votes {
		total += len(v)
	}
	var refuted, others []int
	stamped, level := in.stampedTooHigh(a.diffs), in.revisionRefutes(votes, a.diffs[0].Index)
	empty := emptied(a.diffs)
	for _, v := range votes {
		if slices.ContainsFunc(v, func(i int) bool {
			return contradictsLog(in.Replay, i, a.diffs) || termsFall(in.Members, i, a.diffs) ||
				undecodable(in.Replay, i, a.diffs) || slices.Contains(stamped, i) || slices.Contains(level, i) ||
				slices.Contains(empty, i)
		}) {
			refuted = append(refuted, v...)
		} else {
			others = append(others, v...)
		}
	}
	why := in.reasons(a.diffs, refuted, empty, level, stamped)
	switch {
	case len(refuted) > 0 && len(others) > 0:
		a.odd = refuted
		if !slices.ContainsFunc(votes[0], func(i int) bool { return slices.Contains(refuted, i) }) &&
			2*len(votes[0]) > total {
			why = append(why, fmt.Sprintf("%d of %d logs agree on another entry", len(votes[0]), total))
		}
	case 2*len(votes[0]) > total:
		for _, v := range votes[1:] {
			a.odd = append(a.odd, v...)
		}
		why = append(why, fmt.Sprintf("%d of %d logs agree on another entry", len(votes[0]), total))
	default:
		if r := in.recordsRefute(a.diffs); len(r.odd) > 0 {
			a.odd, a.records = r.odd, r.records
			a.why = "of what the altered entry puts no database has a record, of what another log puts there it has"
			return
		}
		a.odd = slices.Concat(refuted, others)
		slices.Sort(a.odd)
		return
	}
	if len(a.odd) > 0 && !slices.ContainsFunc(a.odd,
		func(i int) bool { return !contradictsLog(in.Replay, i, a.diffs) }) {
		why = append(why, "the database does not hold what the altered entry would have written")
	}
	a.why = strings.Join(why, ", and ")
	a.believes = !slices.ContainsFunc(a.odd, func(i int) bool { return !confirmsLog(in.Replay, i, a.diffs) })
}

// reasons are what shows that logs were altered, without what their databases hold: by the terms and the bytes of the
// entries, by entries without data, by revisions, and by stamps.
func (in alteredLogs) reasons(diffs []replay.LogDiff, refuted, empty, level, stamped []int) (why []string) {
	if slices.ContainsFunc(refuted, func(i int) bool { return termsFall(in.Members, i, diffs) }) {
		why = append(why, "the terms of a log never fall")
	}
	if slices.ContainsFunc(refuted, func(i int) bool { return undecodable(in.Replay, i, diffs) }) {
		why = append(why, "no server proposes what does not decode")
	}
	if len(empty) > 0 {
		why = append(why, "a leader proposes an entry without data only at the beginning of its term, or in place "+
			"of a membership change")
	}
	if len(level) > 0 {
		why = append(why, "the databases with the altered entry hold another revision than their logs give")
	}
	if len(stamped) > 0 {
		why = append(why, "the auth revision in its header is above that of every database, also of the member that "+
			"made the request")
	}
	return why
}

// revisionRefutes are the members whose logs hold a version of an entry with which their databases, all of them, have
// another revision than the log gives where the two meet after it. The database of a member with another version
// contradicts nothing.
func (in alteredLogs) revisionRefutes(votes [][]int, index uint64) (out []int) {
	off := func(i int) bool {
		return slices.ContainsFunc(in.Replay.Members[i].Below, func(b replay.BelowDiff) bool {
			return b.OfRevision() && b.Index >= index
		})
	}
	fits := false
	for _, v := range votes {
		if !slices.ContainsFunc(v, func(i int) bool { return !off(i) }) {
			out = append(out, v...)
		}
		fits = fits || slices.ContainsFunc(v, func(i int) bool {
			m := in.Replay.Members[i]
			return m.Checked && m.BelowCount+len(m.Extra)+m.Counts[replay.Missing]+m.Counts[replay.Contradicted] == 0
		})
	}
	if !fits {
		return nil
	}
	return out
}

// stampedTooHigh are the members in whose log one of these entries carries an auth revision that its proposer, by its
// own database, never had, and that no other database at hand reaches: a member stamps its requests with its auth
// revision, which never falls, or with that of a token (JWT) that another member may have made. If it holds for every
// version of the entry, it is the database that is wrong.
func (in alteredLogs) stampedTooHigh(diffs []replay.LogDiff) (out []int) {
	if in.Replay.Survey == nil {
		return nil
	}
	for _, d := range diffs {
		var high []int
		versions := 0
		for k, h := range d.Headers {
			if in.neverHad(in.Replay.Survey.Proposer(h.ID), h.AuthRevision, d.Index) {
				high = append(high, d.Versions[k]...)
				versions++
			}
		}
		if versions < len(d.Headers) {
			out = append(out, high...)
		}
	}
	return out
}

// neverHad reports whether the database of a member, at or after an index, and all other databases have lower auth
// revisions than this one.
func (in alteredLogs) neverHad(id dumplog.ID, revision, index uint64) bool {
	own := false
	for _, m := range in.Members {
		if !m.HasDB() || !m.DB.Auth.HasRevision {
			continue
		}
		if m.DB.Auth.Revision >= revision {
			return false
		}
		own = own || id != 0 && m.MemberID == id && m.AppliedMin >= index
	}
	return own
}

// termsFall reports whether the entries cannot be in a log between their neighbors: terms never fall from one entry to
// the next (raft paper, 5.3).
func termsFall(ss Sources, member int, diffs []replay.LogDiff) bool {
	w := &ss[member].WAL
	before := uint64(0)
	for i := diffs[0].Index - 1; i <= diffs[len(diffs)-1].Index+1; i++ {
		t := w.TermAt(i)
		if t != 0 && t < before {
			return true
		}
		before = max(before, t)
	}
	return false
}

// undecodable reports whether one of these entries does not decode in the log of a member.
func undecodable(rp *replay.Result, member int, diffs []replay.LogDiff) bool {
	return rp != nil && slices.ContainsFunc(rp.Undecodable[member], func(u replay.Undecodable) bool {
		return slices.ContainsFunc(diffs, func(d replay.LogDiff) bool { return d.Index == u.Index })
	})
}

// emptied are the members in whose log one of these entries has no data, where another log holds a request of a server.
// A leader makes such an entry when its term begins, or in place of a membership change that it refuses (raft.go,
// becomeLeader and stepLeader).
func emptied(diffs []replay.LogDiff) (out []int) {
	for _, d := range diffs {
		if !slices.ContainsFunc(d.Headers, func(h dumplog.Header) bool { return h.ID != 0 }) {
			continue
		}
		for k, empty := range d.Emptied {
			if empty {
				out = append(out, d.Versions[k]...)
			}
		}
	}
	return out
}

// contradictsLog reports whether the database of a member holds another effect than one of these entries in its own
// log, above its compact revision or as the last one on a key at or below it.
func contradictsLog(rp *replay.Result, member int, diffs []replay.LogDiff) bool {
	return outcomeAt(rp, member, diffs, func(o replay.Outcome) bool {
		return o.State == replay.Contradicted ||
			o.State == replay.Missing
	}) || slices.ContainsFunc(rp.Members[member].Below, func(b replay.BelowDiff) bool {
		return !b.OfRevision() && slices.ContainsFunc(diffs, func(d replay.LogDiff) bool { return d.Index == b.Index })
	})
}

// confirmsLog reports whether the database of a member holds the effect of one of these entries as its own log has it.
func confirmsLog(rp *replay.Result, member int, diffs []replay.LogDiff) bool {
	return outcomeAt(rp, member, diffs, func(o replay.Outcome) bool { return o.State == replay.Applied && o.Sig != 0 })
}

func outcomeAt(rp *replay.Result, member int, diffs []replay.LogDiff, is func(replay.Outcome) bool) bool {
	return slices.ContainsFunc(rp.Events, func(e *replay.Event) bool {
		return slices.ContainsFunc(diffs, func(d replay.LogDiff) bool { return d.Index == e.Index }) &&
			member < len(e.Outcomes) && is(e.Outcomes[member])
	})
}

func (in alteredLogs) finding(a *altered) Finding {
	first := a.diffs[0]
	names := in.Members.labelsOf(a.odd)
	f := Finding{Kind: KindEntriesAltered, Severity: Critical, Class: ClassWALDamage, Members: names,
		At: At{Term: in.Members[a.odd[0]].WAL.TermAt(first.Index), Index: first.Index}}
	what := plural.Span(first.Index, a.diffs[len(a.diffs)-1].Index, "entry", "entries")
	was := plural.Form(len(a.diffs), "was", "were")
	f.Explanation = "the logs agree before and after, so they come from one leader. The CRC chain holds, so the " +
		"bytes were changed before they were written, or with new CRCs"
	switch {
	case a.why == "":
		f.Undecided = true
		f.Title = fmt.Sprintf("%s: %s %s altered in one of these logs", strings.Join(names, ", "), what, was)
		f.Explanation += ". Which log was altered the sources do not tell: bring the other members' data dirs"
	case a.believes:
		f.Class = ClassDataDivergence
		f.Title = fmt.Sprintf("%s: %s %s altered in the log before it was applied", strings.Join(names, ", "), what,
			was)
		f.Explanation += fmt.Sprintf(". %s; the database holds the altered entry too", capital(a.why))
	default:
		f.Title = fmt.Sprintf("%s: %s %s altered in the log", strings.Join(names, ", "), what, was)
		f.Explanation += ". " + capital(a.why)
	}
	in.evidence(a, &f)
	for _, e := range a.records {
		in.add(&f, func() Evidence { return e })
	}
	return in.cut(f)
}

// capital makes words begin as a sentence does.
func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// evidence adds what the logs hold: first those that were altered, and what the others hold there. If nothing
// shows which they are, all are expected to hold the same.
func (in alteredLogs) evidence(a *altered, f *Finding) {
	sound := func(i int) bool { return a.why != "" && !slices.Contains(a.odd, i) }
	for _, wanted := range []bool{false, true} {
		for _, d := range a.diffs {
			expected := sameEntry
			if v := slices.IndexFunc(d.Versions, func(v []int) bool { return sound(v[0]) }); v >= 0 {
				expected = d.By[d.Versions[v][0]]
			}
			for _, i := range in.Members.byLabel(d.By) {
				if sound(i) == wanted {
					in.add(f, func() Evidence { return in.entryEvidence(i, d.Index, d.By[i], expected) })
				}
			}
		}
	}
	if a.why != "" {
		f.Evidence[0].Field = fieldAltered
	}
}

// sameEntry is what is expected where nothing shows which of several logs is right.
const sameEntry = "the same entry on all members"

// entryEvidence is what the log of a member holds at an index.
func (in *Input) entryEvidence(pos int, index uint64, observed, expected string) Evidence {
	return in.inLog(Evidence{Field: fmt.Sprintf("entry %d", index), Observed: observed, Expected: expected}, pos, index)
}

// byLabel are the members that hold an entry, in the order of their labels: a finding does not depend on the order of
// the arguments.
func (ss Sources) byLabel(by map[int]string) []int {
	return slices.SortedFunc(maps.Keys(by), func(a, b int) int {
		return strings.Compare(ss[a].Label(), ss[b].Label())
	})
}

// without leaves out the indexes of altered entries.
func without(diffs []replay.LogDiff, as []altered) []replay.LogDiff {
	return slices.DeleteFunc(slices.Clone(diffs), func(d replay.LogDiff) bool { return isAmong(as, d.Index) })
}

// isAmong reports whether the entry at an index is an altered one.
func isAmong(as []altered, index uint64) bool {
	return slices.ContainsFunc(as, func(a altered) bool {
		return a.diffs[0].Index <= index && index <= a.diffs[len(a.diffs)-1].Index
	})
}
