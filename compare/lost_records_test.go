package compare_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/wal"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence/casetest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

func upTo(first, last int64) (revs []int64) {
	for rev := first; rev <= last; rev++ {
		revs = append(revs, rev)
	}
	return revs
}

// withAltered writes data dirs of which some hold altered records. A member in twice has no trace of what its records
// were before.
func withAltered(t *testing.T, s clustertest.Synth, altered map[int][]int64, twice ...int) []string {
	t.Helper()
	dirs := s.Write(t, t.TempDir())
	for i, revs := range altered {
		edit := casetest.EditDBOnce
		if slices.Contains(twice, i) {
			edit = casetest.EditDB
		}
		edit(t, dirs[i], casetest.AlterRecords(revs...))
	}
	return dirs
}

// TestLostRecords: a record that is proven wrong on the kept member is a loss, with the value that is right and who
// holds it. Without a proof it is none, and the exact number of such records is named. The first writes are
// no longer in the log of the purged sets.
func TestLostRecords(t *testing.T) {
	whole := clustertest.Synth{Members: 3, Entries: 20, Keys: 5, Value: 20}
	purged := clustertest.Synth{Members: 3, Entries: 200, Keys: 5, Value: 20, Purged: 190}
	once := clustertest.Synth{Members: 3, Entries: 200, Keys: 200, Value: 20, Purged: 190}
	was := wal.SegmentSizeBytes
	wal.SegmentSizeBytes = 1 << 10 // a segment is removed as a whole
	defer func() { wal.SegmentSizeBytes = was }()
	only := func(i int, revs ...int64) map[int][]int64 { return map[int][]int64{i: revs} }
	for name, c := range map[string]struct {
		set              clustertest.Synth
		altered          map[int][]int64
		twice            []int
		says             string
		count, ofEntries int
		unproven         string
	}{
		"none": {set: purged, says: "no committed write"},
		"a superseded value, by the log": {set: whole, altered: only(0, 9), count: 1, ofEntries: 1,
			says: "1 committed write on 1 key"},
		"a live value, by the log": {set: whole, altered: only(0, 20), count: 1, ofEntries: 1,
			says: "1 committed write on 1 key"},
		"a superseded value, by the transaction before": {set: purged, altered: only(0, 4), count: 1,
			says: "the right content of 1 record that is proven wrong on it"},
		"live values, by the transaction before": {set: once, altered: only(0, 4, 5), count: 2,
			says: "the right content of 2 records that are proven wrong on it"},
		"both": {set: once, altered: only(0, 4, 200), count: 2, ofEntries: 1,
			says: "1 committed write on 1 key, and the right content of 1 record that is proven wrong on it"},
		"a superseded one next to live keys that differ": {set: purged, altered: map[int][]int64{0: {4}, 1: {200, 201},
			2: {198, 199}}, count: 1, says: "the right content of 1 record that is proven wrong on it"},
		"values up to which the log does not reach, and with which it begins": {set: purged,
			altered: map[int][]int64{0: upTo(100, 110)}, twice: []int{0}, count: 9, ofEntries: 9,
			says: "9 committed writes on 5 keys", unproven: "2 superseded records of node1 and other members differ"},
		"of another member": {set: purged, altered: only(1, 4), says: "no committed write"},
		"a superseded value without proof": {set: purged, altered: only(0, 4), twice: []int{0},
			says: "no committed write", unproven: "1 superseded record of node1 and other members differ"},
		"a live value without proof": {set: once, altered: only(0, 4), twice: []int{0}, says: "no committed write",
			unproven: "keys differ between members"},
		"more than are listed": {set: purged, altered: map[int][]int64{1: upTo(4, 73), 0: upTo(80, 83)}, count: 4,
			says: "the right content of 4 records that are proven wrong on it"},
		"more than are listed, without proof": {set: purged, altered: map[int][]int64{1: upTo(4, 73), 0: upTo(40, 101)},
			twice: []int{0}, says: "no committed write", unproven: "62 superseded records of node1 and other members differ"},
	} {
		t.Run(name, func(t *testing.T) {
			dirs := withAltered(t, c.set, c.altered, c.twice...)
			t.Parallel()
			r, err := compare.Diagnose(t.Context(), dirSpecs(dirs), compare.Options{Keep: "node1"})
			if err != nil {
				t.Fatal(err)
			}
			l := r.Best.Lost
			if got := strings.Join(l.Unproven, "; "); (got == "") != (c.unproven == "") ||
				!strings.Contains(got, c.unproven) {
				t.Errorf("not proven: %q, want %q", got, c.unproven)
			}
			if l.String() != c.says || l.Records.Count != c.count || l.Records.OfEntries != c.ofEntries ||
				len(l.Records.Rows) != c.count {
				t.Errorf("loses %q, want %q; records %+v", l, c.says, l.Records)
			}
			offered := slices.ContainsFunc(r.Next, func(n compare.Next) bool {
				return !l.Mend.IsZero() && n.Command.Equal(l.Mend) && strings.Contains(n.Text, "mend node1: ")
			})
			if offered != (c.count > 0) || l.Mend.IsZero() != (c.count == 0) {
				t.Errorf("mended by %q, offered %v", l.Mend, offered)
			}
			for i, row := range l.Records.Rows {
				if !slices.Contains(c.altered[0], row.Revision.Main) || row.Bucket != "key" ||
					row.Kept == row.Expected || !slices.Equal(row.HeldBy, []string{"node2", "node3"}) || row.Why == "" ||
					(row.Index > 0) != (c.ofEntries > 0 && i >= c.count-c.ofEntries) {
					t.Errorf("%+v", row)
				}
			}
		})
	}
}

