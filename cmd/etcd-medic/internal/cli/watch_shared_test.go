package cli

import (
	"bytes"
	"net"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

// TestWatchOfASharedURL: members that list the same URL alone cannot be watched by --cluster, and it is said that the
// cluster lists them so: the user named nothing twice.
func TestWatchOfASharedURL(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String()
	m := &fakeMember{id: 1, list: []*pb.Member{{ID: 1, Name: "node1", ClientURLs: []string{url}},
		{ID: 2, Name: "node2", ClientURLs: []string{url}}}}
	s := grpc.NewServer()
	pb.RegisterClusterServer(s, m)
	pb.RegisterMaintenanceServer(s, m)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	var out, errs bytes.Buffer
	code := Main(t.Context(), []string{"watch", "--endpoints", url, "--cluster", "--once"}, &Streams{Out: &out,
		Err: &errs, Width: 80, Getenv: func(string) string { return "" }})
	if code != ExitUsage || !strings.Contains(errs.String(), "the cluster lists "+url+" for several members") ||
		strings.Contains(errs.String(), "twice") {
		t.Errorf("exit code %d: %s%s", code, out.String(), errs.String())
	}
}
