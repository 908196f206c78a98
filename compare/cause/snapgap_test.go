package cause_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

func askAlarms() *pb.InternalRaftRequest {
	return &pb.InternalRaftRequest{Alarm: &pb.AlarmRequest{Action: pb.AlarmRequest_GET}}
}

func raiseAlarm(member uint64) *pb.InternalRaftRequest {
	return &pb.InternalRaftRequest{Alarm: &pb.AlarmRequest{Action: pb.AlarmRequest_ACTIVATE, MemberID: member,
		Alarm: pb.AlarmType_NOSPACE}}
}

// freePages leaves free pages in the database, as a server does that deletes.
func freePages(t *testing.T, node string) {
	t.Helper()
	for _, fill := range []bool{true, false} {
		editDB(func(tx *bbolt.Tx) error {
			if !fill {
				return tx.DeleteBucket([]byte("test"))
			}
			b, err := tx.CreateBucket([]byte("test"))
			for i := range 2000 {
				err = errors.Join(err, b.Put(fmt.Appendf(nil, "row %05d", i), make([]byte, 100)))
			}
			return err
		})(t, node)
	}
}

// asSent makes the database what bbolt writes when it copies one, as a leader sends it.
func asSent(t *testing.T, node string) {
	t.Helper()
	path := filepath.Join(node, "snap", "db")
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true})
	if err != nil {
		t.Fatal(err)
	}
	for odd := false; !odd && err == nil; { // an even transaction ID does not tell a copy from a database
		err = db.View(func(tx *bbolt.Tx) error { odd = tx.ID()%2 == 1; return nil })
		if !odd && err == nil {
			err = db.Update(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("meta")).SetSequence(1) })
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.View(func(tx *bbolt.Tx) error { return tx.CopyFile(path+".sent", 0o600) }), db.Close(),
		os.Rename(path+".sent", path)); err != nil {
		t.Fatal(err)
	}
}

// gapScript is a cluster with writes, then the steps of gap behind the step that node2's database ends with, then a
// snapshot of node2, then a few writes.
func gapScript(version string, gap ...clustertest.Step) *clustertest.Script {
	s := withAuth(newScript(version))
	for i := range 12 {
		s.Add(as("app", 0, put(fmt.Sprintf("/app/k%d", i%4), fmt.Sprint("v", i), 0)))
	}
	s.Add(as("app", 1, put("/app/last", "x", 0)))
	of := clustertest.ScriptMember{AppliedUntil: s.Add(clustertest.Step{Req: raiseAlarm(0xa1)})}
	for _, st := range gap {
		of.SnapshotTaken = s.Add(st)
	}
	s.Of[1] = of
	return s
}

