package backup

import (
	"fmt"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/release"
)

// Drill is the result of a restore in a sandbox. Package repair/restoretest performs it; here it is only a part of the
// report.
type Drill struct {
	// OK is true if the server started, answered with the file's content and accepted a write.
	OK bool `json:"ok"`
	// Inconclusive says why a failed drill proves nothing against the backup: it was refused, or ran out of time or
	// disk space.
	Inconclusive string `json:"inconclusive,omitempty"`
	// Started says whether the server answered; Version is the server's.
	Started bool   `json:"started"`
	Version string `json:"version"`
	// Server says where the server program comes from: bundled, embedded or external.
	Server string `json:"server,omitempty"`
	// Keys is the number of keys read back at Revision; Equal is unknown if that was not completed.
	Keys     int64          `json:"keys"`
	Revision int64          `json:"revision"`
	Equal    release.Answer `json:"equal"`
	Seconds  float64        `json:"seconds"`
	Steps    []Step         `json:"steps"`
	// Differences are answers of the server that differ from the file; More counts those that are not listed.
	Differences []Difference `json:"differences"`
	More        int          `json:"more,omitempty"`
	// Refused says why there was no drill, Fatal what the server logged when it exited.
	Refused string   `json:"refused,omitempty"`
	Fatal   []string `json:"fatal,omitempty"`
	// Sandbox is the proof that nothing left the sandbox.
	Sandbox []string `json:"sandbox,omitempty"`
}

// Step is one part of a drill and how long it took.
type Step struct {
	Step    string  `json:"step"`
	OK      bool    `json:"ok"`
	Seconds float64 `json:"seconds"`
	Says    string  `json:"says,omitempty"`
}

// Difference is one difference between the server and the file.
type Difference struct {
	What     string      `json:"what"`
	Key      check.Bytes `json:"key,omitempty"`
	InBackup string      `json:"inBackup"`
	Answered string      `json:"answered"`
}

// Text summarizes the result of the drill.
func (d *Drill) Text() string {
	switch {
	case d.Refused != "":
		return "no drill: " + d.Refused
	case d.Inconclusive != "":
		return "drill inconclusive: " + d.Inconclusive
	case !d.Started:
		return fmt.Sprintf("etcd %s did not start on it", d.Version)
	case d.Equal.Certain():
		return fmt.Sprintf("drill with etcd %s: %d keys equal in %.1f s", d.Version, d.Keys, d.Seconds)
	}
	return fmt.Sprintf("drill with etcd %s failed", d.Version)
}
