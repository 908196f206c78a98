package cause_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/etcd/server/v3/storage/wal"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// TestSegmentTakenOut needs a log of several segments, which no incident has. It changes etcd's segment size for its
// own log.
func TestSegmentTakenOut(t *testing.T) {
	old := wal.SegmentSizeBytes
	wal.SegmentSizeBytes = 64 << 10
	dirs := clustertest.Synth{Members: 3, Entries: 2000, Keys: 100, Value: 100}.Write(t, t.TempDir())
	wal.SegmentSizeBytes = old
	specs := dirSpecs(dirs)
	if r := diagnose(t, specs); r.Verdict.Class != "healthy" {
		t.Fatalf("sound set: %s %s", r.Verdict.Class, r.Verdict.Summary)
	}
	segments, err := filepath.Glob(filepath.Join(dirs[1], "member", "wal", "*.wal"))
	if err != nil || len(segments) < 4 {
		t.Fatal(segments, err)
	}
	if err := os.Remove(segments[2]); err != nil {
		t.Fatal(err)
	}
	evidencetest.Unchanged(t, dirs...)
	r := diagnose(t, specs)
	if r.Verdict.Class != "wal-damage" || *r.Verdict.Cause != "wal-segment-missing" ||
		!slices.Equal(r.Best.Members, []string{"node1", "node3"}) {
		t.Errorf("%s %v best %v", r.Verdict.Class, r.Verdict.Cause, r.Best.Members)
	}
	if outcome(r, "K03") == check.Violated {
		t.Error("the hole in one log is taken for a wrong database")
	}
}

// TestEntrySkippedAfterACrash builds what 3.5.0 to 3.5.2 left behind: one entry without effect on one member, a start
// of that member behind it, everything else applied one revision lower. Two skipped entries in one life are something
// else.
func TestEntrySkippedAfterACrash(t *testing.T) {
	for name, c := range map[string]struct {
		skip map[int]bool
		want string
	}{
		"one":             {map[int]bool{40: true}, "cindex-ahead-of-apply"},
		"one per life":    {map[int]bool{40: true, 55: true}, "cindex-ahead-of-apply"},
		"two in one life": {map[int]bool{40: true, 45: true}, "unexplained-first-divergence"},
		"no crash behind": {map[int]bool{70: true}, "unexplained-first-divergence"},
	} {
		t.Run(name, func(t *testing.T) {
			s := clustertest.Synth{Members: 3, Entries: 80, Keys: 20, Value: 20,
				Starts: map[int]int{0: 0, 1: 1, 2: 2, 50: 1, 60: 1}, Skip: map[int]map[int]bool{1: c.skip}}
			dirs := s.Write(t, t.TempDir())
			evidencetest.Unchanged(t, dirs...)
			r := diagnose(t, dirSpecs(dirs))
			if r.Verdict.Class != "data-divergence" || r.Verdict.Cause == nil || string(*r.Verdict.Cause) != c.want ||
				!slices.Equal(r.Best.Members, []string{"node1", "node3"}) {
				t.Fatalf("%s %v best %v: %s", r.Verdict.Class, r.Verdict.Cause, r.Best.Members, r.Verdict.Summary)
			}
			if lacks := r.Best.Ranking[2].Lacks.CommittedEntries; lacks != len(c.skip) {
				t.Errorf("%d entries lacking, want %d", lacks, len(c.skip))
			}
		})
	}
}

// TestLearnerFlagLost: raft counts a member as a learner, bucket members calls it a voter, and no entry explains it.
func TestLearnerFlagLost(t *testing.T) {
	s := clustertest.Synth{Members: 3, Entries: 20, Keys: 5, Value: 20, Starts: map[int]int{0: 0, 1: 1, 2: 2},
		Learners: map[int]bool{2: true}}
	dirs := s.Write(t, t.TempDir())
	evidencetest.Unchanged(t, dirs...)
	r := diagnose(t, dirSpecs(dirs))
	if r.Verdict.Class != "membership" || r.Verdict.Cause != nil || outcome(r, "M07") != check.Violated {
		t.Errorf("%s %v: %s", r.Verdict.Class, r.Verdict.Cause, r.Verdict.Summary)
	}
}
