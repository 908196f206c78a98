package dumplog_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

func scanDir(t *testing.T, dir string) *dumplog.Summary {
	t.Helper()
	l, err := dumplog.Open(dir)
	must(t, err)
	s, err := l.Scan(context.Background())
	must(t, err)
	return s
}

// wantDamage expects exactly the damage of these kinds, in order.
func wantDamage(t *testing.T, s *dumplog.Summary, kinds ...dumplog.DamageKind) {
	t.Helper()
	got := []dumplog.DamageKind{}
	for _, d := range s.Damage {
		got = append(got, d.Kind)
	}
	if fmt.Sprint(got) != fmt.Sprint(kinds) {
		t.Errorf("damage %v, want %v", s.Damage, kinds)
	}
}

// entries writes puts in term 1 and the HardState that commits them.
func (w *walWriter) entries(from, to uint64) {
	w.t.Helper()
	var ents []raftpb.Entry
	for i := from; i <= to; i++ {
		ents = append(ents, raftpb.Entry{Term: 1, Index: i, Data: put("k", []byte("v"), 0)})
	}
	w.save(raftpb.HardState{Term: 1, Vote: testMember, Commit: to}, ents...)
}

// forced is a conf change as a start with --force-new-cluster writes it, if it has no ID.
func forced(t *testing.T, index uint64, kind raftpb.ConfChangeType, id uint64) raftpb.Entry {
	t.Helper()
	cc := raftpb.ConfChange{ID: id, Type: kind, NodeID: 5}
	data, err := cc.Marshal()
	must(t, err)
	return raftpb.Entry{Term: 1, Index: index, Type: raftpb.EntryConfChange, Data: data}
}

func TestSnapshotRecordsFitTheirEntries(t *testing.T) {
	bad := dumplog.DamageSnapshotRecord
	for name, c := range map[string]struct {
		write func(w *walWriter)
		want  []dumplog.DamageKind
		left  int // snapshots in the Summary, with the one at index 0 that every log begins with
	}{
		"taken": {func(w *walWriter) {
			w.entries(1, 20)
			w.snapshot(15, 1)
			w.entries(21,
				30)
			w.snapshot(25, 1)
		}, nil, 3},
		"received": {func(w *walWriter) { w.entries(1, 20); w.snapshot(50, 1); w.entries(51, 60) },
			nil, 2},
		"received in a later term than the next entry": {func(w *walWriter) {
			w.entries(1, 20)
			w.snapshot(50, 2)
			w.entries(51, 60)
		}, []dumplog.DamageKind{bad}, 1},
		"received, and a later term follows": {func(w *walWriter) {
			w.entries(1, 20)
			w.snapshot(50, 2)
			w.save(raftpb.HardState{Term: 3, Vote: testMember, Commit: 60}, entriesOf(3, 51, 60)...)
		}, nil, 2},
		"received as the last":    {func(w *walWriter) { w.entries(1, 20); w.snapshot(50, 2) }, nil, 2},
		"taken at the last entry": {func(w *walWriter) { w.entries(1, 20); w.snapshot(20, 1) }, nil, 2},
		"another term": {func(w *walWriter) { w.entries(1, 20); w.snapshot(15, 3); w.entries(21, 30) },
			[]dumplog.DamageKind{bad}, 1},
		"an index beyond the log": {func(w *walWriter) { w.entries(1, 20); w.snapshot(1500, 1); w.entries(21, 30) },
			[]dumplog.DamageKind{bad}, 1},
		"taken, saved after a later": {func(w *walWriter) {
			w.entries(1, 20)
			w.snapshot(15, 1)
			w.entries(21,
				30)
			w.snapshot(5, 1)
		}, nil, 3},
		"neither taken nor received": {func(w *walWriter) {
			w.entries(1, 20)
			w.snapshot(50, 1)
			w.snapshot(40,
				1)
			w.entries(51, 60)
		}, []dumplog.DamageKind{bad}, 2},
		"beyond, then the true ones": {func(w *walWriter) {
			w.entries(1, 20)
			w.snapshot(99, 1)
			w.entries(21,
				30)
			w.snapshot(25, 1)
		}, []dumplog.DamageKind{bad}, 2},
		"an index above what was committed": {func(w *walWriter) {
			w.entries(1, 20)
			w.save(raftpb.HardState{}, raftpb.Entry{Term: 1, Index: 21})
			w.snapshot(21, 1)
			w.entries(22, 30)
		}, []dumplog.DamageKind{bad}, 1},
		"taken right after a forced start": {func(w *walWriter) {
			w.entries(1, 20)
			w.save(raftpb.HardState{}, forced(t, 21, raftpb.ConfChangeRemoveNode, 0),
				forced(t, 22, raftpb.ConfChangeAddNode, 0))
			w.snapshot(22, 1)
			w.entries(23, 30)
		}, nil, 2},
		"after a removal that a client asked for": {func(w *walWriter) {
			w.entries(1, 20)
			w.save(raftpb.HardState{}, forced(t, 21, raftpb.ConfChangeRemoveNode, 77))
			w.snapshot(21, 1)
			w.entries(22, 30)
		}, []dumplog.DamageKind{bad}, 1},
		"after an addition without a forced start": {func(w *walWriter) {
			w.entries(1, 20)
			w.save(raftpb.HardState{}, forced(t, 21, raftpb.ConfChangeAddNode, 0))
			w.snapshot(21, 1)
			w.entries(22, 30)
		}, []dumplog.DamageKind{bad}, 1},
		"above what a forced start committed": {func(w *walWriter) {
			w.entries(1, 20)
			w.save(raftpb.HardState{}, forced(t, 21, raftpb.ConfChangeRemoveNode, 0),
				raftpb.Entry{Term: 1, Index: 22})
			w.snapshot(22, 1)
			w.entries(23, 30)
		}, []dumplog.DamageKind{bad}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "wal")
			w := newWAL(t, dir)
			c.write(w)
			w.close()
			s := scanDir(t, dir)
			wantDamage(t, s, c.want...)
			if len(s.Snapshots) != c.left {
				t.Errorf("%d snapshots are left, want %d", len(s.Snapshots), c.left)
			}
			if !slices.IsSortedFunc(s.Snapshots,
				func(a, b dumplog.SnapshotRecord) int { return cmp.Compare(a.Index, b.Index) }) {
				t.Errorf("the snapshots are not in the order of their indexes: %v", s.Snapshots)
			}
		})
	}
}

