package run

import (
	"slices"
	"time"

	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/shell"
)

// Standing is the progress of a plan according to its journal.
type Standing struct {
	SchemaVersion int       `json:"schemaVersion"`
	Plan          string    `json:"plan"`
	Mode          plan.Mode `json:"mode"`
	// AtWork is true when a process holds the plan's lock.
	AtWork bool  `json:"atWork"`
	Runs   []Run `json:"runs"`
	// Next are the commands that continue from here; words in capitals are placeholders.
	Next []string `json:"next"`
	// NextArgs are the same commands as lists of arguments.
	NextArgs []shell.Command `json:"nextArgs"`
	// NextComplete is true if the next command has the flags with which a live run was begun.
	NextComplete bool `json:"nextComplete,omitempty"`
	// last is the index of the run that wrote the last line. A clock may have been set back since the line before.
	last int
}

// Run is one run in the journal, in one or more processes.
type Run struct {
	Run  int       `json:"run"`
	Mode plan.Mode `json:"mode"`
	// State is reached, given up, failed, or interrupted (also while it is under way).
	State   string    `json:"state"`
	Begun   time.Time `json:"begun"`
	Last    time.Time `json:"last"`
	Resumed int       `json:"resumed"`
	// Steps are those in the journal; Left are steps of the plan that have not begun.
	Steps []StepResult `json:"steps"`
	Left  []string     `json:"left"`
}

// stateGivenUp is the state of a run that was refused, or given up for another one.
const stateGivenUp = "given up"

// Status returns the progress of a plan. It writes nothing.
func Status(file string) (*Standing, error) {
	p, err := plan.Load(file)
	if err != nil {
		return nil, err
	}
	records, err := ReadJournal(file)
	if err != nil {
		return nil, err
	}
	st := &Standing{SchemaVersion: plan.SchemaVersion, Plan: p.Digest, Mode: p.Mode, AtWork: locked(file + ".lock"),
		Runs: []Run{}}
	for _, r := range records {
		st.take(r)
	}
	for i := range st.Runs {
		st.Runs[i].left(p)
	}
	st.NextArgs = st.next(p, file, records)
	st.Next = shell.Texts(st.NextArgs)
	return st, nil
}

// take adds one line of the journal.
func (st *Standing) take(r Record) {
	i := slices.IndexFunc(st.Runs, func(x Run) bool { return x.Run == r.Run })
	if i < 0 {
		i = len(st.Runs)
		st.Runs = append(st.Runs, Run{Run: r.Run, Mode: r.Mode, Begun: r.Time, State: "interrupted",
			Steps: []StepResult{}, Left: []string{}})
	}
	run := &st.Runs[i]
	st.last, run.Last = i, r.Time
	switch r.State {
	case StateRun:
		if r.Time != run.Begun {
			run.Resumed++
		}
		run.State = "interrupted"
	case StateEnd:
		run.State = "reached"
	case StateAbandon:
		run.State = stateGivenUp
	case StateBegin, StateDone, StateFailed:
		run.step(r)
	}
}

// step records the newest state of a step.
func (run *Run) step(r Record) {
	i := slices.IndexFunc(run.Steps, func(x StepResult) bool { return x.ID == r.Step })
	if i < 0 {
		i = len(run.Steps)
		run.Steps = append(run.Steps, StepResult{ID: r.Step})
	}
	s := &run.Steps[i]
	s.Seconds, s.Detail = r.Seconds, r.Detail
	switch r.State {
	case StateBegin:
		s.State, run.State = "begun", "interrupted"
	case StateDone:
		s.State = "done"
	case StateFailed:
		s.State, run.State = "failed", "failed"
	}
}

// left names the steps and lists those of the way that have not begun.
func (run *Run) left(p *plan.Plan) {
	mode := run.Mode
	if mode == rehearsal || mode == plan.Reseed {
		if w := p.Way(plan.Reseed); w != nil {
			mode = w.Uses
		}
	}
	w := p.Way(mode)
	if w == nil {
		return
	}
	titles, known := map[string]string{}, map[string]bool{}
	for _, s := range append([]plan.Step{copyStep, bootStep, endStep, compareStep, handOutStep}, w.Steps...) {
		titles[s.ID] = s.Title
	}
	for i := range run.Steps {
		s := &run.Steps[i]
		s.Title, known[s.ID] = titles[s.ID], true
	}
	for i := range w.Steps {
		if s := &w.Steps[i]; !known[s.ID] && s.Kind != plan.StepHandOut && run.State != "reached" {
			run.Left = append(run.Left, s.ID)
		}
	}
}
