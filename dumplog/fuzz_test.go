package dumplog_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// FuzzRecords reads any bytes as a segment: never a panic, offsets rise, what is yielded lies inside the file.
func FuzzRecords(f *testing.F) {
	for _, line := range sweepLines {
		f.Add(headOf(f, line, 1500))
	}
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{0}, 4096))
	dir := f.TempDir() // one per worker: a folder per run would be most of the time
	f.Fuzz(func(t *testing.T, b []byte) {
		must(t, os.WriteFile(filepath.Join(dir, "0000000000000000-0000000000000000.wal"), b, 0o600))
		l, err := dumplog.Open(dir)
		must(t, err)
		last := int64(-1)
		for r, err := range l.Records(context.Background()) {
			if d, ok := errors.AsType[*dumplog.DamageError](err); ok {
				if d.Offset < 0 || d.Offset+d.Len > int64(len(b))+8 && d.Kind != dumplog.DamageTornTail {
					t.Fatalf("%v, %d bytes, lies outside %d bytes", d, d.Len, len(b))
				}
				continue
			}
			must(t, err)
			if r.Offset <= last || r.Offset+r.Len > int64(len(b)) {
				t.Fatalf("record at %d of %d bytes behind %d", r.Offset, r.Len, last)
			}
			last = r.Offset
		}
		for e, err := range l.Entries(context.Background(), nil) {
			if err == nil && e.Index == 0 {
				t.Fatal("entry without an index")
			}
		}
	})
}

func headOf(t testing.TB, incident string, n int64) []byte {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(nodesWith(t, incident)[0], "member", "wal", "*.wal"))
	must(t, err)
	file, err := os.Open(names[0])
	must(t, err)
	defer file.Close()
	b := make([]byte, n)
	_, err = file.ReadAt(b, 0)
	must(t, err)
	return b
}

