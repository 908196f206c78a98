package repair

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// LiveOptions say how the running cluster is reached and who does what has to be done on the hosts.
type LiveOptions struct {
	// Endpoints are client URLs of the members. A member without one is reached at the client URLs that it advertises.
	Endpoints []string
	// CACert, Cert and Key are PEM files; User and Password log in. Under auth they must be those of a user with role root.
	CACert, Cert, Key string
	User, Password    string
	// Hands, if set, does what has to be done on hosts; hooks and prompts are not used then.
	Hands func(context.Context, HostStep) error
	// HookStop, HookWipe and HookStart are shell commands; see hookEnv. They must do no harm when they are run again.
	HookStop, HookWipe, HookStart string
	// DataDirs are the members' data dirs on their hosts by name; "" is that of members that are not named.
	DataDirs map[string]string
	// Backup is the file for the snapshot, by default beside the plan.
	Backup string
	// Prompt shows what a person has to do on a host and returns when it is done. nil when nobody is there.
	Prompt func(ctx context.Context, text []string) error
	// Output takes what hooks print.
	Output io.Writer
}

// HostStep is one thing to do on a member's host: stop, wipe (move the data dir aside) or start. It must do no harm when it is done again.
type HostStep struct {
	Action string
	Member *Member
	// InitialCluster is what a member that joins empty is started with, and --initial-cluster-state=existing; "" starts it on its own
	// data dir.
	InitialCluster string
}

// hooked tells whether host steps can be done at all.
func (o *LiveOptions) hooked() bool {
	return o.Hands != nil || o.Prompt != nil || o.HookStop != "" && o.HookWipe != "" && o.HookStart != ""
}

// field is a host whose members are those of the real cluster.
type field struct {
	o    *LiveOptions
	r    *runner
	tls  *tls.Config
	plan string

	mu        sync.Mutex
	endpoints map[string]string // by member name, as found among o.Endpoints
	clients   map[string]*clientv3.Client
}

// live drives the running cluster.
func (s *session) live(ctx context.Context, o ApplyOptions) (*Outcome, error) {
	if len(o.Live.Endpoints) == 0 {
		return nil, refusedf("--endpoints URL,…", "the endpoints of the running cluster are missing")
	}
	if !o.Live.hooked() {
		return nil, refusedf("--hook-stop, --hook-wipe and --hook-start, or run it on a terminal", "nobody is there to stop members and to move their data dirs")
	}
	if o.Live.Backup == "" {
		o.Live.Backup = s.file + ".backup.db"
	}
	f := &field{o: &o.Live, plan: s.file, endpoints: map[string]string{}, clients: map[string]*clientv3.Client{}}
	defer f.close()
	if err := f.secure(); err != nil {
		return nil, err
	}
	r := &runner{plan: s.plan, steps: s.plan.Way(Live).Steps, host: f, out: s.out, limits: defaultLimits(), say: s.o.Progress,
		noops: fillers(&s.plan.Cluster), backup: o.Live.Backup}
	f.r = r
	resumed, err := s.underWay(Live)
	if err != nil {
		return nil, err
	}
	// The journal knows the new IDs, so it is open before the cluster is looked at.
	if err := s.journal(Live); err != nil {
		return nil, err
	}
	r.j, s.out.Way = s.j, Live
	if err := f.check(ctx, resumed); err != nil {
		if !resumed {
			err = errors.Join(err, s.j.write(Record{State: StateAbandon, Detail: err.Error()})) // nothing was begun
		}
		return nil, AsRefusal(err)
	}
	err = r.run(ctx)
	if err == nil && len(s.out.Proofs) == 0 {
		_, err = doVerify(ctx, r, nil)
	}
	return s.finish(err, func() error { return nil })
}

// underWay tells whether an earlier run of that mode began steps and did not end.
func (s *session) underWay(mode Mode) (bool, error) {
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

func (f *field) secure() error {
	if f.o.CACert == "" && f.o.Cert == "" {
		for _, e := range f.o.Endpoints {
			if strings.HasPrefix(e, "https://") {
				f.tls = &tls.Config{MinVersion: tls.VersionTLS12}
			}
		}
		return nil
	}
	info := transport.TLSInfo{CertFile: f.o.Cert, KeyFile: f.o.Key, TrustedCAFile: f.o.CACert}
	c, err := info.ClientConfig()
	f.tls = c
	return err
}

func (f *field) dial(endpoint string) (*clientv3.Client, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.clients[endpoint]; c != nil {
		return c, nil
	}
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, TLS: f.tls, Username: f.o.User, Password: f.o.Password,
		DialTimeout: f.r.limits.call, Logger: zap.NewNop(), DialKeepAliveTime: 5 * time.Second, DialKeepAliveTimeout: 5 * time.Second,
		DialOptions: []grpc.DialOption{grpc.WithNoProxy()}})
	if err != nil {
		return nil, err
	}
	f.clients[endpoint] = c
	return c, nil
}

