package dumplog

// unpadded recognizes a record without padding, as written by 2.0 to 2.2. The length word has no padding although the
// record does not end at a multiple of 8 bytes, and the next frame follows at once. Every etcd still reads them. The
// bytes must continue the CRC chain. No frame that continues it may start where padding would end: in that case the
// length word of a padded record is damaged.
func (r *segReader) unpadded(w uint64) (frame, bool) {
	fr := frame{rec: int64(w & (1<<56 - 1))}
	if w>>56 != 0 || fr.rec < 2 || fr.rec > maxRecord || fr.rec%8 == 0 || fr.len() > r.win.size-r.off ||
		fr.len() > r.proofs {
		return fr, false
	}
	r.proofs -= fr.len()
	b, err := r.aux.at(r.off, int(fr.len()))
	if err != nil || int64(len(b)) < fr.len() {
		return fr, false
	}
	t, crc, data, err := parseRecord(b[wordSize:])
	if err != nil || !knownType(t) {
		return fr, false
	}
	switch {
	case t == RecordCRC:
		return fr, r.off == 0 && len(data) == 0
	case !r.chained || nextCRC(r.chain, data) != crc:
		return fr, false
	}
	padded := r.off + frameSizeOf(fr.rec)
	_, next, data, _, ok := r.peek(padded)
	return fr, !ok || nextCRC(crc, data) != next
}
