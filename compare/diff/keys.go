package diff

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// keys compares the live keys of all members, each at its revision of the common index. Memory does not grow with their number:
// keys are taken in parts, by hash, and only what differs is read again.
func (r *Result) keys(ctx context.Context, o Options) (Bucket, error) {
	b := Bucket{Name: "key", Only: make([]int, len(r.Members))}
	take := r.taking()
	if b.Reason = r.keysIncomparable(take); b.Reason != "" {
		return b, nil
	}
	if n, same := r.sameRecords(ctx, take); same {
		equal := true
		b.Equal, b.Compared = &equal, n
		return b, nil
	}
	var rows smallest
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
		differ := b.count(take, m)
		if err := r.nameRows(ctx, take, m, differ, &rows, o.MaxRows); err != nil {
			return b, err
		}
	}
	if b.Reason == "" {
		equal := b.Differ == 0
		b.Equal = &equal
	}
	return b, r.fillRows(ctx, &b, take, rows.keys, o)
}

func (r *Result) keysIncomparable(take []int) string {
	if len(take) < 2 {
		return "fewer than two databases can be read"
	}
	for _, i := range take {
		if m := r.Members[i]; r.Revs[i] < m.CompactRevision() {
			return fmt.Sprintf("%s has compacted revision %d, which belongs to the common index %d", m.Label(), r.Revs[i], r.Common)
		}
	}
	return ""
}

// sameRecords tells whether the members hold the same records down to the last byte, each up to its revision of the common index, by
// the content hashes that reading them gave; of members that have gone on, what they have above is read and taken off. Then there is
// nothing to look for. It returns the number of live keys, which those at the end of their history know.
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

// hashAt is the content hash of a member at its revision of the common index. Much that it has above is not worth to be read twice.
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
	for _, i := range take {
		live += r.Members[i].DB.KV.LiveKeys
	}
	return uint64(live/maxMarks) + 1
}

// count adds one part's keys to the bucket's numbers and returns those that differ.
func (b *Bucket) count(take []int, m *marks) map[keyHash]bool {
	differ := map[keyHash]bool{}
	for n, i := range take {
		for k := range m.live[i] {
			if m.inEarlier(take[:n], k) {
				continue
			}
			b.Compared++
			have, same, equal := m.weigh(take, k)
			if equal {
				continue
			}
			differ[k] = true
			b.Differ++
			if same {
				b.SameContent++
			}
			if have == 1 {
				b.Only[i]++
			}
		}
	}
	return differ
}

// smallest keeps the first keys in order that it is given, up to a bound, so that the listed rows do not depend on hashes.
type smallest struct{ keys []string }

func (s *smallest) add(key string, bound int) {
	at, found := slices.BinarySearch(s.keys, key)
	if found || at >= bound {
		return
	}
	s.keys = slices.Insert(s.keys, at, key)
	s.keys = s.keys[:min(len(s.keys), bound)]
}

// nameRows finds the keys behind the hashes that differ.
func (r *Result) nameRows(ctx context.Context, take []int, m *marks, differ map[keyHash]bool, rows *smallest, bound int) error {
	if len(differ) == 0 {
		return nil
	}
	found := make([]smallest, len(r.Members))
	err := each(ctx, take, func(i int) {
		h := newHasher()
		for rev := range r.records(ctx, i) {
			k := h.key(rev.KV.Key)
			if !differ[k] {
				continue
			}
			if mk, live := m.live[i][k]; live && mk.mod == rev.KV.ModRevision {
				found[i].add(string(rev.KV.Key), bound)
			}
		}
	})
	for i := range found {
		for _, key := range found[i].keys {
			rows.add(key, bound)
		}
	}
	return err
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

// fillRows reads the listed keys of every member once more, now with all there is to say about them.
func (r *Result) fillRows(ctx context.Context, b *Bucket, take []int, keys []string, o Options) error {
	at := make(map[string]int, len(keys))
	for n, k := range keys {
		at[k] = n
		b.Rows = append(b.Rows, Row{Key: []byte(k), Cells: make([]*Cell, len(r.Members))})
	}
	if len(keys) == 0 {
		return ctx.Err()
	}
	err := each(ctx, take, func(i int) {
		for rev := range r.records(ctx, i) {
			n, listed := at[string(rev.KV.Key)]
			if !listed {
				continue
			}
			if rev.Tombstone {
				b.Rows[n].Cells[i] = nil
				continue
			}
			c := &Cell{Mod: rev.KV.ModRevision, Create: rev.KV.CreateRevision, Version: rev.KV.Version, Lease: rev.KV.Lease,
				ValueLen: len(rev.KV.Value), ValueSHA: Digest(rev.KV.Value)}
			if o.Values {
				c.Value = slices.Clone(rev.KV.Value)
			}
			b.Rows[n].Cells[i] = c
		}
	})
	for n := range b.Rows {
		b.Rows[n].SameContent = sameContent(take, b.Rows[n].Cells)
	}
	return err
}

func sameContent(take []int, cells []*Cell) bool {
	first := cells[take[0]]
	for _, i := range take {
		c := cells[i]
		if c == nil || first == nil || c.Lease != first.Lease || c.ValueLen != first.ValueLen || strings.Compare(c.ValueSHA, first.ValueSHA) != 0 {
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
