package narrow

import (
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// hole fills revisions that are in no page with the records of another member: above the compact revision every revision has records,
// and those are equal on all members that applied the same entries. Whether they did, the second diagnosis replays.
func (b *rebuilder) hole(h span) error {
	for _, p := range b.w.peers() {
		rows := recordsOf(p, h)
		if rows == nil {
			continue
		}
		for i := range rows {
			if err := b.add(&rows[i]); err != nil {
				return err
			}
		}
		b.filled, b.from = append(b.filled, h), p.Label()
		return nil
	}
	b.holes = append(b.holes, h)
	return nil
}

// maxFill bounds how many records are held while a hole is looked up.
const maxFill = 1_000_000

// recordsOf reads the records of a stretch of revisions; nil when one of them is missing there.
func recordsOf(p *evidence.Member, h span) (rows []dumpdb.Revision) {
	if !p.HasDB() || p.DB.KVDamaged || p.CompactRevision() >= int64(h.from) || p.CurrentRevision() < int64(h.to) {
		return nil
	}
	next := int64(h.from)
	for r, err := range p.DB.Handle.RevisionsBetween(dumpdb.Rev{Main: int64(h.from)}, dumpdb.Rev{Main: int64(h.to) + 1}) {
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

// tail: when damage took the end of the bucket, a member whose database stands at the same index shows where it was.
func (b *rebuilder) tail() error {
	open := false
	for _, d := range b.damage {
		_, last, ok := d.LostRevisions()
		open = open || !ok || last == 0
	}
	if !open {
		return nil
	}
	for _, p := range b.w.peers() {
		if !p.HasDB() || p.ConsistentIndex() != b.w.source().ConsistentIndex() || p.CurrentRevision() < b.last {
			continue
		}
		if rev := p.CurrentRevision(); rev > b.last {
			if err := b.hole(span{uint64(b.last + 1), uint64(rev)}); err != nil {
				return err
			}
		}
		b.ended = len(b.holes) == 0
		return nil
	}
	return nil
}
