package cause_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// violations is what must be noticed: each takes a sound set, spoils node1 and names the checks that must be violated.
var violations = []struct {
	name, incident string
	spoil          spoil
	checks         []string
	class          string
}{
	{"flipped byte in the log", "m-healthy-3.5", flipIn("wal/*.wal", 20_000), []string{"W01"}, "wal-damage"},
	{"segment of another member", "m-healthy-3.5", foreignSegment, []string{"W03"}, "wal-damage"},
	{"flipped byte in a raft snapshot", "m-healthy-3.5", flipIn("snap/*.snap", 500), []string{"S01"},
		"snapshot-damage"},
	{"database older than the snapshot", "m-healthy-3.5", editDB(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("meta")).Put([]byte("consistent_index"), binary.BigEndian.AppendUint64(nil, 100))
	}), []string{"S02"}, ""},
	{"dead meta page", "m-healthy-3.5", flipIn("snap/db", 4096+40), []string{"D01"}, "db-damage"},
	{"member row that is no JSON", "m-healthy-3.5", editDB(func(tx *bbolt.Tx) error {
		k, _ := tx.Bucket([]byte("members")).Cursor().First()
		return tx.Bucket([]byte("members")).Put(bytes.Clone(k), []byte("{"))
	}), []string{"D03"}, "db-damage"},
	{"revision taken out of the middle", "m-healthy-3.5",
		editDB(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("key")).Delete(revKey(200)) }),
		[]string{"K04", "K03"}, "data-divergence"},
	{"revisions taken off the end", "k-lagging-node",
		editDB(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("key")).Delete(append(revKey(149), 't')) }),
		[]string{"K03"}, "data-divergence"},
	{"lease taken out", "m-healthy-3.5", editDB(func(tx *bbolt.Tx) error {
		k, _ := tx.Bucket([]byte("lease")).Cursor().First()
		return tx.Bucket([]byte("lease")).Delete(bytes.Clone(k))
	}), []string{"L01", "L02", "K03"}, "latent-divergence"},
	{"user taken out", "m-healthy-3.5", editDB(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("authUsers")).Delete([]byte("bob")) }),
		[]string{"A03", "K03"}, "latent-divergence"},
	{"auth revision raised by hand", "m-healthy-3.6", editDB(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("auth")).Put([]byte("authRevision"), binary.BigEndian.AppendUint64(nil, 99))
	}), []string{"A01", "A02"}, "latent-divergence"},
	{"member taken out of the bucket", "m-healthy-3.6", editDB(func(tx *bbolt.Tx) error {
		k, _ := tx.Bucket([]byte("members")).Cursor().First()
		return tx.Bucket([]byte("members")).Delete(bytes.Clone(k))
	}), []string{"M02", "M03"}, "membership"},
	{"file cut short", "m-healthy-3.5", cutDB(400_000), []string{"D02"}, "db-damage"},
	{"term of another time", "m-healthy-3.5", editDB(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("meta")).Put([]byte("term"), binary.BigEndian.AppendUint64(nil, 7))
	}), []string{"D05"}, "torn-copy"},
	{"promotion missing in the bucket", "m-healthy-3.5",
		clustertest.EditMember("node1", func(m map[string]any) { m["isLearner"] = true }), []string{"M07"},
		"membership"},
	{"removed member still listed", "m-healthy-3.5", editDB(func(tx *bbolt.Tx) error {
		k, _ := tx.Bucket([]byte("members_removed")).Cursor().First()
		id, err := strconv.ParseUint(string(k), 16, 64)
		if err != nil {
			return err
		}
		return tx.Bucket([]byte("members")).Put(bytes.Clone(k),
			fmt.Appendf(nil, `{"id":%d,"peerURLs":["http://127.0.0.1:1"],"name":"ghost"}`, id))
	}), []string{"M07"}, "membership"},
	{"CORRUPT alarm", "k-lagging-node", editDB(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("alarm")).Put([]byte{8, 1, 16, 2}, nil) }), []string{"M06"}, ""},
}

// causesOf are the causes that a violation must be put down to.
var causesOf = map[string]string{
	"flipped byte in the log":          "wal-crc-mismatch",
	"flipped byte in a raft snapshot":  "snap-file-damaged",
	"database older than the snapshot": "data-dir-rolled-back",
	"auth revision raised by hand":     "auth-revision-unequal",
	"dead meta page":                   "bbolt-meta-damage",
	"file cut short":                   "db-truncated",
	"term of another time":             "wal-and-db-from-different-times",
	"promotion missing in the bucket":  "learner-promotion-not-persisted",
	"removed member still listed":      "zombie-members-v3-bucket",
}

// TestViolations spoils sound sets and wants exactly the named trouble to be found on the spoiled node.
func TestViolations(t *testing.T) {
	for _, v := range violations {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			dir := evidencetest.Copy(t, evidencetest.Incident(t, v.incident))
			v.spoil(t, filepath.Join(dir, "node1", "member"))
			evidencetest.Unchanged(t, dir)
			r := diagnose(t, specsOf(t, dir))
			if r.Verdict.Health != check.Unhealthy {
				t.Errorf("verdict %v %s: %s", r.Verdict.Health, r.Verdict.Class, r.Verdict.Summary)
			}
			for _, id := range v.checks {
				if got := outcome(r, id); got != check.Violated {
					t.Errorf("%s %s, want violated", id, got)
				}
			}
			if v.class != "" && string(r.Verdict.Class) != v.class {
				t.Errorf("class %s (%s), want %s", r.Verdict.Class, r.Verdict.Summary, v.class)
			}
			if want := causesOf[v.name]; want != "" &&
				!slices.ContainsFunc(r.Causes, func(c compare.Cause) bool { return string(c.ID) == want }) {
				t.Errorf("causes %+v, want %s", r.Causes, want)
			}
			everyFindingHasEvidence(t, r)
		})
	}
}

// flipIn flips one bit of the first file that matches.
func flipIn(pattern string, at int64) spoil {
	return func(t *testing.T, node string) {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(node, pattern))
		if err != nil || len(files) == 0 {
			t.Fatal("no file ", pattern, err)
		}
		f, err := os.OpenFile(files[0], os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 1)
		if _, err := f.ReadAt(b, at); err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte{b[0] ^ 0x10}, at); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// foreignSegment puts the segment of node2 behind that of node1.
func foreignSegment(t *testing.T, node string) {
	t.Helper()
	other := filepath.Join(filepath.Dir(filepath.Dir(node)), "node2", "member", "wal",
		"0000000000000000-0000000000000000.wal")
	b, err := os.ReadFile(other)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(node, "wal", "0000000000000001-0000000000000151.wal"), b[:700_000],
		0o600); err != nil {
		t.Fatal(err)
	}
}

func cutDB(size int64) spoil {
	return func(t *testing.T, node string) {
		t.Helper()
		if err := os.Truncate(filepath.Join(node, "snap", "db"), size); err != nil {
			t.Fatal(err)
		}
	}
}
