package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// ask bounds how long to wait for a member that may be down.
const ask = 3 * time.Second

// answers asks a member who it is. The time for an answer begins after the login.
func (f *liveHost) answers(ctx context.Context, m *plan.Member) (*clientv3.StatusResponse, error) {
	if e := f.where.seek(ctx, m); e == "" || !listens(ctx, e) { // a client would retry until the timeout
		return nil, errors.Join(errSilent, ctx.Err())
	}
	if _, _, err := f.client(m); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, ask)
	defer cancel()
	return f.r.status(ctx, m)
}

var errSilent = errors.New("nothing listens at its client URL")

// serves returns nil if the member answers under its present ID. A first answer may fail because the client is
// connected to an earlier process.
func (f *liveHost) serves(ctx context.Context, m *plan.Member) error {
	st, err := f.answers(ctx, m)
	if err != nil && !errors.Is(err, errSilent) && ctx.Err() == nil {
		f.forget(m)
		st, err = f.answers(ctx, m)
	}
	if e := f.where.endpoint(m); err != nil && strings.HasPrefix(e, "https://") && ctx.Err() == nil {
		access := evidence.Access{CACert: f.o.CACert, Cert: f.o.Cert, Key: f.o.Key}
		err = access.Because(ctx, []string{e}, err)
	}
	if err == nil && st.Header.GetMemberId() != f.r.idOf(m) {
		err = fmt.Errorf("member %s answers at %s", hexID(st.Header.GetMemberId()), f.place(m))
	}
	return err
}

