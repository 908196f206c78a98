package check

import (
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// termFalls are the findings about the places at which the term of a log falls, from entry to entry or to a HardState.
// All that one altered entry explains is one finding.
func (in *Input) termFalls(m *evidence.Member) (fs []Finding) {
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
