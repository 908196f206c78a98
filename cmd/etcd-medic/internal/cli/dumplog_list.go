package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	// commit is the highest index known to be committed. It grows while a log is followed.
	commit  atomic.Uint64
	known   commits
	decoder *streamDecoder

	segments  []dumplog.Segment // not announced yet
	over      overwrites
	shown     map[shownDamage]bool
	spare     spares[*logBatch]
	headed    bool
	lastIndex uint64 // while a log is followed
}

// shownDamage identifies damage that was already written.
type shownDamage struct {
	dumplog.Pos
	dumplog.DamageKind
}

// logItem is one item to show: row if it is set, else rec.
type logItem struct {
	rec         dumplog.Record
	overwritten bool
	replacedTo  uint64
	row         render.Row
}

// logBatch is passed from the reading to a decoding goroutine. The data of its records is in arena.
type logBatch struct {
	items []logItem
	arena []byte
}

func newLogBatch() *logBatch { return &logBatch{} }

// batchBytes is the size at which a batch is passed on: large enough to make that cheap, small enough for the cache.
const (
	batchBytes = 256 << 10
	batchItems = 4096
)

func newLogLister(s *render.Stream, m *evidence.Member, raw bool) *logLister {
	sum := &m.WAL.Summary
	return &logLister{stream: s, m: m, raw: raw, by: newProposers(m), segments: sum.Segments,
		over: newOverwrites(sum.Overwrites), shown: map[shownDamage]bool{}, spare: newSpares[*logBatch]()}
}

func (l *logLister) run(ctx context.Context) error {
	return ordered(ctx, l.read, l.encode, l.stream.WriteEncoded)
}

// read walks the log and emits batches.
func (l *logLister) read(ctx context.Context, emit func(*logBatch) error) error {
	b := l.spare.get(newLogBatch)
	l.head(b)
	for rec, err := range l.m.WAL.Log.RecordsOf(ctx, &l.m.WAL.Summary) {
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
	if !l.f.active {
		for _, f := range l.m.WAL.Summary.LeftOvers {
			b.items = append(b.items, logItem{row: render.LogLeftOver{LeftOver: f}})
		}
	}
	return emit(b)
}

// head adds the rows before the records of a full listing.
func (l *logLister) head(b *logBatch) {
	l.headed = true
	if l.f.active || l.raw {
		return
	}
	b.items = append(b.items, logItem{row: render.LogHead{Summary: &l.m.WAL.Summary, Commit: l.commit.Load()}})
	for _, p := range l.known.peers {
		b.items = append(b.items, logItem{row: p})
	}
}

func (l *logLister) damage(b *logBatch, d *dumplog.DamageError) {
	id := shownDamage{d.Pos, d.Kind}
	if l.shown[id] {
		return
	}
	l.shown[id] = true
	l.bad.Add(1)
	b.items = append(b.items, logItem{row: render.LogDamage{DamageError: d}})
}

// announce adds the segments up to name, or all remaining ones if name is empty.
func (l *logLister) announce(b *logBatch, name string) {
	for len(l.segments) > 0 && (name == "" || l.segments[0].Name <= name) {
		b.items = append(b.items, logItem{row: render.LogSegment{Segment: l.segments[0]}})
		l.segments = l.segments[1:]
	}
}

// keep copies a record into the batch, since the iterator reuses its data.
func (l *logLister) keep(b *logBatch, rec dumplog.Record) {
	if cap(b.arena)-len(b.arena) < len(rec.Data) {
		// Earlier records keep the old array.
		b.arena = make([]byte, 0, max(batchBytes+batchBytes/4, len(rec.Data)))
	}
	at := len(b.arena)
	b.arena = append(b.arena, rec.Data...)
	rec.Data = b.arena[at:len(b.arena):len(b.arena)]
	b.items = append(b.items, logItem{rec: rec, overwritten: l.over.at(rec)})
}

// encode decodes the records of a batch and appends their rows to out.
func (l *logLister) encode(b *logBatch, out []byte) ([]byte, error) {
	var dec dumplog.Decoder // one per batch: its results are valid until its next call
	for i := range b.items {
		it := &b.items[i]
		switch {
		case it.row != nil:
			out = l.stream.Encode(out, it.row)
		case it.rec.Type == dumplog.RecordEntry && (!l.raw || l.f.active):
			var err error
			if out, err = l.encodeEntry(out, it, &dec); err != nil {
				return out, err
			}
		default:
			out = l.encodeRecord(out, &it.rec)
		}
	}
	b.items, b.arena = b.items[:0], b.arena[:0]
	l.spare.put(b)
	return out, nil
}

// encodeEntry appends the row of a selected entry. It returns the error of the stream decoder.
func (l *logLister) encodeEntry(out []byte, it *logItem, dec *dumplog.Decoder) ([]byte, error) {
	e, err := it.rec.Entry()
	if err != nil {
		l.bad.Add(1)
		return l.stream.Encode(out, &render.LogRecord{Record: &it.rec, Err: err}), nil
	}
	e.Overwritten = it.overwritten
	row := render.LogEntry{Entry: &e, Uncommitted: e.Index > l.commit.Load(), ReplacedTo: it.replacedTo}
	if row.Request, row.DecodeErr = dec.Decode(&e); row.DecodeErr != nil {
		l.bad.Add(1)
	}
	if !l.wants(&row) {
		return out, nil
	}
	if l.raw {
		return l.encodeRecord(out, &it.rec), nil
	}
	row.Proposer = l.by.of(row.Request.ProposerID())
	if l.f.re != nil && !l.f.re.Match(row.Line(nil, l.stream.Options())) {
		return out, nil
	}
	if l.decoder != nil {
		if row.Decoded, err = l.decoder.ask(e.Data); err != nil {
			return out, fmt.Errorf("%w; the entry is %d/%d", err, e.Term, e.Index)
		}
	}
	return l.stream.Encode(out, &row), nil
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

// overwrites reports, in physical order, whether a later append replaced an entry.
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

// at must be called with every entry in order, other records may be left out.
func (o *overwrites) at(rec dumplog.Record) bool {
	for len(o.list) > 0 && cmp.Or(cmp.Compare(o.list[0].Segment, rec.Segment),
		cmp.Compare(o.list[0].Offset, rec.Offset)) <= 0 {
		o.list, o.least = o.list[1:], o.least[1:]
	}
	if rec.Type != dumplog.RecordEntry || len(o.list) == 0 {
		return false
	}
	e, err := rec.Entry()
	return err == nil && e.Index >= o.least[0]
}
