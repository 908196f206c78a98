package compare_test

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// small is a sound set of three members of 3.5, each started once.
func small() clustertest.Synth {
	return clustertest.Synth{Members: 3, Entries: 80, Keys: 20, Value: 40, Starts: map[int]int{0: 0, 1: 1, 2: 2}}
}

// smallLast is the last index of small: conf changes, publish entries and puts.
const smallLast = 3 + 3 + 80

// fileCase is a set of data dirs with something wrong on node2, and what the diagnosis must be.
type fileCase struct {
	synth func(*clustertest.Synth)
	spoil spoil
	// class and cause of the verdict; healthy says that it is none, and that the cause is only listed.
	class, cause, certainty string
	healthy                 bool
	checks                  []string
	// notCauses are look-alikes that must not be claimed.
	notCauses []string
	best      []string
}

var fileCases = map[string]fileCase{
	"nothing": {class: "healthy", healthy: true, notCauses: []string{"wal-crc-false-alarm", "snap-dir-leftovers", "cindex-missing"}, best: []string{"node1", "node2", "node3"}},
	"entries applied again after a restart": {
		synth: func(s *clustertest.Synth) {
			s.Starts[60] = 1
			s.Repeat = map[int]map[int]int{1: {55: 40}}
		},
		class: "data-divergence", cause: "cindex-not-saved-by-defrag", certainty: "strong", checks: []string{"C04", "K02"},
		notCauses: []string{"cindex-frozen-by-stale-term", "unexplained-first-divergence"}, best: []string{"node1", "node3"}},
	"entries applied again behind the last write": {
		synth: func(s *clustertest.Synth) {
			s.Starts[79] = 1
			s.Repeat = map[int]map[int]int{1: {80: 70}}
		},
		class: "data-divergence", cause: "cindex-not-saved-by-defrag", certainty: "strong", checks: []string{"C04"}, best: []string{"node1", "node3"}},
	"repeated without a restart": {
		synth: func(s *clustertest.Synth) { s.Repeat = map[int]map[int]int{1: {55: 40}} },
		class: "data-divergence", cause: "unexplained-first-divergence", notCauses: []string{"cindex-not-saved-by-defrag"}, best: []string{"node1", "node3"}},
	"data above the index": {
		spoil: setIndex(smallLast - 10),
		class: "latent-divergence", cause: "cindex-not-saved-by-defrag", certainty: "strong", checks: []string{"C03"}, best: []string{"node1", "node3"}},
	"the whole log again, the term is too high": {
		synth: func(s *clustertest.Synth) {
			s.Starts[60] = 1
			s.Repeat = map[int]map[int]int{1: {58: 0}}
		},
		spoil: both(setIndex(3), setTerm(9)),
		class: "data-divergence", cause: "cindex-frozen-by-stale-term", certainty: "proof", checks: []string{"C01", "C04"},
		notCauses: []string{"cindex-not-saved-by-defrag", "wal-and-db-from-different-times"}, best: []string{"node1", "node3"}},
	"the term is too high, not restarted yet": {
		spoil: both(setIndex(3), setTerm(9)),
		class: "latent-divergence", cause: "cindex-frozen-by-stale-term", certainty: "proof", checks: []string{"C01"}, notCauses: []string{"wal-and-db-from-different-times"}},
	"a term of another time at the end of the log": {
		spoil: setTerm(9),
		class: "torn-copy", cause: "wal-and-db-from-different-times", certainty: "strong", checks: []string{"D05"},
		notCauses: []string{"cindex-frozen-by-stale-term", "meta-term-does-not-match-log"}},
	"an older binary moved the index alone": {
		spoil: setTerm(1),
		class: "latent-divergence", cause: "meta-term-does-not-match-log", certainty: "strong", checks: []string{"D05"}, notCauses: []string{"wal-and-db-from-different-times"}},
	"no consistent index": {
		spoil: editDB(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("meta")).Delete([]byte("consistent_index")) }),
		class: "latent-divergence", cause: "cindex-missing", certainty: "proof", checks: []string{"C02"}, notCauses: []string{"cindex-not-saved-by-defrag"}},
	"HardState beyond the log": {
		spoil: appendWAL(raftpb.HardState{Term: 2, Vote: 0xa1, Commit: smallLast + 5}),
		class: "wal-damage", cause: "hardstate-beyond-log", certainty: "proof", checks: []string{"R03"}, notCauses: []string{"wal-tail-lost", "wal-segment-missing"}, best: []string{"node1", "node3"}},
	"an index that jumps": {
		spoil: appendWAL(raftpb.HardState{}, raftpb.Entry{Term: 2, Index: smallLast + 4}),
		class: "wal-damage", cause: "wal-entry-index-gap", certainty: "proof", checks: []string{"W03"}, notCauses: []string{"wal-segment-missing"}, best: []string{"node1", "node3"}},
	"the end of the log is gone": {
		spoil: zeroFrom(-6),
		class: "wal-damage", cause: "wal-tail-lost", certainty: "proof", checks: []string{"D04"}, notCauses: []string{"single-member-ack-before-sync", "wal-torn-tail"}, best: []string{"node1", "node3"}},
	"the end of the log is gone, one voter": {
		synth: func(s *clustertest.Synth) { s.Members, s.Starts = 1, map[int]int{0: 0} },
		spoil: zeroFrom(-6),
		class: "wal-damage", cause: "single-member-ack-before-sync", certainty: "strong", checks: []string{"D04"}, notCauses: []string{"wal-tail-lost"}},
	"zeros inside of the log": {
		spoil: zeroRecord(40),
		class: "wal-damage", cause: "wal-hole-zeroed", certainty: "strong", checks: []string{"W01"}, notCauses: []string{"wal-crc-mismatch", "wal-tail-lost"}, best: []string{"node1", "node3"}},
	"torn with a length beyond the file": {
		spoil: cutWAL(-3, 24),
		class: "wal-damage", cause: "wal-torn-tail", checks: []string{"W02"}, notCauses: []string{"wal-entry-over-10mb", "wal-tail-lost"}, best: []string{"node1", "node3"}},
	"leftovers": {
		spoil: func(t *testing.T, node string) {
			t.Helper()
			for _, name := range []string{"tmp123", "0000000000000001-0000000000000003.snap.broken", "0000000000000009.snap.db", "db.tmp.456"} {
				if err := os.WriteFile(filepath.Join(node, "snap", name), []byte("x"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		},
		class: "healthy", healthy: true, cause: "snap-dir-leftovers", certainty: "proof", checks: nil},
	"a large entry": {
		spoil: appendWAL(raftpb.HardState{}, raftpb.Entry{Term: 2, Index: smallLast + 1, Data: largeEntry()}),
		class: "uncommitted-tail", healthy: true, cause: "wal-entry-over-10mb", certainty: "proof", checks: []string{"W04"}},
}

func TestCausesInFiles(t *testing.T) {
	for name, c := range fileCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := small()
			if c.synth != nil {
				c.synth(&s)
			}
			dirs := s.Write(t, t.TempDir())
			if c.spoil != nil {
				c.spoil(t, filepath.Join(dirs[len(dirs)/2], "member"))
			}
			evidencetest.Unchanged(t, dirs...)
			r := diagnose(t, synthSpecs(dirs))
			c.judge(t, r)
			everyFindingHasEvidence(t, r)
		})
	}
}

