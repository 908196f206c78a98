//go:build e2e

package run

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// TestE2ERepairQuorum: members that lost what they had promised, and members that count although they never voted.
func TestE2ERepairQuorum(t *testing.T) {
	deadVoter := func(down, other int) func(*testing.T, *spoiled) []string {
		return func(_ *testing.T, s *spoiled) []string {
			s.c.Stop(down)
			s.c.Leader()
			s.put(other, 10)
			s.vacant(other, asVoter)
			s.noLeader(other)
			return s.c.Sources()
		}
	}
	loose := clustertest.Options{Args: []string{"--strict-reconfig-check=false"}}
	runTroubles(t, []trouble{
		{
			name: "node1 wiped and started as new", lines: []string{"3.6.16", "3.4.23", "3.5.35", "3.7.3"},
			live:  []string{"3.4.23", "3.5.35", "3.6.16", "3.7.3"},
			spoil: func(_ *testing.T, s *spoiled) []string { s.wiped(0); return s.c.Sources() },
			want: wanted{class: "member-lost-data", cause: "wiped-member-rejoined-same-id", mode: plan.Live,
				acts: map[string]plan.Action{"node1": plan.Replace, "node2": plan.Best, "node3": plan.Keep}},
		},
		{
			name: "node4 and node5 of five wiped and started as new", lines: []string{"3.6.16", "3.5.35"},
			live: []string{"3.5.35", "3.7.3"}, size: 5,
			spoil: func(_ *testing.T, s *spoiled) []string { s.wiped(3, 4); return s.c.Sources() },
			want: wanted{class: "member-lost-data", cause: "wiped-member-rejoined-same-id", mode: plan.Live,
				acts: map[string]plan.Action{"node1": plan.Best, "node2": plan.Keep, "node3": plan.Keep,
					"node4": plan.Replace,
					"node5": plan.Replace}},
		},
		{
			name: "unreachable voter added while node1 was down", lines: []string{"3.5.35", "3.6.16", "3.7.3"},
			live: []string{"3.5.35", "3.6.16"}, opts: loose,
			spoil: deadVoter(0, 1),
			want: wanted{class: "membership", cause: "quorum-lost-after-member-add", mode: plan.Live,
				acts: map[string]plan.Action{"node1": plan.Start, "node2": plan.Best, "node3": plan.Keep,
					"nobody": plan.Remove},
				why: map[string]string{"node1": "lags "}},
		},
		{
			name:  "unreachable voter added while node1 was down, its dir not at hand",
			lines: []string{"3.6.16", "3.5.35"},
			opts:  loose,
			spoil: func(t *testing.T, s *spoiled) []string { return deadVoter(0, 1)(t, s)[1:] },
			want: wanted{mode: plan.RehearseOnly, says: []string{"can still be started"},
				missing: []string{"node1"}},
		},
		{
			name:  "unreachable voter added while node1 was down, its dir lost",
			lines: []string{"3.6.16", "3.5.35"}, opts: loose,
			choice: plan.Options{Gone: []string{"node1"}},
			spoil:  func(t *testing.T, s *spoiled) []string { return deadVoter(0, 1)(t, s)[1:] },
			want: wanted{mode: plan.ForceNewCluster,
				acts: map[string]plan.Action{"node1": plan.Replace, "node2": plan.Best, "node3": plan.Replace,
					"nobody": plan.Remove}},
		},
	})
}

// wiped deletes the data dirs of members and starts them again under their old flags while their peers are cut off;
// then they meet them and panic.
func (s *spoiled) wiped(who ...int) {
	s.Helper()
	var others []int
	for i := range s.c.Size() {
		if !slices.Contains(who, i) {
			others = append(others, i)
		}
	}
	s.lead(others[0])
	s.c.WaitApplied()
	for _, i := range who {
		s.c.Stop(i)
	}
	for _, o := range others {
		s.c.Pause(o)
	}
	for _, i := range who {
		s.c.Wipe(i)
		s.c.StartProcess(i)
		s.c.WaitUntil("a log is there", func(context.Context) error {
			if segs, err := filepath.Glob(filepath.Join(s.c.DataDir(i), "member", "wal", "*.wal")); err != nil ||
				len(segs) == 0 {
				return fmt.Errorf("no segment (%v)", err)
			}
			return nil
		})
	}
	for _, o := range others {
		s.c.Resume(o)
	}
	for _, i := range who {
		s.c.WaitExit(i)
	}
	s.c.Leader()
	s.put(others[0], 5)
	s.c.WaitApplied()
}

// noLeader waits until member i says that nobody leads.
func (s *spoiled) noLeader(i int) {
	s.Helper()
	s.c.WaitUntil("the majority is lost", func(ctx context.Context) error {
		st, err := s.c.Client(i).Status(ctx, s.c.Endpoint(i))
		if err == nil && st.Leader != 0 {
			err = fmt.Errorf("%x leads", st.Leader)
		}
		return err
	})
}
