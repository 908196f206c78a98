package node_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/etcd-medic/etcd-medic/node"
)

// A sandbox starts real servers that cannot reach anything outside of it, here a new cluster of one member.
func ExampleSandbox() {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "sandbox-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	s, err := node.New(ctx, node.Options{Dir: dir, Server: node.Bundled(), UnsafeNoFsync: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	m, err := s.Start(ctx, node.MemberConfig{Name: "node1", DataDir: filepath.Join(dir, "data"),
		PeerURLs: []string{"http://10.1.2.3:2380"}, ClientURLs: []string{"http://10.1.2.3:2379"},
		InitialCluster: "node1=http://10.1.2.3:2380"})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := m.Ready(ctx); err != nil {
		fmt.Println(err)
		return
	}
	c, err := m.Client()
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := c.Put(ctx, "greeting", "hello"); err != nil {
		fmt.Println(err)
		return
	}
	r, err := c.Get(ctx, "greeting")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s at revision %d\n", r.Kvs[0].Value, r.Kvs[0].ModRevision)
	// Output:
	// hello at revision 2
}
