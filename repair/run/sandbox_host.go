package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/internal/folder"
	"github.com/etcd-medic/etcd-medic/internal/progress"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// sandboxHost is a host whose members are copies in a sandbox. Its folder has members/NAME, the data dirs; before/NAME,
// what was moved aside; sandbox, certificates and logs.
type sandboxHost struct {
	dir  string
	box  *node.Sandbox
	say  func(string)
	mu   sync.Mutex
	runs map[string]*node.Member
	// clients are kept by process: after a restart the old client would wait in its back-off.
	clients map[*node.Member]*clientv3.Client
	// catchUp and snapshotCount make servers drop the start of their in-memory log early.
	catchUp, snapshotCount uint64
	patience               time.Duration
	// logs are the ends of the copied logs, by member name.
	logs map[string]logEnd
}

func (s *sandboxHost) dataDir(m *plan.Member) string {
	return filepath.Join(s.dir, "members", m.Folder())
}

func (s *sandboxHost) beforeDir(m *plan.Member) string {
	return filepath.Join(s.dir, "before", m.Folder()+"-"+m.ID.String())
}

// newest is the process that was started last for a member, running or not; nil before the first.
func (s *sandboxHost) newest(m *plan.Member) *node.Member {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs[m.Name]
}

// process is the member's process while it runs.
func (s *sandboxHost) process(m *plan.Member) *node.Member {
	p := s.newest(m)
	if p == nil {
		return nil
	}
	if _, ended := p.Exited(); ended {
		return nil
	}
	return p
}

func (s *sandboxHost) client(m *plan.Member) (*clientv3.Client, string, error) {
	p := s.process(m)
	if p == nil {
		return nil, "", permanent{s.ended(m)}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.clients[p]
	if c == nil {
		var err error
		if c, err = p.Client(); err != nil {
			return nil, "", err
		}
		s.clients[p] = c
	}
	return c, p.Endpoint(), nil
}

func (s *sandboxHost) forget(m *plan.Member) {
	p := s.newest(m)
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.clients[p]; c != nil {
		_ = c.Close()
		delete(s.clients, p)
	}
}

// refusesTokens: the sandbox logs in by certificate.
func (s *sandboxHost) refusesTokens(*plan.Member) bool { return false }

// ended says why a member does not run.
func (s *sandboxHost) ended(m *plan.Member) error {
	p := s.newest(m)
	if p == nil {
		return fmt.Errorf("%s does not run", m.Name)
	}
	exit, _ := p.Exited()
	return fmt.Errorf("%s ended: %s %q", m.Name, exit, p.FatalLines())
}

func (s *sandboxHost) serves(_ context.Context, m *plan.Member) error {
	if s.process(m) == nil {
		return s.ended(m)
	}
	return nil
}

func (s *sandboxHost) place(*plan.Member) string { return "" }

func (s *sandboxHost) refuses(ctx context.Context, m *plan.Member) bool { return s.down(ctx, m) }

func (s *sandboxHost) down(_ context.Context, m *plan.Member) bool { return s.process(m) == nil }

func (s *sandboxHost) stop(ctx context.Context, m *plan.Member) error {
	p := s.process(m)
	if p == nil {
		return nil
	}
	if m.Rejoins() {
		return p.Kill() // its data dir is moved aside, so a graceful end is not needed
	}
	return p.Stop(ctx)
}

func (s *sandboxHost) aside(_ context.Context, m *plan.Member) (string, error) {
	from, to := s.dataDir(m), s.beforeDir(m)
	if _, err := os.Stat(from); errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return "", err
	}
	if _, err := os.Stat(to); err == nil {
		return "", fmt.Errorf("%s exists already", to)
	}
	if err := os.Rename(from, to); err != nil {
		return "", err
	}
	return filepath.Join("before", filepath.Base(to)),
		errors.Join(syncDir(filepath.Dir(to)), syncDir(filepath.Dir(from)))
}

