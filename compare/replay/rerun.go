package replay

import (
	"context"
	"iter"
	"math"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// Stretch is a stretch of the log whose effects are in the database although the consistent index excludes them: a
// second time after a restart (MemberResult.Reruns), or above the index itself (MemberResult.Ahead).
type Stretch struct {
	// From and To are the first and the last entry with an effect there.
	From, To uint64
	// Before is the entry after the repeated effects; 0 if none follows them.
	Before uint64
	// Restart is the publish entry of the restart that repeated them; 0 when the log shows none.
	Restart uint64
	// First and Last are their revisions.
	First, Last int64
}

// Revisions is how many revisions the run made.
func (r *Stretch) Revisions() int64 { return r.Last - r.First + 1 }

// maxSearches bounds unsuccessful searches of one member's log, maxRun the revisions that are compared at once,
// maxStarts the entries, first and last, at which a run may begin.
const (
	maxSearches = 4
	maxRun      = 100_000
	maxStarts   = 4
)

// pastOf yields the merged log from an index on; it reads the log again.
func pastOf(ctx context.Context, r *Result) func(from uint64) iter.Seq2[*item, error] {
	return func(from uint64) iter.Seq2[*item, error] {
		return func(yield func(*item, error) bool) {
			for it, err := range r.log(ctx, from) {
				if err == nil && it.entry.Index < from {
					continue
				}
				if !yield(it, err) {
					return
				}
			}
		}
	}
}

// repeated compares records that neither this entry nor one ahead of it wrote with the entries before. A restart
// repeated a stretch of them if executing it again gives the next revisions, up to this entry's own.
func (ma *matcher) repeated(it *item, ahead []*item) bool {
	return ma.searchRun(it.entry.Index, ma.fitsOneOf(it, ahead))
}

// fitsOneOf returns a function that reports whether this entry or one ahead of it can have written the records; it is
// true where there are none.
func (ma *matcher) fitsOneOf(it *item, ahead []*item) func(*group) bool {
	return func(g *group) bool {
		if g == nil || couldWrite(it.req, g) {
			return true
		}
		for _, a := range ahead {
			if apply.WritesKeys(a.req.Kind) && couldWrite(a.forMember(ma.pos).req, g) {
				return true
			}
		}
		return false
	}
}

func (ma *matcher) searchRun(stop uint64, fits func(*group) bool) bool {
	ma.auth.usedOwnRestarts = true
	if ma.past == nil || ma.searches >= maxSearches || len(ma.auth.restarts) == 0 || ma.ofLost(ma.cur.peek(0)) {
		return false
	}
	starts := ma.runStarts(ma.cur.peek(0), stop)
	for i := len(starts) - 1; i >= 0; i-- {
		if run, n := ma.follow(starts[i], stop, fits); n > 0 {
			ma.takeRun(&run, n)
			run.Before = stop
			ma.addRerun(run)
			return true
		}
	}
	ma.searches++
	return false
}

// ofLost reports whether the group may be what an entry wrote that no log holds any more: each of them made one
// revision at most, and theirs are the newest ones.
func (lv *logView) ofLost(g *group) bool {
	lost := lv.lost()
	return g != nil && lost > 0 && g.main > lv.m.CurrentRevision()-lost
}

// lost counts the entries after the last one of its stretch that the member has applied and that no log has any more.
func (lv *logView) lost() int64 {
	if !lv.outran() {
		return 0
	}
	return int64(min(lv.m.AppliedMin-lv.logEnd, uint64(math.MaxInt64))) //nolint:gosec // bounded
}

// addRerun records a run; it joins one that was cut at maxRun with its continuation.
func (ma *matcher) addRerun(run Stretch) {
	if stop := run.Before; stop > ma.m.AppliedMax {
		run.Before = 0
	}
	for i := range ma.auth.restarts {
		if at := ma.auth.restarts[i].index; at > run.To && !ma.auth.restarts[i].received && run.Restart == 0 {
			run.Restart = at
		}
	}
	if n := len(ma.res.Reruns); n > 0 {
		if last := &ma.res.Reruns[n-1]; last.Last+1 == run.First && last.To < run.From && last.Restart == run.Restart {
			last.To, last.Last = run.To, run.Last
			return
		}
	}
	ma.res.Reruns = append(ma.res.Reruns, run)
}

// runStarts lists entries before stop that could have written the group: the first and the last few.
func (ma *matcher) runStarts(g *group, stop uint64) []uint64 {
	var out []uint64
	for it, err := range ma.past(ma.base + 1) {
		if err != nil || it.entry.Index >= stop {
			break
		}
		own := it.forMember(ma.pos)
		if !apply.WritesKeys(own.req.Kind) || !couldWrite(own.req, g) || slices.Contains(ma.absentees, it.entry.Index) {
			continue
		}
		if len(out) == 2*maxStarts {
			out = append(out[:maxStarts], out[maxStarts+1:]...)
		}
		out = append(out, it.entry.Index)
	}
	return out
}

// follow reports whether the next revisions are the effects of the entries from..stop-1, in order, and how many they
// are; 0 when they are not. Executed again, a delete, a transaction or a put with conditions may be without effect, a
// plain put not.
func (ma *matcher) follow(from, stop uint64, fits func(*group) bool) (run Stretch, n int) {
	for it, err := range ma.past(from) {
		if err != nil || it.entry.Index >= stop || n >= maxRun {
			break
		}
		own := it.forMember(ma.pos)
		if !apply.WritesKeys(own.req.Kind) {
			continue
		}
		g := ma.cur.peek(n)
		switch {
		case g != nil && couldWrite(own.req, g):
			if n == 0 {
				run.From = it.entry.Index
			}
			run.To = it.entry.Index
			n++
		case g == nil && fits(nil) && stop > ma.m.AppliedMax+1:
			return run, n // the effects above the index in the database may end anywhere
		case !conditional(own.req) && !ma.Auth.Enabled:
			return run, 0 // with auth on, a request without a user is refused the second time
		}
	}
	if n < maxRun && !fits(ma.cur.peek(n)) {
		return run, 0
	}
	return run, n
}

// conditional reports whether a request may be without effect when it is executed a second time.
func conditional(r *dumplog.Request) bool {
	p := r.Put
	return p == nil || p.Lease != 0 || keeps(p) || r.Header.Username != ""
}

// takeRun applies the next n groups to the model.
func (ma *matcher) takeRun(run *Stretch, n int) {
	run.First = ma.cur.peek(0).main
	for range n {
		g := ma.cur.take()
		ma.Revision = g.main
		ma.absorb(g)
	}
	run.Last = ma.Revision
}

// finishRuns explains revisions after everything the member has applied: a restart that repeated entries without a
// later write, or a consistent index that was not stored with the data.
func (ma *matcher) finishRuns() {
	for g := ma.cur.peek(0); g != nil && g.main <= ma.Revision; g = ma.cur.peek(0) {
		ma.cur.take()
	}
	end := func(g *group) bool { return g == nil }
	if run, n := ma.unmatched(end); n > 0 {
		ma.takeRun(&run, n)
		ma.res.Ahead = &run
		return
	}
	for g := ma.cur.peek(0); g != nil; g = ma.cur.peek(0) {
		if !ma.searchRun(ma.m.AppliedMax+1, end) {
			break
		}
	}
	if g := ma.cur.peek(0); g == nil || ma.past == nil {
		return
	}
	if run, n := ma.follow(ma.m.AppliedMax+1, ma.logEnd+1, end); n > 0 {
		ma.takeRun(&run, n)
		ma.res.Ahead = &run
	}
}

// unmatched returns the run of entries whose records are the rest of the database, if they may be above the index and
// no record was taken for theirs: then nothing was repeated.
func (ma *matcher) unmatched(end func(*group) bool) (Stretch, int) {
	from := max(ma.wrote, ma.m.AppliedMin) + 1
	if ma.cur.peek(0) == nil || ma.past == nil || from > ma.m.AppliedMax {
		return Stretch{}, 0
	}
	return ma.follow(from, ma.logEnd+1, end)
}
