package compare_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// answering is a running member that says who it is and sends its database.
type answering struct {
	pb.UnimplementedMaintenanceServer
	id uint64
	db []byte
}

func (a *answering) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	return &pb.StatusResponse{Header: &pb.ResponseHeader{MemberId: a.id, ClusterId: 0xc1}, Version: "3.6.0",
		RaftIndex: 337, RaftAppliedIndex: 337}, nil
}

func (a *answering) Snapshot(_ *pb.SnapshotRequest, s pb.Maintenance_SnapshotServer) error {
	return s.Send(&pb.SnapshotResponse{Blob: a.db, Version: "3.6.0"})
}

func (a *answering) serve(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	pb.RegisterMaintenanceServer(s, a)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return "http://" + l.Addr().String()
}

// TestEqualSnapshots: members of a young cluster can have databases that are equal to the byte. They are different
// sources, and their cluster is healthy. One member at several endpoints is one source, whatever its snapshots hold.
func TestEqualSnapshots(t *testing.T) {
	db, err := os.ReadFile(filepath.Join(evidencetest.Incident(t, "m-healthy-3.6"), "node1", "member", "snap", "db"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		ids  []uint64
		want check.Health
	}{
		"three members": {[]uint64{1, 2, 3}, check.Healthy},
		"one twice":     {[]uint64{1, 2, 1}, check.HealthUnknown},
		"a URL twice":   {[]uint64{1, 0}, check.HealthUnknown},
	} {
		var specs []evidence.Spec
		for _, id := range c.ids {
			where := (&answering{id: id, db: db}).serve(t)
			if id == 0 {
				where = specs[0].Where
			}
			specs = append(specs, evidence.Spec{Where: where})
		}
		r, err := compare.Diagnose(t.Context(), specs, compare.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if r.Verdict.Health != c.want {
			t.Errorf("%s: %s: %s", name, r.Verdict.Class, r.Verdict.Summary)
		}
		for _, s := range r.Sources {
			if strings.Contains(s.Name, "http:") {
				t.Errorf("%s is no name of a source", s.Name)
			}
		}
		for _, f := range r.Findings {
			if f.Check == check.X01 && (c.want == check.Healthy || len(f.Members) != 2) {
				t.Errorf("%s: %s of %v: %s", name, f.Title, f.Members, f.Explanation)
			}
		}
	}
}
