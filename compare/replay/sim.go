package replay

import (
	"iter"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// sim is the model of one member: the state that the rules of apply need, kept in step with the database's history.
type sim struct {
	apply.Model
	m   *evidence.Member
	res *MemberResult
	pos int
	// cur are the records of the database that the model has not reached. At or below LastCompact only the newest
	// record of each key is kept.
	cur *cursor
	// base is the last index whose effect is part of the starting state; entries up to it are not judged.
	base uint64
	// meet is the place where log and database meet: from there on every record is there, and the keys of the model are
	// those that the database had. met is true once the model has reached it. suggested is the place that the records
	// suggest if another one is used.
	meet, suggested place
	met             bool
	// fromStart is true when the log reaches back to the first entry of a cluster that began empty.
	fromStart bool
	// first is the first index of the log's last stretch without a gap that the member has applied past.
	first uint64
	// adrift is the first entry in unreadable pages that may or may not have written a revision, 0 when the count of
	// revisions is certain.
	adrift uint64
	// whole is true when all records up to the place could be read. certain is what the log says for certain about the
	// keys there.
	whole   bool
	certain *certainty
	// grantedAt returns the last entry that grants a lease, 0 if there is none, and whether all grants are known.
	grantedAt func(id int64) (index uint64, complete bool)
	// heldLeases are the leases that the database holds.
	heldLeases map[int64]bool
	// lastWriter is the last put before the place when no entry between may have written, nil otherwise.
	lastWriter *apply.Key
	// ended is true after the first entry that the member has not applied.
	ended bool
	// alarms is what log and database show about alarms, alarmed the spans of entries at which one was on, or may have
	// been. For openAlarms only a later entry shows whether they were on where the model began.
	alarms     *alarmLog
	alarmed    []Gap
	openAlarms apply.Alarms
	// saved is the index that meta/consistent_index holds on disk up to 3.4: the last entry that changed keys, or a
	// snapshot. Entries above it are executed again at a restart.
	saved    uint64
	restarts []restart
	// others are the results of the other members, in step with this one's.
	others []*MemberResult
	// authSeen are the auth entries so far above saved, which a restart repeats.
	authSeen []AuthEntry
	stamps   []Stamp
	plain    *authPlan
	// touched are rows of small buckets changed by entries above AppliedMin, which the database may or may not hold.
	touched map[string]bool
	// authBeyond counts the auth entries above every known commit index.
	authBeyond int64
	snaps      []uint64
	// revoked are the revokes of leases that the server may have forgotten, until they are granted again.
	revoked map[int64]KeptLease
	// past reads the merged log again from an index; searches counts how often that was in vain, logEnd is its last
	// index.
	past     func(from uint64) iter.Seq2[*item, error]
	searches int
	logEnd   uint64
	// shut is the stretch since the last change of auth; shutOpen is true once it is filed in the result.
	shut     ShutSpan
	shutOpen bool
	// skipped are the gaps that received snapshots bridge, still ahead; stale are the users and roles from before the
	// last one, in use by the member's cache since index staleFrom (0: not yet).
	skipped   []gap
	stale     *apply.Auth
	staleFrom uint64
	// newestSnap is the newest snapshot that the member's log names.
	newestSnap uint64
	// shared is true when this model represents more than one member, usedOwnRestarts once it has used the restarts of
	// its member, which the others do not share.
	shared, usedOwnRestarts bool
	// now is the entry being judged. leaseSeen are the lease operations after saved. ends gives the outcome of the last
	// revoke of each lease. gone lists leases whose keys were deleted without an entry.
	now       uint64
	leaseSeen []leaseOp
	ends      map[int64]leaseEnd
	gone      map[int64]leaseEnd
	// checkpoints are the remaining TTLs that checkpoints set, bounded.
	checkpoints map[leaseCheckpoint]bool
	// authAll are the auth entries since the base, which a restart of 3.5 may repeat; authLater those above what is
	// applied.
	authAll, authLater []AuthEntry
}

// follows reports whether the server certainly follows a rule, mayFollow whether one of its possible releases does.
func (s *sim) follows(r *release.Rule) bool { return s.Version.Has(r).Certain() }

func (s *sim) mayFollow(r *release.Rule) bool {
	return s.Version.Known() && s.Version.Has(r).Possible()
}

// mustSplit reports whether the members that this model represents have to be replayed one by one.
func (s *sim) mustSplit() bool { return s.shared && s.usedOwnRestarts }

// step executes one committed entry on the member and says how it ended.
func (s *sim) step(it *item, ahead []*item) Outcome {
	idx := it.entry.Index
	if idx > s.m.AppliedMax || s.ended {
		s.open(it)
		return Outcome{State: NotApplied}
	}
	if idx <= s.base {
		if idx >= s.first {
			s.remember(it)
		}
		return Outcome{State: OutsideHistory, Detail: "before the first entry that the database can be aligned with"}
	}
	for len(s.snaps) > 0 && s.snaps[0] < idx {
		s.saved, s.snaps = max(s.saved, s.snaps[0]), s.snaps[1:]
	}
	switch {
	case !s.met && idx > s.meet.index:
		s.arrive()
	case s.certain != nil:
		s.recall()
	}
	s.restart(idx)
	s.rememberRights(it)
	req := it.req
	s.now = idx
	var o Outcome
	switch {
	case apply.WritesKeys(req.Kind) && !s.met:
		o = s.foresee(it)
	case apply.WritesKeys(req.Kind):
		s.res.Writes++
		o = s.hold(it, ahead)
	default:
		o = s.other(it)
	}
	// Entries are applied in order: after one that was not applied, no other was.
	if s.ended = o.State == NotApplied; s.ended {
		s.open(it)
	}
	s.watchUsers(it, o)
	if o.AuthRevision == 0 {
		o.AuthRevision = s.Auth.Revision
	}
	if s.res.From == 0 {
		s.res.From = idx
	}
	s.res.To = idx
	return o
}

// other executes requests that change the small buckets only. Their effect is not visible entry by entry; finish
// compares the end state with the database.
func (s *sim) other(it *item) Outcome {
	r := it.req
	switch {
	case r.Compaction != nil:
		return s.compaction(r)
	case r.LeaseGrant != nil:
		return s.leaseGrant(it)
	case r.LeaseCheckpoint != nil:
		s.checkpoint(it)
	case r.Alarm != nil:
		s.alarm(it)
		return Outcome{State: Applied}
	case r.Kind.ChangesAuth():
		s.authSeen = append(s.authSeen, AuthEntry{Index: it.entry.Index, Req: r})
		s.authAll = append(s.authAll, AuthEntry{Index: it.entry.Index, Req: r})
		s.touch(it, "auth")
		effective, reason := s.Auth.Apply(r)
		if reason != ReasonNone {
			return Outcome{State: Refused, Reason: reason}
		}
		if effective || r.Kind == dumplog.KindAuthEnable {
			return Outcome{State: Applied}
		}
	}
	return Outcome{State: NoEffect}
}

func (s *sim) compaction(r *dumplog.Request) Outcome {
	if !s.StateKnown && r.Compaction.Revision <= s.LastCompact || s.Loose {
		return Outcome{State: OutsideHistory, Detail: "what was compacted before is not known"}
	}
	if reason := s.Compaction(r); reason != ReasonNone {
		return Outcome{State: Refused, Reason: reason}
	}
	return Outcome{State: Applied}
}

func (s *sim) leaseGrant(it *item) Outcome {
	g := it.req.LeaseGrant
	existed := s.Leases[g.ID] != nil
	reason := s.Grant(it.req, it.entry.Term, it.entry.Index)
	if reason == ReasonNoSpace || reason == ReasonCorrupt {
		return Outcome{State: Refused, Reason: reason}
	}
	if s.AlarmsUnsure && !existed && it.entry.Index <= s.m.AppliedMin {
		s.touched[leaseKey(g.ID)] = true // it may have been refused
	}
	if reason != ReasonInvalid {
		s.touch(it, leaseKey(g.ID))
	}
	if reason != ReasonNone {
		return Outcome{State: Refused, Reason: reason}
	}
	delete(s.revoked, g.ID)
	delete(s.ends, g.ID)
	s.noteLeaseOp(it, g.ID)
	return Outcome{State: Applied}
}

func leaseKey(id int64) string { return "lease/" + dumplog.ID(id).String() }

// open marks the rows that an entry changes which the member may or may not have applied.
func (s *sim) open(it *item) {
	switch r := it.req; {
	case it.entry.Index > s.m.AppliedMax:
	case r.LeaseGrant != nil:
		s.touch(it, leaseKey(r.LeaseGrant.ID))
	case r.LeaseRevoke != nil:
		s.touch(it, leaseKey(r.LeaseRevoke.ID))
	case r.LeaseCheckpoint != nil:
		for _, c := range r.LeaseCheckpoint.Checkpoints {
			s.touch(it, leaseKey(c.ID))
		}
	case r.Alarm != nil && r.Alarm.Action != 0:
		s.touch(it, "alarm")
	case r.Kind.ChangesAuth():
		s.touch(it, "auth")
	}
}

func (s *sim) touch(it *item, key string) {
	if it.entry.Index > s.m.AppliedMin {
		s.touched[key] = true
	}
}