// inSegments writes entries in segments of 4 KiB.
func inSegments(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "wal")
	old := wal.SegmentSizeBytes
	wal.SegmentSizeBytes = 4 << 10
	writeMany(t, dir, 600, 40)
	wal.SegmentSizeBytes = old
	must(t, removeTmp(dir))
	return dir
}

func TestNamesOfSegments(t *testing.T) {
	dir := inSegments(t)
	whole := scanDir(t, dir)
	wantDamage(t, whole)
	n := len(whole.Segments)
	if n < 5 {
		t.Fatalf("only %d segments", n)
	}
	for name, c := range map[string]struct {
		segment int
		seq     int64
		first   int64
	}{
		"a lower index":                      {2, 0, -7},
		"a higher index":                     {2, 0, 7},
		"a higher index of the last one":     {n - 1, 0, 7},
		"another number":                     {n - 1, 3, 0},
		"the number of the one before":       {2, -1, 0},
		"a first segment with another index": {0, 0, 5},
	} {
		t.Run(name, func(t *testing.T) {
			g := whole.Segments[c.segment]
			renamed := fmt.Sprintf("%016x-%016x.wal", int64(g.Seq)+c.seq, int64(g.First)+c.first)
			must(t, os.Rename(filepath.Join(dir, g.Name), filepath.Join(dir, renamed)))
			s := scanDir(t, dir)
			must(t, os.Rename(filepath.Join(dir, renamed), filepath.Join(dir, g.Name)))
			if len(s.Damage) == 0 || s.Damage[0].Kind != dumplog.DamageName || s.Damage[0].Segment != renamed {
				t.Errorf("damage %v, want a wrong name of %s", s.Damage, renamed)
			}
			if s.LastIndex != whole.LastIndex {
				t.Errorf("last index %d, want %d", s.LastIndex, whole.LastIndex)
			}
		})
	}
}

