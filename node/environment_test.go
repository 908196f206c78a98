package node_test

import (
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/etcd-medic/etcd-medic/node"
)

// TestEnvironmentOfTheUser: variables of the user's shell that etcd or Go would obey reach no member and no client.
func TestEnvironmentOfTheUser(t *testing.T) {
	for name, value := range map[string]string{
		"NO_PROXY": "*", "no_proxy": "*", "HTTPS_PROXY": "http://127.0.0.1:1", "HTTP_PROXY": "http://127.0.0.1:1",
		"ALL_PROXY": "http://127.0.0.1:1",
		"ETCD_NAME": "other", "ETCD_DATA_DIR": "/nowhere", "ETCD_FORCE_NEW_CLUSTER": "true",
		"ETCD_DISCOVERY":       "http://192.0.2.1/x",
		"ETCD_INITIAL_CLUSTER": "other=http://192.0.2.1:2380", "GODEBUG": "netdns=cgo",
	} {
		t.Setenv(name, value)
	}
	s := newSandbox(t, node.Options{})
	ms := startAll(t, s, trio(t.TempDir(), "http://10.1.2.%d:2380"))
	c, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	list, err := c.MemberList(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range list.Members {
		// What is published is the original cluster's, not the sandbox's.
		conf := ms[slices.IndexFunc(ms, func(n *node.Member) bool { return n.Name() == m.Name })].Config()
		if !slices.Equal(m.PeerURLs, conf.PeerURLs) || !slices.Equal(m.ClientURLs, conf.ClientURLs) {
			t.Errorf("member %d: %v", i, m)
		}
	}
	var led int64
	for _, tg := range s.Proof().Targets {
		led += tg.Requests
	}
	if len(list.Members) != 3 || led == 0 {
		t.Errorf("members %v; %d requests went through the proxy", list.Members, led)
	}
}

// TestFurtherClientAddress: a member may listen where the caller says, beside its own socket; etcdctl's flags and TLS
// lead to the socket.
func TestFurtherClientAddress(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	s := newSandbox(t, node.Options{Isolation: node.Proxy})
	c := trio(t.TempDir(), "http://10.1.2.%d:2380")[0]
	c.InitialCluster = c.Name + "=" + c.PeerURLs[0]
	c.ListenClientURLs = []string{"http://" + addr}
	m := startAll(t, s, []node.MemberConfig{c})[0]
	cl, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://" + addr}, DialTimeout: 10 * time.Second,
		Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if _, err := cl.Put(t.Context(), "a", "b"); err != nil {
		t.Error(err)
	}
	flags := map[string]string{}
	for _, f := range s.ClientFlags(m) {
		name, value, _ := strings.Cut(f, "=")
		flags[name] = value
	}
	if flags["--endpoints"] != m.Endpoint() || !slices.Equal(s.ClientFlags(m), s.ClientFlags(nil)) {
		t.Errorf("%v", flags)
	}
	// Nobody comes in by the socket without a certificate of this sandbox.
	tc, err := s.TLS(m)
	if err != nil {
		t.Fatal(err)
	}
	socket := strings.TrimPrefix(m.Endpoint(), "unixs://")
	for _, with := range []bool{true, false} {
		use := tc.Clone()
		if !with {
			use.Certificates = nil
		}
		conn, err := tls.Dial("unix", socket, use)
		if err == nil {
			_, err = fmt.Fprintf(conn, "GET /health HTTP/1.0\r\n\r\n")
			if err == nil {
				_, err = conn.Read(make([]byte, 1))
			}
			conn.Close()
		}
		if (err == nil) != with {
			t.Errorf("certificate %v: %v", with, err)
		}
	}
	if leader, err := s.Leader(t.Context()); err != nil || leader != m {
		t.Error(leader, err)
	}
}
