package run

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/shell"
)

// LiveOptions say how the running cluster is reached, and what does the work on the hosts.
type LiveOptions struct {
	// Endpoints are client URLs of the members, or NAME=URL. Each is tried for a member that comes up. Only when all of
	// them belong to other members, a member is reached at its client URL in the cluster or in its old data dir.
	Endpoints []string
	// CACert, Cert and Key are PEM files; User and Password log in. Under auth they must be those of a user with role
	// root.
	CACert, Cert, Key string
	User, Password    string
	// HostActions, if set, does the work on hosts instead of hooks or prompts.
	HostActions func(context.Context, HostStep) error
	// HookStop, HookWipe and HookStart are shell commands; see hookEnv. They must do no harm when they are run again.
	HookStop, HookWipe, HookStart string
	// HookTimeout bounds how long a hook may run, 5 minutes if it is 0. After that the hook is ended with all processes
	// it started.
	HookTimeout time.Duration
	// DataDirs are the members' data dirs on their hosts by name; "" is that of members that are not named.
	DataDirs map[string]string
	// WALDirs are the WAL folders of servers with --wal-dir in the same way.
	WALDirs map[string]string
	// Backup is the file for the snapshot of the best member, by default next to the plan. Snapshots of the members
	// that are removed get its name with theirs in it.
	Backup string
	// QuorumWait bounds how long a step waits for voters that are down before it gives up, 10 minutes if it is 0. A
	// person is asked instead.
	QuorumWait time.Duration
	// SkipSaves omits the snapshots of the members that are removed.
	SkipSaves bool
	// AcceptLost continues although members that are removed hold writes that the best member lacks and the plan does
	// not list.
	AcceptLost bool
	// Flags are those of the operator's command without secrets and consents. The journal keeps them for the command
	// that continues.
	Flags shell.Command
	// Prompt shows what a person has to do and returns when it is done, or ErrStopped. It is nil without a person.
	Prompt func(ctx context.Context, text []string) error
	// Notice, if set, is called with what an operator should read before the first step.
	Notice func(string)
	// Output receives the output of hooks.
	Output io.Writer
}

// ErrStopped is the answer of a person who does not want to continue.
var ErrStopped = errors.New("the operator stopped here")

// HostStep is one action on a member's host: stop, wipe (move the data dir aside) or start. Doing it again must do no
// harm.
type HostStep struct {
	Action string
	Member *plan.Member
	// InitialCluster is what a member that joins empty is started with, and --initial-cluster-state=existing; "" starts
	// it on its own data dir.
	InitialCluster string
}

// hooked reports whether host steps can be done at all.
func (o *LiveOptions) hooked() bool {
	return o.HostActions != nil || o.Prompt != nil || o.HookStop != "" && o.HookWipe != "" && o.HookStart != ""
}

// prompted reports whether a person has to do every host step.
func (o *LiveOptions) prompted() bool {
	return o.HostActions == nil && o.Prompt != nil && o.HookStop == "" && o.HookWipe == "" && o.HookStart == ""
}

func (o *LiveOptions) fill(plan string) {
	if o.Backup == "" {
		o.Backup = plan + ".backup.db"
	}
	if o.QuorumWait == 0 {
		o.QuorumWait = 10 * time.Minute
	}
	if o.HookTimeout == 0 {
		o.HookTimeout = 5 * time.Minute
	}
	if o.Notice == nil {
		o.Notice = func(string) {}
	}
	if o.Output == nil {
		o.Output = io.Discard
	}
}

// liveHost is a host whose members are those of the real cluster.
type liveHost struct {
	o      *LiveOptions
	r      *runner
	plan   string
	logins *logins
	where  *whereabouts
}

// newLiveHost makes a host for the plan in a file. It is used once runBy has named its runner.
func newLiveHost(ctx context.Context, o *LiveOptions, file string) *liveHost {
	l := &logins{o: o, ctx: ctx, clients: map[string]*loggedIn{}}
	w := &whereabouts{o: o, logins: l, endpoints: map[string]string{}, listed: map[string]string{},
		given: map[string]string{}}
	return &liveHost{o: o, plan: file, logins: l, where: w}
}

