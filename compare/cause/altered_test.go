package cause_test

import (
	"bytes"
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/bbolt"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// flipIndex raises a bit of the consistent index.
func flipIndex(was uint64, bit int) spoil { return setIndex(was | 1<<bit) }

// TestIndexAltered: a consistent index that a flipped bit raised beyond the log is told of that member alone; an index
// ahead of the log for another reason is what it was.
func TestIndexAltered(t *testing.T) {
	const id = "cindex-bytes-altered"
	bad := func(certainty string) told {
		return told{class: "db-damage", cause: id, certainty: certainty, violated: []string{"C05"},
			holds:  []string{"R07", "D04", "R02", "K03", "K01"},
			absent: []string{"wal-tail-lost", "committed-entry-below-quorum"}}
	}
	tail := told{class: "wal-damage", cause: "wal-tail-lost", violated: []string{"D04"}, holds: []string{"C05"},
		absent: []string{id}}
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
		"several bits, within reach":    {setIndex(smallLast + 300), false, bad("proof")},
		"several bits, alone":           {setIndex(smallLast + 300), true, tail},
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
			specs := dirSpecs(dirs)
			if c.want.best = []string{"node1", "node3"}; c.alone {
				specs, c.want.best = specs[1:2], nil
			} else if c.spoil == nil {
				c.want.best = all3
			}
			r := diagnose(t, specs)
			everyFindingHasEvidence(t, r)
			c.want.check(t, r)
			for _, f := range r.Findings {
				if c.want.cause == id && f.Severity.Rank() >= check.Warning.Rank() &&
					!slices.Equal(f.Members, []string{"node2"}) {
					t.Errorf("%s blames %v: %s", f.ID, f.Members, f.Title)
				}
			}
		})
	}
}

// TestIndexAlteredBesideOthers: the member lags, and the others' logs reach beyond the altered index; or the log is
// idle, so that a lost tail would have left nothing either.
func TestIndexAlteredBesideOthers(t *testing.T) {
	const id = "cindex-bytes-altered"
	dir := evidencetest.Copy(t, evidencetest.Incident(t, "k-lagging-node"))
	specs := specsOf(t, dir)
	m := diagnose(t, specs[1:2]).Members[0]
	flipIndex(m.AppliedIndex, 6)(t, filepath.Join(specs[1].Where, "member"))
	r := diagnose(t, specs)
	told{class: "db-damage", cause: id, violated: []string{"C05"}, holds: []string{"R07", "D04", "K03", "K01"}}.check(t,
		r)

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

// spoilRow puts a byte into the value of a row, or takes the end off its key.
func spoilRow(bucket string, n int, key bool) spoil {
	return editDB(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(bucket))
		c := b.Cursor()
		k, v := c.First()
		for ; n > 0; n-- {
			k, v = c.Next()
		}
		k, v = bytes.Clone(k), bytes.Clone(v)
		if key {
			if err := b.Delete(k); err != nil {
				return err
			}
			return b.Put(k[:len(k)-3], v)
		}
		v[0] = 0xff
		return b.Put(k, v)
	})
}

// TestRowDoesNotDecode: the pages are in order and a row is none any more. What stands there is told with page, offset
// and key, of the one member; a row that decodes to something else is no such damage.
func TestRowDoesNotDecode(t *testing.T) {
	page := told{class: "db-damage", cause: "bbolt-page-damage", certainty: "strong", violated: []string{"D03"},
		holds:  []string{"D02", "K04"},
		absent: []string{"unexplained-first-divergence", "auth-structure-broken"}}
	record := told{class: "db-damage", cause: "mvcc-record-contradiction", certainty: "proof",
		violated: []string{"K04"}, holds: []string{"D02", "D03"},
		absent: []string{"unexplained-first-divergence", "value-bytes-altered", "bbolt-page-damage"}}
	other := editDB(func(tx *bbolt.Tx) error {
		// the lease with another TTL
		return tx.Bucket([]byte("lease")).Put(leaseRow(77), []byte{0x08, 0x4d, 0x10, 0x0a})
	})
	for name, c := range map[string]struct {
		spoil spoil
		check string
		want  told
	}{
		"members":           {spoilRow("members", 1, false), "D03", page},
		"a user":            {spoilRow("authUsers", 1, false), "D03", page},
		"a role":            {spoilRow("authRoles", 0, false), "D03", page},
		"lease":             {spoilRow("lease", 0, false), "D03", page},
		"cluster version":   {spoilRow("cluster", 0, false), "D03", page},
		"value of a record": {spoilRow("key", 2, false), "K04", record},
		"key of a record":   {spoilRow("key", 2, true), "K04", record},
		"another TTL": {other, "", told{class: "latent-divergence", cause: "unexplained-first-divergence",
			holds: []string{"D03"}, absent: []string{"bbolt-page-damage"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := withAuth(newScript("3.5.0"))
			s.Add(as("app", 0, grantLease(77, 600)))
			for range 5 {
				s.Add(as("app", 0, put("/app/a", "1", 0)))
			}
			if c.check != "" {
				c.want.best = []string{"node1", "node3"}
			}
			r := diagnoseScript(t, s, nil, c.spoil)
			c.want.check(t, r)
			for _, f := range findings(r, "", c.check) {
				e := f.Evidence[0]
				if !slices.Equal(f.Members, []string{"node2"}) || e.Page == nil || e.Offset == nil || e.Bucket == "" ||
					e.Show.IsZero() {
					t.Errorf("%s of %v: %+v", f.Title, f.Members, e)
				}
			}
		})
	}
}
