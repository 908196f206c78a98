package replay

import (
	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// maxUncommitted bounds the kept requests above the commit index; a log rarely has more than a few of them.
const maxUncommitted = 1000

// noteBeyond keeps entries above every known commit index that would change a small bucket. Up to 3.4 a database can
// contain their effect: a killed server wrote its commit index late, and its consistent index does not move with such
// entries.
func (s *Survey) noteBeyond(it *item, old bool) {
	if !old || len(s.beyond) >= maxUncommitted {
		return
	}
	buckets := touches(it.req)
	for _, b := range buckets {
		s.LastTouch[b] = it.entry.Index
	}
	s.rows.note(it.entry.Index, it.req)
	if len(buckets) > 0 {
		s.beyond = append(s.beyond, it.req)
	}
}

// mayHold takes note of the entries above the commit index whose effect the member may hold.
func (aw *authWatch) mayHold(beyond []*dumplog.Request) {
	if aw.follows(release.IndexWithEveryEntry) {
		return
	}
	for _, req := range beyond {
		switch {
		case req.LeaseGrant != nil:
			aw.touched[leaseKey(req.LeaseGrant.ID)] = true
			aw.leases.grantAhead(req.LeaseGrant.ID)
		case req.LeaseRevoke != nil:
			aw.touched[leaseKey(req.LeaseRevoke.ID)] = true
		case req.Alarm != nil && apply.ChangesAlarms(req.Alarm):
			aw.touched["alarm"] = true
		case req.Kind.ChangesAuth():
			for _, row := range authRowsOf(req) {
				aw.touched[row.touchKey()] = true
			}
			aw.authBeyond++
		}
	}
}
