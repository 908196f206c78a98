package dumplog

import (
	"errors"
	"fmt"
)

// stub handles a file that ends inside a length word.
func (r *segReader) stub(it *item, b []byte) error {
	if firstNonZero(b) == len(b) {
		return r.finish(it, endZero)
	}
	return r.giveUp(it, r.damage(r.tornKind(), r.off, int64(len(b)), errors.New("the file ends inside a length word")))
}

// tornKind is what an incomplete record is called: only the last segment is being written to when a server dies.
func (r *segReader) tornKind() DamageKind {
	if r.last {
		return DamageTornTail
	}
	return DamageTruncated
}

// zeroWord handles a length word of zero: the end of the segment, unless something stands behind it.
func (r *segReader) zeroWord(it *item) error {
	p, err := r.hunt.nonZero(r.off)
	if err != nil {
		return err
	}
	if p >= r.win.size {
		return r.finish(it, endZero)
	}
	own, err := r.ownSize(r.off)
	if err != nil {
		return err
	}
	if own > 0 {
		if done, err := r.salvage(it, r.off, own, errors.New("length word is 0")); done || err != nil {
			return err
		}
	}
	q, ok, err := r.resync(p &^ 7)
	if err != nil {
		return err
	}
	if ok {
		it.dmg = r.damage(DamageZeroHole, r.off, q-r.off, errors.New("zeros, and valid frames behind them"))
		return r.resume(q)
	}
	end, err := r.hunt.lastNonZero(p)
	if err != nil {
		return err
	}
	if r.last && p/sector > r.off/sector && p%sector < wordSize {
		return r.giveUp(it, r.damage(DamageTornTail, r.off, end-r.off,
			fmt.Errorf("zeros up to 0x%x, then %d bytes that hold no frame: sectors of an unfinished write", p, end-p)))
	}
	return r.giveUp(it, r.damage(DamageForeign, p, end-p, errors.New("bytes behind the end of the log that hold no frame")))
}

// broken handles bytes that are no frame: why says so, kind is what it looks like from the length word on. fr is what the
// length word claims.
func (r *segReader) broken(it *item, fr frame, kind DamageKind, why error) error {
	off := r.off
	*it = item{}
	own, err := r.ownSize(off)
	if err != nil {
		return err
	}
	if own > 0 && (own != fr.len() || kind == DamageFrame) {
		if done, err := r.salvage(it, off, own, why); done || err != nil {
			return err
		}
	}
	switch {
	case kind == DamageRecord && own > 0 && own != fr.len():
		kind = DamageFrame
	case kind == DamageFrame && own == 0:
		kind = DamageForeign
	}
	q, ok, err := r.behind(off, fr, own)
	if err != nil {
		return err
	}
	if !ok {
		return r.lastBroken(it, fr, kind, why)
	}
	if kind != DamageForeign && r.last && r.zeroed(off, q, true) {
		kind = DamageZeroHole
	}
	it.dmg = r.damage(kind, off, q-off, why)
	return r.resume(q)
}

// lastBroken handles bad bytes with no frame behind them.
func (r *segReader) lastBroken(it *item, fr frame, kind DamageKind, why error) error {
	off := r.off
	end, err := r.hunt.lastNonZero(off)
	if err != nil {
		return err
	}
	n := end - off
	switch overrun := fr.len() > r.win.size-off; {
	case overrun && fr.rec > 0 && fr.rec <= maxRecord:
		kind = r.tornKind()
	case !overrun:
		n = max(n, fr.len())
		if r.last && r.zeroed(off+wordSize, off+fr.len(), false) {
			kind = DamageTornTail
		}
	}
	if kind = r.endKind(kind, off, fr, end); kind == DamageTail {
		why = fmt.Errorf("%w; more than one bit is wrong, and nothing behind it holds", why)
	}
	d := r.damage(kind, off, n, why)
	if kind == r.tornKind() || kind == DamageTail {
		if index, ok := r.entryHeadAt(off); ok {
			d.LostFrom, d.LostTo = index, index
		}
	}
	return r.giveUp(it, d)
}

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
		if q, more, err = r.behind(off, fr, 0); err != nil {
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
		r.loses(it.dmg, it.rec.Type, it.rec.Data)
	}
	r.off = q
	r.chain, r.chained = stored, dataOK || !more
	return nil
}

// loses notes what a single damaged record held: its type is not covered by the CRC, and the head of an entry is mostly
// still there.
func (r *segReader) loses(d *DamageError, t RecordType, data []byte) {
	if t != RecordEntry {
		d.harmless = knownType(t)
		return
	}
	if e, err := decodeEntry(data); err == nil {
		d.LostFrom, d.LostTo = e.index, e.index
	}
}

// flippedCRC handles a record whose data the next record proves: only the CRC field itself is damaged.
func (r *segReader) flippedCRC(it *item, fr frame, why error) error {
	good := *it
	good.rec.CRC, good.ok = CRCMatch, true
	good.head, _ = checkPayload(good.rec.Type, good.rec.Data)
	if good.rec.Type == RecordEntry {
		r.lastIndex, r.lastTerm = good.head.index, good.head.term
	}
	dmg := r.damage(DamageCRC, r.off, 0, fmt.Errorf("%w: the next record proves the data, the CRC field is damaged", why))
	*it = item{dmg: dmg, queued: &good}
	r.chain, r.chained = good.rec.ComputedCRC, true
	r.off += fr.len()
	r.dataEnd = r.off
	return nil
}

