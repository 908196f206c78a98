package dumplog_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestEntriesFrom: of every log of the incidents, damaged ones included, and of logs of many segments, the entries from
// an index on are those that reading the whole log gives; and segments are left out where that can be.
func TestEntriesFrom(t *testing.T) {
	for _, name := range evidencetest.Incidents(t) {
		for _, dir := range nodesWith(t, name) {
			evidencetest.Unchanged(t, dir)
			entriesFromAnywhere(t, filepath.Join(dir, "member", "wal"))
		}
	}
	old := wal.SegmentSizeBytes
	wal.SegmentSizeBytes = 2048
	sound, replaced := segments(t, 0), segments(t, 40)
	wal.SegmentSizeBytes = old
	if n := entriesFromAnywhere(t, sound); n < 10 {
		t.Errorf("segments were left out %d times only", n)
	}
	if n := entriesFromAnywhere(t, replaced); n != 0 {
		t.Errorf("segments were left out %d times although appends replaced entries", n)
	}
	files, err := filepath.Glob(filepath.Join(sound, "*.wal"))
	must(t, err)
	b, err := os.ReadFile(files[2])
	must(t, err)
	b[len(b)/2] ^= 1
	must(t, os.WriteFile(files[2], b, 0o600))
	if n := entriesFromAnywhere(t, sound); n < 10 {
		t.Errorf("segments of a damaged log were left out %d times only", n)
	}
}

// segments writes 200 entries, the last of them once more from an index on when that is not 0.
func segments(t *testing.T, again uint64) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "wal")
	w := newWALOf(t, dir, testMember, 1)
	st := raftpb.HardState{Term: 2}
	for i := range uint64(200) {
		w.save(st, raftpb.Entry{Term: 2, Index: i + 1, Data: make([]byte, 100)})
	}
	for i := again; i > 0 && i < 150; i++ {
		w.save(raftpb.HardState{Term: 3}, raftpb.Entry{Term: 3, Index: i, Data: make([]byte, 100)})
	}
	w.close()
	return dir
}

// entriesFromAnywhere returns how often less than the whole log was read.
func entriesFromAnywhere(t *testing.T, dir string) (skipped int) {
	t.Helper()
	l, err := dumplog.Open(dir)
	must(t, err)
	s, err := l.Scan(context.Background())
	must(t, err)
	all, _ := entriesFrom(t, l, s, 0)
	froms := []uint64{1, s.FirstIndex, (s.FirstIndex + s.LastIndex) / 2, s.LastIndex, s.LastIndex + 1}
	for i := range s.Segments {
		froms = append(froms, s.Segments[i].FirstEntry, s.Segments[i].LastEntry, s.Segments[i].LastEntry+1)
	}
	for _, from := range froms {
		var want, got []placed
		for _, e := range all {
			if e.Index >= from {
				want = append(want, e)
			}
		}
		found, below := entriesFrom(t, l, s, from)
		got = append(got, found...)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s from %d: %s", dir, from, diff)
		}
		if below+len(want) < len(all) {
			skipped++
		}
	}
	return skipped
}

// placed is an entry and where it stands.
type placed struct {
	dumplog.Pos
	Index uint64
}

// entriesFrom lists the effective entries from an index on, and counts those below.
func entriesFrom(t *testing.T, l *dumplog.Log, s *dumplog.Summary, from uint64) (out []placed, below int) {
	t.Helper()
	for e, err := range l.EntriesFrom(context.Background(), s, from) {
		var d *dumplog.DamageError
		switch {
		case errors.As(err, &d):
		case err != nil:
			t.Fatal(err)
		case e.Overwritten:
		case e.Index < from:
			below++
		default:
			out = append(out, placed{e.Pos, e.Index})
		}
	}
	return out, below
}

// TestDecodeNew: requests of one decoder that stay are those of Entry.Decode, also after all others were decoded.
func TestDecodeNew(t *testing.T) {
	var d dumplog.Decoder
	var want, got []*dumplog.Request
	for _, name := range evidencetest.Incidents(t) {
		for _, dir := range nodesWith(t, name) {
			l, err := dumplog.Open(filepath.Join(dir, "member", "wal"))
			must(t, err)
			for e, err := range l.Entries(context.Background(), nil) {
				if err != nil {
					continue
				}
				e.Data = bytes.Clone(e.Data)
				w, werr := e.Decode()
				g, gerr := d.DecodeNew(&e)
				if (werr == nil) != (gerr == nil) {
					t.Errorf("%v, want %v", gerr, werr)
				}
				want, got = append(want, w), append(got, g)
			}
		}
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		var m pb.InternalRaftRequest
		fields := reflect.ValueOf(&m).Elem()
		if n := rnd.IntN(fields.NumField()); fields.Type().Field(n).IsExported() {
			fill(rnd, fields.Field(n), 0)
		}
		data, err := m.Marshal()
		must(t, err)
		e := dumplog.Entry{Data: data}
		w, _ := e.Decode()
		g, _ := d.DecodeNew(&e)
		want, got = append(want, w), append(got, g)
	}
	if len(want) < 5000 {
		t.Errorf("%d entries only", len(want))
	}
	for i := range want {
		if !reflect.DeepEqual(want[i], got[i]) {
			t.Fatalf("request %d: %+v, want %+v", i, got[i], want[i])
		}
	}
}
