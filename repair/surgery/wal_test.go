package surgery_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/surgery"
)

func TestMain(m *testing.M) { evidencetest.Main(m) }

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// etcdLog reads a log with etcd's own package, on a copy, since opening it for writing cuts its tail.
func etcdLog(t *testing.T, dir string) (ents []raftpb.Entry, state raftpb.HardState, err error) {
	t.Helper()
	w, err := wal.Open(zap.NewNop(), filepath.Join(evidencetest.Copy(t, dir), "member", "wal"), walpb.Snapshot{})
	if err != nil {
		return nil, state, err
	}
	_, state, ents, err = w.ReadAll()
	return ents, state, errors.Join(err, w.Close())
}

// logs are three members of one cluster with several segments each, and the first one's log as etcd reads it.
type logs struct {
	dirs  []string
	ents  []raftpb.Entry
	state raftpb.HardState
}

func writeLogs(t *testing.T) logs {
	t.Helper()
	was := wal.SegmentSizeBytes
	wal.SegmentSizeBytes = 16 << 10
	defer func() { wal.SegmentSizeBytes = was }()
	l := logs{dirs: clustertest.Synth{Members: 3, Entries: 630, Keys: 50, Value: 64}.Write(t, t.TempDir())}
	var err error
	l.ents, l.state, err = etcdLog(t, l.dirs[0])
	ok(t, err)
	evidencetest.Unchanged(t, l.dirs...)
	return l
}

func segmentsOf(t *testing.T, dir string) []string {
	t.Helper()
	s, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
	if err != nil || len(s) < 4 {
		t.Fatalf("segments %v, %v", s, err)
	}
	return s
}

func spec(dir string) evidence.Spec { return evidence.Spec{Name: filepath.Base(dir), Where: dir} }

