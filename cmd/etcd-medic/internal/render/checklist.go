package render

import "time"

// Checklist is a repair plan as a list of steps to tick off, with the results of completed ones, for pages.
type Checklist struct {
	Tool, Version, Digest string
	// Summary is the diagnosis in short, Way the procedure of the plan, WayWhy the reason for it.
	Summary, Way, WayWhy string
	Keep, KeepWhy        string
	// Loses says which data is lost, Unproven why it may be more. Save are commands to run before the first step.
	Loses    string
	Lost     [][4]string
	Unproven []string
	Save     []string
	Cautions []string
	Members  []ChecklistMember
	// State says how far the plan has come, according to the run that it names.
	State    string
	Finished bool
	Runs     []ChecklistRun
	Steps    []ChecklistStep
	// Other are the other procedures, one per line; Next are the next commands.
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

// ChecklistStep is one step. State is done, failed, begun, or "" if it is still to do.
type ChecklistStep struct {
	ID, Title, Member                 string
	Precondition, Effect, Undo, Until string
	Commands                          []ChecklistCommand
	State, Detail                     string
	At                                time.Time
	Seconds                           float64
}

// ChecklistCommand is a command to do a step by hand, or a note.
type ChecklistCommand struct{ On, Run, Note string }

// Ticked counts the completed steps.
func (c *Checklist) Ticked() (n int) {
	for i := range c.Steps {
		if c.Steps[i].State == "done" {
			n++
		}
	}
	return n
}

// When formats a time of the journal.
func When(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}
