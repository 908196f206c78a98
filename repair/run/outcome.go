package run

import (
	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// Outcome is what a rehearsal or an application did and proved.
type Outcome struct {
	SchemaVersion int          `json:"schemaVersion"`
	Tool          compare.Tool `json:"tool"`
	// Plan is the digest of the plan, Mode what was done: rehearse, clone, reseed, live.
	Plan string    `json:"plan"`
	Mode plan.Mode `json:"mode"`
	// Way is the procedure whose steps were done.
	Way plan.Mode `json:"way"`
	// Server is the etcd server that ran the copies, Raises what it changes permanently in the data dirs.
	Server string `json:"server,omitempty"`
	Raises string `json:"raises,omitempty"`
	// Resumed is true when an earlier run was continued.
	Resumed bool         `json:"resumed"`
	Steps   []StepResult `json:"steps"`
	// Proofs are what was checked at the end; Reached is true when all of them hold.
	Proofs  []Proof `json:"proofs"`
	Reached bool    `json:"reached"`
	// Drift is what the members of a running cluster have applied since the plan's copies: at the beginning and, for
	// members that are removed, directly before that.
	Drift []Drift `json:"drift,omitempty"`
	// Only is what removed members held at the end and the cluster does not hold.
	Only []OnlyHeld `json:"only,omitempty"`
	// Isolation lists what the members of the sandbox tried to reach.
	Isolation []string `json:"isolation,omitempty"`
	// Bytes is the size of the best member's database, Seconds the time from the first copy to the last proof.
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"`
	// Dirs are the new data dirs by member.
	Dirs map[string]string `json:"dirs,omitempty"`
	// Install are the commands that put the new data dirs in place, and what is left to do afterwards.
	Install []plan.Command `json:"install,omitempty"`
	Notes   []string       `json:"notes,omitempty"`
}

// StepResult is the result of a step: done, already done, done before (in an earlier process), failed.
type StepResult struct {
	ID      string  `json:"id"`
	Title   string  `json:"title"`
	State   string  `json:"state"`
	Seconds float64 `json:"seconds"`
	Detail  string  `json:"detail,omitempty"`
}

// Proof is one thing that must be true at the end: it holds, is violated, or could not be checked.
type Proof struct {
	What    string `json:"what"`
	Outcome string `json:"outcome"`
	Detail  string `json:"detail,omitempty"`
}

// The outcomes of a proof.
const (
	holds      = "holds"
	violated   = "violated"
	notChecked = "not-checked"
)

func (o *Outcome) add(s StepResult) { o.Steps = append(o.Steps, s) }

func (o *Outcome) prove(what, outcome, detail string) {
	o.Proofs = append(o.Proofs, Proof{What: what, Outcome: outcome, Detail: detail})
}

// provenWell reports whether no proof is violated.
func (o *Outcome) provenWell() bool {
	for _, p := range o.Proofs {
		if p.Outcome == violated {
			return false
		}
	}
	return len(o.Proofs) > 0
}
