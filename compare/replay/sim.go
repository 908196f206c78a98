package replay

import (
	"iter"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// logView is what the log and the database of one member show before any entry is executed.
type logView struct {
	m   *evidence.Member
	pos int
	// compacted is the database's compact revision.
	compacted int64
	// fromStart is true when the log reaches back to the first entry of a cluster that began empty.
	fromStart bool
	// past reads the merged log again from an index; logEnd is its last index, committed the last one that a member
	// proves committed.
	past      func(from uint64) iter.Seq2[*item, error]
	logEnd    uint64
	committed uint64
	// afterGap is the first index that cannot be judged, because entries before it are in no log; 0 if there is none.
	afterGap uint64
	// alarmed are the spans of entries at which an alarm was on, or may have been.
	alarmed []Gap
	// alarms is what log and database show about alarms. alarmsOn are those after its first alarmsAt changes, with
	// alarmsPossible those that may have been on as well.
	alarms                   *alarmLog
	alarmsAt                 int
	alarmsOn, alarmsPossible apply.Alarms
	// grantedAt is Survey.grantedAt.
	grantedAt func(id int64) (index uint64, complete bool)
	// ownGrants are the grants of the log under IDs that no lease had before.
	ownGrants map[int64]leaseGrant
	// heldLeases are the leases that the database holds.
	heldLeases map[int64]bool
	// endAuth is the auth of the database; nil if it cannot be used.
	endAuth *endAuth
}

// outran reports whether the database has applied entries that every log has lost.
func (lv *logView) outran() bool { return lv.logEnd > 0 && lv.m.AppliedMin > lv.logEnd }

// subject is the model of one member, with its database and the result: what all parts of the replay work on.
type subject struct {
	apply.Model
	*logView
	res *MemberResult
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
	// now is the entry being judged.
	now uint64
	// lastStart is the newest start of any member, or snapshot received by this one. authMoved is true once an entry
	// after the one of AuthAtMost may have changed auth.
	lastStart uint64
	authMoved bool
	// saved is the index that meta/consistent_index holds on disk up to 3.4: the last entry that changed keys, or a
	// snapshot. Entries above it are executed again at a restart.
	saved uint64
	// oldAuth and oldIndex are the last entries that releases without release.IndexWithAuth and without
	// release.IndexWithEveryEntry may have executed before an upgrade, 0 if there are none.
	oldAuth, oldIndex uint64
	// wrote is the last entry of which the database holds the records.
	wrote uint64
	// touched are rows of small buckets changed by entries above AppliedMin, which the database may or may not hold.
	touched map[string]bool
	// room is the memory for the keys of all models.
	room *apply.Room
	// openAlarms are alarms for which only a later entry shows whether they were on where the model began.
	openAlarms apply.Alarms
	// writers counts the entries that may write; nil where the model begins empty.
	writers *writers
}

// sim steps the model of one member through the log: what an entry must do is apply's, its match with the records of
// the database the matcher's.
type sim struct {
	*subject
	leases  *leaseWatch
	auth    *authWatch
	rights  *rights
	below   *belowPlace
	matcher *matcher
	// first is the first index of the log's last stretch without a gap that the member has applied past.
	first uint64
	// ended is true after the first entry that the member has not applied.
	ended bool
	// snaps are the snapshots in the member's log that are still ahead, newestSnap is the newest that it names.
	snaps      []uint64
	newestSnap uint64
}

// simOf gives a member's model its parts.
func simOf(su *subject) *sim {
	lw := &leaseWatch{subject: su}
	aw := &authWatch{subject: su, leases: lw}
	ri := &rights{subject: su}
	return &sim{subject: su, leases: lw, auth: aw, rights: ri,
		below:   &belowPlace{subject: su, leases: lw, auth: aw},
		matcher: &matcher{subject: su, leases: lw, auth: aw, rights: ri}}
}

// follows reports whether the server certainly follows a rule, mayFollow whether one of its possible releases does.
func (su *subject) follows(r *release.Rule) bool { return su.Version.Has(r).Certain() }

func (su *subject) mayFollow(r *release.Rule) bool {
	return su.Version.Known() && su.Version.Has(r).Possible()
}

// mustSplit reports whether the members that this model represents have to be replayed one by one.
func (s *sim) mustSplit() bool { return s.auth.shared && s.auth.usedOwnRestarts }

// step executes one committed entry on the member and says how it ended.
func (s *sim) step(it *item, ahead []*item) Outcome {
	idx := it.entry.Index
	if idx > s.m.AppliedMax || s.ended || s.afterGap > 0 && idx >= s.afterGap {
		s.open(it)
		return Outcome{State: NotApplied}
	}
	if idx <= s.base {
		if idx >= s.first {
			s.below.remember(it)
		}
		return Outcome{State: OutsideHistory, Detail: "before the first entry that the database can be aligned with"}
	}
	for len(s.snaps) > 0 && s.snaps[0] < idx {
		s.saved, s.snaps = max(s.saved, s.snaps[0]), s.snaps[1:]
	}
	switch {
	case !s.met && idx > s.meet.index:
		s.below.arrive()
	case s.below.certain != nil:
		s.below.recall()
	}
	s.auth.restart(idx)
	s.rights.rememberRights(it)
	req := it.req
	s.authMoved = s.authMoved || idx != s.now+1 || it.err != nil || req.Kind.ChangesAuth()
	s.now = idx
	var o Outcome
	switch {
	case apply.WritesKeys(req.Kind) && !s.met:
		o = s.below.foresee(it)
	case apply.WritesKeys(req.Kind):
		s.res.Writes++
		o = s.hold(it, ahead)
	case it.err != nil && s.met:
		o = s.matcher.undecoded(ahead)
	case it.err != nil:
		o = s.below.undecoded()
	default:
		o = s.other(it)
	}
	// Entries are applied in order: after one that was not applied, no other was.
	if s.ended = o.State == NotApplied; s.ended {
		s.open(it)
	}
	s.rights.watchUsers(it, o)
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
		if s.met {
			s.res.Compacted = &Compacted{Index: it.entry.Index, To: r.Compaction.Revision, Revision: s.Revision}
		}
		return s.compaction(r)
	case r.LeaseGrant != nil:
		return s.leases.leaseGrant(it)
	case r.LeaseCheckpoint != nil:
		s.leases.checkpoint(it)
	case r.Alarm != nil:
		s.alarm(it)
		return Outcome{State: Applied}
	case r.Kind.ChangesAuth():
		s.auth.authSeen = append(s.auth.authSeen, AuthEntry{Index: it.entry.Index, Req: r})
		s.auth.authAll = append(s.auth.authAll, AuthEntry{Index: it.entry.Index, Req: r})
		s.touchAuth(it)
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

func (lw *leaseWatch) leaseGrant(it *item) Outcome {
	g := it.req.LeaseGrant
	existed := lw.Leases[g.ID] != nil
	if it.entry.Index > lw.m.AppliedMin {
		lw.grantAhead(g.ID)
	}
	reason := lw.Grant(it.req, it.entry.Term, it.entry.Index)
	if reason == ReasonNoSpace || reason == ReasonCorrupt {
		if l := lw.Leases[g.ID]; l != nil && l.Unsure {
			lw.touched[leaseKey(g.ID)] = true // it may have been granted
		}
		return Outcome{State: Refused, Reason: reason}
	}
	if lw.AlarmsUnsure && !existed && it.entry.Index <= lw.m.AppliedMin {
		lw.touched[leaseKey(g.ID)] = true // it may have been refused
	}
	if reason != ReasonInvalid {
		lw.touch(it, leaseKey(g.ID))
	}
	if reason != ReasonNone {
		return Outcome{State: Refused, Reason: reason}
	}
	delete(lw.revoked, g.ID)
	delete(lw.ends, g.ID)
	lw.noteGrant(it)
	lw.noteLeaseOp(it, g.ID)
	return Outcome{State: Applied}
}

func leaseKey(id int64) string { return "lease/" + dumplog.ID(id).String() }

// open marks the rows that an entry changes which the member may or may not have applied.
func (s *sim) open(it *item) {
	switch r := it.req; {
	case it.entry.Index > s.m.AppliedMax:
	case r.LeaseGrant != nil:
		s.touch(it, leaseKey(r.LeaseGrant.ID))
		s.leases.grantAhead(r.LeaseGrant.ID)
	case r.LeaseRevoke != nil:
		s.touch(it, leaseKey(r.LeaseRevoke.ID))
	case r.LeaseCheckpoint != nil:
		for _, c := range r.LeaseCheckpoint.Checkpoints {
			s.touch(it, leaseKey(c.ID))
		}
	case r.Alarm != nil && apply.ChangesAlarms(r.Alarm):
		s.touch(it, "alarm")
	case r.Kind.ChangesAuth():
		s.touchAuth(it)
	}
}

// touchAuth marks the rows that an auth request changes; the others have to be as they were at AppliedMin.
func (su *subject) touchAuth(it *item) {
	for _, row := range authRowsOf(it.req) {
		su.touch(it, row.touchKey())
	}
}

// authTouched reports whether an entry above AppliedMin changes a row of an auth bucket, or all of the bucket's.
func (su *subject) authTouched(bucket, key string) bool {
	return su.touched[Row{bucket, key}.touchKey()] || su.touched[Row{Bucket: bucket}.touchKey()]
}

func (su *subject) touch(it *item, key string) {
	if it.entry.Index > su.m.AppliedMin {
		su.touched[key] = true
	}
}
