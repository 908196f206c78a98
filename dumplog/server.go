package dumplog

import (
	"fmt"

	"github.com/etcd-medic/etcd-medic/internal/wire"
)

// outcome is what etcd's own decoder (server/storage/wal/decoder.go) makes of the bytes at an offset.
type outcome int

const (
	outcomeGood  outcome = iota // reads a record
	outcomeEnd                  // end of the segment: a zero length word or the end of the file
	outcomeShort                // unexpected EOF: the frame reaches beyond the file
	outcomeTorn                 // unexpected EOF: a sector of the frame is all zeros
	outcomeProto                // a protobuf error
	outcomeCRC                  // a CRC mismatch
)

// etcdReads follows etcd's decoder for one frame; chain is its CRC before. Unlike parseWord it looks at no more of the
// length word than etcd does.
func (r *segReader) etcdReads(off int64, chain uint32) outcome {
	rest := r.win.size - off
	if rest <= 0 {
		return outcomeEnd
	}
	b, err := r.aux.at(off, int(min(wordSize, rest)))
	if err != nil || len(b) < wordSize {
		return outcomeShort
	}
	w := word(b)
	if w == 0 {
		return outcomeEnd
	}
	n, pad := int64(w&(1<<56-1)), int64(0)
	if w>>63 == 1 {
		pad = int64(w >> 56 & 7)
	}
	if n > rest-pad-wordSize || n > maxRecord {
		return outcomeShort
	}
	if b, err = r.aux.at(off+wordSize, int(n+pad)); err != nil || int64(len(b)) < n+pad {
		return outcomeShort
	}
	t, crc, data, good := gogoRecord(b[:n])
	switch {
	case good && (t == RecordCRC || nextCRC(chain, data) == crc):
		return outcomeGood
	case r.last && zeroSector(b, off+wordSize, false):
		return outcomeTorn
	case !good:
		return outcomeProto
	}
	return outcomeCRC
}

// gogoRecord decodes a record as leniently as the generated code does: fields in any order, unknown ones skipped.
func gogoRecord(b []byte) (t RecordType, crc uint32, data []byte, ok bool) {
	s := scanner{b: b}
	var f field
	for s.next(&f) {
		switch {
		case f.Num == 1 && f.Type == wire.Varint:
			t = RecordType(f.V)
		case f.Num == 2 && f.Type == wire.Varint:
			crc = uint32(f.V)
		case f.Num == 3 && f.Type == wire.Bytes:
			data = f.B
		case f.Num <= 3:
			return t, crc, data, false
		}
	}
	return t, crc, data, !s.bad
}

// StartEffect is what a server of etcd does with damage of its log when it starts.
type StartEffect string

// The effects; "" is one that depends on more than the damaged place.
const (
	// StartRefused: the server ends with an error or a panic.
	StartRefused StartEffect = "refuses"
	// StartCuts: the server takes it for an unfinished write, keeps a copy of the segment and cuts off what follows.
	StartCuts StartEffect = "cuts"
	// StartDrops: the server takes it for the end of the log; what follows is lost without a message.
	StartDrops StartEffect = "drops"
	// StartUnnoticed: the server reads on as if nothing were wrong, and nothing is lost by it.
	StartUnnoticed StartEffect = "unnoticed"
)

// does sets what etcd does with the damage when it starts, in words and as a value.
func (d *DamageError) does(effect StartEffect, words string) {
	d.OnStart, d.Server = effect, words
}

// serverAt says what etcd does when it starts on a segment with this damage. Where that hangs on the bytes, etcd's
// decoder is followed.
func serverAt(r *segReader, d *DamageError, chain uint32) {
	switch d.Kind {
	case DamageType, DamagePayload, DamagePadding, DamageUnreadable, DamageChain, DamageMixed:
		serverDoes(d, r.last)
		return
	}
	if d.Kind == DamageForeign && r.etcdReads(r.off, chain) == outcomeEnd && d.Offset >= r.off {
		d.does(StartUnnoticed, "takes the zeros before for the end and never reads these bytes; it zeroes them when "+
			"it writes on")
		return
	}
	switch r.etcdReads(d.Offset, chain) {
	case outcomeEnd:
		if r.last {
			d.does(StartDrops, "takes the zeros for the end: starts without an error, loses everything behind and zeroes it")
			return
		}
		d.does(StartRefused, "goes on with the next segment and refuses to start there: crc mismatch")
	case outcomeShort:
		d.Short = true
		if r.last {
			d.does(StartCuts, fmt.Sprintf("copies the segment to .broken, cuts it at 0x%x and starts: everything "+
				"behind is lost (3.5.5 and 3.5.6 refuse, and so do 3.3.23 to 3.5.4 from 10 MiB on: max entry size "+
				"limit exceeded)", d.Offset))
			return
		}
		d.does(StartRefused, "refuses to start: unexpected EOF; it repairs the last segment only")
	case outcomeTorn:
		d.does(StartCuts, fmt.Sprintf("takes it for a torn write, since a sector is all zeros: copies the segment to "+
			".broken, cuts it at 0x%x and starts: everything behind is lost", d.Offset))
	case outcomeProto:
		d.does(StartRefused, "refuses to start: a protobuf error")
	case outcomeCRC:
		d.does(StartRefused, "refuses to start: crc mismatch")
	case outcomeGood:
		d.does(StartUnnoticed, "reads the record without noticing")
	}
}

// serverDoes says what etcd does with damage that needs no look at the bytes.
func serverDoes(d *DamageError, last bool) {
	switch d.Kind {
	case DamageType:
		d.does("", "does not notice, since the CRC does not cover the type: a type it does not know makes it refuse "+
			"(unexpected block type), else the record is read as the wrong type and an entry silently disappears")
	case DamagePayload:
		d.does(StartRefused, "panics while it decodes the payload")
	case DamagePadding:
		d.does(StartUnnoticed, "does not look at padding")
	case DamageMissingSegment:
		d.does(StartRefused, "refuses to start: file sequence numbers do not increase continuously, or crc mismatch; "+
			"a missing last segment it does not notice")
	case DamageMixed:
		d.does(StartRefused, "refuses to start: conflicting metadata found, or crc mismatch")
	case DamageChain:
		d.does(StartRefused, "refuses to start: crc mismatch")
	case DamageName:
		d.does("", "looks for its place to start by the names: refuses to start (file not found, or file sequence "+
			"numbers do not increase continuously) or reads from a later segment than it needs")
	case DamageSnapshotRecord:
		d.does("", "passes over the .snap file that the record does not name any more and takes an older one, or "+
			"refuses to start: snapshot mismatch")
	case DamageIndexGap:
		d.does(StartRefused, "refuses to start: slice bounds out of range (panics up to 3.3.22 and 3.4.9)")
	case DamageTermOrder:
		d.does(StartUnnoticed, "does not notice when it reads the log")
	case DamageUnreadable:
		if last {
			effect := StartRefused
			if d.Len == 0 {
				effect = StartDrops
			}
			d.does(effect, "refuses to start when the file can not be read; takes an empty last segment for the end of the log")
			return
		}
		d.does(StartRefused, "refuses to start when the file can not be read; takes an empty segment for one that "+
			"ended, then refuses: crc mismatch")
	}
}
