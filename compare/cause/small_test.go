package cause_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// TestRevisionBelowFinishedCompaction: the same state is told on data of 3.0 alone.
func TestRevisionBelowFinishedCompaction(t *testing.T) {
	const id = "revision-below-compact-2016"
	told{class: "healthy", causes: []string{id}, absent: []string{"revision-decrease-after-compaction-crash"},
		holds: []string{"K10"}}.check(t, diagnoseScript(t, deletes("3.0.0", true)))
	for _, version := range []string{"3.1.0", "3.4.0", "3.5.0"} {
		told{class: "healthy", absent: []string{id}}.check(t, diagnoseScript(t, deletes(version, true)))
	}
	told{class: "healthy", absent: []string{id}}.check(t, diagnoseScript(t, deletes("3.0.0", false)))
}

// stray puts a tombstone below the compact revision that deletes nothing that is left.
var stray = editDB(func(tx *bbolt.Tx) error {
	data, err := (&mvccpb.KeyValue{Key: []byte("/long/gone")}).Marshal()
	if err != nil {
		return err
	}
	return tx.Bucket([]byte("key")).Put(append(revKey(4), 't'), data)
})

// TestStrayTombstone: told on one member of a line that could leave it, not on all members and not below an unfinished
// compaction.
func TestStrayTombstone(t *testing.T) {
	const id = "tombstone-only-key-not-indexed"
	unfinished := editDB(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("meta")).Delete([]byte("finishedCompactRev"))
	})
	told{class: "healthy", causes: []string{id}, holds: []string{"K01", "K03", "K04", "K11", "D07"},
		best: all3}.check(t, diagnoseScript(t, deletes("3.5.0", true), nil, stray))
	told{class: "healthy", causes: []string{id}}.check(t, diagnoseScript(t, deletes("3.4.0", true), nil, stray))
	told{class: "healthy", absent: []string{id}}.check(t, diagnoseScript(t, deletes("3.6.0", true), nil, stray))
	told{class: "healthy", absent: []string{id}}.check(t,
		diagnoseScript(t, deletes("3.5.0", true), stray, stray, stray))
	told{class: "compaction-skew", absent: []string{id}}.check(t,
		diagnoseScript(t, deletes("3.5.0", true), nil, func(t *testing.T, node string) {
			t.Helper()
			stray(t, node)
			unfinished(t, node)
		}))
	s := deletes("3.5.0", true)
	s.Of[1] = clustertest.ScriptMember{KeepsTombstone: true} // exactly at the compact revision
	told{class: "healthy", absent: []string{id}}.check(t, diagnoseScript(t, s))
}

// TestIndexOf320: live keys below its compaction are missing on one member of 3.2.
func TestIndexOf320(t *testing.T) {
	const id = "restore-index-damage-320"
	script := func(version string) *clustertest.Script {
		s := newScript(version)
		for _, k := range []string{"/a", "/b", "/c", "/a", "/d"} {
			s.Add(as("", 0, put(k, "1", 0)))
		}
		s.Add(as("", 0, &pb.InternalRaftRequest{Compaction: &pb.CompactionRequest{Revision: 6}}))
		s.Add(as("", 0, put("/later", "1", 0)))
		s.Add(as("", 0, put("/later", "2", 0)))
		return s
	}
	drop := func(rev int64) spoil {
		return editDB(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("key")).Delete(revKey(rev)) })
	}
	told{class: "data-divergence", cause: id, certainty: "hint", violated: []string{"K01", "K03"},
		holds: []string{"K02"}}.check(t, diagnoseScript(t, script("3.2.0"), nil, drop(3)))
	told{class: "data-divergence", cause: "rows-changed-outside-the-log", certainty: "proof", absent: []string{id},
		best: []string{"node1", "node3"}}.check(t, diagnoseScript(t, script("3.3.0"), nil, drop(3)))
	r := diagnoseScript(t, script("3.2.0"), nil, drop(7)) // above the compaction
	told{class: string(r.Verdict.Class), cause: string(*r.Verdict.Cause), violated: []string{"K04"},
		absent: []string{id}}.check(t, r)
	without := func(t *testing.T, node string) {
		t.Helper()
		if err := os.Remove(filepath.Join(node, "snap", "db")); err != nil {
			t.Fatal(err)
		}
	}
	told{class: "data-divergence", cause: id, certainty: "hint", violated: []string{"K01"}}.check(t,
		diagnoseScript(t, script("3.2.0"), without, drop(3)))
	altered := editDB(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte("key"))
		v := bytes.Clone(b.Get(revKey(3)))
		v[len(v)-1]++ // the value: both hold the key
		return b.Put(revKey(3), v)
	})
	r = diagnoseScript(t, script("3.2.0"), without, altered)
	told{class: string(r.Verdict.Class), cause: string(*r.Verdict.Cause), violated: []string{"K01"},
		absent: []string{id}}.check(t, r)
	r = diagnoseScript(t, script("3.2.0"), nil, drop(3), drop(4)) // on two members
	told{class: string(r.Verdict.Class), cause: string(*r.Verdict.Cause), absent: []string{id}}.check(t, r)
}