// down reports whether no process has the member's client port. A connection that is closed at once leads through a
// tunnel to a free port; one without an answer may lead to a server that hangs, and none in time says nothing.
func (f *liveHost) down(ctx context.Context, m *plan.Member) bool {
	e := f.where.seek(ctx, m)
	switch {
	case e != "":
	case f.place(m) == "": // only the person who stopped it knows
		return f.r.stepDone(plan.StepStop, m.Name)
	case f.where.quiet(ctx):
		return true
	}
	c, err := reach(ctx, e)
	if c == nil {
		var late net.Error
		return err != nil && ctx.Err() == nil && !(errors.As(err, &late) && late.Timeout())
	}
	defer func() { _ = c.Close() }()
	if err := c.SetReadDeadline(time.Now().Add(tunnel)); err != nil {
		return false
	}
	_, err = c.Read(make([]byte, 1))
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

func (f *liveHost) refuses(ctx context.Context, m *plan.Member) bool {
	e := f.where.seek(ctx, m)
	switch {
	case e != "":
		return refused(ctx, e)
	case f.place(m) == "":
		return f.down(ctx, m)
	}
	return f.where.refuse(ctx)
}

// refused reports whether a host answers that no process has the port of an endpoint.
func refused(ctx context.Context, endpoint string) bool {
	c, err := reach(ctx, endpoint)
	if c != nil {
		_ = c.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist)
}

// tunnel is how long a port forwarder may take to notice that its target is down.
const tunnel = time.Second

func (f *liveHost) stop(ctx context.Context, m *plan.Member) error {
	if err := f.onHost(ctx, m, "stop", f.o.HookStop, plan.StepStop.ByHand(f.r.plan, m), ""); err != nil {
		return err
	}
	f.forget(m)
	if f.place(m) == "" {
		f.r.notice("whether " + m.Name + " has stopped cannot be seen from here: no client URL of it is known")
		return nil
	}
	return f.r.until(ctx, f.r.limits.step, m.Name+" stops", func(ctx context.Context) error {
		if f.down(ctx, m) {
			return nil
		}
		f.forget(m)
		st, err := f.answers(ctx, m)
		if err != nil {
			return fmt.Errorf("%s does not show that it has stopped: nothing refuses a connection there (%v)",
				f.place(m), err) //nolint:errorlint // any error may be temporary
		}
		return fmt.Errorf("it still answers at %s as member %s, although it was said to be stopped", f.place(m),
			hexID(st.Header.GetMemberId()))
	})
}

func (f *liveHost) aside(ctx context.Context, m *plan.Member) (string, error) {
	// A hook may move a data dir on this machine to AsidePath.
	if _, err := os.Stat(f.dataDir(m)); err == nil && f.o.HookWipe != "" {
		_ = os.MkdirAll(filepath.Dir(AsidePath(f.plan, m)), 0o700) // the hook reports what it lacks
	}
	return "", f.onHost(ctx, m, "wipe", f.o.HookWipe, plan.StepSetAside.ByHand(f.r.plan, m), "")
}

func (f *liveHost) start(ctx context.Context, m *plan.Member, how startHow) error {
	f.forget(m)
	hand := plan.StepStart.ByHand(f.r.plan, m)
	if how.empty {
		hand = plan.StepStartEmpty.ByHand(f.r.plan, m)[1:] // the first says what INITIAL_CLUSTER is
	}
	return f.onHost(ctx, m, "start", f.o.HookStart, hand, how.initialCluster)
}

// ready waits until the member answers with its ID. It ends early if another member answers in its place, or no process
// listens there.
func (f *liveHost) ready(ctx context.Context, m *plan.Member) error {
	w := &listening{f: f, m: m, silent: time.Now(), odd: time.Now(), tokens: f.r.watchTokens(m)}
	return f.r.until(ctx, f.r.limits.transfer, m.Name+" serves as "+hexID(f.r.idOf(m)),
		func(ctx context.Context) error {
			st, err := f.answers(ctx, m)
			if err != nil {
				f.forget(m)
				if err := w.removed(ctx); err != nil {
					return err
				}
				return w.look(err)
			}
			return f.itself(m, st)
		})
}

// itself says who answers in a member's place.
func (f *liveHost) itself(m *plan.Member, st *clientv3.StatusResponse) error {
	id, cluster := st.Header.GetMemberId(), st.Header.GetClusterId()
	switch {
	case id == f.r.idOf(m):
		return nil
	case id == uint64(m.ID):
		return never("it serves under its old ID %s: it was started on its old data dir, which was not moved aside; "+
			"stop it, move that aside, and run the same command again", m.ID)
	case cluster != uint64(f.r.plan.Cluster.ID):
		return never("member %s of cluster %s answers at %s: it was not started with "+
			"--initial-cluster-state=existing and the initial cluster, and bootstrapped a new cluster",
			dumplog.ID(id), dumplog.ID(cluster), f.place(m))
	}
	return never("member %s answers at %s", dumplog.ID(id), f.place(m))
}

// listening tracks whether a process has the member's client port. A joining member opens it at once and serves once it
// has the database. So a closed port, or one that opens and closes, means that the process does not run.
type listening struct {
	f      *liveHost
	m      *plan.Member
	silent time.Time // since when no process listens
	odd    time.Time // since when a process listens that is not an etcd server
	heard  bool
	ends   int // how often a process was seen and then ended
	tokens tokenWatch
	asked  time.Time // when the member list was last asked for
}

// removed returns an error if the cluster does not list the member any more: its server ends, and none starts under its
// ID again.
func (l *listening) removed(ctx context.Context) error {
	if time.Since(l.asked) < ask {
		return nil
	}
	l.asked = time.Now()
	return l.f.r.unlisted(ctx, l.m)
}

// starts is how often a process may start and end before it counts as failed.
const starts = 3

func (l *listening) look(why error) error {
	var stays permanent
	if why = l.tokens.look(why); errors.As(why, &stays) {
		return why
	}
	const hint = `look at its log. "the member has been permanently removed from the cluster" there means that it ` +
		"was started on its old data dir, or on its old log in --wal-dir, which was not moved aside. " +
		`"mismatch member" or "cluster ID mismatch" means that it was started with --initial-cluster-state=new. ` +
		`"incompatible with current running cluster" means that its etcd is older than the cluster version. ` +
		"Move that data dir and log aside by hand, correct the hook, and run the same command again"
	if !errors.Is(why, errSilent) {
		l.heard = true
		if status.Code(why) != codes.Unimplemented {
			l.odd = time.Now()
		}
		if time.Since(l.odd) > l.f.r.limits.step {
			return never("the server at %s is not an etcd server (%v); name the member's own URL with --endpoints",
				l.f.place(l.m), why)
		}
		return fmt.Errorf("it does not answer yet: %v", why) //nolint:errorlint // any error may be temporary
	}
	l.odd = time.Now()
	if l.heard {
		l.heard, l.silent = false, time.Now()
		l.ends++
	}
	if l.ends >= starts {
		return never("it was started and ended %d times; %s", l.ends, hint)
	}
	if time.Since(l.silent) > l.f.r.limits.step {
		return never("nothing listens at %s for %v although it was said to be started; %s", l.f.place(l.m),
			l.f.r.limits.step, hint)
	}
	return errSilent
}

// listens reports whether a process accepts connections at an endpoint.
func listens(ctx context.Context, endpoint string) bool {
	c, err := reach(ctx, endpoint)
	if c != nil {
		_ = c.Close()
	}
	return err == nil
}

// reach connects to an endpoint; without one that is a URL there is neither a connection nor an error.
func reach(ctx context.Context, endpoint string) (net.Conn, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme == "" {
		return nil, nil
	}
	network, address := "tcp", u.Host
	if strings.HasPrefix(u.Scheme, "unix") {
		network, address = "unix", u.Host+u.Path
	}
	d := net.Dialer{Timeout: ask}
	return d.DialContext(ctx, network, address)
}

// onHost runs the hook, or asks a person.
func (f *liveHost) onHost(ctx context.Context, m *plan.Member, what, hook string, hand []plan.Command,
	initial string) error {
	switch {
	case f.o.HostActions != nil:
		return f.o.HostActions(ctx, HostStep{Action: what, Member: m, InitialCluster: initial})
	case hook != "":
		return f.runHook(ctx, m, what, hook, initial)
	}
	return f.o.Prompt(ctx, f.instructions(m, what, hand, initial))
}

// instructions say what a person has to do, with all values that are known here, and what will be checked next.
func (f *liveHost) instructions(m *plan.Member, what string, hand []plan.Command, initial string) []string {
	then := map[string]string{
		"stop": fmt.Sprintf("then %s must not answer at %s any more", m.Name, f.place(m)),
		"wipe": "move it, do not delete it; an empty data dir must be left, or none. A copy of it at " +
			AsidePath(f.plan, m) + " here is compared for what only it holds",
		"start": fmt.Sprintf("then member %s must answer at %s", hexID(f.r.idOf(m)), f.place(m)),
	}
	title := map[string]string{"stop": "stop %s (%s)", "wipe": "move the data dir of %s (%s) aside",
		"start": "start %s (%s)"}
	text := []string{fmt.Sprintf(title[what], m.Name, hexID(f.r.idOf(m))) + ", one of:"}
	known := map[string]string{}
	if dir := f.dataDir(m); dir != "" {
		known["DATA_DIR"] = dir
	}
	if initial != "" {
		if known["INITIAL_CLUSTER"] = initial; !plan.SameInQuotes(initial) {
			text = append(text, "  INITIAL_CLUSTER is "+initial)
		}
	}
	for _, c := range hand {
		if c.With == "etcdctl" { // that is looked at here
			continue
		}
		c = c.Fill(known).FillNote(known)
		text = append(text, "  "+c.Prefix()+c.Run)
	}
	return append(text, then[what])
}

func (f *liveHost) dataDir(m *plan.Member) string { return f.o.dataDir(m) }

// dataDir is the member's data dir on its host, "" when it is unknown.
func (o *LiveOptions) dataDir(m *plan.Member) string { return givenFor(o.DataDirs, m) }

// givenFor is what is given for a member, or for all members, "" if neither is.
func givenFor(given map[string]string, m *plan.Member) string {
	for _, n := range []string{m.Name, m.ServerName(), ""} {
		if d := given[n]; d != "" {
			return d
		}
	}
	return ""
}