func (c *fileCase) judge(t *testing.T, r *compare.Report) {
	t.Helper()
	v := r.Verdict
	if v.Healthy == nil || *v.Healthy != c.healthy || v.Class != c.class {
		t.Errorf("class %s, want %s: %s", v.Class, c.class, v.Summary)
		for _, f := range r.Findings {
			t.Logf("%s %s %s: %s: %s", f.ID, f.Severity, f.Class, f.Title, f.Explanation)
		}
	}
	claimed := map[string]string{}
	for _, k := range r.Causes {
		claimed[k.ID] = k.Certainty
	}
	switch {
	case c.cause == "":
	case c.healthy && v.Cause != nil:
		t.Errorf("verdict with cause %s, want it only listed", *v.Cause)
	case !c.healthy && (v.Cause == nil || *v.Cause != c.cause):
		t.Errorf("cause %v of %v, want %s", v.Cause, claimed, c.cause)
	}
	if c.cause != "" && (claimed[c.cause] == "" || c.certainty != "" && claimed[c.cause] != c.certainty) {
		t.Errorf("causes %v, want %s as %s", claimed, c.cause, c.certainty)
	}
	for _, not := range c.notCauses {
		if claimed[not] != "" {
			t.Errorf("%s is claimed", not)
		}
	}
	for _, id := range c.checks {
		if got := outcome(r, id); got != check.Violated {
			t.Errorf("%s %s, want violated", id, got)
		}
	}
	if c.best != nil && !slices.Equal(slices.Sorted(slices.Values(r.Best.Members)), c.best) {
		t.Errorf("best %v, want %v: %s", r.Best.Members, c.best, r.Best.Why)
	}
}

