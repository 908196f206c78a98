//go:build e2e

package run

import (
	"context"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// nobody is a peer URL at which nothing listens.
const nobody = "http://127.121.9.9:2380"

// TestE2ERepairRemoved: members that the cluster removed, and whose data dirs are still there.
func TestE2ERepairRemoved(t *testing.T) {
	runTroubles(t, []trouble{
		{
			name: "removed while it was down", lines: []string{"3.6.16", "3.4.23", "3.5.35", "3.7.3"},
			live: []string{"3.6.16"},
			spoil: func(_ *testing.T, s *spoiled) []string {
				s.c.Stop(2)
				s.c.Leader()
				s.c.Remove(2)
				s.put(0, 10)
				return s.c.Sources()
			},
			want: wanted{class: "healthy", mode: plan.Live,
				acts: map[string]plan.Action{"node1": plan.Best, "node2": plan.Keep, "node3": plan.Retire},
				why:  map[string]string{"node3": "removed"}},
		},
		{
			name: "removed while it ran", lines: []string{"3.5.35", "3.6.16"},
			spoil: func(_ *testing.T, s *spoiled) []string {
				s.lead(0)
				s.c.Remove(2)
				s.c.WaitExit(2) // it learns of its removal
				s.c.Leader()
				s.put(0, 10)
				return s.c.Sources()
			},
			want: wanted{class: "healthy", mode: plan.Live,
				acts: map[string]plan.Action{"node1": plan.Best, "node2": plan.Keep, "node3": plan.Retire},
				why:  map[string]string{"node3": "removed"}},
		},
		{
			name: "removed while it was cut off and still runs", lines: []string{"3.5.35", "3.6.16"},
			spoil: func(t *testing.T, s *spoiled) []string {
				s.lead(0)
				s.c.Pause(2)
				s.removeThrough(0, 2)
				s.put(0, 10)
				copied := "node3=" + evidencetest.Copy(t, s.c.DataDir(2)) // it stands still, and does not know
				s.c.Kill(2)
				return append(s.c.Sources()[:2], copied)
			},
			want: wanted{class: "healthy", mode: plan.Live,
				acts: map[string]plan.Action{"node1": plan.Best, "node2": plan.Keep, "node3": plan.Retire},
				why:  map[string]string{"node3": "removed"}},
		},
	})
}

// lead makes member i the leader.
func (s *spoiled) lead(i int) {
	s.Helper()
	s.c.WaitUntil("the leader has moved", func(ctx context.Context) error {
		now := s.c.Leader()
		if now == i {
			return nil
		}
		st, err := s.c.Client(i).Status(ctx, s.c.Endpoint(i))
		if err == nil {
			_, err = s.c.Client(now).MoveLeader(ctx, st.Header.MemberId)
		}
		return err
	})
}

// removeThrough removes member who through member i; who may hang.
func (s *spoiled) removeThrough(i, who int) {
	s.Helper()
	s.c.WaitUntil("the member is removed", func(ctx context.Context) error {
		list, err := s.c.Client(i).MemberList(ctx)
		if err != nil {
			return err
		}
		if m := byPeerURL(list.Members, []string{s.c.PeerURL(who)}); m != nil {
			_, err = s.c.Client(i).MemberRemove(ctx, m.GetID())
		}
		return err
	})
}

// vacant adds a member at an address where nothing listens.
func (s *spoiled) vacant(i int, add func(*clientv3.Client) func(context.Context, []string) (*clientv3.MemberAddResponse,
	error)) {
	s.Helper()
	s.c.WaitUntil("the member is accepted", func(ctx context.Context) error {
		_, err := add(s.c.Client(i))(ctx, []string{nobody})
		return err
	})
}

func asLearner(c *clientv3.Client) func(context.Context, []string) (*clientv3.MemberAddResponse, error) {
	return c.MemberAddAsLearner
}

func asVoter(c *clientv3.Client) func(context.Context, []string) (*clientv3.MemberAddResponse, error) {
	return c.MemberAdd
}
