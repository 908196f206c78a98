package replay

import (
	"context"
	"errors"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// Doubted is an entry that more databases contradict, all in the same way, than logs hold it, and two at least. Each
// database was written by its own member, so the entry was altered in these logs, unless the databases were copied from
// one another or were all changed alike. The models take from the databases what it did.
type Doubted struct {
	Index, Term uint64
	// Logs are the positions of the members whose logs hold the entry, mostly one, Against those of the members whose
	// database contradicts it.
	Logs, Against []int
	// What describes the entry, Keys are those that it names; Seen says what the databases hold in its place.
	What string
	Keys []string
	Seen string
	// exchanged is true where the same request is in another log at an index further on, and this log holds another
	// entry there: the two were exchanged.
	exchanged bool
}

// enough is how many databases have to be against the entry: two, and more than logs hold it.
func (d *Doubted) enough() int { return max(2, len(d.Logs)+1) }

// maxDoubted bounds the entries that are doubted, maxDoubts those that are tried: each takes one more replay.
const (
	maxDoubted = 8
	maxDoubts  = 16
)

// errDoubted is in the place of what an entry decodes to that is doubted, or of which two versions are equally likely.
var errDoubted = errors.New("it is not known what the entry is")

// withoutDoubted replays the log again without entries of few logs that more databases contradict. It keeps
// that result if it explains everything in the history of two databases, more of enough for each entry, and less of
// none.
func withoutDoubted(ctx context.Context, r *Result, o Options) (*Result, error) {
	tried := map[uint64]bool{}
	best := r
	for len(tried) < maxDoubts && len(best.Doubted) < maxDoubted {
		d, err := best.doubtful(ctx, tried)
		if err != nil {
			return nil, err
		}
		if d == nil {
			break
		}
		tried[d.Index] = true
		t := newResult(membersOf(r))
		t.Shifts, t.Copies, t.Doubted = r.Shifts, r.Copies, append(slices.Clone(best.Doubted), *d)
		if t.Survey, err = survey(ctx, t); err != nil {
			return nil, err
		}
		if err := simulate(ctx, t, o); err != nil {
			return nil, err
		}
		if better := explainsMore(t, best); len(better) >= d.enough() {
			t.Doubted[len(t.Doubted)-1].Against = better
			best = t
		}
	}
	if best.explained() < 2 || !best.inPlaceOfDoubted(r) {
		return r, nil
	}
	return best, nil
}

// explained counts the members against whose databases entries are doubted and whose history has no fault without
// these.
func (r *Result) explained() (n int) {
	for i, m := range r.Members {
		if m.unexplained()-m.insteadOwn+len(m.Reruns) == 0 &&
			slices.ContainsFunc(r.Doubted, func(d Doubted) bool { return slices.Contains(d.Against, i) }) {
			n++
		}
	}
	return n
}

// inPlaceOfDoubted reports whether enough databases hold records in the place of each doubted entry, or had a
// revision more than the log makes, according to the result without doubts, where their records are compacted. Where
// they hold none, the entry was not altered: the members lack its effect. A model that now begins after the entry says
// nothing of it; the result without doubts has the records at its revision.
func (r *Result) inPlaceOfDoubted(before *Result) bool {
	return !slices.ContainsFunc(r.Doubted, func(d Doubted) bool { return !r.isInPlace(&d, before) })
}

// isInPlace is inPlaceOfDoubted for one entry; before is nil if the result without doubts does not count.
func (r *Result) isInPlace(d *Doubted, before *Result) bool {
	n := 0
	for _, i := range d.Against {
		m := r.Members[i]
		if slices.Contains(m.unknownWrites, d.Index) || before != nil && (before.Members[i].surplus ||
			m.BaseIndex >= d.Index && before.contradictedAt(d.Index, i)) {
			n++
		}
	}
	return n >= d.enough()
}

// contradictedAt reports whether the database of a member holds other records in the place of those of an entry.
func (r *Result) contradictedAt(index uint64, pos int) bool {
	return slices.ContainsFunc(r.Events, func(e *Event) bool {
		return e.Index == index && e.Outcomes[pos].State == Contradicted && e.Outcomes[pos].Rev > 0
	})
}

// Contradicts reports whether the database of any member holds other records than those of an entry.
func (r *Result) Contradicts(index uint64) bool {
	return slices.ContainsFunc(r.Events, func(e *Event) bool {
		return e.Index == index &&
			slices.ContainsFunc(e.Outcomes, func(o Outcome) bool { return o.State == Contradicted })
	})
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

// doubtful returns the next entry to try: one that was exchanged, one after a doubted entry in whose place there are no
// records, one that databases contradict, one without content before it, or else one after any doubted entry, with
// which that may have been exchanged. More databases are against it than logs have it.
func (r *Result) doubtful(ctx context.Context, tried map[uint64]bool) (*Doubted, error) {
	d := r.firstExchanged(tried)
	for i := 0; d == nil && i < len(r.Doubted) && r.surplusWitnesses() > 1; i++ {
		var err error
		if r.isInPlace(&r.Doubted[i], nil) {
			continue
		}
		if d, err = r.exchangedWith(ctx, &r.Doubted[i], tried); err != nil {
			return nil, err
		}
	}
	if d == nil {
		d = r.contradicted(tried)
	}
	if r.surplusWitnesses() > 1 {
		for _, e := range r.Survey.emptied {
			if !tried[e.Index] && (d == nil || e.Index < d.Index) && r.LogsWith(e.Term, e.Index) == 1 {
				d = &Doubted{Index: e.Index, Term: e.Term, Seen: "records that no entry explains"}
				break
			}
		}
		if d == nil {
			d = r.strayInPlace(tried)
		}
		for i := 0; d == nil && i < len(r.Doubted); i++ {
			var err error
			if d, err = r.exchangedWith(ctx, &r.Doubted[i], tried); err != nil {
				return nil, err
			}
		}
	}
	if d == nil {
		return nil, nil
	}
	for i, m := range r.Members {
		if holdsEntry(m.Member, d.Term, d.Index) {
			d.Logs = append(d.Logs, i)
		}
	}
	if d.What != "" {
		return d, nil
	}
	m := r.Members[d.Logs[0]].Member
	for e, err := range m.WAL.Log.EntriesFrom(ctx, &m.WAL.Summary, d.Index) {
		if err == nil && e.Index == d.Index && !e.Overwritten {
			d.What = r.describeEntry(&e)
			break
		}
	}
	return d, ctx.Err()
}

// maxExchanged is how far after a doubted entry the one with which it may have been exchanged is looked for.
const maxExchanged = 8

// exchangedWith returns the next entry after a doubted one that was not tried, may write keys, and is in one log only.
func (r *Result) exchangedWith(ctx context.Context, d *Doubted, tried map[uint64]bool) (*Doubted, error) {
	m := r.Members[d.Logs[0]].Member
	for e, err := range m.WAL.Log.EntriesFrom(ctx, &m.WAL.Summary, d.Index+1) {
		if err != nil || e.Index <= d.Index || e.Overwritten || tried[e.Index] {
			continue
		}
		if e.Index > d.Index+maxExchanged {
			break
		}
		req, err := e.Decode()
		if err == nil && (req == nil || !mayWrite(req)) || r.LogsWith(e.Term, e.Index) != 1 {
			continue
		}
		return &Doubted{Index: e.Index, Term: e.Term, Seen: "records of another entry"}, nil
	}
	return nil, ctx.Err()
}

// contradicted is the first entry that was not tried, and that two databases or more, and more than logs hold it,
// contradict and none confirms.
func (r *Result) contradicted(tried map[uint64]bool) *Doubted {
	for _, e := range r.Events {
		if e.logs == 0 || tried[e.Index] || e.Disputed() {
			continue
		}
		if bad, good, seen := r.tally(e); bad > 1 && bad > e.logs && good == 0 {
			return &Doubted{Index: e.Index, Term: e.Term, What: e.What, Keys: e.Keys, Seen: seen}
		}
	}
	return nil
}

// surplusWitnesses counts the members that executed the log themselves and whose database it leaves partly unexplained.
func (r *Result) surplusWitnesses() (n int) {
	for i, m := range r.Members {
		if m.unexplained() > 0 && r.wroteItself(i, m.Member.AppliedMax) {
			n++
		}
	}
	return n
}

// holdsEntry reports whether the log of a member holds an entry.
func holdsEntry(m *evidence.Member, term, index uint64) bool {
	return m.HasWAL() && m.WAL.Holds(index) && m.WAL.TermAt(index) == term
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

// maxStrays bounds the records without an entry that are remembered.
const maxStrays = 100

// stray is a revision that no entry explains: what it did, and the entry in whose place it may be.
type stray struct {
	rev int64
	sig uint64
	at  entryID
}

// strayInPlace is the first entry of one log in whose place several databases hold the same records that no entry
// explains, and that was not tried.
func (r *Result) strayInPlace(tried map[uint64]bool) (d *Doubted) {
	for i, m := range r.Members {
		for _, s := range m.strays {
			same := func(o *MemberResult) bool {
				return o != m && slices.Contains(o.strays, s) && r.wroteItself(slices.Index(r.Members, o), s.at.Index)
			}
			if !tried[s.at.Index] && (d == nil || s.at.Index < d.Index) && r.wroteItself(i, s.at.Index) &&
				r.LogsWith(s.at.Term, s.at.Index) == 1 && slices.ContainsFunc(r.Members, same) {
				d = &Doubted{Index: s.at.Index, Term: s.at.Term, Seen: "records that no entry explains"}
			}
		}
	}
	return d
}

// isDoubted reports whether the entry at an index is doubted.
func (l *logSet) isDoubted(index uint64) bool {
	return slices.ContainsFunc(l.doubted, func(d Doubted) bool { return d.Index == index })
}

// unknown takes the content of a doubted entry away.
func (it *item) unknown() *item {
	it.req, it.err, it.others = &dumplog.Request{}, errDoubted, nil
	return it
}

// noteExchanged remembers an entry of one log whose request another log holds at the index of this one, where the first
// log holds another entry of the same term.
func (s *Survey) noteExchanged(it *item) {
	if len(it.others) == 0 {
		return
	}
	for _, v := range it.versions() {
		if v.err != nil || v.req.Header.ID == 0 || len(s.exchanged) >= maxDoubted {
			continue
		}
		first := s.recent.sameRequest(v)
		if first != nil && len(first.holders) == 1 && !slices.Contains(v.holders, first.holders[0]) &&
			slices.ContainsFunc(it.versions(), func(o *item) bool {
				return o.entry.Term == v.entry.Term && slices.Equal(o.holders, first.holders)
			}) {
			s.exchanged = append(s.exchanged, entryID{Index: first.entry.Index, Term: first.entry.Term})
		}
	}
}

// firstExchanged is the first entry that was exchanged with another one and was not tried, nil if there is none.
func (r *Result) firstExchanged(tried map[uint64]bool) *Doubted {
	for _, e := range r.Survey.exchanged {
		if !tried[e.Index] && r.LogsWith(e.Term, e.Index) == 1 {
			return &Doubted{Index: e.Index, Term: e.Term, Seen: "records of another entry", exchanged: true}
		}
	}
	return nil
}

// exchanged divides the entries at an index into those to choose from, and those of a log that only this log holds and
// in which a doubted entry was exchanged with one.
func (l *logSet) exchanged(versions []*item) (kept, exchanged []*item) {
	if len(l.doubted) == 0 || len(versions) == 1 {
		return versions, nil
	}
	for _, v := range versions {
		if slices.ContainsFunc(l.doubted, func(d Doubted) bool {
			return d.exchanged && slices.Equal(v.holders, d.Logs) &&
				slices.ContainsFunc(versions, func(o *item) bool { return o != v && o.entry.Term == v.entry.Term })
		}) {
			exchanged = append(exchanged, v)
			continue
		}
		kept = append(kept, v)
	}
	if len(kept) == 0 {
		return versions, nil
	}
	return kept, exchanged
}

// putBack adds an entry of another log that was exchanged: its member executed this one.
func (it *item) putBack(v *item) {
	if it.others == nil {
		it.others = map[int]*item{}
	}
	if it.instead == nil {
		it.instead = map[int]*item{}
	}
	for _, h := range v.holders {
		it.others[h], it.instead[h] = v, it
	}
}
