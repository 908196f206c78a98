package run

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// hauntedPlan is a plan for three members of a minor version, and as many zombies.
func hauntedPlan(t *testing.T, minor int) *plan.Plan {
	t.Helper()
	p := fakePlan(t, 3)
	p.Cluster.Minor = minor
	for id := dumplog.ID(0xb1); id <= 0xb3; id++ {
		p.Members = append(p.Members, plan.Member{Name: id.String(), ID: id, Action: plan.Remove,
			Obstacle: plan.ObstacleBucketOnly,
			Why:      "a zombie"})
	}
	for i := range p.Members {
		if m := &p.Members[i]; m.Action == plan.Keep {
			m.Action, m.RestartOn = plan.Restart, "etcd 3.5.26 or later of 3.5"
		}
	}
	return p
}

// TestZombiesDoNotVote: servers that list members which raft does not know count their votes only where they build
// raft's configuration from that list.
func TestZombiesDoNotVote(t *testing.T) {
	for minor, voters := range map[int]int{5: 3, 6: 3, 7: 6} {
		p := hauntedPlan(t, minor)
		c := newFake(t, fakePlan(t, 3))
		c.r.plan = p
		for id := uint64(0xb1); id <= 0xb3; id++ {
			c.list = append(c.list, &etcdserverpb.Member{ID: id, Name: hexID(id)})
			c.set(id, true) // the fake counts all that are listed
		}
		h := c.r.count(t.Context())
		if len(h.voters) != voters {
			t.Errorf("3.%d: %d voters are counted (%s), want %d", minor, len(h.voters), h.problem, voters)
		}
	}
}

// TestUpgradedMeanwhile: once the servers take members from the database, restarts drop nothing any more.
func TestUpgradedMeanwhile(t *testing.T) {
	p := hauntedPlan(t, 5)
	c := newFake(t, fakePlan(t, 3))
	c.r.plan = p
	f := &liveCheck{liveHost: &liveHost{r: c.r}}
	for version, refused := range map[string]bool{"3.5.2": false, "3.5.26": false, "3.6.0": true, "3.7.3": true} {
		f.server = release.Of(version)
		err := f.comesBack(0xb2)
		if (err != nil) != refused || refused && !strings.Contains(wantRefusal(t, err).Hint, "--members-from-raft") {
			t.Errorf("%s: %v", version, err)
		}
		if err := f.comesBack(1); err != nil {
			t.Errorf("%s: %v of a member that raft knows", version, err)
		}
	}
}

// TestRestartWantsItsRelease: a restart on a server that leaves the rows as they are is not done.
func TestRestartWantsItsRelease(t *testing.T) {
	for version, done := range map[string]bool{"3.5.2": false, "3.5.26": true, "": true} {
		p := hauntedPlan(t, 5)
		c := newFake(t, p)
		c.version = version
		c.list = slices.DeleteFunc(c.list, func(m *etcdserverpb.Member) bool { return m.ID >= 0xb1 }) // as 3.5 does
		err := c.r.run(t.Context())
		if (err == nil) != done || !done && !strings.Contains(err.Error(),
			"put etcd 3.5.26 or later of 3.5 in its place") {
			t.Errorf("%q: %v", version, err)
		}
		if len(c.lost) > 0 {
			t.Errorf("%q: the majority was lost by %q", version, c.lost)
		}
	}
}

const zombieID = 0xb9

// zombieRow puts a member that raft does not know into bucket members, as old restore tools left it.
func zombieRow(tx *bolt.Tx) error { return zombieRows(1)(tx) }

// zombieRows puts n such members there.
func zombieRows(n int) func(*bolt.Tx) error {
	return func(tx *bolt.Tx) error {
		for i := range n {
			row := fmt.Appendf(nil, `{"id":%d,"peerURLs":["http://127.121.9.%d:2380"],"name":"old%d",`+
				`"clientURLs":["http://127.121.9.%d:2379"]}`, zombieID+i, 8+i, i, 8+i)
			if err := tx.Bucket([]byte("members")).Put(fmt.Appendf(nil, "%x", zombieID+i), row); err != nil {
				return err
			}
		}
		return nil
	}
}

// editDB changes the database of a data dir.
func editDB(t *testing.T, dir string, edit func(tx *bolt.Tx) error) {
	t.Helper()
	db, err := bolt.Open(filepath.Join(dir, "member", "snap", "db"), 0o600, &bolt.Options{NoFreelistSync: true})
	if err == nil {
		err = errors.Join(db.Update(edit), db.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}
