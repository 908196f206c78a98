package run

import (
	"slices"
	"testing"
	"time"
)

// TestVoterIsStartedWithoutMajority: without learners (3.3) a new member votes as soon as it is added. Where it is one
// of two voters nothing is decided until it runs, so its start must not wait for a majority. It gets the members as
// they were when it was added.
func TestVoterIsStartedWithoutMajority(t *testing.T) {
	for n, lost := range map[int]bool{2: true, 3: false} {
		p := fakePlan(t, n, "node2")
		p.Cluster.Minor = 3
		c := newFake(t, p)
		c.r.limits.step, c.r.live.QuorumWait = 500*time.Millisecond, 500*time.Millisecond
		if err := c.r.run(t.Context()); err != nil {
			t.Fatalf("%d voters: %v", n, err)
		}
		if !slices.Contains(c.acts, "start node2") || c.leader == 0 {
			t.Errorf("%d voters: %q, leader %x", n, c.acts, c.leader)
		}
		want := "node1=http://node1:2380,node2=http://node2:2380"
		if !lost {
			want = "node1=http://node1:2380,node3=http://node3:2380,node2=http://node2:2380"
		}
		if got := c.r.j.value("initial:node2"); got != want {
			t.Errorf("%d voters: started with %s, want %s", n, got, want)
		}
	}
}
