package dumplog

import "github.com/etcd-medic/etcd-medic/internal/wire"

// ownSize is the frame length that the record at off claims by its own fields, 0 when there is no head of a record.
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

// plausible tells from the first bytes whether a frame's length and its record agree, before all of it is read.
func (r *segReader) plausible(off int64, fr frame) bool {
	own, err := r.ownSize(off)
	return err == nil && own == fr.len()
}

// peek reads the frame at off for a proof. ok means: a frame with a record in it that can be what its type says.
func (r *segReader) peek(off int64) (t RecordType, crc uint32, data []byte, length int64, ok bool) {
	if off < 0 || off+wordSize > r.win.size || r.proofs < 0 {
		return
	}
	if off < r.aux.base || off >= r.aux.base+int64(r.aux.n) {
		r.proofs -= 64 << 10 // what moving the window costs, in bytes of CRC
	}
	b, err := r.aux.at(off, wordSize)
	if err != nil || len(b) < wordSize {
		return
	}
	fr, err := parseWord(word(b))
	if err != nil || fr.len() > r.win.size-off || !r.plausible(off, fr) || fr.len() > r.proofs {
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

// follows tells whether chain is the right value before what stands at off: a record that continues it, or the end of
// the segment when the next segment's CRC record says so.
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

// proven tells whether the frame at off belongs to this log: the record behind it continues its stored CRC. A frame
// with nothing behind it is accepted when its CRC fits the chain or the next segment, or when it says nothing unlikely.
func (r *segReader) proven(off int64) bool {
	t, crc, data, n, ok := r.peek(off)
	if !ok || t == RecordMetadata && off > 4*wordSize {
		return false
	}
	fits := r.chained && nextCRC(r.chain, data) == crc
	near := r.near(t, data)
	switch {
	case fits || r.follows(off+n, crc):
		return true
	case !r.restZero(off + n):
		return false
	}
	return near
}

// near tells whether an unproven record continues the log in a likely way.
func (r *segReader) near(t RecordType, data []byte) bool {
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

// behind looks for the next good frame behind a bad one: first where the length word and the record's own head say that
// it ends, then everywhere. A value may hold the bytes of a log; looking inside comes last for that reason.
func (r *segReader) behind(off int64, fr frame, own int64) (int64, bool, error) {
	for _, n := range [...]int64{own, fr.len()} {
		if n > 0 && n < r.win.size-off && fr.rec > 0 && r.proven(off+n) {
			return off + n, true, nil
		}
	}
	from := off + wordSize
	if own > 0 && own == fr.len() && own < r.win.size-off {
		from = off + own
	}
	return r.resync(from)
}

// resync searches for a frame that is proven: at 8-byte steps first, to which every writer aligns frames, then at every
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
			} else if _, err := parseWord(w); err == nil && r.proven(off+i) {
				return off + i, true, nil
			}
		}
		off += i
	}
	return 0, false, nil
}

// entryHeadAt reads the index of the entry whose damaged record stands at off, when the head of the record is still
// there and continues the log.
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

// zeroed tells whether one of the sectors in [from, to) is all zeros.
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
