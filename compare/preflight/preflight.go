// Package preflight decides, without starting a server, whether a data dir will boot on an etcd version, and which
// start-up check stops it.
//
// A server goes through the same steps at every start. It opens the database, selects a raft snapshot, opens the log
// after it, and reads the member list and cluster version. Then it passes HardState and entries to raft, builds lessor,
// MVCC and auth store, and applies the committed entries above the snapshot. Each rule of this package is one of these
// steps for the versions that have it. The rules are in the order of the start, so the server stops at the first
// violated one. Other rules report what opening the dir changes permanently.
//
//	             snapshot used                          members and cluster version     entries executed
//	3.3          newest .snap that decodes              .snap                           above meta/consistent_index, v2 all
//	3.4, 3.5     newest .snap the log has a record of   .snap (3.5.0: database)         same; cluster version from any entry
//	3.6          same                                   database                        same; v2 only attributes and version
//	3.7, 3.8     last snapshot record of the log        database                        v2 entries make it panic
//
// Sources: server/etcdserver/bootstrap.go (3.6+), server/etcdserver/server.go (3.5), etcdserver/server.go (3.3, 3.4).
package preflight

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/shell"
)

// Version is the etcd version that is to open the dir. Patch is -1 for the newest release of the minor version.
type Version struct{ Minor, Patch int }

// Oldest and Newest are the oldest and newest minor version with known rules.
const (
	Oldest = release.Oldest
	Newest = release.Newest
)

// ParseVersion reads 3.6 or 3.6.16.
func ParseVersion(s string) (Version, error) {
	parts := strings.Split(strings.TrimPrefix(s, "v"), ".")
	v := Version{Patch: -1}
	var err error
	if len(parts) < 2 || len(parts) > 3 || parts[0] != "3" {
		return v, fmt.Errorf("%q is not an etcd version (want 3.%d to 3.%d, or 3.6.16)", s, Oldest, Newest)
	}
	if v.Minor, err = strconv.Atoi(parts[1]); err == nil && len(parts) == 3 {
		v.Patch, err = strconv.Atoi(parts[2])
	}
	if err != nil || !v.Release().Supported().Certain() {
		return v, fmt.Errorf("%q is not an etcd version with known rules (want 3.%d to 3.%d)", s, Oldest, Newest)
	}
	return v, nil
}

// String returns 3.6 or 3.6.16.
func (v Version) String() string {
	if v.Patch < 0 {
		return fmt.Sprintf("3.%d", v.Minor)
	}
	return fmt.Sprintf("3.%d.%d", v.Minor, v.Patch)
}

// Release returns the version for the table of releases.
func (v Version) Release() release.Version {
	if v.Patch < 0 {
		return release.NewestOf(v.Minor)
	}
	return release.Exact(v.Minor, v.Patch)
}

// line returns the minor version with an unknown patch release.
func (v Version) line() release.Version { return release.AnyOf(v.Minor) }

// Follows reports whether servers of this version follow a rule.
func (v Version) Follows(r *release.Rule) bool { return v.Release().Has(r).Certain() }

// Level says what a violated rule means.
type Level string

// The levels: the server does not start (or dies at the first request); it starts, but something is lost or wrong;
// opening changes the dir permanently.
const (
	Stops   Level = "stops"
	Warns   Level = "warns"
	Changes Level = "changes"
)

// Outcome is the result of one rule for one dir.
type Outcome struct {
	Rule    string        `json:"rule"`
	Title   string        `json:"title"`
	Level   Level         `json:"level"`
	Outcome check.Outcome `json:"outcome"`
	// Says is what was found, or why the rule could not be checked. Server is the message of the server.
	Says     string           `json:"says,omitempty"`
	Server   string           `json:"server,omitempty"`
	Evidence []check.Evidence `json:"evidence,omitempty"`
}

// Result is the document of preflight.
type Result struct {
	SchemaVersion int            `json:"schemaVersion"`
	Tool          compare.Tool   `json:"tool"`
	Source        compare.Source `json:"source"`
	// From is the minor version that wrote the dir, "" if unknown. To is the requested version.
	From string `json:"from"`
	To   string `json:"to"`
	// Boots is unknown if a rule could not be checked, or if the dir changed while it was read.
	Boots release.Answer `json:"boots"`
	// Stops is the rule at which the server stops, "" if it boots or if that is unknown.
	Stops string    `json:"stops,omitempty"`
	Rules []Outcome `json:"rules"`
	// Ready says what to do before and after the upgrade, in order.
	Ready []string `json:"ready"`
	// InputsUnchanged is true if no file changed while it was read.
	InputsUnchanged bool `json:"inputsUnchanged"`
}