// badType handles a record whose CRC holds, or can not be judged, and whose data is not what its type says.
func (r *segReader) badType(it *item, fr frame, b []byte, perr error) error {
	if !r.chained {
		return r.broken(it, fr, DamagePayload, perr)
	}
	it.rec.CRC = CRCMatch
	good := *it
	fits := 0
	for t := RecordMetadata; t <= RecordSnapshot; t++ {
		if h, err := checkPayload(t, it.rec.Data); err == nil && t != it.rec.OnDiskType && t != RecordCRC && (t != RecordMetadata || r.atHead(t)) {
			good.rec.Type, good.head = t, h
			fits++
		}
	}
	*it = item{}
	if fits == 1 {
		good.ok = true
		err := r.accept(&good, b, fr)
		it.dmg = r.damage(DamageType, good.rec.Offset, 0,
			fmt.Errorf("the type field says %s, the data, which the CRC proves, is that of record type %s", good.rec.OnDiskType, good.rec.Type))
		it.queued = &good
		return err
	}
	kind := DamagePayload
	if fits > 1 || !knownType(good.rec.Type) {
		kind = DamageType
	}
	it.rec = good.rec
	it.rec.Type = good.rec.OnDiskType
	it.dmg = r.damage(kind, r.off, fr.len(), perr)
	r.chain = it.rec.StoredCRC
	r.off += fr.len()
	r.dataEnd = r.off
	return nil
}

// resume goes on at a frame that resync found. Its chain starts anew unless it continues the old one.
func (r *segReader) resume(q int64) error {
	if r.chained {
		_, crc, data, _, ok := r.peek(q)
		r.chained = ok && nextCRC(r.chain, data) == crc
	}
	r.off = q
	return nil
}

// salvage handles a damaged length word before a record that is whole: its own head tells its length, the CRC proves it.
func (r *segReader) salvage(it *item, off, own int64, why error) (bool, error) {
	if !r.chained || own > r.win.size-off {
		return false, nil
	}
	b, err := r.win.at(off, int(own))
	if err != nil || int64(len(b)) < own {
		return false, err
	}
	n := recordSize(b[wordSize:])
	t, crc, data, perr := parseRecord(b[wordSize : wordSize+n])
	if perr != nil || nextCRC(r.chain, data) != crc || t == RecordCRC {
		return false, nil
	}
	head, perr := checkPayload(t, data)
	if perr != nil {
		return false, nil
	}
	good := item{ok: true, head: head, rec: Record{
		Pos: Pos{Segment: r.name, Offset: off}, Len: own, Pad: uint8(own - wordSize - n), Type: t, OnDiskType: t,
		StoredCRC: crc, ComputedCRC: crc, CRC: CRCMatch, Data: data,
	}}
	it.dmg = r.damage(DamageFrame, off, 0, fmt.Errorf("%w; the record behind it is whole, its CRC proves it", why))
	it.queued = &good
	r.chain, r.off = crc, off+own
	if t == RecordEntry {
		r.lastIndex, r.lastTerm = head.index, head.term
	}
	r.dataEnd = r.off
	return true, nil
}

// badHead handles a first record that is no CRC record. Records of that type alone carry no data, so where the next
// record proves the value, only the type field is damaged.
func (r *segReader) badHead(it *item, fr frame, b []byte) error {
	if len(it.rec.Data) != 0 || !r.follows(fr.len(), it.rec.StoredCRC) {
		return r.broken(it, fr, DamageType, errors.New("a segment starts with a crc record"))
	}
	good := *it
	good.rec.Type, good.ok = RecordCRC, true
	*it = item{dmg: r.damage(DamageType, 0, 0, fmt.Errorf("the type field says %s, only a crc record carries no data", good.rec.OnDiskType))}
	if err := r.accept(&good, b, fr); err != nil {
		return err
	}
	it.queued = &good
	return nil
}

// seedDamaged tells a damaged value in the CRC record from damage in the metadata record behind it: the metadata is that
// of the other segments, or the chain of a first segment starts at 0.
func (r *segReader) seedDamaged(data []byte, stored uint32, end int64) bool {
	if r.seq == 0 {
		return nextCRC(0, data) == stored
	}
	m, err := DecodeMetadata(data)
	return err == nil && r.want != nil && m == *r.want && r.follows(end, stored)
}

// flippedSeed goes on behind a metadata record that is whole after a CRC record that is not.
func (r *segReader) flippedSeed(it *item, fr frame) error {
	good := *it
	good.rec.CRC, good.ok = CRCMatch, true
	r.badSeed = true
	*it = item{queued: &good, dmg: r.damage(DamageChain, 0, 0, fmt.Errorf("the CRC record says %08x, the metadata record behind it shows another value", r.chain))}
	r.chain, r.chained = good.rec.StoredCRC, true
	r.off += fr.len()
	r.dataEnd = r.off
	return nil
}
