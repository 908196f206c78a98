package replay

import (
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestOwnStamps: the auth revision never falls, so that a stamp above that of the database is not from its past, if the
// database has applied the request. Of a later request, and without a stored revision, every stamp is believed.
func TestOwnStamps(t *testing.T) {
	low, equal, high := Stamp{Index: 10, AuthRevision: 12}, Stamp{Index: 20, AuthRevision: 13},
		Stamp{Index: 50, AuthRevision: 17}
	list := []Stamp{low, equal, high}
	for name, c := range map[string]struct {
		applied uint64
		db      *evidence.DB
		want    []Stamp
	}{
		"applied":           {50, &evidence.DB{Auth: dumpdb.Auth{HasRevision: true, Revision: 13}}, list[:2]},
		"as high":           {50, &evidence.DB{Auth: dumpdb.Auth{HasRevision: true, Revision: 17}}, list},
		"not applied":       {49, &evidence.DB{Auth: dumpdb.Auth{HasRevision: true, Revision: 13}}, list},
		"no revision known": {50, &evidence.DB{}, list},
		"no database":       {50, nil, list},
	} {
		m := &evidence.Member{MemberID: 7, AppliedMin: c.applied, DB: c.db}
		s := &Survey{Stamps: map[dumplog.ID][]Stamp{7: slices.Clone(list), 8: {{Index: 5, AuthRevision: 99}}}}
		if got := s.ownStamps(m); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if !slices.Equal(s.Stamps[7], list) {
			t.Errorf("%s: the survey has %v", name, s.Stamps[7])
		}
	}
}
