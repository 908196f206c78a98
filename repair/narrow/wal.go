package narrow

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// WAL repairs a damaged log: records stay in their order under a new CRC chain from the first damaged segment on, lost entries are taken
// from the logs of other members, and the log ends where neither has them.
type WAL struct{}

// Name is wal.
func (WAL) Name() string { return "wal" }

func (WAL) apply(ctx context.Context, w *work) error {
	m := w.source()
	if m.WAL == nil || m.WAL.Summary == nil {
		return refusef("", "%s has no log", m.Label())
	}
	s := m.WAL.Summary
	if s.Metadata == nil {
		return refusef("clone the member from another one: etcd-medic repair plan", "no segment of %s shows whose log it is", m.Label())
	}
	if len(s.Damage) == 0 {
		return refusef("see etcd-medic inspect for what else is wrong", "nothing is wrong with the log of %s", m.Label())
	}
	r := &rewriter{w: w, ctx: ctx, s: s, fill: newFill(ctx, w.peers(), m), firstBad: firstBadSegment(s), unproven: map[uint64]bool{}}
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

// firstBadSegment is the position of the first segment that has to be written anew: a segment that is missing counts for the one behind.
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

// rewriter writes the new segments while the records of the old ones pass by.
type rewriter struct {
	w   *work
	ctx context.Context
	s   *dumplog.Summary
	fill
	firstBad int

	f   *os.File
	log *datadir.LogWriter
	// segment is the old segment being read, seq the sequence number of the next new one, chain what it has to go on with.
	segment string
	seq     uint64
	chain   uint32
	skip    bool
	// next is the index that follows the log as it is written, 0 before the first entry; term is that of its last entry.
	next, term uint64
	// state is the last HardState written, hard the last one read.
	state, hard dumplog.HardState
	// cut is the first index that could not be had; 0 means none.
	cut      uint64
	filled   []span
	dropped  int
	torn     uint64
	unproven map[uint64]bool
	bridged  []span
}

type span struct{ from, to uint64 }

// String is the span as a person writes it.
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
	if r.log == nil { // nothing in the bad segments was good
		if err := r.open(); err != nil {
			return err
		}
	}
	r.fillTail()
	r.settle()
	return r.end()
}

// copyHead copies the segments in front of the first bad one; their records still pass by, for the indexes.
func (r *rewriter) copyHead() error {
	for i := range r.firstBad {
		name := r.s.Segments[i].Name
		if err := r.w.out.Copy(r.ctx, filepath.Join(r.w.walPath(), name), filepath.Join(r.w.parts.WAL, name)); err != nil {
			return err
		}
		r.seq = r.s.Segments[i].Seq + 1
	}
	if r.firstBad == 0 {
		r.seq = r.s.Segments[0].Seq
	}
	return nil
}

// usable tells whether a record that damage stands beside can be kept: its data must be proved, or accepted unproved.
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
	return nil // crc records are made anew
}

// copied tells whether the records passing by lie in a segment that was copied.
func (r *rewriter) copied() bool { return r.f == nil }

// enter begins the new segment for an old one; in front of the first bad one only the chain is kept in mind.
func (r *rewriter) enter(name string) error {
	r.segment, r.skip = name, false
	for i := range r.s.Segments {
		if r.s.Segments[i].Name == name && i < r.firstBad {
			return nil
		}
	}
	return r.open()
}

// open starts a segment as etcd does: crc, metadata, and the last HardState (server/storage/wal/wal.go, cut).
func (r *rewriter) open() error {
	first := r.next
	if r.log != nil {
		if err := r.end(); err != nil {
			return err
		}
	} else if r.firstBad == 0 {
		first = r.s.Segments[0].First
	}
	path := filepath.Join(r.w.walPath(), fmt.Sprintf("%016x-%016x.wal", r.seq, first))
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	r.seq++
	r.f, r.log = f, datadir.NewLogWriter(f, r.chain)
	r.log.Metadata(uint64(r.s.Metadata.MemberID), uint64(r.s.Metadata.ClusterID))
	if r.seq == 1 && !slices.ContainsFunc(r.s.Snapshots, func(x dumplog.SnapshotRecord) bool { return x.Index == 0 }) {
		r.log.Snapshot(0, 0, nil) // every log begins with it; etcd does not open one without
	}
	if r.state != (dumplog.HardState{}) {
		r.log.State(r.state.Term, uint64(r.state.Vote), r.state.Commit)
	}
	return nil
}

