package dumplog

import (
	"context"
	"errors"
	"fmt"
	"io"
)

type eventKind uint8

const (
	eventRun eventKind = iota
	eventSnapshot
	eventDamage
	eventForce
)

// event is one stretch of a segment, as order needs it.
type event struct {
	kind eventKind
	pos  Pos
	// A run is consecutive entries of one term.
	first, last, term uint64
	// commit is the highest commit written in this segment before the event.
	commit uint64
	// state is the term of the last HardState in this segment before the event, 0 if there is none.
	state uint64
	// within is commit without what was not in the log when it was written.
	within uint64
	snap   *SnapshotRecord
	dmg    *DamageError
}

// digest is the result of reading one segment. It grows with changes of term, snapshots, overwrites and damage, not
// with the number of entries. So all segments can be read in parallel and put in order afterwards.
type digest struct {
	file   *segFile
	seg    Segment
	count  map[RecordType]int
	events []event
	// cost is what the events take of the marks of the scan. bare is true once there are too many of them.
	cost int64
	bare bool
	// damage counts the damaged places; rest stands for those after the first maxDamage.
	damage, maxDamage int
	rest              *DamageError
	state             *HardState
	pos               Pos
	commit, within    uint64
	// firstState is the term of the first HardState, 0 if there is none.
	firstState    uint64
	firstStatePos Pos
	// lastTerm is the term of the last entry, 0 before the first.
	lastTerm uint64
	// seed is the value of the CRC record, endChain the CRC after the last record. Each is valid only if its flag is
	// set.
	seed, endChain   uint32
	seeded, endKnown bool
	badSeed          bool
	start            startMarks
	largest          int64 // bytes of the largest good record without its frame
	largestPos       Pos
	ballots          ballots
	ahead            aheadWatch
	forced           uint64 // index of the last entry of a force-new-cluster run
}

// digestSegment reads one segment. visit, when not nil, sees every good entry.
func digestSegment(ctx context.Context, s, next *segFile, listed *marks, visit func(*Entry)) (*digest, error) {
	d := &digest{file: s, count: map[RecordType]int{}, maxDamage: listed.damage}
	d.seg = Segment{Name: s.name, Seq: s.seq, First: s.first, Size: s.size}
	r, err := openSegment(ctx, s, next)
	if err != nil {
		dmg := &DamageError{Pos: Pos{Segment: s.name}, Kind: DamageUnreadable, Len: s.size, Err: err}
		serverDoes(dmg, s.last)
		d.seg.End = string(DamageUnreadable)
		d.events = append(d.events, event{kind: eventDamage, pos: dmg.Pos, dmg: dmg})
		return d, nil
	}
	defer r.close()
	if s.foreign {
		visit = nil
	}
	var it item
	var e Entry
	for {
		if err := r.step(&it); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		before := d.cost
		d.bare = listed.tooMany()
		d.add(&it)
		if err := listed.take(d.cost - before); err != nil {
			return nil, err
		}
		if visit != nil && it.ok && it.rec.Type == RecordEntry {
			it.entry(&e)
			visit(&e)
		}
	}
	d.seg.End, d.seg.DataEnd = r.end, r.dataEnd
	d.endChain, d.endKnown, d.badSeed = r.chain, r.chained, r.badSeed
	return d, nil
}

// entry fills e from a good entry record.
func (it *item) entry(e *Entry) {
	*e = Entry{
		Pos: it.rec.Pos, Len: it.rec.Len, CRC: it.rec.CRC,
		Term: it.head.term, Index: it.head.index, Type: it.head.typ, Data: it.head.data,
	}
}

func (d *digest) add(it *item) {
	if it.dmg != nil {
		d.noteDamage(it.dmg)
	}
	if !it.ok {
		return
	}
	d.seg.Records++
	d.count[it.rec.Type]++
	if n := it.rec.Len - wordSize - int64(it.rec.Pad); n > d.largest {
		d.largest, d.largestPos = n, it.rec.Pos
	}
	d.start.add(it)
	switch it.rec.Type {
	case RecordEntry:
		d.addEntry(it)
	case RecordState:
		h, _ := DecodeHardState(it.rec.Data)
		d.addState(h, it.rec.Pos)
	case RecordSnapshot:
		s, _ := DecodeSnapshotRecord(it.rec.Data)
		s.Pos = it.rec.Pos
		d.ahead.snapshot(s.Term, s.Index, s.ConfState != nil)
		cost := int64(markCost)
		if s.ConfState != nil {
			cost += int64(len(s.ConfState.Voters)+len(s.ConfState.Learners)) / memberCost
		}
		d.note(event{kind: eventSnapshot, pos: s.Pos, snap: &s, commit: d.committed(), within: d.within},
			cost)
	case RecordCRC:
		d.seed, d.seeded = it.rec.StoredCRC, true
	}
}

