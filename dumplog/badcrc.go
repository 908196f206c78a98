package dumplog

import "fmt"

// badCRC handles a record whose stored CRC does not continue the chain.
func (r *segReader) badCRC(it *item, fr frame, perr error) error {
	off, stored, computed := r.off, it.rec.StoredCRC, it.rec.ComputedCRC
	why := fmt.Errorf("stored CRC %08x, computed %08x", stored, computed)
	end := off + fr.len()
	it.rec.CRC = CRCMismatch
	if it.rec.Type == RecordMetadata && perr == nil && r.seedDamaged(it.rec.Data, stored, end) {
		return r.flippedSeed(it, fr)
	}
	if perr == nil && r.follows(end, computed) {
		return r.flippedCRC(it, fr, why)
	}
	dataOK := r.follows(end, stored)
	q, more := end, dataOK
	if !dataOK {
		var err error
		if q, more, err = r.findNext(off, fr, 0); err != nil {
			return err
		}
	}
	if !more {
		q = end
	}
	kind := DamageCRC
	switch {
	case r.last && !more:
		if kind, q, why = r.endCRC(off, fr, why); kind != DamageCRC {
			r.end, r.done = string(kind), true
		}
	case r.last && more && r.zeroed(off+wordSize, end, true):
		kind = DamageZeroHole
	}
	it.dmg = r.damage(kind, off, q-off, why)
	if kind != DamageTail || q == end { // an overwritten end may hold more records than this one
		r.markLost(it.dmg, it.rec.Type, it.rec.Data)
	}
	r.off = q
	r.chain, r.chained = stored, dataOK || !more
	return nil
}

// markLost notes which entry a single damaged record held. The CRC does not cover the type, and the head of an entry is
// mostly intact.
func (r *segReader) markLost(d *DamageError, t RecordType, data []byte) {
	if t != RecordEntry {
		d.harmless = knownType(t)
		return
	}
	if e, err := decodeEntry(data); err == nil {
		d.LostFrom, d.LostTo = e.index, e.index
	}
}

// flippedCRC handles a damaged CRC field: the next record proves the data of this one.
func (r *segReader) flippedCRC(it *item, fr frame, why error) error {
	good := *it
	good.rec.CRC, good.ok = CRCMatch, true
	good.head, _ = checkPayload(good.rec.Type, good.rec.Data)
	if good.rec.Type == RecordEntry {
		r.lastIndex, r.lastTerm = good.head.index, good.head.term
	}
	dmg := r.damage(DamageCRC, r.off, 0, fmt.Errorf("%w: the next record proves the data, only the CRC field is "+
		"damaged",
		why))
	*it = item{dmg: dmg, queued: &good}
	r.chain, r.chained = good.rec.ComputedCRC, true
	r.off += fr.len()
	r.dataEnd = r.off
	return nil
}

// seedDamaged reports whether the value in the CRC record is damaged, and not the metadata record after it. It is if
// the metadata equals that of the other segments, or if the chain of a first segment starts at 0.
func (r *segReader) seedDamaged(data []byte, stored uint32, end int64) bool {
	if r.seq == 0 {
		return nextCRC(0, data) == stored
	}
	m, err := DecodeMetadata(data)
	return err == nil && r.want != nil && m == *r.want && r.follows(end, stored)
}

// flippedSeed continues after an intact metadata record that follows a damaged CRC record.
func (r *segReader) flippedSeed(it *item, fr frame) error {
	good := *it
	good.rec.CRC, good.ok = CRCMatch, true
	r.badSeed = true
	*it = item{queued: &good, dmg: r.damage(DamageChain, 0, 0,
		fmt.Errorf("the CRC record says %08x, the metadata record after it continues another value", r.chain))}
	r.chain, r.chained = good.rec.StoredCRC, true
	r.off += fr.len()
	r.dataEnd = r.off
	return nil
}
