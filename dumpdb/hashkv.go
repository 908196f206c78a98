package dumpdb

import (
	"context"
	"fmt"
)

// HashKV is a key-value hash as in the server's HashKV API. Two are comparable only at equal Rev and CompactRev.
type HashKV struct {
	Hash       uint32 `json:"hash"`
	Rev        int64  `json:"revision"`
	CompactRev int64  `json:"compactRevision"`
}

// CurrentRev returns the revision with which a server would start: the last main revision, but at least the compaction
// marks and 1. It reads only the right edge of the tree.
func (db *DB) CurrentRev() (int64, error) {
	m, err := db.MetaBucket()
	if err != nil {
		return 0, err
	}
	last, err := db.lastRev()
	return max(1, m.CompactRev(), last), err
}

// lastRev returns the main revision of the last record, 0 if there is none.
func (db *DB) lastRev() (int64, error) {
	b, ok := db.find("key")
	if !ok {
		return 0, damagesOrNil(db.rootDamage)
	}
	s := db.newScan(db.f.ctx, "key")
	var damage []*DamageError
	var last int64
	var bad error
	s.onDamage = func(d *DamageError) bool { damage = append(damage, d); return true }
	s.rightEdge = true
	s.onLeaf = func(l *leaf) bool {
		if n := len(l.elems); n > 0 {
			var r Rev
			if r, _, bad = parseRevKey(l.elems[n-1].key); bad != nil {
				bad = &DamageError{Place: l.at(l.elems[n-1]), Kind: DamageRow, Bucket: "key", Err: bad}
			}
			last = r.Main
		}
		return true
	}
	s.walk(b)
	return last, joinErrs(db.f.ctx.Err(), damagesOrNil(damage), bad)
}

// HashKV computes the server's HashKV at rev (0: the current revision), read-only. It returns ErrCompacted or
// ErrFutureRev if the revision is not available. With damage there is no hash.
//
// The hash includes every record above the compact revision. At or below it, it includes only the newest record of each
// key at rev, unless that is a tombstone (server/storage/mvcc/hash.go). A tombstone exactly at the compact revision is
// never included: 3.4.34+, 3.5.16+ and 3.6+ keep it, older versions drop it.
func (db *DB) HashKV(ctx context.Context, rev int64) (HashKV, error) {
	m, err := db.MetaBucket()
	if err != nil {
		return HashKV{}, err
	}
	cur, err := db.CurrentRev()
	if err != nil {
		return HashKV{}, err
	}
	comp := m.CompactRev()
	switch {
	case rev == 0:
		rev = cur
	case rev > cur:
		return HashKV{}, fmt.Errorf("revision %d, current %d: %w", rev, cur, ErrFutureRev)
	case rev < comp:
		return HashKV{}, fmt.Errorf("revision %d, compacted at %d: %w", rev, comp, ErrCompacted)
	}
	h := newWindowHash(db, comp, rev)
	h.crc = true
	if err := h.run(ctx); err != nil {
		return HashKV{}, err
	}
	return HashKV{Hash: h.serverHash(), Rev: rev, CompactRev: comp}, nil
}
