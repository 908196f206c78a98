package replay

import (
	"encoding/binary"
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
	Rev int64
	// Wrote is the revision at which the log has the key written, zero where that is not certain or where the key
	// should not exist.
	Wrote              dumpdb.Rev
	Expected, Observed string
}

// OfRevision reports whether the revision itself differs.
func (d BelowDiff) OfRevision() bool { return d.Key == "" }

// maxBelow bounds the differences that are kept; BelowCount counts all.
const maxBelow = 1000

// belowPlace predicts entries before the place where log and database meet, and compares the keys there.
type belowPlace struct {
	*subject
	leases *leaseWatch
	auth   *authWatch
	// whole is true when all records up to the place could be read. certain is what the log says for certain about the
	// keys there.
	whole   bool
	certain *certainty
	// unknown is true after an entry that does not decode: any key may have been changed.
	unknown bool
	// lastWriter is the last put before the place when no entry between may have written, nil otherwise.
	lastWriter *apply.Key
}

// foresee predicts an entry below the place where the database takes over, and changes the model accordingly.
func (be *belowPlace) foresee(it *item) Outcome {
	p := be.Evaluate(it.req)
	uncertain := !p.Sure && !be.plainRefusal(it.entry.Index, &p) || be.auth.mayRepeat()
	if it.req.LeaseRevoke != nil {
		be.foreseeRevoke(it, p)
	}
	if uncertain {
		be.blur(it.req)
		be.Loose = true
		return Outcome{State: OutsideHistory, Detail: "its effect is compacted, and the log alone does not tell it"}
	}
	if len(p.Writes) == 0 {
		return Outcome{State: OutsideHistory, Detail: "without effect according to the log"}
	}
	be.Revision++
	defer be.early(it.entry.Index)
	be.Keys.Write(p.Writes, apply.Key{Mod: be.Revision, Entry: it.entry.Index, Loose: be.Loose})
	o := Outcome{State: OutsideHistory, Detail: "its revision is compacted"}
	if !be.Loose {
		o.Rev = be.Revision
	}
	return o
}

// undecoded: from an entry that does not decode on, the log does not tell what the keys are.
func (be *belowPlace) undecoded() Outcome {
	be.unknown, be.Loose = true, true
	return Outcome{State: OutsideHistory, Detail: "it does not decode"}
}

// early lets the database take over as soon as nothing more is compacted, if the whole prediction has been certain.
func (be *belowPlace) early(index uint64) {
	if !be.Loose && be.Revision == be.floor() && index < be.meet.index {
		be.meet = place{index: index, rev: be.Revision}
		be.res.BaseIndex, be.res.BaseRevision = be.meet.index, be.meet.rev
		be.arrive()
	}
}

// plainRefusal reports a refusal on which all releases agree, with users and roles known since the first entry. A
// raised alarm disables the checks up to 3.5, and a received snapshot could leave old rights in the cache.
func (be *belowPlace) plainRefusal(index uint64, p *apply.Effect) bool {
	return p.Plain && (p.Reason == ReasonPermission || p.Reason == ReasonUserEmpty) && be.Auth.Known && be.StateKnown &&
		be.keepsChecks() &&
		!slices.ContainsFunc(received(be.m), func(to uint64) bool { return to < index })
}

// keepsChecks reports whether no alarm can have taken the checks of permissions away.
func (su *subject) keepsChecks() bool {
	return su.ChecksPermissions() && (!su.AlarmsUnsure || su.follows(release.AlarmKeepsChecks))
}

// foreseeRevoke ends a lease. Its deleted keys may be uncertain although the revoke itself is not. If the revoke may
// have been refused, it is unknown whether the lease still exists.
func (be *belowPlace) foreseeRevoke(it *item, p apply.Effect) {
	id := it.req.LeaseRevoke.ID
	be.touch(it, leaseKey(id))
	l := be.Leases[id]
	switch {
	case p.Result == apply.Applied && !be.auth.mayRepeat():
		delete(be.Leases, id)
		be.leases.noteOutcome(it, Outcome{State: OutsideHistory})
	case l != nil && (!p.Sure || be.auth.mayRepeat()):
		l.Unsure = true
	}
}

// mayRepeat reports whether restarts executed auth entries twice. Then the auth revision differs from the one in the
// log, and the permissions at an entry are uncertain.
func (aw *authWatch) mayRepeat() bool {
	once := aw.oldAuth == 0 && aw.follows(release.IndexWithAuth) && aw.Version.Has(release.DefragLosesIndex).Excluded()
	return aw.Auth.Enabled && !once && aw.m.DB.Auth.Revision != aw.plain.at(aw.m.AppliedMax)
}

// blur forgets the keys that an entry may have changed.
func (be *belowPlace) blur(r *dumplog.Request) {
	if r.LeaseRevoke != nil {
		for _, k := range be.Keys.OfLease(r.LeaseRevoke.ID) {
			be.Keys.Forget(k)
		}
	}
	r.EachOp(func(op dumplog.RequestOp) {
		switch {
		case op.Put != nil:
			be.Keys.Forget(string(op.Put.Key))
		case op.DeleteRange != nil:
			var keys []string
			be.Keys.Range(op.DeleteRange.Key, op.DeleteRange.RangeEnd, func(k *apply.Key) bool {
				keys = append(keys, k.Name)
				return true
			})
			for _, k := range keys {
				be.Keys.Forget(k)
			}
		}
	})
}

