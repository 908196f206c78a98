package surgery

import (
	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/refusal"
)

// Report is the document of repair wal, repair db and repair meta.
type Report struct {
	SchemaVersion int           `json:"schemaVersion"`
	Tool          compare.Tool  `json:"tool"`
	Source        string        `json:"source"`
	Kind          evidence.Kind `json:"kind"`
	// Repair is wal, db or meta.
	Repair string `json:"repair"`
	// Did lists the changes, GivesUp the lost data, Notes other remarks.
	Did     []string `json:"did"`
	GivesUp []string `json:"givesUp"`
	Notes   []string `json:"notes"`
	// Before and After are the diagnoses of the source, and of the result in its place.
	Before State `json:"before"`
	After  State `json:"after"`
	// Cured are the checks that were violated before and are not after, New the opposite; New is empty unless accepted.
	Cured []check.ID `json:"cured"`
	New   []check.ID `json:"new"`
	// Unchanged is true if there were errors about the source before and none of them is cured; Offers are changes that
	// would cure one.
	Unchanged bool     `json:"unchanged"`
	Offers    []string `json:"offers"`
	// Accepted are the accepted consequences that occurred, by the names of their flags.
	Accepted        []string `json:"accepted"`
	Bytes           int64    `json:"bytes"`
	InputsUnchanged bool     `json:"inputsUnchanged"`
}

// State is a diagnosis in short: the verdict and the findings at or above warning.
type State struct {
	Health   check.Health `json:"healthy"`
	Class    check.Class  `json:"class"`
	Summary  string       `json:"summary"`
	Findings []Finding    `json:"findings"`
}

// Finding is one finding in short.
type Finding struct {
	Check    check.ID       `json:"check"`
	Severity check.Severity `json:"severity"`
	Members  []string       `json:"members"`
	Title    string         `json:"title"`
}

func stateOf(r *compare.Report) State {
	s := State{Health: r.Verdict.Health, Class: r.Verdict.Class, Summary: r.Verdict.Summary, Findings: []Finding{}}
	for i := range r.Findings {
		if f := &r.Findings[i]; f.Severity.Rank() >= check.Warning.Rank() {
			s.Findings = append(s.Findings, Finding{f.Check, f.Severity, f.Members, f.Title})
		}
	}
	return s
}

func refusef(hint, format string, args ...any) error {
	return refusal.New(hint, format, args...)
}
