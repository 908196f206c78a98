//go:build e2e

package boot_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/node"
)

// TestE2EServers writes data dirs with real servers, spoils a copy in each way of the table, and starts the same server
// on it.
func TestE2EServers(t *testing.T) {
	for _, v := range []string{"3.4.23", "3.5.35", "3.6.16", "3.7.3"} {
		server := clustertest.Server(t, v)
		for _, snapshots := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/snapshots=%v", v, snapshots), func(t *testing.T) {
				o := clustertest.Options{}
				if snapshots {
					o.SnapshotCount = 20
				}
				c := clustertest.Start(t, server, 1, o)
				for i := range 130 {
					c.Put(0, fmt.Sprintf("key/%03d", i%100), strings.Repeat("v", 200))
				}
				c.StopAll()
				external, err := node.External(t.Context(), server)
				must(t, err)
				for _, x := range table() {
					if x.snapshots != snapshots || x.skip != "" && strings.HasPrefix(v, x.skip) {
						continue
					}
					t.Run(x.name, func(t *testing.T) {
						dir := evidencetest.Copy(t, c.DataDir(0))
						x.spoil(t, dir)
						a := check(t, &x, dir)
						said, started := serve(t, external, dir, c.PeerURL(0), c.Endpoint(0))
						if started != a.Starts.Certain() {
							t.Errorf("foretold %s (%s), the server starts: %v\n%s", a.Starts, a.Why, started,
								tail(said))
						}
					})
				}
			})
		}
	}
}
