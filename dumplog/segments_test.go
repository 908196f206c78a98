package dumplog_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// writeSegments writes a log of many small segments with overwrites, as leaders that come and go leave them.
func writeSegments(t testing.TB, dir string, seed uint64) {
	t.Helper()
	old := wal.SegmentSizeBytes
	defer func() { wal.SegmentSizeBytes = old }()
	wal.SegmentSizeBytes = 16 << 10
	rnd := rand.New(rand.NewPCG(seed, 0))
	w := newWAL(t, dir)
	term, last, commit := uint64(1), uint64(0), uint64(0)
	for range 400 {
		if rnd.IntN(10) == 0 { // a new leader replaces what is not committed
			term++
			last = commit + rnd.Uint64N(last-commit+1)
		}
		var ents []raftpb.Entry
		for range 1 + rnd.IntN(4) {
			last++
			value := make([]byte, rnd.IntN(1500))
			ents = append(ents, raftpb.Entry{Term: term, Index: last, Data: put(fmt.Sprint("k", last), value, 0)})
		}
		commit += rnd.Uint64N(last - commit + 1)
		w.save(raftpb.HardState{Term: term, Vote: testMember, Commit: commit}, ents...)
	}
	w.close()
}

// TestManySegmentsEqualToReadAll holds logs with many segments and overwrites against etcd's own reader.
func TestManySegmentsEqualToReadAll(t *testing.T) {
	for seed := range uint64(5) {
		dir := filepath.Join(t.TempDir(), "wal")
		writeSegments(t, dir, seed)
		evidencetest.Unchanged(t, dir)
		l, err := dumplog.Open(dir)
		must(t, err)
		s, err := l.Scan(context.Background())
		must(t, err)
		if len(s.Damage) > 0 || len(s.Segments) < 10 || len(s.Overwrites) < 5 {
			t.Fatalf("%d segments, %d overwrites, damage %v", len(s.Segments), len(s.Overwrites), s.Damage)
		}
		equalToReadAll(t, l, s, evidencetest.Copy(t, dir))
		for _, o := range s.Overwrites {
			if o.Index <= o.Commit {
				t.Errorf("%v: entry %d replaced, commit was %d; the writer never did that", o.Pos, o.Index, o.Commit)
			}
		}
		for i, r := range s.Terms {
			if i > 0 && (r.First != s.Terms[i-1].Last+1 || r.Term <= s.Terms[i-1].Term) {
				t.Errorf("terms %v", s.Terms)
			}
		}
	}
}

// TestDropEachSegment drops each segment but the last in turn: the hole is reported with exactly the lost indexes.
func TestDropEachSegment(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "wal")
	old := wal.SegmentSizeBytes
	wal.SegmentSizeBytes = 4 << 10
	writeMany(t, dir, 600, 40)
	wal.SegmentSizeBytes = old
	must(t, removeTmp(dir))
	l, err := dumplog.Open(dir)
	must(t, err)
	whole, err := l.Scan(context.Background())
	must(t, err)
	for i := 1; i < len(whole.Segments)-1; i++ {
		gone := whole.Segments[i]
		path := filepath.Join(dir, gone.Name)
		aside := filepath.Join(t.TempDir(), "aside")
		must(t, os.Rename(path, aside))
		l, err := dumplog.Open(dir)
		must(t, err)
		s, err := l.Scan(context.Background())
		must(t, err)
		if len(s.Damage) != 1 || s.Damage[0].Kind != dumplog.DamageMissingSegment ||
			s.Damage[0].LostFrom != gone.FirstEntry || s.Damage[0].LostTo != gone.LastEntry {
			t.Fatalf("without %s (%d..%d): %v", gone.Name, gone.FirstEntry, gone.LastEntry, s.Damage)
		}
		must(t, os.Rename(aside, path))
	}
}

// TestWhileTheServerWrites reads a log again and again while it grows: every reading is a healthy, longer log, or ends
// in a torn tail where the writer was inside a record.
func TestWhileTheServerWrites(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "wal")
	old := wal.SegmentSizeBytes
	wal.SegmentSizeBytes = 1 << 20 // a preallocated tail, but not 64 MB to be read each time
	w := newWAL(t, dir)
	wal.SegmentSizeBytes = old
	last := uint64(0)
	for i := uint64(1); i <= 200; i++ {
		w.save(raftpb.HardState{Term: 1, Vote: testMember, Commit: i},
			raftpb.Entry{Term: 1, Index: i, Data: put("k", make([]byte, 700), 0)})
		l, err := dumplog.Open(dir)
		must(t, err)
		s, err := l.Scan(context.Background())
		must(t, err)
		if s.LastIndex < last {
			t.Fatalf("entry %d, then %d", last, s.LastIndex)
		}
		for _, d := range s.Damage {
			if d.Kind != dumplog.DamageTornTail {
				t.Fatalf("after entry %d: %v", i, d)
			}
		}
		last = s.LastIndex
	}
	w.close()
	if last < 100 {
		t.Errorf("only %d entries seen while writing", last)
	}
}

// TestLeftOvers expects files that are no segments to be named and left alone.
func TestLeftOvers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "wal")
	writeMany(t, dir, 10, 10)
	must(t, removeTmp(dir))
	for name, what := range map[string]string{"0.tmp": "zeros",
		"0000000000000000-0000000000000000.wal.broken": "torn tail", "note.txt": "not an etcd file",
		"x.wal": "not an etcd file"} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(what), 0o600))
	}
	evidencetest.Unchanged(t, dir)
	l, err := dumplog.Open(dir)
	must(t, err)
	s, err := l.Scan(context.Background())
	must(t, err)
	if len(s.LeftOvers) != 4 || len(s.Segments) != 1 || len(s.Damage) != 0 {
		t.Errorf("left-overs %v, damage %v", s.LeftOvers, s.Damage)
	}
	if _, err := dumplog.Open(t.TempDir()); err == nil {
		t.Error("an empty folder opened as a log")
	}
}

