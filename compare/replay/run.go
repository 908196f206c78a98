package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/internal/memory"
)

// errTooLarge is the end of a replay whose keys take more memory than there is.
var errTooLarge = errors.New("the keys take more memory than there is")

// simulate walks the merged log and steps every member's model.
func simulate(ctx context.Context, r *Result, o Options) error {
	err := simulateAll(ctx, r, o)
	if errors.Is(err, errTooLarge) {
		return r.giveUp(ctx, o)
	}
	return err
}

// giveUp says of each member that it was not replayed. The entries that were asked for are listed all the same.
func (r *Result) giveUp(ctx context.Context, o Options) error {
	r.blank()
	r.TooLarge = true
	why := fmt.Sprintf("its keys take more memory than the %d MiB that a replay may take (half of --max-memory)",
		o.maxBytes()>>20)
	if err := memory.Area().Err(); err != nil {
		why += fmt.Sprintf(", and the rest could not be kept in a file: %v", err)
	}
	for _, res := range r.Members {
		m := res.Member
		res.Why = cmp.Or(unfit(r, m.HasDB(), m.DB != nil && m.DB.KV != nil), why)
	}
	sims := make([]*sim, len(r.Members))
	return (&walker{r: r, o: o, sims: sims, reps: equivalentMembers(r, true)}).follow(ctx)
}

// simulateAll walks the merged log once, or several times where it has to find out from where.
func simulateAll(ctx context.Context, r *Result, o Options) error {
	err := simulateGroups(ctx, r, o, equivalentMembers(r, o.Each))
	if errors.Is(err, errNotEquivalent) {
		r.blank()
		err = simulateGroups(ctx, r, o, equivalentMembers(r, true))
	}
	if err != nil {
		return err
	}
	if err := replace(ctx, r, o); err != nil {
		return err
	}
	if err := fromOneBackup(ctx, r, o); err != nil {
		return err
	}
	if err := fromExplained(ctx, r, o); err != nil {
		return err
	}
	r.addLeases()
	return nil
}

// simulateGroups replays one member of each group. For each member reps has the position of its representative, which
// is replayed in its place.
func simulateGroups(ctx context.Context, r *Result, o Options, reps []int) error {
	sims := make([]*sim, len(r.Members))
	defer func() {
		for _, s := range sims {
			if s != nil {
				s.cur.stop()
			}
		}
	}()
	room := apply.NewRoom(o.maxBytes(), memory.Area())
	if err := startSims(ctx, r, sims, reps, room); err != nil {
		return err
	}
	if err := (&walker{r: r, o: o, room: room, sims: sims, reps: reps}).follow(ctx); err != nil {
		return err
	}
	for i, at := range reps {
		if at != i {
			r.Members[i].take(r.Members[at])
		}
	}
	return nil
}

// startSims builds the starting state of every model, several at a time: finding where a database meets its log
// requires reading a part of it.
func startSims(ctx context.Context, r *Result, sims []*sim, reps []int, room *apply.Room) error {
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, at := range reps {
		if at != i {
			continue
		}
		g.Go(func() error {
			sims[i] = newSim(ctx, r, i, room)
			if sims[i] != nil {
				sims[i].auth.shared = slices.Contains(reps[i+1:], i)
			}
			return cmp.Or(ctx.Err(), outOf(room))
		})
	}
	return g.Wait()
}

// outOf is errTooLarge when the room is exceeded.
func outOf(room *apply.Room) error {
	if room.Exceeded() {
		return errTooLarge
	}
	return nil
}

// walker keeps a window of entries ahead of the one being replayed.
type walker struct {
	r    *Result
	o    Options
	room *apply.Room
	sims []*sim
	// reps has, for each member, the position of the member whose model it shares.
	reps   []int
	level  *level
	window []*item
	// cold counts the newest entries of the window whose keys are not warmed yet; names is memory for those keys.
	cold  int
	names [][]byte
	// items makes the items of the log.
	items itemPool
	// outcomes are those of the entry being judged, by member; the memory is reused.
	outcomes []Outcome
	// waiting is an event of which it is not counted yet who lacks its effect.
	waiting *Event
	// attributions counts how often the records of members were compared.
	attributions int
	watched      watchedKey
	// levels are the remaining indexes at which the members' revisions are kept, lowest first.
	levels []uint64
}

