package dumpdb

import (
	"context"
	"slices"
)

// KVStats is the result of one pass over bucket key.
type KVStats struct {
	// CurrentRev is computed as in the server: the last main revision, but at least the compaction marks and 1.
	CurrentRev int64
	// CompactRev is max(scheduled, finished), -1 if the db was never compacted.
	CompactRev int64
	// FirstRev is the oldest record, LastRev the newest.
	FirstRev, LastRev Rev
	Revisions         int64
	Tombstones        int64
	// LiveKeys counts keys whose newest record is not a tombstone.
	LiveKeys int64
	// Bytes counts keys and values of the bucket as stored.
	Bytes int64
	// Violations are the broken MVCC invariants, in revision order; see Violation.
	Violations []Violation
	// MoreViolations counts those after the first maxViolations, which are not listed.
	MoreViolations int64
	// LeasesChecked is false if bucket lease could not be read completely, so that unknown-lease was not checked.
	LeasesChecked bool
	// BumpMarker is the revision of the empty record written by restore --bump-revision; zero if there is none.
	BumpMarker Rev
	// Superseded counts records at or below the compact revision that later ones at or below it replaced.
	// FirstSuperseded is the first of them, or the tombstone that replaced it. An unfinished compaction leaves such
	// records, a finished one does not.
	Superseded      int64
	FirstSuperseded Rev
	// Strays counts tombstones below the compact revision whose key has no older record, FirstStray is the first. A
	// compaction removes them unless they are exactly at its revision.
	Strays     int64
	FirstStray Rev
}

// Impossible reports whether the records are not a possible history. A key whose lease is missing does not count.
func (s *KVStats) Impossible() bool {
	return slices.ContainsFunc(s.Violations, func(v Violation) bool { return v.Rule != RuleLease })
}

// Rules of violations that others ask for.
const (
	// RuleLease is the rule of a live key that names a lease which is not there.
	RuleLease = "unknown-lease"
	// RuleUndecodable is the rule of bytes that are not a record.
	RuleUndecodable = "undecodable"
	// RuleContiguousSub is broken by a transaction that lacks a record before another one of it.
	RuleContiguousSub = "contiguous-sub"
	// RuleUnknownField is the rule of a record with a field that no release writes.
	RuleUnknownField = "unknown-field"
)

// maxViolations bounds the memory that a hostile file can use.
const maxViolations = 10000

// Violation is one broken MVCC invariant and its place.
type Violation struct {
	Place
	Rev
	// Rule names the invariant: contiguous-main, contiguous-sub, mod-revision, create-revision, version-chain,
	// tombstone-without-life, tombstone-content, undecodable, unknown-field, unknown-lease.
	Rule               string
	Key                []byte
	Expected, Observed string
	// Lease is the lease that the record names, of unknown-lease; 0 of others.
	Lease int64
}

// KVStats reads bucket key once and checks the MVCC invariants. It returns damage as [Damages] together with what it
// could read. Records that damage hides are not counted as violations.
func (db *DB) KVStats(ctx context.Context) (*KVStats, error) {
	meta, metaErr := db.MetaBucket()
	leases, leaseErr := db.leaseSet()
	check := &keyCheck{db: db, comp: meta.CompactRev(), chains: true, leases: leases, leasesKnown: leaseErr == nil,
		bound: db.keyBound()}
	newStats := func() *statsSink { return newStatsSink(db, check.comp, metaErr, leaseErr == nil) }
	b, ok := db.find("key")
	if !ok {
		return newStats().finish(check.newResult()), joinErrs(metaErr, damagesOrNil(slices.Clone(db.rootDamage)))
	}
	used := newBitmap(db.filePages())
	s, damage, err := db.feed(ctx, b, span{}, slices.Clone(used),
		func() sink { return &keySink{stats: newStats(), keys: check.pass(keyPart{})} })
	if err != nil {
		return nil, err
	}
	keys, err := check.complete(ctx, s.(*keySink).keys, b, span{}, used)
	if err != nil {
		return nil, err
	}
	return s.(*keySink).stats.finish(keys).tolerate(damage), joinErrs(metaErr, damagesOrNil(damage))
}

// leaseSet returns the set of existing lease IDs.
func (db *DB) leaseSet() (map[int64]struct{}, error) {
	leases, err := db.Leases()
	set := make(map[int64]struct{}, len(leases))
	for _, l := range leases {
		set[int64(l.ID)] = struct{}{}
	}
	return set, err
}
