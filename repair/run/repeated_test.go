package run

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// TestNotRepairedTwice: a plan whose live repair reached its goal is not applied again, in no mode: what was written
// since is not in its copies.
func TestNotRepairedTwice(t *testing.T) {
	line := func(run int, mode plan.Mode, s State, digest string) Record {
		return Record{Time: time.Unix(0, 0).UTC(), Run: run, Mode: mode, State: s, Plan: digest}
	}
	reached := []Record{line(1, plan.Live, StateRun, "this"), line(1, plan.Live, StateBegin, ""),
		line(1, plan.Live, StateEnd, "")}
	for name, tc := range map[string]struct {
		lines   []Record
		again   bool
		refused bool
	}{
		"reached":             {reached, false, true},
		"reached, and asked":  {slices.Concat(reached, []Record{line(2, plan.Live, StateRun, "this")}), false, true},
		"with --again":        {reached, true, false},
		"begun once more":     {slices.Concat(reached, []Record{line(2, plan.Live, StateBegin, "")}), false, false},
		"not reached":         {reached[:2], false, false},
		"of another plan":     {slices.Concat([]Record{line(1, plan.Live, StateRun, "other")}, reached[1:]), false, false},
		"new dirs, not live":  {[]Record{line(1, plan.Clone, StateRun, "this"), line(1, plan.Clone, StateEnd, "")}, false, false},
		"nothing was applied": {nil, false, false},
	} {
		s := sessionWithJournal(t, tc.lines...)
		s.o.Again = tc.again
		if err := s.notRepaired(); (err != nil) != tc.refused {
			t.Errorf("%s: %v", name, err)
		} else if tc.refused {
			wantRefusal(t, err)
			wantError(t, name, err, "reached its goal at 1970-01-01T00:00:00Z (run 1)")
		}
	}
}

// sessionWithJournal is a session of a plan with these lines in its journal.
func sessionWithJournal(t *testing.T, lines ...Record) *session {
	t.Helper()
	s := &session{plan: &plan.Plan{Digest: "this"}, file: filepath.Join(t.TempDir(), "plan.yaml"), out: &Outcome{}}
	j := &journal{path: JournalPath(s.file), now: func() time.Time { return time.Unix(0, 0) },
		observe: func(Record, bool) {}}
	var err error
	if j.f, err = os.Create(j.path); err != nil {
		t.Fatal(err)
	}
	for _, r := range lines {
		j.run, j.mode = r.Run, r.Mode
		if err := j.write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestOverIfGone: a run whose copies are not in the scratch folder starts from its first step, and says where it left
// others.
func TestOverIfGone(t *testing.T) {
	work := t.TempDir()
	copied := func(more ...Record) []Record {
		return append([]Record{{Run: 1, Mode: rehearsal, State: StateRun, Plan: "this"},
			{Run: 1, Mode: rehearsal, State: StateNote, Values: map[string]string{"work": "/elsewhere"}},
			{Run: 1, Mode: rehearsal, State: StateDone, Step: copyStep.ID}}, more...)
	}
	mark := filepath.Join(work, markFile)
	for name, tc := range map[string]struct {
		lines        []Record
		there, again bool
	}{
		"gone":         {copied(), false, true},
		"there":        {copied(), true, false},
		"not copied":   {copied()[:2], false, false},
		"ended":        {copied(Record{Run: 1, Mode: rehearsal, State: StateEnd}), false, false},
		"another mode": {[]Record{{Run: 1, Mode: plan.Reseed, State: StateDone, Step: copyStep.ID}}, false, false},
	} {
		if err := os.RemoveAll(mark); err != nil {
			t.Fatal(err)
		}
		if tc.there {
			if err := os.WriteFile(mark, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s := sessionWithJournal(t, tc.lines...)
		if err := s.overIfGone(rehearsal, work); err != nil || s.o.Again != tc.again {
			t.Errorf("%s: again %v, %v", name, s.o.Again, err)
		}
		if said := strings.Contains(strings.Join(s.out.Notes, " "), "/elsewhere can be removed"); said != tc.again {
			t.Errorf("%s: %q", name, s.out.Notes)
		}
	}
}
