//go:build e2e

package repair

import (
	"path/filepath"
	"testing"
)

// TestE2EKilledAtEveryPoint does what TestKilledAtEveryPoint does to a rehearsal, and to a plan that takes two members
// out and in again.
func TestE2EKilledAtEveryPoint(t *testing.T) {
	t.Run("rehearse", func(t *testing.T) { killedEverywhere(t, "h-misconfigured-member-add", rehearsal) })
	t.Run("mend", func(t *testing.T) {
		file := savePlan(t, "f-bbolt-page-corruption", PlanOptions{}, "node1")
		out := filepath.Join(t.TempDir(), "out")
		points := KillEverywhere(t, VictimJob{File: file, Mode: MendFiles, Out: out})
		way := mustLoad(t, file).Way(MendFiles)
		WantEveryPoint(t, points, []string{way.Steps[0].ID, way.Steps[1].ID})
		wantWell(t, out, 1)
	})
	t.Run("reseed", func(t *testing.T) { killedEverywhere(t, "a-auth-revision-replay", Reseed) })
}
