package replay

import (
	"cmp"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// judge keeps an event when members ended differently or one ended illegally, and counts who lacks what. The outcomes
// are valid only during the call.
func (w *walker) judge(it *item, outcomes []Outcome) {
	r := w.r
	watched := w.watched.changes
	odd := interesting(outcomes) && !(len(it.others) == 0 && w.onlyAttributed(outcomes))
	if !odd && !watched {
		return
	}
	ev := &Event{Outcomes: slices.Clone(outcomes)}
	w.describe(it, ev)
	ev.Compacted = w.compacted()
	if watched {
		w.watch(ev)
	}
	if !odd {
		return
	}
	w.wait(ev)
	for i, o := range ev.Outcomes {
		m := r.Members[i]
		if m.firstBad == nil && (o.State == Missing || o.State == Contradicted || o.State == AppliedTwice) {
			m.firstBad = ev
		}
	}
	r.EventCount++
	if len(r.Events) < w.o.MaxEvents {
		r.Events = append(r.Events, ev)
	}
}

// noteOpen counts an entry that may rightly have no effect, and has none on any member.
func (w *walker) noteOpen(index uint64, outcomes []Outcome) {
	if slices.ContainsFunc(outcomes, func(o Outcome) bool { return o.State == Applied && o.Sig != 0 }) {
		return
	}
	for i := range outcomes {
		if !outcomes[i].Open {
			continue
		}
		m := w.r.Members[i]
		if m.Open++; m.Open == 1 {
			m.FirstOpen = index
		}
	}
}

// watch keeps the event of an entry that touches the watched key, and drops older ones when there are too many.
func (w *walker) watch(ev *Event) {
	r := w.r
	r.WatchedCount++
	if n := len(r.Watched); n >= 2*w.o.MaxEvents {
		copy(r.Watched, r.Watched[n-w.o.MaxEvents:])
		clear(r.Watched[w.o.MaxEvents:])
		r.Watched = r.Watched[:w.o.MaxEvents]
	}
	r.Watched = append(r.Watched, ev)
}

// compacted is the lowest compact revision of the models.
func (w *walker) compacted() int64 {
	low := int64(-1)
	for _, s := range w.sims {
		if s != nil && (low < 0 || s.Compact < low) {
			low = s.Compact
		}
	}
	return low
}

// describe fills in what the entry is.
func (w *walker) describe(it *item, ev *Event) {
	ev.Index, ev.Term, ev.Kind = it.entry.Index, it.entry.Term, it.req.Kind
	ev.logs = w.r.LogsWith(ev.Term, ev.Index)
	h := it.req.Header
	ev.Proposer, ev.Prefix = w.r.Survey.Proposer(h.ID), h.ID.ProposerPrefix()
	ev.User, ev.HeaderAuthRevision = h.Username, h.AuthRevision
	ev.Keys, ev.RangeRevisions = keysOf(it.req), rangeRevisions(it.req.Txn)
	if len(ev.RangeRevisions) > 0 {
		ev.RangeRevision = ev.RangeRevisions[0]
	}
	ev.What = w.r.describe(it.req)
	ev.describeRest(it.req)
	for pos, o := range it.others {
		if ev.versions == nil {
			ev.versions = map[int]Version{}
		}
		ev.OneTerm = ev.OneTerm || o.entry.Term == it.entry.Term
		ev.versions[pos] = Version{Term: o.entry.Term, What: w.r.describe(o.req), Keys: keysOf(o.req)}
	}
}

// interesting leaves out what is legal and equal: the bulk of every log.
func interesting(os []Outcome) bool {
	var first *Outcome
	for i := range os {
		o := &os[i]
		switch o.State {
		case Missing, Contradicted, AppliedTwice:
			return true
		case Unknown, NotApplied, OutsideHistory:
			continue
		}
		if o.Wrongly || o.Against {
			return true
		}
		if first == nil {
			first = o
			continue
		}
		if o.Sig != first.Sig || o.State != first.State && (o.State == Applied) != (first.State == Applied) {
			return true
		}
	}
	return false
}

// lacking compares every member's effect with the required one: the proposer's, or if the proposer is not among the
// sources, the effect on most members.
func (w *walker) lacking(ev *Event) {
	promised, known := w.promised(ev)
	if !known {
		return
	}
	for i, o := range ev.Outcomes {
		switch {
		case o.State == Unknown || o.State == NotApplied || o.State == OutsideHistory || ev.revokedBefore(o):
			continue
		case o.Sig == promised:
			if promised != 0 {
				ev.Holding = append(ev.Holding, i)
			}
		default:
			ev.Lacking = append(ev.Lacking, i)
			if promised == 0 {
				w.r.Members[i].Surplus++
				continue
			}
			w.r.Members[i].lack(ev)
		}
	}
	if len(ev.Holding) == 1 && promised != 0 && len(ev.Lacking) > 0 {
		m := w.r.Members[ev.Holding[0]]
		m.Unique++
		for _, k := range ev.Keys {
			m.UniqueKeys[k] = struct{}{}
		}
	}
}

func (m *MemberResult) lack(ev *Event) {
	m.Lacks++
	if ev.Acked {
		m.LacksAcked++
	}
	for _, k := range ev.Keys {
		m.LacksKeys[k] = struct{}{}
	}
}

// unseen marks an effect that the log requires and that no source's database shows.
const unseen = 1<<64 - 1

// promised returns the required effect: that on the proposer, else the effect on most members. If the rules also allow
// no effect, a member without the effect does not refute one with it: it may have lost the records. Nor does one whose
// database does not show that it has applied the entry. Two effects on as many members each show nothing. Where logs of
// one term differ, the altered entry may be the proposer's, and only more members than for any other effect, or for
// none, decide. A proposer whose records contradicted its log before counts as one member: from there on its model may
// differ from what it answered. An effect that the state of the keys excludes is never required, not even the
// proposer's: another request wrote those records, or none.
func (w *walker) promised(ev *Event) (sig uint64, known bool) {
	votes, older, answered, odd := map[uint64]vote{}, w.r.OlderCopies(), uint64(0), false
	shown := slices.ContainsFunc(ev.Outcomes, func(o Outcome) bool { return o.State == Applied && o.Sig != 0 })
	for i, o := range ev.Outcomes {
		m := w.r.Members[i]
		mayLack := o.Open || o.State == NoEffect && ev.Index > m.Member.AppliedMin
		if o.State == Unknown || o.State == NotApplied || o.State == OutsideHistory || mayLack && shown ||
			o.excluded || w.distrusts(i) || ev.parted(i) {
			continue
		}
		bad := o.State == Contradicted || o.State == Missing
		if m.Member.MemberID == ev.Proposer && ev.Proposer != 0 && !bad && !ev.OneTerm {
			if m.firstBad == nil {
				ev.Acked = o.Sig != 0
				return o.Sig, true
			}
			answered = o.Sig
		}
		if bad || o.Wrongly {
			odd = true
			continue
		}
		if _, copied := older[i]; copied {
			continue // it does not confirm the newer copy
		}
		v := votes[o.Sig]
		if v.all++; m.firstBad == nil {
			v.sound++
		}
		votes[o.Sig] = v
	}
	switch {
	case len(votes) == 0 && odd:
		return unseen, true
	case len(votes) == 0:
		return 0, false
	}
	sig, known = mostVotes(votes, ev.OneTerm)
	ev.Acked = known && sig != 0 && sig == answered
	return sig, known
}

// parted reports whether the log of a member holds an entry of another term at the index. What that had for an effect
// says nothing of this one, not even if the member proposed it.
func (ev *Event) parted(pos int) bool {
	v, other := ev.versions[pos]
	return other && v.Term != ev.Term
}

// vote counts the members with one effect. sound are those whose records have contradicted no entry before: the others
// may have had another state.
type vote struct{ all, sound int }

// compare is above 0 if an effect has more votes than another one: it is that of sound members and the other is not, or
// both are or are not, and of more members.
func (v vote) compare(o vote) int {
	return cmp.Or(cmp.Compare(min(v.sound, 1), min(o.sound, 1)), cmp.Compare(v.all, o.all))
}

// mostVotes returns the effect of most members, and whether it is the required one. One that no sound member shows
// counts only where none shows another. No effect on as many members as an effect says nothing against it.
func mostVotes(votes map[uint64]vote, oneTerm bool) (sig uint64, known bool) {
	first := true
	for s, v := range votes {
		if n := v.compare(votes[sig]); first || n > 0 || n == 0 && s > sig {
			sig, first = s, false
		}
	}
	known = true
	for s, v := range votes {
		equal := s != sig && v.all == votes[sig].all
		known = known && !(equal && (s != 0 || oneTerm))
	}
	return sig, known
}

// RefusedWrongly reports whether a member refused the entry for its auth revision although another one applied it, or
// the log gives a lower auth revision. Any other such refusal may be as the rules want it.
func (ev *Event) RefusedWrongly(pos int) bool {
	o := &ev.Outcomes[pos]
	return o.State == Refused && o.Reason == ReasonOldAuth && (o.Wrongly || len(ev.Holding) > 0 ||
		slices.ContainsFunc(ev.Outcomes, func(o Outcome) bool { return o.State == Applied && o.Sig != 0 }))
}

// LogsWith counts the logs that hold an entry.
func (r *Result) LogsWith(term, index uint64) (n int) {
	for _, m := range r.Members {
		if holdsEntry(m.Member, term, index) {
			n++
		}
	}
	return n
}

// distrusts reports whether the records of a member are not a possible history while those of another one are: what the
// model makes of them says nothing about the others.
func (w *walker) distrusts(pos int) bool {
	return w.r.Members[pos].impossible() &&
		slices.ContainsFunc(w.r.Members, func(m *MemberResult) bool { return m.Checked && !m.impossible() })
}

func (m *MemberResult) impossible() bool {
	return m.Member.DB != nil && m.Member.DB.KV != nil && m.Member.DB.KV.Impossible()
}

// maxNamedKeys bounds the keys that keysOf lists. Those of an entry that a member applied are known from its records.
const maxNamedKeys = 16

// keysOf lists the first keys that a request names.
func keysOf(r *dumplog.Request) []string {
	var out []string
	add := func(k []byte) {
		if len(out) < maxNamedKeys {
			out = append(out, string(k))
		}
	}
	var ops func([]dumplog.RequestOp, int)
	ops = func(list []dumplog.RequestOp, depth int) {
		for _, op := range list {
			switch {
			case op.Put != nil:
				add(op.Put.Key)
			case op.DeleteRange != nil:
				add(op.DeleteRange.Key)
			case op.Txn != nil && depth < apply.MaxTxnDepth:
				ops(op.Txn.Success, depth+1)
				ops(op.Txn.Failure, depth+1)
			}
		}
	}
	switch {
	case r.Put != nil:
		add(r.Put.Key)
	case r.DeleteRange != nil:
		add(r.DeleteRange.Key)
	case r.Txn != nil:
		ops(r.Txn.Success, 0)
		ops(r.Txn.Failure, 0)
	}
	return out
}

// rangeRevisions lists the revisions that top-level ranges ask for; nested ones are never dropped.
func rangeRevisions(t *dumplog.TxnRequest) (out []int64) {
	if t == nil {
		return nil
	}
	for _, ops := range [][]dumplog.RequestOp{t.Success, t.Failure} {
		for _, op := range ops {
			if op.Range != nil && op.Range.Revision != 0 {
				out = append(out, op.Range.Revision)
			}
		}
	}
	return out
}
