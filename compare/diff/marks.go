package diff

import (
	"context"
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// keyHash stands for a key: 128 bits, so that two of a billion keys meet by chance once in 10^20.
type keyHash struct{ hi, lo uint64 }

// mark is what is kept of a live key in the first pass: its mod revision, and digests of its other revisions and of its
// content (value and lease).
type mark struct {
	mod              int64
	history, content uint64
}

// hasher computes key hashes and marks; it is for one goroutine.
type hasher struct {
	second, content *xxhash.Digest
	buf             [16]byte
}

// secondSeed makes the second half of a key's hash independent of the first.
const secondSeed = 0x9e3779b97f4a7c15

func newHasher() *hasher {
	return &hasher{second: xxhash.NewWithSeed(secondSeed), content: xxhash.New()}
}

func (h *hasher) key(k []byte) keyHash {
	h.second.ResetWithSeed(secondSeed)
	_, _ = h.second.Write(k)
	return keyHash{hi: xxhash.Sum64(k), lo: h.second.Sum64()}
}

func (h *hasher) mark(mod, create, version, lease int64, value []byte) mark {
	binary.LittleEndian.PutUint64(h.buf[:8], uint64(create))
	binary.LittleEndian.PutUint64(h.buf[8:], uint64(version))
	m := mark{mod: mod, history: xxhash.Sum64(h.buf[:])}
	binary.LittleEndian.PutUint64(h.buf[:8], uint64(lease))
	h.content.Reset()
	_, _ = h.content.Write(h.buf[:8])
	_, _ = h.content.Write(value)
	m.content = h.content.Sum64()
	return m
}

// marks are the live keys of one part, by member position.
type marks struct {
	live []map[keyHash]mark
	// whole is false where damage hid some of a member's keys.
	whole []bool
}

// mark makes the first pass over the members in take, for the keys of one part out of parts.
func (r *Result) mark(ctx context.Context, take []int, part, parts uint64) (*marks, error) {
	m := &marks{live: make([]map[keyHash]mark, len(r.Members)), whole: make([]bool, len(r.Members))}
	return m, each(ctx, take, func(i int) {
		m.live[i] = make(map[keyHash]mark, r.Members[i].DB.KV.LiveKeys/int64(parts))
		m.whole[i] = true
		r.markMember(ctx, m, i, part, parts)
	})
}

func (r *Result) markMember(ctx context.Context, m *marks, i int, part, parts uint64) {
	h, n := newHasher(), 0
	for rev, err := range r.Members[i].DB.Handle.Revisions() {
		if n++; n%4096 == 0 && ctx.Err() != nil {
			return
		}
		if err != nil || rev.Err != nil {
			m.whole[i] = false
			continue
		}
		if rev.Main > r.Revs[i] {
			return
		}
		k := h.key(rev.KV.Key)
		if k.hi%parts != part {
			continue
		}
		if rev.Tombstone {
			delete(m.live[i], k)
			continue
		}
		m.live[i][k] = h.mark(rev.KV.ModRevision, rev.KV.CreateRevision, rev.KV.Version, rev.KV.Lease, rev.KV.Value)
	}
}

func (m *marks) inEarlier(members []int, k keyHash) bool {
	for _, i := range members {
		if _, ok := m.live[i][k]; ok {
			return true
		}
	}
	return false
}

// weigh counts the members that have a key and tells whether all have the same content, and whether all is equal, revisions too.
func (m *marks) weigh(take []int, k keyHash) (have int, same, equal bool) {
	var first mark
	same, equal = true, true
	for _, i := range take {
		mk, ok := m.live[i][k]
		if !ok {
			continue
		}
		if have++; have == 1 {
			first = mk
			continue
		}
		same = same && mk.content == first.content
		equal = equal && mk == first
	}
	all := have == len(take)
	return have, same && all, equal && all
}
