package run

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// fakeServers serve the members of a fake cluster at ports of this machine.
type fakeServers struct {
	t *testing.T
	c *fakeCluster
	// urls are the client URLs by the name of the member in the plan, running end the servers.
	urls    map[string]string
	running map[string]func()
}

// serve starts a server for each member of the plan that is up.
func serve(t *testing.T, c *fakeCluster) *fakeServers {
	t.Helper()
	s := &fakeServers{t: t, c: c, urls: map[string]string{}, running: map[string]func(){}}
	t.Cleanup(func() {
		for name := range s.running {
			s.stop(name)
		}
	})
	for i := range c.r.plan.Members {
		m := &c.r.plan.Members[i]
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s.urls[m.Name] = "http://" + l.Addr().String()
		if c.up[uint64(m.ID)] {
			s.serve(m.Name, uint64(m.ID), l)
		} else if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// start serves a member with an ID.
func (s *fakeServers) start(name string, id uint64) {
	l, err := net.Listen("tcp", strings.TrimPrefix(s.urls[name], "http://"))
	if err != nil {
		s.t.Error(err)
		return
	}
	s.serve(name, id, l)
}

func (s *fakeServers) serve(name string, id uint64, l net.Listener) {
	g := grpc.NewServer()
	f := fakeClient{c: s.c, id: id}
	member := &fakeServer{f: f}
	etcdserverpb.RegisterKVServer(g, member)
	etcdserverpb.RegisterClusterServer(g, member)
	etcdserverpb.RegisterMaintenanceServer(g, member)
	etcdserverpb.RegisterAuthServer(g, member)
	etcdserverpb.RegisterWatchServer(g, member)
	s.running[name] = func() {
		_ = l.Close() // the server may not have seen it yet
		g.Stop()
	}
	go func() { _ = g.Serve(l) }()
}

func (s *fakeServers) stop(name string) {
	if end := s.running[name]; end != nil {
		end()
		delete(s.running, name)
	}
}

// endpoints are those of members, of all without names.
func (s *fakeServers) endpoints(names ...string) (out []string) {
	if len(names) == 0 {
		names = plan.MemberNames(s.c.r.plan.Members)
	}
	for _, name := range names {
		out = append(out, s.urls[name])
	}
	return out
}

// act does a host step as the people or hooks of the real cluster do.
func (s *fakeServers) act(_ context.Context, h HostStep) error {
	name, id := h.Member.Name, uint64(h.Member.ID)
	if m := byPeerURL(s.c.list, h.Member.PeerURLs); m != nil {
		id = m.ID
	}
	switch h.Action {
	case "stop":
		s.c.act("stop", h.Member, func() { s.c.up[id] = false })
		s.stop(name)
	case "start":
		s.c.act("start", h.Member, func() { s.c.up[id] = true })
		s.start(name, id)
	default:
		s.c.act(h.Action, h.Member, func() {})
	}
	return nil
}

// live is a host for the servers, with hasty limits.
func (s *fakeServers) live(endpoints ...string) *liveHost {
	s.t.Helper()
	if len(endpoints) == 0 {
		endpoints = s.endpoints()
	}
	o := &LiveOptions{Endpoints: endpoints, HostActions: s.act}
	o.fill("plan.yaml")
	f := newLiveHost(s.t.Context(), o, "plan.yaml")
	s.t.Cleanup(f.logins.close)
	r := s.c.r
	r.live, r.host = o, f
	f.runBy(r)
	if err := f.where.named(); err != nil {
		s.t.Fatal(err)
	}
	return f
}

// fakeServer answers for one member.
type fakeServer struct {
	etcdserverpb.UnimplementedKVServer
	etcdserverpb.UnimplementedClusterServer
	etcdserverpb.UnimplementedMaintenanceServer
	etcdserverpb.UnimplementedAuthServer
	etcdserverpb.UnimplementedWatchServer
	f fakeClient
}

// coded gives an error the code that the servers send it with.
func coded(err error) error {
	var e rpctypes.EtcdError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		return status.Error(e.Code(), e.Error())
	case errors.Is(err, errFakeDown):
		return status.Error(codes.Unavailable, err.Error())
	}
	return err
}

func (s *fakeServer) Range(ctx context.Context, r *etcdserverpb.RangeRequest) (*etcdserverpb.RangeResponse, error) {
	var opts []clientv3.OpOption
	if r.Serializable {
		opts = append(opts, clientv3.WithSerializable())
	}
	resp, err := fakeKV{fakeClient: s.f}.Get(ctx, string(r.Key), opts...)
	return (*etcdserverpb.RangeResponse)(resp), coded(err)
}

func (s *fakeServer) Txn(ctx context.Context, _ *etcdserverpb.TxnRequest) (*etcdserverpb.TxnResponse, error) {
	resp, err := fakeTxn{f: s.f, ctx: ctx}.Commit()
	return (*etcdserverpb.TxnResponse)(resp), coded(err)
}

func (s *fakeServer) MemberList(ctx context.Context,
	r *etcdserverpb.MemberListRequest) (*etcdserverpb.MemberListResponse, error) {
	var opts []clientv3.OpOption
	if !r.Linearizable {
		opts = append(opts, clientv3.WithSerializable())
	}
	resp, err := fakeMembers{fakeClient: s.f}.MemberList(ctx, opts...)
	return (*etcdserverpb.MemberListResponse)(resp), coded(err)
}

func (s *fakeServer) MemberAdd(ctx context.Context,
	r *etcdserverpb.MemberAddRequest) (*etcdserverpb.MemberAddResponse, error) {
	resp, err := fakeMembers{fakeClient: s.f}.add(ctx, r.PeerURLs, r.IsLearner)
	return (*etcdserverpb.MemberAddResponse)(resp), coded(err)
}

func (s *fakeServer) MemberRemove(ctx context.Context,
	r *etcdserverpb.MemberRemoveRequest) (*etcdserverpb.MemberRemoveResponse, error) {
	resp, err := fakeMembers{fakeClient: s.f}.MemberRemove(ctx, r.ID)
	return (*etcdserverpb.MemberRemoveResponse)(resp), coded(err)
}

func (s *fakeServer) MemberPromote(ctx context.Context,
	r *etcdserverpb.MemberPromoteRequest) (*etcdserverpb.MemberPromoteResponse, error) {
	resp, err := fakeMembers{fakeClient: s.f}.MemberPromote(ctx, r.ID)
	return (*etcdserverpb.MemberPromoteResponse)(resp), coded(err)
}

func (s *fakeServer) Status(ctx context.Context,
	_ *etcdserverpb.StatusRequest) (*etcdserverpb.StatusResponse, error) {
	resp, err := fakeMaintenance{fakeClient: s.f}.Status(ctx, "")
	return (*etcdserverpb.StatusResponse)(resp), coded(err)
}

func (s *fakeServer) Alarm(ctx context.Context, r *etcdserverpb.AlarmRequest) (*etcdserverpb.AlarmResponse, error) {
	f := fakeMaintenance{fakeClient: s.f}
	if r.Action == etcdserverpb.AlarmRequest_DEACTIVATE {
		resp, err := f.AlarmDisarm(ctx, &clientv3.AlarmMember{MemberID: r.MemberID, Alarm: r.Alarm})
		return (*etcdserverpb.AlarmResponse)(resp), coded(err)
	}
	resp, err := f.AlarmList(ctx)
	return (*etcdserverpb.AlarmResponse)(resp), coded(err)
}

func (s *fakeServer) HashKV(ctx context.Context,
	r *etcdserverpb.HashKVRequest) (*etcdserverpb.HashKVResponse, error) {
	resp, err := fakeMaintenance{fakeClient: s.f}.HashKV(ctx, "", r.Revision)
	return (*etcdserverpb.HashKVResponse)(resp), coded(err)
}

func (s *fakeServer) MoveLeader(ctx context.Context,
	r *etcdserverpb.MoveLeaderRequest) (*etcdserverpb.MoveLeaderResponse, error) {
	resp, err := fakeMaintenance{fakeClient: s.f}.MoveLeader(ctx, r.TargetID)
	return (*etcdserverpb.MoveLeaderResponse)(resp), coded(err)
}

func (s *fakeServer) Snapshot(_ *etcdserverpb.SnapshotRequest, to etcdserverpb.Maintenance_SnapshotServer) error {
	in, err := fakeMaintenance{fakeClient: s.f}.Snapshot(to.Context())
	if err != nil {
		return coded(err)
	}
	b, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	return to.Send(&etcdserverpb.SnapshotResponse{Blob: b})
}

func (s *fakeServer) AuthStatus(ctx context.Context,
	_ *etcdserverpb.AuthStatusRequest) (*etcdserverpb.AuthStatusResponse, error) {
	resp, err := fakeAuth{fakeClient: s.f}.AuthStatus(ctx)
	return (*etcdserverpb.AuthStatusResponse)(resp), coded(err)
}

func (s *fakeServer) UserList(ctx context.Context,
	_ *etcdserverpb.AuthUserListRequest) (*etcdserverpb.AuthUserListResponse, error) {
	resp, err := fakeAuth{fakeClient: s.f}.UserList(ctx)
	return (*etcdserverpb.AuthUserListResponse)(resp), coded(err)
}

func (s *fakeServer) Watch(w etcdserverpb.Watch_WatchServer) error {
	r, err := w.Recv()
	if err != nil {
		return err
	}
	from := r.GetCreateRequest().GetStartRevision()
	if err := w.Send(&etcdserverpb.WatchResponse{Header: s.f.header(), Created: true}); err != nil {
		return err
	}
	for resp := range (fakeWatcher{fakeClient: s.f}).Watch(w.Context(), "", clientv3.WithRev(from)) {
		out := &etcdserverpb.WatchResponse{Header: s.f.header(), CompactRevision: resp.CompactRevision,
			Canceled: resp.Canceled}
		for _, e := range resp.Events {
			out.Events = append(out.Events, (*mvccpb.Event)(e))
		}
		if err := w.Send(out); err != nil {
			return err
		}
	}
	return nil
}

// hasty are limits for members that answer at once.
var hasty = limits{call: 2 * time.Second, step: 10 * time.Second, transfer: 10 * time.Second, poll: time.Millisecond,
	recount: time.Millisecond}
