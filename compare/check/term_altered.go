package check

import (
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// termFallFindings are the findings about the places at which the term of a log falls, from entry to entry or to a
// HardState. All that one altered entry explains is one finding.
func termFallFindings(in *Input, m *evidence.Member) (fs []Finding) {
	var falls []*dumplog.DamageError
	told := map[uint64]bool{}
	for _, d := range m.WAL.Summary.Damage {
		if d.Kind != dumplog.DamageTermOrder {
			continue
		}
		x, ok := alteredTerm(&m.WAL.Summary, d)
		switch {
		case !ok || !told[x.index] && len(told) == maxPlaces:
			falls = append(falls, d)
		case !told[x.index]:
			told[x.index] = true
			fs = append(fs, termAltered(m, d, x))
		}
	}
	return append(fs, placeFindings(falls, func(*dumplog.DamageError) string { return "" },
		func(d *dumplog.DamageError) Finding {
			f := damageFinding(in.Members, Error, m, d)
			f.Kind = KindTermFalls
			return f
		}, logRanges)...)
}

// oddTerm is one entry whose term does not fit the entries before and after it.
type oddTerm struct {
	index, term uint64
	// from and to are the terms of the entries around it.
	from, to uint64
	why      string
}

// alteredTerm returns the one entry whose altered term explains why the term falls at d. Its term is above those of
// both neighbors and no HardState has it, or below both. A server stores the HardState of a term with the first entry
// of it (etcd raft, Ready). Segments of different age bring more than one entry, and HardStates.
func alteredTerm(s *dumplog.Summary, d *dumplog.DamageError) (oddTerm, bool) {
	i := slices.IndexFunc(s.Terms, func(t dumplog.TermRange) bool { return t.Last == d.After })
	if i < 0 || i+1 >= len(s.Terms) || len(s.StateTerms) == 0 {
		return oddTerm{}, false
	}
	above, below := s.Terms[i], s.Terms[i+1]
	if above.First == above.Last && i > 0 && s.Terms[i-1].Term <= below.Term &&
		!slices.Contains(s.StateTerms, above.Term) {
		return oddTerm{above.First, above.Term, s.Terms[i-1].Term, below.Term,
			fmt.Sprintf("no HardState of the log is of term %d", above.Term)}, true
	}
	if below.First == below.Last && i+2 < len(s.Terms) && s.Terms[i+2].Term >= above.Term {
		return oddTerm{below.First, below.Term, above.Term, s.Terms[i+2].Term,
			"the entry after it continues the term before it"}, true
	}
	return oddTerm{}, false
}

func termAltered(m *evidence.Member, d *dumplog.DamageError, x oddTerm) Finding {
	want := fmt.Sprintf("term %d", x.from)
	if x.to != x.from {
		want = fmt.Sprintf("term %d to %d", x.from, x.to)
	}
	return Finding{Kind: KindTermAltered, Severity: Error, Class: ClassWALDamage, Members: []string{m.Label()},
		At:    At{Term: x.term, Index: x.index},
		Title: fmt.Sprintf("%s: the term of entry %d was altered", m.Label(), x.index),
		Explanation: "terms never fall from one entry to the next, and " + x.why +
			": one altered entry explains all of it. etcd does not notice",
		Evidence: []Evidence{{Member: m.Label(), File: d.Segment, Offset: Int64(d.Offset),
			Field: fmt.Sprintf("entry %d", x.index), Observed: fmt.Sprintf("term %d", x.term), Expected: want,
			Show: showLog(m, x.index)}}}
}

// commitAhead is the finding about entries that were removed from a log, whose HardStates still count them.
func commitAhead(m *evidence.Member) []Finding {
	all := m.WAL.Summary.CommitAheads
	if len(all) == 0 {
		return nil
	}
	first, what := all[0], "an entry before entry %d was"
	if n := first.Commit - first.Last; n > 1 {
		what = fmt.Sprintf("at least %d entries before entry %%d were", n)
	}
	f := Finding{Kind: KindCommitAheadOfLog, Severity: Error, Class: ClassWALDamage, Members: []string{m.Label()},
		At: At{Term: m.WAL.TermAt(first.Last), Index: first.Last},
		Title: fmt.Sprintf("%s: "+what+" removed from the log, and the later ones are renumbered", m.Label(),
			first.Last+1),
		Explanation: fmt.Sprintf("a member commits only entries that its log holds, and stores them before the "+
			"HardState that commits them. %s more than the log holds before it. The CRC chain holds, so the log was "+
			"rewritten. etcd does not notice", plural.Of(len(all), "HardState commits", "HardStates commit"))}
	for _, c := range all[:min(len(all), maxPlaces)] {
		f.Evidence = append(f.Evidence, Evidence{Member: m.Label(), File: c.Segment, Offset: Int64(c.Offset),
			Field: "HardState.commit", Observed: fmt.Sprint(c.Commit),
			Expected: fmt.Sprintf("at most %d, the last entry before it", c.Last), Show: showLogAs(m, "--raw")})
	}
	return []Finding{f}
}