// TestGapBeforeSnapshot: the database of node2 ends below its newest raft snapshot. What lies in between tells why.
func TestGapBeforeSnapshot(t *testing.T) {
	query, denied := clustertest.Step{Req: askAlarms()}, as("app", 0, put("/other/k", "x", 0), 0, 1, 2)
	write := as("root", 0, deleteKey("/app/k1"))
	raise := clustertest.Step{Req: raiseAlarm(0xa1)}
	gapCauses := []string{"alarm-list-index-stuck", "alarm-raise-index-stuck", "auth-denied-index-stuck",
		"cindex-overwritten-after-snapshot", "snap-db-dir-not-synced", "data-dir-rolled-back",
		"cindex-below-snapshot-34", "backend-newer-than-log-start", "bootstrap-index-check-skipped"}
	but := func(ids ...string) []string {
		var out []string
		for _, g := range gapCauses {
			keep := true
			for _, id := range ids {
				keep = keep && g != id
			}
			if keep {
				out = append(out, g)
			}
		}
		return out
	}
	for name, c := range map[string]struct {
		version string
		gap     []clustertest.Step
		want    told
	}{
		"alarm queries": {"3.5.0", []clustertest.Step{query, query, query},
			told{class: "latent-divergence", cause: "alarm-list-index-stuck", certainty: "proof",
				violated: []string{"S02"}, absent: but("alarm-list-index-stuck")}},
		"refused entries": {"3.5.0", []clustertest.Step{denied, query, denied},
			told{class: "latent-divergence", cause: "auth-denied-index-stuck", certainty: "strong",
				violated: []string{"S02"}, absent: but("auth-denied-index-stuck")}},
		"a write among queries": {"3.5.0", []clustertest.Step{query, write, query},
			told{class: "member-lost-data", cause: "data-dir-rolled-back", certainty: "strong",
				violated: []string{"S02"}, absent: but("data-dir-rolled-back")}},
		"refused for one member only": {"3.5.0", []clustertest.Step{as("app", 0, put("/other/k", "x", 0))},
			told{class: "member-lost-data", cause: "data-dir-rolled-back", violated: []string{"S02"},
				absent: but("data-dir-rolled-back")}},
		"repeated alarms": {"3.5.0", []clustertest.Step{raise, raise, raise},
			told{class: "latent-divergence", cause: "alarm-raise-index-stuck", certainty: "hint",
				violated: []string{"S02"}, absent: but("alarm-raise-index-stuck")}},
		"repeated alarms on 3.6": {"3.6.0", []clustertest.Step{raise, raise},
			told{class: "latent-divergence", cause: "alarm-raise-index-stuck", certainty: "hint",
				violated: []string{"S02"}}},
		"repeated alarms on 3.7": {"3.7.0", []clustertest.Step{raise, raise},
			told{class: "latent-divergence", violated: []string{"S02"}, absent: gapCauses}},
		"an alarm of another member": {"3.5.0", []clustertest.Step{raise, {By: 1, Req: raiseAlarm(0xa2)}},
			told{class: "member-lost-data", cause: "data-dir-rolled-back", violated: []string{"S02"},
				absent: but("data-dir-rolled-back")}},
		"alarm queries on 3.6": {"3.6.0", []clustertest.Step{query, query},
			told{class: "latent-divergence", cause: "", violated: []string{"S02"}, absent: gapCauses}},
		"writes on 3.4": {"3.4.0", []clustertest.Step{write, write},
			told{class: "member-lost-data", cause: "data-dir-rolled-back", violated: []string{"S02"},
				causes: []string{"cindex-below-snapshot-34"},
				absent: but("data-dir-rolled-back", "cindex-below-snapshot-34")}},
		"writes on 3.1": {"3.1.0", []clustertest.Step{write, write},
			told{class: "member-lost-data", cause: "backend-newer-than-log-start", violated: []string{"S02"},
				absent: but("data-dir-rolled-back", "backend-newer-than-log-start")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := gapScript(c.version, c.gap...)
			var spoils []spoil
			if of := s.Of[1]; c.version < "3.5" { // no configuration in the snapshot record
				spoils = []spoil{nil, appendSnapshot(s.Index(of.SnapshotTaken))}
				of.SnapshotTaken = 0
				s.Of[1] = of
			}
			c.want.check(t, diagnoseScript(t, s, spoils...))
		})
	}
}

