package run

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/shell"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

// runState is what all parts of a run share: its steps, what is done of them, and the operator's choices.
type runState struct {
	// notices counts the notes that the run has made.
	notices int
	plan    *plan.Plan
	steps   []plan.Step
	j       *journal
	out     *Outcome
	say     func(string)
	// live are the operator's choices for a running cluster; nil in a sandbox.
	live *LiveOptions
	// backup is the file that step backup writes.
	backup string
}

// of returns the member that a step is about.
func (s *runState) of(step *plan.Step) *plan.Member { return s.plan.Member(step.Member) }

func (s *runState) best() *plan.Member { return s.plan.Member(s.plan.Best.Name) }

// idOf is the present ID of a member: the one assigned when it was added again, else that of the plan.
func (s *runState) idOf(m *plan.Member) uint64 {
	if v := s.j.value("id:" + m.Name); v != "" {
		var id dumplog.ID
		if id.UnmarshalText([]byte(v)) == nil {
			return uint64(id)
		}
	}
	return uint64(m.ID)
}

// byID finds the plan's member that has this ID now. One that is retired may carry the ID of a member that stays.
func (s *runState) byID(id uint64) *plan.Member {
	var found *plan.Member
	for i := range s.plan.Members {
		if m := &s.plan.Members[i]; s.idOf(m) == id && (found == nil || found.Action == plan.Retire) {
			found = m
		}
	}
	return found
}

func (s *runState) nameOf(m *etcdserverpb.Member) string {
	if p := s.byID(m.GetID()); p != nil {
		return p.Name
	}
	if m.GetName() != "" {
		return m.GetName()
	}
	return hexID(m.GetID())
}

// stepDone reports whether that step about a member is done according to the journal.
func (s *runState) stepDone(kind plan.StepKind, member string) bool {
	st := s.stepOf(kind, member)
	return st != nil && s.j.state(st.ID) == StateDone
}

// stepOf is the first step of that kind about a member, nil when there is none.
func (s *runState) stepOf(kind plan.StepKind, member string) *plan.Step {
	for i := range s.steps {
		if st := &s.steps[i]; st.Kind == kind && st.Member == member {
			return st
		}
	}
	return nil
}

// doneAt is when that step about a member was recorded as done, zero when it was not.
func (s *runState) doneAt(kind plan.StepKind, member string) time.Time {
	if st := s.stepOf(kind, member); st != nil {
		return s.j.doneAt(st.ID)
	}
	return time.Time{}
}

// isIn reports whether this run has added the member.
func (s *runState) isIn(m *plan.Member) bool { return s.stepDone(plan.StepPromote, m.Name) }

// startedNow reports whether this run, not an earlier one, did the step that starts a new member.
func (s *runState) startedNow(m *plan.Member) bool {
	st := s.stepOf(plan.StepStartEmpty, m.Name)
	return st != nil && slices.ContainsFunc(s.out.Steps, func(d StepResult) bool {
		return d.ID == st.ID && d.State == "done"
	})
}

// note writes a value that later steps need.
func (s *runState) note(step, name, value string) error {
	return s.j.write(Record{State: StateNote, Step: step, Values: map[string]string{name: value}})
}

// noteDirs records where the members' data dirs are, for the commands that undo steps.
func (s *runState) noteDirs() error {
	dirs := map[string]string{}
	for i := range s.plan.Members {
		m := &s.plan.Members[i]
		if d := s.live.dataDir(m); d != "" && s.j.value("dir:"+m.Name) != d {
			dirs["dir:"+m.Name] = d
		}
	}
	if len(dirs) == 0 {
		return nil
	}
	return s.j.write(Record{State: StateNote, Values: dirs})
}

// noteFlags records the flags of the command, so that status can repeat them.
func (s *runState) noteFlags() error {
	b, err := json.Marshal(s.live.Flags)
	if err != nil || s.live.Flags.IsZero() || s.j.value(flagsValue) == string(b) {
		return err
	}
	return s.note("", flagsValue, string(b))
}