// TestLeftoversAreTold: each kind of left-over file is named, and a defragmentation's apart.
func TestLeftoversAreTold(t *testing.T) {
	dirs := small().Write(t, t.TempDir())
	fileCases["leftovers"].spoil(t, filepath.Join(dirs[1], "member"))
	// This one waits to be installed: the log names its snapshot.
	appendSnapshot(smallLast+3)(t, filepath.Join(dirs[0], "member"))
	pending := fmt.Sprintf("%016x.snap.db", smallLast+3)
	if err := os.WriteFile(filepath.Join(dirs[0], "member", "snap", pending), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	evidencetest.Unchanged(t, dirs...)
	r := diagnose(t, synthSpecs(dirs))
	var names []string
	for _, f := range findings(r, "", "S04") {
		for _, e := range f.Evidence {
			names = append(names, e.Member+" "+e.Field+" "+e.File)
		}
	}
	want := []string{"node2 db.tmp db.tmp.456", "node2 leftover tmp123", "node2 leftover 0000000000000001-0000000000000003.snap.broken", "node2 leftover 0000000000000009.snap.db"}
	if !slices.Equal(names, want) {
		t.Errorf("told %q, want %q", names, want)
	}
	if !slices.ContainsFunc(r.Causes, func(c compare.Cause) bool { return c.ID == "defrag-leftover-file" }) {
		t.Errorf("causes %v", r.Causes)
	}
}

// TestTornTailThatIsNotRepaired: the shape that 3.5.5 and 3.5.6 refuse is told beside the torn tail, and only that shape.
func TestTornTailThatIsNotRepaired(t *testing.T) {
	for name, c := range map[string]struct {
		spoil spoil
		want  bool
	}{"beyond the file": {cutWAL(-3, 24), true}, "zeros in the file": {zeroInside(-2, 512), false}} {
		t.Run(name, func(t *testing.T) {
			s := small()
			s.Value = 2000
			dirs := s.Write(t, t.TempDir())
			c.spoil(t, filepath.Join(dirs[1], "member"))
			r := diagnose(t, synthSpecs(dirs))
			has := slices.ContainsFunc(r.Causes, func(k compare.Cause) bool { return k.ID == "wal-torn-tail-not-repaired" })
			if has != c.want || r.Verdict.Cause == nil || *r.Verdict.Cause != "wal-torn-tail" {
				t.Errorf("claimed %v, want %v: %s %s", has, c.want, r.Verdict.Class, r.Verdict.Summary)
			}
		})
	}
}

// TestPurgedLog: a log without its first segments is sound when a snapshot record is left to start from, and not without.
func TestPurgedLog(t *testing.T) {
	for name, c := range map[string]struct {
		snapshot bool
		version  string
		class    string
		cause    string
	}{
		"with a snapshot":     {true, "3.5.0", "healthy", ""},
		"with a snapshot 3.4": {true, "3.4.0", "healthy", "wal-crc-false-alarm"},
		"without a snapshot":  {false, "3.4.0", "wal-damage", "wal-purged-while-needed"},
	} {
		t.Run(name, func(t *testing.T) {
			old := wal.SegmentSizeBytes
			wal.SegmentSizeBytes = 64 << 10
			s := small()
			s.Entries, s.Value = 1500, 100
			dirs := s.Write(t, t.TempDir())
			if c.snapshot {
				appendSnapshot(1500)(t, filepath.Join(dirs[1], "member"))
			}
			wal.SegmentSizeBytes = old
			segments, err := filepath.Glob(filepath.Join(dirs[1], "member", "wal", "*.wal"))
			if err != nil || len(segments) < 4 {
				t.Fatal(segments, err)
			}
			for _, f := range segments[:2] {
				if err := os.Remove(f); err != nil {
					t.Fatal(err)
				}
			}
			for _, d := range dirs {
				asVersion(c.version)(t, filepath.Join(d, "member"))
			}
			evidencetest.Unchanged(t, dirs...)
			r := diagnose(t, synthSpecs(dirs))
			if r.Verdict.Class != c.class {
				t.Errorf("class %s: %s", r.Verdict.Class, r.Verdict.Summary)
			}
			claimed := slices.ContainsFunc(r.Causes, func(k compare.Cause) bool { return k.ID == c.cause })
			if claimed != (c.cause != "") || c.class == "healthy" && r.Verdict.Cause != nil {
				t.Errorf("causes %+v, want %s", r.Causes, c.cause)
			}
		})
	}
}

func both(spoils ...spoil) spoil {
	return func(t *testing.T, node string) {
		t.Helper()
		for _, s := range spoils {
			s(t, node)
		}
	}
}

func setIndex(index uint64) spoil { return setMeta("consistent_index", index) }

func setTerm(term uint64) spoil { return setMeta("term", term) }

func setMeta(key string, value uint64) spoil {
	return editDB(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("meta")).Put([]byte(key), binary.BigEndian.AppendUint64(nil, value))
	})
}