func (s *sandboxHost) start(ctx context.Context, m *plan.Member, how startHow) error {
	dir := s.dataDir(m)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "member", "wal")); err != nil && how.initialCluster == "" {
		return fmt.Errorf("%s has no log to start on, and would begin a new cluster: %w", m.Name, err)
	}
	p, err := s.box.Start(ctx, node.MemberConfig{
		Name: m.ServerName(), DataDir: dir, PeerURLs: m.PeerURLs, ClientURLs: m.ClientURLs,
		InitialCluster: how.initialCluster, Existing: how.initialCluster != "", ForceNewCluster: how.forceNew,
		CatchupEntries: s.catchUp, SnapshotCount: s.snapshotCount,
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs[m.Name] = p
	return nil
}

func (s *sandboxHost) ready(ctx context.Context, m *plan.Member) error {
	p := s.newest(m)
	if p == nil {
		return fmt.Errorf("%s was not started", m.Name)
	}
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	defer progress.Wait(ctx, "waiting for "+m.Name).End()
	if !p.Config().Existing {
		return p.Ready(ctx)
	}
	if err := s.arrives(ctx, m, p); err != nil {
		return err
	}
	quick, stop := context.WithTimeout(ctx, time.Second)
	defer stop()
	if err := p.Ready(quick); err == nil || quick.Err() == nil {
		return err
	}
	// A joining member publishes itself once. If it does so while it installs the snapshot, that is lost and repeated
	// only after 7 seconds. A start on the received data takes a fraction of one second.
	if err := p.Kill(); err != nil {
		return err
	}
	if err := s.start(ctx, m, startHow{initialCluster: p.Config().InitialCluster}); err != nil {
		return err
	}
	return s.process(m).Ready(ctx)
}

// arrives waits until a joining member has installed the received database, or serves without one.
func (s *sandboxHost) arrives(ctx context.Context, m *plan.Member, p *node.Member) error {
	for {
		dir := filepath.Join(s.dataDir(m), "member", "snap")
		snaps, err := folder.Match(dir, "*.snap")
		underway, notListed := folder.Match(dir, "*.snap.db")
		if err = errors.Join(err, notListed); err != nil {
			return err
		}
		if len(snaps) > 0 && len(underway) == 0 {
			return nil
		}
		quick, stop := context.WithTimeout(ctx, 50*time.Millisecond)
		err = p.Ready(quick)
		over := quick.Err() != nil
		stop()
		if err == nil || !over || ctx.Err() != nil {
			return err
		}
	}
}

// up brings the sandbox to the state of the journal. Members that are just joining are started last: by then the best
// member must be the leader and have dropped the start of its log again.
func (s *sandboxHost) up(ctx context.Context, r *runner, way plan.Mode) ([]string, error) {
	var old, joining []*plan.Member
	for i := range r.plan.Members {
		m := &r.plan.Members[i]
		switch {
		case !runsNow(r, m, way):
		case r.stepDone(plan.StepStartEmpty, m.Name) && !r.stepDone(plan.StepPromote, m.Name):
			joining = append(joining, m)
		default:
			old = append(old, m)
		}
	}
	notes, err := s.launch(ctx, r, old)
	if err != nil || len(joining) == 0 {
		return notes, err
	}
	if _, err := doAdvanceLog(ctx, r, nil); err != nil { // moves the leader too
		return notes, err
	}
	defer r.keepAwake(ctx)()
	more, err := s.launch(ctx, r, joining)
	return append(notes, more...), err
}

// runsNow reports whether a member runs at this point of the journal.
func runsNow(r *runner, m *plan.Member, way plan.Mode) bool {
	runs := way == plan.Live && m.Startable && m.Source != ""
	for i := range r.steps {
		st := &r.steps[i]
		if st.Member != m.Name || r.j.state(st.ID) != StateDone {
			continue
		}
		switch st.Kind {
		case plan.StepStop:
			runs = false
		case plan.StepStart, plan.StepStartEmpty, plan.StepForceNew:
			runs = true
		}
	}
	return runs
}

// flush is longer than a server waits before it commits a batch to its database.
const flush = 250 * time.Millisecond

// end ends all members. Copies that are not kept are killed once everything is recorded. Those that are published end
// gracefully, the followers first: a leader that ends at the same time waits for a member to hand over to.
func (s *sandboxHost) end(ctx context.Context, p *plan.Plan, throwAway bool) error {
	end := (*node.Member).Kill
	if throwAway {
		time.Sleep(flush)
	} else {
		// A leader without a member to hand over to waits for 7 seconds; killing it loses nothing, because it is idle.
		graceful, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		end = func(m *node.Member) error { return m.Stop(graceful) }
	}
	var wg sync.WaitGroup
	errs := make([]error, len(p.Members)+1)
	for i := range p.Members {
		if m := s.process(&p.Members[i]); m != nil && p.Members[i].Action != plan.Best {
			wg.Go(func() { errs[i] = end(m) })
		}
	}
	wg.Wait()
	if m := s.process(p.Member(p.Best.Name)); m != nil {
		errs[len(p.Members)] = end(m)
	}
	return errors.Join(errs...)
}
