package watch

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Options say what to watch and how.
type Options struct {
	Members []Member
	// Interval is the time between rounds, HashInterval that between comparisons of content. BucketInterval is the time
	// between snapshot streams of members before 3.5, for their auth; 0 means none.
	Interval, HashInterval, BucketInterval time.Duration
	// Timeout bounds one request to a member.
	Timeout time.Duration
	// Keep is a folder for evidence of divergence; see keep. Empty: no evidence is kept.
	Keep string
	// Hook is a program that is run for every event, without arguments and without a shell.
	Hook string
	// HookTimeout bounds the hook.
	HookTimeout time.Duration
	Log         *slog.Logger
	Metrics     *Metrics
}

func (o *Options) fill() {
	set := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	set(&o.Interval, 15*time.Second)
	set(&o.HashInterval, o.Interval)
	set(&o.Timeout, 10*time.Second)
	set(&o.HookTimeout, time.Minute)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics()
	}
}

// afterStart is how long after the last snapshot streams for auth a new connection may cause the next ones.
const afterStart = 20 * time.Second

// soon is when a suspicion is checked again. It must last, but be raised within a minute.
const soon = 5 * time.Second

// maxKept bounds the number of divergences with evidence.
const maxKept = 5

// Watcher runs rounds.
type Watcher struct {
	o              Options
	ask            asker
	judge          *judge
	hashed, bucket time.Time
	kept           int
	down           map[string]bool
	mute           map[string]bool // members that give no hash
	unasked        []string        // members that are not watched

	mu   sync.Mutex
	last time.Time
	busy bool // saving evidence, which takes as long as the snapshots
	hook bool // a hook is at work
	open map[Kind]Event
}

// New returns a watcher of members.
func New(o Options) *Watcher {
	o.fill()
	return &Watcher{o: o, judge: newJudge(), down: map[string]bool{}, mute: map[string]bool{}, open: map[Kind]Event{},
		ask: asker{members: o.Members, timeout: o.Timeout, names: map[uint64]string{}, pause: between}}
}

// Run watches until the context ends, which is not an error.
func (w *Watcher) Run(ctx context.Context) error {
	for {
		next := w.o.Interval
		w.Round(ctx)
		if w.judge.suspected() {
			next = min(next, soon)
		}
		wait(ctx, next)
		if ctx.Err() != nil {
			return nil
		}
	}
}

// Round makes one round and acts on its events.
func (w *Watcher) Round(ctx context.Context) (Round, []Event) {
	now := time.Now()
	// What costs a member something is asked before its time only to see such a difference again.
	hash := w.judge.suspected(KindHash, KindKeys) || now.Sub(w.hashed) >= w.o.HashInterval-between
	bucket := w.bucketsDue(now, w.judge.suspected(KindAuth))
	r := w.ask.round(ctx, now, hash, bucket)
	if ctx.Err() != nil {
		return r, nil // members that did not answer because of that prove nothing
	}
	if hash {
		w.hashed = now
	}
	if bucket {
		w.bucket = now
	}
	events := w.judge.round(r)
	w.mu.Lock()
	w.last = time.Now()
	for _, e := range events {
		if e.Over {
			delete(w.open, e.Kind)
		} else {
			w.open[e.Kind] = e
		}
	}
	w.mu.Unlock()
	w.o.Metrics.round(&r, events, w.judge.raised)
	w.log(&r)
	for _, e := range events {
		w.event(ctx, &e, &r)
	}
	return r, events
}

// bucketsDue reports whether members before 3.5 are asked for their auth bucket. A start is when such servers apply
// auth entries again, so a new connection brings the next streams forward. They take at most a tenth of the time.
func (w *Watcher) bucketsDue(now time.Time, suspected bool) bool {
	since := now.Sub(w.bucket)
	switch {
	case w.o.BucketInterval <= 0:
		return false
	case suspected || since >= w.o.BucketInterval:
		return true
	}
	return since >= max(afterStart, 10*w.ask.took) && !slices.Equal(w.ask.connected, w.ask.connections())
}

// Open returns the divergences that are not over.
func (w *Watcher) Open() []Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := []Event{}
	for _, k := range Kinds {
		if e, ok := w.open[k]; ok {
			out = append(out, e)
		}
	}
	return out
}

