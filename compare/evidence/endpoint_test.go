package evidence_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// runningMember answers what sources ask of a running member. Each answer to Status says that one more entry is
// applied, up to committed.
type runningMember struct {
	pb.UnimplementedClusterServer
	pb.UnimplementedMaintenanceServer
	id, committed uint64
	applied       atomic.Uint64
	version       string
	db            []byte
	list          []*pb.Member
	// untold leaves out the applied index, mute refuses the list of members, cutShort ends a snapshot with an error.
	untold, mute, cutShort bool
	// begunAt is what was applied when the snapshot began.
	begunAt atomic.Uint64
}

func (r *runningMember) MemberList(context.Context, *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	if r.mute {
		return nil, errors.New("no")
	}
	return &pb.MemberListResponse{Header: &pb.ResponseHeader{MemberId: r.id}, Members: r.list}, nil
}

func (r *runningMember) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	applied := r.applied.Load()
	if applied < r.committed {
		r.applied.Add(1)
	}
	if r.untold {
		applied = 0
	}
	return &pb.StatusResponse{Header: &pb.ResponseHeader{MemberId: r.id, ClusterId: 0xc1}, Version: r.version,
		RaftIndex: r.committed, RaftAppliedIndex: applied}, nil
}

func (r *runningMember) Snapshot(_ *pb.SnapshotRequest, s pb.Maintenance_SnapshotServer) error {
	r.begunAt.Store(r.applied.Load())
	if r.cutShort {
		return errors.Join(s.Send(&pb.SnapshotResponse{Blob: r.db[:100], RemainingBytes: 1}), errors.New("no"))
	}
	return s.Send(&pb.SnapshotResponse{Blob: r.db, Version: r.version})
}

// serve starts a member on loopback and returns its client URL.
func (r *runningMember) serve(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	pb.RegisterClusterServer(s, r)
	pb.RegisterMaintenanceServer(s, r)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return "http://" + l.Addr().String()
}

