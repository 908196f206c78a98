//go:build e2e

package replay_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/release"
)

// minCompared is how many states of one stream have to be compared at least.
const minCompared = 40

// TestE2EEveryIndex: one server of each release executes random requests, nested transactions, expiring leases, alarms,
// compactions, conf changes that are refused and accepted, with and without auth. After every request its database is
// saved, and the state that the rules make of the log is equal to it at every one of these indexes.
func TestE2EEveryIndex(t *testing.T) {
	for n, version := range []string{"3.3.18", "3.4.3", "3.4.23", "3.5.0", "3.5.35", "3.6.16", "3.7.3"} {
		for _, plain := range []bool{true, false} {
			learners := release.Of(version).Has(release.Learners).Certain()
			if !plain && !learners {
				continue // 3.3 hashes passwords so slowly that TestE2EStreams is all there is time for
			}
			seed := uint64(100 + n)
			t.Run(fmt.Sprintf("%s/plain %v/seed %d", version, plain, seed), func(t *testing.T) {
				options := clustertest.Options{}
				if learners {
					options.Args = append(options.Args, "--bcrypt-cost", "4")
				}
				c := clustertest.Start(t, clustertest.Server(t, version), 1, options)
				s := &stream{t: t, c: c, rnd: rand.New(rand.NewPCG(seed, 11)), version: release.Of(version),
					single: true, dense: true, plain: plain,
					tokens: map[string][]string{}, revisions: map[uint64]int64{}, backups: map[uint64]string{}}
				s.run()
				s.verify(0)
			})
		}
	}
}
