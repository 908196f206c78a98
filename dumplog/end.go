package dumplog

import (
	"fmt"
	"math/bits"
	"slices"
)

// endKind classifies bad bytes at the end of the last segment that no valid record follows. end is the offset after the
// last byte of the file that is not zero.
//
// A record whose rest is zeros is an unfinished write, even if no whole sector is zero. etcd repairs a log only if one
// of the record's sectors is all zeros. A single flipped bit is bit rot, wherever it is. Anything else means that the
// end was overwritten.
func (r *segReader) endKind(kind DamageKind, off int64, fr frame, end int64) DamageKind {
	if !r.last || !r.chained || kind == DamageTornTail {
		return kind
	}
	rec := int64(0) // where the record ends, 0 if its length word is implausible
	if fr.rec > 0 && fr.rec <= maxRecord && fr.len() <= r.win.size-off {
		rec = off + wordSize + fr.rec
	}
	switch {
	case end < off+wordSize, rec-end >= wordSize:
		return DamageTornTail
	case r.oneBit(off, fr):
		return kind
	}
	return DamageTail
}

// endCRC classifies a bad record in the last segment that no valid record follows, and returns where the damage ends.
func (r *segReader) endCRC(off int64, fr frame, why error) (DamageKind, int64, error) {
	end := off + fr.len()
	if r.zeroed(off+wordSize, end, false) {
		return DamageTornTail, end, why
	}
	last, err := r.hunt.lastNonZero(off)
	if err != nil {
		return DamageCRC, end, why
	}
	kind := r.endKind(DamageCRC, off, fr, last)
	if kind == DamageTail {
		return kind, max(end, last), fmt.Errorf("%w; more than one bit is wrong, and no valid record follows", why)
	}
	return kind, end, why
}

// oneBit reports whether flipping a single bit makes the bytes at off the record that continues the chain.
func (r *segReader) oneBit(off int64, fr frame) bool {
	if fr.rec > 0 && fr.rec <= maxRecord && fr.len() <= r.win.size-off {
		b, err := r.aux.at(off, int(fr.len()))
		if err != nil || int64(len(b)) < fr.len() {
			return false
		}
		if _, crc, data, err := parseRecord(b[wordSize : wordSize+fr.rec]); err == nil &&
			flippedOnce(data, crc^nextCRC(r.chain, data)) {
			return true
		}
	}
	return r.oneBitInHead(off)
}

// oneBitInHead tries every bit of the length word and of the fields before the data.
func (r *segReader) oneBitInHead(off int64) bool {
	b, err := r.aux.at(off, int(min(wordSize+headRoom, r.win.size-off)))
	if err != nil {
		return false
	}
	for i := range 8 * len(b) {
		head, err := r.aux.at(off, len(b))
		if err != nil || len(head) < wordSize {
			return false
		}
		head = slices.Clone(head)
		head[i/8] ^= 1 << (i % 8)
		fr, err := parseWord(word(head))
		if err != nil || fr.len() > r.win.size-off || recordSize(head[wordSize:]) != fr.rec {
			continue
		}
		all, err := r.aux.at(off, int(fr.len()))
		if err != nil || int64(len(all)) < fr.len() {
			continue
		}
		all = slices.Clone(all)
		copy(all, head[:min(len(head), len(all))])
		if _, crc, data, err := parseRecord(all[wordSize : wordSize+fr.rec]); err == nil &&
			nextCRC(r.chain, data) == crc {
			return true
		}
	}
	return false
}

// flippedOnce reports whether one flipped bit, in the data or in the CRC itself, explains the difference off of the
// CRC. CRC is linear: the difference depends only on the bit's distance from the end, and grows by one zero byte per
// byte of distance.
func flippedOnce(data []byte, off uint32) bool {
	if bits.OnesCount32(off) == 1 {
		return true
	}
	var s [8]uint32
	for i := range s {
		s[i] = castagnoli[1<<i]
	}
	for range data {
		for i := range s {
			if s[i] == off {
				return true
			}
			s[i] = castagnoli[byte(s[i])] ^ s[i]>>8
		}
	}
	return false
}