// emptyTail fills a bucket and empties its last leaf page in place. Without blank, the bytes of the rows stay there.
func emptyTail(t *testing.T, node string, blank bool) {
	t.Helper()
	editDB(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket([]byte("test"))
		for i := 0; err == nil && i < 500; i++ {
			err = b.Put(binary.BigEndian.AppendUint32([]byte("row "), uint32(i)), make([]byte, 100))
		}
		return err
	})(t, node)
	path, last := filepath.Join(node, "snap", "db"), binary.BigEndian.AppendUint32([]byte("row "), 499)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for p := 0; p+4096 <= len(b); p += 4096 {
		if binary.LittleEndian.Uint16(b[p+8:]) == 2 && bytes.Contains(b[p:p+4096], last) {
			if found = true; blank {
				clear(b[p+16 : p+4096])
			}
			clear(b[p+10 : p+12])
		}
	}
	if !found {
		t.Fatal("no last leaf")
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true}) // a library of today takes it for sound
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if err := db.View(func(tx *bbolt.Tx) error {
		if k, _ := tx.Bucket([]byte("test")).Cursor().Last(); k == nil {
			t.Error("no last row")
		}
		for err := range tx.Check() {
			t.Error(err)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// TestEmptyLastPage: an empty leaf at the right edge is a note, and no damage unless rows were on it.
func TestEmptyLastPage(t *testing.T) {
	const id = "bbolt-cursor-last-empty-page"
	s := newScript("3.5.0")
	s.Add(as("", 0, put("/a", "1", 0)))
	r := diagnoseScript(t, s, nil, func(t *testing.T, node string) { emptyTail(t, node, true) })
	told{class: "healthy", causes: []string{id}, holds: []string{"D02", "D03", "D09"}, best: all3}.check(t, r)
	if f := findings(r, "node2", "D09"); len(f) != 1 || f[0].Evidence[0].Bucket != "test" ||
		f[0].Evidence[0].Page == nil {
		t.Errorf("%+v", f)
	}
	told{class: "healthy", absent: []string{id}}.check(t, diagnoseScript(t, s, nil, freePages))
	r = diagnoseScript(t, s, nil, func(t *testing.T, node string) { emptyTail(t, node, false) })
	told{class: "db-damage", cause: "bbolt-page-damage", certainty: "proof", violated: []string{"D02"},
		holds: []string{"D03"}, absent: []string{id}}.check(t, r)
	if f := findings(r, "node2", "D02"); len(f) != 1 || f[0].Evidence[0].Bucket != "test" || f[0].Evidence[0].Page == nil {
		t.Errorf("%+v", f)
	}
}

// TestLeaseRepeatedAtRestart: a lease is missing whose grant a restart executed again.
func TestLeaseRepeatedAtRestart(t *testing.T) {
	const id = "lease-ops-reapplied-on-restart"
	drop := editDB(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("lease")).Delete(leaseRow(7)) })
	script := func(version string, write, restarted bool) *clustertest.Script {
		s := newScript(version)
		s.Add(as("", 0, put("/a", "1", 0)))
		s.Add(as("", 0, grantLease(7, 600)))
		if write {
			s.Add(as("", 0, put("/a", "2", 0)))
		}
		if restarted {
			s.Start(1)
		}
		s.Add(as("", 0, put("/b", "1", 0)))
		return s
	}
	told{class: "latent-divergence", cause: id, certainty: "hint", violated: []string{"L01", "L09", "K03"},
		holds: []string{"K01", "L02"}, best: []string{"node1", "node3"}}.check(t,
		diagnoseScript(t, script("3.4.0", false, true), nil, drop))
	for name, s := range map[string]*clustertest.Script{
		"a key write lies between": script("3.4.0", true, true), "no restart": script("3.4.0", false, false),
		"3.5": script("3.5.0", false, true),
	} {
		t.Run(name, func(t *testing.T) {
			told{class: "latent-divergence", cause: "unexplained-first-divergence", absent: []string{id}}.check(t,
				diagnoseScript(t, s, nil, drop))
		})
	}
	told{class: "healthy", absent: []string{id}}.check(t, diagnoseScript(t, script("3.4.0", false, true)))
}

// TestLeaderWithoutToken: a member that received a snapshot leads a term in which leases are granted and none is
// revoked.
func TestLeaderWithoutToken(t *testing.T) {
	const id = "auth-token-provider-off-after-snapshot"
	type life struct {
		version                    string
		snapshot, restart, revokes bool
	}
	script := func(l life) *clustertest.Script {
		s := withAuth(newScript(l.version))
		for n := int64(1); n <= 4; n++ {
			s.Add(as("app", 0, grantLease(n, 60)))
		}
		until := s.Add(as("app", 0, put("/app/a", "1", 0)))
		s.Add(as("root", 0, revokeLease(1)))
		at := s.Add(as("app", 0, put("/app/a", "2", 0)))
		for i := range s.Members {
			of := clustertest.ScriptMember{Votes: map[uint64]int{3: 1}}
			if i == 1 && l.snapshot {
				of.LogUntil, of.SnapshotAt = until, at
			}
			s.Of[i] = of
		}
		s.Add(as("app", 0, put("/app/b", "1", 0)))
		s.Add(clustertest.Step{Term: 3, Empty: true})
		if l.restart {
			s.Start(1)
		}
		for n := int64(11); n <= 14; n++ {
			s.Add(as("app", 1, grantLease(n, 60)))
		}
		if l.revokes {
			s.Add(as("root", 1, revokeLease(11)))
		}
		s.Add(as("app", 1, put("/app/b", "2", 0)))
		return s
	}
	for name, c := range map[string]struct {
		life
		named bool
	}{
		"3.4": {life{"3.4.0", true, false, false}, true}, "3.5": {life{"3.5.0", true, false, false}, true},
		"fixed line":  {life{"3.6.0", true, false, false}, false},
		"no snapshot": {life{"3.4.0", false, false, false}, false},
		"restarted":   {life{"3.4.0", true, true, false}, false}, "revokes": {life{"3.4.0", true, false, true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			want := told{class: "healthy", holds: []string{"L08", "L03", "K01"}, best: all3}
			if c.named {
				want.causes = []string{id}
			} else {
				want.absent = []string{id}
			}
			want.check(t, diagnoseScript(t, script(c.life)))
		})
	}
}

// TestLogsLostAtOnce: two members whose logs end before their databases; the index of one alone is that of no entry.
func TestLogsLostAtOnce(t *testing.T) {
	const id = "unsafe-no-fsync"
	s := newScript("3.5.0")
	for range 5 {
		s.Add(as("", 0, put("/a", "1", 0)))
	}
	ahead := editDB(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("meta")).Put([]byte("consistent_index"), binary.BigEndian.AppendUint64(nil, 100))
	})
	told{class: "wal-damage", cause: "wal-tail-lost", causes: []string{id}, violated: []string{"D04"}}.check(t,
		diagnoseScript(t, s, nil, ahead, ahead))
	told{class: "db-damage", cause: "cindex-bytes-altered", absent: []string{id}}.check(t,
		diagnoseScript(t, s, nil, ahead))
}
