// Package chain reads chains of full and delta snapshots as etcd-backup-restore writes them.
//
// A store holds files named KIND-START-LAST-TIME[SUFFIX][.final] (pkg/types/snapstore.go, GenerateSnapshotName). A full
// snapshot (Full, start 0) is what snapshot save writes. A delta snapshot (Incr) is a JSON array of the watch events of
// the revisions START to LAST, followed by the sha256 of the array (pkg/snapshot/snapshotter/snapshotter.go,
// TakeDeltaSnapshot). Both may be compressed as a whole; the suffix says how: .gz, .zlib or .Z (pkg/compressor).
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

// Snapshot is one file of a chain, as its name describes it.
type Snapshot struct {
	// Path is the file; Full tells a full snapshot from a delta.
	Path string
	Full bool
	// Start and Last are the first and last revision; Start of a full snapshot is 0. A full snapshot may hold a few
	// revisions more than Last, since the revision is asked for before the snapshot is taken.
	Start, Last int64
	// Created is when the snapshot was taken.
	Created time.Time
	// Suffix is the compression: "", ".gz", ".zlib" or ".Z".
	Suffix string
}

// Name returns the file name.
func (s *Snapshot) Name() string { return filepath.Base(s.Path) }

var nameForm = regexp.MustCompile(`^(Full|Incr)-(\d{8,19})-(\d{8,19})-(\d{1,12})(\.gz|\.zlib|\.Z)?(\.final)?$`)

// ParseName reads the name of a snapshot from a path; ok is false for files that are named otherwise.
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

// Chain is one full snapshot and the deltas that follow it, in the order in which they apply.
type Chain struct {
	Full   Snapshot
	Deltas []Snapshot
}

// Last is the revision that the chain leads to, by the names of its files.
func (c *Chain) Last() int64 {
	last := c.Full.Last
	for i := range c.Deltas {
		last = max(last, c.Deltas[i].Last)
	}
	return last
}

// Newest is when the newest file of the chain was taken.
func (c *Chain) Newest() time.Time {
	t := c.Full.Created
	for i := range c.Deltas {
		if d := c.Deltas[i].Created; d.After(t) {
			t = d
		}
	}
	return t
}

// Group puts the snapshots of one folder into chains, oldest first: each delta belongs to the last full snapshot before
// it, by revision. Deltas from before the first full snapshot are returned apart: nothing is there that they could be
// applied to.
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

// rank puts a full snapshot after a delta that was taken at the same time up to the same revision: the full one holds
// the delta.
func rank(s Snapshot) int {
	if s.Full {
		return 1
	}
	return 0
}

// Order finds what the names of a chain say against it: revisions that no file holds, and deltas that overlap.
func (c *Chain) Order() []Fault {
	var out []Fault
	last := c.Full.Last
	for i := range c.Deltas {
		d := &c.Deltas[i]
		switch {
		case d.Start > last+1:
			out = append(out, Fault{File: d.Name(), Kind: Gap, First: last + 1, Last: d.Start - 1,
				Text: fmt.Sprintf("revisions %d to %d are in no file: %s begins at %d", last+1, d.Start-1, d.Name(),
					d.Start)})
		case d.Start <= last && i > 0:
			out = append(out, Fault{File: d.Name(), Kind: Overlap, First: d.Start, Last: min(last, d.Last),
				Text: fmt.Sprintf("%s begins at revision %d, which the files before it hold up to %d", d.Name(),
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
	// First and Last bound the revisions that are concerned, 0 where none are known.
	First int64 `json:"firstRevision,omitempty"`
	Last  int64 `json:"lastRevision,omitempty"`
	// Key is the key concerned, if there is one.
	Key  []byte `json:"key,omitempty"`
	Text string `json:"text"`
}
