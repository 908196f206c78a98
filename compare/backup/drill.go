package backup

import (
	"fmt"

	"github.com/etcd-medic/etcd-medic/compare/check"
)

// Drill is what a restore in a sandbox found. Package repair/restoretest holds it; here it is only a part of the
// report.
type Drill struct {
	// OK is true when the server started, answered what the file holds and took a write.
	OK bool `json:"ok"`
	// Inconclusive says why a drill that is not OK proves nothing against the backup: it was refused, ran out of time
	// or out of disk space.
	Inconclusive string `json:"inconclusive,omitempty"`
	// Started tells whether the server answered; Version is the server's.
	Started bool   `json:"started"`
	Version string `json:"version"`
	// Server says where the server program comes from: bundled, embedded or external.
	Server string `json:"server,omitempty"`
	// Keys are those that were read back at Revision; Equal is nil when that did not come to an end.
	Keys     int64   `json:"keys"`
	Revision int64   `json:"revision"`
	Equal    *bool   `json:"equal"`
	Seconds  float64 `json:"seconds"`
	Steps    []Step  `json:"steps"`
	// Differences are what the server answered otherwise than the file holds it; More counts those beyond the listed.
	Differences []Difference `json:"differences"`
	More        int          `json:"more,omitempty"`
	// Refused says why no drill was held, Fatal what the server said when it ended by itself.
	Refused string   `json:"refused,omitempty"`
	Fatal   []string `json:"fatal,omitempty"`
	// Sandbox is the proof that nothing left it.
	Sandbox []string `json:"sandbox,omitempty"`
}

// Step is one part of a drill and how long it took.
type Step struct {
	Step    string  `json:"step"`
	OK      bool    `json:"ok"`
	Seconds float64 `json:"seconds"`
	Says    string  `json:"says,omitempty"`
}

// Difference is one thing that the server and the file tell differently.
type Difference struct {
	What     string      `json:"what"`
	Key      check.Bytes `json:"key,omitempty"`
	InBackup string      `json:"inBackup"`
	Answered string      `json:"answered"`
}

// Text says in short how the drill ended.
func (d *Drill) Text() string {
	switch {
	case d.Refused != "":
		return "no drill: " + d.Refused
	case d.Inconclusive != "":
		return "drill inconclusive: " + d.Inconclusive
	case !d.Started:
		return fmt.Sprintf("etcd %s did not start on it", d.Version)
	case d.Equal != nil && *d.Equal:
		return fmt.Sprintf("drill with etcd %s: %d keys equal in %.1f s", d.Version, d.Keys, d.Seconds)
	}
	return fmt.Sprintf("drill with etcd %s failed", d.Version)
}