// runBy names the runner that uses the host: it knows the plan and the members' present IDs.
func (f *liveHost) runBy(r *runner) {
	f.r, f.where.r = r, r
	f.logins.best = func() (*clientv3.Client, error) {
		c, _, err := f.client(r.best())
		return c, err
	}
}

// live drives the running cluster.
func (s *session) live(ctx context.Context, o ApplyOptions) (*Outcome, error) {
	if len(o.Live.Endpoints) == 0 {
		return nil, refusal.New("--endpoints URL,…", "the endpoints of the running cluster are missing")
	}
	if !o.Live.hooked() {
		return nil, refusal.New("--hook-stop, --hook-wipe and --hook-start, or run it on a terminal",
			"a person or hooks have to stop members and move their data dirs")
	}
	o.Live.fill(s.file)
	o.Live.Endpoints = slices.Clone(o.Live.Endpoints) // removes names
	f := newLiveHost(ctx, &o.Live, s.file)
	defer f.logins.close()
	r := newRunner(s.state(), f, s.o.limits)
	r.steps, r.backup, r.live = s.plan.Way(plan.Live).Steps, o.Live.Backup, &o.Live
	r.guarded, r.noops = true, s.plan.Cluster.Fillers()
	f.runBy(r)
	if err := f.where.named(); err != nil {
		return nil, err
	}
	if err := f.logins.secure(); err != nil {
		return nil, err
	}
	resumed, err := s.underWay(plan.Live)
	if err != nil {
		return nil, err
	}
	// The journal has the new IDs, so it is opened before the cluster is asked.
	if err := s.journal(plan.Live); err != nil {
		return nil, err
	}
	r.j, s.out.Way = s.j, plan.Live
	if err := errors.Join(r.noteDirs(), r.noteFlags()); err != nil {
		return nil, err
	}
	checks := &liveCheck{liveHost: f}
	if err := checks.preflight(ctx, resumed, s.o.room); err != nil {
		if checks.woken {
			return s.finish(err, func() error { return nil })
		}
		if !resumed {
			err = errors.Join(err, s.j.write(Record{State: StateAbandon, Detail: err.Error()})) // nothing was begun
		}
		return nil, err
	}
	err = r.run(ctx)
	s.out.Only = r.onlyHeld()
	s.out.Notes = append(s.out.Notes, r.fewer()...)
	if err == nil && len(s.out.Proofs) == 0 {
		_, err = doVerify(ctx, r, nil)
	}
	if err == nil {
		s.out.Notes = append(r.learnersToAdd(), s.out.Notes...)
	}
	return s.finish(err, func() error { return nil })
}

// underWay reports whether an earlier run of that mode began steps and did not end.
func (s *session) underWay(mode plan.Mode) (bool, error) {
	records, err := ReadJournal(s.file)
	begun := false
	for _, r := range records {
		if r.Mode != mode {
			continue
		}
		switch r.State {
		case StateBegin:
			begun = true
		case StateEnd, StateAbandon:
			begun = false
		}
	}
	return begun && !s.o.Again, err
}

func (f *liveHost) client(m *plan.Member) (*clientv3.Client, string, error) {
	e := f.where.endpoint(m)
	if e == "" {
		return nil, "", never("no client URL of %s is known; name one with --endpoints", m.Name)
	}
	c, err := f.logins.dial(e)
	return c, e, err
}

func (f *liveHost) forget(m *plan.Member) { f.logins.forget(f.where.endpoint(m)) }

func (f *liveHost) refusesTokens(m *plan.Member) bool {
	e := f.where.endpoint(m)
	return e != "" && f.logins.refused(e)
}

func (f *liveHost) place(m *plan.Member) string { return f.where.place(m) }
