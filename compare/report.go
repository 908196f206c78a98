package compare

import (
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/timeline"
	"github.com/etcd-medic/etcd-medic/compare/verdict"
	"github.com/etcd-medic/etcd-medic/shell"
)

// SchemaVersion is the version of the JSON documents. Fields may be added without raising it.
const SchemaVersion = 1

// MaxWrongRecords bounds the records of the kept member that a report lists as proven wrong.
const MaxWrongRecords = verdict.MaxWrongRecords

// Report is the document of diagnose, inspect and verify; its JSON form is the machine contract (docs/JSON.md).
type Report struct {
	SchemaVersion int              `json:"schemaVersion"`
	Tool          Tool             `json:"tool"`
	Sources       []Source         `json:"sources"`
	Verdict       Verdict          `json:"verdict"`
	Causes        []Cause          `json:"causes"`
	Best          *Best            `json:"best"`
	Members       []evidence.Facts `json:"members"`
	Findings      []check.Finding  `json:"findings"`
	Checks        []CheckOutcome   `json:"checks"`
	Next          []Next           `json:"next"`
	// Timeline puts what happened to all members on one raft-index axis.
	Timeline []timeline.Moment `json:"timeline"`
	// InputsUnchanged is true when no source changed while it was read, by size, mode and modification time of every
	// file.
	InputsUnchanged bool    `json:"inputsUnchanged"`
	Backup          *Backup `json:"backup,omitempty"`
	// Confirm is the second opinion of a real server, nil unless it was asked for.
	Confirm *Confirmation `json:"confirm,omitempty"`
	// Given are the arguments that named all sources, if they name no others: a folder of data dirs, an archive, or
	// separate WAL folders. They are for people and not part of the document.
	Given []string `json:"-"`
}

// GivenTo returns Given as a command takes it: --key of dumpdb selects keys of the database, and the key of the client
// certificate is --tls-key there.
func (r *Report) GivenTo(c shell.Command) []string {
	program := c.Program()
	if len(program) < 2 || program[1] != "dumpdb" {
		return r.Given
	}
	given := slices.Clone(r.Given)
	for i, a := range given {
		if a == "--key" {
			given[i] = "--tls-key"
		}
	}
	return given
}

// Tool names the program that wrote the report.
type Tool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Source is one input. Error is set when it could not be used; the report still covers the others.
type Source struct {
	Name   string        `json:"name"`
	Kind   evidence.Kind `json:"kind"`
	Files  int           `json:"files"`
	Bytes  int64         `json:"bytes"`
	SHA256 string        `json:"sha256"`
	Error  string        `json:"error,omitempty"`
	// InUse says which process held a lock on the source when reading began: a running server changes its files, and a
	// copy of them made now can be torn.
	InUse string `json:"inUse,omitempty"`
	// Where is what to write on a command line to name this source again. It is "" when nothing names it: the source
	// came out of an archive or has its WAL elsewhere. It is for people and not part of the document, which does not
	// depend on where the copies are.
	Where string `json:"-"`
}

// WhyUnused says why the source could not be used; "" if it could.
func (s *Source) WhyUnused() string {
	if s.Error == "" {
		return ""
	}
	return s.Name + " was not used: " + strings.TrimPrefix(s.Error, s.Name+": ")
}

// SourceNames are the names of all sources, including those that could not be used.
func (r *Report) SourceNames() []string {
	out := make([]string, 0, len(r.Sources))
	for i := range r.Sources {
		out = append(out, r.Sources[i].Name)
	}
	return out
}

// The parts of a report that say what was judged; package verdict makes them.
type (
	// Verdict is the answer in short.
	Verdict = verdict.Verdict
	// FirstBreak is the first invariant that broke, by raft index.
	FirstBreak = verdict.FirstBreak
	// Cause is one entry of the catalogue that fits the findings.
	Cause = verdict.Cause
	// Best ranks the members by content.
	Best = verdict.Best
	// Rank is one member's standing.
	Rank = verdict.Rank
	// Count counts committed entries and the keys they touch.
	Count = verdict.Count
	// Lost lists what choosing the first of the best members gives up.
	Lost = verdict.Lost
	// LostRecords are records that are proven wrong on the kept member, listed up to MaxWrongRecords.
	LostRecords = verdict.LostRecords
	// LostRecord is one record that is proven wrong.
	LostRecord = verdict.LostRecord
	// LostEntry is one committed entry whose effect would be lost, and who holds it.
	LostEntry = verdict.LostEntry
	// CheckOutcome is the verdict of one check.
	CheckOutcome = verdict.CheckOutcome
	// Next is something to do now.
	Next = verdict.Next
)
