package cause

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/release"
)

var valueBytesAltered = described(Cause{
	ID: ValueBytesAltered,
	Match: func(in *Input) *Match {
		if in.Replay == nil {
			return nil
		}
		m := &Match{Certainty: Proof, RefutedBy: "the entry at that index in another copy of the log carries the " +
			"value that the database shows"}
		for i, r := range in.Replay.Members {
			switch {
			case !r.Checked || r.FirstBad() == nil:
				continue
			case undecodable(in, in.Members[i].Label()), lacksRecord(in, in.Members[i].Label()):
				return nil
			case !onlyContradicted(in, i) || len(r.Extra) > 0 || r.Counts[replay.Missing] > 0:
				return nil
			}
			m.Members = append(m.Members, in.Members[i].Label())
		}
		if len(m.Members) == 0 || in.found(check.A01, check.R01) {
			return nil
		}
		m.Certainty = alteredInDatabase(in)
		if m.Certainty == Proof && slices.ContainsFunc(in.Replay.Events, ofOtherHistory(in)) {
			m.Certainty = Strong
		}
		m.Because = ids(in, check.K03, check.K01)
		return m
	},
})

// alteredInDatabase returns how certain it is that databases were altered and not the log. It is proven if several logs
// or another database hold what the entry says. A single log can have been altered itself, with new checksums.
func alteredInDatabase(in *Input) Certainty {
	for _, e := range in.Replay.Events {
		bad, confirmed := false, false
		for _, o := range e.Outcomes {
			bad = bad || o.State == replay.Contradicted
			confirmed = confirmed || o.State == replay.Applied && o.Sig != 0
		}
		if bad && !confirmed && in.Replay.LogsWith(e.Term, e.Index) < 2 {
			return Strong
		}
	}
	return Proof
}

// ofOtherHistory returns whether a database without a log holds records of other keys in the place of those of an
// entry: it may have followed another log.
func ofOtherHistory(in *Input) func(*replay.Event) bool {
	return func(e *replay.Event) bool {
		for i := range e.Outcomes {
			if o := &e.Outcomes[i]; o.State == replay.Contradicted && o.OfOtherKeys() && !in.Members[i].HasWAL() {
				return true
			}
		}
		return false
	}
}

// undecodable reports whether a record of the member cannot be decoded any more: then more than a value is wrong.
func undecodable(in *Input, label string) bool {
	return slices.ContainsFunc(in.Findings[check.K04],
		func(f check.Finding) bool { return f.Members[0] == label && f.Facts.Undecodable })
}

// lacksRecord reports whether a transaction in the database of a member lacks a record: then one was removed.
func lacksRecord(in *Input, label string) bool {
	return slices.ContainsFunc(in.Findings[check.K04],
		func(f check.Finding) bool { return f.Members[0] == label && f.Facts.RecordMissing })
}

// onlyContradicted reports whether everything wrong with a member is a record that exists at its revision with another
// value.
func onlyContradicted(in *Input, pos int) bool {
	n := 0
	for _, e := range in.Replay.Events {
		switch o := e.Outcomes[pos]; o.State {
		case replay.Missing, replay.AppliedTwice:
			return false
		case replay.Contradicted:
			if o.Sig == 0 || o.Partial {
				return false
			}
			n++
		}
	}
	return n > 0
}

var txnRangeStripped = described(Cause{
	ID:    TxnRangeStrippedRevision,
	Match: matchTxnRange,
})

func matchTxnRange(in *Input) *Match {
	if in.Replay == nil || !in.found(check.K06) {
		return nil
	}
	for _, e := range in.Replay.Events {
		if len(e.Lacking) == 0 {
			continue
		}
		// Only the first entry with different outcomes counts: later differences may follow from it.
		i := refusedAlone(in, e)
		if e.RangeRevision == 0 || i < 0 {
			return nil
		}
		return &Match{Certainty: Proof, Members: []string{in.Members[i].Label()},
			Because: ids(in, check.K06, check.K02, check.K01),
			RefutedBy: "another member, not the proposer, that refused the same entry; an earlier entry that ended " +
				"differently"}
	}
	return nil
}