// TestChangedRecordsDecide: of three members one differs in a live key, which nothing decides, and the last transaction
// of another one changed a record: only the third is the best.
func TestChangedRecordsDecide(t *testing.T) {
	was := wal.SegmentSizeBytes
	wal.SegmentSizeBytes = 1 << 10 // a segment is removed as a whole
	defer func() { wal.SegmentSizeBytes = was }()
	dirs := withAltered(t, clustertest.Synth{Members: 3, Entries: 200, Keys: 200, Value: 20, Purged: 190},
		map[int][]int64{0: {4}, 1: {5}}, 0)
	r, err := compare.Diagnose(t.Context(), dirSpecs(dirs), compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(r.Best.Members, []string{"node3"}) {
		t.Errorf("best is %v: %s", r.Best.Members, r.Best.Why)
	}
	for i := range r.Best.Ranking {
		row := &r.Best.Ranking[i]
		if said := strings.Join(row.Reasons, ", "); row.Member == "node2" &&
			(strings.Contains(said, "every") || !slices.Equal(row.NamedBy, []string{"K12-1"})) {
			t.Errorf("node2 %s", said)
		}
	}
	var causes []string
	for i := range r.Causes {
		causes = append(causes, string(r.Causes[i].ID))
	}
	if !slices.Equal(causes, []string{"rows-changed-outside-the-log", "unexplained-first-divergence"}) {
		t.Errorf("causes: %v", causes)
	}
}

// TestLostKeys: a live key below the compact revision that the last transaction of the kept member removed is a loss,
// though its record is not compared with those of other members.
func TestLostKeys(t *testing.T) {
	was := wal.SegmentSizeBytes
	wal.SegmentSizeBytes = 1 << 10 // a segment is removed as a whole
	defer func() { wal.SegmentSizeBytes = was }()
	drop := func(rev int64) func(*bbolt.Tx) error {
		return func(tx *bbolt.Tx) error { return tx.Bucket([]byte("key")).Delete(dumpdb.Rev{Main: rev}.Bytes()) }
	}
	for name, c := range map[string]struct {
		at    []int
		count int
	}{"removed": {[]int{0}, 1}, "another one elsewhere": {[]int{0, 1}, 1}, "only elsewhere": {[]int{1}, 0}} {
		dirs := clustertest.Synth{Members: 2, Entries: 200, Keys: 200, Value: 20, Purged: 190}.Write(t, t.TempDir())
		for _, dir := range dirs {
			casetest.EditDB(t, dir, func(tx *bbolt.Tx) error {
				at := dumpdb.Rev{Main: 100}.Bytes()
				return errors.Join(tx.Bucket([]byte("meta")).Put([]byte("scheduledCompactRev"), at),
					tx.Bucket([]byte("meta")).Put([]byte("finishedCompactRev"), at))
			})
		}
		for _, i := range c.at {
			casetest.EditDBOnce(t, dirs[i], drop(int64(50+i)))
		}
		r, err := compare.Diagnose(t.Context(), dirSpecs(dirs), compare.Options{Keep: "node1"})
		if err != nil {
			t.Fatal(err)
		}
		l := r.Best.Lost
		if l.Records.Count != c.count || len(l.Records.Rows) != c.count || l.Mend.IsZero() != (c.count == 0) {
			t.Errorf("%s: loses %q, records %+v, mended by %q", name, l, l.Records, l.Mend)
		}
		for _, row := range l.Records.Rows {
			if row.Revision.Main != 50 || row.Kept != "absent" || !slices.Equal(row.HeldBy, []string{"node2"}) {
				t.Errorf("%s: %+v", name, row)
			}
		}
		for _, row := range r.Best.Ranking {
			if says := strings.Contains(row.Reasons[0], "holds every"); row.Member == "node1" && says != (c.count == 0) {
				t.Errorf("%s: %q", name, row.Reasons)
			}
		}
	}
}
