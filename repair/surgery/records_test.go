package surgery_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/storage/wal"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/casetest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/surgery"
)

// valuesAt returns the values of a data dir at revisions.
func valuesAt(t *testing.T, dir string, revs ...int64) (out []string) {
	t.Helper()
	db, err := dumpdb.Open(filepath.Join(dir, "member", "snap", "db"))
	ok(t, err)
	defer func() { _ = db.Close() }() // only read
	for _, rev := range revs {
		for rec, err := range db.Query(t.Context(), dumpdb.Query{FromRev: rev, ToRev: rev}) {
			ok(t, err)
			out = append(out, string(rec.KV.Value))
		}
	}
	return out
}

// TestManyRecordsOfTheBest: more records than a screen, or than a report lists, are proven wrong, and all of them are
// replaced.
func TestManyRecordsOfTheBest(t *testing.T) {
	for _, n := range []int{160, compare.MaxWrongRecords + 500} {
		t.Run(fmt.Sprint(n), func(t *testing.T) { manyRecordsOfTheBest(t, n) })
	}
}

func manyRecordsOfTheBest(t *testing.T, n int) {
	was := wal.SegmentSizeBytes
	wal.SegmentSizeBytes = max(1<<10, 4*int64(n))
	// A thousand entries later the log does not reach back to the wrong records.
	set := clustertest.Synth{Members: 3, Entries: n + 1240, Keys: n + 1190, Value: 20, Purged: n + 1230}
	dirs := set.Write(t, t.TempDir())
	wal.SegmentSizeBytes = was
	var wrong []int64
	for rev := int64(4); rev < int64(4+n); rev++ {
		wrong = append(wrong, rev)
	}
	right := valuesAt(t, dirs[1], wrong...)
	casetest.EditDBOnce(t, dirs[0], casetest.AlterRecords(wrong...))
	casetest.EditDBOnce(t, dirs[1], casetest.AlterRecords(int64(n+1238), int64(n+1239)))
	casetest.EditDBOnce(t, dirs[2], casetest.AlterRecords(int64(n+1240), int64(n+1241)))
	out, r, err := repair(t, surgery.DB{Proven: true}, dirs[0], dirs[1:])
	ok(t, err)
	if len(r.GivesUp) > 0 || !strings.Contains(strings.Join(r.Did, "\n"), fmt.Sprint(n, " records of bucket key")) {
		t.Errorf("did %q, gives up %q, notes %q", r.Did, r.GivesUp, r.Notes)
	}
	if got := valuesAt(t, out, wrong...); !slices.Equal(got, right) {
		t.Errorf("values %.1000q, want %.1000q", got, right)
	}
}

// TestRecordsOfTheBest: the member that is kept holds a live and a superseded value that are proven wrong, and the
// others are worse. Its wrong records become those of the others; what is right on it and wrong on them stays.
func TestRecordsOfTheBest(t *testing.T) {
	was := wal.SegmentSizeBytes
	wal.SegmentSizeBytes = 1 << 10
	dirs := clustertest.Synth{Members: 3, Entries: 200, Keys: 150, Value: 20, Purged: 190}.Write(t, t.TempDir())
	wal.SegmentSizeBytes = was
	wrong, theirs := []int64{4, 100}, []int64{198, 199, 200, 201} // key 98 is live at revision 100, key 2 not at 4
	right := valuesAt(t, dirs[1], slices.Concat(wrong, theirs)...)
	casetest.EditDBOnce(t, dirs[0], casetest.AlterRecords(wrong...))
	casetest.EditDBOnce(t, dirs[1], casetest.AlterRecords(theirs[:2]...))
	casetest.EditDBOnce(t, dirs[2], casetest.AlterRecords(theirs[2:]...))
	var specs []evidence.Spec
	for _, d := range dirs {
		specs = append(specs, evidence.Spec{Name: filepath.Base(d), Where: d})
	}
	before, err := compare.Diagnose(t.Context(), specs, compare.Options{})
	ok(t, err)
	if l := before.Best.Lost; !slices.Equal(before.Best.Members, []string{"node1"}) || l.Records.Count != len(wrong) ||
		l.CommittedEntries != 0 {
		t.Fatalf("best %v, loses %q", before.Best.Members, l)
	}
	out, r, err := repair(t, surgery.DB{Proven: true}, dirs[0], dirs[1:])
	ok(t, err)
	if len(r.Did) == 0 || !strings.Contains(strings.Join(r.Did, "\n"), "2 records of bucket key that are proven wrong") ||
		len(r.GivesUp) > 0 || r.Unchanged {
		t.Errorf("did %q, gives up %q, notes %q", r.Did, r.GivesUp, r.Notes)
	}
	if got := valuesAt(t, out, slices.Concat(wrong, theirs)...); !slices.Equal(got, right) {
		t.Errorf("values %q, want %q", got, right)
	}
	specs[0].Where = out
	after, err := compare.Diagnose(t.Context(), specs, compare.Options{})
	ok(t, err)
	if l := after.Best.Lost; after.Best.Members[0] != "node1" || !l.None() || len(l.Unproven) > 0 {
		t.Errorf("after: best %v, loses %q, not proven %q", after.Best.Members, l, l.Unproven)
	}
	for _, f := range after.Findings {
		if f.Severity.Rank() >= check.Error.Rank() && f.Alone("node1") {
			t.Errorf("after: %s %s", f.Check, f.Title)
		}
	}
}

// TestRecordsNoOneHolds: without the members that hold the right records nothing is replaced.
func TestRecordsNoOneHolds(t *testing.T) {
	dirs := clustertest.Synth{Members: 3, Entries: 20, Keys: 5, Value: 20}.Write(t, t.TempDir())
	for i, d := range dirs {
		casetest.EditDB(t, d, func(tx *bbolt.Tx) error { // each holds another value
			key := dumpdb.Rev{Main: 9}.Bytes()
			kv := mvccpb.KeyValue{}
			ok(t, kv.Unmarshal(tx.Bucket([]byte("key")).Get(key)))
			kv.Value[0] += byte(i + 1)
			v, err := kv.Marshal()
			ok(t, err)
			return tx.Bucket([]byte("key")).Put(key, v)
		})
		if i > 0 {
			casetest.EditDB(t, d, casetest.AlterRecords(20, 21))
		}
	}
	var refused *refusal.Error
	if _, _, err := repair(t, surgery.DB{Proven: true}, dirs[0], dirs[1:]); !errors.As(err, &refused) ||
		!strings.Contains(err.Error(), "is known to hold the right one") {
		t.Errorf("%v, want a refusal", err)
	}
}
