package replay

import (
	"fmt"
	"maps"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// maxRowEntries bounds how many entries above the consistent index are executed on the small buckets.
const maxRowEntries = 512

// RowsAhead are entries above the consistent index whose effects are in the buckets of auth, leases, alarms or removed
// members.
type RowsAhead struct {
	// From is the first entry above the index that changes such a bucket, To the one after which the rows fit best.
	From, To uint64
	// Rows are the rows, and the auth revision, that only those entries explain: Expected is as at the index.
	Rows []StateDiff
}

// findReach looks for entries above the consistent index that explain what the small buckets hold. It compares the
// database with the state after each of these entries. Where several fit equally well, the lowest index counts, first
// the consistent index itself. Between it and the entry there is none that must have written a key which the database
// lacks: a server applies entries in order.
func (s *sim) findReach() {
	if s.m.AppliedMin != s.m.AppliedMax || s.m.AppliedMin >= s.committed || s.past == nil || !s.Version.Known() ||
		!s.follows(release.IndexWithEveryEntry) || s.m.IndexFrozen() {
		return
	}
	keys := s.m.AppliedMin // how far the keys are
	if s.res.Ahead != nil {
		keys = s.res.Ahead.To
	}
	p := newRowProbe(s)
	atIndex := p.diffs()
	if len(atIndex) == 0 {
		return
	}
	best, reach := atIndex, RowsAhead{}
	first := uint64(0)
	for it, err := range s.past(s.m.AppliedMin + 1) {
		if err != nil || p.executed == maxRowEntries {
			break
		}
		own := it.forMember(s.pos)
		index := own.entry.Index
		if own.err != nil || index > s.committed || index > keys && p.mustWrite(own) {
			break
		}
		changes := p.execute(own)
		if changes && first == 0 {
			first = index
		}
		if index < keys || index > keys && !changes {
			continue // not a state of the database, or the same as before
		}
		if d := p.diffs(); len(d) < len(best) {
			best, reach = d, RowsAhead{From: first, To: index}
		}
	}
	if reach.To == 0 {
		return
	}
	for _, row := range sortedKeys(atIndex) {
		if _, still := best[row]; !still {
			reach.Rows = append(reach.Rows, atIndex[row])
		}
	}
	s.res.RowsAhead = &reach
}

// rowProbe is a copy of a model's small buckets.
type rowProbe struct {
	*leaseWatch
	auth *authWatch
	// revision is the auth revision of the model that was copied, low and high are the bounds of what the log gives
	// there, if that is known.
	revision  uint64
	low, high int64
	known     bool
	// at is the last entry executed, executed counts those that change a small bucket.
	at       uint64
	executed int
}

func newRowProbe(s *sim) *rowProbe {
	su := *s.subject
	su.Auth, su.Alarms, su.Leases = s.Auth.Clone(), maps.Clone(s.Alarms), maps.Clone(s.Leases)
	lw, aw := *s.leases, *s.auth
	lw.subject, aw.subject = &su, &su
	lw.ends = maps.Clone(s.leases.ends)
	p := &rowProbe{leaseWatch: &lw, auth: &aw, revision: s.Auth.Revision, at: s.m.AppliedMin}
	p.low, p.high, p.known = s.auth.expected()
	return p
}

// mustWrite reports whether an entry certainly writes a record.
func (p *rowProbe) mustWrite(it *item) bool {
	switch r := it.req; {
	case !apply.WritesKeys(r.Kind) || len(p.Alarms) > 0:
		return false
	case r.LeaseRevoke != nil:
		return p.Keys.CountOfLease(r.LeaseRevoke.ID) > 0
	default:
		return !conditional(r)
	}
}

// execute executes an entry that changes a small bucket; it reports whether it is one.
func (p *rowProbe) execute(it *item) bool {
	switch r := it.req; {
	case r.LeaseGrant != nil:
		p.Grant(r, it.entry.Term, it.entry.Index)
		delete(p.ends, r.LeaseGrant.ID)
	case r.LeaseRevoke != nil:
		if !p.Alarms.Check(p.Version, r).Refused() {
			delete(p.Leases, r.LeaseRevoke.ID)
			delete(p.ends, r.LeaseRevoke.ID)
		}
	case r.Alarm != nil && apply.ChangesAlarms(r.Alarm):
		p.Alarm(r.Alarm)
	case r.Kind.ChangesAuth():
		p.Auth.Apply(r)
	case !slices.ContainsFunc(p.m.RemovalsAbove, func(c evidence.ConfEntry) bool { return c.Index == it.entry.Index }):
		return false
	}
	p.at = it.entry.Index
	p.executed++
	return true
}

// diffs are the rows of the database that differ from the copy, and the auth revision.
func (p *rowProbe) diffs() map[string]StateDiff {
	p.res = &MemberResult{}
	p.auth.finishRows()
	p.finishLeases()
	p.leaseFaults()
	p.finishAlarms()
	p.grantedAbove()
	p.removedAbove()
	out := map[string]StateDiff{}
	for _, d := range p.res.StateDiffs {
		out[Row{d.Bucket, d.Key}.touchKey()] = d
	}
	for _, f := range p.res.LeaseFaults {
		row := Row{"lease", dumplog.ID(f.ID).String()}
		switch _, known := out[row.touchKey()]; {
		case known || f.Missing: // of keys that a revoke left
		case f.Kept:
			out[row.touchKey()] = StateDiff{Bucket: row.Bucket, Key: row.Key, Expected: "absent", Observed: "present"}
		default:
			out[row.touchKey()] = StateDiff{Bucket: row.Bucket, Key: row.Key, Expected: "present", Observed: "absent"}
		}
	}
	if d, ok := p.revisionDiff(); ok {
		out[Row{d.Bucket, d.Key}.touchKey()] = d
	}
	return out
}

// grantedAbove adds the rows of leases that the log grants only further on, under IDs that no lease had before. A model
// that begins with the leases of the database has them too, as unsure.
func (p *rowProbe) grantedAbove() {
	for _, l := range p.m.DB.Leases {
		g, ok := p.ownGrants[int64(l.ID)]
		if have := p.Leases[int64(l.ID)]; ok && g.index > p.at && (have == nil || have.Unsure) {
			p.extraRow("lease", l.ID.String())
		}
	}
}

// removedAbove adds the rows of members that the log removes only further on.
func (p *rowProbe) removedAbove() {
	for i := range p.m.RemovalsAbove {
		if c := &p.m.RemovalsAbove[i]; c.Index > p.at {
			p.extraRow("members_removed", c.Change.NodeID.String())
		}
	}
}

func (p *rowProbe) revisionDiff() (d StateDiff, ok bool) {
	db := &p.m.DB.Auth
	if !p.known {
		return d, false
	}
	more := int64(p.Auth.Revision - p.revision)
	low, high, have := p.low+more, p.high+more, int64(db.Revision)
	d = StateDiff{Bucket: "auth", Key: "authRevision", Expected: fmt.Sprint(high), Observed: fmt.Sprint(have)}
	return d, have < low || have > high
}
