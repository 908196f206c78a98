package clustertest

import (
	"context"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// WaitUntil calls ready until it returns nil. If that takes longer than Patience, it fails the test with ready's last
// error.
func (c *Cluster) WaitUntil(what string, ready func(ctx context.Context) error) {
	c.t.Helper()
	ctx, cancel := c.context()
	defer cancel()
	for {
		one, done := context.WithTimeout(ctx, 5*time.Second)
		err := ready(one)
		done()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			c.t.Fatalf("waited %v until %s: %v", Patience, what, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// waitServing waits until member i answers and knows a leader. Of a learner that takes no login it is not known.
func (c *Cluster) waitServing(i int) {
	c.t.Helper()
	m := c.members[i]
	c.WaitUntil(m.name+" serves", func(ctx context.Context) error {
		if !m.running() {
			c.t.Fatalf("%s ended instead of serving: %v", m.name, m.exitErr)
		}
		st, err := c.status(ctx, i)
		if err != nil && rpctypes.ErrorDesc(err) == rpctypes.ErrorDesc(rpctypes.ErrGRPCNotSupportedForLearner) {
			return nil // a learner serves, but takes no login
		}
		if err != nil {
			return err
		}
		if st.Leader == 0 {
			return fmt.Errorf("no leader: %v", st.Errors)
		}
		return nil
	})
}

// WaitEqual waits until all running members have applied the same raft index and have the same revision, and returns
// both.
func (c *Cluster) WaitEqual() (appliedIndex uint64, revision int64) {
	c.t.Helper()
	var running []int
	for i, m := range c.members {
		if m.running() {
			running = append(running, i)
		}
	}
	c.WaitUntil("members are equal", func(ctx context.Context) error {
		for n, i := range running {
			st, err := c.status(ctx, i)
			if err != nil {
				return fmt.Errorf("%s: %w", c.Name(i), err)
			}
			if n == 0 {
				appliedIndex, revision = st.RaftAppliedIndex, st.Header.Revision
			}
			if st.RaftAppliedIndex != appliedIndex || st.Header.Revision != revision {
				return fmt.Errorf("%s is at index %d, revision %d; %s at %d, %d",
					c.Name(i), st.RaftAppliedIndex, st.Header.Revision, c.Name(running[0]), appliedIndex, revision)
			}
		}
		return nil
	})
	return appliedIndex, revision
}

// WaitApplied waits until all running members have applied the same raft index, whatever their revisions, and returns
// it.
func (c *Cluster) WaitApplied() uint64 {
	c.t.Helper()
	var index uint64
	c.WaitUntil("members have applied the same index", func(ctx context.Context) error {
		index = 0
		for i, m := range c.members {
			if !m.running() {
				continue
			}
			st, err := c.status(ctx, i)
			if err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
			applied := st.RaftAppliedIndex
			if applied == 0 { // before 3.4
				applied = st.RaftIndex
			}
			if index != 0 && applied != index {
				return fmt.Errorf("%s is at index %d, others at %d", m.name, applied, index)
			}
			index = applied
		}
		return nil
	})
	return index
}

// Leader waits until all running members agree on a running leader, and returns its number. Call it before writing
// after Stop or Kill of a leader: proposals without a leader are lost.
func (c *Cluster) Leader() int {
	c.t.Helper()
	leader := -1
	c.WaitUntil("all running members know one running leader", func(ctx context.Context) error {
		ids := map[uint64]int{}
		var told []uint64
		for i, m := range c.members {
			if !m.running() {
				continue
			}
			st, err := c.status(ctx, i)
			if err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
			ids[st.Header.MemberId] = i
			told = append(told, st.Leader)
		}
		if len(told) == 0 {
			return rpctypes.ErrNoLeader
		}
		for _, id := range told {
			if _, runs := ids[id]; !runs || id != told[0] {
				return fmt.Errorf("leaders told: %x", told)
			}
		}
		leader = ids[told[0]]
		return nil
	})
	return leader
}
