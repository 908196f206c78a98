package surgery

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// copied reports whether the current records are in a copied segment.
func (r *rewriter) copied() bool { return r.f == nil }

// enter starts the new segment for an old one. Before the first bad one it does nothing.
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
		r.log.Snapshot(0, 0, nil) // every log starts with it; etcd does not open one without
	}
	if r.state != (dumplog.HardState{}) {
		r.log.State(r.state.Term, uint64(r.state.Vote), r.state.Commit)
	}
	return nil
}

// end completes the current segment and syncs it.
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
		return nil //nolint:nilerr // damage: an invalid HardState is dropped
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

// last returns the last index of the new log.
func (r *rewriter) last() uint64 { return max(r.next, 1) - 1 }

func (r *rewriter) snapshotRecord(rec *dumplog.Record) error {
	sn, err := dumplog.DecodeSnapshotRecord(rec.Data)
	if err != nil {
		return nil //nolint:nilerr // damage: an invalid snapshot record is dropped
	}
	if !r.copied() {
		r.log.Record(int64(dumplog.RecordSnapshot), rec.Data)
	}
	if jump(r.s, sn.Index) && r.next <= sn.Index {
		r.next = sn.Index + 1 // the log continues after a leader's snapshot
	}
	return nil
}

// jump reports whether the log legally continues after this snapshot.
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
		return nil //nolint:nilerr // damage: an invalid entry is lost, as the index shows
	}
	if r.copied() {
		r.next, r.term = e.Index+1, e.Term
		return nil
	}
	if r.cut > 0 && e.Index >= r.cut {
		return nil
	}
	r.cut = 0 // a later leader's entries replace those after the gap
	if r.next > 0 && e.Index > r.next && !r.bridge(span{r.next, e.Index - 1}) {
		return nil
	}
	// The bytes stay unchanged: encoders differ in how they write zero, which shows the etcd version.
	r.log.Record(int64(dumplog.RecordEntry), rec.Data)
	r.next, r.term = e.Index+1, e.Term
	return nil
}

func (r *rewriter) write(e *datadir.Entry) {
	r.log.Entry(e)
	r.next, r.term = e.Index+1, e.Term
}

// bridge closes a gap before an entry with other members' entries. If the newest raft snapshot covers the gap, it
// stays.
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

// fillTail adds committed entries that this log has lost at its end.
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
	if r.short || slices.ContainsFunc(r.s.Damage, func(d *dumplog.DamageError) bool {
		return d.Kind == dumplog.DamageMissingSegment && d.LostFrom >= r.next
	}) {
		// Nothing shows where the lost end was. This member's vote may have committed what is committed.
		for _, p := range r.w.peers() {
			lost = max(lost, p.Commit)
		}
	}
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
		r.hard.Commit = max(r.hard.Commit, r.last()) // they are committed on the other members
	}
}