// beginsChain reports whether the CRC record says that nothing comes before the segment: it is the first one of a log,
// whatever its name says.
func (d *digest) beginsChain() bool { return d.seeded && !d.badSeed && d.seed == 0 }

// committed is the highest index that the server knew to be committed. A start with --force-new-cluster commits the
// conf changes that it writes, and no HardState says so before the next one (server/etcdserver/bootstrap.go,
// AppendAndCommitEntries).
func (d *digest) committed() uint64 {
	if d.commit == 0 {
		return 0
	}
	return max(d.commit, d.forced)
}

func (d *digest) addEntry(it *item) {
	e := &it.head
	if d.seg.FirstEntry == 0 || e.index < d.seg.FirstEntry {
		d.seg.FirstEntry = e.index
	}
	d.seg.LastEntry, d.lastTerm = e.index, e.term
	d.ahead.entry(e.term, e.index)
	if e.typ == EntryConfChange {
		follows := d.forced > 0 && d.forced+1 == e.index
		switch removes, adds := isForced(e.data); {
		case removes && !follows:
			d.note(event{kind: eventForce, pos: it.rec.Pos}, runCost)
			d.forced = e.index
		case removes, adds && follows:
			d.forced = e.index
		}
	}
	if n := len(d.events); n > 0 {
		if v := &d.events[n-1]; v.kind == eventRun && v.term == e.term && v.last+1 == e.index {
			v.last = e.index
			return
		}
	}
	v := event{kind: eventRun, pos: it.rec.Pos, first: e.index, last: e.index, term: e.term, commit: d.commit}
	if d.state != nil {
		v.state = d.state.Term
	}
	d.note(v, runCost)
}

// note adds an event with what it takes of the marks of the scan.
func (d *digest) note(v event, cost int64) {
	if !d.bare {
		d.events = append(d.events, v)
	}
	d.cost += cost
}

// noteDamage adds a damaged place. After the first maxDamage, it extends d.rest instead.
func (d *digest) noteDamage(e *DamageError) {
	if e.losesEntries() {
		d.ahead.lost()
	}
	if d.damage++; d.damage <= d.maxDamage {
		d.events = append(d.events, event{kind: eventDamage, pos: e.Pos, dmg: e, commit: d.commit})
		return
	}
	if d.rest == nil {
		d.rest = &DamageError{Pos: e.Pos, Kind: e.Kind, Server: e.Server, OnStart: e.OnStart, harmless: true}
		d.events = append(d.events, event{kind: eventDamage, pos: e.Pos, dmg: d.rest, commit: d.commit})
	}
	d.rest.Len = max(e.Offset+max(e.Len, 1)-d.rest.Offset, d.rest.Len)
	d.rest.Err = moreDamage(d.damage - d.maxDamage)
	if e.losesEntries() {
		d.rest.Kind, d.rest.harmless = e.Kind, false
	}
}

// moreDamage is the number of damaged places that are not listed one by one.
type moreDamage int

// Error says how many they are.
func (n moreDamage) Error() string {
	return fmt.Sprintf("%d more damaged places, which are not listed one by one", int(n))
}

func (d *digest) addState(h HardState, pos Pos) {
	switch {
	case d.state != nil && h.Term < d.state.Term:
		d.noteDamage(termFell(pos, h.Term, d.state.Term))
	case h.Term < d.lastTerm: // a member stores the term of an entry with it, and entries before the HardState
		d.noteDamage(termFell(pos, h.Term, d.lastTerm))
	}
	if d.firstState == 0 {
		d.firstState, d.firstStatePos = h.Term, pos
	}
	if d.state == nil {
		d.state = new(HardState)
	}
	*d.state, d.pos = h, pos
	d.ballots.add(h, pos, d.seg.LastEntry)
	d.ahead.state(h, pos)
	d.commit = max(d.commit, h.Commit)
	if d.seg.LastEntry == 0 || h.Commit <= d.seg.LastEntry {
		d.within = max(d.within, h.Commit)
	}
}