// TestNameAboveSnapshot: the record of an own snapshot at the head of a segment does not explain a higher index.
func TestNameAboveSnapshot(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "wal")
	old := wal.SegmentSizeBytes
	defer func() { wal.SegmentSizeBytes = old }()
	wal.SegmentSizeBytes = 1
	w := newWAL(t, dir)
	w.entries(1, 5)
	wal.SegmentSizeBytes = old
	w.snapshot(5, 1)
	w.entries(6, 8)
	w.close()
	must(t, removeTmp(dir))
	last := scanDir(t, dir).Segments
	g := last[len(last)-1]
	if g.FirstEntry != 6 || g.First != 6 {
		t.Fatalf("the last segment begins with %d and is named for %d", g.FirstEntry, g.First)
	}
	renamed := fmt.Sprintf("%016x-%016x.wal", g.Seq, g.First+3)
	must(t, os.Rename(filepath.Join(dir, g.Name), filepath.Join(dir, renamed)))
	wantDamage(t, scanDir(t, dir), dumplog.DamageName)
}

// A new leader replaces the end of the log: the first entry of a segment can have a lower index than its name.
func TestSegmentThatBeginsWithAReplacedEntry(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "wal")
	old := wal.SegmentSizeBytes
	defer func() { wal.SegmentSizeBytes = old }()
	wal.SegmentSizeBytes = 1
	w := newWAL(t, dir)
	w.save(raftpb.HardState{Term: 1, Vote: testMember, Commit: 3}, entriesOf(1, 1, 9)...)
	w.save(raftpb.HardState{Term: 2, Vote: testMember, Commit: 4}, entriesOf(2, 5, 8)...)
	w.close()
	must(t, removeTmp(dir))
	s := scanDir(t, dir)
	wantDamage(t, s)
	if len(s.Overwrites) != 1 || s.Segments[1].FirstEntry >= s.Segments[1].First {
		t.Errorf("overwrites %v, segments %+v", s.Overwrites, s.Segments)
	}
}

func entriesOf(term, from, to uint64) (out []raftpb.Entry) {
	for i := from; i <= to; i++ {
		out = append(out, raftpb.Entry{Term: term, Index: i})
	}
	return out
}

func TestVotesThatReturn(t *testing.T) {
	type st = raftpb.HardState
	for name, c := range map[string]struct {
		states []raftpb.HardState
		odd    []uint64 // votes
	}{
		"one vote": {[]st{{Term: 2}, {Term: 2, Vote: 5}, {Term: 2, Vote: 5, Commit: 1}, {Term: 3},
			{Term: 3, Vote: 6}}, nil},
		"taken back": {[]st{{Term: 2, Vote: 5}, {Term: 2, Commit: 1}, {Term: 2, Vote: 5, Commit: 1}},
			[]uint64{0}},
		"another in between": {[]st{{Term: 2, Vote: 5}, {Term: 2, Vote: 6, Commit: 1}, {Term: 2, Vote: 5, Commit: 1}},
			[]uint64{6}},
		"a second vote stays": {[]st{{Term: 2, Vote: 5}, {Term: 2, Vote: 6}, {Term: 2, Vote: 6, Commit: 1}}, nil},
	} {
		for _, segments := range []bool{false, true} {
			t.Run(fmt.Sprint(name, segments), func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "wal")
				old := wal.SegmentSizeBytes
				defer func() { wal.SegmentSizeBytes = old }()
				w := newWAL(t, dir)
				for i, h := range c.states {
					if wal.SegmentSizeBytes = old; segments {
						wal.SegmentSizeBytes = 1
					}
					w.save(h, raftpb.Entry{Term: h.Term, Index: uint64(i + 1)})
				}
				w.close()
				s := scanDir(t, dir)
				var got []uint64
				for _, v := range s.OddVotes {
					got = append(got, uint64(v.For))
				}
				if fmt.Sprint(got) != fmt.Sprint(c.odd) {
					t.Errorf("odd votes %v, want %v", s.OddVotes, c.odd)
				}
			})
		}
	}
}

// A member stores an entry together with its own term, which is that of the entry or higher.
func TestHardStateBelowTheTermOfAnEntry(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "wal")
	w := newWAL(t, dir)
	w.save(raftpb.HardState{Term: 3, Vote: testMember, Commit: 1}, entriesOf(3, 1, 1)...)
	w.save(raftpb.HardState{Term: 2, Vote: testMember, Commit: 2}, entriesOf(3, 2, 2)...)
	w.save(raftpb.HardState{Term: 3, Vote: testMember, Commit: 3}, entriesOf(3, 3, 3)...)
	w.close()
	wantDamage(t, scanDir(t, dir), dumplog.DamageTermOrder)
}
