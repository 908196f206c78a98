package dumplog

import "github.com/etcd-medic/etcd-medic/internal/wire"

// ownSize returns the frame length according to the fields of the record at off, 0 if there is no head of a record.
func (r *segReader) ownSize(off int64) (int64, error) {
	n := min(headRoom, r.win.size-off-wordSize)
	if n <= 0 {
		return 0, nil
	}
	b, err := r.aux.at(off+wordSize, int(n))
	if err != nil {
		return 0, err
	}
	if s := recordSize(b); s > 0 {
		return frameSizeOf(s), nil
	}
	return 0, nil
}

// lengthConsistent reports whether the length word and the record's own fields agree. It reads only the first bytes.
func (r *segReader) lengthConsistent(off int64, fr frame) bool {
	own, err := r.ownSize(off)
	return err == nil && own == fr.len()
}

// peek reads the frame at off for a proof. ok means that the frame contains a record whose data fits its type.
func (r *segReader) peek(off int64) (t RecordType, crc uint32, data []byte, length int64, ok bool) {
	if off < 0 || off+wordSize > r.win.size || r.proofs < 0 {
		return
	}
	if off < r.aux.base || off >= r.aux.base+int64(r.aux.n) {
		r.proofs -= 64 << 10 // the cost of moving the window, in bytes of CRC
	}
	b, err := r.aux.at(off, wordSize)
	if err != nil || len(b) < wordSize {
		return
	}
	fr, err := parseWord(word(b))
	if err != nil || fr.len() > r.win.size-off || !r.lengthConsistent(off, fr) || fr.len() > r.proofs {
		return
	}
	r.proofs -= fr.len()
	if b, err = r.aux.at(off, int(fr.len())); err != nil || int64(len(b)) < fr.len() {
		return
	}
	if t, crc, data, err = parseRecord(b[wordSize : wordSize+fr.rec]); err != nil || t == RecordCRC {
		return
	}
	_, err = checkPayload(t, data)
	return t, crc, data, fr.len(), err == nil
}

// follows reports whether chain is the right CRC before the record at off. Either that record continues it, or the
// segment ends there and the next segment's CRC record contains it.
func (r *segReader) follows(off int64, chain uint32) bool {
	if _, crc, data, _, ok := r.peek(off); ok {
		return nextCRC(chain, data) == crc
	}
	return r.next != nil && r.next.seeded && r.next.seed == chain && r.restZero(off)
}

func (r *segReader) restZero(off int64) bool {
	p, err := r.aux.nonZero(off)
	return err == nil && p >= r.aux.size
}

// confirmed reports whether the frame at off belongs to this log: the next record continues its stored CRC. The last
// frame is accepted if its CRC continues the chain, if the next segment does, or if its content is plausible.
func (r *segReader) confirmed(off int64) bool {
	t, crc, data, n, ok := r.peek(off)
	if !ok || t == RecordMetadata && off > 4*wordSize {
		return false
	}
	fits := r.chained && nextCRC(r.chain, data) == crc
	plausible := r.plausibleNext(t, data)
	switch {
	case fits || r.follows(off+n, crc):
		return true
	case !r.restZero(off + n):
		return false
	}
	return plausible
}

// plausibleNext reports whether an unproven record continues the log in a plausible way.
func (r *segReader) plausibleNext(t RecordType, data []byte) bool {
	const far = 1 << 20
	likely := func(v, last uint64) bool { return v >= last && v-last <= far }
	switch t {
	case RecordEntry:
		e, _ := decodeEntry(data)
		return e.index > 0 && likely(e.index, r.lastIndex) && likely(e.term, r.lastTerm)
	case RecordState:
		h, _ := DecodeHardState(data)
		return likely(h.Term, r.lastTerm) && h.Commit <= r.lastIndex+far
	case RecordSnapshot:
		s, _ := DecodeSnapshotRecord(data)
		return s.Index <= r.lastIndex+far && s.Term <= r.lastTerm+far
	}
	return false
}

// findNext looks for the next good frame after a bad one: first where the length word and the record's own head say
// that it ends, then everywhere. The search inside the record comes last, because a value may contain the bytes of a
// log.
func (r *segReader) findNext(off int64, fr frame, own int64) (int64, bool, error) {
	for _, n := range [...]int64{own, fr.len()} {
		if n > 0 && n < r.win.size-off && fr.rec > 0 && r.confirmed(off+n) {
			return off + n, true, nil
		}
	}
	from := off + wordSize
	if own > 0 && own == fr.len() && own < r.win.size-off {
		from = off + own
	}
	return r.resync(from)
}

// resync searches for a confirmed frame: first at 8-byte steps, to which every writer aligns frames, then at every
// byte, since a copy may have lost or gained some.
func (r *segReader) resync(from int64) (int64, bool, error) {
	off, ok, err := r.search(from, wordSize)
	if !ok && err == nil {
		off, ok, err = r.search(from+1, 1)
	}
	return off, ok, err
}

func (r *segReader) search(from, step int64) (int64, bool, error) {
	for off := from; off+wordSize <= r.win.size; {
		b, err := r.hunt.at(off, int(min(blockSize, r.win.size-off)))
		if err != nil {
			return 0, false, err
		}
		if len(b) < wordSize {
			break
		}
		if firstNonZero(b) == len(b) {
			p, err := r.hunt.nonZero(off)
			if err != nil {
				return 0, false, err
			}
			off = max(off+step, off+(p-off-wordSize+step)/step*step)
			continue
		}
		i := int64(0)
		for ; i+wordSize <= int64(len(b)); i += step {
			if w := word(b[i:]); w == 0 {
				continue
			} else if _, err := parseWord(w); err == nil && r.confirmed(off+i) {
				return off + i, true, nil
			}
		}
		off += i
	}
	return 0, false, nil
}

// entryHeadAt returns the index of the entry in the damaged record at off, if the head of the record is intact and
// continues the log.
func (r *segReader) entryHeadAt(off int64) (uint64, bool) {
	b, err := r.aux.at(off+wordSize, int(min(2*headRoom, max(0, r.win.size-off-wordSize))))
	if err != nil {
		return 0, false
	}
	s := scanner{b: b}
	var f field
	if !s.next(&f) || f.Num != 1 || RecordType(f.V) != RecordEntry || !s.next(&f) || f.Num != 2 || len(s.b) == 0 ||
		s.b[0] != 0x1a {
		return 0, false
	}
	_, n := wire.Uvarint(s.b[1:]) // length of the data, which may be cut
	if n == 0 {
		return 0, false
	}
	var e entryHead
	s = scanner{b: s.b[1+n:]}
	for e.index == 0 && s.next(&f) && f.Type == wire.Varint {
		switch f.Num {
		case 2:
			e.term = f.V
		case 3:
			e.index = f.V
		}
	}
	return e.index, e.term >= r.lastTerm && e.index > 0 && e.index <= r.lastIndex+1
}

// zeroed reports whether one of the sectors in [from, to) is all zeros.
func (r *segReader) zeroed(from, to int64, whole bool) bool {
	to = min(to, r.win.size)
	for from < to {
		n := min(to-from, blockSize)
		if n < to-from { // keep to sector borders
			n -= (from + n) % sector
		}
		b, err := r.aux.at(from, int(n))
		if err != nil || len(b) == 0 {
			return false
		}
		if zeroSector(b, from, whole) {
			return true
		}
		from += int64(len(b))
	}
	return false
}