// follow walks the log if there is a model, or entries are asked for.
func (w *walker) follow(ctx context.Context) error {
	if w.o.Watch == nil && !slices.ContainsFunc(w.sims, func(s *sim) bool { return s != nil }) {
		return nil
	}
	w.level, w.levels, w.watched.name = newLevel(w.r, w.sims, w.reps), levelsOf(w.r), w.o.Watch
	if err := w.walk(ctx); err != nil {
		return err
	}
	w.level.settle(w.r)
	return w.finish()
}

// finish closes the models after the last entry.
func (w *walker) finish() error {
	w.settle(nil)
	w.pass(math.MaxUint64)
	for _, s := range w.sims {
		if s == nil {
			continue
		}
		if s.cur.err != nil {
			return s.cur.err
		}
		if s.finish(); s.mustSplit() {
			return errNotEquivalent
		}
	}
	return outOf(w.room)
}

// walk steps all models through the committed part of the merged log.
func (w *walker) walk(ctx context.Context) error {
	log := ahead(w.r.logWith(ctx, 0, &w.items))
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

// levelsOf are the indexes at which members of a set can be compared: those up to which they have applied.
func levelsOf(r *Result) []uint64 {
	var out []uint64
	for _, m := range r.Members {
		if m.Member.HasDB() {
			out = append(out, m.Member.AppliedMin)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// pass keeps the members' revisions at the levels below an index. A model knows nothing below the place where log and
// database meet, nor above the member's applied index.
func (w *walker) pass(index uint64) {
	for len(w.levels) > 0 && w.levels[0] < index {
		at := w.levels[0]
		w.levels = w.levels[1:]
		for _, s := range w.sims {
			if s == nil || at < s.meet.index || at > s.m.AppliedMin {
				continue
			}
			if !s.met {
				s.below.arrive()
			}
			if s.res.Levels == nil {
				s.res.Levels = map[uint64]int64{}
			}
			switch {
			case at <= s.logEnd:
				s.res.Levels[at] = s.Revision
			case at == s.m.AppliedMin:
				s.res.Levels[at] = s.m.CurrentRevision() // the log ends before what the member has applied
			default:
				continue
			}
			if at == w.r.Common {
				s.res.RevisionAt = s.res.Levels[at]
			}
		}
	}
}

func (w *walker) push(it *item) error {
	w.window = append(w.window, it)
	if w.cold++; w.cold == apply.Warmed {
		w.warm()
	}
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
	w.pass(it.entry.Index)
	if w.outcomes == nil {
		w.outcomes = make([]Outcome, len(w.sims))
	}
	clear(w.outcomes)
	w.watched.look(it.entry.Index, it.req, w.sims)
	for i, s := range w.sims {
		if s == nil {
			continue
		}
		o := s.stepDisputed(it, ahead)
		if s.mustSplit() {
			return errNotEquivalent
		}
		w.outcomes[i] = o
		s.res.Counts[o.State]++
		s.trace(it.req.Kind, o)
	}
	for i, at := range w.reps {
		w.outcomes[i] = w.outcomes[at]
	}
	w.shownInstead(it, ahead, w.outcomes)
	for i, s := range w.sims {
		if s != nil && w.outcomes[i].State == NotApplied {
			s.behind(it.forMember(i), someApplied(w.outcomes))
		}
	}
	w.level.note(it.entry.Index, w.outcomes)
	w.noteOpen(it.entry.Index, w.outcomes)
	w.judge(it, w.outcomes)
	if err := outOf(w.room); err != nil {
		return err
	}
	if w.isPlain() {
		w.items.giveBack(it)
	}
	w.window[0] = nil
	w.window = ahead
	if cap(w.window) > 4*lookahead && len(w.window) == lookahead {
		w.window = append(make([]*item, 0, 2*lookahead), w.window...)
	}
	return nil
}

// isPlain reports whether all members executed the entry being judged as expected: then nothing of it was kept.
func (w *walker) isPlain() bool {
	for i, s := range w.sims {
		if s != nil && (!s.met || w.outcomes[i].State != Applied) {
			return false
		}
	}
	return true
}
