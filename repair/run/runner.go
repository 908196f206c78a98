package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/internal/progress"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/shell"
)

// host is where members run: a sandbox, or the machines of the real cluster. Steps know nothing else of it.
type host interface {
	// client returns a client of one member alone and its endpoint; it is kept until the host closes.
	client(m *plan.Member) (*clientv3.Client, string, error)
	// running tells whether the member serves, as far as the host can tell; down, whether its process is certainly
	// gone. One that hangs is neither.
	running(ctx context.Context, m *plan.Member) bool
	down(ctx context.Context, m *plan.Member) bool
	stop(ctx context.Context, m *plan.Member) error
	// aside moves the member's data dir out of its place and says where to. It does nothing when the place is empty
	// already.
	aside(ctx context.Context, m *plan.Member) (where string, err error)
	start(ctx context.Context, m *plan.Member, how startHow) error
	// ready waits until the member answers clients. gone is an error that ends waiting at once.
	ready(ctx context.Context, m *plan.Member) error
	// place is where the member's clients reach it, "" where that does not help an operator.
	place(m *plan.Member) string
}

// startHow says how a member is started: on its own data dir, empty into an existing cluster, or alone with
// --force-new-cluster.
type startHow struct {
	initialCluster string
	empty          bool
	forceNew       bool
}

// limits bound how long steps may take.
type limits struct {
	// call is one request, step most steps, transfer the sending of a database.
	call, step, transfer time.Duration
	poll                 time.Duration
	// recount is how often the voters are counted while a step waits for them.
	recount time.Duration
}

func defaultLimits() limits {
	return limits{call: 10 * time.Second, step: 2 * time.Minute, transfer: 30 * time.Minute,
		poll: 100 * time.Millisecond, recount: time.Second}
}

// runner carries out the steps of one way.
type runner struct {
	plan   *plan.Plan
	steps  []plan.Step
	host   host
	j      *journal
	out    *Outcome
	limits limits
	say    func(string)
	// sandbox is true when nothing but copies can be hurt.
	sandbox bool
	// guarded is true when the cluster serves while it is repaired: then no step may cost it its majority.
	guarded bool
	// noops is how many proposals make the leader drop the start of its in-memory log, see fillers.
	noops int
	// backup is the file that step backup writes.
	backup string
	// live are the operator's choices for a running cluster; nil in a sandbox.
	live *LiveOptions
	// clones is true when the members are clones: a voter that never started is still listed.
	clones bool
	// some are the members that are there, nil for all that the plan keeps.
	some []*plan.Member
	// write makes the proof write a key through each member, not only propose; for copies.
	write bool
}

// action is what a run does for a kind of step.
type action struct {
	by doer
	// done answers whether there is nothing left to do; nil means that it cannot be told and the step is done again.
	done func(context.Context, *runner, *plan.Step) (bool, error)
	run  func(context.Context, *runner, *plan.Step) (detail string, err error)
	// needs says what the step asks of the voters.
	needs need
}

// doer says who does a step.
type doer int

const (
	// aHost: the runner does it with the members of a host, see action.run.
	aHost doer = iota
	// newDirs: it is of a way that writes new data dirs, and apply_clone.go or apply_mend.go do it.
	newDirs
	// people do it: the tool does not reach into hosts that no hook names.
	people
)

// need is what a step asks of the voters before it begins.
type need int

const (
	// noVoters: it reads from one member, or starts one.
	noVoters need = iota
	// aMajority: the cluster must be able to decide.
	aMajority
	// theOthers: a majority must be left without the member that the step is about.
	theOthers
	// everyVoter: all of them must serve.
	everyVoter
)

// table has a row for each kind of step; what a plan says of them is in the table of package plan.
func table() map[plan.StepKind]action {
	return map[plan.StepKind]action{
		plan.StepBackup:     {aHost, nil, doBackup, noVoters},
		plan.StepSave:       {aHost, nil, doSave, noVoters},
		plan.StepStart:      {aHost, nil, doStart, noVoters},
		plan.StepMoveLeader: {aHost, leads, doMoveLeader, aMajority},
		plan.StepAdvanceLog: {aHost, nil, doAdvanceLog, aMajority},
		plan.StepStop:       {aHost, stopped, doStop, theOthers},
		plan.StepRemove:     {aHost, removed, doRemove, theOthers},
		plan.StepSetAside:   {aHost, nil, doSetAside, noVoters},
		plan.StepAdd:        {aHost, added, doAdd, theOthers},
		plan.StepStartEmpty: {aHost, nil, doStartEmpty, aMajority},
		plan.StepWait:       {aHost, nil, doWait, aMajority},
		plan.StepPromote:    {aHost, promoted, doPromote, aMajority},
		plan.StepDisarm:     {aHost, nil, doDisarm, aMajority},
		plan.StepVerify:     {aHost, nil, doVerify, everyVoter},
		plan.StepForceNew:   {aHost, nil, doForceNew, noVoters},
		plan.StepClone:      {by: newDirs}, // session.makeClones
		plan.StepRebuild:    {by: newDirs}, // session.makeClones
		plan.StepMend:       {by: newDirs}, // mending.makeDir
		plan.StepProve:      {by: newDirs}, // session.proveClones, mending.prove
		plan.StepHandOut:    {by: people},
		plan.StepRestore:    {by: people},
	}
}

