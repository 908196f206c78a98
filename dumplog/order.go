package dumplog

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// SegmentLimit is the size at which every build of etcd starts a new segment (wal.SegmentSizeBytes).
const SegmentLimit = 64 * 1000 * 1000

// order combines the digests of the segments. It follows the CRC chain from file to file, builds the effective log and
// finds missing entries.
type order struct {
	sum  *Summary
	log  *Log
	prev *digest
	// last is the last index of the effective log. Before the first entry it is the index that the log must continue
	// from.
	last uint64
	// snap is the highest index of a snapshot record so far.
	snap, commit uint64
	// term is the highest of the HardStates.
	term uint64
	// within is the highest commit index that was in the log when it was written.
	within uint64
	// forced is the last entry that a start with --force-new-cluster committed, 0 if there is none.
	forced uint64
	// chain is what the next segment's CRC record must contain, if known.
	chain   uint32
	chained bool
	ballots ballots
	// waiting is damage whose lost indexes are not known before the next entry.
	waiting []*DamageError
	// ahead is the watch over all segments so far, and removed are the entries after which the segment lacks some that
	// it held.
	ahead   aheadWatch
	removed []uint64
	// snaps are the snapshot records with the indexes around them.
	snaps []snapPlace
	// bare is true if the digests come without marks; prevTerm is then the term of the last entry so far.
	bare     bool
	prevTerm uint64
}

func newOrder(l *Log) *order {
	o := &order{log: l, sum: &Summary{
		Metadata: l.meta, LeftOvers: l.left, Records: map[RecordType]int{}, Start: StartUnknown,
	}}
	if f := l.segs[0]; f.seq > 0 {
		o.sum.Start = StartPurged
		if f.first > 0 {
			o.last = f.first - 1
		}
	} else {
		o.chained = true
	}
	return o
}

// add adds the next segment.
func (o *order) add(d *digest) {
	o.sum.Segments = append(o.sum.Segments, d.seg)
	head := Pos{Segment: d.seg.Name}
	if d.file.foreign {
		o.report(&DamageError{Pos: head, Kind: DamageMixed, Len: d.seg.Size,
			Err: fmt.Errorf("the segment belongs to member %s of cluster %s", d.file.meta.MemberID,
				d.file.meta.ClusterID)})
		o.chained = false
		o.events(d, true)
		return
	}
	o.sequence(d, head)
	o.checkName(d, head)
	if d.seeded && o.chained && !d.badSeed && d.seed != o.chain {
		o.report(&DamageError{Pos: head, Kind: DamageChain,
			Err: fmt.Errorf("the CRC record says %08x, the previous segment ends with %08x", d.seed, o.chain)})
	}
	if d.start.kind != "" && (o.prev == nil && d.seg.Seq == 0 || o.prev != nil && d.beginsChain()) {
		o.sum.Start = d.start.kind
	}
	before := o.last
	o.aheads(d)
	o.events(d, false)
	for t, n := range d.count {
		o.sum.Records[t] += n
	}
	if d.largest > o.sum.LargestRecord {
		o.sum.LargestRecord, o.sum.LargestPos = d.largest, d.largestPos
	}
	o.state(d, before)
	if o.bare && d.seg.LastEntry > 0 {
		o.last, o.prevTerm = d.seg.LastEntry, d.lastTerm
	}
	o.chain = d.endChain
	o.chained = d.endKnown && (d.seg.End == endZero || d.seg.End == endEOF)
	o.prev = d
}

// sequence reports segments that are missing before d.
func (o *order) sequence(d *digest, head Pos) {
	if o.prev == nil || d.seg.Seq <= o.prev.seg.Seq+1 {
		return
	}
	n := d.seg.Seq - o.prev.seg.Seq - 1
	for _, s := range o.log.segs { // a foreign segment is in the place of the missing one
		if s.foreign && s.seq > o.prev.seg.Seq && s.seq < d.seg.Seq {
			n--
		}
	}
	if o.continues(d) {
		o.report(&DamageError{Pos: head, Kind: DamageName,
			Err: fmt.Errorf("segment number %d continues the CRC chain of number %d: nothing is missing between them",
				d.seg.Seq, o.prev.seg.Seq)})
		return
	}
	o.chained = false
	if n > 0 {
		m := &DamageError{Pos: head, Kind: DamageMissingSegment,
			Err: fmt.Errorf("%d segment(s) missing between %s and this one", n, o.prev.seg.Name)}
		if d.seg.First > o.last+1 { // the name shows what came before, even if no entry follows
			m.LostFrom, m.LostTo = o.last+1, d.seg.First-1
		}
		o.report(m)
	}
}

