package watch

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
)

// served answers two questions as a member does; the others it does not know.
type served struct {
	*pb.UnimplementedMaintenanceServer
}

func (served) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	return &pb.StatusResponse{Header: &pb.ResponseHeader{MemberId: 1, Revision: 9}, Version: "3.4.23"}, nil
}

func (served) HashKV(_ context.Context, r *pb.HashKVRequest) (*pb.HashKVResponse, error) {
	return &pb.HashKVResponse{Header: &pb.ResponseHeader{MemberId: 1}, Hash: uint32(r.Revision)}, nil
}

// counting counts the connections that a listener accepts.
type counting struct {
	net.Listener
	n atomic.Int64
}

func (l *counting) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.n.Add(1)
	}
	return c, err
}

// serve answers at an address until the returned function is called.
func serve(t *testing.T, address string) (*counting, func()) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	counted := &counting{Listener: l}
	s := grpc.NewServer()
	pb.RegisterMaintenanceServer(s, served{&pb.UnimplementedMaintenanceServer{}})
	go func() { _ = s.Serve(counted) }()
	t.Cleanup(s.Stop)
	return counted, s.Stop
}

// TestConnectionIsKept: all questions to a member go over one connection. Each handshake costs more than an answer, and
// a connection that is not the first one counts as a restart of the server.
func TestConnectionIsKept(t *testing.T) {
	l, stop := serve(t, "127.0.0.1:0")
	address := l.Addr().String()
	m := Connect([]string{"http://" + address}, evidence.Access{})[0]
	t.Cleanup(func() { _ = m.Close() })
	ask := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		st, err := m.Status(ctx)
		if err != nil {
			return err
		}
		h, err := m.HashKV(ctx, st.Revision)
		if err == nil && (st.ID != 1 || h.Hash != 9) {
			t.Errorf("%+v, %+v", st, h)
		}
		return err
	}
	for range 5 {
		if err := ask(); err != nil {
			t.Fatal(err)
		}
	}
	if l.n.Load() != 2 || m.Connections() != 1 {
		t.Errorf("%d connections were made, %d are counted; one for all questions is enough, after one that finds out "+
			"whether a server is there", l.n.Load(), m.Connections())
	}
	stop()
	if err := ask(); err == nil {
		t.Error("a server that has ended answered")
	}
	failed, begun := m.Connections(), time.Now()
	if err := ask(); err == nil || time.Since(begun) > 2*time.Second {
		t.Errorf("after %v: %v; a member that is down is known at once", time.Since(begun), err)
	}
	serve(t, address)
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	if n := m.Connections(); n <= failed {
		t.Errorf("%d connections are counted after a restart of the server, %d before", n, failed)
	}
}
