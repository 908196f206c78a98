package cause_test

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/bbolt"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/lease/leasepb"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// Offsets in a meta page behind its header, see package dumpdb.
const (
	metaRoot, metaFreelist, metaTxid, metaSum = 16, 32, 48, 56
)

// setMetaPage puts a page number into the newest meta page of a database and makes its checksum fit.
func setMetaPage(t *testing.T, file string, field int64, page uint64) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	var b []byte
	var at int64
	for p := range int64(2) {
		m := make([]byte, metaSum+8)
		if _, err := f.ReadAt(m, p*4096+16); err != nil {
			t.Fatal(err)
		}
		if b == nil || binary.LittleEndian.Uint64(m[metaTxid:]) > binary.LittleEndian.Uint64(b[metaTxid:]) {
			b, at = m, p*4096+16
		}
	}
	binary.LittleEndian.PutUint64(b[field:], page)
	h := fnv.New64a()
	_, _ = h.Write(b[:metaSum])
	binary.LittleEndian.PutUint64(b[metaSum:], h.Sum64())
	if _, err := f.WriteAt(b, at); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// keyLeaf is a leaf page of bucket key.
func keyLeaf(t *testing.T, file string) uint64 {
	t.Helper()
	db, err := dumpdb.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for r, err := range db.Revisions() {
		if err != nil {
			t.Fatal(err)
		}
		return r.Page
	}
	t.Fatal("no record")
	return 0
}

func pointMetaAt(field int64) spoil {
	return func(t *testing.T, node string) {
		t.Helper()
		file := filepath.Join(node, "snap", "db")
		setMetaPage(t, file, field, keyLeaf(t, file))
	}
}

// TestPagesOfAnotherMoment: what the meta page names is no root and no freelist.
func TestPagesOfAnotherMoment(t *testing.T) {
	for name, c := range map[string]fileCase{
		"root": {spoil: pointMetaAt(metaRoot), class: "torn-copy", cause: "bucket-names-are-revisions",
			certainty: "strong", checks: []string{"D06"},
			notCauses: []string{"bbolt-page-damage", "bbolt-meta-damage"}, best: []string{"node1", "node3"}},
		"freelist of 3.2": {spoil: both(asVersion("3.2.0"), pointMetaAt(metaFreelist)), class: "db-damage",
			cause: "bbolt-freelist-defects-2017", certainty: "proof",
			checks: []string{"D02"}, notCauses: []string{"bbolt-page-damage"}},
		"freelist of 3.5": {spoil: pointMetaAt(metaFreelist), class: "db-damage", cause: "bbolt-freelist-defects-2017",
			certainty: "hint", checks: []string{"D02"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := small()
			s.Entries, s.Value = 300, 100
			dirs := s.Write(t, t.TempDir())
			c.spoil(t, filepath.Join(dirs[1], "member"))
			evidencetest.Unchanged(t, dirs...)
			r := diagnose(t, dirSpecs(dirs))
			c.judge(t, r)
			everyFindingHasEvidence(t, r)
		})
	}
}

// TestBackupOfTwoFiles: the trailer of a backup fits, and its pages do not belong to its meta pages. With another
// trailer, or in a database that is no saved snapshot, it is damage of another kind.
func TestBackupOfTwoFiles(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, b []byte) []byte
		cause string
	}{
		"pages of another file": {func(t *testing.T, b []byte) []byte { return resum(otherPage(t, b)) },
			"backup-races-rename"},
		"changed afterwards": {otherPage, "backup-hash-mismatch"},
		"metas of a live file": {func(t *testing.T, b []byte) []byte {
			binary.LittleEndian.PutUint64(b[4096+16+metaTxid:], 1) // the transaction ID of page 1
			h := fnv.New64a()
			_, _ = h.Write(b[4096+16 : 4096+16+metaSum])
			binary.LittleEndian.PutUint64(b[4096+16+metaSum:], h.Sum64())
			return resum(otherPage(t, b))
		}, "bbolt-page-damage"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := evidencetest.Copy(t, evidencetest.Incident(t, "o-backup-good"))
			file := filepath.Join(dir, "backup.db")
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, c.spoil(t, b), 0o600); err != nil {
				t.Fatal(err)
			}
			evidencetest.Unchanged(t, dir)
			r := diagnose(t, []evidence.Spec{{Name: "backup", Where: file}})
			claimed := slices.ContainsFunc(r.Causes,
				func(k compare.Cause) bool { return k.ID == "backup-races-rename" })
			if r.Verdict.Class != "backup-damaged" || claimed != (c.cause == "backup-races-rename") ||
				!slices.ContainsFunc(r.Causes, func(k compare.Cause) bool { return string(k.ID) == c.cause }) {
				t.Errorf("%s %+v, want %s", r.Verdict.Class, r.Causes, c.cause)
			}
			if claimed && string(*r.Verdict.Cause) != c.cause {
				t.Errorf("the verdict names %s", *r.Verdict.Cause)
			}
		})
	}
}

