package dumplog

import (
	"errors"
	"fmt"
)

// badType handles a record whose data does not fit its type. Its CRC matches or cannot be checked.
func (r *segReader) badType(it *item, fr frame, b []byte, perr error) error {
	if !r.chained {
		return r.broken(it, fr, DamagePayload, perr)
	}
	it.rec.CRC = CRCMatch
	good := *it
	fits := 0
	for t := RecordMetadata; t <= RecordSnapshot; t++ {
		if h, err := checkPayload(t, it.rec.Data); err == nil && t != it.rec.OnDiskType && t != RecordCRC &&
			(t != RecordMetadata || r.atHead(t)) {
			good.rec.Type, good.head = t, h
			fits++
		}
	}
	*it = item{}
	if fits == 1 {
		good.ok = true
		err := r.accept(&good, b, fr)
		it.dmg = r.damage(DamageType, good.rec.Offset, 0,
			fmt.Errorf("the type field says %s, but the data, which the CRC proves, is a record of type %s",
				good.rec.OnDiskType, good.rec.Type))
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

// badHead handles a segment that does not start with a CRC record. Only CRC records have no data, so if the next record
// proves the value, only the type field is damaged.
func (r *segReader) badHead(it *item, fr frame, b []byte) error {
	if len(it.rec.Data) != 0 || !r.follows(fr.len(), it.rec.StoredCRC) {
		return r.broken(it, fr, DamageType, errors.New("the segment does not start with a crc record"))
	}
	good := *it
	good.rec.Type, good.ok = RecordCRC, true
	*it = item{dmg: r.damage(DamageType, 0, 0, fmt.Errorf("the type field says %s, but only a crc record has no data",
		good.rec.OnDiskType))}
	if err := r.accept(&good, b, fr); err != nil {
		return err
	}
	it.queued = &good
	return nil
}
