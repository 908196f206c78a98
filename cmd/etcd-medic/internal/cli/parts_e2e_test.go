//go:build e2e

package cli

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// TestE2EWithoutParts runs every command on every incident with every part of every member gone.
func TestE2EWithoutParts(t *testing.T) {
	for _, incident := range evidencetest.Incidents(t) {
		for _, c := range partCases(t, incident) {
			t.Run(c.String(), func(t *testing.T) {
				t.Parallel()
				runWithout(t, c, everyCommand)
			})
		}
	}
}