// state adds the HardStates of a segment, before which the log ends with the entry last.
func (o *order) state(d *digest, last uint64) {
	if d.state == nil {
		return
	}
	if h := o.sum.HardState; h != nil && d.firstState < h.Term {
		o.report(termFell(d.firstStatePos, d.firstState, h.Term))
	}
	h := *d.state
	o.sum.HardState, o.sum.HardStatePos = &h, d.pos
	o.commit, o.forced = max(o.commit, d.commit), max(o.forced, d.forced)
	o.within, o.term = max(o.within, d.within), max(o.term, h.Term)
	o.ballots.join(&d.ballots, last)
}

// aheads adds what the watches found at the begin of a segment and in it. The segments before say nothing of one that
// does not continue them.
func (o *order) aheads(d *digest) {
	before := o.ahead
	if o.prev != nil && !o.chained {
		before.lost()
	}
	found, next := before.over(&d.ahead)
	o.ahead, o.removed = next, slices.Concat(found.removed, d.ahead.removed)
	all := slices.Concat(found.found, d.ahead.found)
	o.sum.CommitAheads = append(o.sum.CommitAheads, all[:min(len(all), maxCommitAheads-len(o.sum.CommitAheads))]...)
}

func (o *order) events(d *digest, damageOnly bool) {
	for i := range d.events {
		v := &d.events[i]
		switch {
		case v.kind == eventDamage:
			o.report(v.dmg)
		case damageOnly:
		case v.kind == eventRun:
			o.run(v)
		case v.kind == eventForce:
			o.sum.ForceNewCluster = append(o.sum.ForceNewCluster, v.pos)
		case v.kind == eventSnapshot:
			o.received(v, nextEntry(d.events[i+1:]))
			o.snap = max(o.snap, v.snap.Index)
			v.snap.Commit = max(o.commit, v.commit)
			if v.snap.Commit > 0 {
				v.snap.Commit = max(v.snap.Commit, o.forced)
			}
			o.sum.Snapshots = append(o.sum.Snapshots, *v.snap)
			o.snaps = append(o.snaps, snapPlace{last: o.last})
		}
	}
}

// report adds damage. The next entry shows which indexes it lost.
func (o *order) report(d *DamageError) {
	if d.Server == "" {
		serverDoes(d, o.log.segs[len(o.log.segs)-1].name == d.Segment)
	}
	d.After = o.last
	o.sum.Damage = append(o.sum.Damage, d)
	if d.losesEntries() {
		o.waiting = append(o.waiting, d)
	}
}

// run appends consecutive entries of one term to the effective log.
func (o *order) run(v *event) {
	if v.first > o.last+1 {
		o.gap(v)
	}
	for i := len(o.snaps) - 1; i >= 0 && o.snaps[i].next == 0; i-- {
		o.snaps[i].next = v.first
	}
	o.waiting = o.waiting[:0]
	if n := len(o.sum.Terms); n > 0 && v.first <= o.sum.Terms[n-1].Last {
		o.overwrite(v)
	}
	if n := len(o.sum.Terms); n > 0 {
		prev := &o.sum.Terms[n-1]
		if prev.Last+1 == v.first && prev.Term > v.term {
			o.report(termFell(v.pos, v.term, prev.Term))
		}
		if prev.Last+1 == v.first && prev.Term == v.term {
			prev.Last, o.last = v.last, v.last
			return
		}
	}
	o.sum.Terms = append(o.sum.Terms, TermRange{Term: v.term, First: v.first, Last: v.last})
	o.last = v.last
}

// gap explains the entries missing before a run: by damage, by a snapshot, or not at all.
func (o *order) gap(v *event) {
	from, to := o.last+1, v.first-1
	switch {
	case len(o.waiting) > 0:
		for _, d := range o.waiting {
			d.LostFrom, d.LostTo = from, to
		}
	case o.snap >= to && !slices.Contains(o.removed, o.last):
		o.sum.Jumps = append(o.sum.Jumps, Jump{Pos: v.pos, From: from, To: to, State: max(o.term, v.state)})
	default:
		d := &DamageError{Pos: v.pos, Kind: DamageIndexGap, LostFrom: from, LostTo: to,
			Err: fmt.Errorf("entry %d/%d follows index %d", v.term, v.first, o.last)}
		if o.snap >= to {
			d.does("", "starts if the .snap file at or after the gap loads; else it refuses: slice bounds out of range")
		}
		o.report(d)
	}
}

// overwrite cuts the effective log before the run's first index.
func (o *order) overwrite(v *event) {
	o.cut(Overwrite{Pos: v.pos, Term: v.term, Index: v.first, Commit: max(o.commit, v.commit)})
}

