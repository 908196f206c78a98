package dumplog

// Entry decodes a record of type entry. Data aliases the record's. Overwritten stays false, since only a scan of the
// whole log can tell.
func (r *Record) Entry() (Entry, error) {
	h, err := decodeEntry(r.Data)
	return Entry{Pos: r.Pos, Len: r.Len, CRC: r.CRC, Term: h.term, Index: h.index, Type: h.typ, Data: h.data}, err
}
