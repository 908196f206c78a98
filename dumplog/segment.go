package dumplog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/etcd-medic/etcd-medic/internal/progress"
)

// The ways a segment ends without damage.
const (
	endZero = "zero"
	endEOF  = "eof"
)

// segFile is a segment as found by Open.
type segFile struct {
	path, name string
	seq, first uint64
	size       int64
	last       bool
	file       *os.File // already open, closed by the caller; nil: opened by its path
	// seed is the value of the CRC record at the head, meta the metadata record. seeded is false and meta nil if the
	// head is not intact.
	seed   uint32
	seeded bool
	meta   *Metadata
	err    error // why the file cannot be opened
	// want is the identity of the log. foreign is set if the segment has another one.
	want    *Metadata
	foreign bool
}

// item is one step of reading a segment: a record, damage, or damage together with the record as it is in the file.
type item struct {
	rec  Record
	head entryHead // decoded entry, if rec is a good entry record
	dmg  *DamageError
	// ok is true if the record has the bytes that were written, as far as the log can prove.
	ok bool
	// queued is a second step that comes with the first one: an intact record after damage.
	queued *item
}

// segReader reads one segment from front to end. It knows no other segment, so that segments can be read in parallel.
// order then compares each segment with its neighbors.
type segReader struct {
	*segFile
	win  window
	aux  window // for looking ahead, so that the current record's bytes stay
	hunt window // for searching, so that looking ahead does not move it
	off  int64
	next *segFile // the next segment, whose CRC record shows how this one's chain must end
	// chain is the rolling CRC so far, known to be right if seeded. This seeded shadows segFile.seeded, which is about
	// the head.
	chain   uint32
	chained bool
	// lastIndex and lastTerm bound what an unproven frame may contain.
	lastIndex, lastTerm uint64
	dataEnd             int64
	end                 string
	// proofs is the number of bytes that proving frames may still read. It keeps the time for hostile files linear.
	proofs  int64
	pending *item
	headEnd int64 // offset after the CRC record at the head, 0 until it was read
	badSeed bool  // the CRC record at the head is known to be damaged
	done    bool
}

func openSegment(ctx context.Context, s, next *segFile) (*segReader, error) {
	f, err := s.open()
	if err != nil {
		return nil, err
	}
	r := &segReader{segFile: s, next: next}
	r.win = window{ctx: ctx, f: f, size: s.size, buf: make([]byte, min(blockSize, s.size+wordSize)),
		work: progress.From(ctx)}
	r.aux = window{ctx: ctx, f: f, size: s.size}
	r.hunt = r.aux
	r.proofs = 16*s.size + 256<<20
	r.chained = s.seq == 0 // the first segment of a log starts its chain at 0
	if s.first > 0 {
		r.lastIndex = s.first - 1
	}
	return r, nil
}

func (r *segReader) close() { r.release(r.win.f) }

// step reads the next item into it and returns io.EOF at the end of the segment.
func (r *segReader) step(it *item) error {
	*it = item{}
	if r.pending != nil {
		*it, r.pending = *r.pending, nil
		return nil
	}
	if r.done {
		return io.EOF
	}
	before := r.chain
	err := r.read(it)
	if err != nil && !errors.Is(err, io.EOF) && r.win.ctx.Err() == nil {
		r.unreadable(it, err)
		err = nil
	}
	if it.dmg != nil {
		serverAt(r, it.dmg, before)
	}
	if it.queued != nil {
		r.pending, it.queued = it.queued, nil
	}
	return err
}

// read is step without recording failures.
func (r *segReader) read(it *item) error {
	rest := r.win.size - r.off
	if rest <= 0 {
		return r.finish(it, endEOF)
	}
	b, err := r.win.at(r.off, int(min(wordSize, rest)))
	if err != nil {
		return err
	}
	if len(b) < wordSize {
		return r.stub(it, b)
	}
	w := word(b)
	if w == 0 {
		return r.zeroWord(it)
	}
	fr, err := parseWord(w)
	if err != nil {
		plain, ok := r.unpadded(w)
		if !ok {
			return r.broken(it, fr, DamageFrame, err)
		}
		fr = plain
	}
	if fr.len() > r.win.size-r.off {
		return r.broken(it, fr, DamageFrame, fmt.Errorf("the frame needs %d bytes, the file has only %d more", fr.len(),
			r.win.size-r.off))
	}
	if fr.len() > blockSize && !r.lengthConsistent(r.off, fr) {
		return r.broken(it, fr, DamageRecord, errRecordShape)
	}
	if b, err = r.win.at(r.off, int(fr.len())); err != nil {
		return err
	}
	return r.frame(it, fr, b)
}

