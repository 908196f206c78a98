package node_test

import (
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/node"
)

// TestEnvironmentOfTheUser: variables of the user's shell that etcd or Go would obey reach no member and no client.
func TestEnvironmentOfTheUser(t *testing.T) {
	for name, value := range map[string]string{
		"NO_PROXY": "*", "no_proxy": "*", "HTTPS_PROXY": "http://127.0.0.1:1", "HTTP_PROXY": "http://127.0.0.1:1", "ALL_PROXY": "http://127.0.0.1:1",
		"ETCD_NAME": "other", "ETCD_DATA_DIR": "/nowhere", "ETCD_FORCE_NEW_CLUSTER": "true", "ETCD_DISCOVERY": "http://192.0.2.1/x",
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
