//go:build e2e

package main_test

import (
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// TestE2ELiveJWT repairs running clusters whose servers hand out signed tokens that say for themselves who asks, as
// root with a password. A learner lets nobody log in, so it is asked with a token of the best member. Tokens that run
// out in the middle are made anew.
func TestE2ELiveJWT(t *testing.T) {
	for _, tc := range []struct{ version, ttl string }{{"3.5.35", "5m"}, {"3.6.16", "2s"}} {
		t.Run(tc.version, func(t *testing.T) {
			t.Setenv("JWT_TTL", tc.ttl)
			r := newRig(t, clustertest.Server(t, tc.version), false)
			plan := r.diverge()
			env := []string{"ETCD_MEDIC_PASSWORD=" + r.secret}
			stdout, stderr := r.medic(0, env, r.apply(plan, []string{"--user", r.root, "--full"})...)
			if !strings.Contains(stdout, "reached: every proof holds") || !strings.Contains(stdout, "promote-node2") {
				t.Error(stdout)
			}
			if all := stdout + stderr; strings.Contains(all, r.secret) || strings.Contains(all, "eyJ") {
				t.Errorf("a secret is shown:\n%s", all)
			}
			r.healthyNow()
		})
	}
}
