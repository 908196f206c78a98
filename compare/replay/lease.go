package replay

import "github.com/etcd-medic/etcd-medic/dumplog"

// couldHaveWritten is couldWrite with what the model knows: a lease revoke deletes the keys of its lease and no others.
func (s *sim) couldHaveWritten(r *dumplog.Request, g *group) bool {
	if !couldWrite(r, g) {
		return false
	}
	if r.Kind != dumplog.KindLeaseRevoke || !s.kvKnown {
		return true
	}
	keys := s.keys.byLease[r.LeaseRevoke.ID]
	for i := range g.records {
		if _, ok := keys[g.records[i].key]; !ok {
			return false
		}
	}
	return len(g.records) == len(keys) || s.sparse(g.main)
}

// lastForgetfulMinor is the last minor with releases that did not load leases with a negative ID at a start (fixed in 3.4.20 and
// 3.5.3; server/lease/lessor.go, initAndRecover).
const lastForgetfulMinor = 5

// mayHaveForgotten tells whether the server may not have known a lease that its database holds; the database then decides.
func (s *sim) mayHaveForgotten(lease int64) bool { return lease < 0 && s.minor <= lastForgetfulMinor }

// deletedAt lists the keys of the group if it is that revision.
func (g *group) deletedAt(rev int64) []string {
	if g == nil || rev == 0 || g.main != rev {
		return nil
	}
	out := make([]string, 0, len(g.records))
	for i := range g.records {
		out = append(out, g.records[i].key)
	}
	return out
}

// revokedBefore tells whether a revoke found its lease gone: what it asks for is done, so the member lacks nothing of it.
func (ev *Event) revokedBefore(o Outcome) bool {
	return ev.Kind == dumplog.KindLeaseRevoke && o.State == Refused && o.Reason == ReasonLease
}

// describeRevoke names the lease of a revoke and the keys that it deleted where it was applied.
func (ev *Event) describeRevoke(r *dumplog.Request) {
	if r.Kind != dumplog.KindLeaseRevoke {
		return
	}
	ev.Lease = r.LeaseRevoke.ID
	for _, o := range ev.Outcomes {
		if len(o.keys) > len(ev.Keys) {
			ev.Keys = o.keys
		}
	}
}