// FuzzDecode decodes any bytes as an entry. What etcd's own types accept must decode to the same; nothing panics.
func FuzzDecode(f *testing.F) {
	for _, line := range sweepLines {
		l, err := dumplog.Open(filepath.Join(nodesWith(f, line)[0], "member", "wal"))
		must(f, err)
		seen := map[dumplog.Kind]int{}
		for e, err := range l.Entries(context.Background(), nil) {
			must(f, err)
			r, err := e.Decode()
			must(f, err)
			if seen[r.Kind]++; seen[r.Kind] <= 2 && len(e.Data) < 2000 {
				f.Add(int32(e.Type), e.Data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, typ int32, b []byte) {
		e := &dumplog.Entry{Term: 1, Index: 1, Type: dumplog.EntryType(typ), Data: b}
		r, err := e.Decode()
		if r == nil || err != nil && r.Kind != dumplog.KindUnknown {
			t.Fatalf("%v with error %v", r, err)
		}
		_ = r.Describe(dumplog.DescribeOptions{Values: true, Secrets: true})
		r.Touches([]byte("a"), []byte("b"))
		r.OfLease(1)
		var q pb.InternalRaftRequest
		if typ != 0 || len(b) == 0 || r.Kind == dumplog.KindV2 || err != nil || len(r.Unknown) > 0 ||
			q.Unmarshal(b) != nil {
			return
		}
		for _, k := range []dumplog.Kind{dumplog.KindPut, dumplog.KindDeleteRange, dumplog.KindLeaseGrant,
			dumplog.KindAuthUserAdd} {
			if r.Kind != k || q.ID != 0 || q.V2 != nil || q.Header != nil {
				continue
			}
			q.Header = nil
			want, err := q.Marshal()
			must(t, err)
			got, err := toAPI(r).Marshal()
			must(t, err)
			if !bytes.Equal(got, want) {
				t.Fatalf("%s: %x, etcd's types: %x", k, got, want)
			}
		}
	})
}

// FuzzSnap reads any bytes as a .snap file: never a panic, and never a good file whose CRC does not hold.
func FuzzSnap(f *testing.F) {
	for _, line := range sweepLines {
		names, err := filepath.Glob(filepath.Join(nodesWith(f, line)[0], "member", "snap", "*.snap"))
		must(f, err)
		b, err := os.ReadFile(names[0])
		must(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s := dumplog.DecodeSnapFile("0000000000000002-0000000000000033.snap", b)
		if s.Damage == nil && (s.StoredCRC != s.ComputedCRC || s.V2 == nil || s.Index != 0x33) {
			t.Fatalf("taken as good: %+v", s)
		}
	})
}

// TestSnapDamage damages a real .snap file in every way etcd knows.
func TestSnapDamage(t *testing.T) {
	node := nodesWith(t, "m-healthy-3.5")[0]
	evidencetest.Unchanged(t, node)
	names, err := filepath.Glob(filepath.Join(node, "member", "snap", "*.snap"))
	must(t, err)
	whole, err := os.ReadFile(names[0])
	must(t, err)
	dir := t.TempDir()
	read := func(name string, b []byte) *dumplog.SnapFile {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, b, 0o600))
		s, err := dumplog.ReadSnapFile(path)
		must(t, err)
		return s
	}
	name := filepath.Base(names[0])
	for n := 0; n < len(whole); n += 1 + n/16 {
		if s := read(name, whole[:n]); s.Damage == nil {
			t.Fatalf("cut at %d: not noticed", n)
		}
	}
	for i := 0; i < len(whole); i += 1 + i/32 {
		b := bytes.Clone(whole)
		b[i] ^= 4
		if s := read(name, b); s.Damage == nil {
			t.Fatalf("byte %d flipped: not noticed", i)
		}
	}
	if s := read("0000000000000002-0000000000000099.snap", whole); s.Damage == nil ||
		s.Damage.Kind != dumplog.DamageMixed {
		t.Errorf("wrong name: %v", s.Damage)
	}
	if s := read(name+".broken", whole); !s.Broken || s.Damage != nil {
		t.Errorf("broken file that is whole: %+v", s)
	}
	for _, extra := range []string{"db", "0000000000000040.snap.db", "tmp123", "db.tmp.99"} {
		must(t, os.WriteFile(filepath.Join(dir, extra), []byte("x"), 0o600))
	}
	d, err := dumplog.ReadSnapDir(dir)
	must(t, err)
	if len(d.SnapDBs) != 1 || d.SnapDBs[0].Index != 0x40 || len(d.LeftOvers) != 2 || len(d.Files) != 3 {
		t.Errorf("%+v", d)
	}
}

// FuzzPayload decodes any bytes as the payload of each record of a log that is no entry. What decodes without an error
// decodes to the same again, and nothing panics.
func FuzzPayload(f *testing.F) {
	for _, b := range [][]byte{nil, {8, 1, 16, 2}, {8, 1, 16, 2, 24, 3}, {8, 4, 16, 1, 26, 4, 10, 2, 1, 2},
		{8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, {26, 2, 10, 0xff}} {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := dumplog.DecodeMetadata(b)
		if again, e := dumplog.DecodeMetadata(b); again != m || (e == nil) != (err == nil) {
			t.Errorf("metadata %v, %v, then %v, %v", m, err, again, e)
		}
		h, err := dumplog.DecodeHardState(b)
		if want := (raftpb.HardState{}); err == nil && want.Unmarshal(b) == nil &&
			(want.Term != h.Term || want.Commit != h.Commit) {
			t.Errorf("hard state %+v, etcd's types: %+v", h, want)
		}
		s, err := dumplog.DecodeSnapshotRecord(b)
		if err == nil && s.ConfState != nil && len(s.ConfState.Voters)+len(s.ConfState.Learners) > len(b) {
			t.Errorf("%d members in %d bytes", len(s.ConfState.Voters), len(b))
		}
	})
}
