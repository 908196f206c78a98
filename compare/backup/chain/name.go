// Package chain reads chains of full and delta snapshots as etcd-backup-restore writes them.
//
// A store contains files named KIND-START-LAST-TIME[SUFFIX][.final] (pkg/types/snapstore.go, GenerateSnapshotName). A
// full snapshot (Full, start 0) is a file of snapshot save. A delta snapshot (Incr) is a JSON array of the watch events
// of the revisions START to LAST, followed by the sha256 of the array (pkg/snapshot/snapshotter/snapshotter.go,
// TakeDeltaSnapshot). Both may be compressed as a whole, as the suffix says: .gz, .zlib or .Z (pkg/compressor).
package chain

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// Snapshot is one file of a chain, according to its name.
type Snapshot struct {
	// Path is the file. Full is true for a full snapshot, false for a delta.
	Path string
	Full bool
	// Start and Last are the first and last revision; Start of a full snapshot is 0. A full snapshot may contain a few
	// revisions after Last, since the revision is read before the snapshot is taken.
	Start, Last int64
	// Created is when the snapshot was taken.
	Created time.Time
	// Suffix is the compression: "", ".gz", ".zlib" or ".Z".
	Suffix string
}

// Name returns the file name.
func (s *Snapshot) Name() string { return filepath.Base(s.Path) }

var nameForm = regexp.MustCompile(`^(Full|Incr)-(\d{8,19})-(\d{8,19})-(\d{1,12})(\.gz|\.zlib|\.Z)?(\.final)?$`)

// ParseName reads the name of a snapshot from a path; ok is false for other names.
func ParseName(path string) (s Snapshot, ok bool) {
	m := nameForm.FindStringSubmatch(filepath.Base(path))
	if m == nil {
		return Snapshot{}, false
	}
	start, err1 := strconv.ParseInt(m[2], 10, 64)
	last, err2 := strconv.ParseInt(m[3], 10, 64)
	at, err3 := strconv.ParseInt(m[4], 10, 64)
	if err1 != nil || err2 != nil || err3 != nil || last < start {
		return Snapshot{}, false
	}
	return Snapshot{Path: path, Full: m[1] == "Full", Start: start, Last: last, Created: time.Unix(at, 0).UTC(),
		Suffix: m[5]}, true
}

// Chain is one full snapshot and the deltas after it, in order.
type Chain struct {
	Full   Snapshot
	Deltas []Snapshot
}

// Last returns the last revision of the chain, according to the names of its files.
func (c *Chain) Last() int64 {
	last := c.Full.Last
	for i := range c.Deltas {
		last = max(last, c.Deltas[i].Last)
	}
	return last
}

// Newest returns when the newest file of the chain was taken.
func (c *Chain) Newest() time.Time {
	t := c.Full.Created
	for i := range c.Deltas {
		if d := c.Deltas[i].Created; d.After(t) {
			t = d
		}
	}
	return t
}

// Group arranges the snapshots of one folder in chains, oldest first. Each delta belongs to the last full snapshot
// before it, by revision. Deltas before the first full snapshot are orphans: they cannot be applied to anything.
func Group(all []Snapshot) (chains []Chain, orphans []Snapshot) {
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b Snapshot) int {
		return cmp.Or(cmp.Compare(a.Last, b.Last), a.Created.Compare(b.Created), cmp.Compare(rank(a), rank(b)),
			cmp.Compare(a.Path, b.Path))
	})
	for _, s := range sorted {
		switch {
		case s.Full:
			chains = append(chains, Chain{Full: s})
		case len(chains) == 0:
			orphans = append(orphans, s)
		default:
			c := &chains[len(chains)-1]
			c.Deltas = append(c.Deltas, s)
		}
	}
	return chains, orphans
}

// rank sorts a full snapshot after a delta of the same time and last revision: the full one includes the delta.
func rank(s Snapshot) int {
	if s.Full {
		return 1
	}
	return 0
}

// Order returns the faults visible in the names of a chain: missing revisions and overlapping deltas.
func (c *Chain) Order() []Fault {
	var out []Fault
	last := c.Full.Last
	for i := range c.Deltas {
		d := &c.Deltas[i]
		switch {
		case d.Start > last+1:
			out = append(out, Fault{File: d.Name(), Kind: Gap, First: last + 1, Last: d.Start - 1,
				Text: fmt.Sprintf("revisions %d to %d are in no file: %s starts at %d", last+1, d.Start-1, d.Name(),
					d.Start)})
		case d.Start <= last && i > 0:
			out = append(out, Fault{File: d.Name(), Kind: Overlap, First: d.Start, Last: min(last, d.Last),
				Text: fmt.Sprintf("%s starts at revision %d, but earlier files already reach %d", d.Name(),
					d.Start, last)})
		}
		last = max(last, d.Last)
	}
	return out
}

// FaultKind says what is wrong with a chain.
type FaultKind string

// The kinds of faults.
const (
	Gap        FaultKind = "gap"
	Overlap    FaultKind = "overlap"
	Damaged    FaultKind = "damaged"
	Mismatch   FaultKind = "mismatch"
	Unreadable FaultKind = "unreadable"
)

// Fault is one thing that is wrong with a chain.
type Fault struct {
	File string    `json:"file"`
	Kind FaultKind `json:"kind"`
	// First and Last bound the affected revisions, 0 if unknown.
	First int64 `json:"firstRevision,omitempty"`
	Last  int64 `json:"lastRevision,omitempty"`
	// Key is the affected key, if there is one.
	Key  []byte `json:"key,omitempty"`
	Text string `json:"text"`
}
