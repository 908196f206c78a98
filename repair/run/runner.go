package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// host is where members run: a sandbox, or the machines of the real cluster. Steps use it only through this interface.
type host interface {
	// client returns a client of one member alone and its endpoint; it is kept until the host closes.
	client(m *plan.Member) (*clientv3.Client, string, error)
	// forget closes the client of a member: the next one logs in again.
	forget(m *plan.Member)
	// refusesTokens reports whether a member refuses a token that the best member has just granted.
	refusesTokens(m *plan.Member) bool
	// serves returns nil if the member serves under its present ID, as far as the host knows, or why it does not. down
	// reports whether its process has certainly ended. A process that hangs is neither.
	serves(ctx context.Context, m *plan.Member) error
	down(ctx context.Context, m *plan.Member) bool
	// refuses reports whether the member's own host says that nothing has its port. An address that cannot be reached
	// from here may be that of a member that serves the others; down accepts it once the member was said to be stopped.
	refuses(ctx context.Context, m *plan.Member) bool
	stop(ctx context.Context, m *plan.Member) error
	// aside moves the member's data dir aside and returns the new path. It does nothing if there is no data dir.
	aside(ctx context.Context, m *plan.Member) (where string, err error)
	start(ctx context.Context, m *plan.Member, how startHow) error
	// ready waits until the member serves clients; a permanent error ends the wait.
	ready(ctx context.Context, m *plan.Member) error
	// place is the member's client URL for messages, "" if that does not help an operator.
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
	// recount is the pause between two counts of the voters while a step waits for them.
	recount time.Duration
	// tokens is how long a new member may refuse every token before it is restarted.
	tokens time.Duration
}

func defaultLimits() limits {
	return limits{call: 10 * time.Second, step: 2 * time.Minute, transfer: 30 * time.Minute,
		poll: 100 * time.Millisecond, recount: time.Second, tokens: 30 * time.Second}
}

// runner does the steps of one procedure.
type runner struct {
	*voters
	drifts drifts
	left   leftDirs
	// noops is how many proposals make the leader drop the start of its in-memory log, see fillers.
	noops int
	// write makes the proof write a key through each member, not only propose; for copies.
	write bool
}

// newRunner returns a runner for members on a host.
func newRunner(s *runState, h host, l limits) *runner {
	c := &cluster{runState: s, host: h, limits: l}
	return &runner{voters: &voters{cluster: c}, drifts: drifts{c}, left: leftDirs{c}}
}

// action is what a run does for a kind of step.
type action struct {
	by doer
	// done reports whether there is nothing left to do; nil means that this is unknown and the step is done again.
	done func(context.Context, *runner, *plan.Step) (bool, error)
	run  func(context.Context, *runner, *plan.Step) (detail string, err error)
	// needs is what the step requires of the voters.
	needs need
}

// doer is the code or person that does a step.
type doer int

const (
	// aHost: the runner does it with the members of a host, see action.run.
	aHost doer = iota
	// newDirs: the procedure writes new data dirs, in apply_clone.go or apply_mend.go.
	newDirs
	// people do it: the tool changes nothing on hosts without a hook.
	people
)

// need is what a step requires of the voters before it begins.
type need int

const (
	// noVoters: it reads from one member, or starts one.
	noVoters need = iota
	// aMajority: the cluster must be able to decide.
	aMajority
	// theOthers: the other members must have a majority without the member that the step is about.
	theOthers
	// everyVoter: all of them must serve.
	everyVoter
)

// table has a row for each kind of step; their texts are in the table of package plan.
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

// run does the remaining steps and stops at the first one that fails.
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

// between does f between two lines of the journal.
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
		if res.State, res.Detail = "failed", err.Error(); ctx.Err() != nil {
			res.Detail = "interrupted"
		}
		r.out.add(res)
		// the disk may be what failed
		_ = r.j.write(Record{State: StateFailed, Step: s.ID, Detail: res.Detail, Seconds: res.Seconds,
			Unchanged: isUntouched(err)})
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
	// A member that does not vote may be stopped in any case, and one that votes before it runs must be started.
	if s.Kind != plan.StepStop && !r.makesMajority(s) {
		if err := r.quorum(ctx, a.general(), "", nil); err != nil {
			return "", "", untouched{err}
		}
	}
	if a.done != nil {
		done, err := a.done(ctx, r, s)
		if err != nil {
			return "", "", untouched{err}
		}
		if done {
			return "already done", "", nil
		}
	}
	for try := 1; ; try++ {
		if a.needs == theOthers {
			if err := r.quorum(ctx, theOthers, s.Kind, r.of(s)); err != nil {
				return "", "", ifUntouched(try == 1, err)
			}
		}
		detail, err = a.run(ctx, r, s)
		if err == nil || try == tries || ctx.Err() != nil {
			return "done", detail, err
		}
		need := r.lacks(ctx, a, err)
		if need == noVoters || r.makesMajority(s) { // what is missing is the member itself
			return "", "", err
		}
		if err := r.quorum(ctx, need, "", nil); err != nil {
			return "", "", err
		}
	}
}

// tries is how often a step is repeated that failed because voters were missing.
const tries = 4

// general is what a step requires of the voters, independent of its member.
func (a action) general() need {
	if a.needs == theOthers {
		return aMajority
	}
	return a.needs
}

// errNotConnected is a refusal by the servers' strict reconfiguration checks while a voter is down.
var errNotConnected = errors.New("etcd adds no member while a voter is not connected")

// untouched marks the error of a step that ended before it changed anything.
type untouched struct{ err error }

// Error says that too.
func (u untouched) Error() string { return u.err.Error() + "; this step has changed nothing" }

// Unwrap returns the marked error.
func (u untouched) Unwrap() error { return u.err }

func ifUntouched(is bool, err error) error {
	if is {
		return untouched{err}
	}
	return err
}

func isUntouched(err error) bool {
	_, is := errors.AsType[untouched](err)
	return is
}

// permanent marks an error that trying again does not cure.
type permanent struct{ err error }

// Error returns the message of the marked error.
func (p permanent) Error() string { return p.err.Error() }

// Unwrap returns the marked error.
func (p permanent) Unwrap() error { return p.err }

func never(format string, args ...any) error { return permanent{fmt.Errorf(format, args...)} }

func round(seconds float64) float64 { return float64(int(seconds*1000+0.5)) / 1000 }