// frame handles a frame with a valid length word.
func (r *segReader) frame(it *item, fr frame, b []byte) error {
	t, crc, data, err := parseRecord(b[wordSize : wordSize+fr.rec])
	if err != nil {
		return r.broken(it, fr, DamageRecord, err)
	}
	it.rec = Record{
		Pos: Pos{Segment: r.name, Offset: r.off}, Len: fr.len(), Pad: uint8(fr.pad),
		Type: t, OnDiskType: t, StoredCRC: crc, ComputedCRC: crc, Data: data,
	}
	head, perr := checkPayload(t, data)
	if perr == nil && (t == RecordCRC || t == RecordMetadata) && !r.atHead(t) {
		perr = fmt.Errorf("a %s record is allowed only at the head of a segment", t)
	}
	if perr == nil && t != RecordMetadata && r.headEnd > 0 && r.off == r.headEnd {
		perr = errors.New("a metadata record follows the crc record")
	}
	if r.off == 0 && (t != RecordCRC || perr != nil) {
		return r.badHead(it, fr, b)
	}
	if t == RecordCRC && perr == nil {
		if it.ok = true; r.seq == 0 && crc == 0 {
			it.rec.CRC = CRCMatch
		}
		return r.accept(it, b, fr)
	}
	if it.rec.ComputedCRC = nextCRC(r.chain, data); !r.chained {
		it.rec.ComputedCRC = crc
	}
	switch {
	case r.chained && it.rec.ComputedCRC != crc:
		return r.badCRC(it, fr, perr)
	case perr != nil:
		return r.badType(it, fr, b, perr)
	case r.chained:
		it.rec.CRC = CRCMatch
	}
	it.head, it.ok = head, true
	return r.accept(it, b, fr)
}

// atHead reports whether a record of this type may be at this offset: crc first, metadata right after it.
func (r *segReader) atHead(t RecordType) bool {
	if t == RecordCRC {
		return r.off == 0
	}
	return r.off == r.headEnd || r.headEnd == 0 && r.off <= 4*wordSize
}

// accept advances past a good record.
func (r *segReader) accept(it *item, b []byte, fr frame) error {
	r.chain, r.chained = it.rec.StoredCRC, true
	if it.rec.Type == RecordEntry {
		r.lastIndex, r.lastTerm = it.head.index, it.head.term
	}
	if it.rec.Type == RecordCRC {
		r.headEnd = fr.len()
	}
	r.off += fr.len()
	r.dataEnd = r.off
	if firstNonZero(b[wordSize+fr.rec:]) < int(fr.pad) {
		good := *it
		*it = item{queued: &good, dmg: r.damage(DamagePadding, it.rec.Offset, 0,
			errors.New("padding is not zero; the record itself is intact"))}
	}
	return nil
}

// finish ends the segment without damage, unless it lacks even its CRC record.
func (r *segReader) finish(it *item, how string) error {
	if r.off == 0 {
		return r.giveUp(it, r.damage(DamageUnreadable, 0, r.size,
			errors.New("the segment is empty or contains only zeros")))
	}
	r.done, r.end = true, how
	return io.EOF
}

// giveUp ends the segment with damage.
func (r *segReader) giveUp(it *item, d *DamageError) error {
	r.done, r.end = true, string(d.Kind)
	it.dmg = d
	return nil
}

func (r *segReader) damage(k DamageKind, off, n int64, err error) *DamageError {
	return &DamageError{Pos: Pos{Segment: r.name, Offset: off}, Kind: k, Len: n, Err: err}
}

func (r *segReader) unreadable(it *item, err error) {
	*it = item{}
	_ = r.giveUp(it, r.damage(DamageUnreadable, r.off, r.size-r.off, err))
}
