//go:build e2e

package repair

import "testing"

// TestE2EKilledAtEveryPoint does what TestKilledAtEveryPoint does to a rehearsal, and to a plan that takes two members out and in again.
func TestE2EKilledAtEveryPoint(t *testing.T) {
	t.Run("rehearse", func(t *testing.T) { killedEverywhere(t, "h-misconfigured-member-add", rehearsal) })
	t.Run("reseed", func(t *testing.T) { killedEverywhere(t, "a-auth-revision-replay", Reseed) })
}
