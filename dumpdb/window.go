package dumpdb

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"math/bits"
)

// windowHash hashes the records of bucket key as they count between a compact revision and a revision. What lies above the
// compact revision always counts and is hashed in the first pass, which also finds the newest record of each key; a
// second pass reads only what lies at or below the compact revision and takes from it what counts.
type windowHash struct {
	db        *DB
	comp, rev int64
	crc, sha  bool               // which sums are wanted
	atRev     map[keyHash]newest // newest record of each key at rev
	atComp    map[keyHash]newest // and at comp
	low, high sums
}

// newest is the newest record of a key so far.
type newest struct {
	rev       Rev
	tombstone bool
}

// sums of a stretch of records: the server's CRC in bucket order, and the sum of the sha256 of each record, which needs no order.
type sums struct {
	crc   crcSum
	sha   sum256
	count uint64
}

func (s *sums) join(o *sums) {
	s.crc.join(o.crc)
	s.sha.add(&o.sha)
	s.count += o.count
}

// sum256 adds up digests modulo 2^256.
type sum256 [4]uint64

func (s *sum256) add(o *sum256) {
	var c uint64
	for i := range s {
		s[i], c = bits.Add64(s[i], o[i], c)
	}
}

// record adds the digest of one row; a tombstone's digest is inverted, so that its mark can not pass for a value byte.
func (s *sum256) record(row []byte, tombstone bool) {
	d := sha256.Sum256(row)
	var o sum256
	for i := range o {
		o[i] = binary.LittleEndian.Uint64(d[i*8:])
		if tombstone {
			o[i] = ^o[i]
		}
	}
	s.add(&o)
}

// run makes both passes. Any damage ends it: half a hash is none.
func (h *windowHash) run(ctx context.Context) error {
	b, ok := h.db.find("key")
	if !ok {
		return damagesOrNil(h.db.rootDamage)
	}
	end := span{}
	if h.rev < math.MaxInt64 {
		end.end = Rev{Main: h.rev + 1}.Bytes()
	}
	first, damage, err := h.db.feed(ctx, b, end, newBitmap(h.db.filePages()), func() sink { return newFirstPass(h) })
	if err = joinErrs(err, damagesOrNil(damage)); err != nil {
		return err
	}
	fp := first.(*firstPass)
	if fp.bad != nil {
		return fp.bad
	}
	h.high, h.atRev, h.atComp = fp.high, fp.atRev, fp.atComp
	return h.second(ctx, b)
}

func (h *windowHash) second(ctx context.Context, b *bucket) error {
	if h.comp < 0 {
		return nil
	}
	end := span{end: Rev{Main: h.comp + 1}.Bytes()}
	s, damage, err := h.db.feed(ctx, b, end, newBitmap(h.db.filePages()), func() sink { return &secondPass{h: h, empty: !anyLive(h.atRev)} })
	if err = joinErrs(err, damagesOrNil(damage)); err == nil {
		h.low = s.(*secondPass).low
	}
	return err
}

func anyLive(m map[keyHash]newest) bool {
	for _, n := range m {
		if !n.tombstone {
			return true
		}
	}
	return false
}

// serverHash joins both stretches behind the bucket name, as the server begins.
func (h *windowHash) serverHash() uint32 {
	var c crcSum
	c.write([]byte("key"))
	c.join(h.low.crc)
	c.join(h.high.crc)
	return c.sum
}
