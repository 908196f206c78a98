package run

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// fakeCluster is a host and a cluster in memory. It decides what a real one decides: members listed, majority, leader.
// Contents are equal until a test changes those of a member.
type fakeCluster struct {
	r *runner

	mu     sync.Mutex
	list   []*etcdserverpb.Member
	up     map[uint64]bool
	leader uint64
	nextID uint64
	// acts are the host steps and membership changes in order; lost are those after which the cluster decided nothing,
	// though it had before.
	acts, lost []string
	// before is called ahead of each host step, outside the lock.
	before func(act string, m *plan.Member)
	// snapshots are the members that were read whole; fragile is one that ends when that is done.
	snapshots []string
	fragile   uint64
	// expired are the members whose clients hold a token that has run out; forgot are those whose client was closed.
	expired map[uint64]bool
	forgot  []string
	// version is what all servers run, "" when they do not say it.
	version string
	// downgrade is what they are downgraded to, "" for no downgrade.
	downgrade string
	// versions are those of single members, by ID.
	versions map[uint64]string
	// contents are those of the members by ID; alarms are raised.
	contents map[uint64]*fakeContent
	alarms   []*etcdserverpb.AlarmMember
	dbSize   int64
	// fail, if set, is called ahead of each call with what it is ("stop node2", "MemberAdd of 1"), outside the lock.
	fail func(call string) error
	// read, if set, is called ahead of each read with the ID of the member, outside the lock.
	read func(id uint64)
	// noRoot is what requests are answered that only root may make.
	noRoot error
	// noAuthStatus is what AuthStatus answers.
	noAuthStatus error
	// ownList lets each member list the members by itself, as servers of 3.3 do; late loses the answer to member add.
	ownList, late bool
	// locked are the errors with which members refuse the user, by name.
	locked map[string]error
	// puts are the values that were written.
	puts []string
	// off are the members that refuse every token: while it is not nil, those that start without a database.
	// They may still say their status: openStatus.
	off        map[uint64]bool
	openStatus bool
}

const fakeClusterID = 0xc1

// fakePlan is a plan for n members: node1 is kept, those of bad are replaced, the others stay.
func fakePlan(t *testing.T, n int, bad ...string) *plan.Plan {
	t.Helper()
	p := &plan.Plan{SchemaVersion: plan.SchemaVersion, Mode: plan.Live,
		Best:    plan.Choice{Name: "node1", ID: 1, Revision: 10},
		Digest:  "digest",
		Cluster: plan.Cluster{ID: fakeClusterID, Minor: 5, Voters: n, Quorum: n/2 + 1, Startable: n}}
	for i := range n {
		name := fmt.Sprintf("node%d", i+1)
		m := plan.Member{Name: name, NodeName: name, ID: dumplog.ID(i + 1),
			PeerURLs:   []string{"http://" + name + ":2380"},
			ClientURLs: []string{"http://" + name + ":2379"},
			Source:     name, Action: plan.Keep, Why: "sound", Startable: true, Applied: 10, Revision: 10}
		switch {
		case i == 0:
			m.Action = plan.Best
		case slices.Contains(bad, name):
			m.Action = plan.Replace
		}
		p.Members = append(p.Members, m)
	}
	return p
}

// newFake makes the cluster of a plan, all members up, and the runner of its live way.
func newFake(t *testing.T, p *plan.Plan) *fakeCluster {
	t.Helper()
	if err := p.LayOut(); err != nil {
		t.Fatal(err)
	}
	c := &fakeCluster{up: map[uint64]bool{}, leader: 1, nextID: 100, contents: map[uint64]*fakeContent{}}
	for i := range p.Members {
		if m := &p.Members[i]; m.ID != 0 {
			c.list = append(c.list, &etcdserverpb.Member{ID: uint64(m.ID), Name: m.Name, PeerURLs: m.PeerURLs})
			c.up[uint64(m.ID)] = true
		}
	}
	c.r = newRunner(&runState{plan: p, steps: p.Way(plan.Live).Steps, out: &Outcome{}, say: func(string) {},
		backup: filepath.Join(t.TempDir(), "backup.db"),
		live: &LiveOptions{HostActions: func(context.Context, HostStep) error { return nil },
			QuorumWait: time.Minute}}, c,
		limits{call: 200 * time.Millisecond, step: 2 * time.Second, transfer: 2 * time.Second,
			poll: time.Millisecond, recount: time.Millisecond, tokens: 5 * time.Millisecond})
	c.r.guarded = true
	c.journal(t, filepath.Join(t.TempDir(), "plan.yaml"), func(Record, bool) {})
	return c
}