// Alive reports whether rounds are made in time.
func (w *Watcher) Alive() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	allowed := 3*w.o.Interval + 10*w.o.Timeout
	if w.busy {
		allowed += time.Duration(len(w.ask.members)) * saveTimeout
	}
	if w.hook {
		allowed += w.o.HookTimeout
	}
	return time.Since(w.last) < allowed
}

// setBusy says whether evidence is being saved. No rounds are made meanwhile, and a supervisor must not end the
// process.
func (w *Watcher) setBusy(busy bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.busy = busy; !busy {
		w.last = time.Now()
	}
}

// setHook says whether a hook is at work, during which no rounds are made either.
func (w *Watcher) setHook(is bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hook, w.last = is, time.Now()
}

// log logs changes of members, not every round.
func (w *Watcher) log(r *Round) {
	for i := range r.Members {
		s := &r.Members[i]
		switch was := w.down[s.Endpoint]; {
		case s.Err != nil && !was:
			w.o.Log.Warn("member does not answer", "endpoint", s.Endpoint, "error", s.Err)
			w.down[s.Endpoint] = true
		case s.Err == nil && was:
			w.o.Log.Info("member answers again", "endpoint", s.Endpoint, "member", s.Name)
			delete(w.down, s.Endpoint)
		}
		switch was := w.mute[s.Endpoint]; {
		case s.NotHashed != nil && !s.First.Learner && !was:
			w.o.Log.Warn("content cannot be compared", "endpoint", s.Endpoint, "member", s.Name, "error", s.NotHashed)
			w.mute[s.Endpoint] = true
		case s.Hash != nil && was:
			w.o.Log.Info("content is compared again", "endpoint", s.Endpoint, "member", s.Name)
			delete(w.mute, s.Endpoint)
		}
	}
	if !slices.Equal(r.Unasked, w.unasked) && r.answered() == len(r.Members) {
		if w.unasked = r.Unasked; len(r.Unasked) > 0 {
			w.o.Log.Warn("the cluster lists members that are not watched", "members", r.Unasked)
		}
	}
	w.o.Log.Debug("round", "members", len(r.Members), "answered", r.answered(), "revision", r.Revision)
}

func (w *Watcher) event(ctx context.Context, e *Event, r *Round) {
	attrs := []any{"kind", e.Kind, "members", e.Members, "revision", e.Revision, "detail", e.Detail}
	if e.Over {
		w.o.Log.Info("divergence is over", attrs...)
	} else {
		w.o.Log.Error("members diverge", attrs...)
	}
	dir := ""
	if w.o.Keep != "" && !e.Over && w.kept < maxKept {
		w.kept++
		var err error
		w.setBusy(true)
		dir, err = w.keep(ctx, e, r)
		w.setBusy(false)
		if err != nil {
			w.o.Log.Error("evidence is not complete", "folder", dir, "error", err)
		} else {
			w.o.Log.Info("evidence kept; next.txt says how to collect the logs", "folder", dir)
		}
	}
	if w.o.Hook != "" {
		w.setHook(true)
		err := w.runHook(ctx, e, dir)
		w.setHook(false)
		if err != nil {
			w.o.Log.Error("hook failed", "program", w.o.Hook, "error", err)
		}
	}
}

// Once makes rounds until a suspicion is raised or gone, at least three: revisions and auth need two earlier ones.
// pause is the time between rounds.
func (w *Watcher) Once(ctx context.Context, pause time.Duration) (Round, []Event, error) {
	var r Round
	for n := range kept {
		w.hashed = time.Time{}
		if w.o.BucketInterval > 0 {
			w.bucket = time.Time{}
		}
		r, _ = w.Round(ctx)
		if n >= needed && !w.judge.suspected() {
			break
		}
		wait(ctx, pause)
		if ctx.Err() != nil {
			return r, nil, ctx.Err()
		}
	}
	return r, w.Open(), nil
}

// Compared reports whether a round compared the content of all members.
func Compared(r *Round) bool { return r.compared() }

// Close closes the members.
func (w *Watcher) Close() error {
	var errs []error
	for _, m := range w.ask.members {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}
