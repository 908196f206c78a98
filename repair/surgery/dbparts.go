package surgery

import (
	"fmt"
	"strings"

	bolt "go.etcd.io/bbolt"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// missingPart are consecutive records of one revision.
type missingPart struct{ first, last dumpdb.Rev }

// part notes the records that a revision lacks below the next one that was found. A transaction numbers its records
// from 0. At or below the compact revision superseded ones are gone.
func (b *rebuilder) part(next dumpdb.Rev) {
	want := int64(0)
	if next.Main == b.last {
		want = b.sub + 1
	}
	if next.Main > b.compact && next.Sub > want {
		b.parts = append(b.parts, missingPart{dumpdb.Rev{Main: next.Main, Sub: want},
			dumpdb.Rev{Main: next.Main, Sub: next.Sub - 1}})
	}
}

// partsText names the first of many records.
func partsText(list []missingPart) string {
	var out []string
	for i, p := range list {
		if i == 5 {
			return strings.Join(out, ", ") + fmt.Sprintf(" and %d more stretches", len(list)-i)
		}
		if p.first == p.last {
			out = append(out, p.first.String())
			continue
		}
		out = append(out, p.first.String()+" to "+p.last.String())
	}
	return strings.Join(out, ", ")
}

// fillParts takes the records that a revision of several writes may lack from a database that has every record there:
// that of another member, else one that a replay of the log gives. Above the compact revision nothing else shows how
// many records a revision has.
func (b *rebuilder) fillParts() error {
	b.shown = map[*dumpdb.DamageError]bool{}
	for _, d := range b.damage {
		first, last, ok := d.LostRevisions()
		switch {
		case !ok && b.ended && b.compact <= 0:
			first, last = 1, b.last
		case !ok || first <= b.compact || last == 0 && !b.ended || last > b.last:
			continue
		case last == 0:
			last = b.last
		}
		done, err := b.fillFromAny(span{uint64(first), uint64(last)})
		if err != nil {
			return err
		}
		b.shown[d] = done
	}
	return nil
}

// fillFromAny adds the missing records of revisions that were found in part. It reports whether a database shows all
// records of these revisions.
func (b *rebuilder) fillFromAny(h span) (bool, error) {
	for _, p := range b.w.peers() {
		if !showsAll(p, h) {
			continue
		}
		if done, err := b.fillFrom(p.DB.Handle, h, "the database of "+p.Label()); done || err != nil {
			return done, err
		}
	}
	if db := b.fromLog(); db != nil {
		return b.fillFrom(db, h, "a replay of the log")
	}
	return false, nil
}

// showsAll reports whether a member's database has every record of these revisions.
func showsAll(p *evidence.Member, h span) bool {
	return p.HasDB() && !p.DB.KVDamaged && p.CompactRevision() < int64(h.from) && p.CurrentRevision() >= int64(h.to)
}

func (b *rebuilder) fillFrom(db *dumpdb.DB, h span, from string) (bool, error) {
	next, before := int64(h.from), b.records
	for r, err := range db.RevisionsBetween(dumpdb.Rev{Main: int64(h.from)}, dumpdb.Rev{Main: int64(h.to) + 1}) {
		if b.ctx.Err() != nil {
			return false, b.ctx.Err()
		}
		if err != nil || r.Err != nil || r.Main > max(next, 2) { // a new store is at revision 1, which has no record
			return false, b.flush()
		}
		next = r.Main + 1
		if b.written(r.RawKey) {
			continue
		}
		if err := b.write(&r); err != nil {
			return false, err
		}
	}
	if err := b.flush(); err != nil || next != int64(h.to)+1 {
		return false, err
	}
	if b.records > before {
		b.filled, b.from = append(b.filled, h), from
	}
	b.dropParts(h)
	return true, nil
}

// dropParts forgets the missing records of revisions that are complete now.
func (b *rebuilder) dropParts(h span) {
	var left []missingPart
	for _, p := range b.parts {
		if p.first.Main < int64(h.from) || p.first.Main > int64(h.to) {
			left = append(left, p)
		}
	}
	b.parts = left
}

// written reports whether the new database has a record.
func (b *rebuilder) written(key []byte) (found bool) {
	_ = b.dst.View(func(tx *bolt.Tx) error { // the function returns no error
		found = tx.Bucket([]byte("key")).Get(key) != nil
		return nil
	})
	return found
}

// witnesses names the members whose databases the second diagnosis can compare with what damage may have taken: they
// have to reach its end, and what both have must not be below the compact revision of one of them. An end that is open
// is that of a database at the same entry, or of one that is further and shows no later revision.
func (b *rebuilder) witnesses(last int64, known bool) (names []string) {
	at := b.w.source().ConsistentIndex()
	for _, p := range b.w.peers() {
		if !p.HasDB() || p.DB.KVDamaged || p.CompactRevision() > b.last || p.CurrentRevision() < max(b.compact, last) {
			continue
		}
		open := !known || last == 0
		if open && p.ConsistentIndex() != at && (p.ConsistentIndex() < at || p.CurrentRevision() > b.last) {
			continue
		}
		names = append(names, p.Label())
	}
	return names
}
