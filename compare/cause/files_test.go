package cause_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"

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
	"nothing": {class: "healthy", healthy: true, notCauses: []string{"wal-crc-false-alarm", "snap-dir-leftovers",
		"cindex-missing"}, best: []string{"node1", "node2", "node3"}},
	"entries applied again after a restart": {
		synth: func(s *clustertest.Synth) {
			s.Starts[60] = 1
			s.Repeat = map[int]map[int]int{1: {55: 40}}
		},
		class: "data-divergence", cause: "cindex-not-saved-by-defrag", certainty: "strong",
		checks:    []string{"C04", "K02"},
		notCauses: []string{"cindex-frozen-by-stale-term", "unexplained-first-divergence"},
		best:      []string{"node1", "node3"}},
	"entries applied again behind the last write": {
		synth: func(s *clustertest.Synth) {
			s.Starts[79] = 1
			s.Repeat = map[int]map[int]int{1: {80: 70}}
		},
		class: "data-divergence", cause: "cindex-not-saved-by-defrag", certainty: "strong", checks: []string{"C04"},
		best: []string{"node1", "node3"}},
	"repeated without a restart": {
		synth: func(s *clustertest.Synth) { s.Repeat = map[int]map[int]int{1: {55: 40}} },
		class: "data-divergence", cause: "unexplained-first-divergence",
		notCauses: []string{"cindex-not-saved-by-defrag"}, best: []string{"node1", "node3"}},
	"data above the index": {
		spoil: setIndex(smallLast - 10),
		class: "latent-divergence", cause: "cindex-not-saved-by-defrag", certainty: "strong", checks: []string{"C03"},
		best: []string{"node1", "node3"}},
	"the whole log again, the term is too high": {
		synth: func(s *clustertest.Synth) {
			s.Starts[60] = 1
			s.Repeat = map[int]map[int]int{1: {58: 0}}
		},
		spoil: both(setIndex(3), setTerm(9)),
		class: "data-divergence", cause: "cindex-frozen-by-stale-term", certainty: "proof",
		checks:    []string{"C01", "C04"},
		notCauses: []string{"cindex-not-saved-by-defrag", "wal-and-db-from-different-times"},
		best:      []string{"node1", "node3"}},
	"the term is too high, not restarted yet": {
		spoil: both(setIndex(3), setTerm(9)),
		class: "latent-divergence", cause: "cindex-frozen-by-stale-term", certainty: "proof", checks: []string{"C01"},
		notCauses: []string{"wal-and-db-from-different-times"}},
	"a term of another time at the end of the log": {
		spoil: setTerm(9),
		class: "torn-copy", cause: "wal-and-db-from-different-times", certainty: "strong", checks: []string{"D05"},
		notCauses: []string{"cindex-frozen-by-stale-term", "meta-term-does-not-match-log"}},
	"an older binary moved the index alone": {
		spoil: setTerm(1),
		class: "latent-divergence", cause: "meta-term-does-not-match-log", certainty: "strong", checks: []string{"D05"},
		notCauses: []string{"wal-and-db-from-different-times"}},
	"no consistent index": {
		spoil: editDB(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("meta")).Delete([]byte("consistent_index")) }),
		class: "latent-divergence", cause: "cindex-missing", certainty: "proof", checks: []string{"C02"},
		notCauses: []string{"cindex-not-saved-by-defrag"}},
	"HardState beyond the log": {
		spoil: appendWAL(raftpb.HardState{Term: 2, Vote: 0xa1, Commit: smallLast + 5}),
		class: "wal-damage", cause: "hardstate-beyond-log", certainty: "proof", checks: []string{"R03"},
		notCauses: []string{"wal-tail-lost", "wal-segment-missing"}, best: []string{"node1", "node3"}},
	"an index that jumps": {
		spoil: appendWAL(raftpb.HardState{}, raftpb.Entry{Term: 2, Index: smallLast + 4}),
		class: "wal-damage", cause: "wal-entry-index-gap", certainty: "proof", checks: []string{"W03"},
		notCauses: []string{"wal-segment-missing"}, best: []string{"node1", "node3"}},
	"the end of the log is gone": {
		spoil: zeroFrom(-6),
		class: "wal-damage", cause: "wal-tail-lost", certainty: "proof", checks: []string{"D04"},
		notCauses: []string{"single-member-ack-before-sync", "wal-torn-tail"}, best: []string{"node1", "node3"}},
	"the end of the log is gone, one voter": {
		synth: func(s *clustertest.Synth) { s.Members, s.Starts = 1, map[int]int{0: 0} },
		spoil: zeroFrom(-6),
		class: "wal-damage", cause: "single-member-ack-before-sync", certainty: "strong", checks: []string{"D04"},
		notCauses: []string{"wal-tail-lost"}},
	"zeros inside of the log": {
		spoil: zeroRecord(40),
		class: "wal-damage", cause: "wal-hole-zeroed", certainty: "strong", checks: []string{"W01"},
		notCauses: []string{"wal-crc-mismatch", "wal-tail-lost"}, best: []string{"node1", "node3"}},
	"torn with a length beyond the file": {
		spoil: cutWAL(-3, 24),
		class: "wal-damage", cause: "wal-torn-tail", checks: []string{"W02"},
		notCauses: []string{"wal-entry-over-10mb", "wal-tail-lost"}, best: []string{"node1", "node3"}},
	"leftovers": {
		spoil: func(t *testing.T, node string) {
			t.Helper()
			for _, name := range []string{"tmp123", "0000000000000001-0000000000000003.snap.broken",
				"0000000000000009.snap.db", "db.tmp.456"} {
				if err := os.WriteFile(filepath.Join(node, "snap", name), []byte("x"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		},
		class: "healthy", healthy: true, cause: "snap-dir-leftovers", certainty: "proof", checks: nil},
	"a large entry": {
		spoil: appendWAL(raftpb.HardState{}, raftpb.Entry{Term: 2, Index: smallLast + 1, Data: largeEntry()}),
		class: "uncommitted-tail", healthy: true, cause: "wal-entry-over-10mb", certainty: "proof",
		checks: []string{"W04"}},
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
			r := diagnose(t, dirSpecs(dirs))
			c.judge(t, r)
			everyFindingHasEvidence(t, r)
		})
	}
}

