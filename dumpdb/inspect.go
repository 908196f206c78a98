package dumpdb

import "context"

// Inspection is everything a full look at one view shows.
type Inspection struct {
	Pages *PageReport
	// KV holds what could be read; KVErr is the damage beside it, as of KVStats.
	KV    *KVStats
	KVErr error
	// HashKV is the server's hash at the current revision; HashErr says why there is none.
	HashKV  HashKV
	HashErr error
	// Hashes holds the BucketHash of every bucket that has one, HashErrs why others have none.
	Hashes   map[string]string
	HashErrs map[string]error
	// RecordsHash is a hash of every record of bucket key down to the last byte, those that a compaction would remove
	// and tombstones too. Databases with equal ones hold the same history, whatever their pages look like. It is ""
	// where bucket key has no hash.
	RecordsHash string
	// Content gives the content hash of bucket key at lower revisions; nil where it has none.
	Content *Content
}

// InspectOptions tune InspectWith.
type InspectOptions struct {
	// NoHashes leaves out HashKV and the content hashes, which take as long again as the rest.
	NoHashes bool
}

// Inspect is Check, KVStats, HashKV at the current revision and BucketHash of every bucket, made in little more than
// one pass over the file. The error is that of ctx.
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

// key reads bucket key once for its pages, its truths and its hashes.
func (in *Inspection) key(ctx context.Context, c *checker, b *bucket, o InspectOptions) error {
	db := c.db
	meta, metaErr := db.MetaBucket()
	leases, leaseErr := db.leaseSet()
	comp := meta.CompactRev()
	s, damage, err := db.feed(ctx, b, span{}, c.used, func() sink {
		stats := newStatsSink(db, comp, leases, leaseErr == nil)
		if o.NoHashes {
			return &keySink{stats: stats}
		}
		h := newWindowHash(db, comp, 0)
		h.crc, h.set = true, true
		h.live = &stats.live // the hashed revision is the current one
		return &keySink{stats: stats, hash: h}
	})
	if err != nil {
		return err
	}
	ks := s.(*keySink)
	c.add(damage...)
	in.KV, in.KVErr = ks.stats.finish().excused(damage), joinErrs(metaErr, damagesOrNil(damage))
	if ks.hash != nil {
		in.hash(ctx, b, ks.hash)
	}
	return c.nested(ctx, "key", ks.nested, 1)
}

// hash finishes the hashes of bucket key, of which the pass over it has seen what lies above the compact revision.
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
