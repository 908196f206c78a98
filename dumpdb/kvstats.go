package dumpdb

import (
	"context"
	"slices"
)

// KVStats is what one pass over bucket key shows.
type KVStats struct {
	// CurrentRev is derived as the server derives it: the last main revision, but at least the compaction marks and 1.
	CurrentRev int64
	// CompactRev is max(scheduled, finished), -1 when the db was never compacted.
	CompactRev int64
	// FirstRev is the oldest record, LastRev the newest.
	FirstRev, LastRev Rev
	Revisions         int64
	Tombstones        int64
	// LiveKeys counts keys whose newest record is no tombstone.
	LiveKeys int64
	// Bytes counts keys and values of the bucket as stored.
	Bytes int64
	// Violations are the MVCC truths that do not hold, in revision order; see Violation.
	Violations []Violation
	// MoreViolations counts those beyond the first maxViolations, which are not listed.
	MoreViolations int64
	// LeasesChecked is false when bucket lease could not be read in full, so that unknown-lease was not checked.
	LeasesChecked bool
	// BumpMarker is the revision of the empty record written by restore --bump-revision; zero when none.
	BumpMarker Rev
	// Superseded counts records at or below the compact revision that later ones there replaced, FirstSuperseded is the
	// first (or the tombstone that replaced it). A compaction that is not finished leaves such records, a finished one
	// none.
	Superseded      int64
	FirstSuperseded Rev
	// Strays counts tombstones below the compact revision that delete nothing that is left, FirstStray is the first: a
	// compaction removes them unless they stand exactly at its revision.
	Strays     int64
	FirstStray Rev
}

// maxViolations bounds the list that a hostile file can make us keep.
const maxViolations = 10000

// Violation is one broken MVCC invariant and its place.
type Violation struct {
	Place
	Rev
	// Rule names the invariant: contiguous-main, contiguous-sub, mod-revision, create-revision, version-chain,
	// tombstone-without-life, undecodable, unknown-lease.
	Rule               string
	Key                []byte
	Expected, Observed string
	// Lease is the lease that the record names, of unknown-lease; 0 of others.
	Lease int64
}

// KVStats reads bucket key once and checks the MVCC truths. Damage is returned as [Damages] beside what could be read;
// what damage hides is not held against the records around it.
func (db *DB) KVStats(ctx context.Context) (*KVStats, error) {
	meta, metaErr := db.MetaBucket()
	leases, leaseErr := db.leaseSet()
	newStats := func() *statsSink { return newStatsSink(db, meta.CompactRev(), leases, leaseErr == nil) }
	b, ok := db.find("key")
	if !ok {
		return newStats().finish(), joinErrs(metaErr, damagesOrNil(slices.Clone(db.rootDamage)))
	}
	s, damage, err := db.feed(ctx, b, span{}, newBitmap(db.filePages()),
		func() sink { return &keySink{stats: newStats()} })
	if err != nil {
		return nil, err
	}
	return s.(*keySink).stats.finish().excused(damage), joinErrs(metaErr, damagesOrNil(damage))
}

// leaseSet is the set of lease IDs that exist.
func (db *DB) leaseSet() (map[int64]struct{}, error) {
	leases, err := db.Leases()
	set := make(map[int64]struct{}, len(leases))
	for _, l := range leases {
		set[int64(l.ID)] = struct{}{}
	}
	return set, err
}