// flagsValue is the name of the value of a journal that holds the flags of a live repair.
const flagsValue = "flags"

// planFile is the plan next to the journal.
func (s *runState) planFile() string { return trimJournal(s.j.path) }

func (s *runState) unfinished(step string, err error) error {
	return &UnfinishedError{Step: step, Journal: s.j.path, Err: err,
		Hint: "the journal " + s.j.path + " shows the progress; the same command continues from there" + s.orBack()}
}

// orBack names the command that says how to undo the run.
func (s *runState) orBack() string {
	if s.live == nil {
		return ""
	}
	return "; " + shell.Format("etcd-medic repair abort {}", shell.Operand(s.planFile())).String() +
		" says how to go back"
}

// notice reports something to the operator, and keeps it for the outcome.
func (s *runState) notice(text string) {
	s.say(text)
	// What the run has met comes before what was known at its start: a screen shows the first notes.
	s.out.Notes = slices.Insert(s.out.Notes, min(s.notices, len(s.out.Notes)), text)
	s.notices++
	if s.live != nil && s.live.Notice != nil {
		s.live.Notice(text)
	}
}

// learnersToAdd says how learners come back that were removed because a cluster takes one at a time.
func (s *runState) learnersToAdd() []string {
	var out []string
	for i := range s.plan.Members {
		m := &s.plan.Members[i]
		if !m.Learner || m.Action != plan.Remove || !s.stepDone(plan.StepRemove, m.Name) {
			continue
		}
		for _, c := range plan.StepAdd.ByHand(s.plan, m) {
			out = append(out, fmt.Sprintf("%s, a learner, was removed: to have it again, set its data dir aside, "+
				"run %s, and start it empty, with the initial cluster that this prints", m.Name, c.Run))
		}
	}
	return out
}

// fewer says for how long the cluster had a voter fewer while a member was replaced.
func (s *runState) fewer() []string {
	var out []string
	for i := range s.plan.Members {
		m := &s.plan.Members[i]
		switch {
		case m.Standby != "" && s.stepDone(plan.StepPromote, m.Standby) && s.stepDone(plan.StepRemove, m.Name):
			if from, err := time.Parse(time.RFC3339Nano, s.j.value("removed-first:"+m.Name)); err == nil {
				gap := s.doneAt(plan.StepPromote, m.Standby).Sub(from).Round(time.Millisecond)
				out = append(out, fmt.Sprintf("the cluster had one voter fewer for %v: %s was down and was removed "+
					"before %s was promoted", gap, m.Name, m.Standby))
				continue
			}
			out = append(out, fmt.Sprintf("the cluster had no voter fewer while %s took the place of %s", m.Standby,
				m.Name))
		case m.Action == plan.Replace && s.stepDone(plan.StepPromote, m.Name):
			from, to := s.doneAt(plan.StepRemove, m.Name), s.doneAt(plan.StepPromote, m.Name)
			if stop := s.doneAt(plan.StepStop, m.Name); !stop.IsZero() && stop.Before(from) {
				from = stop
			}
			out = append(out, fmt.Sprintf("the cluster had one voter fewer for %v while %s was replaced, from %s to %s",
				to.Sub(from), m.Name, from.Format("15:04:05"), to.Format("15:04:05 MST")))
		}
	}
	return out
}

// onlyHeld collects what the run noted of each member that left, also in earlier processes.
func (s *runState) onlyHeld() []OnlyHeld {
	var out []OnlyHeld
	for i := range s.plan.Members {
		var o onlyNote
		if v := s.j.value("only:" + s.plan.Members[i].Name); v != "" && json.Unmarshal([]byte(v), &o) == nil {
			for _, k := range o.Names {
				o.KeyNames = append(o.KeyNames, check.Bytes(k))
			}
			out = append(out, o.OnlyHeld)
		}
	}
	return out
}