// run carries out what is left to do and stops at the first step that fails.
func (r *runner) run(ctx context.Context) error {
	for i := range r.steps {
		s := &r.steps[i]
		if r.j.state(s.ID) == StateDone {
			if !slices.ContainsFunc(r.out.Steps, func(d StepResult) bool { return d.ID == s.ID }) {
				r.out.add(StepResult{ID: s.ID, Title: s.Title, State: "done before"})
			}
			continue
		}
		if err := r.step(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// step does one step of the plan.
func (r *runner) step(ctx context.Context, s *plan.Step) error {
	return r.between(ctx, s, func() (string, string, error) { return r.do(ctx, s) })
}

// between does something between two lines of the journal.
func (r *runner) between(ctx context.Context, s *plan.Step, f func() (state, detail string, err error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r.say(s.Title)
	if err := r.j.write(Record{State: StateBegin, Step: s.ID}); err != nil {
		return r.unfinished(s.ID, err)
	}
	begin := time.Now()
	state, detail, err := f()
	res := StepResult{ID: s.ID, Title: s.Title, State: state, Seconds: round(time.Since(begin).Seconds()),
		Detail: detail}
	if err != nil {
		res.State, res.Detail = "failed", err.Error()
		r.out.add(res)
		// the disk may be what failed
		_ = r.j.write(Record{State: StateFailed, Step: s.ID, Detail: res.Detail, Seconds: res.Seconds})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return r.unfinished(s.ID, err)
	}
	r.out.add(res)
	if err := r.j.write(Record{State: StateDone, Step: s.ID, Detail: detail, Seconds: res.Seconds}); err != nil {
		return r.unfinished(s.ID, err)
	}
	return nil
}

func (r *runner) do(ctx context.Context, s *plan.Step) (state, detail string, err error) {
	a, ok := table()[s.Kind]
	if !ok || a.by != aHost {
		return "", "", fmt.Errorf("step %s is done by hand", s.Kind)
	}
	if s.Kind != plan.StepStop { // a member that does not vote may be stopped whatever the voters do
		if err := r.quorum(ctx, a.general(), "", nil); err != nil {
			return "", "", err
		}
	}
	if a.done != nil {
		done, err := a.done(ctx, r, s)
		if err != nil {
			return "", "", err
		}
		if done {
			return "already done", "", nil
		}
	}
	for try := 1; ; try++ {
		if a.needs == theOthers {
			if err := r.quorum(ctx, theOthers, s.Kind, r.of(s)); err != nil {
				return "", "", err
			}
		}
		detail, err = a.run(ctx, r, s)
		if err == nil || try == tries || ctx.Err() != nil {
			return "done", detail, err
		}
		need := r.lacks(ctx, a, err)
		if need == noVoters {
			return "", "", err
		}
		if err := r.quorum(ctx, need, "", nil); err != nil {
			return "", "", err
		}
	}
}

// tries is how often a step is done again that failed because voters were missing.
const tries = 4

// general is what a step asks of the voters, whichever member it is about.
func (a action) general() need {
	if a.needs == theOthers {
		return aMajority
	}
	return a.needs
}

// errNotConnected is a refusal by the servers' strict reconfiguration checks while a voter is down.
var errNotConnected = errors.New("etcd adds no member while a voter is not connected")

// lacks tells what of the voters a step lacked that failed; noVoters when it failed for another reason. The step is
// done again once it has that: steps do no harm when they are repeated.
func (r *runner) lacks(ctx context.Context, a action, err error) need {
	for _, final := range []error{ErrStopped, errNoMajority, errHashes} {
		if errors.Is(err, final) {
			return noVoters
		}
	}
	switch {
	case !r.guarded || a.needs == noVoters:
	case errors.Is(err, errNotConnected):
		return everyVoter
	case !r.rule(ctx, a.general(), "", nil).allowed:
		return a.general()
	}
	return noVoters
}

func (r *runner) unfinished(step string, err error) error {
	return &UnfinishedError{Step: step, Journal: r.j.path, Err: err,
		Hint: "the journal " + r.j.path + " says where it stands; the same command goes on from there" + r.orBack()}
}

// orBack names the command that says how to go back.
func (r *runner) orBack() string {
	if r.live == nil {
		return ""
	}
	return "; " + shell.Format("etcd-medic repair abort {}", shell.Operand(r.planFile())).String() +
		" says how to go back"
}

// note writes a value that later steps need.
func (r *runner) note(step, name, value string) error {
	return r.j.write(Record{State: StateNote, Step: step, Values: map[string]string{name: value}})
}

func (r *runner) best() *plan.Member { return r.plan.Member(r.plan.Best.Name) }

// permanent marks an error that trying again does not cure.
type permanent struct{ err error }

// Error is that of the error it marks.
func (p permanent) Error() string { return p.err.Error() }

// Unwrap returns the error it marks.
func (p permanent) Unwrap() error { return p.err }

func never(format string, args ...any) error { return permanent{fmt.Errorf(format, args...)} }

// until tries f until it succeeds, the limit is over or the error is one that stays.
func (r *runner) until(ctx context.Context, limit time.Duration, what string, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer progress.Wait(ctx, what).End()
	var before error
	for {
		call, done := context.WithTimeout(ctx, r.limits.call)
		err := f(call)
		done()
		if err != nil && ctx.Err() != nil && before != nil {
			err = before // what the end of the time cut short says nothing
		}
		before = err
		var p permanent
		switch {
		case err == nil:
			return nil
		case errors.As(err, &p):
			return fmt.Errorf("%s: %w", what, p.err)
		case !transient(err):
			return fmt.Errorf("%s: %w", what, err)
		}
		select {
		case <-ctx.Done():
			if context.Cause(ctx) == context.Canceled { //nolint:errorlint // the cause is that very value
				return ctx.Err()
			}
			return fmt.Errorf("%s: not within %v: %w", what, limit, err)
		case <-time.After(r.limits.poll):
		}
	}
}

func round(seconds float64) float64 { return float64(int(seconds*1000+0.5)) / 1000 }