// forget closes a member's client: a new process knows no token of the old one.
func (f *field) forget(m *Member) {
	e := f.endpoint(m)
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.clients[e]; c != nil {
		_ = c.Close()
		delete(f.clients, e)
	}
}

func (f *field) close() {
	for _, c := range f.clients {
		_ = c.Close()
	}
}

func (f *field) endpoint(m *Member) string {
	if e := f.endpoints[m.Name]; e != "" {
		return e
	}
	if len(m.ClientURLs) > 0 {
		return m.ClientURLs[0]
	}
	return ""
}

func (f *field) client(m *Member) (*clientv3.Client, string, error) {
	e := f.endpoint(m)
	if e == "" {
		return nil, "", never("no client URL of %s is known; name one with --endpoints", m.Name)
	}
	c, err := f.dial(e)
	return c, e, err
}

// ask bounds how long a member that may be down is waited for.
const ask = 3 * time.Second

// running tells whether the member answers under the ID that it has now.
func (f *field) running(ctx context.Context, m *Member) bool {
	ctx, cancel := context.WithTimeout(ctx, ask)
	defer cancel()
	st, err := f.r.status(ctx, m)
	return err == nil && st.Header.GetMemberId() == f.r.idOf(m)
}

func (f *field) stop(ctx context.Context, m *Member) error {
	if err := f.onHost(ctx, m, "stop", f.o.HookStop, byHandStop(m), ""); err != nil {
		return err
	}
	f.forget(m)
	return f.r.until(ctx, f.r.limits.step, m.Name+" stops", func(ctx context.Context) error {
		if f.running(ctx, m) {
			return errors.New("it still answers")
		}
		return nil
	})
}

func (f *field) aside(ctx context.Context, m *Member) (string, error) {
	return "", f.onHost(ctx, m, "wipe", f.o.HookWipe, byHandSetAside(m), "")
}

func (f *field) start(ctx context.Context, m *Member, how startHow) error {
	f.forget(m)
	hand := byHandStart(m)
	if how.empty {
		hand = byHandStartEmpty(f.r.plan, m)
		for i := range hand {
			hand[i].Run = strings.ReplaceAll(hand[i].Run, "INITIAL_CLUSTER is the line that member add printed: ", "")
			hand[i].Run = strings.ReplaceAll(hand[i].Run, "=INITIAL_CLUSTER", "="+how.initialCluster)
			hand[i].Run = strings.ReplaceAll(hand[i].Run, `"INITIAL_CLUSTER"`, `"`+how.initialCluster+`"`)
		}
	}
	return f.onHost(ctx, m, "start", f.o.HookStart, hand, how.initialCluster)
}

func (f *field) ready(ctx context.Context, m *Member) error {
	limit := f.r.limits.transfer
	return f.r.until(ctx, limit, m.Name+" serves as "+hexID(f.r.idOf(m)), func(ctx context.Context) error {
		if !f.running(ctx, m) {
			f.forget(m) // a client that failed sits in its back-off
			return errors.New("it does not answer yet")
		}
		return nil
	})
}

// onHost runs the hook, or asks a person.
func (f *field) onHost(ctx context.Context, m *Member, what, hook string, hand []Command, initial string) error {
	if f.o.Hands != nil {
		return f.o.Hands(ctx, HostStep{Action: what, Member: m, InitialCluster: initial})
	}
	if hook == "" {
		text := []string{fmt.Sprintf("%s %s (%s), one of:", what, m.Name, hexID(f.r.idOf(m)))}
		for _, c := range hand {
			text = append(text, fmt.Sprintf("  %-10s  %s", c.With, c.Run))
		}
		return f.o.Prompt(ctx, text)
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", hook)
	cmd.Env = append(os.Environ(), hookEnv(f, m, what, initial)...)
	cmd.WaitDelay = 5 * time.Second
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	var tail lastBytes
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&tail, f.o.Output), io.MultiWriter(&tail, f.o.Output)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("hook %s of %s: %w %s", what, m.Name, err, strings.TrimSpace(string(tail.b)))
	}
	return nil
}