// storedAt is a database with that consistent index.
func storedAt(t *testing.T, index uint64) []byte {
	t.Helper()
	h := clustertest.NewHand(t, t.TempDir(), "node1", 0xa1, 0xc1)
	h.Row("meta", "storageVersion", "3.6.0")
	b, err := os.ReadFile(filepath.Join(h.Close(index, 2), "member", "snap", "db"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestSnapshotsBeginTogether: the snapshots of running members begin when all have applied what the first of them had
// when it was asked, so that members of one cluster are compared at one index.
func TestSnapshotsBeginTogether(t *testing.T) {
	ahead := &runningMember{id: 1, committed: 60, version: "3.6.0", db: storedAt(t, 58)}
	late := &runningMember{id: 2, committed: 60, version: "3.6.0", db: storedAt(t, 60)}
	ahead.applied.Store(60)
	late.applied.Store(55)
	s := open(t, evidence.Spec{Name: "ahead", Where: ahead.serve(t)}, evidence.Spec{Name: "late", Where: late.serve(t)})
	if begun := late.begunAt.Load(); begun != 60 {
		t.Errorf("a snapshot began at entry %d, before its member had applied entry 60", begun)
	}
	for _, m := range s.Members {
		if m.Source.Kind != evidence.KindEndpoint || m.AppliedMin != 60 || m.AppliedMax != 60 || m.Commit != 60 ||
			m.MayHoldMore() {
			t.Errorf("%s is a %s that applied %d to %d, committed %d, may hold more: %v", m.Label(), m.Source.Kind,
				m.AppliedMin, m.AppliedMax, m.Commit, m.MayHoldMore())
		}
	}
}

// TestSnapshotOfABusyOldMember: a server of 3.4 that keeps applying entries does not say at which index its snapshot
// was taken.
func TestSnapshotOfABusyOldMember(t *testing.T) {
	busy := &runningMember{id: 1, committed: 1000, version: "3.4.23", db: storedAt(t, 40)}
	busy.applied.Store(50)
	m := open(t, evidence.Spec{Where: busy.serve(t)}).Members[0]
	if !m.MayHoldMore() || m.AppliedMin != 40 || m.AppliedMax != 1000 {
		t.Errorf("applied %d to %d, may hold more: %v", m.AppliedMin, m.AppliedMax, m.MayHoldMore())
	}
}

// TestMembersWithASharedURL: a URL that several members list, as that of a load balancer, is not taken for a member
// with another one, also if the list came from there. Where there is no other the members have the same.
func TestMembersWithASharedURL(t *testing.T) {
	m := &runningMember{id: 1}
	where := m.serve(t)
	m.list = []*pb.Member{{ID: 1, Name: "node1", ClientURLs: []string{where, "http://one:2379"}},
		{ID: 2, Name: "node2", ClientURLs: []string{"http://two:2379", where}},
		{ID: 3, Name: "node3", ClientURLs: []string{where}}, {ID: 4, Name: "node4", ClientURLs: []string{where}}}
	access := evidence.Access{DialTimeout: 2 * time.Second}
	list, err := access.Members(t.Context(), []string{where})
	want := []evidence.ListedMember{{Name: "node1", URL: "http://one:2379"}, {Name: "node2", URL: "http://two:2379"},
		{Name: "node3", URL: where}, {Name: "node4", URL: where}}
	if err != nil || !slices.Equal(list, want) {
		t.Errorf("%v, %v, want %v", list, err, want)
	}
}

// TestMembersOfACluster: the first endpoint that answers lists the members. It keeps the URL by which it was reached,
// and a member that has never started has none.
func TestMembersOfACluster(t *testing.T) {
	m := &runningMember{id: 1, list: []*pb.Member{{ID: 1, Name: "node1", ClientURLs: []string{"http://inside:2379"}},
		{ID: 2, Name: "node2", ClientURLs: []string{"http://two:2379", "http://more:2379"}}, {ID: 3}}}
	where := m.serve(t)
	var skipped []string
	access := evidence.Access{DialTimeout: 2 * time.Second,
		Skipped: func(err error) { skipped = append(skipped, err.Error()) }}
	dead := evidence.DeadEndpoint(t)
	list, err := access.Members(t.Context(), []string{"http://", dead, where, "/never asked"})
	want := []evidence.ListedMember{{Name: "node1", URL: where}, {Name: "node2", URL: "http://two:2379"}, {}}
	if err != nil || len(list) != 3 || list[0] != want[0] || list[1] != want[1] || list[2] != want[2] {
		t.Errorf("%v, %v, want %v", list, err, want)
	}
	if len(skipped) != 2 || !strings.Contains(skipped[1], dead) || !strings.Contains(skipped[1], "refused") {
		t.Errorf("%q was passed over", skipped)
	}
	skipped = nil
	var bad *evidence.SourceError
	list, err = access.Members(t.Context(), []string{"http://", "/a/path", dead})
	if !errors.As(err, &bad) || !strings.Contains(err.Error(), dead) || list != nil || skipped != nil {
		t.Errorf("no endpoint answers: %v, %v, passed over: %q", list, err, skipped)
	}
}

// TestProbe: whether a server answers is known soon, with the reason if none does. A client of etcd would wait for the
// time of its question.
func TestProbe(t *testing.T) {
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	silent, _ := silentMember(t)
	plain := "http" + strings.TrimPrefix(secure.URL, "https")
	for endpoint, want := range map[string]string{(&runningMember{}).serve(t): "", evidence.DeadEndpoint(t): "refused",
		silent: "does not answer within 2s", "https" + strings.TrimPrefix(silent, "http"): "does not answer within 2s",
		plain: "is it https://", secure.URL: "certificate", "/a/path": "no endpoint"} {
		t.Run(endpoint, func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			err := (&evidence.Access{DialTimeout: 2 * time.Second}).Probe(t.Context(), endpoint)
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
			if took := time.Since(begin); took > evidence.LoginTimeout/2 {
				t.Errorf("known after %v", took)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	if err := (&evidence.Access{}).Probe(ctx, silent); !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupt gives %v", err)
	}
}

// TestGet: a page of an endpoint is read up to the limit, and every other answer is an error.
func TestGet(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/version" {
			http.Error(w, "no such page", http.StatusNotFound)
			return
		}
		_, _ = w.Write([]byte("0123456789"))
	}))
	defer s.Close()
	var access evidence.Access
	for limit, want := range map[int64]string{4: "0123", 100: "0123456789"} {
		if b, err := access.Get(t.Context(), s.URL+"/below", "/version", limit); err != nil || string(b) != want {
			t.Errorf("%q, %v, want %q", b, err, want)
		}
	}
	for _, c := range [][2]string{{s.URL, "/metrics"}, {"http://127.0.0.1:1", "/version"}, {"127.0.0.1:1", "/version"},
		{"http://", "/version"}} {
		if b, err := access.Get(t.Context(), c[0], c[1], 100); err == nil {
			t.Errorf("%s%s: %q", c[0], c[1], b)
		}
	}
	wrong := evidence.Access{User: "root"}
	if _, err := wrong.Get(t.Context(), s.URL, "/version", 100); err == nil {
		t.Error("a user without a password was accepted")
	}
}
