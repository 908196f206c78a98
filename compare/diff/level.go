package diff

import (
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
)

// commonLevel finds the index at which members are compared.
type commonLevel struct {
	*Result
	// rp is nil if there is no log.
	rp *replay.Result
}

// find finds the index at which the keys of most members can be compared, and each member's revision there. A member
// is compared if its revision at that index is known and not compacted. Other members are set apart, so that they do
// not prevent the comparison of the rest.
func (r *commonLevel) find() {
	for i, m := range r.Members {
		switch {
		case !m.HasDB():
			r.NotCompared[i] = "no database that can be opened"
		case m.DB.KV == nil:
			r.NotCompared[i] = "bucket key could not be read"
		case evidence.OfAnotherCluster(r.Members, m):
			r.ofOtherLog(i, "no data dir knows its members")
		case r.rp != nil:
			if other := r.rp.Unwritten(i); other != nil {
				r.ofOtherLog(i, other.String())
			}
		}
	}
	take := r.setDamagedApart(r.taking())
	if len(take) == 0 {
		return
	}
	r.lowest = r.Members[take[0]].AppliedMin
	for _, i := range take {
		r.lowest = min(r.lowest, r.Members[i].AppliedMin)
	}
	group := r.byIndex(take)
	if len(group) < len(take) {
		group = r.byRevision(take, group)
	}
	for _, i := range group {
		r.Compact = max(r.Compact, r.Members[i].CompactRevision())
	}
	for _, i := range take {
		if !slices.Contains(group, i) {
			r.KeysNotCompared[i], r.Revs[i] = r.whyKeysNotCompared(i), 0
		}
	}
	if len(group) == len(take) {
		r.raise(take)
	}
}

func (r *commonLevel) ofOtherLog(pos int, why string) {
	r.otherLog = append(r.otherLog, pos)
	r.NotCompared[pos] = why + ": its indexes are those of another log, as in a backup from before a restore"
}

// setDamagedApart sets apart members with unreadable pages in bucket key, if at least two others remain. Keys on such
// pages are neither equal nor different.
func (r *commonLevel) setDamagedApart(take []int) []int {
	damaged := func(i int) bool { return r.Members[i].DB.KVDamaged }
	whole := slices.DeleteFunc(slices.Clone(take), damaged)
	if len(whole) < 2 {
		return take
	}
	for _, i := range take {
		if damaged(i) {
			r.KeysNotCompared[i] = fmt.Sprintf("part of bucket key of %s cannot be read", r.Members[i].Label())
		}
	}
	return whole
}

// byIndex returns the members that can be compared at one applied index: the index with most members, the highest of
// several.
func (r *commonLevel) byIndex(take []int) (group []int) {
	for _, i := range take {
		at := r.Members[i].AppliedMin
		var can []int
		for _, j := range take {
			if rev, ok := r.revAt(j, at); ok && rev >= r.Members[j].CompactRevision() {
				can = append(can, j)
			}
		}
		if len(can) > len(group) || len(can) == len(group) && at > r.Common {
			group, r.Common = can, at
		}
	}
	for _, i := range group {
		r.Revs[i], _ = r.revAt(i, r.Common)
	}
	return group
}

// revAt returns a member's revision at an index; ok is false if it is not known.
func (r *commonLevel) revAt(i int, at uint64) (rev int64, ok bool) {
	m := r.Members[i]
	if r.rp != nil && r.rp.Members[i].Checked {
		if rev, ok = r.rp.Members[i].Levels[at]; ok && (at != m.AppliedMin || aheadOfIndex(r.rp, i)) {
			return rev, true
		}
	}
	return m.CurrentRevision(), at == m.AppliedMin
}

// aheadOfIndex reports whether the replay shows that a database contains more than its consistent index says.
func aheadOfIndex(rp *replay.Result, i int) bool {
	return rp != nil && rp.Members[i].Ahead != nil
}

// byRevision adds members whose revision at the common index is unknown, at the revision of the others. As long as the
// histories agree, equal revisions mean equal content. If no two members can be compared at an index, it compares them
// at the revision that most of them have; so it does with more running members, whose snapshots begin one entry apart.
func (r *commonLevel) byRevision(take, group []int) []int {
	wider, rev := r.atOneRevision(take)
	if len(group) < 2 && len(wider) < 2 {
		return wider
	}
	if len(group) < 2 || len(wider) > len(group) && r.allRun(take) {
		r.Common = r.lowest
		clear(r.Revs)
		for _, i := range wider {
			r.Revs[i] = rev
		}
		r.Note = "aligned by revision, because the logs do not show which revision belongs to the common index"
		return wider
	}
	at, top := r.Revs[group[0]], r.Revs[group[0]]
	for _, i := range group {
		at, top = min(at, r.Revs[i]), max(top, r.Revs[i])
	}
	for _, i := range take {
		// One whose index is lower has written nothing since if it has the revision of the others already.
		m := r.Members[i]
		reached := m.AppliedMin >= r.Common || m.CurrentRevision() == at && at == top
		if !slices.Contains(group, i) && reached && r.holds(i, at) {
			group, r.Revs[i] = append(group, i), at
			r.Note = "aligned by revision, because the logs do not show which revision belongs to the common index"
		}
	}
	return group
}

// atOneRevision returns the members that hold one revision: the revision with most members, the highest of several.
func (r *commonLevel) atOneRevision(take []int) (group []int, at int64) {
	for _, i := range take {
		var can []int
		rev := r.Members[i].CurrentRevision()
		for _, j := range take {
			if r.holds(j, rev) {
				can = append(can, j)
			}
		}
		if len(can) > len(group) || len(can) == len(group) && rev > at {
			group, at = can, rev
		}
	}
	return group, at
}

// allRun reports whether the members are snapshots of running servers.
func (r *commonLevel) allRun(take []int) bool {
	return !slices.ContainsFunc(take, func(i int) bool { return r.Members[i].Source.Kind != evidence.KindEndpoint })
}

// holds reports whether a member's database has its content at a revision.
func (r *commonLevel) holds(i int, rev int64) bool {
	m := r.Members[i]
	return m.CompactRevision() <= rev && rev <= m.CurrentRevision()
}

func (r *commonLevel) whyKeysNotCompared(i int) string {
	m := r.Members[i]
	if m.AppliedMin < r.Common {
		return fmt.Sprintf("%s has applied entries only up to %d, and no other member can be compared there",
			m.Label(), m.AppliedMin)
	}
	return fmt.Sprintf("%s has compacted its revision at the common index %d, or its log does not show that revision",
		m.Label(),
		r.Common)
}

// raise moves the common index up to the index up to which the replay shows that all members have executed the log's
// key writes.
func (r *commonLevel) raise(take []int) {
	if r.rp == nil || r.rp.KeyCommon <= r.Common {
		return
	}
	for _, i := range take {
		if !r.rp.Members[i].Checked || r.rp.Members[i].RevisionAt == 0 ||
			r.rp.Members[i].RevisionAt < r.Members[i].CompactRevision() {
			return
		}
	}
	r.Common = r.rp.KeyCommon
	for _, i := range take {
		r.Revs[i] = r.rp.Members[i].RevisionAt
	}
}
