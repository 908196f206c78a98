package render

import "time"

// Checklist is a repair plan as a list of steps to tick off, with what is known of those done. Pages are made of it.
type Checklist struct {
	Tool, Version, Digest string
	// Summary is the diagnosis in short, Way the way of the plan, WayWhy what the choice rests on.
	Summary, Way, WayWhy string
	Keep, KeepWhy        string
	// Loses says what is given up, Unproven why no more is not proven; Save are commands to run before the first step.
	Loses    string
	Lost     [][4]string
	Unproven []string
	Save     []string
	Cautions []string
	Members  []ChecklistMember
	// State says where the plan stands; the steps are ticked from the run that it names.
	State    string
	Finished bool
	Runs     []ChecklistRun
	Steps    []ChecklistStep
	// Other are the other ways, each in a line; Next are commands that lead on.
	Other []string
	Next  []string
}

// ChecklistMember is what the plan does to a member.
type ChecklistMember struct{ Name, ID, Action, Why string }

// ChecklistRun is one run of the plan.
type ChecklistRun struct {
	Title, State string
	Begun, Last  time.Time
}

// ChecklistStep is one step. State is done, failed, begun, or "" when it is left.
type ChecklistStep struct {
	ID, Title, Member                 string
	Precondition, Effect, Undo, Until string
	Commands                          []ChecklistCommand
	State, Detail                     string
	At                                time.Time
	Seconds                           float64
}

// ChecklistCommand is a command for those who do a step by hand, or a note.
type ChecklistCommand struct{ On, Run, Note string }

// Ticked counts the steps that are done.
func (c *Checklist) Ticked() (n int) {
	for i := range c.Steps {
		if c.Steps[i].State == "done" {
			n++
		}
	}
	return n
}

// When writes a time of the journal.
func When(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}
