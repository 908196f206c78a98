package check_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/replay"
)

// dirInput reads data dirs as a diagnosis does and yields what checks look at.
func dirInput(t *testing.T, dirs ...string) *check.Input {
	t.Helper()
	var specs []evidence.Spec
	for _, d := range dirs {
		specs = append(specs, evidence.Spec{Name: filepath.Base(d), Where: d})
	}
	set, err := evidence.Open(context.Background(), specs, evidence.Options{Deep: true, List: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = set.Close() })
	if len(set.Failed) > 0 {
		t.Fatal(set.Failed[0].Err)
	}
	in := &check.Input{Members: set.Members, MaxRows: 50, Single: len(set.Members) == 1}
	if in.Replay, err = replay.RunWithPlausibleIndex(context.Background(), set.Members, replay.Options{}); err != nil {
		t.Fatal(err)
	}
	return in
}

// runCheck runs the check with that ID.
func runCheck(t *testing.T, in *check.Input, id string) check.Result {
	t.Helper()
	all := check.All()
	at := slices.IndexFunc(all, func(c check.Check) bool { return string(c.ID) == id })
	if at < 0 {
		t.Fatalf("there is no check %s", id)
	}
	if why, ok := all[at].Applies(in); !ok {
		return check.Result{Outcome: check.NotChecked, Reason: why}
	}
	r := all[at].Run(in)
	wantKinds(t, all[at].ID, r)
	return r
}

// wantFinding expects exactly one finding of the check, about these members, whose title and explanation contain the
// words.
func wantFinding(t *testing.T, in *check.Input, id string, members []string, words ...string) check.Finding {
	t.Helper()
	r := runCheck(t, in, id)
	if len(r.Findings) != 1 {
		t.Fatalf("%s: %s %q, %d findings %+v, want 1", id, r.Outcome, r.Reason, len(r.Findings), r.Findings)
	}
	f := r.Findings[0]
	if !slices.Equal(f.Members, members) {
		t.Errorf("%s blames %v, want %v", id, f.Members, members)
	}
	for _, w := range words {
		if !strings.Contains(f.Title+"\n"+f.Explanation, w) {
			t.Errorf("%s does not say %q: %s\n%s", id, w, f.Title, f.Explanation)
		}
	}
	return f
}

// wantOutcome expects that outcome and no finding above a note.
func wantOutcome(t *testing.T, in *check.Input, id string, want check.Outcome) {
	t.Helper()
	r := runCheck(t, in, id)
	if r.Outcome == "" {
		r.Outcome = check.NotChecked
	}
	if r.Outcome != want {
		t.Errorf("%s: %s %q, findings %+v, want %s", id, r.Outcome, r.Reason, r.Findings, want)
	}
}

// sound is a set of three members of 3.5, each started once.
func sound() clustertest.Synth {
	return clustertest.Synth{Members: 3, Entries: 80, Keys: 20, Value: 40, Starts: map[int]int{0: 0, 1: 1, 2: 2}}
}

func dbOf(dir string) string { return filepath.Join(dir, "member", "snap", "db") }

func truncate(t *testing.T, path string, size int64) {
	t.Helper()
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
}

func TestDatabaseTooShortForAMetaPage(t *testing.T) {
	for size, words := range map[int64][]string{
		0:  {"0 bytes", "start with an empty key space", "apply the log again from entry 1"},
		40: {"40 B", "refuses to open"},
	} {
		dirs := sound().Write(t, t.TempDir())
		truncate(t, dbOf(dirs[1]), size)
		in := dirInput(t, dirs...)
		f := wantFinding(t, in, "D02", []string{"node2"}, words...)
		if f.Class != "db-damage" || f.Evidence[0].Field != "truncated" {
			t.Errorf("class %s, field %s", f.Class, f.Evidence[0].Field)
		}
	}
	wantOutcome(t, dirInput(t, sound().Write(t, t.TempDir())...), "D02", check.Holds)
}

func TestEmptyDatabaseBesideASnapshot(t *testing.T) {
	s := sound()
	s.Purged = 40
	dirs := s.Write(t, t.TempDir())
	truncate(t, dbOf(dirs[2]), 0)
	wantFinding(t, dirInput(t, dirs...), "D02", []string{"node3"}, "start with an empty key space", "snapshot at index",
		"refuses to start")
}
