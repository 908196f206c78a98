package dumpdb

import (
	"context"
	"slices"
)

// Inspection is the result of all checks and hashes of one view.
type Inspection struct {
	Pages *PageReport
	// KV is what could be read; KVErr is the damage, as from KVStats.
	KV    *KVStats
	KVErr error
	// HashKV is the server's hash at the current revision; HashErr says why it is missing.
	HashKV  HashKV
	HashErr error
	// Hashes has the BucketHash of every bucket, HashErrs the errors of the others.
	Hashes   map[string]string
	HashErrs map[string]error
	// RecordsHash is a hash of every record of bucket key in full, including tombstones and records that a compaction
	// would remove. Databases with equal hashes have the same history, whatever their page layout. It is "" if bucket
	// key has no hash.
	RecordsHash string
	// Content gives the content hash of bucket key at lower revisions; nil if there is none.
	Content *Content
}

// InspectOptions tune InspectWith.
type InspectOptions struct {
	// NoHashes skips HashKV and the content hashes, which double the time.
	NoHashes bool
}

// Inspect runs Check, KVStats, HashKV at the current revision and BucketHash of every bucket, in little more than one
// pass over the file. It returns an error only if ctx ends.
func (db *DB) Inspect(ctx context.Context) (*Inspection, error) {
	return db.InspectWith(ctx, InspectOptions{})
}

// InspectWith is Inspect with options.
func (db *DB) InspectWith(ctx context.Context, o InspectOptions) (*Inspection, error) {
	in := &Inspection{Hashes: map[string]string{}, HashErrs: map[string]error{}}
	c := db.newChecker()
	keySeen := false
	for i := range db.buckets {
		b := &db.buckets[i]
		var err error
		if b.Name == "key" {
			keySeen = true
			err = in.key(ctx, c, b, o)
		} else {
			err = c.bucket(ctx, b, 0)
			if !o.NoHashes {
				in.put(b.Name)(db.BucketHash(ctx, b.Name))
			}
		}
		if err != nil {
			return nil, err
		}
	}
	in.Pages = c.finish()
	if !keySeen {
		in.KV, in.KVErr = db.KVStats(ctx)
		if !o.NoHashes {
			in.HashKV, in.HashErr = db.HashKV(ctx, 0)
		}
	}
	return in, ctx.Err()
}

func (in *Inspection) put(bucket string) func(string, error) {
	return func(hash string, err error) {
		switch {
		case err != nil:
			in.HashErrs[bucket] = err
		case hash != "":
			in.Hashes[bucket] = hash
		}
	}
}

// key reads bucket key once for its pages, its invariants and its hashes.
func (in *Inspection) key(ctx context.Context, c *checker, b *bucket, o InspectOptions) error {
	db := c.db
	meta, metaErr := db.MetaBucket()
	leases, leaseErr := db.leaseSet()
	check := &keyCheck{db: db, comp: meta.CompactRev(), chains: true, atRev: !o.NoHashes, atComp: !o.NoHashes,
		leases: leases, leasesKnown: leaseErr == nil, bound: db.keyBound()}
	used := slices.Clone(c.used)
	s, damage, err := db.feed(ctx, b, span{}, c.used, func() sink {
		ks := &keySink{stats: newStatsSink(db, check.comp, metaErr, leaseErr == nil), keys: check.pass(keyPart{})}
		if !o.NoHashes {
			ks.hash = newWindowHash(db, check.comp, 0) // at the current revision
			ks.hash.crc, ks.hash.set = true, true
		}
		return ks
	})
	if err != nil {
		return err
	}
	ks := s.(*keySink)
	keys, err := check.complete(ctx, ks.keys, b, span{}, used)
	if err != nil {
		return err
	}
	ks.keys = nil // its memory is of no more use
	c.add(damage...)
	in.KV, in.KVErr = ks.stats.finish(keys).tolerate(damage), joinErrs(metaErr, damagesOrNil(damage))
	if ks.hash != nil {
		ks.hash.keys = keys
		in.hash(ctx, b, ks.hash)
	}
	return c.nested(ctx, "key", &ks.nested, 1)
}

// hash completes the hashes of bucket key. The first pass has hashed the records above the compact revision.
func (in *Inspection) hash(ctx context.Context, b *bucket, h *windowHash) {
	h.rev = in.KV.CurrentRev
	if in.HashErr = in.KVErr; in.HashErr == nil {
		in.HashErr = h.second(ctx, b)
	}
	if in.HashErr != nil {
		in.HashErrs["key"] = in.HashErr
		return
	}
	in.HashKV = HashKV{Hash: h.serverHash(), Rev: h.rev, CompactRev: h.comp}
	in.Hashes["key"], in.RecordsHash = h.contentHash(), h.recordsHash()
	in.Content = &Content{comp: h.comp, rev: h.rev, low: h.low, high: h.high}
}
