package replay

import (
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// If a log reaches back to the first entry of a cluster, but the database was compacted, the model first runs without
// records, because most records below the compact revision are gone. No single entry is judged up to the place where
// log and database meet. There, the prediction of the log is compared with the database, key by key, as far as the
// prediction is certain.

// BelowDiff is a key, or the revision itself, that differs between log and database at the place where they meet.
type BelowDiff struct {
	// Key is empty for the revision.
	Key string
	// Index is the entry that wrote the key according to the log. For the revision, and for a key that should not
	// exist, it is the index of the place.
	Index uint64
	// Rev is the revision of the database's record, 0 when it has none.
	Rev                int64
	Expected, Observed string
}

// maxBelow bounds the differences that are kept; BelowCount counts all.
const maxBelow = 1000

// foresee predicts an entry below the place where the database takes over, and changes the model accordingly.
func (s *sim) foresee(it *item) Outcome {
	p := s.Evaluate(it.req)
	uncertain := !p.Sure && !s.plainRefusal(it.entry.Index, &p) || s.mayRepeat()
	if it.req.LeaseRevoke != nil {
		s.foreseeRevoke(it, p)
	}
	if uncertain {
		s.blur(it.req)
		s.Loose = true
		return Outcome{State: OutsideHistory, Detail: "its effect is compacted, and the log alone does not tell it"}
	}
	if len(p.Writes) == 0 {
		return Outcome{State: OutsideHistory, Detail: "without effect according to the log"}
	}
	s.Revision++
	defer s.early(it.entry.Index)
	s.Keys.Write(p.Writes, apply.Key{Mod: s.Revision, Entry: it.entry.Index, Loose: s.Loose})
	o := Outcome{State: OutsideHistory, Detail: "its revision is compacted"}
	if !s.Loose {
		o.Rev = s.Revision
	}
	return o
}

// early lets the database take over as soon as nothing more is compacted, if the whole prediction has been certain.
func (s *sim) early(index uint64) {
	if !s.Loose && s.Revision == s.floor() && index < s.meet.index {
		s.meet = place{index: index, rev: s.Revision}
		s.res.BaseIndex, s.res.BaseRevision = s.meet.index, s.meet.rev
		s.arrive()
	}
}

// plainRefusal reports a refusal on which all releases agree, with users and roles known since the first entry. A
// raised alarm disables the checks up to 3.5, and a received snapshot could leave old rights in the cache.
func (s *sim) plainRefusal(index uint64, p *apply.Effect) bool {
	return p.Plain && (p.Reason == ReasonPermission || p.Reason == ReasonUserEmpty) && s.Auth.Known && s.StateKnown &&
		s.keepsChecks() &&
		!slices.ContainsFunc(received(s.m), func(to uint64) bool { return to < index })
}

// keepsChecks reports whether no alarm can have taken the checks of permissions away.
func (s *sim) keepsChecks() bool {
	return s.ChecksPermissions() && (!s.AlarmsUnsure || s.follows(release.AlarmKeepsChecks))
}

// foreseeRevoke ends a lease. Its deleted keys may be uncertain although the revoke itself is not. If the revoke may
// have been refused, it is unknown whether the lease still exists.
func (s *sim) foreseeRevoke(it *item, p apply.Effect) {
	id := it.req.LeaseRevoke.ID
	s.touch(it, leaseKey(id))
	l := s.Leases[id]
	switch {
	case p.Result == apply.Applied && !s.mayRepeat():
		delete(s.Leases, id)
		s.noteOutcome(it, Outcome{State: OutsideHistory})
	case l != nil && (!p.Sure || s.mayRepeat()):
		l.Unsure = true
	}
}

// mayRepeat reports whether restarts executed auth entries twice. Then the auth revision differs from the one in the
// log, and the permissions at an entry are uncertain.
func (s *sim) mayRepeat() bool {
	once := s.follows(release.IndexWithAuth) && s.Version.Has(release.DefragLosesIndex).Excluded()
	return s.Auth.Enabled && !once && s.m.DB.Auth.Revision != s.plain.at(s.m.AppliedMax)
}

// blur forgets the keys that an entry may have changed.
func (s *sim) blur(r *dumplog.Request) {
	if r.LeaseRevoke != nil {
		for _, k := range s.Keys.OfLease(r.LeaseRevoke.ID) {
			s.Keys.Forget(k)
		}
	}
	r.EachOp(func(op dumplog.RequestOp) {
		switch {
		case op.Put != nil:
			s.Keys.Forget(string(op.Put.Key))
		case op.DeleteRange != nil:
			var keys []string
			s.Keys.Range(op.DeleteRange.Key, op.DeleteRange.RangeEnd, func(k *apply.Key) bool {
				keys = append(keys, k.Name)
				return true
			})
			for _, k := range keys {
				s.Keys.Forget(k)
			}
		}
	})
}

// arrive handles the place where log and database meet: from here on the model has the keys that the database had
// there.
func (s *sim) arrive() {
	s.met = true
	have, whole := apply.NewKeys(), true
	for g := s.cur.peek(0); g != nil && g.main <= s.meet.rev; g = s.cur.peek(0) {
		whole = whole && !g.hole
		for i := range g.records {
			whole = whole && !g.records[i].bad
			absorb(have, &g.records[i])
		}
		s.cur.take()
	}
	// Unreadable pages between the last records taken and the next ones may hold revisions up to the place.
	if g := s.cur.peek(0); g != nil {
		whole = whole && !g.hole
	} else {
		whole = whole && !s.cur.hole
	}
	if s.fromStart && whole && s.meet.index <= s.logEnd {
		s.compareBelow(have)
	}
	s.whole = whole
	s.Keys, s.Revision, s.Loose, s.KeysKnown = have, s.meet.rev, false, whole
	s.res.To = s.meet.index
}

// compareBelow compares what the log predicts for the keys with the records of the database.
func (s *sim) compareBelow(have *apply.Keys) {
	if !s.Loose && s.Revision != s.meet.rev {
		s.res.misplaced = s.Revision < s.floor()
		s.below(BelowDiff{Index: s.meet.index, Expected: fmt.Sprintf("revision %d", s.Revision),
			Observed: fmt.Sprintf("revision %d", s.meet.rev)})
		return
	}
	s.Keys.All(func(want *apply.Key) bool {
		if want.Unsure {
			return true
		}
		got := have.Get(want.Name)
		d := BelowDiff{Key: want.Name, Index: want.Entry, Expected: textOf(want), Observed: "absent"}
		if got != nil {
			d.Rev = got.Mod
		}
		switch {
		case got == nil:
			s.below(d)
		case !sameBelow(want, got):
			d.Observed = textOf(got)
			s.below(d)
		}
		return true
	})
	have.All(func(got *apply.Key) bool {
		if s.Keys.Get(got.Name) == nil {
			s.below(BelowDiff{Key: got.Name, Index: s.meet.index, Rev: got.Mod, Expected: "absent",
				Observed: textOf(got)})
		}
		return true
	})
}

func (s *sim) below(d BelowDiff) {
	if s.res.BelowCount++; len(s.res.Below) < maxBelow {
		s.res.Below = append(s.res.Below, d)
	}
}

// sameBelow compares as far as the prediction is certain.
func sameBelow(want, got *apply.Key) bool {
	return want.Sum == got.Sum && want.Lease == got.Lease &&
		(want.Loose || want.Create == got.Create && want.Mod == got.Mod && want.Version == got.Version)
}

func textOf(k *apply.Key) string {
	s := fmt.Sprintf("mod %d create %d version %d", k.Mod, k.Create, k.Version)
	if k.Loose {
		s = "present"
	}
	if k.Lease != 0 {
		s += fmt.Sprintf(" lease %x", uint64(k.Lease))
	}
	return s + fmt.Sprintf(" value hash %016x", k.Sum)
}

// readValue reads the value of a key's record, for compares that need more than its hash. Above the compact revision
// the newest record of each key is always there.
func (s *sim) readValue(key string, at dumpdb.Rev) ([]byte, bool) {
	if !s.met {
		return nil, false
	}
	for rev, err := range s.m.DB.Handle.RevisionsBetween(at, dumpdb.Rev{Main: at.Main, Sub: at.Sub + 1}) {
		if err != nil || rev.Err != nil || rev.Tombstone || string(rev.KV.Key) != key {
			return nil, false
		}
		return append([]byte{}, rev.KV.Value...), true
	}
	return nil, false
}
