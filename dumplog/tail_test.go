package dumplog_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// tailed reads what is new and returns the indexes of entries and the damage.
func tailed(t *testing.T, tail *dumplog.Tail) (indexes []uint64, damage []*dumplog.DamageError) {
	t.Helper()
	for rec, err := range tail.Records(context.Background()) {
		var dmg *dumplog.DamageError
		switch {
		case errors.As(err, &dmg):
			damage = append(damage, dmg)
		case err != nil:
			t.Fatal(err)
		case rec.Type == dumplog.RecordEntry:
			e, err := rec.Entry()
			must(t, err)
			if rec.CRC != dumplog.CRCMatch {
				t.Errorf("%s: CRC is not checked", rec.Pos)
			}
			indexes = append(indexes, e.Index)
		}
	}
	return indexes, damage
}

func wantRange(t *testing.T, got []uint64, first, last uint64) {
	t.Helper()
	for i, want := 0, first; want <= last; i, want = i+1, want+1 {
		if i >= len(got) || got[i] != want {
			t.Fatalf("got %v, want %d..%d", got, first, last)
		}
	}
	if uint64(len(got)) != last-first+1 {
		t.Fatalf("got %v, want %d..%d", got, first, last)
	}
}

// TestTailFollowsAWriter reads beside etcd's own writer, over the borders of segments.
func TestTailFollowsAWriter(t *testing.T) {
	defer func(n int64) { wal.SegmentSizeBytes = n }(wal.SegmentSizeBytes)
	wal.SegmentSizeBytes = 16 << 10
	dir := filepath.Join(t.TempDir(), "wal")
	w := newWAL(t, dir)
	tail := dumplog.NewTail(dir)
	if got, dmg := tailed(t, tail); len(got)+len(dmg) > 0 {
		t.Fatalf("an empty log shows %v, %v", got, dmg)
	}
	for round := range uint64(20) {
		first := round*10 + 1
		for i := first; i < first+10; i++ {
			w.save(raftpb.HardState{Term: 1, Commit: i - 1},
				raftpb.Entry{Term: 1, Index: i, Data: put("k", bytes.Repeat([]byte{'v'}, 700), i)})
		}
		got, dmg := tailed(t, tail)
		if len(dmg) > 0 {
			t.Fatal(dmg)
		}
		wantRange(t, got, first, first+9)
	}
	if got, dmg := tailed(t, tail); len(got)+len(dmg) > 0 {
		t.Errorf("nothing was written, yet %v, %v", got, dmg)
	}
	w.close()
	if segs, _ := filepath.Glob(filepath.Join(dir, "*.wal")); len(segs) < 5 {
		t.Errorf("only %d segments: the borders were not met", len(segs))
	}
}

// TestTailWaitsForAWrite: half a record is no damage until it stays; when it is written to its end, it is a record.
func TestTailWaitsForAWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "wal")
	w := newWAL(t, dir)
	for i := range uint64(9) {
		w.save(raftpb.HardState{Term: 1}, raftpb.Entry{Term: 1, Index: i + 1,
			Data: put("k", bytes.Repeat([]byte{'v'}, 3000), i+1)})
	}
	w.close()
	segs, err := filepath.Glob(filepath.Join(dir, "*.wal"))
	must(t, err)
	whole, err := os.ReadFile(segs[0])
	must(t, err)
	var last dumplog.Pos
	l, err := dumplog.Open(dir)
	must(t, err)
	for e, err := range l.Entries(context.Background(), nil) {
		must(t, err)
		last = e.Pos
	}
	half := bytes.Clone(whole)
	clear(half[last.Offset+700:])
	must(t, os.WriteFile(segs[0], half, 0o600))

	tail := dumplog.NewTail(dir)
	tail.Settle = 50 * time.Millisecond
	got, dmg := tailed(t, tail)
	wantRange(t, got, 1, 8)
	if len(dmg) > 0 {
		t.Fatalf("damage at once: %v", dmg)
	}
	time.Sleep(60 * time.Millisecond)
	if got, dmg = tailed(t, tail); len(got) > 0 || len(dmg) != 1 || dmg[0].Kind != dumplog.DamageTornTail ||
		dmg[0].Pos != last {
		t.Fatalf("a record that stays half: %v, %v", got, dmg)
	}
	if got, dmg = tailed(t, tail); len(got)+len(dmg) > 0 {
		t.Fatalf("told twice: %v, %v", got, dmg)
	}
	must(t, os.WriteFile(segs[0], whole, 0o600))
	got, dmg = tailed(t, tail)
	wantRange(t, got, 9, 9)
	if len(dmg) > 0 {
		t.Error(dmg)
	}
}

