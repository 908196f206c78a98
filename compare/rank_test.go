package compare_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// firstRow changes the first row of a bucket; nil deletes it.
func firstRow(bucket string, value func([]byte) []byte) clustertest.Damage {
	return clustertest.EditDB(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(bucket))
		k, v := b.Cursor().First()
		if k == nil {
			return fmt.Errorf("bucket %s has no row", bucket)
		}
		k, v = bytes.Clone(k), bytes.Clone(v)
		if value == nil {
			return b.Delete(k)
		}
		return b.Put(k, value(v))
	})
}

// row puts a row into a bucket.
func row(bucket string, key, value []byte) clustertest.Damage {
	return clustertest.EditDB(func(tx *bbolt.Tx) error { return tx.Bucket([]byte(bucket)).Put(key, value) })
}

// raised is an auth revision far above every real one.
var raised = binary.BigEndian.AppendUint64(nil, 90)

// contentFaults change one thing of what a database holds, in every bucket that members of a cluster share.
var contentFaults = map[string]clustertest.Damage{
	"a lease is gone":             firstRow("lease", nil),
	"a user is gone":              firstRow("authUsers", nil),
	"a role is gone":              firstRow("authRoles", nil),
	"auth is off":                 row("auth", []byte("authEnabled"), []byte{0}),
	"the auth revision is higher": row("auth", []byte("authRevision"), raised),
	"the alarm is gone":           firstRow("alarm", nil),
	"another peer URL": clustertest.EditMember("node4",
		func(m map[string]any) { m["peerURLs"] = []string{"http://127.0.0.9:9"} }),
	"a removed member is forgotten": firstRow("members_removed", nil),
	"a value is altered":            alteredValue,
}

// alteredValue changes the last byte of the value of the newest record that has one.
var alteredValue = clustertest.EditDB(func(tx *bbolt.Tx) error {
	b := tx.Bucket([]byte("key"))
	c := b.Cursor()
	for k, v := c.Last(); k != nil; k, v = c.Prev() {
		var kv mvccpb.KeyValue
		if err := kv.Unmarshal(v); err != nil || len(kv.Value) == 0 {
			continue
		}
		kv.Value[len(kv.Value)-1] ^= 1
		out, err := kv.Marshal()
		if err != nil {
			return err
		}
		return b.Put(bytes.Clone(k), out)
	}
	return fmt.Errorf("no record with a value")
})

// TestRankingCountsAllContent: a member of which anything differs that the log decides is never among the best, and the
// sound ones are, in every order of the arguments.
func TestRankingCountsAllContent(t *testing.T) {
	for name, spoil := range contentFaults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := evidencetest.Copy(t, evidencetest.Incident(t, "m-healthy-3.6"))
			spoil(t, filepath.Join(dir, "node2", "member"))
			r := diagnose(t, specsOf(t, dir))
			if r.Verdict.Class == "healthy" {
				t.Errorf("healthy: %s", r.Verdict.Summary)
			}
			if got := best(r); !slices.Equal(got, []string{"node1", "node4"}) {
				t.Errorf("best %v; class %s: %s", got, r.Verdict.Class, r.Verdict.Summary)
			}
			sameInAnyOrder(t, specsOf(t, dir))
		})
	}
}

// TestMajorityDoesNotOutvoteTheLog: where two of three members hold the same altered content, the third, whose database
// fits the log, is the best.
func TestMajorityDoesNotOutvoteTheLog(t *testing.T) {
	for name, spoil := range contentFaults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := evidencetest.Copy(t, evidencetest.Incident(t, "m-healthy-3.6"))
			spoil(t, filepath.Join(dir, "node1", "member"))
			spoil(t, filepath.Join(dir, "node2", "member"))
			r := diagnose(t, specsOf(t, dir))
			if got := best(r); !slices.Equal(got, []string{"node4"}) {
				t.Errorf("best %v; class %s: %s", got, r.Verdict.Class, r.Verdict.Summary)
			}
		})
	}
}

// TestMajorityCanBeWrong: two of three members skipped an entry that was acknowledged; the third is the one to keep.
func TestMajorityCanBeWrong(t *testing.T) {
	s := clustertest.Synth{Members: 3, Entries: 80, Keys: 20, Value: 20, Starts: map[int]int{0: 0, 1: 1, 2: 2},
		Skip: map[int]map[int]bool{1: {40: true}, 2: {40: true}}}
	dirs := s.Write(t, t.TempDir())
	evidencetest.Unchanged(t, dirs...)
	if r := diagnose(t, dirSpecs(dirs)); !slices.Equal(r.Best.Members, []string{"node1"}) ||
		r.Best.Lost.CommittedEntries != 0 {
		t.Errorf("best %v, lost %+v: %s", r.Best.Members, r.Best.Lost, r.Best.Why)
	}
}

// best are the best members by name, in order.
func best(r *compare.Report) []string {
	if r.Best == nil {
		return nil
	}
	return slices.Sorted(slices.Values(r.Best.Members))
}
