package cli

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// fakeMember answers what sources ask of a running member, from a database of an incident.
type fakeMember struct {
	pb.UnimplementedClusterServer
	pb.UnimplementedMaintenanceServer
	id   uint64
	db   string
	list []*pb.Member
}

func (f *fakeMember) MemberList(context.Context, *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	return &pb.MemberListResponse{Header: &pb.ResponseHeader{MemberId: f.id}, Members: f.list}, nil
}

func (f *fakeMember) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	return &pb.StatusResponse{Header: &pb.ResponseHeader{MemberId: f.id}, Version: "3.6.0"}, nil
}

func (f *fakeMember) Snapshot(_ *pb.SnapshotRequest, s pb.Maintenance_SnapshotServer) error {
	b, err := os.ReadFile(f.db)
	if err != nil {
		return err
	}
	return s.Send(&pb.SnapshotResponse{Blob: b, Version: "3.6.0"})
}

// fakeCluster serves the databases of an incident's members, and one more that has never started.
func fakeCluster(t *testing.T, incident string) (urls []string) {
	t.Helper()
	dir := evidencetest.Incident(t, incident)
	var members []*fakeMember
	var list []*pb.Member
	for i, n := range []string{"node1", "node2", "node3"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		m := &fakeMember{id: uint64(i + 1), db: filepath.Join(dir, n, "member", "snap", "db")}
		s := grpc.NewServer()
		pb.RegisterClusterServer(s, m)
		pb.RegisterMaintenanceServer(s, m)
		go func() { _ = s.Serve(l) }()
		t.Cleanup(s.Stop)
		members, urls = append(members, m), append(urls, "http://"+l.Addr().String())
		list = append(list, &pb.Member{ID: m.id, Name: n, ClientURLs: []string{urls[i]}})
	}
	for _, m := range members {
		m.list = append(slices.Clone(list), &pb.Member{ID: 9, PeerURLs: []string{"http://127.0.0.1:1"}})
	}
	return urls
}

// TestEndpointsAndCluster: one endpoint and --cluster stand for all members, under the names that the cluster lists;
// the variables of etcdctl count where no source is named, with and without http://.
func TestEndpointsAndCluster(t *testing.T) {
	urls := fakeCluster(t, "a-auth-revision-replay")
	for _, e := range []string{"ETCD_MEDIC_TIMEOUT", "HTTP_PROXY", "http_proxy"} {
		t.Setenv(e, "")
	}
	run := func(env string, args ...string) (string, string, int) {
		var out, errs bytes.Buffer
		code := Main(t.Context(), args, &Streams{Out: &out, Err: &errs, Width: 80, Getenv: func(name string) string {
			if name == "ETCDCTL_ENDPOINTS" {
				return env
			}
			return ""
		}})
		return out.String(), errs.String(), code
	}
	hostPort := strings.TrimPrefix(urls[1], "http://")
	all := []string{"node1", "node2", "node3"}
	for _, c := range []struct {
		env  string
		args []string
		code int
		want []string
	}{
		{"", []string{"diagnose", "--endpoints", urls[0], "--cluster"}, ExitFindings, all},
		{"", []string{"diagnose", "--endpoints", hostPort, "--cluster"}, ExitFindings, all},
		{hostPort, []string{"diagnose", "--cluster"}, ExitFindings, all},
		{hostPort, []string{"verify", "--cluster", "--brief"}, ExitDone, all},
		{hostPort, []string{"compare", "--cluster"}, ExitFindings, all},
		{urls[2], []string{"inspect"}, ExitDone, []string{"HEALTHY"}},
		{"", []string{"dumpdb", "--endpoints", hostPort, "members"}, ExitDone, all},
		{hostPort, []string{"history", "/app/orders/base/000", "--cluster"}, ExitDone, nil},
		{"", []string{"inspect", "--endpoints", hostPort, "--cluster"}, ExitUsage, nil},
		{"", []string{"diagnose", "--cluster"}, ExitUsage, nil},
		{"127.0.0.1:1", []string{"dumpdb", evidencetest.Incident(t, "m-healthy-3.6") + "/node1"}, ExitDone, nil},
	} {
		out, errs, code := run(c.env, c.args...)
		if code != c.code {
			t.Errorf("%s %v: exit code %d, want %d: %s%s", c.env, c.args, code, c.code, errs, out)
		}
		for _, w := range c.want {
			if !strings.Contains(out, w) {
				t.Errorf("%s %v does not show %s:\n%s%s", c.env, c.args, w, out, errs)
			}
		}
	}
	_, errs, _ := run("", "inspect", "--endpoints", hostPort, "--cluster")
	if !strings.Contains(errs, "node1="+urls[0]) || !strings.Contains(errs, "has never started") {
		t.Errorf("inspect of a cluster does not name its members: %s", errs)
	}
}

// TestURLsHaveFlagsAndVariables: every command that reads running members has the flags of etcdctl, and those that
// cannot say so before they ask.
func TestURLsHaveFlagsAndVariables(t *testing.T) {
	root := newRoot(&Streams{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, Getenv: func(string) string { return "" }})
	for _, c := range allCommands(root) {
		if c.Flags().Lookup("cacert") == nil {
			continue
		}
		if slices.Contains([]string{"wal", "db", "meta", "restore"}, c.Name()) { // running members are further sources
			if c.Flags().Lookup("endpoints") != nil {
				t.Errorf("%s refuses a running member in place of SOURCE, and has --endpoints for it", c.CommandPath())
			}
			continue
		}
		for _, name := range []string{"cert", "user", "endpoints", "cluster"} {
			if c.Flags().Lookup(name) == nil {
				t.Errorf("%s has --cacert and no --%s", c.CommandPath(), name)
			}
		}
	}
	for _, args := range [][]string{{"preflight", "http://127.0.0.1:1", "--to", "3.6"},
		{"dumplog", "http://127.0.0.1:1"},
		{"repair", "plan", "http://127.0.0.1:1", "-o", "x"}, {"node", "run", "http://127.0.0.1:1"}} {
		if _, errs, code := medicOn(t, 80, args); code != ExitUsage || !strings.Contains(errs, "running member") {
			t.Errorf("%v ends in %d: %s", args, code, errs)
		}
	}
}
