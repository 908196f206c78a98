package diff_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// opened returns the members of an incident with their replay.
func opened(t *testing.T, incident string) ([]*evidence.Member, *replay.Result) {
	t.Helper()
	dir := evidencetest.Incident(t, incident)
	evidencetest.Unchanged(t, dir)
	var specs []evidence.Spec
	for _, n := range []string{"node1", "node2", "node3"} {
		specs = append(specs, evidence.Spec{Name: n, Where: filepath.Join(dir, n)})
	}
	set, err := evidence.Open(context.Background(), specs, evidence.Options{Deep: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = set.Close() })
	rp, err := replay.Run(context.Background(), set.Members, replay.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return set.Members, rp
}

// TestPartsDoNotChangeTheResult: keys taken in many small parts give the rows and counts of one pass.
func TestPartsDoNotChangeTheResult(t *testing.T) {
	for _, incident := range []string{"a-auth-revision-replay", "n-silent-kv-divergence", "l-compaction-skew"} {
		members, rp := opened(t, incident)
		run := func(o diff.Options) []diff.Bucket {
			r, err := diff.Run(context.Background(), members, rp, o)
			if err != nil {
				t.Fatal(err)
			}
			return r.Buckets
		}
		for _, rows := range []int{3, 1000} {
			want := run(diff.Options{MaxRows: rows, Values: true})
			if d := cmp.Diff(want, run(diff.Options{MaxRows: rows, Values: true, MaxMarks: 7})); d != "" {
				t.Errorf("%s, %d rows: %s", incident, rows, d)
			}
		}
	}
}

// TestHashesDoNotChangeTheResult: where hashes spare the comparison of keys, also of members that have gone on, it
// would have found nothing.
func TestHashesDoNotChangeTheResult(t *testing.T) {
	for _, incident := range []string{"a-auth-revision-replay", "k-lagging-node", "l-compaction-skew",
		"n-silent-kv-divergence"} {
		members, rp := opened(t, incident)
		run := func(members []*evidence.Member) []diff.Bucket {
			r, err := diff.Run(context.Background(), members, rp, diff.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return r.Buckets
		}
		var without []*evidence.Member
		for _, m := range members {
			own, db := *m, *m.DB
			own.DB, db.Hashes, db.Content = &db, nil, nil
			without = append(without, &own)
		}
		if d := cmp.Diff(run(without), run(members)); d != "" {
			t.Errorf("%s: %s", incident, d)
		}
	}
}

// TestChangesTurnOneMemberIntoTheOther applies the changes to what one member holds and expects what the other holds.
func TestChangesTurnOneMemberIntoTheOther(t *testing.T) {
	members, rp := opened(t, "a-auth-revision-replay")
	r, err := diff.Run(context.Background(), members, rp, diff.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, marks := range []int64{0, 5} {
		for _, pair := range [][2]int{{0, 2}, {2, 0}, {1, 2}} {
			have, want, n := content(t, r, pair[0]), content(t, r, pair[1]), 0
			err := r.Changes(context.Background(), pair[0], pair[1], diff.Options{MaxMarks: marks},
				func(c diff.Change) error {
					n++
					if c.Delete {
						delete(have, string(c.Key))
					} else {
						have[string(c.Key)] = fmt.Sprint(c.Lease, " ", string(c.Value))
					}
					return nil
				})
			if err != nil || n == 0 {
				t.Fatalf("%v: %d changes, %v", pair, n, err)
			}
			if d := cmp.Diff(want, have); d != "" {
				t.Errorf("%v: %s", pair, d)
			}
		}
	}
}

// content is what a member holds at its revision of the common index, read the plain way.
func content(t *testing.T, r *diff.Result, i int) map[string]string {
	t.Helper()
	out := map[string]string{}
	for rev, err := range r.Members[i].DB.Handle.Revisions() {
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case rev.Main > r.Revs[i]:
		case rev.Tombstone:
			delete(out, string(rev.KV.Key))
		default:
			out[string(rev.KV.Key)] = fmt.Sprint(rev.KV.Lease, " ", string(rev.KV.Value))
		}
	}
	return out
}

// TestLaggingThirdIsLeftOutOfARow: the rows of members at one index are compared although a third stands elsewhere and
// no log tells what lies between.
func TestLaggingThirdIsLeftOutOfARow(t *testing.T) {
	members, rp := opened(t, "n-silent-kv-divergence")
	for _, m := range members {
		m.AppliedMin, m.AppliedMax = members[0].AppliedMin, members[0].AppliedMin
		m.DB.Leases = []dumpdb.Lease{{ID: 7, TTL: 60}, {ID: 8, TTL: 60}}
	}
	members[2].AppliedMin -= 20
	members[2].AppliedMax -= 20
	members[2].DB.Leases = members[2].DB.Leases[:1]
	rp.First = members[0].AppliedMin // as if purged
	run := func() *diff.Bucket {
		r, err := diff.Run(context.Background(), members, rp, diff.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return r.Find("lease")
	}
	if b := run(); !b.Equal.Certain() || b.Limits == "" || b.Moved == 0 {
		t.Errorf("two equal and one that lags: %+v", b)
	}
	members[0].DB.Leases = members[0].DB.Leases[1:]
	b := run()
	if !b.Equal.Excluded() || len(b.Rows) == 0 {
		t.Fatalf("one that differs from its level: %+v", b)
	}
	if row := b.Rows[0]; row.Cells[0] != nil || row.Cells[1] == nil || len(row.Out) != 1 || row.Out[0] != 2 {
		t.Errorf("%+v", row)
	}
}
