package diff

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// TestJudged: the replay judges the records above the revision at which its model of a member began and above the
// highest compact revision; none without a log, or of a member that it did not replay.
func TestJudged(t *testing.T) {
	at := func(revs ...int64) *Row {
		row := &Row{}
		for _, rev := range revs {
			var c *Cell
			if rev > 0 {
				c = &Cell{Mod: rev}
			}
			row.Cells = append(row.Cells, c)
		}
		return row
	}
	for name, c := range map[string]struct {
		row       *Row
		base      [2]int64
		compacted int64
		want      bool
	}{
		"above a base":              {at(5, 5), [2]int64{4, 9}, 0, true},
		"at the base, not above":    {at(5, 5), [2]int64{5, 9}, 0, false},
		"above the base of another": {at(5, 5), [2]int64{9, 4}, 0, true},
		"absent there":              {at(5, 0), [2]int64{9, 4}, 0, false},
		"compacted":                 {at(5, 5), [2]int64{4, 4}, 5, false},
		"not replayed":              {at(5, 5), [2]int64{-1, -1}, 0, false},
	} {
		members := with(evidence.DB{}, evidence.DB{Handle: new(dumpdb.DB)}).Members
		members[1].DB.KV = &dumpdb.KVStats{CompactRev: c.compacted}
		rp := &replay.Result{}
		for _, base := range c.base {
			rp.Members = append(rp.Members, &replay.MemberResult{Checked: base >= 0, BaseRevision: base})
		}
		r := &Result{Members: members, judged: judged(members, rp)}
		if got := r.Judged(c.row); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
		if r.judged = judged(members, nil); r.Judged(c.row) {
			t.Errorf("%s: judged without a log", name)
		}
	}
}