// cut removes the entries from w.Index on from the effective log.
func (o *order) cut(w Overwrite) {
	terms := o.sum.Terms
	old := terms[len(terms)-1]
	w.OldLast, w.OldTerm = old.Last, old.Term
	o.sum.Overwrites = append(o.sum.Overwrites, w)
	for n := len(terms); n > 0 && terms[n-1].Last >= w.Index; n = len(terms) {
		if terms[n-1].First >= w.Index {
			terms = terms[:n-1]
			continue
		}
		terms[n-1].Last = w.Index - 1
	}
	o.sum.Terms = terms
}

// finish completes the summary after the last segment.
func (o *order) finish(limit int) *Summary {
	s := o.sum
	if p := o.prev; p != nil && p.file.last && s.LastClosed(SegmentLimit) && !s.NextPrepared() {
		o.report(&DamageError{Pos: Pos{Segment: p.seg.Name, Offset: p.seg.DataEnd}, Kind: DamageMissingSegment,
			Err: errors.New("the segment is full and closed, but the next one is missing")})
	}
	if o.bare {
		o.unmarked(limit)
	} else {
		o.lostIndexes()
		o.checkLostTail()
		o.snapshots()
	}
	s.MaxCommit, s.Votes, s.CommitFalls, s.StateTerms = o.commit, o.ballots.votes, o.ballots.falls, o.ballots.terms
	s.OddVotes = o.ballots.oddVotes()
	if n := len(s.Terms); n > 0 {
		s.FirstIndex, s.FirstTerm = s.Terms[0].First, s.Terms[0].Term
		s.LastIndex, s.LastTerm = s.Terms[n-1].Last, s.Terms[n-1].Term
	}
	at := map[string]int{}
	for i, f := range o.log.segs {
		at[f.name] = i
	}
	slices.SortStableFunc(s.Damage, func(a, b *DamageError) int {
		return cmp.Or(cmp.Compare(at[a.Segment], at[b.Segment]), cmp.Compare(a.Offset, b.Offset))
	})
	return s
}

// lostIndexes completes the damage after which no entry follows.
func (o *order) lostIndexes() {
	for _, d := range o.waiting {
		if d.LostFrom == 0 || d.LostFrom > o.last+1 {
			d.LostFrom, d.LostTo = o.last+1, 0
		}
	}
}

// checkLostTail reports a log that ends before its own commit index, unless other damage explains it. etcd writes
// entries before the HardState that commits them; up to 3.4 it writes the HardState of a received snapshot before its
// record.
func (o *order) checkLostTail() {
	end := max(o.last, o.snap)
	if o.commit <= end || o.prev == nil || slices.ContainsFunc(o.sum.Damage, (*DamageError).losesEntries) {
		return
	}
	o.report(&DamageError{Pos: Pos{Segment: o.prev.seg.Name, Offset: o.prev.seg.DataEnd}, Kind: DamageLostTail,
		LostFrom: end + 1, LostTo: o.commit, Server: "panics when it starts: state.commit is out of range",
		OnStart: StartRefused,
		Err:     fmt.Errorf("a HardState commits index %d, but the log ends with %d", o.commit, end)})
	o.waiting = o.waiting[:0]
}

// LastClosed reports whether the server had closed the last segment, given its segment size. A server cuts a full
// segment to its data and at once creates the next one with its full size (wal.go, cut). So a log ends with a closed
// segment only in the moment before that creation.
func (s *Summary) LastClosed(size int64) bool {
	n := len(s.Segments)
	return n > 0 && size > 0 && s.Segments[n-1].End == endEOF && s.Segments[n-1].Size >= size
}

// NextPrepared reports whether the file for the next segment exists under its temporary name, as it does while a server
// runs. A clean stop removes it. It remains after a kill, and in a copy of a running member.
func (s *Summary) NextPrepared() bool {
	return slices.ContainsFunc(s.LeftOvers, func(l LeftOver) bool { return strings.HasSuffix(l.Name, ".tmp") })
}

// SegmentSize is the size of new segments in bytes, according to the last one: it has its full size from the start,
// with zeros after the data. It is 0 if the last segment ends with its data. Every build of etcd uses 64,000,000, tests
// use less.
func (s *Summary) SegmentSize() int64 {
	if n := len(s.Segments); n > 0 && s.Segments[n-1].End == endZero {
		return s.Segments[n-1].Size
	}
	return 0
}

func termFell(pos Pos, now, before uint64) *DamageError {
	return &DamageError{Pos: pos, Kind: DamageTermOrder, Err: fmt.Errorf("term %d follows term %d", now, before)}
}
