package dumplog

import (
	"cmp"
	"fmt"
	"slices"
)

// checkName compares the numbers in the name of a segment with the log. A server names a segment by the next sequence
// number and the index after the last entry or snapshot it has stored (wal.go, cut). The first segment is 0-0.
func (o *order) checkName(d *digest, head Pos) {
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
		if p := o.prev; p != nil && o.continues(d) && o.allRead(d) && p.seg.LastEntry > 0 &&
			d.seg.First != p.seg.LastEntry+1 && d.seg.First != o.snap+1 {
			wrong("the name says index %d, the previous segment ends with %d", d.seg.First, p.seg.LastEntry)
		}
	case !ok || first == d.seg.First || first > d.seg.First && first == max(snap, o.snap)+1:
	case first > d.seg.First:
		wrong("the name says index %d, the first entry in the segment is %d", d.seg.First, first)
	case o.prev != nil && o.continues(d) && o.allRead(d) && !o.hasStored(d.seg.First-1):
		// A lower index alone can come from a new leader, which replaces the end of the log.
		wrong("the name says index %d, the previous segment ends with %d and the first entry in this one is %d",
			d.seg.First, o.last, first)
	}
}

// firstIndexes returns the index of the first entry of the segment and that of the last snapshot record before it. ok
// is false if damage comes before them.
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

// continues reports whether the CRC chain of the segment continues that of the previous one.
func (o *order) continues(d *digest) bool {
	return d.seeded && !d.badSeed && o.chained && d.seed == o.chain
}

// allRead reports whether no damage so far can hide entries.
func (o *order) allRead(d *digest) bool {
	return d.endKnown && !slices.ContainsFunc(o.sum.Damage, (*DamageError).losesEntries)
}

// hasStored reports whether the log has stored the index so far, in a snapshot or as an entry that may have been
// replaced since.
func (o *order) hasStored(index uint64) bool {
	return index <= max(o.last, o.snap) || slices.ContainsFunc(o.sum.Overwrites,
		func(w Overwrite) bool { return index <= w.OldLast })
}

// snapPlace is the position of a snapshot record: the last index before it and the index of the first entry after it, 0
// if none follows.
type snapPlace struct{ last, next uint64 }

// snapshots reports snapshot records that contradict the log around them and leaves them out of the Summary.
//
// A member takes a snapshot of committed entries. So its index is at most the commit index stored before, and its term
// is that of the entry. If the snapshot was received instead, the log continues after it, in its term or a later one.
// Up to 3.5 each own snapshot is saved in the background, so its record may follow that of a later one
// (server/etcdserver/server.go, snapshot). The Summary sorts them by index.
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
	term, next := o.sum.termOf(r.Index), o.sum.termOf(at.next)
	switch {
	case r.Index == 0:
		return nil
	case r.Index > at.last && at.next > 0 && at.next <= r.Index:
		return fmt.Errorf("a snapshot at %d/%d, but the log continues with entry %d", r.Term, r.Index, at.next)
	case r.Index > at.last && at.next == r.Index+1 && next != 0 && next < r.Term:
		return fmt.Errorf("a snapshot at %d/%d, but the entry after it has term %d", r.Term, r.Index, next)
	case r.Index <= at.last && term != 0 && term != r.Term:
		return fmt.Errorf("a snapshot at %d/%d, but entry %d has term %d", r.Term, r.Index, r.Index, term)
	case r.Index < highest && r.Index > at.last:
		return fmt.Errorf("a snapshot at %d/%d follows one at index %d", r.Term, r.Index, highest)
	case r.Index <= at.last && r.Commit > 0 && r.Index > r.Commit &&
		!slices.ContainsFunc(o.sum.Damage, func(d *DamageError) bool { return d.Kind != DamageSnapshotRecord }):
		return fmt.Errorf("a snapshot at %d/%d, but the commit index was %d", r.Term, r.Index, r.Commit)
	}
	return nil
}

// termOf is TermAt for terms that may not be in index order yet.
func (s *Summary) termOf(index uint64) uint64 {
	for _, t := range s.Terms {
		if t.First <= index && index <= t.Last {
			return t.Term
		}
	}
	return 0
}
