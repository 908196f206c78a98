package diff

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// mark is what the first pass keeps of a live key: the revisions of its record and of its creation, and digests of its
// revisions, with the place of its record in the transaction, and of its content (value and lease).
type mark struct {
	at, create       int64
	history, content uint64
}

func markOf(at dumpdb.Rev, kv *dumpdb.KeyValue) mark {
	var b [32]byte
	binary.LittleEndian.PutUint64(b[:8], uint64(kv.CreateRevision))
	binary.LittleEndian.PutUint64(b[8:16], uint64(kv.Version))
	binary.LittleEndian.PutUint64(b[16:24], uint64(kv.ModRevision))
	binary.LittleEndian.PutUint64(b[24:], uint64(at.Sub)) // HashKV of a server covers it, too
	return mark{at: at.Main, create: kv.CreateRevision, history: xxh3.Hash(b[:]),
		content: xxh3.HashSeed(kv.Value, uint64(kv.Lease))}
}

// liveKeys are the marks of one database's live keys. They are in a separate list, so that overwriting a key costs only
// a lookup. Places of deleted keys are reused.
type liveKeys struct {
	at   map[string]int32
	list []mark
	free []int32
}

func newLiveKeys(n int64) *liveKeys {
	return &liveKeys{at: make(map[string]int32, n), list: make([]mark, 0, n)}
}

func (l *liveKeys) get(key string) (mark, bool) {
	i, ok := l.at[key]
	if !ok {
		return mark{}, false
	}
	return l.list[i], true
}

func (l *liveKeys) put(key []byte, m mark) {
	if i, ok := l.at[string(key)]; ok {
		l.list[i] = m
		return
	}
	l.add(key, m)
}

// add is put for a key that is not there.
func (l *liveKeys) add(key []byte, m mark) {
	switch n := len(l.free); {
	case n > 0:
		l.list[l.free[n-1]], l.at[string(key)] = m, l.free[n-1]
		l.free = l.free[:n-1]
	default:
		l.at[string(key)] = int32(len(l.list)) //nolint:gosec // MaxMarks bounds it
		l.list = append(l.list, m)
	}
}

func (l *liveKeys) remove(key []byte) {
	if i, ok := l.at[string(key)]; ok {
		delete(l.at, string(key))
		l.free = append(l.free, i)
	}
}

// marks are the live keys of one part, by member position. Members with the same records share theirs.
type marks struct {
	live []*liveKeys
	// whole is false if damage hides some of a member's keys. hidden is then the highest revision that it may hide.
	whole  []bool
	hidden []int64
}

// mark makes the first pass over the members in take, for the keys of one part out of parts.
func (r keyComparer) mark(ctx context.Context, take []int, part, parts uint64) (*marks, error) {
	m := &marks{live: make([]*liveKeys, len(r.Members)), whole: make([]bool, len(r.Members)),
		hidden: make([]int64, len(r.Members))}
	err := each(ctx, r.distinct(take), func(i int) {
		if m.whole[i] = true; parts == 1 && r.markNewest(ctx, m, i, newestFirst) {
			return
		}
		m.live[i] = newLiveKeys(r.Members[i].DB.KV.LiveKeys / int64(parts))
		r.markMember(ctx, m, i, part, parts)
	})
	for _, i := range take {
		as := r.sameAs(take, i)
		m.live[i], m.whole[i], m.hidden[i] = m.live[as], m.whole[as], m.hidden[as]
	}
	return m, err
}

func (r keyComparer) markMember(ctx context.Context, m *marks, i int, part, parts uint64) {
	n, live := 0, m.live[i]
	for rev, err := range r.Members[i].DB.Handle.Revisions() {
		if n++; n%4096 == 0 && ctx.Err() != nil {
			return
		}
		switch {
		case err != nil || rev.Err != nil:
			m.whole[i] = false
			m.hidden[i] = max(m.hidden[i], hiddenBy(rev, err))
		case rev.Main > r.Revs[i]:
			return
		case parts > 1 && xxh3.Hash(rev.KV.Key)%parts != part:
		case rev.Tombstone:
			live.remove(rev.KV.Key)
		default:
			live.put(rev.KV.Key, markOf(rev.Rev, &rev.KV))
		}
	}
}

// hiddenBy returns the highest revision that a record which does not decode has, or that damage hides.
func hiddenBy(rev dumpdb.Revision, err error) int64 {
	var d *dumpdb.DamageError
	switch {
	case err == nil && rev.Main > 0:
		return rev.Main
	case errors.As(err, &d):
		if _, to := d.Revisions(); to.Main > 0 {
			return to.Main
		}
	}
	return math.MaxInt64
}

// isOpen reports whether damage may hide the newest record that a member has of a key.
func (m *marks) isOpen(i int, key string) bool {
	if m.whole[i] {
		return false
	}
	mk, ok := m.live[i].get(key)
	return !ok || mk.at <= m.hidden[i]
}

// newestFirst is how many revisions a stretch has where the newest ones are read first. The next one has twice as many
// where that were few records.
const newestFirst = 1 << 15