// TestTailMissesNothingSilently: segments that disappear and files that shrink are told.
func TestTailMissesNothingSilently(t *testing.T) {
	defer func(n int64) { wal.SegmentSizeBytes = n }(wal.SegmentSizeBytes)
	wal.SegmentSizeBytes = 4 << 10
	dir := filepath.Join(t.TempDir(), "wal")
	w := newWAL(t, dir)
	write := func(from, to uint64) {
		for i := from; i <= to; i++ {
			w.save(raftpb.HardState{Term: 1},
				raftpb.Entry{Term: 1, Index: i, Data: put("k", bytes.Repeat([]byte{'v'}, 700), i)})
		}
	}
	write(1, 10)
	tail := dumplog.NewTail(dir)
	tailed(t, tail)
	write(11, 40)
	w.close()
	segs, err := filepath.Glob(filepath.Join(dir, "*.wal"))
	must(t, err)
	must(t, os.Remove(segs[len(segs)-2]))
	_, dmg := tailed(t, tail)
	if len(dmg) == 0 || dmg[len(dmg)-1].Kind != dumplog.DamageMissingSegment {
		t.Errorf("a missing segment: %v", dmg)
	}
	must(t, os.Truncate(segs[len(segs)-1], 64))
	if _, dmg = tailed(t, tail); len(dmg) == 0 || dmg[0].Kind != dumplog.DamageTruncated {
		t.Errorf("a file that shrank: %v", dmg)
	}
}

// TestCommitBeyondTheEnd: a HardState that commits more than the log holds shows that its end is missing.
func TestCommitBeyondTheEnd(t *testing.T) {
	dir := t.TempDir() + "/wal"
	w := newWAL(t, dir)
	w.save(raftpb.HardState{Term: 1, Commit: 9}, raftpb.Entry{Term: 1, Index: 1}, raftpb.Entry{Term: 1, Index: 2})
	w.close()
	l, err := dumplog.Open(dir)
	must(t, err)
	s, err := l.Scan(context.Background())
	must(t, err)
	if len(s.Damage) != 1 || s.Damage[0].Kind != dumplog.DamageLostTail || s.Damage[0].LostFrom != 3 ||
		s.Damage[0].LostTo != 9 {
		t.Errorf("damage %v", s.Damage)
	}
}

// TestReadWhileWritten: a record that the server appends between two looks of the reader at the end of the log is not
// read, and does no harm.
func TestReadWhileWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "wal")
	w := newWAL(t, dir)
	defer w.close()
	ent := func(i uint64) raftpb.Entry { return raftpb.Entry{Term: 1, Index: i, Data: put("k", []byte("v"), i)} }
	for i := uint64(1); i <= 5; i++ {
		w.save(raftpb.HardState{Term: 1, Commit: i}, ent(i))
	}
	l, err := dumplog.Open(dir)
	must(t, err)
	s, err := l.Scan(context.Background())
	must(t, err)
	records := 0
	for rec, err := range l.RecordsOf(context.Background(), s) {
		if err != nil {
			t.Fatalf("record %d: %v", records, err)
		}
		if records++; records == 3 {
			w.save(raftpb.HardState{Term: 1, Commit: 6}, ent(6))
		}
		if e, err := rec.Entry(); rec.Type == dumplog.RecordEntry && err == nil && e.Index > 6 || records > 100 {
			t.Fatalf("record %d is %v", records, rec.Pos)
		}
	}
	if records == 0 {
		t.Error("nothing read")
	}
}

// TestOpenFiles reads segments that were unlinked after they were opened.
func TestOpenFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "wal")
	w := newWAL(t, dir)
	w.save(raftpb.HardState{Term: 1, Commit: 1}, raftpb.Entry{Term: 1, Index: 1, Data: put("k", []byte("v"), 1)})
	w.close()
	names, err := filepath.Glob(filepath.Join(dir, "*.wal"))
	must(t, err)
	f, err := os.Open(names[0])
	must(t, err)
	defer f.Close()
	st, err := f.Stat()
	must(t, err)
	must(t, os.Remove(names[0]))
	files := []dumplog.SegmentFile{{Name: filepath.Base(names[0]), File: f, Size: st.Size()}, {Name: "0.tmp"}}
	for range 2 { // the file stays open
		l, err := dumplog.OpenFiles(dir, files)
		must(t, err)
		s, err := l.Scan(context.Background())
		must(t, err)
		if s.LastIndex != 1 || len(s.Damage) > 0 || len(s.LeftOvers) != 1 {
			t.Errorf("%+v", s)
		}
	}
	if _, err := dumplog.OpenFiles(dir, nil); err == nil {
		t.Error("no segment is no error")
	}
}
