// Package cause is the catalogue of known causes: which defect or operator mistake explains what the checks found.
//
// A cause claims no more than its evidence: it names its certainty (proof, strong, hint) and what would refute it. A
// divergence that no cause explains is reported as such, with all its facts.
package cause

import (
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/release"
)

// Certainty says how far a cause is proven.
type Certainty string

// The certainties: proof leaves no benign explanation once the look-alikes are excluded; strong is the usual cause;
// hint is merely consistent with it.
const (
	Proof  Certainty = "proof"
	Strong Certainty = "strong"
	Hint   Certainty = "hint"
)

// Cause is one entry of the catalogue.
type Cause struct {
	ID    ID
	Title string
	Doc   string
	// Affected are the releases with the defect, FixedIn the first ones without it.
	Affected   []release.Range
	FixedIn    []release.Range
	Refs       []string
	LookAlikes string
	Recovery   string
	Loss       string
	// File is the name of the Go file that defines it.
	File  string
	Match func(*Input) *Match
}

// Input is what a cause looks at: the facts, and every finding by check ID.
type Input struct {
	*check.Input
	Findings map[check.ID][]check.Finding
}

// Match says that a cause fits.
type Match struct {
	Certainty Certainty
	Members   []string
	// Because are IDs of findings.
	Because   []string
	RefutedBy string
	// Secondary is true when it explains something other than the verdict, such as a setting or a warning. It never
	// becomes the verdict's cause, and findings that only it explains count as unexplained.
	Secondary bool
}
