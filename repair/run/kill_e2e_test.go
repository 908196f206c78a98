//go:build e2e

package run

import (
	"path/filepath"
	"testing"

	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// TestE2EKilledAtEveryPoint does what TestKilledAtEveryPoint does to a rehearsal, and to a plan that takes two members
// out and in again.
func TestE2EKilledAtEveryPoint(t *testing.T) {
	t.Run("rehearse", func(t *testing.T) { killedEverywhere(t, "h-misconfigured-member-add", rehearsal) })
	t.Run("mend", func(t *testing.T) {
		file := savePlan(t, "f-bbolt-page-corruption", plan.Options{}, "node1")
		out := filepath.Join(t.TempDir(), "out")
		points := KillEverywhere(t, VictimJob{File: file, Mode: plan.MendFiles, Out: out})
		way := mustLoad(t, file).Way(plan.MendFiles)
		WantEveryPoint(t, points, []string{way.Steps[0].ID, way.Steps[1].ID})
		wantWell(t, out, 1)
	})
	t.Run("reseed", func(t *testing.T) { killedEverywhere(t, "a-auth-revision-replay", plan.Reseed) })
}
