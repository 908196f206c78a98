package replay

import (
	"context"
	"iter"
	"math"

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
func (s *sim) repeated(it *item, ahead []*item) bool {
	return s.searchRun(it.entry.Index, s.fitsOneOf(it, ahead))
}

// fitsOneOf returns a function that reports whether this entry or one ahead of it can have written the records; it is
// true where there are none.
func (s *sim) fitsOneOf(it *item, ahead []*item) func(*group) bool {
	return func(g *group) bool {
		if g == nil || couldWrite(it.req, g) {
			return true
		}
		for _, a := range ahead {
			if apply.WritesKeys(a.req.Kind) && couldWrite(a.forMember(s.pos).req, g) {
				return true
			}
		}
		return false
	}
}

func (s *sim) searchRun(stop uint64, fits func(*group) bool) bool {
	s.usedOwnRestarts = true
	if s.past == nil || s.searches >= maxSearches || len(s.restarts) == 0 || s.ofLost(s.cur.peek(0)) {
		return false
	}
	starts := s.runStarts(s.cur.peek(0), stop)
	for i := len(starts) - 1; i >= 0; i-- {
		if run, n := s.follow(starts[i], stop, fits); n > 0 {
			s.takeRun(&run, n)
			run.Before = stop
			s.addRerun(run)
			return true
		}
	}
	s.searches++
	return false
}

// ofLost reports whether the group may be what an entry wrote that no log holds any more: each of them made one
// revision at most, and theirs are the newest ones.
func (s *sim) ofLost(g *group) bool {
	return g != nil && g.main > s.m.CurrentRevision()-s.lost()
}

// lost counts the entries after the last one of its stretch that the member has applied and that no log has any more.
func (s *sim) lost() int64 {
	if s.logEnd == 0 || s.m.AppliedMin <= s.logEnd {
		return 0
	}
	return int64(min(s.m.AppliedMin-s.logEnd, uint64(math.MaxInt64))) //nolint:gosec // bounded
}

// addRerun records a run; it joins one that was cut at maxRun with its continuation.
func (s *sim) addRerun(run Stretch) {
	if stop := run.Before; stop > s.m.AppliedMax {
		run.Before = 0
	}
	for i := range s.restarts {
		if at := s.restarts[i].index; at > run.To && !s.restarts[i].received && run.Restart == 0 {
			run.Restart = at
		}
	}
	if n := len(s.res.Reruns); n > 0 {
		if last := &s.res.Reruns[n-1]; last.Last+1 == run.First && last.To < run.From && last.Restart == run.Restart {
			last.To, last.Last = run.To, run.Last
			return
		}
	}
	s.res.Reruns = append(s.res.Reruns, run)
}

// runStarts lists entries before stop that could have written the group: the first and the last few.
func (s *sim) runStarts(g *group, stop uint64) []uint64 {
	var out []uint64
	for it, err := range s.past(s.base + 1) {
		if err != nil || it.entry.Index >= stop {
			break
		}
		own := it.forMember(s.pos)
		if !apply.WritesKeys(own.req.Kind) || !couldWrite(own.req, g) {
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
func (s *sim) follow(from, stop uint64, fits func(*group) bool) (run Stretch, n int) {
	for it, err := range s.past(from) {
		if err != nil || it.entry.Index >= stop || n >= maxRun {
			break
		}
		own := it.forMember(s.pos)
		if !apply.WritesKeys(own.req.Kind) {
			continue
		}
		g := s.cur.peek(n)
		switch {
		case g != nil && couldWrite(own.req, g):
			if n == 0 {
				run.From = it.entry.Index
			}
			run.To = it.entry.Index
			n++
		case g == nil && fits(nil) && stop > s.m.AppliedMax+1:
			return run, n // the effects above the index in the database may end anywhere
		case !conditional(own.req) && !s.Auth.Enabled: // with auth on a request without a user is refused the second time
			return run, 0
		}
	}
	if n < maxRun && !fits(s.cur.peek(n)) {
		return run, 0
	}
	return run, n
}

// conditional reports whether a request may be without effect when it is executed a second time.
func conditional(r *dumplog.Request) bool {
	p := r.Put
	return p == nil || p.Lease != 0 || p.IgnoreLease || p.IgnoreValue || r.Header.Username != ""
}

// takeRun applies the next n groups to the model.
func (s *sim) takeRun(run *Stretch, n int) {
	run.First = s.cur.peek(0).main
	for range n {
		g := s.cur.take()
		s.Revision = g.main
		s.absorb(g)
	}
	run.Last = s.Revision
}

// finishRuns explains revisions after everything the member has applied: a restart that repeated entries without a
// later write, or a consistent index that was not stored with the data.
func (s *sim) finishRuns() {
	for g := s.cur.peek(0); g != nil && g.main <= s.Revision; g = s.cur.peek(0) {
		s.cur.take()
	}
	end := func(g *group) bool { return g == nil }
	for g := s.cur.peek(0); g != nil; g = s.cur.peek(0) {
		if !s.searchRun(s.m.AppliedMax+1, end) {
			break
		}
	}
	if g := s.cur.peek(0); g == nil || s.past == nil {
		return
	}
	if run, n := s.follow(s.m.AppliedMax+1, s.logEnd+1, end); n > 0 {
		s.takeRun(&run, n)
		s.res.Ahead = &run
	}
}