// TestReceivedSnapshotNotInstalled: node2 fell behind, its log jumps to a leader's snapshot, its database is the one
// from before.
func TestReceivedSnapshotNotInstalled(t *testing.T) {
	script := func(more int) *clustertest.Script {
		s := newScript("3.5.0")
		until := 0
		for i := range 30 {
			n := s.Add(as("", 0, put(fmt.Sprintf("/k%d", i%4), fmt.Sprint("v", i), 0)))
			if i == 10 {
				until = n
			}
			s.Of[1] = clustertest.ScriptMember{LogUntil: until, SnapshotAt: n, AppliedUntil: until}
		}
		for i := range more {
			s.Add(as("", 0, put(fmt.Sprintf("/k%d", i%4), fmt.Sprint("w", i), 0)))
		}
		return s
	}
	t.Run("the file is gone", func(t *testing.T) {
		told{class: "snapshot-damage", cause: "snap-db-dir-not-synced", certainty: "strong", violated: []string{"S02"},
			best:   []string{"node1", "node3"},
			causes: []string{"data-dir-rolled-back", "defrag-races-snapshot-install"},
			absent: []string{"snap-db-missing-second-snapshot", "bootstrap-index-check-skipped"}}.check(t,
			diagnoseScript(t, script(3)))
	})
	t.Run("the database has free pages", func(t *testing.T) {
		told{class: "snapshot-damage", cause: "snap-db-dir-not-synced",
			absent: []string{"defrag-races-snapshot-install"}}.check(t, diagnoseScript(t, script(3), nil, freePages))
	})
	t.Run("an older database was put back", func(t *testing.T) {
		s := script(3)
		of := s.Of[1]
		of.AppliedUntil -= 4
		s.Of[1] = of
		told{class: "member-lost-data", cause: "data-dir-rolled-back", certainty: "strong", violated: []string{"S02"},
			best:   []string{"node1", "node3"},
			absent: []string{"snap-db-dir-not-synced", "snap-db-missing-second-snapshot"}}.check(t,
			diagnoseScript(t, s))
	})
	t.Run("the member started behind the snapshot", func(t *testing.T) {
		s := script(0)
		s.Start(1)
		told{class: "snapshot-damage", cause: "snap-db-dir-not-synced",
			causes: []string{"bootstrap-index-check-skipped"}}.check(t, diagnoseScript(t, s))
		s.Version = "3.6.0"
		told{class: "snapshot-damage", cause: "snap-db-dir-not-synced",
			absent: []string{"bootstrap-index-check-skipped"}}.check(t, diagnoseScript(t, s))
	})
	t.Run("installed and never written to", func(t *testing.T) {
		const id = "backend-not-rebound-after-recovery"
		s := script(3)
		of := s.Of[1]
		of.AppliedUntil = of.SnapshotAt
		s.Of[1] = of
		told{class: "healthy", absent: []string{id}, holds: []string{"S02"}}.check(t, diagnoseScript(t, s))
		told{class: "healthy", causes: []string{id}, holds: []string{"S02", "D04"}}.check(t,
			diagnoseScript(t, s, nil, asSent))
		s.Version = "3.6.0"
		told{class: "healthy", absent: []string{id}}.check(t, diagnoseScript(t, s, nil, asSent))
	})
	t.Run("the file waits", func(t *testing.T) {
		s := script(3)
		name := fmt.Sprintf("%016x.snap.db", s.Index(s.Of[1].SnapshotAt))
		told{class: "healthy", absent: []string{"snap-db-dir-not-synced", "data-dir-rolled-back",
			"snap-dir-leftovers"}}.check(t, diagnoseScript(t, s, nil, func(t *testing.T, node string) {
			t.Helper()
			if err := os.WriteFile(filepath.Join(node, "snap", name), []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
		}))
	})
	t.Run("it ran on for long", func(t *testing.T) {
		told{class: "member-lost-data", cause: "data-dir-rolled-back", violated: []string{"S02"},
			absent: []string{"snap-db-dir-not-synced"}}.check(t, diagnoseScript(t, script(40)))
	})
	t.Run("two in a row", func(t *testing.T) {
		s := script(0)
		told{class: "snapshot-damage", cause: "snap-db-dir-not-synced",
			causes: []string{"snap-db-missing-second-snapshot"}}.check(t,
			diagnoseScript(t, s, nil, func(t *testing.T, node string) {
				t.Helper()
				appendSnapshot(s.Index(s.Of[1].SnapshotAt)+9)(t, node)
			}))
	})
	t.Run("the index was put back", func(t *testing.T) {
		s := script(0)
		of := s.Of[1]
		of.AppliedUntil, of.IndexAt = 0, of.LogUntil
		s.Of[1] = of
		told{class: "latent-divergence", cause: "cindex-overwritten-after-snapshot", certainty: "strong",
			violated: []string{"S02", "C03"}, best: []string{"node1", "node3"},
			absent: []string{"data-dir-rolled-back", "snap-db-dir-not-synced", "cindex-not-saved-by-defrag"}}.check(t,
			diagnoseScript(t, s))
	})
}

// TestWipedAndRecovered: a log that begins with a received snapshot, of a member that had served clients before it.
func TestWipedAndRecovered(t *testing.T) {
	const id = "wiped-member-rejoined-same-id"
	script := func(served bool) *clustertest.Script {
		s := newScript("3.5.0")
		by := 0
		if served {
			by = 1
		}
		at := 0
		for i := range 12 {
			at = s.Add(as("", by, put("/k", fmt.Sprint(i), 0)))
		}
		s.Of[1] = clustertest.ScriptMember{SnapshotAt: at}
		s.Start(1)
		s.Add(as("", 0, put("/k", "last", 0)))
		return s
	}
	told{class: "healthy", causes: []string{id}, violated: []string{"M04"}, holds: []string{"R10", "K01"},
		best: all3}.check(t, diagnoseScript(t, script(true)))
	// it was down from the beginning
	told{class: "healthy", absent: []string{id}, holds: []string{"M04", "R10"}}.check(t,
		diagnoseScript(t, script(false)))
}

// TestCopyAsDatabase: a copy without a trailer that no server has written to, although one started behind it.
func TestCopyAsDatabase(t *testing.T) {
	const id = "saved-snapshot-used-as-db"
	script := func(restarted bool) *clustertest.Script {
		s := newScript("3.5.0")
		until := s.Add(as("", 0, put("/k", "1", 0)))
		if restarted {
			s.Start(1)
		}
		s.Add(as("", 0, put("/k", "2", 0)))
		s.Of[1] = clustertest.ScriptMember{AppliedUntil: until}
		return s
	}
	told{class: "torn-copy", cause: id, certainty: "strong", violated: []string{"X03"}}.check(t,
		diagnoseScript(t, script(true), nil, asSent))
	told{class: "healthy", absent: []string{id}, holds: []string{"X03"}}.check(t, diagnoseScript(t, script(true)))
	// a faithful copy of the file
	told{class: "healthy", absent: []string{id}, holds: []string{"X03"}}.check(t,
		diagnoseScript(t, script(false), nil, asSent))
}
