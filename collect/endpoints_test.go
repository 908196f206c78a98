package collect

import (
	"context"
	"crypto/sha256"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/refusal"
)

// answering is a member that says who it is and sends its database.
type answering struct {
	pb.UnimplementedMaintenanceServer
	header pb.ResponseHeader
	db     []byte
}

func (a *answering) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	return &pb.StatusResponse{Header: &a.header, Version: "3.6.0"}, nil
}

func (a *answering) Snapshot(_ *pb.SnapshotRequest, s pb.Maintenance_SnapshotServer) error {
	sum := sha256.Sum256(a.db)
	return errors.Join(s.Send(&pb.SnapshotResponse{Blob: a.db}),
		s.Send(&pb.SnapshotResponse{Blob: sum[:]}))
}

// serve starts a server on loopback; nil only reserves an address at which nothing listens.
func serve(t *testing.T, a *answering) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if a == nil {
		_ = l.Close()
		return "http://" + l.Addr().String()
	}
	s := grpc.NewServer()
	pb.RegisterMaintenanceServer(s, a)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return "http://" + l.Addr().String()
}

// TestEndpointOfTheMember: of several endpoints, that of the data dir's member is used. Those that do not answer, or
// lead to another member, are passed over and named, without a long wait.
func TestEndpointOfTheMember(t *testing.T) {
	dir := member(t, "m-healthy-3.6")
	l, err := dumplog.Open(filepath.Join(dir, "member", "wal"))
	if err != nil {
		t.Fatal(err)
	}
	own := l.Identity()
	db, err := os.ReadFile(filepath.Join(dir, "member", "snap", "db"))
	if err != nil {
		t.Fatal(err)
	}
	head := pb.ResponseHeader{MemberId: uint64(own.MemberID), ClusterId: uint64(own.ClusterID)}
	dead := serve(t, nil)
	other := serve(t, &answering{header: pb.ResponseHeader{MemberId: 7, ClusterId: head.ClusterId}, db: db})
	right := serve(t, &answering{header: head, db: db})

	var skipped []string
	o := Options{DataDir: dir, Out: filepath.Join(t.TempDir(), "n.tar.zst"), Endpoints: []string{dead, other, right},
		Access: evidence.Access{Skipped: func(err error) { skipped = append(skipped, err.Error()) }}}
	begin := time.Now()
	m, err := Run(t.Context(), o)
	if err != nil || m.Endpoint != right || time.Since(begin) > askTimeout {
		t.Fatalf("after %v: %+v, %v", time.Since(begin), m, err)
	}
	if len(skipped) != 2 || !strings.Contains(skipped[0], dead) || !strings.Contains(skipped[0], "refused") ||
		!strings.Contains(skipped[1], other+" is member 7 ") {
		t.Errorf("passed over: %q", skipped)
	}
	same(t, dir, o.Out)

	o.Out = filepath.Join(t.TempDir(), "n.tar.zst")
	var refused *refusal.Error
	for _, e := range [][]string{{dead, other}, {other}} {
		o.Endpoints = e
		if _, err := Run(t.Context(), o); !errors.As(err, &refused) {
			t.Errorf("%v: %v", e, err)
		}
	}
	o.Endpoints, begin = []string{dead}, time.Now()
	_, err = Run(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "refused") || !strings.Contains(err.Error(), "--no-client") ||
		time.Since(begin) > askTimeout/2 {
		t.Errorf("after %v: %v", time.Since(begin), err)
	}
	if left, _ := filepath.Glob(o.Out + "*"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
