package surgery

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// WAL repairs a damaged log. Records stay in order under a new CRC chain from the first damaged segment on. Lost
// entries come from the logs of other members, and the log ends at the first entry that none has.
type WAL struct{}

// Name is wal.
func (WAL) Name() string { return "wal" }

func (WAL) apply(ctx context.Context, w *work) error {
	m := w.source()
	if !m.HasWAL() {
		return refusef("", "%s has no log", m.Label())
	}
	s := &m.WAL.Summary
	if s.Metadata == nil {
		return refusef("clone the member from another one: etcd-medic repair plan",
			"no segment of %s shows whose log it is", m.Label())
	}
	short := endsShort(m)
	if len(s.Damage) == 0 && !short {
		return refusef("see what else is wrong with etcd-medic inspect", "nothing is wrong with the log of %s",
			m.Label())
	}
	r := &rewriter{w: w, ctx: ctx, s: s, fill: newFill(ctx, w.peers(), m), firstBad: firstBadSegment(s),
		unproven: map[uint64]bool{}, short: short}
	if len(s.Damage) == 0 {
		r.firstBad = len(s.Segments) // the log is intact and continues in a new segment
	}
	for _, d := range s.Damage {
		if d.Kind == dumplog.DamageTornTail {
			r.torn = max(r.torn, d.LostTo, d.LostFrom)
		}
	}
	if err := r.run(); err != nil {
		return err
	}
	w.madeWAL = true
	return r.account()
}

// endsShort reports whether a log ends before what its own database has applied, as if its last segment were missing.
func endsShort(m *evidence.Member) bool { return m.HasDB() && m.ConsistentIndex() > m.LastIndex() }

// firstBadSegment returns the position of the first segment to rewrite. A missing segment counts as the one after it.
func firstBadSegment(s *dumplog.Summary) int {
	bad := map[string]bool{}
	for _, d := range s.Damage {
		bad[d.Segment] = true
	}
	for i := range s.Segments {
		if bad[s.Segments[i].Name] || i > 0 && s.Segments[i].Seq != s.Segments[i-1].Seq+1 {
			return i
		}
	}
	return 0
}

// rewriter writes the new segments while the records of the old ones are read.
type rewriter struct {
	w   *work
	ctx context.Context
	s   *dumplog.Summary
	fill
	firstBad int

	f   *os.File
	log *datadir.LogWriter
	// segment is the current old segment, seq the sequence number of the next new one, chain the CRC with which it must
	// start.
	segment string
	seq     uint64
	chain   uint32
	skip    bool
	// next is the index after the new log, 0 before the first entry; term is that of its last entry.
	next, term uint64
	// state is the last HardState written, hard the last one read.
	state, hard dumplog.HardState
	// cut is the first index that is not available; 0 means none.
	cut      uint64
	filled   []span
	dropped  int
	torn     uint64
	unproven map[uint64]bool
	bridged  []span
	// short is set for a log that ends before what its database has applied.
	short bool
}

type span struct{ from, to uint64 }

// String returns one index, or the first and last one.
func (s span) String() string {
	if s.from == s.to {
		return fmt.Sprint(s.from)
	}
	return fmt.Sprintf("%d to %d", s.from, s.to)
}

func (r *rewriter) run() (err error) {
	defer func() {
		if r.f != nil {
			err = errors.Join(err, r.f.Close())
		}
	}()
	if err := r.w.out.Mkdir(r.w.walPath()); err != nil {
		return err
	}
	if err := r.copyHead(); err != nil {
		return err
	}
	for rec, err := range r.w.source().WAL.Log.RecordsOf(r.ctx, r.s) {
		var bad *dumplog.DamageError
		if err != nil && !errors.As(err, &bad) {
			return err
		}
		if bad != nil && !r.usable(&rec, bad) {
			continue
		}
		if rec.Data == nil && rec.Type != dumplog.RecordCRC {
			continue
		}
		if err := r.record(&rec); err != nil {
			return err
		}
	}
	if r.log == nil { // the bad segments have no good record
		if err := r.open(); err != nil {
			return err
		}
	}
	r.fillTail()
	r.endState()
	return r.end()
}

// copyHead copies the segments before the first bad one. Their records are still read, for the indexes.
func (r *rewriter) copyHead() error {
	for i := range r.firstBad {
		name := r.s.Segments[i].Name
		if err := r.w.out.Copy(r.ctx, filepath.Join(r.w.walPath(), name),
			filepath.Join(r.w.parts.WAL, name)); err != nil {
			return err
		}
		r.seq = r.s.Segments[i].Seq + 1
	}
	if r.firstBad == 0 {
		r.seq = r.s.Segments[0].Seq
	}
	return nil
}

// usable reports whether a record next to damage can be kept: its data must be proven, or accepted without proof.
func (r *rewriter) usable(rec *dumplog.Record, d *dumplog.DamageError) bool {
	if rec.Data == nil {
		return false
	}
	if rec.CRC == dumplog.CRCMatch && d.Kind != dumplog.DamagePayload {
		return true
	}
	if rec.Type != dumplog.RecordEntry || d.Kind != dumplog.DamageCRC {
		return false
	}
	e, err := rec.Entry()
	if err != nil {
		return false
	}
	if _, err := e.Decode(); err != nil || r.has(e.Index) || !r.w.accepts(AcceptUnproven) {
		return false
	}
	r.unproven[e.Index] = true
	return true
}

func (r *rewriter) record(rec *dumplog.Record) error {
	if rec.Segment != r.segment {
		if err := r.enter(rec.Segment); err != nil {
			return err
		}
	}
	if r.copied() {
		r.chain = rec.StoredCRC
	}
	if rec.Type == dumplog.RecordMetadata {
		md, err := dumplog.DecodeMetadata(rec.Data)
		r.skip = err == nil && md != *r.s.Metadata
		return nil
	}
	if r.skip {
		r.dropped++
		return nil
	}
	switch rec.Type {
	case dumplog.RecordEntry:
		return r.entry(rec)
	case dumplog.RecordState:
		return r.hardState(rec)
	case dumplog.RecordSnapshot:
		return r.snapshotRecord(rec)
	}
	return nil // crc records are newly written
}
