//go:build e2e

package run

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// TestE2ERepairOddSets: what is at hand is not always what one would wish for.
func TestE2ERepairOddSets(t *testing.T) {
	only := func(names ...string) func(*testing.T, *spoiled) []string {
		return func(_ *testing.T, s *spoiled) []string {
			s.c.Add(true)
			s.put(0, 5)
			s.c.WaitEqual()
			return slices.DeleteFunc(s.c.Sources(), func(src string) bool {
				name, _, _ := strings.Cut(src, "=")
				return !slices.Contains(names, name)
			})
		}
	}
	removed := func(names ...string) func(*testing.T, *spoiled) []string {
		return func(_ *testing.T, s *spoiled) []string {
			s.lead(0)
			s.c.Remove(2)
			s.c.WaitExit(2)
			s.put(0, 5)
			return slices.DeleteFunc(s.c.Sources(), func(src string) bool {
				name, _, _ := strings.Cut(src, "=")
				return !slices.Contains(names, name)
			})
		}
	}
	// An empty database is filled from the log; one without meta pages is refused.
	twoDatabases := func(t *testing.T, s *spoiled) []string {
		s.put(0, 5)
		s.c.WaitEqual()
		s.c.StopAll()
		ok(t, os.Truncate(filepath.Join(s.c.DataDir(1), "member", "snap", "db"), 0))
		blankMetas(t, s.c.DataDir(2))
		return s.c.Sources()
	}
	lines := []string{"3.6.16", "3.5.35"}
	runTroubles(t, []trouble{
		{name: "an empty database and a damaged one", lines: lines, spoil: twoDatabases,
			want: wanted{mode: plan.Live, acts: map[string]plan.Action{"node1": plan.Best, "node2": plan.Replace,
				"node3": plan.Replace}}},
		{name: "a learner alone", lines: lines, spoil: only("node4"), want: wanted{refused: "nothing to repair"}},
		{name: "a learner alone and all voters lost", lines: []string{"3.5.35", "3.6.16"}, spoil: only("node4"),
			choice: plan.Options{Gone: []string{"node1", "node2", "node3"}},
			want: wanted{mode: plan.Clone, acts: map[string]plan.Action{"node1": plan.Replace, "node2": plan.Replace,
				"node3": plan.Replace,
				"node4": plan.Best},
				not: map[plan.Mode]string{plan.Live: "0 of 3 voters", plan.ForceNewCluster: "learner",
					plan.Reseed: "learner"}}},
		{name: "one of three", lines: lines, spoil: only("node1"), want: wanted{refused: "nothing to repair"}},
		{name: "one of three and the others lost", lines: lines, spoil: only("node1"),
			choice: plan.Options{Gone: []string{"node2", "node3"}},
			want: wanted{mode: plan.ForceNewCluster, says: []string{"can still be started"},
				acts: map[string]plan.Action{"node1": plan.Best, "node2": plan.Replace, "node3": plan.Replace,
					"node4": plan.Remove}}},
		{name: "two of three and the third lost", lines: lines, spoil: only("node1", "node2"),
			choice: plan.Options{Gone: []string{"node3"}},
			want: wanted{mode: plan.Live, acts: map[string]plan.Action{"node1": plan.Best, "node2": plan.Keep,
				"node3": plan.Replace,
				"node4": plan.Remove}}},
		{name: "two of three, nothing said of the third", lines: lines, spoil: only("node1", "node2"),
			want: wanted{refused: "nothing to repair"}},
		// One of 3.5 may end before it has written that it was removed: then its own files show nothing of it.
		{name: "a removed member alone", lines: []string{"3.6.16"}, spoil: removed("node3"),
			want: wanted{refused: "not a member of the newest configuration"}},
		{name: "one member and a removed one", lines: lines, spoil: removed("node1", "node3"),
			want: wanted{mode: plan.RehearseOnly, missing: []string{"node2"}}},
		{name: "one member, a removed one and the other lost", lines: lines, spoil: removed("node1", "node3"),
			choice: plan.Options{Gone: []string{"node2"}},
			want: wanted{mode: plan.ForceNewCluster,
				acts: map[string]plan.Action{"node1": plan.Best, "node2": plan.Replace, "node3": plan.Retire}}},
		{name: "a removed member comes back", lines: []string{"3.5.35", "3.6.16"}, live: []string{"3.6.16"},
			spoil: removed("node1", "node2", "node3"), choice: plan.Options{Replace: []string{"node3"}},
			want: wanted{mode: plan.Live, acts: map[string]plan.Action{"node1": plan.Best, "node2": plan.Keep,
				"node3": plan.Join}}},
	})
}
