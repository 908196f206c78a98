package dumpdb

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
)

const (
	metaMagic   = 0xED0CDAED
	metaVersion = 2
	metaSize    = 64
	headerSize  = 16
	elemSize    = 16
	minPageSize = 512
	maxPageSize = 1 << 17
	// noFreelist is the freelist page in a meta page if the freelist is not stored.
	noFreelist = math.MaxUint64
)

var le = binary.LittleEndian

// readMetas finds both meta pages. The position of the second depends on the page size, which only a valid meta page
// shows for certain. So if the first is not valid, the second is searched at every power of two.
func readMetas(f *file) []Meta {
	m0 := readMeta(f, 0, 0)
	if m0.Valid || plausiblePageSize(m0.PageSize) {
		m1 := readMeta(f, 1, int64(m0.PageSize))
		if m0.Valid || m1.Valid {
			return []Meta{m0, m1}
		}
	}
	for size := int64(minPageSize); size <= maxPageSize; size <<= 1 {
		if m1 := readMeta(f, 1, size); m1.Valid && int64(m1.PageSize) == size {
			return []Meta{m0, m1}
		}
	}
	return []Meta{m0, readMeta(f, 1, 4096)}
}

func plausiblePageSize(n uint32) bool {
	return n >= minPageSize && n <= maxPageSize && n&(n-1) == 0
}

func readMeta(f *file, page uint64, off int64) Meta {
	m := Meta{Page: page, Offset: off}
	b := make([]byte, headerSize+metaSize)
	if n, err := f.read(b, off); n < len(b) {
		m.Problem = fmt.Sprintf("cannot be read: %v", err)
		return m
	}
	h := b[headerSize:]
	m.PageSize, m.Root, m.Freelist = le.Uint32(h[8:]), le.Uint64(h[16:]), le.Uint64(h[32:])
	m.HighWater, m.Txid, m.Checksum = le.Uint64(h[40:]), le.Uint64(h[48:]), le.Uint64(h[56:])
	sum := fnv.New64a()
	sum.Write(h[:56])
	m.Computed = sum.Sum64()
	m.Problem = metaProblem(h, &m)
	m.Valid = m.Problem == ""
	if m.Valid {
		m.HeaderProblem = metaHeaderProblem(b, page)
	}
	return m
}

func metaProblem(h []byte, m *Meta) string {
	switch magic, version := le.Uint32(h), le.Uint32(h[4:]); {
	case magic != metaMagic:
		return fmt.Sprintf("the magic is %08x, not %08x", magic, uint32(metaMagic))
	case version != metaVersion:
		return fmt.Sprintf("the format version is %d, not %d", version, metaVersion)
	case m.Checksum != m.Computed:
		return fmt.Sprintf("the checksum is %016x, computed %016x", m.Checksum, m.Computed)
	case !plausiblePageSize(m.PageSize):
		return fmt.Sprintf("the page size %d is not a power of two from %d to %d", m.PageSize, minPageSize, maxPageSize)
	case m.Root >= m.HighWater:
		return fmt.Sprintf("the root page %d is not below the high-water mark %d", m.Root, m.HighWater)
	}
	return ""
}

// metaHeaderProblem checks the page header, which the checksum does not cover and bbolt does not read.
func metaHeaderProblem(b []byte, page uint64) string {
	if id := le.Uint64(b); id != page {
		return fmt.Sprintf("the page header says page %d", id)
	}
	if flags := le.Uint16(b[8:]); flags != flagMeta {
		return fmt.Sprintf("the page header says type %s", pageType(flags))
	}
	return ""
}

// metaDamage returns what is wrong with each of the meta pages.
func (db *DB) metaDamage() (out []*DamageError) {
	for _, m := range db.metas {
		kind, problem := DamageMeta, m.Problem
		if m.Valid {
			kind, problem = DamageMetaHeader, m.HeaderProblem
		}
		if problem != "" {
			out = append(out, &DamageError{Place: Place{m.Page, m.Offset}, Kind: kind, Expected: "a valid meta page",
				Observed: problem})
		}
	}
	return out
}

// InvalidMeta returns the damage of a meta page that is not valid, nil if both are. It may be the newer one: then all
// that is read is the state of one transaction earlier.
func (db *DB) InvalidMeta() *DamageError {
	for _, d := range db.metaDamage() {
		if d.Kind == DamageMeta {
			return d
		}
	}
	return nil
}

// pickMeta returns the index of the meta page that bbolt uses, -1 if none is valid.
func pickMeta(metas []Meta) int {
	used := -1
	for i, m := range metas {
		if m.Valid && (used < 0 || m.Txid > metas[used].Txid) {
			used = i
		}
	}
	return used
}