func (c *fakeCluster) journal(t *testing.T, file string, observe func(Record, bool)) {
	t.Helper()
	j, err := openJournal(file, "digest", plan.Live, false, observe)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.close() })
	c.r.j = j
}

// set starts or ends a member by its ID.
func (c *fakeCluster) set(id uint64, up bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.up[id] = up
}

// decides tells whether a majority of the voters runs. The lock is held.
func (c *fakeCluster) decides() bool {
	voters, up := 0, 0
	for _, m := range c.list {
		if m.IsLearner {
			continue
		}
		if voters++; c.up[m.ID] {
			up++
		}
	}
	if up < voters/2+1 {
		return false
	}
	if l := find(c.list, c.leader); l == nil || l.IsLearner || !c.up[c.leader] {
		i := slices.IndexFunc(c.list, func(m *etcdserverpb.Member) bool { return !m.IsLearner && c.up[m.ID] })
		c.leader = c.list[i].ID
	}
	return true
}

// act does something that may cost the majority.
func (c *fakeCluster) act(what string, m *plan.Member, f func()) {
	if c.before != nil {
		c.before(what, m)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	had := c.decides()
	f()
	name := ""
	if m != nil {
		name = " " + m.Name
	}
	c.acts = append(c.acts, what+name)
	if had && !c.decides() {
		c.lost = append(c.lost, what+name)
	}
}

func (c *fakeCluster) id(m *plan.Member) uint64 { return c.r.idOf(m) }

func (c *fakeCluster) serves(_ context.Context, m *plan.Member) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.up[c.id(m)] {
		return errSilent
	}
	return c.locked[m.Name]
}

func (c *fakeCluster) refuses(ctx context.Context, m *plan.Member) bool { return c.down(ctx, m) }

func (c *fakeCluster) down(_ context.Context, m *plan.Member) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.up[c.id(m)] && !c.up[uint64(m.ID)]
}

func (c *fakeCluster) place(m *plan.Member) string { return m.ClientURLs[0] }

func (c *fakeCluster) refusesTokens(m *plan.Member) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.off[c.id(m)]
}

// fails is called ahead of each call of the host and of a member.
func (c *fakeCluster) fails(call string) error {
	if c.fail == nil {
		return nil
	}
	return c.fail(call)
}

func (c *fakeCluster) stop(_ context.Context, m *plan.Member) error {
	if err := c.fails("stop " + m.Name); err != nil {
		return err
	}
	c.act("stop", m, func() { c.up[c.id(m)], c.up[uint64(m.ID)] = false, false })
	return nil
}

func (c *fakeCluster) aside(_ context.Context, m *plan.Member) (string, error) {
	if err := c.fails("aside " + m.Name); err != nil {
		return "", err
	}
	c.act("aside", m, func() {})
	return "elsewhere", nil
}

func (c *fakeCluster) start(_ context.Context, m *plan.Member, how startHow) error {
	if err := c.fails("start " + m.Name); err != nil {
		return err
	}
	c.act("start", m, func() {
		c.up[c.id(m)] = true
		if c.off != nil {
			c.off[c.id(m)] = how.empty
		}
	})
	return nil
}

func (c *fakeCluster) ready(ctx context.Context, m *plan.Member) error {
	if err := c.fails("ready " + m.Name); err != nil {
		return err
	}
	if c.serves(ctx, m) != nil {
		return fmt.Errorf("%s does not run", m.Name)
	}
	return nil
}

func (c *fakeCluster) client(m *plan.Member) (*clientv3.Client, string, error) {
	if err := c.fails("client " + m.Name); err != nil {
		return nil, "", err
	}
	cli := clientv3.NewCtxClient(context.Background())
	f := fakeClient{c: c, id: c.id(m)}
	cli.KV, cli.Maintenance, cli.Cluster, cli.Auth = fakeKV{fakeClient: f}, fakeMaintenance{fakeClient: f},
		fakeMembers{fakeClient: f}, fakeAuth{fakeClient: f}
	cli.Watcher = fakeWatcher{fakeClient: f}
	return cli, m.Name, nil
}

func (c *fakeCluster) forget(m *plan.Member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.expired, c.id(m))
	c.forgot = append(c.forgot, m.Name)
}

// fakeClient asks one member.
type fakeClient struct {
	c  *fakeCluster
	id uint64
}

var errFakeDown = errors.New("connection refused")