func (c *fileCase) judge(t *testing.T, r *compare.Report) {
	t.Helper()
	v := r.Verdict
	if v.Health == check.HealthUnknown || (v.Health == check.Healthy) != c.healthy || string(v.Class) != c.class {
		t.Errorf("class %s, want %s: %s", v.Class, c.class, v.Summary)
		for _, f := range r.Findings {
			t.Logf("%s %s %s: %s: %s", f.ID, f.Severity, f.Class, f.Title, f.Explanation)
		}
	}
	claimed := map[string]string{}
	for _, k := range r.Causes {
		claimed[string(k.ID)] = string(k.Certainty)
	}
	switch {
	case c.cause == "":
	case c.healthy && v.Cause != nil:
		t.Errorf("verdict with cause %s, want it only listed", *v.Cause)
	case !c.healthy && (v.Cause == nil || string(*v.Cause) != c.cause):
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
	r := diagnose(t, dirSpecs(dirs))
	var names []string
	for _, f := range findings(r, "", "S04") {
		for _, e := range f.Evidence {
			names = append(names, e.Member+" "+e.Field+" "+e.File)
		}
	}
	want := []string{"node2 db.tmp db.tmp.456", "node2 leftover tmp123",
		"node2 leftover 0000000000000001-0000000000000003.snap.broken", "node2 leftover 0000000000000009.snap.db"}
	if !slices.Equal(names, want) {
		t.Errorf("told %q, want %q", names, want)
	}
	if !slices.ContainsFunc(r.Causes, func(c compare.Cause) bool { return c.ID == "defrag-leftover-file" }) {
		t.Errorf("causes %v", r.Causes)
	}
}

// TestTornTailThatIsNotRepaired: the shape that 3.5.5 and 3.5.6 refuse is told beside the torn tail, and only that
// shape.
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
			evidencetest.Unchanged(t, dirs...)
			r := diagnose(t, dirSpecs(dirs))
			has := slices.ContainsFunc(r.Causes,
				func(k compare.Cause) bool { return k.ID == "wal-torn-tail-not-repaired" })
			if has != c.want || r.Verdict.Cause == nil || *r.Verdict.Cause != "wal-torn-tail" {
				t.Errorf("claimed %v, want %v: %s %s", has, c.want, r.Verdict.Class, r.Verdict.Summary)
			}
		})
	}
}

// TestPurgedLog: a log without its first segments is sound when a snapshot record is left to start from, and not
// without.
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
			r := diagnose(t, dirSpecs(dirs))
			if string(r.Verdict.Class) != c.class {
				t.Errorf("class %s: %s", r.Verdict.Class, r.Verdict.Summary)
			}
			claimed := slices.ContainsFunc(r.Causes, func(k compare.Cause) bool { return string(k.ID) == c.cause })
			if claimed != (c.cause != "") || c.class == "healthy" && r.Verdict.Cause != nil {
				t.Errorf("causes %+v, want %s", r.Causes, c.cause)
			}
		})
	}
}
