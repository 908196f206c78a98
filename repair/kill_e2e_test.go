//go:build e2e

package repair

import "testing"

// TestE2EKilledAtEveryPoint does what TestKilledAtEveryPoint does to a plan that takes two members out and in again.
func TestE2EKilledAtEveryPoint(t *testing.T) {
	for _, mode := range []Mode{rehearsal, Reseed} {
		t.Run(string(mode), func(t *testing.T) { killedEverywhere(t, "a-auth-revision-replay", mode) })
	}
}