// asVersion makes a database look as written by that line: before 3.5 no term is stored.
func asVersion(version string) spoil {
	return editDB(func(tx *bbolt.Tx) error {
		if version < "3.5" {
			if err := tx.Bucket([]byte("meta")).Delete([]byte("term")); err != nil {
				return err
			}
		}
		return tx.Bucket([]byte("cluster")).Put([]byte("clusterVersion"), []byte(version))
	})
}

// withWAL opens a log with etcd's own package behind its last record.
func withWAL(write func(*wal.WAL) error) spoil {
	return func(t *testing.T, node string) {
		t.Helper()
		w, err := wal.Open(zap.NewNop(), filepath.Join(node, "wal"), walpb.Snapshot{})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := w.ReadAll(); err != nil {
			t.Fatal(err)
		}
		w.SetUnsafeNoFsync()
		if err := write(w); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func appendWAL(h raftpb.HardState, entries ...raftpb.Entry) spoil {
	return withWAL(func(w *wal.WAL) error { return w.Save(h, entries) })
}

// appendSnapshot writes a snapshot record as 3.4 and older do, without the configuration, which etcd's package refuses by now.
func appendSnapshot(index uint64) spoil {
	return func(t *testing.T, node string) {
		t.Helper()
		file, at := lastSegment(t, node)
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var last walpb.Record
		from := at[len(at)-2] + 8
		if err := last.Unmarshal(b[from : from+int64(binary.LittleEndian.Uint64(b[from-8:])&(1<<56-1))]); err != nil {
			t.Fatal(err)
		}
		clustertest.SaveSnap(t, filepath.Join(node, "snap"), 2, index, nil, 0xa1, 0xa2, 0xa3)
		data, err := (&walpb.Snapshot{Index: index, Term: 2}).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		rec, err := (&walpb.Record{Type: 5, Crc: crc32.Update(last.Crc, crc32.MakeTable(crc32.Castagnoli), data), Data: data}).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		word := uint64(len(rec))
		if pad := -len(rec) & 7; pad > 0 {
			word |= uint64(0x80|pad) << 56
			rec = append(rec, make([]byte, pad)...)
		}
		f, err := os.OpenFile(file, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt(append(binary.LittleEndian.AppendUint64(nil, word), rec...), at[len(at)-1]); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func largeEntry() []byte {
	return append([]byte(nil), make([]byte, 11<<20)...)
}

// lastSegment returns the last segment and the offsets of its records and of its end.
func lastSegment(t *testing.T, node string) (string, []int64) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(node, "wal", "*.wal"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	b, err := os.ReadFile(files[len(files)-1])
	if err != nil {
		t.Fatal(err)
	}
	at := []int64{0}
	for off := int64(0); off+8 <= int64(len(b)); {
		word := binary.LittleEndian.Uint64(b[off:])
		if word == 0 {
			break
		}
		n := int64(word & (1<<56 - 1))
		if word>>63 == 1 {
			n += int64(word >> 56 & 7)
		}
		off += 8 + n
		at = append(at, off)
	}
	return files[len(files)-1], at
}

// nth is the record of that number, counted from the end when negative: -1 is the end itself, -2 the last record.
func nth(at []int64, n int) int {
	if n < 0 {
		return len(at) + n
	}
	return n
}

func writeZeros(t *testing.T, file string, from, to int64) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(make([]byte, to-from), from); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// zeroFrom removes the records from n on, as if they had never been written.
func zeroFrom(n int) spoil {
	return func(t *testing.T, node string) {
		t.Helper()
		file, at := lastSegment(t, node)
		writeZeros(t, file, at[nth(at, n)], at[len(at)-1])
	}
}

// zeroRecord blanks one record.
func zeroRecord(n int) spoil {
	return func(t *testing.T, node string) {
		t.Helper()
		file, at := lastSegment(t, node)
		writeZeros(t, file, at[nth(at, n)], at[nth(at, n)+1])
	}
}

// zeroInside blanks the record from the first border of a sector that is a multiple of step behind its start.
func zeroInside(n int, step int64) spoil {
	return func(t *testing.T, node string) {
		t.Helper()
		file, at := lastSegment(t, node)
		k := nth(at, n)
		for at[k+1]-at[k] < 2*step {
			k--
		}
		writeZeros(t, file, (at[k]/step+1)*step, at[len(at)-1])
	}
}

// cutWAL ends the file some bytes into a record.
func cutWAL(n int, keep int64) spoil {
	return func(t *testing.T, node string) {
		t.Helper()
		file, at := lastSegment(t, node)
		if err := os.Truncate(file, at[nth(at, n)]+keep); err != nil {
			t.Fatal(err)
		}
	}
}
