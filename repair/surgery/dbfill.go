package surgery

import (
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// hole fills missing revisions with the records of another member. Above the compact revision every revision has
// records, and they are equal on all members that applied the same entries. If no member has them, the log is replayed.
// The second diagnosis, which also replays, decides whether the records are right.
func (b *rebuilder) hole(h span) error {
	for _, p := range b.w.peers() {
		if !p.HasDB() || p.DB.KVDamaged || p.CompactRevision() >= int64(h.from) || p.CurrentRevision() < int64(h.to) {
			continue
		}
		if done, err := b.fill(p.DB.Handle, h, "the database of "+p.Label()); done || err != nil {
			return err
		}
	}
	if db := b.fromLog(); db != nil {
		if done, err := b.fill(db, h, "a replay of the log"); done || err != nil {
			return err
		}
	}
	b.holes = append(b.holes, h)
	return nil
}

func (b *rebuilder) fill(db *dumpdb.DB, h span, from string) (bool, error) {
	rows := recordsOf(db, h)
	for i := range rows {
		if err := b.add(&rows[i]); err != nil {
			return true, err
		}
	}
	if rows == nil {
		return false, nil
	}
	b.filled, b.from = append(b.filled, h), from
	return true, nil
}

// maxFill bounds the records in memory for one gap.
const maxFill = 1_000_000

// recordsOf reads the records of a range of revisions; nil if one of them is missing.
func recordsOf(db *dumpdb.DB, h span) (rows []dumpdb.Revision) {
	next := int64(h.from)
	for r, err := range db.RevisionsBetween(dumpdb.Rev{Main: int64(h.from)}, dumpdb.Rev{Main: int64(h.to) + 1}) {
		if err != nil || r.Err != nil || r.Main > next || len(rows) == maxFill {
			return nil
		}
		next = r.Main + 1
		r.RawKey, r.Raw = append([]byte(nil), r.RawKey...), append([]byte{}, r.Raw...)
		rows = append(rows, r)
	}
	if next != int64(h.to)+1 {
		return nil
	}
	return rows
}

// tail finds the end of the bucket if damage has removed it, from a member whose database is at the same index.
func (b *rebuilder) tail() error {
	open := false
	for _, d := range b.damage {
		_, last, ok := d.LostRevisions()
		open = open || !ok || last == 0
	}
	if !open {
		return nil
	}
	rev := b.endsAt()
	if rev > b.last {
		if err := b.hole(span{uint64(b.last + 1), uint64(rev)}); err != nil {
			return err
		}
	}
	b.ended = rev > 0 && len(b.holes) == 0
	return nil
}

// endsAt returns the revision at which the bucket must end, 0 if nothing shows it.
func (b *rebuilder) endsAt() int64 {
	for _, p := range b.w.peers() {
		if p.HasDB() && !p.DB.KVDamaged && p.ConsistentIndex() == b.w.source().ConsistentIndex() &&
			p.CurrentRevision() >= b.last {
			return p.CurrentRevision()
		}
	}
	if db := b.fromLog(); db != nil {
		if rev, err := db.CurrentRev(); err == nil && rev >= b.last {
			return rev
		}
	}
	return 0
}
