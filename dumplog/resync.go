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

// tornKind returns the kind of an incomplete record. Only in the last segment can it be a torn write.
func (r *segReader) tornKind() DamageKind {
	if r.last {
		return DamageTornTail
	}
	return DamageTruncated
}

// zeroWord handles a length word of zero: the end of the segment, unless data follows.
func (r *segReader) zeroWord(it *item) error {
	p, err := r.hunt.nonZero(r.off)
	if err != nil {
		return err
	}
	if p >= r.win.size {
		return r.finish(it, endZero)
	}
	// A running server has appended since this place was read. The log ended here at that moment.
	if p < r.off+wordSize {
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
		it.dmg = r.damage(DamageZeroHole, r.off, q-r.off, errors.New("zeros, with valid frames after them"))
		return r.resume(q)
	}
	end, err := r.hunt.lastNonZero(p)
	if err != nil {
		return err
	}
	if r.last && p/sector > r.off/sector && p%sector < wordSize {
		return r.giveUp(it, r.damage(DamageTornTail, r.off, end-r.off,
			fmt.Errorf("zeros up to 0x%x, then %d bytes without a frame: sectors of an unfinished write", p, end-p)))
	}
	return r.giveUp(it, r.damage(DamageForeign, p, end-p,
		errors.New("bytes after the end of the log that are not a frame")))
}

// broken handles bytes that are not a frame. why is the reason, kind the damage that the length word suggests, fr what
// the length word claims.
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
	q, ok, err := r.findNext(off, fr, own)
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

// lastBroken handles bad bytes without a frame after them.
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
		why = fmt.Errorf("%w; more than one bit is wrong, and no valid record follows", why)
	}
	d := r.damage(kind, off, n, why)
	if kind == r.tornKind() || kind == DamageTail {
		if index, ok := r.entryHeadAt(off); ok {
			d.LostFrom, d.LostTo = index, index
		}
	}
	return r.giveUp(it, d)
}

// resume continues at a frame that resync found. The chain restarts there unless the frame continues the old one.
func (r *segReader) resume(q int64) error {
	if r.chained {
		_, crc, data, _, ok := r.peek(q)
		r.chained = ok && nextCRC(r.chain, data) == crc
	}
	r.off = q
	return nil
}

// salvage handles a damaged length word before an intact record: the record's head shows its length, the CRC proves it.
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
	it.dmg = r.damage(DamageFrame, off, 0, fmt.Errorf("%w; the record after it is intact, its CRC proves it", why))
	it.queued = &good
	r.chain, r.off = crc, off+own
	if t == RecordEntry {
		r.lastIndex, r.lastTerm = head.index, head.term
	}
	r.dataEnd = r.off
	return true, nil
}
