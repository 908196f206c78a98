package dumpdb

import (
	"context"
	"math"
	"math/bits"
	"slices"

	"github.com/zeebo/xxh3"
)

// windowHash hashes the records of bucket key that count between a compact revision and a revision. All records above
// the compact revision count. The first pass hashes them and finds the newest record of each key. A second pass reads
// the records at or below the compact revision and adds those that count.
type windowHash struct {
	db        *DB
	comp, rev int64
	crc, set  bool // which sums are wanted
	// keys marks the records at or below the compact revision that count: at rev for crc, at comp for set.
	keys      *keyResult
	low, high sums
	// rest are the records at or below the compact revision that do not count; only for set.
	rest sums
	bad  error // of the first record that does not decode
}

// sums are the sums of some records: the server's CRC in bucket order, and the order-independent sum of the digests of
// the records.
type sums struct {
	crc   crcSum
	set   sum128
	count uint64
}

func (s *sums) join(o *sums) {
	s.crc.join(o.crc)
	s.set.add(o.set)
	s.count += o.count
}

// sum128 adds digests of 128 bits modulo 2^128. It finds damage and drift, much faster than a cryptographic sum. It
// does not protect against forgery.
type sum128 [2]uint64

func (s *sum128) add(o sum128) {
	var c uint64
	s[0], c = bits.Add64(s[0], o[0], 0)
	s[1], _ = bits.Add64(s[1], o[1], c)
}

func (s *sum128) sub(o sum128) {
	var c uint64
	s[0], c = bits.Sub64(s[0], o[0], 0)
	s[1], _ = bits.Sub64(s[1], o[1], c)
}

// record adds the digest of one row. A tombstone's digest is inverted, so that its mark cannot be mistaken for a byte
// of a value.
func (s *sum128) record(row []byte, tombstone bool) {
	d := xxh3.Hash128(row)
	o := sum128{d.Lo, d.Hi}
	if tombstone {
		o[0], o[1] = ^o[0], ^o[1]
	}
	s.add(o)
}

func newWindowHash(db *DB, comp, rev int64) *windowHash {
	return &windowHash{db: db, comp: comp, rev: rev}
}

// run makes both passes. It returns no hash if there is damage.
func (h *windowHash) run(ctx context.Context) error {
	b, ok := h.db.find("key")
	if !ok {
		return damagesOrNil(h.db.rootDamage)
	}
	end := span{}
	if h.rev < math.MaxInt64 {
		end.end = Rev{Main: h.rev + 1}.Bytes()
	}
	used := newBitmap(h.db.filePages())
	check := &keyCheck{db: h.db, comp: h.comp, atRev: h.crc, atComp: h.set, bound: h.db.keyBound()}
	s, damage, err := h.db.feed(ctx, b, end, slices.Clone(used),
		func() sink { return &keySink{hash: h.fresh(), keys: check.pass(keyPart{})} })
	if err = joinErrs(err, damagesOrNil(damage)); err != nil {
		return err
	}
	pass := s.(*keySink)
	*h = *pass.hash
	if h.bad != nil {
		return h.bad
	}
	if h.keys, err = check.complete(ctx, pass.keys, b, end, used); err != nil {
		return err
	}
	return h.second(ctx, b)
}

// fresh returns h as it was before any pass.
func (h *windowHash) fresh() *windowHash {
	n := newWindowHash(h.db, h.comp, h.rev)
	n.crc, n.set = h.crc, h.set
	return n
}

func (h *windowHash) second(ctx context.Context, b *bucket) error {
	if h.bad != nil || h.comp < 0 {
		return h.bad
	}
	end := span{end: Rev{Main: min(h.comp, h.rev) + 1}.Bytes()}
	s, damage, err := h.db.feed(ctx, b, end, newBitmap(h.db.filePages()), func() sink { return &secondPass{h: h} })
	if err = joinErrs(err, damagesOrNil(damage)); err == nil {
		h.low, h.rest = s.(*secondPass).low, s.(*secondPass).rest
	}
	return err
}

// serverHash joins both sums after the bucket name, with which the server starts.
func (h *windowHash) serverHash() uint32 {
	var c crcSum
	c.write([]byte("key"))
	c.join(h.low.crc)
	c.join(h.high.crc)
	return c.sum
}
