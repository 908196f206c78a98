package diff

import (
	"bytes"
	"context"
	"iter"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// keys compares the live keys of all members, each at its revision of the common index. Memory does not grow with the
// number of keys: it handles them in parts, by hash, and reads only the listed rows again.
func (r *Result) keys(ctx context.Context, o Options) (Bucket, error) {
	b := Bucket{Name: "key", Only: make([]int, len(r.Members))}
	take := r.comparable()
	if len(take) < 2 {
		b.Reason = r.keysIncomparable()
		return b, nil
	}
	if n, same := r.sameRecords(ctx, take); same {
		equal := true
		b.Equal, b.Compared = &equal, n
		return b, nil
	}
	rows := smallest{bound: o.MaxRows}
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
		b.count(take, m, &rows)
	}
	if b.Reason == "" {
		equal := b.Differ == 0
		b.Equal = &equal
	}
	return b, r.fillRows(ctx, &b, take, &rows, o)
}

// comparable returns the members whose keys are compared.
func (r *Result) comparable() []int {
	return slices.DeleteFunc(r.taking(), func(i int) bool { return r.Apart[i] != "" })
}

func (r *Result) keysIncomparable() string {
	if len(r.taking()) < 2 {
		return "fewer than two databases can be read"
	}
	var why []string
	for _, i := range r.taking() {
		if r.Apart[i] != "" {
			why = append(why, r.Apart[i])
		}
	}
	return "no two members can be compared at one index: " + strings.Join(why, "; ")
}

// sameRecords reports whether the members have identical records, each up to its revision of the common index,
// according to their content hashes. For a member that has applied more, it reads and subtracts the records above. If
// so, no key comparison is needed. It also returns the number of live keys, known from a member at its current
// revision.
func (r *Result) sameRecords(ctx context.Context, take []int) (keys int, same bool) {
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
func (r *Result) hashAt(ctx context.Context, i int, common string) (hash string, ok bool) {
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
func (r *Result) parts(take []int, maxMarks int64) uint64 {
	var live int64
	for _, i := range r.distinct(take) {
		live += r.Members[i].DB.KV.LiveKeys
	}
	return uint64(live/maxMarks) + 1
}

// count adds one part's keys to the bucket's numbers, and those that differ to the rows.
func (b *Bucket) count(take []int, m *marks, rows *smallest) {
	for n, i := range take {
		if n > 0 && slices.ContainsFunc(take[:n], func(j int) bool { return m.live[j] == m.live[i] }) {
			continue
		}
		for key := range m.live[i].at {
			if m.inEarlier(take[:n], key) {
				continue
			}
			b.Compared++
			have, same, equal := m.weigh(take, key)
			if equal {
				continue
			}
			b.Differ++
			if same {
				b.SameContent++
			}
			if have == 1 {
				b.Only[i]++
			}
			rows.add(key, take, m)
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

func (s *smallest) add(key string, take []int, m *marks) {
	if s.full && key > s.limit {
		return
	}
	places := make([]int64, len(m.live))
	for _, i := range take {
		mk, _ := m.live[i].get(key)
		places[i] = mk.at
	}
	if s.kept = append(s.kept, keyPlaces{key, places}); len(s.kept) >= 2*s.bound {
		s.sort()
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

// fillRows reads the records of the listed keys again, in full.
func (r *Result) fillRows(ctx context.Context, b *Bucket, take []int, rows *smallest, o Options) error {
	kept := rows.sort()
	list := make([]Row, len(kept))
	for n, k := range kept {
		list[n] = Row{Key: []byte(k.key), Cells: make([]*Cell, len(r.Members))}
	}
	for _, i := range take {
		if len(kept) >= manyRows {
			r.fillInOnePass(ctx, i, kept, list, o.Values)
		}
		for n, k := range kept {
			if err := ctx.Err(); err != nil {
				return err
			}
			if at := k.places[i]; at != 0 && len(kept) < manyRows {
				list[n].Cells[i] = r.cell(i, list[n].Key, at, o.Values)
			}
		}
	}
	for n := range list {
		list[n].SameContent = sameContent(take, list[n].Cells)
	}
	b.Rows = append(b.Rows, list...)
	return nil
}

// fillInOnePass reads the records of one member once and keeps those of the listed keys.
func (r *Result) fillInOnePass(ctx context.Context, i int, kept []keyPlaces, list []Row, values bool) {
	at := map[int64][]int{}
	for n, k := range kept {
		if k.places[i] != 0 {
			at[k.places[i]] = append(at[k.places[i]], n)
		}
	}
	for rev := range r.records(ctx, i) {
		for _, n := range at[rev.Main] {
			if !rev.Tombstone && bytes.Equal(rev.KV.Key, list[n].Key) {
				list[n].Cells[i] = cellOf(r.Members[i], rev, values)
			}
		}
	}
}

// cell reads the record of a key at a revision.
func (r *Result) cell(i int, key []byte, at int64, values bool) *Cell {
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
		ValueLen: len(rev.KV.Value), ValueDigest: m.Digest(rev.KV.Value)}
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
func (r *Result) records(ctx context.Context, i int) iter.Seq[*dumpdb.Revision] {
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
