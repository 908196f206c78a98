package replay

import (
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestOwnStamps: the auth revision never falls, so that a stamp is false if its process stamped a lower one next and
// the database has applied the request with a lower one. Of a later request, without a stored revision, across a
// restart and without a lower stamp after it, every stamp is believed.
func TestOwnStamps(t *testing.T) {
	stamp := func(index, revision uint64) Stamp { return Stamp{Index: index, AuthRevision: revision} }
	low, high, next := stamp(10, 12), stamp(50, 17), stamp(52, 13)
	falls, rises := []Stamp{low, high, next}, []Stamp{low, high}
	db := func(revision uint64) *evidence.DB {
		return &evidence.DB{Auth: dumpdb.Auth{HasRevision: true, Revision: revision}}
	}
	for name, c := range map[string]struct {
		list    []Stamp
		applied uint64
		db      *evidence.DB
		start   uint64
		want    []Stamp
	}{
		"applied":               {falls, 50, db(13), 0, []Stamp{low, next}},
		"one below the stamp":   {falls, 50, db(16), 0, []Stamp{low, next}},
		"as high":               {falls, 50, db(17), 0, falls},
		"not applied":           {falls, 49, db(13), 0, falls},
		"no revision known":     {falls, 50, &evidence.DB{}, 0, falls},
		"no database":           {falls, 50, nil, 0, falls},
		"no stamp after it":     {rises, 50, db(13), 0, rises},
		"as high after it":      {[]Stamp{high, stamp(52, 17)}, 50, db(13), 0, []Stamp{high, stamp(52, 17)}},
		"a restart at the next": {falls, 50, db(13), 52, falls},
		"a restart between":     {falls, 50, db(13), 51, falls},
		"a restart before":      {falls, 50, db(13), 50, []Stamp{low, next}},
		"a restart after":       {falls, 50, db(13), 53, []Stamp{low, next}},
	} {
		m := &evidence.Member{MemberID: 7, AppliedMin: c.applied, DB: c.db}
		s := &Survey{Stamps: map[dumplog.ID][]Stamp{7: slices.Clone(c.list), 8: {stamp(5, 99), stamp(6, 1)}},
			Starts: map[dumplog.ID][]Start{8: {{Index: 51}}}}
		if c.start > 0 {
			s.Starts[7] = []Start{{Index: c.start}}
		}
		if got := s.ownStamps(m); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if !slices.Equal(s.Stamps[7], c.list) {
			t.Errorf("%s: the survey has %v", name, s.Stamps[7])
		}
	}
}