// hookEnv is what a hook is told.
func hookEnv(f *field, m *Member, what, initial string) []string {
	state := ""
	if initial != "" {
		state = "existing"
	}
	dir := f.o.DataDirs[m.Name]
	if dir == "" {
		dir = f.o.DataDirs[""]
	}
	return []string{
		"ETCD_MEDIC_ACTION=" + what,
		"ETCD_MEDIC_MEMBER_NAME=" + m.ServerName(),
		"ETCD_MEDIC_MEMBER_ID=" + hexID(f.r.idOf(m)),
		"ETCD_MEDIC_OLD_MEMBER_ID=" + m.ID.String(),
		"ETCD_MEDIC_PEER_URLS=" + strings.Join(m.PeerURLs, ","),
		"ETCD_MEDIC_CLIENT_URLS=" + strings.Join(m.ClientURLs, ","),
		"ETCD_MEDIC_DATA_DIR=" + dir,
		"ETCD_MEDIC_INITIAL_CLUSTER=" + initial,
		"ETCD_MEDIC_INITIAL_CLUSTER_STATE=" + state,
		"ETCD_MEDIC_PLAN=" + filepath.Base(f.plan),
	}
}

// lastBytes keeps the end of what a hook printed.
type lastBytes struct{ b []byte }

// Write keeps the last kilobyte.
func (l *lastBytes) Write(b []byte) (int, error) {
	l.b = append(l.b, b...)
	l.b = l.b[max(0, len(l.b)-1024):]
	return len(b), nil
}

// check holds the running cluster against the plan. Nothing was changed yet, unless an earlier run is carried on.
func (f *field) check(ctx context.Context, resumed bool) error {
	if err := f.locate(ctx); err != nil {
		return err
	}
	p := f.r.plan
	list, err := f.r.list(ctx)
	if err != nil {
		return refusedf("look at --endpoints and the credentials; the cluster needs a leader", "the running cluster does not tell its members: %v", err)
	}
	goal, err := f.r.goal(ctx)
	if err != nil {
		return err
	}
	const hint = "this is another cluster, or it changed since its data dirs were copied: copy again and plan again"
	if id := goal.Header.GetClusterId(); id != uint64(p.Cluster.ID) {
		return refusedf(hint, "the running cluster is %x, the plan is for %s", id, p.Cluster.ID)
	}
	if rev := goal.Header.GetRevision(); rev < p.Best.Revision {
		return refusedf(hint, "%s stands at revision %d, in the plan at %d", p.Best.Name, rev, p.Best.Revision)
	}
	known := map[uint64]bool{}
	for i := range p.Members {
		m := &p.Members[i]
		known[uint64(m.ID)], known[f.r.idOf(m)] = true, true
		listed := find(list, uint64(m.ID)) != nil || find(list, f.r.idOf(m)) != nil
		if !resumed && !listed && m.Action != Retire && m.Action != Join && !zombie(m) {
			return refusedf(hint, "member %s (%s) of the plan is not listed", m.Name, m.ID)
		}
	}
	for _, m := range list {
		mine := resumed && slices.ContainsFunc(p.Members, func(pm Member) bool { return byPeerURL(list, pm.PeerURLs) == m })
		if !known[m.GetID()] && !mine {
			return refusedf(hint, "the running cluster has a member %s that the plan does not know", dumplog.ID(m.GetID()))
		}
	}
	return nil
}

func zombie(m *Member) bool { return m.Action == Remove && m.NotStartable == "raft does not know it" }

// locate finds out which endpoint is whose.
func (f *field) locate(ctx context.Context) error {
	byID := map[uint64]string{}
	for i := range f.r.plan.Members {
		m := &f.r.plan.Members[i]
		byID[uint64(m.ID)], byID[f.r.idOf(m)] = m.Name, m.Name
	}
	var errs []error
	for _, e := range f.o.Endpoints {
		call, cancel := context.WithTimeout(ctx, f.r.limits.call)
		c, err := f.dial(e)
		if err == nil {
			var st *clientv3.StatusResponse
			if st, err = c.Status(call, e); err == nil {
				if name := byID[st.Header.GetMemberId()]; name != "" {
					f.endpoints[name] = e
				}
			}
		}
		cancel()
		errs = append(errs, err)
	}
	if len(f.endpoints) == 0 {
		return refusedf("look at --endpoints and the credentials", "no endpoint answers as a member of the plan: %v", errors.Join(errs...))
	}
	return nil
}
