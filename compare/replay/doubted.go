package replay

import (
	"context"
	"errors"
	"slices"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// Doubted is an entry that one log holds and that several databases contradict, all in the same way. Each database
// was written by its own member, so the entry was altered in that log, unless the databases were copied from one
// another or were all changed alike. The models take from the databases what it did.
type Doubted struct {
	Index, Term uint64
	// Log is the position of the member whose log holds the entry, Against those of the members whose database
	// contradicts it.
	Log     int
	Against []int
	// What describes the entry, Keys are those that it names; Seen says what the databases hold in its place.
	What string
	Keys []string
	Seen string
}

// maxDoubted bounds the entries that are doubted, maxDoubts those that are tried: each takes one more replay.
const (
	maxDoubted = 8
	maxDoubts  = 16
)

// errDoubted is in the place of what a doubted entry decodes to.
var errDoubted = errors.New("only one log holds the entry, and several databases contradict it")

// withoutDoubted replays the log again without entries of a single log that several databases contradict. It keeps
// that result if it explains everything in the history of two databases, and less of none.
func withoutDoubted(ctx context.Context, r *Result, o Options) (*Result, error) {
	tried := map[uint64]bool{}
	best := r
	for len(tried) < maxDoubts && len(best.Doubted) < maxDoubted {
		d := best.doubtful(tried)
		if d == nil {
			break
		}
		tried[d.Index] = true
		t := newResult(membersOf(r))
		t.Shift, t.Copies, t.Doubted = r.Shift, r.Copies, append(slices.Clone(best.Doubted), *d)
		var err error
		if t.Survey, err = survey(ctx, t); err != nil {
			return nil, err
		}
		if err := simulate(ctx, t, o); err != nil {
			return nil, err
		}
		if better := explainsMore(t, best); len(better) > 1 {
			t.Doubted[len(t.Doubted)-1].Against = better
			best = t
		}
	}
	if best.explained() < 2 {
		return r, nil
	}
	return best, nil
}

// explained counts the members against whose databases entries are doubted and whose history has no fault without
// these.
func (r *Result) explained() (n int) {
	for i, m := range r.Members {
		if m.unexplained()+len(m.Reruns) == 0 &&
			slices.ContainsFunc(r.Doubted, func(d Doubted) bool { return slices.Contains(d.Against, i) }) {
			n++
		}
	}
	return n
}

// explainsMore returns the members whose database a result explains better than another result does, none if it
// explains less of one.
func explainsMore(t, r *Result) (better []int) {
	for i, m := range t.Members {
		switch before, now := r.Members[i].faults(), m.faults(); {
		case now > before:
			return nil
		case now < before:
			better = append(better, i)
		}
	}
	return better
}

// faults counts what of a database contradicts the log.
func (m *MemberResult) faults() int { return m.unexplained() + len(m.Reruns) + len(m.StateDiffs) }

// doubtful returns the first entry that was not tried, that one log holds and that two databases or more contradict,
// and none confirms. An entry without content in the middle of a term comes before the entries after it, and the entry
// after a doubted one, with which it may have been exchanged, comes last.
func (r *Result) doubtful(tried map[uint64]bool) *Doubted {
	var first *Doubted
	for _, e := range r.Events {
		if !e.oneLog || tried[e.Index] || e.Disputed() {
			continue
		}
		if bad, good, seen := tally(e.Outcomes); bad > 1 && good == 0 {
			first = &Doubted{Index: e.Index, Term: e.Term, What: e.What, Keys: e.Keys, Seen: seen}
			break
		}
	}
	wrong := 0
	for _, m := range r.Members {
		if m.unexplained() > 0 {
			wrong++
		}
	}
	for _, e := range r.Survey.emptied {
		if wrong > 1 && !tried[e.Index] && (first == nil || e.Index < first.Index) {
			first = &Doubted{Index: e.Index, Term: e.Term, What: "no content", Seen: "records that no entry explains"}
			break
		}
	}
	for i := 0; first == nil && wrong > 1 && i < len(r.Doubted); i++ {
		if d := &r.Doubted[i]; !tried[d.Index+1] {
			first = &Doubted{Index: d.Index + 1, Term: d.Term, What: "the entry after it",
				Seen: "records of another entry"}
		}
	}
	if first == nil {
		return nil
	}
	if first.Log = r.holderOf(first.Term, first.Index); r.LogsWith(first.Term, first.Index) != 1 {
		tried[first.Index] = true
		return r.doubtful(tried)
	}
	return first
}

// tally counts the databases that contradict an entry and those that confirm it. Databases that contradict each other
// count as confirming it: they do not agree against the log.
func tally(os []Outcome) (bad, good int, seen string) {
	sig := uint64(0)
	for _, o := range os {
		switch o.State {
		case Contradicted, Missing:
			bad, seen = bad+1, o.State.String()+": "+o.Detail
			if o.Partial || sig != 0 && o.Sig != 0 && o.Sig != sig {
				good++
			}
			sig = max(sig, o.Sig)
		case Applied, AppliedTwice:
			good++
		}
	}
	return bad, good, seen
}

// holderOf is the first member whose log holds an entry.
func (r *Result) holderOf(term, index uint64) int {
	return slices.IndexFunc(r.Members, func(m *MemberResult) bool {
		return m.Member.HasWAL() && m.Member.WAL.Holds(index) && m.Member.WAL.TermAt(index) == term
	})
}

// maxEmptied bounds the entries without content that are remembered.
const maxEmptied = 100

// noteEmptied remembers an entry without content that does not begin a term. A leader begins its term with one, and
// puts one in the place of a conf change that it refuses (raft.go, becomeLeader and stepLeader).
func (s *Survey) noteEmptied(it *item) {
	term := it.entry.Term
	if it.isEmpty() && s.term == term && len(s.emptied) < maxEmptied {
		s.emptied = append(s.emptied, entryID{Index: it.entry.Index, Term: term})
	}
	s.term = term
}

type entryID struct{ Index, Term uint64 }

// isDoubted reports whether the entry at an index is doubted.
func (l *logSet) isDoubted(index uint64) bool {
	return slices.ContainsFunc(l.doubted, func(d Doubted) bool { return d.Index == index })
}

// unknown takes the content of a doubted entry away.
func (it *item) unknown() *item {
	it.req, it.err, it.others = &dumplog.Request{}, errDoubted, nil
	return it
}
