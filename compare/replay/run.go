package replay

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// simulate walks the merged log once and steps every member's model.
func simulate(ctx context.Context, r *Result, o Options) error {
	err := simulateAs(ctx, r, o, twins(r, o.Each))
	if errors.Is(err, errApart) {
		r.blank()
		err = simulateAs(ctx, r, o, twins(r, true))
	}
	return err
}

// simulateAs replays the members that stand for themselves; stand names for each member the one that stands for it.
func simulateAs(ctx context.Context, r *Result, o Options, stand []int) error {
	sims := make([]*sim, len(r.Members))
	defer func() {
		for _, s := range sims {
			if s != nil {
				s.cur.stop()
			}
		}
	}()
	if err := startSims(ctx, r, sims, stand); err != nil {
		return err
	}
	if slices.ContainsFunc(sims, func(s *sim) bool { return s != nil }) {
		w := &walker{r: r, o: o, sims: sims, stand: stand, level: newLevel(r, sims, stand)}
		if err := w.walk(ctx); err != nil {
			return err
		}
		w.level.settle(r)
		if err := w.finish(); err != nil {
			return err
		}
	}
	for i, at := range stand {
		if at != i {
			r.Members[i].take(r.Members[at])
		}
	}
	return nil
}

// startSims builds the starting state of every model, several at a time: finding where a database meets its log takes reading a
// part of it.
func startSims(ctx context.Context, r *Result, sims []*sim, stand []int) error {
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, at := range stand {
		if at != i {
			continue
		}
		g.Go(func() error {
			sims[i] = newSim(ctx, r, i)
			if sims[i] != nil {
				sims[i].shared = slices.Contains(stand[i+1:], i)
			}
			return ctx.Err()
		})
	}
	return g.Wait()
}

// walker keeps a window of entries ahead of the one being replayed.
type walker struct {
	r    *Result
	o    Options
	sims []*sim
	// stand names for each member the one whose model stands for it.
	stand  []int
	level  *level
	window []*item
}

// finish closes the models behind the last entry.
func (w *walker) finish() error {
	for _, s := range w.sims {
		if s == nil {
			continue
		}
		if s.cur.err != nil {
			return s.cur.err
		}
		if s.finish(); s.apart() {
			return errApart
		}
	}
	return nil
}

// walk steps all models through the committed part of the merged log.
func (w *walker) walk(ctx context.Context) error {
	log := ahead(w.r.log(ctx, 0))
	defer log.stop()
	for {
		it, ok := log.next()
		switch {
		case !ok || it.fault == nil && it.entry.Index > w.r.Commit:
			return cmp.Or(w.flush(), ctx.Err())
		case it.fault != nil:
			return it.fault
		}
		if err := w.push(it); err != nil {
			return err
		}
	}
}

func (w *walker) push(it *item) error {
	w.window = append(w.window, it)
	if len(w.window) > lookahead {
		return w.step()
	}
	return nil
}

func (w *walker) flush() error {
	for len(w.window) > 0 {
		if err := w.step(); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) step() error {
	it, ahead := w.window[0], w.window[1:]
	ev := &Event{Outcomes: make([]Outcome, len(w.sims))}
	for i, s := range w.sims {
		if s == nil {
			continue
		}
		o := s.step(it.forMember(i), ahead)
		if s.apart() {
			return errApart
		}
		ev.Outcomes[i] = o
		s.res.Counts[o.State]++
		if it.entry.Index <= w.r.Common {
			s.res.RevisionAt = s.rev
		}
	}
	for i, at := range w.stand {
		ev.Outcomes[i] = ev.Outcomes[at]
	}
	for i, s := range w.sims {
		if s != nil && ev.Outcomes[i].State == NotApplied {
			s.behind(it.forMember(i), someApplied(ev.Outcomes))
		}
	}
	w.level.note(it.entry.Index, ev.Outcomes)
	w.judge(it, ev)
	w.window[0] = nil
	w.window = ahead
	if cap(w.window) > 4*lookahead && len(w.window) == lookahead {
		w.window = append(make([]*item, 0, 2*lookahead), w.window...)
	}
	return nil
}

// judge keeps the event when members ended differently or one ended illegally, and counts who lacks what.
func (w *walker) judge(it *item, ev *Event) {
	r := w.r
	watched := w.o.Watch != nil && len(r.Watched) < w.o.MaxEvents && touchesKey(it.req, w.o.Watch)
	odd := interesting(ev.Outcomes)
	if !odd && !watched {
		return
	}
	w.describe(it, ev)
	ev.Compacted = w.compacted()
	if watched {
		r.Watched = append(r.Watched, ev)
	}
	if !odd {
		return
	}
	w.lacking(ev)
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

// compacted is the lowest compact revision of the models.
func (w *walker) compacted() int64 {
	low := int64(-1)
	for _, s := range w.sims {
		if s != nil && (low < 0 || s.compact < low) {
			low = s.compact
		}
	}
	return low
}

// describe fills in what the entry is.
func (w *walker) describe(it *item, ev *Event) {
	ev.Index, ev.Term, ev.Pos, ev.Kind = it.entry.Index, it.entry.Term, it.entry.Pos, it.req.Kind
	h := it.req.Header
	ev.Proposer, ev.Prefix = w.r.Survey.Proposer(h.ID), h.ID.ProposerPrefix()
	ev.User, ev.HeaderAuthRevision = h.Username, h.AuthRevision
	ev.Keys, ev.RangeRevisions = keysOf(it.req), rangeRevisions(it.req.Txn)
	if len(ev.RangeRevisions) > 0 {
		ev.RangeRevision = ev.RangeRevisions[0]
	}
	ev.What = it.req.Describe(dumplog.DescribeOptions{})
	ev.describeRevoke(it.req)
}

// touchesKey tells whether a request can change the key; a lease revoke may, so the database decides.
func touchesKey(r *dumplog.Request, key []byte) bool {
	return writesKeys(r.Kind) && r.Touches(key, append(key[:len(key):len(key)], 0))
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
		if o.Wrongly {
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

// lacking compares every member's effect with the one the client was promised: the proposer's, or where the proposer is
// not among the sources the one that most members hold.
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

// unseen stands for an effect that the log promises and that no source's database shows.
const unseen = 1<<64 - 1

// promised is the effect that the log stands for.
func (w *walker) promised(ev *Event) (sig uint64, known bool) {
	votes, best := map[uint64]int{}, 0
	for i, o := range ev.Outcomes {
		if o.State == Unknown || o.State == NotApplied || o.State == OutsideHistory {
			continue
		}
		bad := o.State == Contradicted || o.State == Missing
		if w.r.Members[i].Member.MemberID == ev.Proposer && ev.Proposer != 0 && !bad {
			ev.Acked = o.Sig != 0
			return o.Sig, true
		}
		if bad || o.Wrongly {
			if !known {
				sig, known = unseen, true
			}
			continue
		}
		votes[o.Sig]++
		if n := votes[o.Sig]; n > best || n == best && o.Sig != 0 {
			best, sig, known = n, o.Sig, true
		}
	}
	return sig, known
}

// keysOf lists the keys a request names, at most a handful per request.
func keysOf(r *dumplog.Request) []string {
	var out []string
	add := func(k []byte) {
		if len(out) < 16 {
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
			case op.Txn != nil && depth < maxTxnDepth:
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
			if op.Range != nil && op.Range.Revision > 0 {
				out = append(out, op.Range.Revision)
			}
		}
	}
	return out
}
