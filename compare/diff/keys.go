package diff

import (
	"bytes"
	"context"
	"iter"
	"math"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/release"
)

// keyComparer compares bucket key.
type keyComparer struct{ *Result }

// compare compares the live keys of all members, each at its revision of the common index. Memory does not grow with
// the number of keys: it handles them in parts, by hash, and reads only the listed rows again.
func (r keyComparer) compare(ctx context.Context, o Options) (b Bucket, err error) {
	b = Bucket{Name: "key", Only: make([]int, len(r.Members))}
	take := r.comparable()
	if len(take) < 2 {
		b.Reason = r.keysIncomparable()
		return b, nil
	}
	if n, same := r.sameRecords(ctx, take); same {
		b.Equal, b.Compared = release.Yes, n
		return b, nil
	}
	rows := listedKeys{all: smallest{bound: max(o.MaxRows, o.Places)}, notJudged: smallest{bound: o.MaxRows}}
	parts := r.parts(take, o.MaxMarks)
	for part := range parts {
		m, err := r.mark(ctx, take, part, parts)
		if err != nil {
			return b, err
		}
		for _, i := range take {
			if !m.whole[i] {
				// A key on a damaged page is neither equal nor different.
				b.Reason = "part of bucket key of " + r.Members[i].Label() + " cannot be read"
			}
		}
		b.count(r.groups(take, m), m, &rows)
		rows.all.find(take, m)
		rows.notJudged.find(take, m)
	}
	if b.Reason == "" {
		b.Equal = release.AnswerOf(b.Differ == 0)
	}
	r.places = rows.all.sort()
	b.Rows, err = r.readRows(ctx, take, rows.first(o.MaxRows), o.Values)
	return b, err
}

// KeyRows returns the first rows of bucket key that differ, as many as asked for and as Options.Places has kept. It
// reads only their records.
func (r *Result) KeyRows(ctx context.Context, n int) ([]Row, error) {
	k := keyComparer{r}
	return k.readRows(ctx, k.comparable(), r.places[:min(len(r.places), n)], false)
}

// comparable returns the members whose keys are compared.
func (r keyComparer) comparable() []int {
	return slices.DeleteFunc(r.taking(), func(i int) bool { return r.KeysNotCompared[i] != "" })
}

func (r keyComparer) keysIncomparable() string {
	if len(r.taking()) < 2 {
		return r.tooFew()
	}
	var why []string
	for _, i := range r.taking() {
		if r.KeysNotCompared[i] != "" {
			why = append(why, r.KeysNotCompared[i])
		}
	}
	return "no two members can be compared at one index: " + strings.Join(why, "; ")
}

// sameRecords reports whether the members have identical records, each up to its revision of the common index,
// according to their content hashes. For a member that has applied more, it reads and subtracts the records above. If
// so, no key comparison is needed. It also returns the number of live keys, known from a member at its current
// revision.
func (r keyComparer) sameRecords(ctx context.Context, take []int) (keys int, same bool) {
	common := ""
	for _, i := range take {
		m := r.Members[i]
		if m.DB.Hashes["key"] == "" || m.DB.KVDamaged || r.Revs[i] != r.Revs[take[0]] {
			return 0, false
		}
		if r.Revs[i] == m.CurrentRevision() {
			common, keys = m.DB.Hashes["key"], int(m.DB.KV.LiveKeys)
		}
	}
	for _, i := range take {
		if hash, ok := r.hashAt(ctx, i, common); !ok || hash != common {
			return 0, false
		}
	}
	return keys, common != ""
}

// hashAt returns the content hash of a member at its revision of the common index. ok is false if too many records
// above would have to be read twice.
func (r keyComparer) hashAt(ctx context.Context, i int, common string) (hash string, ok bool) {
	m := r.Members[i]
	above := m.CurrentRevision() - r.Revs[i]
	switch {
	case common == "":
		return "", false
	case above == 0:
		return m.DB.Hashes["key"], true
	case m.DB.Content == nil || above > m.DB.KV.Revisions/4:
		return "", false
	}
	hash, err := m.DB.Content.HashUntil(ctx, m.DB.Handle, r.Revs[i])
	return hash, err == nil
}

