package run

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/shell"
)

// standing reads lines of a journal, each a second after the one before.
func standing(lines ...Record) *Standing {
	st := &Standing{}
	for i, r := range lines {
		r.Time = time.Unix(int64(i), 0).UTC()
		st.take(r)
	}
	return st
}

// TestRunsInTheJournal: the state of a run is that of its newest line. A step that begins after a failure interrupts it
// again; a step that is done says nothing about the run.
func TestRunsInTheJournal(t *testing.T) {
	begun := Record{Run: 1, Mode: plan.Live, State: StateRun}
	line := func(s State) Record { return Record{Run: 1, Mode: plan.Live, State: s, Step: "a"} }
	for name, tc := range map[string]struct {
		lines   []Record
		state   string
		step    string // "" is none
		resumed int
	}{
		"just begun":         {[]Record{begun}, "interrupted", "", 0},
		"continued twice":    {[]Record{begun, begun, begun}, "interrupted", "", 2},
		"at a step":          {[]Record{begun, line(StateBegin)}, "interrupted", "begun", 0},
		"after a step":       {[]Record{begun, line(StateBegin), line(StateDone)}, "interrupted", "done", 0},
		"failed":             {[]Record{begun, line(StateBegin), line(StateFailed)}, "failed", "failed", 0},
		"failed, continued":  {[]Record{begun, line(StateFailed), begun}, "interrupted", "failed", 1},
		"failed, and begun":  {[]Record{begun, line(StateFailed), line(StateBegin)}, "interrupted", "begun", 0},
		"failed, then done":  {[]Record{begun, line(StateFailed), line(StateDone)}, "failed", "done", 0},
		"a note is no state": {[]Record{begun, line(StateDone), line(StateNote)}, "interrupted", "done", 0},
		"reached":            {[]Record{begun, line(StateDone), line(StateEnd)}, "reached", "done", 0},
		"given up":           {[]Record{begun, line(StateFailed), line(StateAbandon)}, "given up", "failed", 0},
	} {
		st := standing(tc.lines...)
		if len(st.Runs) != 1 {
			t.Fatalf("%s: %+v", name, st.Runs)
		}
		run := st.Runs[0]
		step := ""
		if len(run.Steps) > 0 {
			step = run.Steps[0].State
		}
		if run.State != tc.state || step != tc.step || len(run.Steps) > 1 || run.Resumed != tc.resumed ||
			!run.Begun.Equal(time.Unix(0, 0)) || !run.Last.Equal(time.Unix(int64(len(tc.lines)-1), 0)) {
			t.Errorf("%s: %+v", name, run)
		}
	}
}

// TestStepsThatAreLeft: steps that have not begun are left, except what people do at the end. Nothing is left of a run
// that reached its goal. A rehearsal of a reseed does the steps of the way that it uses.
func TestStepsThatAreLeft(t *testing.T) {
	p := &plan.Plan{Ways: []plan.Way{
		{Mode: plan.Live, Steps: []plan.Step{{ID: "a", Title: "do a"}, {ID: "b", Title: "do b"},
			{ID: "c", Kind: plan.StepHandOut}}},
		{Mode: plan.Clone, Steps: []plan.Step{{ID: "x"}}},
		{Mode: plan.Reseed, Uses: plan.Live},
	}}
	for name, tc := range map[string]struct {
		run  Run
		want []string
	}{
		"a rehearsal":  {Run{Mode: rehearsal}, []string{"b"}},
		"a reseed":     {Run{Mode: plan.Reseed}, []string{"b"}},
		"another way":  {Run{Mode: plan.Clone}, []string{"x"}},
		"it reached":   {Run{Mode: plan.Live, State: "reached"}, nil},
		"it failed":    {Run{Mode: plan.Live, State: "failed"}, []string{"b"}},
		"no such way":  {Run{Mode: plan.Restore}, nil},
		"hand-out run": {Run{Mode: plan.Live, State: "given up"}, []string{"b"}},
	} {
		run := tc.run
		run.Steps = []StepResult{{ID: "a"}, {ID: stepHandOut}}
		run.left(p)
		if d := cmp.Diff(tc.want, run.Left); d != "" {
			t.Errorf("%s: left (-want +got):\n%s", name, d)
		}
		titles := []string{run.Steps[0].Title, run.Steps[1].Title}
		want := []string{"do a", handOutStep.Title}
		switch tc.run.Mode {
		case plan.Clone:
			want[0] = "" // a step of another way
		case plan.Restore:
			want = []string{"", ""}
		}
		if !slices.Equal(titles, want) {
			t.Errorf("%s: titles %q, want %q", name, titles, want)
		}
	}
}

// TestNextOfTheNewestRun: the next command continues the run with the newest line, with the endpoints of that run in
// the order of the members. While a process is at work there is none.
func TestNextOfTheNewestRun(t *testing.T) {
	p := fakePlan(t, 3, "node2")
	if err := p.LayOut(); err != nil {
		t.Fatal(err)
	}
	records := []Record{
		{Run: 1, Mode: plan.Live, State: StateRun, Values: map[string]string{"endpoint:node2": "http://old:2"}},
		{Run: 2, Mode: rehearsal, State: StateRun},
		{Run: 1, Mode: plan.Live, State: StateFailed, Step: "a",
			Values: map[string]string{"endpoint:node3": "http://c:3", "out": "/elsewhere"}},
		{Run: 1, Mode: plan.Live, State: StateNote,
			Values: map[string]string{"endpoint:node1": "http://a:1", "endpoint:node2": "http://b:2"}},
		{Run: 2, Mode: rehearsal, State: StateNote, Values: map[string]string{"endpoint:node3": "http://copy:3"}},
	}
	next := func(n int) string {
		return strings.Join(shell.Texts(standing(records[:n]...).next(p, "p", records)), "\n")
	}
	if got := next(4); got != "etcd-medic repair apply p --mode live --endpoints http://a:1,http://b:2,http://c:3" {
		t.Errorf("the live run is the newest: %s", got)
	}
	part := records[:3]
	if got := strings.Join(shell.Texts(standing(part...).next(p, "p", part)), "\n"); !strings.HasSuffix(got,
		" --endpoints http://old:2,http://c:3") {
		t.Errorf("the endpoint of one member is not known: %s", got)
	}
	if got := next(5); got != "etcd-medic repair rehearse p" {
		t.Errorf("the rehearsal is the newest: %s", got)
	}
	st := standing(records...)
	st.AtWork = true
	if got := st.next(p, "p", records); got == nil || len(got) > 0 {
		t.Errorf("a process is at work: %v", got)
	}
}

// TestProvenWell: a run is proven by proofs of which none is violated; no proof proves nothing.
func TestProvenWell(t *testing.T) {
	for _, tc := range []struct {
		outcomes []string
		want     bool
	}{
		{nil, false}, {[]string{holds}, true}, {[]string{notChecked}, true}, {[]string{violated}, false},
		{[]string{violated, holds}, false}, {[]string{holds, notChecked, violated}, false},
	} {
		o := &Outcome{}
		for _, x := range tc.outcomes {
			o.prove("it works", x, "detail of "+x)
		}
		if got := o.provenWell(); got != tc.want {
			t.Errorf("%q: %v", tc.outcomes, got)
		}
		for i, p := range o.Proofs {
			if p != (Proof{What: "it works", Outcome: tc.outcomes[i], Detail: "detail of " + tc.outcomes[i]}) {
				t.Errorf("%+v", p)
			}
		}
	}
}