// end completes the segment under way and syncs it.
func (r *rewriter) end() error {
	if r.f == nil {
		return nil
	}
	r.chain = r.log.Chain()
	err := errors.Join(r.log.Flush(), r.f.Sync(), r.f.Close())
	r.f = nil
	return err
}

func (r *rewriter) hardState(rec *dumplog.Record) error {
	hs, err := dumplog.DecodeHardState(rec.Data)
	if err != nil {
		return nil //nolint:nilerr // damage: a HardState that says nothing is not taken over
	}
	r.hard = hs
	if r.copied() {
		r.state = hs
		return nil
	}
	if r.next > 0 && hs.Commit > r.last() {
		hs.Commit = r.last()
		rec.Data = datadir.StateData(hs.Term, uint64(hs.Vote), hs.Commit)
	}
	if hs == r.state {
		return nil
	}
	r.state = hs
	r.log.Record(int64(dumplog.RecordState), rec.Data)
	return nil
}

// last is the last index of the log as it is written.
func (r *rewriter) last() uint64 { return max(r.next, 1) - 1 }

func (r *rewriter) snapshotRecord(rec *dumplog.Record) error {
	sn, err := dumplog.DecodeSnapshotRecord(rec.Data)
	if err != nil {
		return nil //nolint:nilerr // damage: a snapshot record that says nothing is not taken over
	}
	if !r.copied() {
		r.log.Record(int64(dumplog.RecordSnapshot), rec.Data)
	}
	if jump(r.s, sn.Index) && r.next <= sn.Index {
		r.next = sn.Index + 1 // the log goes on behind a leader's snapshot
	}
	return nil
}

// jump tells whether the log legally goes on behind this snapshot.
func jump(s *dumplog.Summary, index uint64) bool {
	for _, j := range s.Jumps {
		if j.To == index {
			return true
		}
	}
	return false
}

func (r *rewriter) entry(rec *dumplog.Record) error {
	e, err := rec.Entry()
	if err != nil {
		return nil //nolint:nilerr // damage: what decodes as no entry is lost, and the index tells
	}
	if r.copied() {
		r.next, r.term = e.Index+1, e.Term
		return nil
	}
	if r.cut > 0 && e.Index >= r.cut {
		return nil
	}
	r.cut = 0 // a later leader's entries replace what was behind the hole
	if r.next > 0 && e.Index > r.next && !r.bridge(span{r.next, e.Index - 1}) {
		return nil
	}
	// The bytes stay as they are: encoders differ in what they write for zero, which tells who wrote.
	r.log.Record(int64(dumplog.RecordEntry), rec.Data)
	r.next, r.term = e.Index+1, e.Term
	return nil
}

func (r *rewriter) write(e *datadir.Entry) {
	r.log.Entry(e)
	r.next, r.term = e.Index+1, e.Term
}

// bridge closes a hole in front of an entry: with other members' entries, or, when the newest raft snapshot covers it, by leaving it.
func (r *rewriter) bridge(hole span) bool {
	at := hole.from
	for ; at <= hole.to; at++ {
		e := r.get(at)
		if e == nil {
			break
		}
		r.write(e)
	}
	if at > hole.from {
		r.filled = append(r.filled, span{hole.from, at - 1})
	}
	if at > hole.to {
		return true
	}
	if newestUsable(r.w.source()) >= hole.to {
		r.bridged = append(r.bridged, span{at, hole.to})
		return true
	}
	r.cut = at
	return false
}

// fillTail adds committed entries behind the end that this log has lost.
func (r *rewriter) fillTail() {
	if r.cut > 0 || r.next == 0 {
		return
	}
	lost := uint64(0)
	for _, d := range r.s.Damage {
		if d.LostFrom >= r.next {
			lost = max(lost, d.LostFrom, d.LostTo)
		}
	}
	lost = max(lost, r.s.MaxCommit, r.w.source().ConsistentIndex())
	from := r.next
	for at := from; at <= lost; at++ {
		e := r.get(at)
		if e == nil {
			break
		}
		r.write(e)
	}
	if r.next > from {
		r.filled = append(r.filled, span{from, r.next - 1})
		r.hard.Commit = max(r.hard.Commit, r.last()) // they are committed where they come from
	}
}