// parts returns the number of passes needed to keep the marks of one pass within the bound.
func (r keyComparer) parts(take []int, maxMarks int64) uint64 {
	var live int64
	for _, i := range r.distinct(take) {
		live += r.Members[i].DB.KV.LiveKeys
	}
	return uint64(live/maxMarks) + 1
}

// listedKeys are the first keys that differ, and those of them of which the replay judges no record.
type listedKeys struct{ all, notJudged smallest }

// first returns n keys of either at most, in order.
func (l *listedKeys) first(n int) []keyPlaces {
	out := slices.Clone(l.all.kept[:min(len(l.all.kept), n)])
	for _, k := range l.notJudged.kept[:min(len(l.notJudged.kept), n)] {
		at, listed := slices.BinarySearchFunc(out, k.key, func(o keyPlaces, key string) int {
			return strings.Compare(o.key, key)
		})
		if !listed {
			out = slices.Insert(out, at, k)
		}
	}
	return out
}

// count adds one part's keys to the bucket's numbers, and those that differ to the rows.
func (b *Bucket) count(groups []sharing, m *marks, rows *listedKeys) {
	for n, g := range groups {
		if g.found == len(m.live[g.first].at) {
			continue // the earlier groups have all of its keys
		}
		for key, at := range m.live[g.first].at {
			if m.inEarlier(groups[:n], key) {
				continue
			}
			b.Compared++
			w := m.weigh(groups, n, m.live[g.first].list[at], key)
			if w.equal {
				continue
			}
			b.Differ++
			if w.same {
				b.SameContent++
			}
			if w.have == 1 && !m.isOpen(g.first, key) {
				b.Only[g.first]++
			}
			if rows.all.add(key); !w.judged {
				rows.notJudged.add(key)
			}
		}
	}
}

// smallest keeps the first keys in order, up to a bound, so that the listed rows do not depend on the order of a map.
// It has at most twice as many, and sorts when it is full.
type smallest struct {
	bound int
	kept  []keyPlaces
	// limit is the largest key that can still be kept, once more than bound were added.
	limit string
	full  bool
}

// keyPlaces is a key with the revisions of its records by member, 0 if a member does not have it.
type keyPlaces struct {
	key    string
	places []int64
}

func (s *smallest) add(key string) {
	if s.full && key > s.limit {
		return
	}
	if s.kept = append(s.kept, keyPlaces{key: key}); len(s.kept) >= 2*s.bound {
		s.sort()
	}
}

// find looks up the places of the keys that were added since the last call, which are all of one part.
func (s *smallest) find(take []int, m *marks) {
	s.sort()
	for i := range s.kept {
		if k := &s.kept[i]; k.places == nil {
			k.places = make([]int64, len(m.live))
			for _, j := range take {
				mk, _ := m.live[j].get(k.key)
				k.places[j] = mk.at
			}
		}
	}
}

// sort sorts the keys and drops those beyond the bound.
func (s *smallest) sort() []keyPlaces {
	slices.SortFunc(s.kept, func(a, b keyPlaces) int { return strings.Compare(a.key, b.key) })
	if n := len(s.kept); n >= s.bound && n > 0 {
		clear(s.kept[s.bound:])
		s.kept = s.kept[:s.bound]
		s.full, s.limit = true, s.kept[s.bound-1].key
	}
	return s.kept
}

// each calls read for the members in take, in parallel on all cores. It returns the error of ctx.
func each(ctx context.Context, take []int, read func(i int)) error {
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for _, i := range take {
		g.Go(func() error {
			read(i)
			return ctx.Err()
		})
	}
	return g.Wait()
}

// manyRows is the number of listed rows from which the records are read in one pass instead of one by one.
const manyRows = 1000

