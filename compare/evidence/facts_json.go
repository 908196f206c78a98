package evidence

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// maxInList is how many elements of a list the JSON form of a member's facts has; the others are counted.
const maxInList = 1000

// MarshalJSON writes the facts with lists of at most 1000 elements each. Omitted counts the elements left out.
func (f Facts) MarshalJSON() ([]byte, error) {
	type plain Facts // without this method
	c := cutter{}
	f.Leases, f.Alarms = cut(&c, "leases", f.Leases), cut(&c, "alarms", f.Alarms)
	f.Problems, f.Missing = cut(&c, "problems", f.Problems), cut(&c, "missing", f.Missing)
	f.Snapshots = slices.Clone(f.Snapshots)
	for i := range f.Snapshots {
		c.snap(&f.Snapshots[i])
	}
	m := &f.Membership
	m.Voters, m.Learners = cut(&c, "membership.voters", m.Voters), cut(&c, "membership.learners", m.Learners)
	m.Removed, m.Members = cut(&c, "membership.removed", m.Removed), cut(&c, "membership.members", m.Members)
	m.V2, m.ConfState = cut(&c, "membership.v2", m.V2), cut(&c, "membership.confState", m.ConfState)
	if f.WAL != nil {
		w := *f.WAL
		w.Segments, w.LeftOvers = cut(&c, "wal.segments", w.Segments), cut(&c, "wal.leftOvers", w.LeftOvers)
		w.Snapshots = slices.Clone(cutFront(&c, "wal.snapshotRecords", w.Snapshots))
		for i := range w.Snapshots {
			w.Snapshots[i].ConfState = c.conf("wal.snapshotRecords.confState", w.Snapshots[i].ConfState)
		}
		f.WAL = &w
	}
	if f.DB != nil {
		d := *f.DB
		d.Buckets, d.Hashes = cut(&c, "db.buckets", d.Buckets), cutMap(&c, "db.hashes", d.Hashes)
		if s := d.ConfState; s != nil {
			own := *s
			own.Voters, own.Learners = cut(&c, "db.confState", own.Voters), cut(&c, "db.confState", own.Learners)
			own.VotersOutgoing = cut(&c, "db.confState", own.VotersOutgoing)
			own.LearnersNext = cut(&c, "db.confState", own.LearnersNext)
			d.ConfState = &own
		}
		f.DB = &d
	}
	if f.Auth != nil {
		a := *f.Auth
		a.Users, a.Roles = c.lists("auth.users", a.Users), c.lists("auth.roles", a.Roles)
		f.Auth = &a
	}
	f.Omitted = c
	return json.Marshal(plain(f))
}

// cutter counts what is left out by list.
type cutter map[string]int

func cut[T any](c *cutter, name string, list []T) []T {
	if more := len(list) - maxInList; more > 0 {
		(*c)[name] += more
		return list[:maxInList]
	}
	return list
}

// cutFront keeps the last elements.
func cutFront[T any](c *cutter, name string, list []T) []T {
	if more := len(list) - maxInList; more > 0 {
		(*c)[name] += more
		return list[more:]
	}
	return list
}

// cutMap keeps the first keys in order.
func cutMap[T any](c *cutter, name string, m map[string]T) map[string]T {
	if m == nil {
		return nil
	}
	own := map[string]T{}
	for _, k := range cut(c, name, slices.Sorted(maps.Keys(m))) {
		own[k] = m[k]
	}
	return own
}

// lists cuts a map of lists and each list.
func (c *cutter) lists(name string, m map[string][]string) map[string][]string {
	own := cutMap(c, name, m)
	for k, list := range own {
		own[k] = cut(c, name+"[]", list)
	}
	return own
}

func (c *cutter) conf(name string, s *dumplog.ConfState) *dumplog.ConfState {
	if s == nil {
		return nil
	}
	own := *s
	own.Voters, own.Learners = cut(c, name, own.Voters), cut(c, name, own.Learners)
	own.VotersOutgoing, own.LearnersNext = cut(c, name, own.VotersOutgoing), cut(c, name, own.LearnersNext)
	return &own
}

func (c *cutter) snap(s *SnapFacts) {
	s.ConfState = *c.conf("snapshots.confState", &s.ConfState)
	if s.V2 == nil {
		return
	}
	v := *s.V2
	v.Members, v.Removed = cut(c, "snapshots.v2.members", v.Members), cut(c, "snapshots.v2.removed", v.Removed)
	v.UserKeys = cut(c, "snapshots.v2.userKeys", v.UserKeys)
	s.V2 = &v
}
