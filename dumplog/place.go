package dumplog

import (
	"cmp"
	"fmt"
	"slices"
)

// name compares the numbers in the name of a segment with what the log holds. A server names a segment by the next
// sequence number and the index behind the last entry or snapshot that it has stored (wal.go, cut); the first segment
// is 0-0.
func (o *order) name(d *digest, head Pos) {
	wrong := func(format string, args ...any) {
		o.report(&DamageError{Pos: head, Kind: DamageName, Err: fmt.Errorf(format, args...)})
	}
	if o.prev != nil && d.seg.Seq == o.prev.seg.Seq {
		wrong("%s has the same number %d", o.prev.seg.Name, d.seg.Seq)
		return
	}
	if d.seg.Seq == 0 {
		if d.seg.First != 0 {
			wrong("the name says index %d, the first segment of a log says 0", d.seg.First)
		}
		return
	}
	first, snap, ok := d.firstIndexes()
	switch {
	case ok && first == 0: // nothing was stored since it was created
		if p := o.prev; p != nil && o.continues(d) && o.sound(d) && p.seg.LastEntry > 0 &&
			d.seg.First != p.seg.LastEntry+1 && d.seg.First != o.snap+1 {
			wrong("the name says index %d, the segment before ends with %d", d.seg.First, p.seg.LastEntry)
		}
	case !ok || first == d.seg.First || first == max(snap, o.snap)+1:
	case first > d.seg.First:
		wrong("the name says index %d, the first entry in the segment is %d", d.seg.First, first)
	case o.prev != nil && o.continues(d) && o.sound(d) && !o.reached(d.seg.First-1):
		// A lower index alone can be a new leader's, which replaces the end of the log.
		wrong("the name says index %d, the segment before ends with %d and the first entry in this one is %d",
			d.seg.First, o.last, first)
	}
}

// firstIndexes are the index of the first entry of the segment and that of the last snapshot record before it. ok is
// false where damage stands before them.
func (d *digest) firstIndexes() (first, snap uint64, ok bool) {
	for i := range d.events {
		switch v := &d.events[i]; v.kind {
		case eventDamage:
			return 0, 0, false
		case eventSnapshot:
			snap = max(snap, v.snap.Index)
		case eventRun:
			return v.first, snap, true
		}
	}
	return 0, snap, true
}

// continues tells whether the CRC chain of the segment is that of the one before.
func (o *order) continues(d *digest) bool {
	return d.seeded && !d.badSeed && o.chained && d.seed == o.chain
}

// sound tells whether no damage was met so far that can hide entries.
func (o *order) sound(d *digest) bool {
	return d.endKnown && !slices.ContainsFunc(o.sum.Damage, (*DamageError).losesEntries)
}

// reached tells whether the log so far has stored the index, as an entry that may have been replaced since or by a
// snapshot.
func (o *order) reached(index uint64) bool {
	return index <= max(o.last, o.snap) || slices.ContainsFunc(o.sum.Overwrites,
		func(w Overwrite) bool { return index <= w.OldLast })
}

// snapPlace is where a snapshot record stands: the last index before it and that of the first entry behind it, 0 when
// none follows.
type snapPlace struct{ last, next uint64 }

// snapshots reports records that contradict the log around them and leaves them out of the Summary. A snapshot is taken
// of entries that are committed, so its index lies below the commit index that was stored before, and its term is that
// of the entry; or it was received, and the log goes on behind it. Up to 3.5 each own snapshot is saved in the
// background, so that its record may follow that of a later one (server/etcdserver/server.go, snapshot). The Summary
// has them by index.
func (o *order) snapshots() {
	s := o.sum
	var kept []SnapshotRecord
	highest := uint64(0)
	for i := range s.Snapshots {
		r, at := &s.Snapshots[i], o.snaps[i]
		if why := o.contradicts(r, at, highest); why != nil {
			o.report(&DamageError{Pos: r.Pos, Kind: DamageSnapshotRecord, Err: why})
			continue
		}
		highest = max(highest, r.Index)
		kept = append(kept, *r)
	}
	slices.SortStableFunc(kept, func(a, b SnapshotRecord) int { return cmp.Compare(a.Index, b.Index) })
	s.Snapshots = kept
}

func (o *order) contradicts(r *SnapshotRecord, at snapPlace, highest uint64) error {
	term := o.sum.termOf(r.Index)
	switch {
	case r.Index == 0:
		return nil
	case r.Index > at.last && at.next > 0 && at.next <= r.Index:
		return fmt.Errorf("a snapshot at %d/%d, and the log goes on with entry %d", r.Term, r.Index, at.next)
	case r.Index <= at.last && term != 0 && term != r.Term:
		return fmt.Errorf("a snapshot at %d/%d, entry %d has term %d", r.Term, r.Index, r.Index, term)
	case r.Index < highest && r.Index > at.last:
		return fmt.Errorf("a snapshot at %d/%d follows one at index %d", r.Term, r.Index, highest)
	case r.Index <= at.last && r.Commit > 0 && r.Index > r.Commit &&
		!slices.ContainsFunc(o.sum.Damage, func(d *DamageError) bool { return d.Kind != DamageSnapshotRecord }):
		return fmt.Errorf("a snapshot at %d/%d, the commit index was %d", r.Term, r.Index, r.Commit)
	}
	return nil
}

// termOf is TermAt while terms may not be in index order yet.
func (s *Summary) termOf(index uint64) uint64 {
	for _, t := range s.Terms {
		if t.First <= index && index <= t.Last {
			return t.Term
		}
	}
	return 0
}