// otherPage puts the first leaf page of bucket key in the place of the next.
func otherPage(t *testing.T, b []byte) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "db")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := dumpdb.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	first := int64(-1)
	for r, err := range db.Revisions() {
		if err != nil {
			t.Fatal(err)
		}
		at := int64(r.Page) * 4096
		if first < 0 {
			first = at
		}
		if at != first {
			copy(b[at:at+4096], b[first:first+4096])
			return b
		}
	}
	t.Fatal("bucket key has one page only")
	return nil
}

// resum makes the trailer fit.
func resum(b []byte) []byte {
	sum := sha256.Sum256(b[:len(b)-sha256.Size])
	return append(b[:len(b)-sha256.Size], sum[:]...)
}

// TestPartOfATransaction: node2 holds the first operations of a transaction only.
func TestPartOfATransaction(t *testing.T) {
	script := func(version string, restart bool, cut int) *clustertest.Script {
		s := newScript(version)
		for i := range 5 {
			s.Add(as("", 0, put(fmt.Sprint("/k", i), "v", 0)))
		}
		var ops []*pb.RequestOp
		for i := range 3 {
			ops = append(ops, &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: fmt.Appendf(nil, "/t%d", i), Value: []byte("x")}}})
		}
		st := as("", 0, &pb.InternalRaftRequest{Txn: &pb.TxnRequest{Success: ops}})
		if cut < 3 {
			st.Cut = map[int]int{1: cut}
		}
		s.Add(st)
		if restart {
			s.Start(1)
		}
		for i := range 5 {
			s.Add(as("", 0, put(fmt.Sprint("/l", i), "v", 0)))
		}
		return s
	}
	for name, c := range map[string]struct {
		s    *clustertest.Script
		want told
	}{
		"cut after two": {script("3.5.0", true, 2), told{class: "data-divergence", cause: "partial-write-txn",
			certainty: "strong", violated: []string{"K03"},
			best: []string{"node1", "node3"}, absent: []string{"value-bytes-altered", "cindex-ahead-of-apply"}}},
		"whole": {script("3.5.0", true, 3),
			told{class: "healthy", absent: []string{"partial-write-txn"}}},
		"without a restart": {script("3.5.0", false, 1),
			told{class: "data-divergence", cause: "unexplained-first-divergence",
				absent: []string{"partial-write-txn", "value-bytes-altered"}}},
		"of a line without the defect": {script("3.6.0", true, 2),
			told{class: "data-divergence", cause: "unexplained-first-divergence",
				absent: []string{"partial-write-txn"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.want.check(t, diagnoseScript(t, c.s))
		})
	}
}

