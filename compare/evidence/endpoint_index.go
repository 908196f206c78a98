package evidence

import (
	"cmp"
	"slices"

	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// running is what a running member said of itself around the moment of its snapshot.
type running struct {
	member, cluster uint64
	server          release.Version
	// applied is the index that it had applied before the snapshot began, committed the highest index that it knew to
	// be committed afterwards; 0 if the member did not say. An index that is being applied is committed.
	applied, committed uint64
}

// exact returns the indexes at which the database's content was exactly that of the snapshot: first to last. ok is
// false if the snapshot may hold a part of what the member applied meanwhile.
//
// A server that stores the index together with every change shows by a lower stored index that the entries up to its
// applied index changed nothing. Other servers show it only if nothing was left to apply.
func (r *running) exact(stored uint64) (first, last uint64, ok bool) {
	switch {
	case stored == 0:
		return 0, 0, false
	case r.server.Has(release.IndexWithEveryEntry).Certain() && r.server.Has(release.IndexAtomic).Certain():
		return stored, max(stored, r.applied), true
	case r.applied >= stored && r.applied == r.committed:
		return r.applied, r.applied, true
	}
	return 0, 0, false
}

// AnsweredAs returns who a running member said it is, zero for other sources. A snapshot does not say whose it is, and
// those of members that applied the same can be equal to the byte.
func (m *Member) AnsweredAs() (member, cluster dumplog.ID) {
	if r := m.Source.running; r != nil {
		return dumplog.ID(r.member), dumplog.ID(r.cluster)
	}
	return 0, 0
}

// MayHoldMore reports whether a running member applied entries while its snapshot began, so that the snapshot
// may hold more than its indexes show.
func (m *Member) MayHoldMore() bool { return m.Source.running != nil && m.exactIndex == 0 }

// alignRunning gives the snapshots of running members the indexes at which they are compared: as few different ones as
// possible for each cluster. The stored index lags behind by the entries that changed nothing, and not by the same
// number on every member.
func alignRunning(members []*Member) {
	type span struct {
		m           *Member
		first, last uint64
	}
	by := map[uint64][]span{}
	for _, m := range members {
		m.exactIndex = 0
		if r := m.Source.running; r != nil && m.indexOverride == 0 {
			if first, last, ok := r.exact(m.StoredIndex()); ok {
				by[r.cluster] = append(by[r.cluster], span{m, first, last})
			}
		}
	}
	for _, spans := range by {
		slices.SortStableFunc(spans, func(a, b span) int { return cmp.Compare(a.last, b.last) })
		for len(spans) > 0 {
			at := spans[0].last
			spans = slices.DeleteFunc(spans, func(s span) bool {
				if s.first <= at {
					s.m.exactIndex = at
				}
				return s.first <= at
			})
		}
	}
}
