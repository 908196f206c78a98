package replay

import (
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// Where a log reaches back to the first entry of a cluster, but the database was compacted, the model first runs without records: what
// an entry wrote below the compact revision is mostly gone. Up to the place where log and database meet nothing is judged entry by
// entry. There, what the log predicts is compared with what the database holds, key by key, as far as the prediction is certain.

// BelowDiff is a key, or the revision itself, that log and database tell differently at the place where they meet.
type BelowDiff struct {
	// Key is empty for the revision.
	Key string
	// Index is the entry that wrote the key as the log tells; for the revision, and for a key that should not be there, that of the
	// place.
	Index uint64
	// Rev is the revision of the database's record, 0 when it has none.
	Rev                int64
	Expected, Observed string
}

// maxBelow bounds the differences that are kept; BelowCount counts all.
const maxBelow = 1000

// foresee predicts an entry below the place where the database takes over, and changes the model accordingly.
func (s *sim) foresee(it *item) Outcome {
	p := s.predict(it.req)
	uncertain := !p.sure && !s.plainRefusal(it.entry.Index, &p) || s.mayRepeat()
	if it.req.LeaseRevoke != nil {
		s.foreseeRevoke(it, p)
	}
	if uncertain {
		s.blur(it.req)
		s.loose = true
		return Outcome{State: OutsideHistory, Detail: "its effect is compacted, and the log alone does not tell it"}
	}
	if len(p.writes) == 0 {
		return Outcome{State: OutsideHistory, Detail: "without effect, as the log tells"}
	}
	s.rev++
	defer s.early(it.entry.Index)
	s.keys.predicted(p.writes, keyState{mod: s.rev, entry: it.entry.Index, loose: s.loose})
	o := Outcome{State: OutsideHistory, Detail: "its revision is compacted"}
	if !s.loose {
		o.Rev = s.rev
	}
	return o
}

// early comes to the database as soon as nothing more is compacted, where the prediction has been certain all the way.
func (s *sim) early(index uint64) {
	if !s.loose && s.rev == s.floor() && index < s.meet.index {
		s.meet = place{index: index, rev: s.rev}
		s.res.BaseIndex, s.res.BaseRevision = s.meet.index, s.meet.rev
		s.arrive()
	}
}

// plainRefusal tells a refusal on which all releases agree, where users and roles are known since the first entry. A raised alarm takes the
// checks away up to 3.5, and a received snapshot could leave old rights in the cache.
func (s *sim) plainRefusal(index uint64, p *prediction) bool {
	return p.plain && (p.reason == ReasonPermission || p.reason == ReasonUserEmpty) && s.auth.Known && s.baseKnown &&
		(len(s.alarms) == 0 && !s.alarmsUnsure || s.follows(release.AlarmKeepsChecks)) &&
		!slices.ContainsFunc(received(s.m), func(to uint64) bool { return to < index })
}

// foreseeRevoke ends a lease. Which keys go with it may be uncertain although the revoke itself is not; where the revoke may have been
// refused, it is not known whether the lease lives on.
func (s *sim) foreseeRevoke(it *item, p prediction) {
	id := it.req.LeaseRevoke.ID
	s.touch(it, leaseKey(id))
	l := s.leases[id]
	switch {
	case p.state == Applied && !s.mayRepeat():
		delete(s.leases, id)
		s.noteOutcome(it, Outcome{State: OutsideHistory})
	case l != nil && (!p.sure || s.mayRepeat()):
		l.unsure = true
	}
}

// mayRepeat tells whether restarts executed auth entries twice: then the auth revision is not the one that the log gives, and what was
// permitted at an entry is not certain.
func (s *sim) mayRepeat() bool {
	once := s.follows(release.IndexWithAuth) && s.version.Has(release.DefragLosesIndex).Excluded()
	return s.auth.Enabled && !once && s.m.DB.Auth.Revision != s.plain.at(s.m.AppliedMax)
}

// blur forgets the keys that an entry may have changed.
func (s *sim) blur(r *dumplog.Request) {
	if r.LeaseRevoke != nil {
		for _, k := range sortedKeys(s.keys.byLease[r.LeaseRevoke.ID]) {
			s.keys.blur(k)
		}
	}
	r.EachOp(func(op dumplog.RequestOp) {
		switch {
		case op.Put != nil:
			s.keys.blur(string(op.Put.Key))
		case op.DeleteRange != nil:
			var keys []string
			s.keys.ascend(op.DeleteRange.Key, op.DeleteRange.RangeEnd, func(k *keyState) bool {
				keys = append(keys, k.key)
				return true
			})
			for _, k := range keys {
				s.keys.blur(k)
			}
		}
	})
}

// arrive comes to the place where log and database meet: from here on the model has the keys that the database had there.
func (s *sim) arrive() {
	s.met = true
	have, whole := newKeyModel(), true
	for g := s.cur.peek(0); g != nil && g.main <= s.meet.rev; g = s.cur.peek(0) {
		whole = whole && !g.hole
		for i := range g.records {
			whole = whole && !g.records[i].bad
			have.absorb(&g.records[i])
		}
		s.cur.take()
	}
	if s.cur.peek(0) == nil {
		whole = whole && !s.cur.hole
	}
	if s.fromStart && whole && s.meet.index <= s.logEnd {
		s.compareBelow(have)
	}
	s.whole = whole
	s.keys, s.rev, s.loose, s.kvKnown = have, s.meet.rev, false, whole
	s.res.To = s.meet.index
}

// compareBelow holds what the log predicts for the keys against the records of the database.
func (s *sim) compareBelow(have *keyModel) {
	if !s.loose && s.rev != s.meet.rev {
		s.below(BelowDiff{Index: s.meet.index, Expected: fmt.Sprintf("revision %d", s.rev), Observed: fmt.Sprintf("revision %d", s.meet.rev)})
		return
	}
	s.keys.tree.Ascend(func(want *keyState) bool {
		if want.unsure {
			return true
		}
		got := have.get(want.key)
		d := BelowDiff{Key: want.key, Index: want.entry, Expected: want.text(), Observed: "absent"}
		if got != nil {
			d.Rev = got.mod
		}
		switch {
		case got == nil:
			s.below(d)
		case !sameBelow(want, got):
			d.Observed = got.text()
			s.below(d)
		}
		return true
	})
	have.tree.Ascend(func(got *keyState) bool {
		if s.keys.get(got.key) == nil {
			s.below(BelowDiff{Key: got.key, Index: s.meet.index, Rev: got.mod, Expected: "absent", Observed: got.text()})
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
func sameBelow(want, got *keyState) bool {
	return want.vhash == got.vhash && want.lease == got.lease &&
		(want.loose || want.create == got.create && want.mod == got.mod && want.version == got.version)
}

func (k *keyState) text() string {
	s := fmt.Sprintf("mod %d create %d version %d", k.mod, k.create, k.version)
	if k.loose {
		s = "present"
	}
	if k.lease != 0 {
		s += fmt.Sprintf(" lease %x", uint64(k.lease))
	}
	return s + fmt.Sprintf(" value hash %016x", k.vhash)
}

// readValue reads the value of a key's record, for compares that need more than its hash. Above the compact revision the newest
// record of each key is always there.
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