// refusedAlone is the position of the proposer when the entry had no effect on it alone, was applied by all others, and
// asks for a revision that none of them had then; -1 otherwise.
func refusedAlone(in *Input, e *replay.Event) int {
	at, rev := -1, int64(0)
	for i, o := range e.Outcomes {
		switch {
		case o.State == replay.Unknown || o.State == replay.NotApplied || o.State == replay.OutsideHistory:
		case o.Sig != 0:
			rev = max(rev, o.Rev-1)
		case e.Proposer != 0 && in.Members[i].MemberID == e.Proposer:
			at = i
		default:
			return -1
		}
	}
	outOfReach := func(r int64) bool { return r > rev || r < e.Compacted }
	if rev == 0 || !slices.ContainsFunc(e.RangeRevisions, outOfReach) {
		return -1
	}
	return at
}

var cindexAheadOfApply = described(Cause{
	ID:    CindexAheadOfApply,
	Match: matchCindexAhead,
})

// matchCindexAhead requires that nothing is wrong but missing entries, each the only one before a start of its member.
func matchCindexAhead(in *Input) *Match {
	if in.Replay == nil || in.found(check.A01, check.R01, check.D02) {
		return nil
	}
	m := &Match{Certainty: Strong, RefutedBy: "a missing entry without a crash of the member after it; two missing " +
		"entries in one process life"}
	m.Members = onlyMissing(in, func(pos int, _ *replay.MemberResult) bool {
		return in.Members[pos].Version.MayLack(release.IndexAtomic) && onePerLife(in, pos)
	})
	if len(m.Members) == 0 {
		return nil
	}
	m.Because = ids(in, check.K03, check.K02, check.K01)
	return m
}

// onlyMissing returns the members whose only fault is missing entries, nil unless each of them fits.
func onlyMissing(in *Input, fits func(pos int, r *replay.MemberResult) bool) []string {
	var names []string
	for i, r := range in.Replay.Members {
		if !r.Checked || r.Counts[replay.Missing] == 0 {
			continue
		}
		if r.Counts[replay.Contradicted] > 0 || len(r.Extra) > 0 || !fits(i, r) {
			return nil
		}
		names = append(names, in.Members[i].Label())
	}
	return names
}

// onePerLife reports whether a start of the member follows each of its missing entries, and no two of them share one.
func onePerLife(in *Input, pos int) bool {
	starts := in.Replay.Survey.Starts[in.Members[pos].MemberID]
	used := map[uint64]bool{}
	for _, e := range in.Replay.Events {
		if e.Outcomes[pos].State != replay.Missing {
			continue
		}
		next := uint64(0)
		for _, s := range starts {
			if s.Index > e.Index {
				next = s.Index
				break
			}
		}
		if next == 0 || used[next] {
			return false
		}
		used[next] = true
	}
	return true
}

// unexplained asks all other causes first.
var unexplained = described(Cause{
	ID: UnexplainedFirstDivergence,
	Match: func(in *Input) *Match {
		if !in.found(check.K01, check.K03, check.R01) {
			return nil
		}
		for _, k := range known() {
			if m := k.Match(in); m != nil && !m.Secondary && explainsContent(in, m) && !otherRows(in, k.ID, m) {
				return nil
			}
		}
		return &Match{Certainty: Hint, Members: membersOf(in, check.K03, check.K01, check.R01),
			Because: ids(in, check.K03, check.K02, check.K01, check.R01),
			RefutedBy: "a cause of the catalogue that explains the " +
				"first divergence"}
	},
})

// explainsContent reports whether a match rests on a finding that can make contents differ. Findings about member lists
// cannot.
func explainsContent(in *Input, m *Match) bool {
	return rests(in, m, func(f check.Finding) bool { return f.Class != check.ClassMembership })
}

// otherRows reports whether a match shows that rows were changed outside the log, but not the live keys that differ.
func otherRows(in *Input, id ID, m *Match) bool {
	return id == RowsChangedOutsideTheLog && in.found(check.K01) &&
		!rests(in, m, func(f check.Finding) bool { return f.Check == check.K01 })
}

// rests reports whether a match rests on such a finding.
func rests(in *Input, m *Match, such func(check.Finding) bool) bool {
	for _, fs := range in.Findings {
		for _, f := range fs {
			if slices.Contains(m.Because, f.ID) && such(f) {
				return true
			}
		}
	}
	return false
}

// weigh makes a match secondary that rests on warnings and notes only.
func weigh(in *Input, m *Match) *Match {
	if m != nil && !rests(in, m, func(f check.Finding) bool {
		return f.Class != "" &&
			f.Severity.Rank() >= check.Error.Rank()
	}) {
		m.Secondary = true
	}
	return m
}