func repair(t *testing.T, c surgery.Change, dir string, with []string, accept ...string) (string, *surgery.Report,
	error) {
	t.Helper()
	o := surgery.Options{Source: spec(dir), Out: filepath.Join(t.TempDir(), "new"), Accept: accept}
	for _, w := range with {
		o.With = append(o.With, spec(w))
	}
	r, err := surgery.Run(context.Background(), o, c)
	if err != nil {
		if left, _ := filepath.Glob(o.Out + "*"); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
	return o.Out, r, err
}

// damage is done to the bytes of one segment.
type damage func(b []byte) []byte

func at(off int, v ...byte) damage {
	return func(b []byte) []byte { copy(b[off:], v); return b }
}

func zeros(off, n int) damage { return at(off, make([]byte, n)...) }

// TestWALIsWholeAgain damages the first member's log in every way the reader knows and lets the others complete it:
// etcd then reads exactly what was there before.
func TestWALIsWholeAgain(t *testing.T) {
	l := writeLogs(t)
	for _, c := range []struct {
		name    string
		segment int
		do      damage
		remove  bool
		alone   string // the refusal without other members; "" when they are not needed
	}{
		{name: "flipped payload", segment: 1, do: func(b []byte) []byte { b[5000] ^= 0x40; return b },
			alone: "accept-lost-commits"},
		{name: "hole of zeros", segment: 2, do: zeros(4096, 512), alone: "accept-lost-commits"},
		{name: "foreign bytes", segment: 0, do: at(3000, bytes.Repeat([]byte("garbage!"), 40)...),
			alone: "accept-lost-commits"},
		{name: "missing segment", segment: 2, remove: true, alone: "accept-lost-commits"},
		{name: "cut segment", segment: 1, do: func(b []byte) []byte { return b[:6001] }, alone: "accept-lost-commits"},
		{name: "torn tail", segment: -1, do: func(b []byte) []byte { return b[:len(bytes.TrimRight(b, "\x00"))-700] },
			alone: "accept-lost-commits"},
		{name: "crc record", segment: 2, do: func(b []byte) []byte { b[11] ^= 1; return b }},
	} {
		dir := evidencetest.Copy(t, l.dirs[0])
		segs := segmentsOf(t, dir)
		file := segs[(c.segment+len(segs))%len(segs)]
		if c.remove {
			ok(t, os.Remove(file))
		} else {
			b, err := os.ReadFile(file)
			ok(t, err)
			ok(t, os.WriteFile(file, c.do(b), 0o600))
		}
		evidencetest.Unchanged(t, dir)
		if _, _, err := etcdLog(t, dir); err == nil && c.name != "torn tail" && c.name != "hole of zeros" {
			t.Errorf("%s: etcd reads the damaged log", c.name)
		}
		_, _, err := repair(t, surgery.WAL{}, dir, nil)
		var refused *refusal.Error
		if c.alone == "" && err != nil || c.alone != "" && (!errors.As(err, &refused) || refused.Flag != c.alone) {
			t.Errorf("%s, alone: %v", c.name, err)
		}
		out, r, err := repair(t, surgery.WAL{}, dir, l.dirs[1:])
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		ents, state, err := etcdLog(t, out)
		if d := cmp.Diff(l.ents, ents); err != nil || d != "" || state.Commit != l.state.Commit {
			t.Errorf("%s: %v, commit %d: %.300s", c.name, err, state.Commit, d)
		}
		if r.After.Class != "healthy" || len(r.GivesUp) != 0 || !r.InputsUnchanged {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
}

// TestWALSweep flips single bytes anywhere: the log is whole again, or was not damaged; it never silently becomes
// another one.
func TestWALSweep(t *testing.T) {
	l := writeLogs(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	repaired := 0
	for range 16 {
		dir := evidencetest.Copy(t, l.dirs[0])
		segs := segmentsOf(t, dir)
		file := segs[rnd.IntN(len(segs))]
		b, err := os.ReadFile(file)
		ok(t, err)
		pos := rnd.IntN(len(bytes.TrimRight(b, "\x00")))
		b[pos] ^= byte(1 << rnd.IntN(8))
		ok(t, os.WriteFile(file, b, 0o600))
		out, _, err := repair(t, surgery.WAL{}, dir, l.dirs[1:])
		if err != nil {
			if !strings.Contains(err.Error(), "nothing is wrong") {
				t.Errorf("%s at %d: %v", filepath.Base(file), pos, err)
			}
			continue
		}
		repaired++
		ents, _, err := etcdLog(t, out)
		if d := cmp.Diff(l.ents, ents); err != nil || d != "" {
			t.Errorf("%s at %d: %v %.300s", filepath.Base(file), pos, err, d)
		}
	}
	if repaired < 12 {
		t.Errorf("only %d of 16 flips were damage", repaired)
	}
}

// TestWALTail: a record torn while it was written was never acknowledged, and goes without a word; what the member
// confirmed does not.
func TestWALTail(t *testing.T) {
	dir := clustertest.Synth{Members: 1, Entries: 100, Keys: 5, Value: 32}.Write(t, t.TempDir())[0]
	log := filepath.Join(dir, "member", "wal")
	ents, state, err := etcdLog(t, dir)
	ok(t, err)
	w, err := wal.Open(zap.NewNop(), log, walpb.Snapshot{})
	ok(t, err)
	_, _, _, err = w.ReadAll()
	ok(t, err)
	ok(t, w.Save(raftpb.HardState{}, []raftpb.Entry{{Term: 2, Index: 102, Data: bytes.Repeat([]byte("x"), 3000)}}))
	ok(t, w.Close())
	file := filepath.Join(log, "0000000000000000-0000000000000000.wal")
	b, err := os.ReadFile(file)
	ok(t, err)
	ok(t, os.WriteFile(file, b[:len(bytes.TrimRight(b, "\x00"))-2000], 0o600))
	out, r, err := repair(t, surgery.WAL{}, dir, nil)
	ok(t, err)
	got, after, err := etcdLog(t, out)
	ok(t, err)
	if len(got) != len(ents) || after.Commit != state.Commit ||
		!slices.Contains(r.GivesUp, "entry 102 of this member's log") {
		t.Errorf("%d entries, want %d; %v", len(got), len(ents), r.GivesUp)
	}
	if _, _, err := repair(t, surgery.WAL{}, out, nil); err == nil ||
		!strings.Contains(err.Error(), "nothing is wrong") {
		t.Errorf("a sound log: %v", err)
	}
}

// TestWALUnproven keeps an entry whose checksum fails only when told to, and says so.
func TestWALUnproven(t *testing.T) {
	l := writeLogs(t)
	dir := evidencetest.Copy(t, l.dirs[0])
	file := segmentsOf(t, dir)[1]
	b, err := os.ReadFile(file)
	ok(t, err)
	pos := bytes.Index(b, []byte("/registry/pods/ns-"))
	b[pos+len("/registry/pods/ns-")] ^= 1
	ok(t, os.WriteFile(file, b, 0o600))
	_, _, err = repair(t, surgery.WAL{}, dir, nil)
	var refused *refusal.Error
	if !errors.As(err, &refused) || !strings.Contains(refused.Advice(), surgery.AcceptUnproven) {
		t.Fatalf("alone: %v", err)
	}
	out, r, err := repair(t, surgery.WAL{}, dir, nil, surgery.AcceptUnproven, surgery.AcceptDivergence)
	ok(t, err)
	ents, _, err := etcdLog(t, out)
	ok(t, err)
	differ := 0
	for i := range ents {
		if !bytes.Equal(ents[i].Data, l.ents[i].Data) {
			differ++
		}
	}
	if differ != 1 || len(ents) != len(l.ents) || !slices.Contains(r.Accepted, surgery.AcceptUnproven) ||
		!strings.Contains(fmt.Sprint(r.Notes), "checksum fails") {
		t.Errorf("%d entries differ, %+v", differ, r)
	}
}

// TestNoLogToRepair: a sound log is left as it is, and nothing is made of a log that is not there or does not show
// whose it is.
func TestNoLogToRepair(t *testing.T) {
	dir := filepath.Join(evidencetest.Incident(t, "m-healthy-3.6"), "node1")
	refuses(t, surgery.WAL{}, dir, nil, "", "nothing is wrong with the log of node1")
	refuses(t, surgery.WAL{}, dbOf(dir), nil, "", "has no log")
	nameless := evidencetest.Copy(t, dir)
	segments, err := filepath.Glob(filepath.Join(nameless, "member", "wal", "*.wal"))
	ok(t, err)
	for _, name := range segments {
		rewrite(t, name, zeros(0, 200))
	}
	refuses(t, surgery.WAL{}, nameless, nil, "", "shows whose log it is")
}
