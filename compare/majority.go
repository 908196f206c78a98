package compare

import "github.com/etcd-medic/etcd-medic/compare/diff"

// againstMajority counts for each member the differing keys in which more than half of the compared members agree with each other and
// not with it. Keys that the replay blames on somebody are left out: there the log has spoken.
func (c *collected) againstMajority(list []standing) {
	if c.in.Diff == nil {
		return
	}
	key := c.in.Diff.Find("key")
	if key == nil {
		return
	}
	told := c.toldByLog()
	for i := range key.Rows {
		row := &key.Rows[i]
		if told[string(row.Key)] {
			continue
		}
		most, takers := c.largestGroup(row)
		if 2*len(most) <= takers {
			continue
		}
		for k := range list {
			if pos := list[k].pos; c.in.Diff.LeftOut[pos] == "" && !sameCell(row.Cells[pos], row.Cells[most[0]]) {
				list[k].minority++
			}
		}
	}
}

// toldByLog are the keys of entries that ended differently on the members, as the replay shows.
func (c *collected) toldByLog() map[string]bool {
	told := map[string]bool{}
	if c.in.Replay == nil {
		return told
	}
	for _, e := range c.in.Replay.Events {
		for _, k := range e.Keys {
			told[k] = true
		}
	}
	return told
}

// largestGroup returns the members that hold the row alike, of the largest such group, and how many were compared.
func (c *collected) largestGroup(row *diff.Row) (most []int, takers int) {
	for i := range row.Cells {
		if c.in.Diff.LeftOut[i] != "" {
			continue
		}
		takers++
		var group []int
		for j := range row.Cells {
			if c.in.Diff.LeftOut[j] == "" && sameCell(row.Cells[i], row.Cells[j]) {
				group = append(group, j)
			}
		}
		if len(group) > len(most) {
			most = group
		}
	}
	return most, takers
}

func sameCell(a, b *diff.Cell) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Create == b.Create && a.Mod == b.Mod && a.Version == b.Version && a.Lease == b.Lease && a.ValueLen == b.ValueLen && a.ValueSHA == b.ValueSHA
}
