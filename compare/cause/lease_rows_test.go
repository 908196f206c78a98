package cause_test

import (
	"context"
	"encoding/binary"
	"testing"

	"go.etcd.io/bbolt"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

var all3 = []string{"node1", "node2", "node3"}

func leaseRow(id int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(id)) }

// TestDanglingLease: the row of a lease is gone although a live key names it.
func TestDanglingLease(t *testing.T) {
	s := newScript("3.5.0")
	s.Add(as("", 0, grantLease(7, 60)))
	s.Add(as("", 0, grantLease(8, 60)))
	s.Add(as("", 1, put("/a", "1", 7)))
	s.Add(as("", 1, put("/b", "1", 8)))
	s.Add(as("", 1, put("/b", "2", 0))) // detached: its old record may name a lease that is gone
	s.Add(as("", 1, revokeLease(8)))
	drop := editDB(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("lease")).Delete(leaseRow(7)) })
	told{class: "healthy", holds: []string{"L02"}, absent: []string{"dangling-lease-reference"}}.check(t,
		diagnoseScript(t, s))
	told{class: "latent-divergence", cause: "dangling-lease-reference", certainty: "proof",
		best: []string{"node1", "node3"}, violated: []string{"L02", "L01"}}.check(t, diagnoseScript(t, s, nil, drop))
}

// TestNegativeLease: 3.4 and 3.5.0 to 3.5.2 forget leases with a negative ID at a restart and pass over their revoke.
func TestNegativeLease(t *testing.T) {
	const id = "negative-lease-id"
	script := func(version string, lease int64, key string, restarted ...int) *clustertest.Script {
		s := newScript(version)
		s.Add(as("", 0, grantLease(lease, 600)))
		if key != "" {
			s.Add(as("", 1, put(key, "1", lease)))
		}
		for _, m := range restarted {
			s.Start(m)
		}
		s.Add(as("", 0, revokeLease(lease), restarted...))
		s.Add(as("", 0, put("/after", "1", 0)))
		s.Add(as("", 0, put("/after", "2", 0)))
		return s
	}
	t.Run("revoke passed over", func(t *testing.T) {
		for _, version := range []string{"3.4.0", "3.5.0"} {
			r := diagnoseScript(t, script(version, -5, "/leased", 1))
			told{class: "data-divergence", cause: id, certainty: "proof", best: []string{"node1", "node3"},
				violated: []string{"L03", "L05", "K01"},
				holds:    []string{"K03", "K06", "L02"}}.check(t, r)
		}
	})
	t.Run("without keys", func(t *testing.T) {
		told{class: "latent-divergence", cause: id, certainty: "proof", best: []string{"node1", "node3"},
			violated: []string{"L05", "L01"},
			holds:    []string{"K01", "K03"}}.check(t, diagnoseScript(t, script("3.4.0", -5, "", 1)))
	})
	t.Run("put refused", func(t *testing.T) {
		s := newScript("3.4.0")
		s.Add(as("", 0, grantLease(-5, 600)))
		s.Start(2)
		s.Add(as("", 0, put("/leased", "1", -5), 2))
		s.Add(as("", 0, put("/after", "1", 0)))
		told{class: "data-divergence", cause: id, certainty: "strong", best: []string{"node1", "node2"},
			holds: []string{"K03"}}.check(t, diagnoseScript(t, s))
	})
	t.Run("revoked everywhere", func(t *testing.T) {
		told{class: "healthy", absent: []string{id}, holds: []string{"L05"}}.check(t,
			diagnoseScript(t, script("3.4.0", -5, "/leased")))
	})
	t.Run("alive everywhere", func(t *testing.T) {
		s := newScript("3.4.0")
		s.Add(as("", 0, grantLease(-5, 600)))
		s.Add(as("", 0, put("/leased", "1", -5)))
		told{class: "healthy", absent: []string{id}, violated: []string{"L05"}}.check(t, diagnoseScript(t, s))
	})
	t.Run("granted again", func(t *testing.T) {
		s := script("3.4.0", -5, "/leased")
		s.Add(as("", 0, grantLease(-5, 600)))
		told{class: "healthy", absent: []string{id}}.check(t, diagnoseScript(t, s))
	})
	t.Run("positive ID", func(t *testing.T) {
		told{class: "data-divergence", cause: "unexplained-first-divergence", absent: []string{id},
			holds: []string{"L05"}}.check(t, diagnoseScript(t, script("3.4.0", 5, "/leased", 1)))
	})
}

// leasesOn is a script whose members have one setting each, and which grants leases from ID 7 on with these TTLs.
func leasesOn[T any](version string, settings []T, member func(T) clustertest.ScriptMember,
	ttls ...int64) *clustertest.Script {
	s := newScript(version)
	for i, x := range settings {
		s.Of[i] = member(x)
	}
	for i, ttl := range ttls {
		s.Add(as("", 0, grantLease(7+int64(i), ttl)))
	}
	return s
}