// TestUnreadableSegment expects a segment that cannot be opened to be damage, not an error: its neighbours are read.
func TestUnreadableSegment(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "wal")
	writeSegments(t, dir, 9)
	l, err := dumplog.Open(dir)
	must(t, err)
	whole, err := l.Scan(context.Background())
	must(t, err)
	gone := whole.Segments[3]
	must(t, os.Remove(filepath.Join(dir, gone.Name)))
	must(t, os.Symlink("nowhere", filepath.Join(dir, gone.Name)))
	l, err = dumplog.Open(dir)
	must(t, err)
	s, err := l.Scan(context.Background())
	must(t, err)
	if len(s.Damage) != 1 || s.Damage[0].Kind != dumplog.DamageUnreadable || s.Damage[0].Segment != gone.Name ||
		s.LastIndex != whole.LastIndex {
		t.Errorf("%v, last %d of %d", s.Damage, s.LastIndex, whole.LastIndex)
	}
	damage := 0
	for _, err := range l.Entries(context.Background(), s) {
		if err != nil {
			damage++
		}
	}
	if damage != 1 {
		t.Errorf("Entries yielded %d damages", damage)
	}
}

// TestCancel expects a cancelled context to end every reading with its error.
func TestCancel(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "wal")
	writeMany(t, dir, 10, 10)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	l, err := dumplog.Open(dir)
	must(t, err)
	if _, err := l.Scan(ctx); err != context.Canceled {
		t.Errorf("Scan: %v", err)
	}
	for _, err := range l.Entries(ctx, nil) {
		if err != context.Canceled {
			t.Errorf("Entries: %v", err)
		}
	}
	for _, err := range l.Records(ctx) {
		if err != context.Canceled {
			t.Errorf("Records: %v", err)
		}
	}
}

// A full segment is closed when the next one is created, so a log that ends with one lost what followed; unless the
// server died in between, which leaves the next segment under its temporary name.
func TestEndsWithAClosedSegment(t *testing.T) {
	for name, c := range map[string]struct {
		size    int64
		tmp     bool
		missing bool
	}{
		"full and closed":               {size: dumplog.SegmentLimit, missing: true},
		"longer than full":              {size: dumplog.SegmentLimit + 512, missing: true},
		"the server died while closing": {size: dumplog.SegmentLimit, tmp: true},
		"cut off and written on":        {size: dumplog.SegmentLimit - 8},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "wal")
			oneRecord(t, dir, c.size)
			if c.tmp {
				must(t, os.WriteFile(filepath.Join(dir, "0.tmp"), make([]byte, 512), 0o600))
			}
			l, err := dumplog.Open(dir)
			must(t, err)
			s, err := l.Scan(context.Background())
			must(t, err)
			if missing := len(s.Damage) == 1 &&
				s.Damage[0].Kind == dumplog.DamageMissingSegment; missing != c.missing || !missing &&
				len(s.Damage) > 0 {
				t.Errorf("damage %v, want a missing segment: %v", s.Damage, c.missing)
			}
		})
	}
}

// oneRecord writes a log whose only segment is filled to that size by one entry, and ends with it.
func oneRecord(t *testing.T, dir string, size int64) {
	t.Helper()
	old := wal.SegmentSizeBytes
	defer func() { wal.SegmentSizeBytes = old }()
	wal.SegmentSizeBytes = 512
	w := newWAL(t, dir)
	wal.SegmentSizeBytes = 1 << 40
	const around = 256 // what stands before and around the data of the entry, no more than this
	w.save(raftpb.HardState{}, raftpb.Entry{Term: 1, Index: 1, Data: make([]byte, size-around)})
	name := filepath.Join(dir, "0000000000000000-0000000000000000.wal")
	st, err := os.Stat(name)
	must(t, err)
	if rest := size - st.Size(); rest > 0 { // fill up with one more record
		const frame = 32
		w.save(raftpb.HardState{}, raftpb.Entry{Term: 1, Index: 2, Data: make([]byte, rest-frame)})
	}
	w.close()
	must(t, removeTmp(dir))
	if st, err = os.Stat(name); err != nil || st.Size() != size {
		t.Fatalf("%d bytes, want %d: %v", st.Size(), size, err)
	}
}

// TestStartOfExchangedSegments: the segment that begins the chain of checksums shows how the log began, whatever its
// name says.
func TestStartOfExchangedSegments(t *testing.T) {
	dir := evidencetest.Copy(t, filepath.Join(evidencetest.Incident(t, "t-lagging-with-log-gap"), "node1", "member",
		"wal"))
	files, err := filepath.Glob(filepath.Join(dir, "*.wal"))
	must(t, err)
	aside := filepath.Join(t.TempDir(), "aside")
	for _, move := range [][2]string{{files[0], aside}, {files[1], files[0]}, {aside, files[1]}} {
		must(t, os.Rename(move[0], move[1]))
	}
	l, err := dumplog.Open(dir)
	must(t, err)
	s, err := l.Scan(context.Background())
	must(t, err)
	if s.Start != dumplog.StartBootstrap || len(s.Damage) == 0 {
		t.Errorf("%s, damage %v", s.Start, s.Damage)
	}
}
