package compare_test

import (
	"path/filepath"
	"slices"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// flipIndex raises a bit of the consistent index.
func flipIndex(was uint64, bit int) spoil { return setIndex(was | 1<<bit) }

// TestIndexAltered: a consistent index that a flipped bit raised beyond the log is told of that member alone; an index ahead of the log
// for another reason is what it was.
func TestIndexAltered(t *testing.T) {
	const id = "cindex-bytes-altered"
	bad := func(certainty string) told {
		return told{class: "db-damage", cause: id, certainty: certainty, violated: []string{"C05"}, holds: []string{"R07", "D04", "R02", "K03", "K01"},
			absent: []string{"wal-tail-lost", "committed-entry-below-quorum"}}
	}
	tail := told{class: "wal-damage", cause: "wal-tail-lost", violated: []string{"D04"}, holds: []string{"C05"}, absent: []string{id}}
	none := told{class: "healthy", holds: []string{"C05"}, absent: []string{id}}
	for name, c := range map[string]struct {
		spoil spoil
		alone bool
		want  told
	}{
		"bit 8":                         {flipIndex(smallLast, 8), false, bad("proof")},
		"bit 12":                        {flipIndex(smallLast, 12), false, bad("proof")},
		"bit 63":                        {flipIndex(smallLast, 63), false, bad("proof")},
		"bit 12 alone":                  {flipIndex(smallLast, 12), true, bad("strong")},
		"bit 40 alone":                  {flipIndex(smallLast, 40), true, bad("proof")},
		"all bytes":                     {setIndex(1<<64 - 1), true, bad("proof")},
		"several bits, within reach":    {setIndex(smallLast + 300), false, tail},
		"a few ahead":                   {setIndex(smallLast + 4), false, tail},
		"one bit, and the log lost all": {both(flipIndex(smallLast, 12), zeroFrom(20)), false, tail},
		"untouched":                     {nil, false, none},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dirs := small().Write(t, t.TempDir())
			if c.spoil != nil {
				c.spoil(t, filepath.Join(dirs[1], "member"))
			}
			evidencetest.Unchanged(t, dirs...)
			specs := synthSpecs(dirs)
			if c.want.best = []string{"node1", "node3"}; c.alone {
				specs, c.want.best = specs[1:2], nil
			} else if c.spoil == nil {
				c.want.best = all3
			}
			r := diagnose(t, specs)
			everyFindingHasEvidence(t, r)
			c.want.check(t, r)
			for _, f := range r.Findings {
				if c.want.cause == id && f.Severity.Rank() >= check.Warning.Rank() && !slices.Equal(f.Members, []string{"node2"}) {
					t.Errorf("%s blames %v: %s", f.ID, f.Members, f.Title)
				}
			}
		})
	}
}

// TestIndexAlteredBesideOthers: the member lags, and the others' logs reach beyond the altered index; or the log is idle, so that a lost
// tail would have left nothing either.
func TestIndexAlteredBesideOthers(t *testing.T) {
	const id = "cindex-bytes-altered"
	dir := evidencetest.Copy(t, evidencetest.Incident(t, "k-lagging-node"))
	specs := specsOf(t, dir)
	m := diagnose(t, specs[1:2]).Members[0]
	flipIndex(m.AppliedIndex, 6)(t, filepath.Join(specs[1].Where, "member"))
	r := diagnose(t, specs)
	told{class: "db-damage", cause: id, violated: []string{"C05"}, holds: []string{"R07", "D04", "K03", "K01"}}.check(t, r)

	idle := newScript("3.5.0")
	idle.Add(as("", 0, put("/a", "1", 0)))
	for range 200 {
		idle.Add(as("", 0, &pb.InternalRaftRequest{Range: &pb.RangeRequest{Key: []byte("/a")}}))
	}
	dirs := idle.Write(t, t.TempDir())
	flipIndex(idle.Index(200), 9)(t, filepath.Join(dirs[0], "member"))
	r = diagnose(t, []evidence.Spec{{Name: "node1", Where: dirs[0]}})
	told{class: "wal-damage", cause: "wal-tail-lost", holds: []string{"C05"}, absent: []string{id}}.check(t, r)
}