// asks calls f with the lock held once the member answers; linear waits for a majority as servers do, until the caller
// has had enough.
func (f fakeClient) asks(ctx context.Context, what string, linear bool, use func() error) error {
	if err := f.c.fails(fmt.Sprintf("%s of %x", what, f.id)); err != nil {
		return err
	}
	for {
		f.c.mu.Lock()
		up, decides := f.c.up[f.id], f.c.decides()
		if up && (decides || !linear) {
			defer f.c.mu.Unlock()
			if f.c.expired[f.id] || f.c.off[f.id] && !(f.c.openStatus && what == "Status") {
				return rpctypes.ErrInvalidAuthToken
			}
			return use()
		}
		f.c.mu.Unlock()
		if !up {
			return errFakeDown
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}

func (f fakeClient) header() *etcdserverpb.ResponseHeader {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	of := f.c.of(f.id)
	return &etcdserverpb.ResponseHeader{ClusterId: of.cluster, MemberId: f.id, Revision: of.revision}
}

func (f fakeKV) Txn(ctx context.Context) clientv3.Txn { return fakeTxn{f: f.fakeClient, ctx: ctx} }

type fakeTxn struct {
	f   fakeClient
	ctx context.Context
}

func (x fakeTxn) If(...clientv3.Cmp) clientv3.Txn  { return x }
func (x fakeTxn) Then(...clientv3.Op) clientv3.Txn { return x }
func (x fakeTxn) Else(...clientv3.Op) clientv3.Txn { return x }
func (x fakeTxn) Commit() (*clientv3.TxnResponse, error) {
	return &clientv3.TxnResponse{Header: x.f.header()}, x.f.asks(x.ctx, "Txn", true, func() error { return nil })
}

type fakeAuth struct {
	clientv3.Auth
	fakeClient
}

func (f fakeAuth) AuthStatus(ctx context.Context) (*clientv3.AuthStatusResponse, error) {
	resp := &clientv3.AuthStatusResponse{Header: f.header()}
	return resp, f.asks(ctx, "AuthStatus", true, func() error {
		resp.AuthRevision = f.c.of(f.id).auth
		return f.c.noAuthStatus
	})
}

func (f fakeAuth) UserList(ctx context.Context) (*clientv3.AuthUserListResponse, error) {
	return &clientv3.AuthUserListResponse{Header: f.header()}, f.asks(ctx, "UserList", true, func() error { return f.c.noRoot })
}

type fakeMaintenance struct {
	clientv3.Maintenance
	fakeClient
}

func (f fakeMaintenance) Status(ctx context.Context, _ string) (*clientv3.StatusResponse, error) {
	st := &clientv3.StatusResponse{Header: f.header(), Version: cmp.Or(f.c.versions[f.id], f.c.version)}
	return st, f.asks(ctx, "Status", false, func() error {
		st.RaftAppliedIndex = f.c.of(f.id).applied
		st.RaftIndex, st.DbSize = st.RaftAppliedIndex, f.c.dbSize
		if f.c.decides() {
			st.Leader = f.c.leader
		}
		if v := f.c.downgrade; v != "" {
			st.DowngradeInfo = &etcdserverpb.DowngradeInfo{Enabled: true, TargetVersion: v}
		}
		if m := find(f.c.list, f.id); m != nil {
			st.IsLearner = m.IsLearner
		}
		return nil
	})
}

func (f fakeMaintenance) AlarmList(ctx context.Context) (*clientv3.AlarmResponse, error) {
	resp := &clientv3.AlarmResponse{Header: f.header()}
	return resp, f.asks(ctx, "AlarmList", true, func() error {
		resp.Alarms = slices.Clone(f.c.alarms)
		return nil
	})
}

func (f fakeMaintenance) AlarmDisarm(ctx context.Context, m *clientv3.AlarmMember) (*clientv3.AlarmResponse, error) {
	return &clientv3.AlarmResponse{Header: f.header()}, f.asks(ctx, "AlarmDisarm", true, func() error {
		f.c.alarms = slices.DeleteFunc(f.c.alarms, func(a *etcdserverpb.AlarmMember) bool {
			return a.MemberID == m.MemberID && a.Alarm == m.Alarm
		})
		return nil
	})
}

func (f fakeMaintenance) HashKV(ctx context.Context, _ string, rev int64) (*clientv3.HashKVResponse, error) {
	resp := &clientv3.HashKVResponse{Header: f.header(), HashRevision: rev}
	return resp, f.asks(ctx, "HashKV", false, func() error {
		resp.Hash, resp.CompactRevision = f.c.of(f.id).hash, f.c.of(f.id).compact
		return nil
	})
}

func (f fakeMaintenance) MoveLeader(ctx context.Context, to uint64) (*clientv3.MoveLeaderResponse, error) {
	return &clientv3.MoveLeaderResponse{Header: f.header()}, f.asks(ctx, "MoveLeader", true, func() error {
		if f.c.leader != f.id {
			return rpctypes.ErrNotLeader
		}
		f.c.leader = to
		return nil
	})
}

func (f fakeMaintenance) Snapshot(ctx context.Context) (io.ReadCloser, error) {
	var b []byte
	err := f.asks(ctx, "Snapshot", false, func() error {
		f.c.snapshots = append(f.c.snapshots, fmt.Sprint(f.id))
		if f.id == f.c.fragile {
			had := f.c.decides()
			if f.c.up[f.id] = false; had && !f.c.decides() {
				f.c.lost = append(f.c.lost, "snapshot")
			}
			return errFakeDown
		}
		sum := sha256.Sum256([]byte("data"))
		b = append([]byte("data"), sum[:]...)
		return nil
	})
	return io.NopCloser(bytes.NewReader(b)), err
}

type fakeMembers struct {
	clientv3.Cluster
	fakeClient
}

func (f fakeMembers) MemberList(ctx context.Context, opts ...clientv3.OpOption) (*clientv3.MemberListResponse, error) {
	resp := &clientv3.MemberListResponse{Header: f.header()}
	op := clientv3.OpGet("", opts...)
	return resp, f.asks(ctx, "MemberList", !op.IsSerializable() && !f.c.ownList, func() error {
		for _, m := range f.c.list {
			resp.Members = append(resp.Members, &etcdserverpb.Member{ID: m.ID, Name: m.Name, PeerURLs: m.PeerURLs,
				ClientURLs: m.ClientURLs, IsLearner: m.IsLearner})
		}
		return nil
	})
}

func (f fakeMembers) MemberRemove(ctx context.Context, id uint64) (*clientv3.MemberRemoveResponse, error) {
	resp := &clientv3.MemberRemoveResponse{Header: f.header()}
	return resp, f.asks(ctx, "MemberRemove", true, func() error {
		i := slices.IndexFunc(f.c.list, func(m *etcdserverpb.Member) bool { return m.ID == id })
		if i < 0 {
			return rpctypes.ErrMemberNotFound
		}
		f.c.acts = append(f.c.acts, "remove "+f.c.list[i].Name)
		f.c.list = slices.Delete(f.c.list, i, i+1)
		f.c.up[id] = false // a server ends when it hears of that
		if !f.c.decides() {
			f.c.lost = append(f.c.lost, fmt.Sprintf("remove %x", id))
		}
		return nil
	})
}

func (f fakeMembers) MemberAdd(ctx context.Context, urls []string) (*clientv3.MemberAddResponse, error) {
	return f.add(ctx, urls, false)
}

func (f fakeMembers) MemberAddAsLearner(ctx context.Context, urls []string) (*clientv3.MemberAddResponse, error) {
	return f.add(ctx, urls, true)
}

func (f fakeMembers) add(ctx context.Context, urls []string, learner bool) (*clientv3.MemberAddResponse, error) {
	resp := &clientv3.MemberAddResponse{Header: f.header()}
	return resp, f.asks(ctx, "MemberAdd", true, func() error {
		for _, m := range f.c.list {
			if !m.IsLearner && !f.c.up[m.ID] {
				return rpctypes.ErrUnhealthy // strict reconfiguration checks
			}
			if slices.Equal(m.PeerURLs, urls) {
				return rpctypes.ErrPeerURLExist
			}
		}
		f.c.nextID++
		f.c.contents[f.c.nextID] = f.c.of(f.c.leader) // which sends its database
		resp.Member = &etcdserverpb.Member{ID: f.c.nextID, PeerURLs: urls, IsLearner: learner}
		f.c.list = append(f.c.list, resp.Member)
		resp.Members = slices.Clone(f.c.list)
		f.c.acts = append(f.c.acts, "add "+urls[0])
		if f.c.late {
			return context.DeadlineExceeded
		}
		return nil
	})
}

func (f fakeMembers) MemberPromote(ctx context.Context, id uint64) (*clientv3.MemberPromoteResponse, error) {
	return &clientv3.MemberPromoteResponse{Header: f.header()}, f.asks(ctx, "MemberPromote", true, func() error {
		m := find(f.c.list, id)
		switch {
		case m == nil:
			return rpctypes.ErrMemberNotFound
		case !m.IsLearner:
			return rpctypes.ErrMemberNotLearner
		case !f.c.up[id]:
			return rpctypes.ErrMemberLearnerNotReady
		}
		m.IsLearner = false
		f.c.acts = append(f.c.acts, fmt.Sprintf("promote %s", m.PeerURLs[0]))
		return nil
	})
}