// TestRowsThatCameBack: superseded revisions below a finished compaction, and a lease that was revoked, are there
// again.
func TestRowsThatCameBack(t *testing.T) {
	script := func(version string) *clustertest.Script {
		s := newScript(version)
		s.Add(as("", 0, grantLease(77, 600)))
		for i := range 20 {
			s.Add(as("", 0, put(fmt.Sprint("/k", i%4), fmt.Sprint("v", i), 0)))
		}
		s.Add(as("", 0, revokeLease(77)))
		s.Add(as("", 0, &pb.InternalRaftRequest{Compaction: &pb.CompactionRequest{Revision: 15}}))
		s.Add(as("", 0, put("/k9", "last", 0)))
		return s
	}
	old := editDB(func(tx *bbolt.Tx) error { // /k1 at revision 3, which 15 has superseded
		kv := mvccpb.KeyValue{Key: []byte("/k1"), Value: []byte("v1"), CreateRevision: 3, ModRevision: 3, Version: 1}
		data, err := kv.Marshal()
		if err != nil {
			return err
		}
		return tx.Bucket([]byte("key")).Put(revKey(3), data)
	})
	lease := editDB(func(tx *bbolt.Tx) error {
		data, err := (&leasepb.Lease{ID: 77, TTL: 600}).Marshal()
		if err != nil {
			return err
		}
		return tx.Bucket([]byte("lease")).Put(binary.BigEndian.AppendUint64(nil, 77), data)
	})
	unfinished := editDB(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("meta")).Put([]byte("finishedCompactRev"), revKey(5))
	})
	for name, c := range map[string]struct {
		version string
		spoil   spoil
		want    told
	}{
		"revisions": {"3.4.0", old,
			told{class: "db-damage", cause: "defrag-orphan-merged", certainty: "strong", violated: []string{"D07"},
				best: []string{"node1", "node3"}}},
		"revisions and lease": {"3.4.0", both(old, lease),
			told{class: "db-damage", cause: "defrag-orphan-merged", certainty: "proof",
				violated: []string{"D07", "K03"}}},
		"unfinished": {"3.4.0", both(old, unfinished),
			told{class: "compaction-skew", holds: []string{"D07"}, absent: []string{"defrag-orphan-merged"}}},
		"of 3.5": {"3.5.0", old,
			told{class: "db-damage", violated: []string{"D07"}, absent: []string{"defrag-orphan-merged"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.want.check(t, diagnoseScript(t, script(c.version), nil, c.spoil))
		})
	}
	t.Run("nothing", func(t *testing.T) {
		if r := diagnoseScript(t, script("3.4.0")); outcome(r, "D07") != check.Holds || r.Verdict.Class != "healthy" {
			t.Errorf("D07 %s, %s", outcome(r, "D07"), r.Verdict.Class)
		}
	})
}

// TestFreelistStored: a database that another program opened for writing stores a freelist, which servers since 3.3 do
// not.
func TestFreelistStored(t *testing.T) {
	for version, want := range map[string][]string{"3.4.0": {"db-in-use-by-second-tool"},
		"3.6.0": {"db-in-use-by-second-tool"}, "": nil} {
		s := small()
		dirs := s.Write(t, t.TempDir())
		if version != "" {
			for _, d := range dirs {
				asVersion(version)(t, filepath.Join(d, "member"))
			}
			db, err := bbolt.Open(filepath.Join(dirs[1], "member", "snap", "db"), 0o600, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := db.Update(func(*bbolt.Tx) error { return nil }); err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		}
		evidencetest.Unchanged(t, dirs...)
		r := diagnose(t, dirSpecs(dirs))
		var have []string
		for _, k := range r.Causes {
			have = append(have, string(k.ID))
		}
		if !slices.Equal(have, want) || r.Verdict.Class != "healthy" {
			t.Errorf("%s: causes %v, want %v: %s", version, have, want, r.Verdict.Summary)
		}
		// a server on another system stores one too
		if alone := diagnose(t, dirSpecs(dirs[1:2])); len(alone.Causes) > 0 {
			t.Errorf("%s: %s of one member alone", version, alone.Causes[0].ID)
		}
	}
}

// TestZeroPagesAtTheEnd: what a file system that lost the last writes leaves is told as a hint; zeros elsewhere are
// not.
func TestZeroPagesAtTheEnd(t *testing.T) {
	for name, last := range map[string]bool{"at the end": true, "at the front": false} {
		t.Run(name, func(t *testing.T) {
			s := small()
			s.Entries, s.Value = 1000, 100
			dirs := s.Write(t, t.TempDir())
			file := filepath.Join(dirs[1], "member", "snap", "db")
			db, err := dumpdb.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			page := uint64(0)
			for r, err := range db.Revisions() {
				if err != nil {
					t.Fatal(err)
				}
				if page == 0 || last {
					page = max(page, r.Page)
				}
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			writeZeros(t, file, int64(page)*4096, int64(page+1)*4096)
			evidencetest.Unchanged(t, dirs...)
			r := diagnose(t, dirSpecs(dirs))
			told := slices.ContainsFunc(r.Causes, func(k compare.Cause) bool { return k.ID == "ext4-fast-commit" })
			if told != last || *r.Verdict.Cause != "bbolt-page-damage" {
				t.Errorf("told %v, cause %s: %+v", told, *r.Verdict.Cause, r.Causes)
			}
		})
	}
}
