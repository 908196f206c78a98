package dumplog

import (
	"fmt"

	"github.com/etcd-medic/etcd-medic/internal/wire"
)

// outcome is the result of etcd's own decoder (server/storage/wal/decoder.go) for the bytes at an offset.
type outcome int

const (
	outcomeGood  outcome = iota // reads a record
	outcomeEnd                  // end of the segment: a zero length word or the end of the file
	outcomeShort                // unexpected EOF: the frame extends past the end of the file
	outcomeTorn                 // unexpected EOF: a sector of the frame is all zeros
	outcomeProto                // a protobuf error
	outcomeCRC                  // a CRC mismatch
)

// etcdReads models etcd's decoder for one frame; chain is its CRC before the frame. Unlike parseWord it checks only the
// bits of the length word that etcd checks.
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

// gogoRecord decodes a record as leniently as the generated code: fields in any order, unknown ones skipped.
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

// StartEffect says how an etcd server that starts on the log reacts to the damage.
type StartEffect string

// The effects. "" means that the effect depends on more than the damaged place.
const (
	// StartRefused: the server exits with an error or a panic.
	StartRefused StartEffect = "refuses"
	// StartCuts: the server treats it as an unfinished write, copies the segment and cuts off everything from here.
	StartCuts StartEffect = "cuts"
	// StartDrops: the server treats it as the end of the log. What follows is lost without a message.
	StartDrops StartEffect = "drops"
	// StartUnnoticed: the server reads on without noticing. Nothing is lost.
	StartUnnoticed StartEffect = "unnoticed"
)

// does sets how etcd reacts to the damage, in words and as a value.
func (d *DamageError) does(effect StartEffect, words string) {
	d.OnStart, d.Server = effect, words
}

// refuses sets that etcd refuses to start, with what it logs.
func (d *DamageError) refuses(message string) {
	d.does(StartRefused, "refuses to start: "+message)
	d.Message = message
}

// serverAt sets how etcd reacts when it starts on a segment with this damage. If that depends on the bytes, it asks
// etcdReads.
func serverAt(r *segReader, d *DamageError, chain uint32) {
	switch d.Kind {
	case DamageType, DamagePayload, DamagePadding, DamageUnreadable, DamageChain, DamageMixed:
		serverDoes(d, r.last)
		return
	}
	if d.Kind == DamageForeign && r.etcdReads(r.off, chain) == outcomeEnd && d.Offset >= r.off {
		d.does(StartUnnoticed, "treats the zeros before as the end and never reads these bytes; it zeroes them when "+
			"it appends")
		return
	}
	switch r.etcdReads(d.Offset, chain) {
	case outcomeEnd:
		if r.last {
			d.does(StartDrops, "treats the zeros as the end: starts without an error, drops everything after them "+
				"and zeroes it")
			return
		}
		d.refuses("crc mismatch")
		d.Server = "continues with the next segment and " + d.Server
	case outcomeShort:
		d.Short = true
		if r.last {
			d.does(StartCuts, fmt.Sprintf("copies the segment to .broken, cuts it at 0x%x and starts: everything "+
				"after that is lost (3.5.5 and 3.5.6 refuse, 3.3.23 to 3.5.4 refuse from 10 MiB on: max entry size "+
				"limit exceeded)", d.Offset))
			return
		}
		d.refuses("unexpected EOF")
		d.Server += "; it repairs the last segment only"
	case outcomeTorn:
		d.does(StartCuts, fmt.Sprintf("treats it as a torn write, since a sector is all zeros: copies the segment to "+
			".broken, cuts it at 0x%x and starts: everything after that is lost", d.Offset))
	case outcomeProto:
		d.refuses("a protobuf error")
	case outcomeCRC:
		d.refuses("crc mismatch")
	case outcomeGood:
		d.does(StartUnnoticed, "reads the record without noticing")
	}
}

// serverDoes sets how etcd reacts to damage of a kind for which the bytes do not matter.
func serverDoes(d *DamageError, last bool) {
	switch d.Kind {
	case DamageType:
		d.does("", "the CRC does not cover the type: with an unknown type it refuses to start "+
			"(unexpected block type), with a known one it misreads the record and silently drops an entry")
	case DamagePayload:
		d.does(StartRefused, "panics when it decodes the payload")
	case DamagePadding:
		d.does(StartUnnoticed, "ignores padding")
	case DamageMissingSegment:
		d.refuses("file sequence numbers do not increase continuously, or crc mismatch")
		d.Server += "; it does not notice a missing last segment"
	case DamageMixed:
		d.refuses("conflicting metadata found, or crc mismatch")
	case DamageChain:
		d.refuses("crc mismatch")
	case DamageName:
		d.does("", "finds where to start by the file names: refuses to start (file not found, or file sequence "+
			"numbers do not increase continuously) or reads from a later segment than it needs")
	case DamageSnapshotRecord:
		d.does("", "skips the .snap file that no record names any more and uses an older one, or "+
			"refuses to start: snapshot mismatch")
	case DamageIndexGap:
		d.does(StartRefused, "refuses to start: slice bounds out of range (panics up to 3.3.22 and 3.4.9)")
	case DamageTermOrder:
		d.does(StartUnnoticed, "does not notice")
	case DamageUnreadable:
		if last {
			effect := StartRefused
			if d.Len == 0 {
				effect = StartDrops
			}
			d.does(effect, "refuses to start if the file cannot be read; treats an empty last segment as the end of "+
				"the log")
			return
		}
		d.does(StartRefused, "refuses to start if the file cannot be read; treats an empty segment as one that "+
			"ended, then refuses: crc mismatch")
	}
}
