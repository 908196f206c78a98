package replay

import (
	"context"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.etcd.io/etcd/server/v3/storage/wal"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// TestMain makes small segments, so that short logs have several.
func TestMain(m *testing.M) {
	wal.SegmentSizeBytes = 16 << 10
	evidencetest.Main(m)
}

func open(t *testing.T, dirs ...string) *evidence.Set {
	t.Helper()
	var specs []evidence.Spec
	for _, dir := range dirs {
		specs = append(specs, evidence.Spec{Name: filepath.Base(dir), Where: dir})
	}
	set, err := evidence.Open(context.Background(), specs, evidence.Options{Deep: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = set.Close() })
	return set
}

func run(t *testing.T, set *evidence.Set, o Options) *Result {
	t.Helper()
	r, err := Run(context.Background(), set.Members, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// equalResults holds the results of two replays of the same members against each other, to the last event.
func equalResults(t *testing.T, each, shared *Result) {
	t.Helper()
	if diff := cmp.Diff(each, shared, cmp.AllowUnexported(Result{}, MemberResult{}, Event{}, Outcome{}, Dropped{},
		stray{}, entryID{}),
		cmpopts.IgnoreFields(MemberResult{}, "Member"), cmpopts.IgnoreUnexported(Survey{}, atomic.Int64{}),
		cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("replayed one by one (-) and one for all that are equal (+): %s", diff)
	}
}

// TestTwinsOfIncidents: on every shipped incident, one replay for members proven to be equal tells what the replay of
// each tells.
func TestTwinsOfIncidents(t *testing.T) {
	saved := 0
	for _, name := range evidencetest.Incidents(t) {
		t.Run(name, func(t *testing.T) {
			dirs, err := filepath.Glob(filepath.Join(evidencetest.Incident(t, name), "node*"))
			if err != nil {
				t.Fatal(err)
			}
			if len(dirs) == 0 {
				return // a backup file
			}
			evidencetest.Unchanged(t, dirs...)
			set := open(t, dirs...)
			if clusters(set) > 1 {
				return
			}
			sameLog(t, run(t, set, Options{}), set)
			watch := []byte("/registry/")
			shared := run(t, set, Options{Watch: watch})
			equalResults(t, run(t, set, Options{Watch: watch, Each: true}), shared)
			for i, at := range equivalentMembers(shared, false) {
				if at != i {
					saved++
				}
			}
		})
	}
	if saved < 10 {
		t.Errorf("only %d members were equal to another one in all incidents", saved)
	}
}

func clusters(set *evidence.Set) int {
	seen := map[uint64]bool{}
	for _, m := range set.Members {
		seen[uint64(m.ClusterID)] = true
	}
	return len(seen)
}

// TestTwins: which members share a replay, and that the result is that of replaying each.
func TestTwins(t *testing.T) {
	for name, c := range twinCases(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dirs := c.write(t, t.TempDir())
			evidencetest.Unchanged(t, dirs...)
			set := open(t, dirs...)
			shared := run(t, set, Options{Watch: []byte(somePod)})
			if got := equivalentMembers(shared, false); !slices.Equal(got, c.reps) {
				t.Errorf("members are replayed by %v, want %v", got, c.reps)
			}
			shared.blank()
			err := simulateGroups(context.Background(), shared, Options{Watch: []byte(somePod), MaxEvents: 10000},
				c.reps)
			if apart := err == errNotEquivalent; err != nil && !apart || apart != c.apart {
				t.Errorf("%v, want apart %v", err, c.apart)
			}
			each := run(t, set, Options{Watch: []byte(somePod), Each: true})
			equalResults(t, each, run(t, set, Options{Watch: []byte(somePod)}))
			sameLog(t, each, set)
			if !slices.ContainsFunc(each.Members, func(m *MemberResult) bool { return m.Counts[Applied] > 5 }) {
				t.Error("hardly an entry was replayed")
			}
		})
	}
}
