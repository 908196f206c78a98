package clustertest

import (
	"context"
	"errors"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// Spare adds a member to the Cluster that is neither added to the real cluster nor started, and returns its number;
// Join starts it.
func (c *Cluster) Spare() int {
	i := len(c.members)
	c.members = append(c.members, c.newMember(i))
	return i
}

// Add adds a member through member 0 and starts it with an empty data dir. It waits until the member serves clients or,
// for a learner, until its process answers. It returns the new member's number.
func (c *Cluster) Add(learner bool) int {
	c.t.Helper()
	m := c.newMember(len(c.members))
	cli := c.Client(0)
	c.WaitUntil("the new member is accepted", func(ctx context.Context) error {
		add := cli.MemberAdd
		if learner {
			add = cli.MemberAddAsLearner
		}
		_, err := add(ctx, []string{m.peerURL})
		if err != nil && !errors.Is(err, rpctypes.ErrUnhealthy) { // refused until all members were connected for 5 s
			c.t.Fatalf("member add: %v", err)
		}
		return err
	})
	c.members = append(c.members, m)
	i := len(c.members) - 1
	c.startAdded(i)
	return i
}

// Remove removes member i, whether it runs or not, from the cluster through member 0. Its data dir stays.
func (c *Cluster) Remove(i int) {
	c.t.Helper()
	c.WaitUntil("the member is removed", func(ctx context.Context) error {
		list, err := c.Client(0).MemberList(ctx)
		if err != nil {
			return err
		}
		for _, m := range list.Members {
			if len(m.PeerURLs) > 0 && m.PeerURLs[0] == c.PeerURL(i) {
				_, err = c.Client(0).MemberRemove(ctx, m.ID)
			}
		}
		return err
	})
	c.members[i].removed = true
}

// StartAlone starts member 0 as the only one of its cluster, and waits until it serves clients: with
// --force-new-cluster, or on a data dir that was restored so. No other member may run.
func (c *Cluster) StartAlone(args ...string) {
	c.t.Helper()
	c.StartOnce(0, args...)
	for _, m := range c.members[1:] {
		m.removed = true
	}
	c.waitServing(0)
}

// Join starts member i with an empty data dir as an added member. It does not wait for it.
func (c *Cluster) Join(i int, initialCluster string) {
	c.t.Helper()
	m := c.members[i]
	m.initial, m.state, m.removed = initialCluster, "existing", false
	m.start()
}

// AddAgain adds member i, which was removed and wiped, through member 0 under its old name and addresses. It starts the
// member and waits until it serves clients. The member gets a new ID.
func (c *Cluster) AddAgain(i int) {
	c.t.Helper()
	m := c.members[i]
	c.WaitUntil("the member is accepted", func(ctx context.Context) error {
		_, err := c.Client(0).MemberAdd(ctx, []string{m.peerURL})
		return err
	})
	c.startAdded(i)
}

// startAdded starts member i, which was just added, with an empty data dir and waits until it serves clients.
func (c *Cluster) startAdded(i int) {
	c.t.Helper()
	m := c.members[i]
	initial := []string{m.name + "=" + m.peerURL}
	for _, o := range c.members {
		if !o.removed && o != m {
			initial = append(initial, o.name+"="+o.peerURL)
		}
	}
	m.initial, m.state, m.removed = strings.Join(initial, ","), "existing", false
	m.start()
	c.waitServing(i)
}
