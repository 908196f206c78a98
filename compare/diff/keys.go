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

// keys compares the live keys of all members, each at its revision of the common index. Memory does not grow with their
// number: keys are taken in parts, by hash, and of what differs only the listed rows are read again.
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
				// What a damaged page hides can neither be called different nor equal.
				b.Reason = "part of bucket key of " + r.Members[i].Label() + " can not be read"
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

// comparable lists the members that take part in the comparison of keys.
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

// sameRecords tells whether the members hold the same records down to the last byte, each up to its revision of the
// common index, by the content hashes that reading them gave; of members that have gone on, what they have above is
// read and taken off. Then there is nothing to look for. It returns the number of live keys, which those at the end of
// their history know.
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

// hashAt is the content hash of a member at its revision of the common index. Much that it has above is not worth to be
// read twice.
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

// parts is the number of passes that keeps the marks of one within the bound.
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

// smallest keeps the first keys in order that it is given, up to a bound, so that the listed rows do not depend on the
// order of a map. It holds at most twice as many, and sorts when it is full.
type smallest struct {
	bound int
	kept  []keyPlaces
	// limit is the largest key that can still count, once more than bound were seen.
	limit string
	full  bool
}

// keyPlaces is a key with the revisions of its records by member, 0 where a member does not have it.
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

// sort orders what is kept and drops what is beyond the bound.
func (s *smallest) sort() []keyPlaces {
	slices.SortFunc(s.kept, func(a, b keyPlaces) int { return strings.Compare(a.key, b.key) })
	if n := len(s.kept); n >= s.bound && n > 0 {
		clear(s.kept[s.bound:])
		s.kept = s.kept[:s.bound]
		s.full, s.limit = true, s.kept[s.bound-1].key
	}
	return s.kept
}

// each reads the members in take, as many at a time as there are cores. The error is that of ctx.
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

// manyRows is from how many listed rows on the records are read in one pass and not one by one.
const manyRows = 1000

// fillRows reads the records of the listed keys, now with all there is to say about them.
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

// fillInOnePass reads the records of one member once and keeps those that the listed keys stand at.
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

// cell reads the record that a member's write of a key left at a revision.
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

// records yields the readable records of a member up to its revision of the common index. It ends early when ctx does.
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