// Options tune Run.
type Options struct {
	// Version is the tool's version, for the document.
	Version string
	// Progress, if set, is called with what is being read.
	Progress func(what string)
}

// Run reads a data dir and checks it with every rule of the version.
func Run(ctx context.Context, spec evidence.Spec, to Version, o Options) (*Result, error) {
	d := &dir{to: to}
	set, err := evidence.Open(ctx, []evidence.Spec{spec},
		evidence.Options{Hash: true, Deep: true, NoHashes: true, Progress: o.Progress, Visit: d.visit})
	if err != nil {
		return nil, err
	}
	defer func() { _ = set.Close() }()
	if len(set.Members) != 1 || set.Members[0].Source.Kind != evidence.KindDataDir {
		return nil, &evidence.SourceError{Where: spec.Where, Found: kindOf(set),
			Expected: "one data dir (with member/ in it)"}
	}
	m := set.Members[0]
	d.arg = shell.ToFill("DIR") // it came from an archive
	if where := set.Argument(m.Source); where != "" {
		d.arg = shell.Text(where)
	}
	d.prepare(m)
	r := &Result{SchemaVersion: compare.SchemaVersion, Tool: compare.Tool{Name: "etcd-medic", Version: o.Version},
		Source: compare.Source{Name: m.Label(), Kind: m.Source.Kind, InUse: m.Source.InUse}, From: m.Version.Text,
		To:    to.String(),
		Rules: []Outcome{}, Ready: []string{}}
	if man := m.Source.Manifest; man != nil {
		r.Source.Files, r.Source.Bytes, r.Source.SHA256 = len(man.Files), man.Bytes, man.Digest()
	}
	r.judge(d)
	err = set.Unchanged(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if r.InputsUnchanged = err == nil; !r.InputsUnchanged {
		r.Boots, r.Stops = release.Unknown, "" // the rules read files of different moments
	}
	r.Ready = append(r.Ready, d.ready(r)...)
	return r, nil
}

func kindOf(set *evidence.Set) string {
	if len(set.Members) != 1 {
		return plural.Of(len(set.Members), "source", "sources")
	}
	return set.Members[0].Source.Kind.Noun()
}

// judge runs the rules in the order of a start.
func (r *Result) judge(d *dir) {
	open := ""
	for _, rule := range Rules() {
		if !rule.concerns(d.to) {
			continue
		}
		out := Outcome{Rule: rule.ID, Title: rule.Title, Level: rule.Level, Outcome: check.Holds}
		v, lacks := rule.Run(d), d.lacks(rule.Needs)
		switch {
		case v == nil && lacks != "":
			out.Outcome, out.Says = check.NotChecked, lacks
		case v == nil:
		case v.unknown != "":
			out.Outcome, out.Says = check.NotChecked, v.unknown
			if rule.Level == Stops && open == "" {
				open = rule.ID
			}
		default:
			out.Outcome, out.Says, out.Server, out.Evidence = check.Violated, v.says, v.server, v.evidence
			if rule.Level == Stops && r.Stops == "" {
				r.Stops = rule.ID
			}
		}
		r.Rules = append(r.Rules, out)
	}
	switch {
	case r.Stops != "":
		r.Boots = release.No
	case open == "":
		r.Boots = release.Yes
	}
}

// StopsAt returns the outcome at which the server stops, nil if there is none.
func (r *Result) StopsAt() *Outcome {
	for i := range r.Rules {
		if r.Rules[i].Rule == r.Stops {
			return &r.Rules[i]
		}
	}
	return nil
}

// verdict is the result of a rule; nil means that it holds.
type verdict struct {
	says, server string
	evidence     []check.Evidence
	// unknown says why the rule could not be checked; the rest is then empty.
	unknown string
}

func unknown(format string, args ...any) *verdict {
	return &verdict{unknown: fmt.Sprintf(format, args...)}
}

// entry is an entry that some version cannot execute, with the facts that rules need.
type entry struct {
	pos         dumplog.Pos
	term, index uint64
	kind        dumplog.Kind
	v2          *dumplog.V2Request
	conf        *dumplog.ConfChange
	version     string // of a cluster version set
	badUser     string // a user name that is not UTF-8
}