// markNewest reads a member from its newest records on, until all of its live keys are known: the older records of keys
// that change often need not be read. It is false for a member that has to be read in full, as it is to be compared at
// an earlier revision, is damaged or has deleted so many keys that these would take more memory than the others.
func (r keyComparer) markNewest(ctx context.Context, m *marks, i int, stretch int64) bool {
	db := r.Members[i].DB
	if db.KVDamaged || r.Revs[i] != r.Members[i].CurrentRevision() {
		return false
	}
	nl := newestLive{liveKeys: newLiveKeys(db.KV.LiveKeys), most: max(db.KV.LiveKeys, newestFirst)}
	for end, size := r.Revs[i]+1, stretch; end > 0 && nl.alive < db.KV.LiveKeys; {
		from := max(end-size, 0)
		records, ok := nl.read(ctx, db.Handle, from, end)
		if !ok {
			return false
		}
		if end = from; records < stretch/2 {
			size *= 2
		}
	}
	m.live[i] = nl.withoutDeleted()
	return true
}

// newestLive are live keys that are read from the newest records on. A deleted key has a mark, too, with the negative
// revision of its tombstone.
type newestLive struct {
	*liveKeys
	// alive and deleted count the keys, most is how many deleted ones are kept at most.
	alive, deleted, most int64
}

// read takes the records of a stretch of revisions, below which nothing was read yet, and counts them. ok is false
// where they cannot be read, or where too many keys are deleted.
func (n *newestLive) read(ctx context.Context, db *dumpdb.DB, from, end int64) (seen int64, ok bool) {
	for rev, err := range db.RevisionsBetween(dumpdb.Rev{Main: from}, dumpdb.Rev{Main: end}) {
		if seen++; err != nil || rev.Err != nil || n.deleted > n.most || seen%4096 == 0 && ctx.Err() != nil {
			return seen, false
		}
		at, known := n.at[string(rev.KV.Key)]
		if known && max(n.list[at].at, -n.list[at].at) >= end {
			continue
		}
		mk := mark{at: -rev.Main}
		if !rev.Tombstone {
			mk = markOf(rev.Rev, &rev.KV)
		}
		if n.count(mk, 1); !known {
			n.add(rev.KV.Key, mk)
			continue
		}
		n.count(n.list[at], -1)
		n.list[at] = mk
	}
	return seen, true
}

func (n *newestLive) count(mk mark, by int64) {
	if mk.at < 0 {
		n.deleted += by
		return
	}
	n.alive += by
}

func (n *newestLive) withoutDeleted() *liveKeys {
	for key, i := range n.at {
		if n.list[i].at < 0 {
			delete(n.at, key)
			n.free = append(n.free, i)
		}
	}
	return n.liveKeys
}

// sameAs returns the first member in take with records identical to those of member i, according to their content
// hashes; i itself if there is no earlier one.
func (r keyComparer) sameAs(take []int, i int) int {
	own := r.Members[i]
	for _, j := range take {
		o := r.Members[j]
		if j == i || own.DB.KVDamaged || o.DB.KVDamaged || own.DB.Hashes["key"] == "" {
			break
		}
		if o.DB.Hashes["key"] == own.DB.Hashes["key"] && r.Revs[j] == r.Revs[i] {
			return j
		}
	}
	return i
}

// distinct returns the members in take that have to be read.
func (r keyComparer) distinct(take []int) []int {
	var out []int
	for _, i := range take {
		if r.sameAs(take, i) == i {
			out = append(out, i)
		}
	}
	return out
}

// sharing are members with the same records: the first of them, how many they are, and how many of their keys were
// found when those of other members were weighed. judged is the revision above which the replay judges their records.
type sharing struct {
	first, n, found int
	judged          int64
}

func (r keyComparer) groups(take []int, m *marks) (out []sharing) {
	for _, i := range take {
		g := slices.IndexFunc(out, func(g sharing) bool { return m.live[g.first] == m.live[i] })
		if g < 0 {
			out = append(out, sharing{first: i, n: 1, judged: r.judged[i]})
			continue
		}
		out[g].n++
		out[g].judged = min(out[g].judged, r.judged[i])
	}
	return out
}

func (m *marks) inEarlier(groups []sharing, key string) bool {
	for _, g := range groups {
		if _, ok := m.live[g.first].at[key]; ok {
			return true
		}
	}
	return false
}

// weighed is a key over all members. have counts those that have it. same is true if all members have the same content,
// equal if their revisions are the same too; judged if the replay judges one of the records.
type weighed struct {
	have                int
	same, equal, judged bool
}

// weigh compares a key, which groups[at] has with a mark and none before it has. Members whose newest record of the key
// damage may hide are left out.
func (m *marks) weigh(groups []sharing, at int, mk mark, key string) weighed {
	w := weighed{same: true, equal: true}
	var first mark
	for n, g := range groups {
		if m.isOpen(g.first, key) {
			continue
		}
		own, ok := mk, n >= at
		if n > at {
			if own, ok = m.live[g.first].get(key); ok {
				groups[n].found++
			}
		}
		if !ok {
			w.same, w.equal = false, false
			continue
		}
		if w.have == 0 {
			first = own
		}
		w.have += g.n
		w.same = w.same && own.content == first.content
		w.equal = w.equal && own == first
		w.judged = w.judged || own.at > g.judged
	}
	return w
}