// arrive handles the place where log and database meet: from here on the model has the keys that the database had
// there.
func (be *belowPlace) arrive() {
	be.met = true
	have, whole := be.loadKeys(be.meet.rev), true
	if have != nil {
		be.cur.stop()
		be.cur = newCursorFrom(be.m.DB.Handle, be.m.DB.KV.BumpMarker, dumpdb.Rev{Main: be.meet.rev + 1})
	} else {
		have, whole = be.takeKeys()
	}
	if be.room.Exceeded() {
		return // the replay ends
	}
	if be.fromStart && whole && !be.unknown && be.meet.index <= be.logEnd {
		be.compareBelow(have)
	}
	be.whole = whole
	be.Keys.Release()
	be.Keys, be.Revision, be.Loose, be.KeysKnown = have, be.meet.rev, false, whole
	be.res.To = be.meet.index
}

// takeKeys takes the records up to the place from the cursor. whole is false if some of them are hidden.
func (be *belowPlace) takeKeys() (have *apply.Keys, whole bool) {
	have, whole = be.room.NewKeys(be.liveKeys()), true
	for g := be.cur.peek(0); g != nil && g.main <= be.meet.rev && !be.room.Exceeded(); g = be.cur.peek(0) {
		whole = whole && !g.hole
		for i := range g.records {
			whole = whole && !g.records[i].bad
			absorb(have, &g.records[i])
		}
		be.cur.take()
	}
	// Unreadable pages between the last records taken and the next ones may hold revisions up to the place.
	if g := be.cur.peek(0); g != nil {
		return have, whole && !g.hole
	}
	return have, whole && !be.cur.hole
}

// liveKeys is how many keys the database holds, 0 if that is not known.
func (su *subject) liveKeys() int {
	if !su.m.HasDB() || su.m.DB.KV == nil {
		return 0
	}
	return int(su.m.DB.KV.LiveKeys)
}

// compareBelow compares what the log predicts for the keys with the records of the database.
func (be *belowPlace) compareBelow(have *apply.Keys) {
	if !be.Loose && be.Revision != be.meet.rev {
		be.res.misplaced, be.res.surplus = be.Revision < be.floor(), be.Revision < be.meet.rev
		be.below(BelowDiff{Index: be.meet.index, Expected: fmt.Sprintf("revision %d", be.Revision),
			Observed: fmt.Sprintf("revision %d", be.meet.rev)})
		return
	}
	be.Keys.All(func(want *apply.Key) bool {
		if want.Unsure {
			return true
		}
		got := have.Get(want.Name)
		d := BelowDiff{Key: want.Name, Index: want.Entry, Expected: be.textOf(want), Observed: "absent"}
		if !want.Loose {
			d.Wrote = dumpdb.Rev{Main: want.Mod, Sub: want.Sub}
		}
		if got != nil {
			d.Rev = got.Mod
		}
		switch {
		case got == nil:
			be.below(d)
		case !sameBelow(want, got):
			d.Observed = be.textOf(got)
			be.below(d)
		}
		return true
	})
	have.All(func(got *apply.Key) bool {
		if be.Keys.Get(got.Name) == nil {
			be.below(BelowDiff{Key: got.Name, Index: be.meet.index, Rev: got.Mod, Expected: "absent",
				Observed: be.textOf(got)})
		}
		return true
	})
}

func (be *belowPlace) below(d BelowDiff) {
	if be.res.BelowCount++; len(be.res.Below) < maxBelow {
		be.res.Below = append(be.res.Below, d)
	}
}

// sameBelow compares as far as the prediction is certain.
func sameBelow(want, got *apply.Key) bool {
	return want.Sum == got.Sum && want.Lease == got.Lease &&
		(want.Loose || want.Create == got.Create && want.Mod == got.Mod && want.Sub == got.Sub &&
			want.Version == got.Version)
}

// textOf describes a key. Of its value only a hash is known, and shown by a keyed digest of that.
func (su *subject) textOf(k *apply.Key) string {
	s := fmt.Sprintf("mod %d create %d version %d", k.Mod, k.Create, k.Version)
	if k.Sub != 0 {
		s = fmt.Sprintf("record %d.%d ", k.Mod, k.Sub) + s
	}
	if k.Loose {
		s = "present"
	}
	if k.Lease != 0 {
		s += fmt.Sprintf(" lease %x", uint64(k.Lease))
	}
	return s + " value digest " + su.m.Digest(binary.LittleEndian.AppendUint64(nil, k.Sum))
}

// readValue reads the value of a key's record, for compares that need more than its hash. Above the compact revision
// the newest record of each key is always there.
func (su *subject) readValue(key string, at dumpdb.Rev) ([]byte, bool) {
	if !su.met {
		return nil, false
	}
	for rev, err := range su.m.DB.Handle.RevisionsBetween(at, dumpdb.Rev{Main: at.Main, Sub: at.Sub + 1}) {
		if err != nil || rev.Err != nil || rev.Tombstone || string(rev.KV.Key) != key {
			return nil, false
		}
		return append([]byte{}, rev.KV.Value...), true
	}
	return nil, false
}
