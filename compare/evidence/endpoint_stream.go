package evidence

import (
	"context"
	"errors"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/internal/progress"
	"github.com/etcd-medic/etcd-medic/internal/scratch"
	"github.com/etcd-medic/etcd-medic/release"
)

// stream is the maintenance snapshot of a running member, which begins at one moment and is read later. Nothing else is
// asked for and nothing is changed.
type stream struct {
	access   *Access
	endpoint string
	host     string
	cli      *clientv3.Client
	status   *clientv3.StatusResponse
	// before and after are what the member said of itself right before and after its snapshot began; nil if it did not.
	before, after *clientv3.StatusResponse
	body          io.ReadCloser
	taken         bool
	err           error
}

const (
	// levelTime bounds the wait until all members have applied what each of them had when it was connected: with auth
	// on, a login is itself an entry.
	levelTime  = 2 * time.Second
	levelPause = 20 * time.Millisecond
)

// beginStreams connects to all endpoints among the specs and has all snapshots begin at the same time, so that what
// members write meanwhile does not set them apart.
func (s *Set) beginStreams(ctx context.Context, specs []Spec) (all []*stream) {
	for _, spec := range specs {
		if isEndpoint(spec.Where) {
			all = append(all, &stream{access: &s.access, endpoint: spec.Where})
		}
	}
	each := func(f func(*stream)) {
		var wg sync.WaitGroup
		for _, m := range all {
			if m.err == nil {
				wg.Go(func() { f(m) })
			}
		}
		wg.Wait()
	}
	each(func(m *stream) { m.err = m.connect(ctx) })
	targets := map[uint64]uint64{} // by cluster
	for _, m := range all {
		if m.err == nil {
			id := m.status.Header.ClusterId
			targets[id] = max(targets[id], appliedIndex(m.status))
		}
	}
	each(func(m *stream) { m.level(ctx, targets[m.status.Header.ClusterId]) })
	each(func(m *stream) { m.err = m.begin(ctx) })
	return all
}

// takeStream returns the next stream of an endpoint; one that is named twice has two.
func (s *Set) takeStream(endpoint string) *stream {
	for _, m := range s.streams {
		if m.endpoint == endpoint && !m.taken {
			m.taken = true
			return m
		}
	}
	return &stream{err: unreachable(endpoint, errors.New("it was not connected"))}
}

// connect asks the member one bounded question: a stream would be tried for ever.
func (m *stream) connect(ctx context.Context) error {
	u, err := url.Parse(m.endpoint)
	if err != nil || u.Host == "" {
		return notAnEndpoint(m.endpoint, err)
	}
	m.host = u.Host
	cfg, err := m.access.config(u)
	if err != nil {
		return err
	}
	if err := m.access.Probe(ctx, m.endpoint); err != nil {
		return unreachable(m.endpoint, err)
	}
	if m.cli, err = connect(ctx, &cfg); err != nil {
		return unreachable(m.endpoint, err)
	}
	// The client keeps its token. With a password it would log in again for the stream, and a login is itself an entry.
	m.cli.Username, m.cli.Password = "", ""
	ask, cancel := context.WithTimeout(ctx, cfg.DialTimeout)
	defer cancel()
	if m.status, err = m.cli.Status(ask, cfg.Endpoints[0]); err != nil {
		return unreachable(m.endpoint, because(ctx, &cfg, err))
	}
	return nil
}

// level waits until the member has applied the index, if it comes to that soon.
func (m *stream) level(ctx context.Context, index uint64) {
	ctx, cancel := context.WithTimeout(ctx, levelTime)
	defer cancel()
	for at := appliedIndex(m.status); at < index; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(levelPause):
		}
		if st := m.ask(ctx); st != nil {
			at = appliedIndex(st)
		}
	}
}

// begin has the snapshot taken: its first piece has arrived then.
func (m *stream) begin(ctx context.Context) error {
	m.before = m.ask(ctx)
	r, err := m.cli.SnapshotWithVersion(ctx)
	if err != nil {
		return unreachable(m.endpoint, err)
	}
	m.body = r.Snapshot
	m.after = m.ask(ctx)
	return nil
}

// ask returns what the member says of itself, nil if it does not answer soon.
func (m *stream) ask(ctx context.Context) *clientv3.StatusResponse {
	ctx, cancel := context.WithTimeout(ctx, levelTime)
	defer cancel()
	st, err := m.cli.Status(ctx, m.cli.Endpoints()[0])
	if err != nil {
		return nil
	}
	return st
}

// said is what the member said around the moment of its snapshot. A server that started again meanwhile has applied
// less than before.
func (m *stream) said() *running {
	r := &running{member: m.status.Header.MemberId, cluster: m.status.Header.ClusterId,
		server: release.Of(m.status.Version)}
	if m.before != nil && m.after != nil && appliedIndex(m.before) <= appliedIndex(m.after) {
		r.applied, r.committed = appliedIndex(m.before), m.after.RaftIndex
	}
	return r
}

// appliedIndex is the index that a member has applied. Before 3.4 its raft index is that.
func appliedIndex(st *clientv3.StatusResponse) uint64 {
	if st.RaftAppliedIndex == 0 {
		return st.RaftIndex
	}
	return st.RaftAppliedIndex
}

// save writes the snapshot into a file of dir, with the sha256 trailer that the server appends, and returns its path.
func (m *stream) save(ctx context.Context, dir string) (string, error) {
	if m.err != nil {
		return "", m.err
	}
	path := filepath.Join(dir, strings.NewReplacer(":", "-", "[", "", "]", "").Replace(m.host)+".db")
	//nolint:forbidigo // a new file in scratch that Open itself made
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	allowed := scratch.Budget(dir)
	_, work := progress.Begin(ctx, "receiving a snapshot of "+m.host, m.status.DbSize)
	defer work.End()
	n, err := io.Copy(f, work.Reader(io.LimitReader(m.body, allowed)))
	if err == nil && n == allowed {
		err = &scratch.RoomError{Dir: dir, Allowed: allowed}
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", unreachable(m.endpoint, err)
	}
	return path, nil
}

func (m *stream) close() {
	if m.body != nil {
		_ = m.body.Close()
	}
	if m.cli != nil {
		_ = m.cli.Close()
	}
}
