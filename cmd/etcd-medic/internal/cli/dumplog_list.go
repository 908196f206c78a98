package cli

import (
	"context"
	"errors"
	"math"
	"sync/atomic"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// logLister walks the records of one log and writes them as rows.
type logLister struct {
	stream *render.Stream
	m      *evidence.Member
	raw    bool
	f      *logFilter
	by     proposers
	// bad counts damage and entries that do not decode.
	bad atomic.Int64

	segments []dumplog.Segment // not announced yet
	over     overwrites
	shown    map[dumplog.Pos]bool // damage written already
	spare    spares[*logBatch]
}

// logItem is one thing to show; exactly one of the pointers is set, or rec counts.
type logItem struct {
	rec         dumplog.Record
	overwritten bool
	segment     *dumplog.Segment
	damage      *dumplog.DamageError
}

// logBatch is what goes from the reading to a decoding goroutine. Data of its records lies in arena.
type logBatch struct {
	items []logItem
	arena []byte
}

func newLogBatch() *logBatch { return &logBatch{} }

// batchBytes is when a batch is passed on: large enough to make the hand-over cheap, small enough for the cache.
const (
	batchBytes = 256 << 10
	batchItems = 4096
)

func newLogLister(s *render.Stream, m *evidence.Member, raw bool) *logLister {
	sum := m.WAL.Summary
	return &logLister{stream: s, m: m, raw: raw, by: newProposers(m), segments: sum.Segments,
		over: newOverwrites(sum.Overwrites), shown: map[dumplog.Pos]bool{}, spare: newSpares[*logBatch]()}
}

func (l *logLister) run(ctx context.Context) error {
	return ordered(ctx, l.read, l.encode, l.stream.WriteEncoded)
}

// read walks the log and emits batches.
func (l *logLister) read(ctx context.Context, emit func(*logBatch) error) error {
	b := l.spare.get(newLogBatch)
	for rec, err := range l.m.WAL.Log.RecordsOf(ctx, l.m.WAL.Summary) {
		var dmg *dumplog.DamageError
		if err != nil && !errors.As(err, &dmg) {
			return err
		}
		if dmg != nil {
			l.damage(b, dmg)
			continue
		}
		if !l.f.active {
			l.announce(b, rec.Segment)
		} else if rec.Type != dumplog.RecordEntry {
			continue
		}
		l.keep(b, rec)
		if len(b.arena) >= batchBytes || len(b.items) >= batchItems {
			if err := emit(b); err != nil {
				return err
			}
			b = l.spare.get(newLogBatch)
		}
	}
	if !l.f.active {
		l.announce(b, "")
	}
	for _, d := range l.m.WAL.Summary.Damage {
		l.damage(b, d)
	}
	return emit(b)
}

func (l *logLister) damage(b *logBatch, d *dumplog.DamageError) {
	if l.shown[d.Pos] {
		return
	}
	l.shown[d.Pos] = true
	l.bad.Add(1)
	b.items = append(b.items, logItem{damage: d})
}

// announce adds the segments up to and with name; all that are left when name is empty.
func (l *logLister) announce(b *logBatch, name string) {
	for len(l.segments) > 0 && (name == "" || l.segments[0].Name <= name) {
		b.items = append(b.items, logItem{segment: &l.segments[0]})
		l.segments = l.segments[1:]
	}
}

// keep copies a record into the batch: the iterator owns its data.
func (l *logLister) keep(b *logBatch, rec dumplog.Record) {
	if cap(b.arena)-len(b.arena) < len(rec.Data) {
		b.arena = make([]byte, 0, max(batchBytes+batchBytes/4, len(rec.Data))) // earlier records keep the old array alive
	}
	at := len(b.arena)
	b.arena = append(b.arena, rec.Data...)
	rec.Data = b.arena[at:len(b.arena):len(b.arena)]
	b.items = append(b.items, logItem{rec: rec, overwritten: l.over.at(rec)})
}

// encode decodes the records of a batch and appends their rows to out.
func (l *logLister) encode(b *logBatch, out []byte) ([]byte, error) {
	var dec dumplog.Decoder // one per batch: what it returns lives until its next call
	for i := range b.items {
		it := &b.items[i]
		switch {
		case it.segment != nil:
			out = l.stream.Encode(out, render.LogSegment{Segment: *it.segment})
		case it.damage != nil:
			out = l.stream.Encode(out, render.LogDamage{DamageError: it.damage})
		case it.rec.Type == dumplog.RecordEntry && (!l.raw || l.f.active):
			out = l.encodeEntry(out, it, &dec)
		default:
			out = l.encodeRecord(out, &it.rec)
		}
	}
	b.items, b.arena = b.items[:0], b.arena[:0]
	l.spare.put(b)
	return out, nil
}

func (l *logLister) encodeEntry(out []byte, it *logItem, dec *dumplog.Decoder) []byte {
	e, err := it.rec.Entry()
	if err != nil {
		l.bad.Add(1)
		return l.stream.Encode(out, &render.LogRecord{Record: &it.rec, Err: err})
	}
	e.Overwritten = it.overwritten
	row := render.LogEntry{Entry: &e, Uncommitted: e.Index > l.m.Commit}
	if row.Request, row.DecodeErr = dec.Decode(&e); row.DecodeErr != nil {
		l.bad.Add(1)
	}
	if !l.wants(&row) {
		return out
	}
	if l.raw {
		return l.encodeRecord(out, &it.rec)
	}
	row.Proposer = l.by.of(row.Request.ProposerID())
	if l.f.re != nil && !l.f.re.Match(row.Line(nil, l.stream.Options())) {
		return out
	}
	return l.stream.Encode(out, &row)
}

func (l *logLister) wants(row *render.LogEntry) bool {
	switch {
	case !l.f.active:
		return true
	case l.f.committed && row.Uncommitted, l.f.uncommitted && !row.Uncommitted:
		return false
	}
	return l.f.filter.Match(row.Entry, row.Request)
}

func (l *logLister) encodeRecord(out []byte, rec *dumplog.Record) []byte {
	row := &render.LogRecord{Record: rec, Raw: l.raw}
	switch rec.Type {
	case dumplog.RecordEntry:
		row.What, row.Err = decoded(rec.Entry())
	case dumplog.RecordMetadata:
		row.What, row.Err = decoded(dumplog.DecodeMetadata(rec.Data))
	case dumplog.RecordState:
		row.What, row.Err = decoded(dumplog.DecodeHardState(rec.Data))
	case dumplog.RecordSnapshot:
		row.What, row.Err = decoded(dumplog.DecodeSnapshotRecord(rec.Data))
	}
	if row.Err != nil {
		l.bad.Add(1)
	}
	return l.stream.Encode(out, row)
}

func decoded[T any](v T, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return &v, nil
}

// overwrites answers, in physical order, whether a later append replaced an entry.
type overwrites struct {
	list []dumplog.Overwrite
	// least[i] is the lowest index that list[i:] replaces from.
	least []uint64
}

func newOverwrites(list []dumplog.Overwrite) overwrites {
	o := overwrites{list: list, least: make([]uint64, len(list)+1)}
	o.least[len(list)] = math.MaxUint64
	for i := len(list) - 1; i >= 0; i-- {
		o.least[i] = min(list[i].Index, o.least[i+1])
	}
	return o
}

// at must be called with every record in order.
func (o *overwrites) at(rec dumplog.Record) bool {
	if rec.Type != dumplog.RecordEntry || len(o.list) == 0 {
		return false
	}
	if o.list[0].Pos == rec.Pos {
		o.list, o.least = o.list[1:], o.least[1:]
	}
	if len(o.list) == 0 {
		return false
	}
	e, err := rec.Entry()
	return err == nil && e.Index >= o.least[0]
}

// listSnaps writes the raft snapshot files and what else lies beside them; it returns the number of damaged ones.
func listSnaps(s *render.Stream, m *evidence.Member) (bad int, err error) {
	var rows []render.Row
	for _, f := range m.Snap.Files {
		rows = append(rows, render.SnapFile{SnapFile: f})
		if f.Damage != nil {
			bad++
			rows = append(rows, render.LogDamage{DamageError: f.Damage})
		}
	}
	for _, f := range m.Snap.SnapDBs {
		rows = append(rows, render.SnapDB{SnapDB: f})
	}
	for _, f := range m.Snap.LeftOvers {
		rows = append(rows, render.LogLeftOver{LeftOver: f})
	}
	for _, r := range rows {
		if err := s.Write(r); err != nil {
			return bad, err
		}
	}
	return bad, nil
}