// readRows reads the records of the listed keys again, in full.
func (r keyComparer) readRows(ctx context.Context, take []int, kept []keyPlaces, values bool) ([]Row, error) {
	if len(kept) == 0 {
		return nil, nil
	}
	list := make([]Row, len(kept))
	for n, k := range kept {
		list[n] = Row{Key: []byte(k.key), Cells: make([]*Cell, len(r.Members))}
	}
	err := each(ctx, take, func(i int) {
		if len(kept) >= manyRows {
			r.readInOnePass(ctx, i, kept, list, values)
			return
		}
		for n, k := range kept {
			if at := k.places[i]; at != 0 && ctx.Err() == nil {
				list[n].Cells[i] = r.cell(i, list[n].Key, at, values)
			}
		}
	})
	for n := range list {
		list[n].SameContent = sameContent(take, list[n].Cells)
	}
	return list, err
}

// readInOnePass reads the part of one member's records that has those of the listed keys.
func (r keyComparer) readInOnePass(ctx context.Context, i int, kept []keyPlaces, list []Row, values bool) {
	at := map[int64][]int{}
	first, last := int64(math.MaxInt64), int64(0)
	for n, k := range kept {
		if rev := k.places[i]; rev != 0 {
			at[rev] = append(at[rev], n)
			first, last = min(first, rev), max(last, rev)
		}
	}
	if len(at) == 0 {
		return
	}
	seen := 0
	for rev, err := range r.Members[i].DB.Handle.RevisionsBetween(dumpdb.Rev{Main: first}, dumpdb.Rev{Main: last + 1}) {
		if seen++; seen%4096 == 0 && ctx.Err() != nil {
			return
		}
		if err != nil || rev.Err != nil || rev.Tombstone {
			continue
		}
		for _, n := range at[rev.Main] {
			if bytes.Equal(rev.KV.Key, list[n].Key) {
				list[n].Cells[i] = cellOf(r.Members[i], &rev, values)
			}
		}
	}
}

// cell reads the record of a key at a revision.
func (r keyComparer) cell(i int, key []byte, at int64, values bool) *Cell {
	var c *Cell
	for rev, err := range r.Members[i].DB.Handle.RevisionsBetween(dumpdb.Rev{Main: at}, dumpdb.Rev{Main: at + 1}) {
		if err == nil && rev.Err == nil && !rev.Tombstone && bytes.Equal(rev.KV.Key, key) {
			c = cellOf(r.Members[i], &rev, values)
		}
	}
	return c
}

func cellOf(m *evidence.Member, rev *dumpdb.Revision, values bool) *Cell {
	c := &Cell{Mod: rev.KV.ModRevision, Create: rev.KV.CreateRevision, Version: rev.KV.Version, Lease: rev.KV.Lease,
		Sub: rev.Sub, ValueLen: len(rev.KV.Value), ValueDigest: m.Digest(rev.KV.Value)}
	c.Object, _ = dumpdb.ParseKube(rev.KV.Value)
	c.Object.Raw = nil
	if values {
		c.Value = slices.Clone(rev.KV.Value)
	}
	return c
}

func sameContent(take []int, cells []*Cell) bool {
	first := cells[take[0]]
	for _, i := range take {
		c := cells[i]
		if c == nil || first == nil || c.Lease != first.Lease || c.ValueLen != first.ValueLen ||
			c.ValueDigest != first.ValueDigest {
			return false
		}
	}
	return true
}

// records yields the readable records of a member up to its revision of the common index. It stops when ctx ends.
func (r keyComparer) records(ctx context.Context, i int) iter.Seq[*dumpdb.Revision] {
	return func(yield func(*dumpdb.Revision) bool) {
		n := 0
		for rev, err := range r.Members[i].DB.Handle.Revisions() {
			if n++; n%4096 == 0 && ctx.Err() != nil {
				return
			}
			if err != nil || rev.Err != nil {
				continue
			}
			if rev.Main > r.Revs[i] || !yield(&rev) {
				return
			}
		}
	}
}
