package replay

import (
	"context"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// newSim builds the starting state of one member, nil if it cannot be replayed. With a log from the first entry of a
// new cluster that state is empty; otherwise it is that of the place where log and database are known to meet.
func newSim(ctx context.Context, r *Result, pos int, room *apply.Room) *sim {
	res := r.Members[pos]
	m := res.Member
	s := simOf(&subject{logView: &logView{m: m, pos: pos, compacted: m.CompactRevision()}, res: res,
		Model: apply.NewModel(m.Version.Release()), touched: map[string]bool{}})
	s.LastCompact, s.Keys, s.room = s.compacted, room.NewKeys(0), room
	if why := unfit(r, m.HasDB(), m.DB != nil && m.DB.KV != nil); why != "" {
		res.Why = why
		return nil
	}
	s.past, s.logEnd, s.committed = pastOf(ctx, r), r.logEnd(m.AppliedMin), r.Commit
	versions := r.Survey.VersionsFor(pos)
	s.oldAuth = lastWithout(versions, release.IndexWithAuth)
	s.oldIndex = lastWithout(versions, release.IndexWithEveryEntry)
	s.grantedAt, s.ownGrants = r.Survey.grantedAt, r.Survey.leases.grants
	s.Value = func(key string, at apply.Rev) ([]byte, bool) { return s.readValue(key, dumpdb.Rev(at)) }
	s.Passes = s.passes
	s.first = s.stretch(r)
	fromStart := s.first == 1 && !restored(r) && m.DB.KV.BumpMarker == dumpdb.Rev{}
	s.fromStart = fromStart
	s.alarms = newAlarmLog(r.Survey, s.first, m.DB.Alarms)
	s.alarms.fromStart = fromStart
	s.disputeAlarms(r)
	s.alarmed = s.alarms.spans()
	s.endAuth = newEndAuth(r, m, len(s.alarmed) > 0)
	if why := s.begin(ctx, r, fromStart); why != "" {
		res.Why = why
		return nil
	}
	s.afterGap = r.afterGap(max(m.AppliedMin, s.meet.index))
	if r.late[pos] {
		s.below.postpone()
	}
	s.cur = newCursor(m.DB.Handle, m.DB.KV.BumpMarker)
	if !fromStart {
		s.below.arrive()
		s.below.whole = s.below.whole && r.reaches(s.meet.index)
	}
	if !fromStart && s.mayFollow(release.DefragLosesIndex) && s.first == 1 && r.authBegan() {
		s.auth.authFromLog(r)
	}
	entries := behind(r.Survey.Auth, s.base)
	s.auth.plain = planAuth(entries, s.Auth.Clone())
	res.AuthExpectedMin = s.auth.settle(entries)
	s.auth.mayHold(r.Survey.beyond)
	res.AuthKnown = s.Auth.Known
	res.AuthExpected = s.auth.plain.at(m.AppliedMax)
	s.auth.restarts = findRestarts(r.Survey, m.MemberID, fromStart, received(m))
	s.lastStart = r.lastStart(m)
	for i, other := range r.Members {
		if i != pos {
			s.auth.others = append(s.auth.others, other)
		}
	}
	s.auth.stamps, s.rights.skipped = r.Survey.ownStamps(m), s.gaps()
	s.noteSnapshots()
	res.Checked, res.BaseIndex, res.BaseRevision, res.baseWrites = true, s.meet.index, s.meet.rev, s.meet.writes
	return s
}

// noteSnapshots keeps the indexes of the snapshots that the member's log names.
func (s *sim) noteSnapshots() {
	if !s.m.HasWAL() {
		return
	}
	for _, sn := range s.m.WAL.Summary.Snapshots {
		s.snaps = append(s.snaps, sn.Index)
		s.newestSnap = max(s.newestSnap, sn.Index)
	}
}

// logEnd is the last index of the merged log that is of use for a member. If its applied index is in a hole between the
// logs, it is the last one before the hole.
func (r *Result) logEnd(applied uint64) uint64 {
	for _, g := range r.Gaps {
		if g.From <= applied && applied <= g.To {
			return g.From - 1
		}
	}
	return r.Last
}

// reaches reports whether the merged log ends neither before an index nor in a gap before it: then it says what the
// keys were there.
func (r *Result) reaches(index uint64) bool { return index <= r.logEnd(index) }

// afterGap is the first index of the merged log after the first gap that a member has not applied, 0 if there is none.
// What a gap changed is not known, so no later entry can be judged.
func (r *Result) afterGap(applied uint64) uint64 {
	if r.First > applied+1 {
		return r.First
	}
	for _, g := range r.Gaps {
		if g.To > applied {
			return g.To + 1
		}
	}
	return 0
}

// begin finds the place where log and database meet, and what is known there beyond the keys. It says why there is
// none, "" when all is well. A database that was never compacted, with a log from the first entry, needs no such place:
// they meet at the beginning.
func (s *sim) begin(ctx context.Context, r *Result, fromStart bool) (why string) {
	if fromStart && s.LastCompact <= 0 {
		s.met = true
		return ""
	}
	w := r.writersOf(s.pos)
	if w.first == 0 {
		// The log begins after all that this member has applied: none of its entries can be replayed or doubted.
		w = &writers{appliedRange: w.appliedRange, first: w.until + 1}
	}
	s.writers = w
	var ok bool
	if s.meet, ok = r.given[s.pos]; !ok {
		s.meet, ok = s.align(ctx, w)
	}
	if !ok && !fromStart {
		return "the log does not reach back to the first entry and none of its writes is found in the database"
	}
	if !fromStart {
		s.base, s.StateKnown = s.meet.index, false
		s.assumeBefore(r)
	}
	return ""
}

// received lists the snapshots of other members that replaced the member's database.
func received(m *evidence.Member) []uint64 {
	var out []uint64
	if m.HasWAL() {
		for _, j := range m.WAL.Summary.Jumps {
			out = append(out, j.To)
		}
	}
	return out
}

// lastStart is the index of the newest start of any member that the log shows, or of the newest snapshot that a member
// received.
func (r *Result) lastStart(m *evidence.Member) (last uint64) {
	for _, starts := range r.Survey.Starts {
		for _, st := range starts {
			last = max(last, st.Index)
		}
	}
	for _, to := range received(m) {
		last = max(last, to)
	}
	return last
}

// unfit says why a member cannot be replayed, "" when it can.
func unfit(r *Result, hasDB, hasKV bool) string {
	switch {
	case r.First == 0:
		return "no source brought a log entry"
	case !hasDB:
		return "there is no database that opens"
	case !hasKV:
		return "bucket key could not be read"
	}
	return ""
}

// restored reports whether the cluster began from a backup: its database then was not empty at index 0.
func restored(r *Result) bool {
	for _, m := range r.Members {
		if w := &m.Member.WAL; w.Present() && w.Summary.Start == dumplog.StartRestore {
			return true
		}
	}
	return false
}

// behind returns the auth entries after an index.
func behind(entries []AuthEntry, base uint64) []AuthEntry {
	for len(entries) > 0 && entries[0].Index <= base {
		entries = entries[1:]
	}
	return entries
}

// stretch returns the first index after the last gap below the member's applied index, else the first index of the log.
// No model can follow what happened in a gap.
func (lv *logView) stretch(r *Result) uint64 {
	from := r.First
	for _, g := range r.Gaps {
		if g.To < lv.m.AppliedMin {
			from = g.To + 1
		}
	}
	return from
}

// absorb applies a group to the model.
func (su *subject) absorb(g *group) {
	for i := range g.records {
		absorb(su.Keys, &g.records[i])
	}
}

// assumeBefore fills in what the log does not show: leases that exist at the end or are named in the log existed
// before; the auth revision began where the log's auth entries, all taken as successful, lead to the one in the
// database; alarms that no entry names are those of the end.
func (s *sim) assumeBefore(r *Result) {
	s.Auth = authFromDB(&s.m.DB.Auth, s.Version)
	for _, l := range s.m.DB.Leases {
		// One that the log grants only later need not have been there before.
		s.Leases[int64(l.ID)] = &apply.Lease{TTL: l.TTL, Unsure: r.Survey.grants[int64(l.ID)] > s.base}
	}
	s.setAlarms()
	n := uint64(0)
	for _, e := range r.Survey.Auth {
		if e.Index > s.base && e.Index <= s.m.AppliedMin && e.Req.Kind != dumplog.KindAuthEnable {
			n++
		}
	}
	if s.Auth.Revision > n {
		s.Auth.Revision -= n
	}
}