// TestLeaseTTLs: TTLs raised to different minimums are settings, lower ones contradict the log.
func TestLeaseTTLs(t *testing.T) {
	const id = "lease-ttl-clamp-mismatch"
	script := func(version string, minimum ...int64) *clustertest.Script {
		s := leasesOn(version, minimum,
			func(ttl int64) clustertest.ScriptMember { return clustertest.ScriptMember{MinTTL: ttl} }, 1, 3, 600)
		s.Add(as("", 0, put("/a", "1", 9)))
		return s
	}
	t.Run("one timeout differs", func(t *testing.T) {
		r := diagnoseScript(t, script("3.6.0", 2, 2, 15))
		told{class: "healthy", causes: []string{id}, best: all3, violated: []string{"L04"},
			holds: []string{"L01", "K03"}}.check(t, r)
		if e := findings(r, "", "L04")[0].Evidence; e[0].Observed != "2 s" || e[2].Observed != "15 s" {
			t.Errorf("%+v", e)
		}
	})
	t.Run("equal timeouts", func(t *testing.T) {
		told{class: "healthy", absent: []string{id}, holds: []string{"L04"}}.check(t,
			diagnoseScript(t, script("3.4.0", 2, 2, 2)))
	})
	edit := func(ttl byte) spoil {
		return editDB(func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("lease")).Put(leaseRow(9),
				[]byte{8, 9, 16, ttl})
		})
	}
	t.Run("lower than asked", func(t *testing.T) {
		told{class: "latent-divergence", cause: "unexplained-first-divergence", absent: []string{id},
			best:     []string{"node1", "node3"},
			violated: []string{"L04"}}.check(t, diagnoseScript(t, script("3.5.0", 2, 2, 2), nil, edit(9)))
	})
	t.Run("no single minimum", func(t *testing.T) {
		s := script("3.5.0", 2, 2, 2)
		s.Add(as("", 0, grantLease(10, 100)))
		above := editDB(func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("lease")).Put(leaseRow(10),
				[]byte{8, 10, 16, 120})
		})
		told{class: "latent-divergence", absent: []string{id}, violated: []string{"L04"}}.check(t,
			diagnoseScript(t, s, above))
	})
	t.Run("a minimum that was changed", func(t *testing.T) {
		s := script("3.5.0", 2, 2, 2)
		s.Of[0] = clustertest.ScriptMember{MinTTL: 15}
		s.Add(as("", 0, grantLease(10, 12)))
		first := editDB(func(tx *bbolt.Tx) error {
			b := tx.Bucket([]byte("lease"))
			if err := b.Put(leaseRow(7), []byte{8, 7, 16, 2}); err != nil {
				return err
			}
			return b.Put(leaseRow(8), []byte{8, 8, 16, 3})
		})
		r := diagnoseScript(t, s, func(t *testing.T, node string) {
			t.Helper()
			first(t, node)
			setMeta("term", 2)(t, node) // another transaction, so that the one before tells nothing
		})
		told{class: "healthy", violated: []string{"L04"}}.check(t, r)
	})
}

// TestLeaseCheckpoints: remaining TTLs in the log, stored by all, some or none.
func TestLeaseCheckpoints(t *testing.T) {
	script := func(version string, persists ...bool) *clustertest.Script {
		s := leasesOn(version, persists,
			func(p bool) clustertest.ScriptMember { return clustertest.ScriptMember{Persists: p} }, 6000, 6000)
		for _, left := range []int64{5700, 5400} {
			s.Add(as("", 0,
				&pb.InternalRaftRequest{LeaseCheckpoint: &pb.LeaseCheckpointRequest{Checkpoints: []*pb.LeaseCheckpoint{
					{ID: 7, Remaining_TTL: left}, {ID: 99, Remaining_TTL: 1}}}}))
		}
		s.Add(as("", 0, put("/a", "1", 7)))
		return s
	}
	none, mixed := "lease-checkpoint-not-persisted", "lease-checkpoint-persist-mixed"
	for name, c := range map[string]struct {
		persists []bool
		want     told
	}{
		"none": {[]bool{false, false, false}, told{class: "healthy", causes: []string{none}, absent: []string{mixed},
			holds: []string{"L06"}}},
		"some": {[]bool{true, false, true}, told{class: "healthy", causes: []string{mixed}, absent: []string{none},
			violated: []string{"L06"}, holds: []string{"L01", "L04", "K03"}}},
		"all": {[]bool{true, true, true}, told{class: "healthy", absent: []string{none, mixed},
			holds: []string{"L06"}}},
	} {
		t.Run(name, func(t *testing.T) { c.want.check(t, diagnoseScript(t, script("3.5.0", c.persists...))) })
	}
}

// TestCompareShowsTTLs: compare lists TTLs that differ legally and calls the buckets equal.
func TestCompareShowsTTLs(t *testing.T) {
	s := newScript("3.6.0")
	s.Of[2] = clustertest.ScriptMember{MinTTL: 15}
	s.Add(as("", 0, grantLease(7, 10)))
	s.Add(as("", 0, grantLease(8, 600)))
	s.Add(as("", 0, put("/a", "1", 7)))
	c, err := compare.Compare(context.Background(), dirSpecs(s.Write(t, t.TempDir())), compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range c.Buckets {
		if b.Bucket != "lease" {
			continue
		}
		if !b.Equal.Certain() || b.Compared != 2 || len(b.Normal) != 1 ||
			b.Normal[0].Members["node3"].Text != "TTL 15 s" || b.Normal[0].Members["node1"].Text != "TTL 10 s" {
			t.Errorf("%+v", b)
		}
		return
	}
	t.Error("bucket lease was not compared")
}
