// Package diff holds the content of several databases against each other, bucket by bucket, at the highest index that all
// of them have applied.
//
// What legally differs between healthy members is left out: page layout, progress of a compaction, the salt of password
// hashes up to 3.4, lease TTLs (each server raises them to its own minimum), meta/consistent_index, term and confState.
package diff

import (
	"context"
	"fmt"
	"runtime"
	"sort"

	"golang.org/x/sync/errgroup"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
)

// Result is the comparison of all members.
type Result struct {
	Members []*evidence.Member
	// Common is the highest index that all compared members have applied as to their keys, 0 when unknown. The other buckets are
	// held to the lowest consistent index, which up to 3.4 can be lower.
	Common uint64
	lowest uint64
	// Revs are the members' revisions at Common, 0 for members left out.
	Revs []int64
	// Compact is the highest compact revision among the members.
	Compact int64
	// LeftOut says which members took no part, by position, and why.
	LeftOut map[int]string
	Note    string
	Buckets []Bucket
}

// Bucket is one bucket over all members.
type Bucket struct {
	Name string
	// Equal is nil when it could not be compared; Reason says why.
	Equal  *bool
	Reason string
	// Compared counts distinct row keys. Only counts rows by member that no other has; Differ all rows that differ, and
	// SameContent those of them that differ in revision numbers only.
	Compared, Differ, SameContent int
	Only                          []int
	Rows                          []Row
}

// Row is a row that differs; Cells are by member, nil where the member does not have it.
type Row struct {
	Key   []byte
	Cells []*Cell
	// SameContent is true when the cells differ in revision numbers only.
	SameContent bool
}

// Cell is one member's version of a row: for bucket key its revisions and value, else a description in Text.
type Cell struct {
	Mod, Create, Version, Lease int64
	ValueLen                    int
	ValueSHA                    string
	Value                       []byte
	Text                        string
	hash                        uint64
}

// Options tune Run.
type Options struct {
	// MaxRows bounds the rows kept per bucket; all are counted. 0 means 50.
	MaxRows int
	// Values keeps the values of differing rows.
	Values bool
}

// Find returns the bucket of that name, nil when it was not compared.
func (r *Result) Find(name string) *Bucket {
	for i := range r.Buckets {
		if r.Buckets[i].Name == name {
			return &r.Buckets[i]
		}
	}
	return nil
}

// Run compares the databases of all members. rp may be nil when there is no log; dbs are then aligned by revision.
func Run(ctx context.Context, members []*evidence.Member, rp *replay.Result, o Options) (*Result, error) {
	if o.MaxRows == 0 {
		o.MaxRows = 50
	}
	r := &Result{Members: members, Revs: make([]int64, len(members)), LeftOut: map[int]string{}, Compact: -1}
	r.window(rp)
	key, err := r.keys(ctx, o)
	if err != nil {
		return nil, err
	}
	r.Buckets = append(r.Buckets, key)
	for _, b := range smallBuckets {
		r.Buckets = append(r.Buckets, r.small(b, rp, o))
	}
	return r, nil
}

// taking lists the positions of members that take part.
func (r *Result) taking() []int {
	var out []int
	for i := range r.Members {
		if r.LeftOut[i] == "" {
			out = append(out, i)
		}
	}
	return out
}

// window finds the common index and each member's revision there.
func (r *Result) window(rp *replay.Result) {
	for i, m := range r.Members {
		switch {
		case !m.HasDB():
			r.LeftOut[i] = "no database that opens"
		case m.DB.KV == nil:
			r.LeftOut[i] = "bucket key could not be read"
		}
	}
	take := r.taking()
	if len(take) == 0 {
		return
	}
	same := true
	r.Common = r.Members[take[0]].AppliedMin
	for _, i := range take {
		m := r.Members[i]
		same = same && m.AppliedMin == r.Members[take[0]].AppliedMin
		r.Common = min(r.Common, m.AppliedMin)
		r.Compact = max(r.Compact, m.CompactRevision())
	}
	for _, i := range take {
		m := r.Members[i]
		switch {
		case same || m.AppliedMin == r.Common:
			r.Revs[i] = m.CurrentRevision()
		case rp != nil && rp.Members[i].Checked && rp.Members[i].RevisionAt > 0:
			r.Revs[i] = rp.Members[i].RevisionAt
		}
	}
	r.raise(take, rp)
	r.fillByRevision(take)
}

// raise goes on to the index up to which the replay shows that all members have done what the log asks of their keys.
func (r *Result) raise(take []int, rp *replay.Result) {
	r.lowest = r.Common
	if rp == nil || rp.KeyCommon <= r.Common {
		return
	}
	for _, i := range take {
		if !rp.Members[i].Checked || rp.Members[i].RevisionAt == 0 {
			return
		}
	}
	r.Common = rp.KeyCommon
	for _, i := range take {
		r.Revs[i] = rp.Members[i].RevisionAt
	}
}

// fillByRevision: a member whose revision at the common index the log does not tell is taken at the lowest current
// revision, which is right as long as the histories agree.
func (r *Result) fillByRevision(take []int) {
	lowest := r.Members[take[0]].CurrentRevision()
	for _, i := range take {
		lowest = min(lowest, r.Members[i].CurrentRevision())
	}
	for _, i := range take {
		if r.Revs[i] == 0 {
			r.Revs[i] = min(lowest, r.Members[i].CurrentRevision())
			r.Note = "aligned by revision, because the logs do not tell which revision belongs to the common index"
		}
	}
}

// keys compares the live keys of all members, each at its revision of the common index.
func (r *Result) keys(ctx context.Context, o Options) (Bucket, error) {
	b := Bucket{Name: "key", Only: make([]int, len(r.Members))}
	take := r.taking()
	if len(take) < 2 {
		b.Reason = "fewer than two databases can be read"
		return b, nil
	}
	for _, i := range take {
		if m := r.Members[i]; r.Revs[i] < m.CompactRevision() {
			b.Reason = fmt.Sprintf("%s has compacted revision %d, which belongs to the common index %d", m.Label(), r.Revs[i], r.Common)
			return b, nil
		}
	}
	table, damaged, err := r.table(ctx, take)
	if err != nil {
		return b, err
	}
	names := make([]string, 0, len(table))
	for k := range table {
		names = append(names, k)
	}
	sort.Strings(names)
	b.Compared = len(names)
	for _, k := range names {
		b.weigh(take, Row{Key: []byte(k), Cells: table[k]}, o.MaxRows)
	}
	equal := b.Differ == 0
	b.Equal = &equal
	if damaged != "" {
		// What a damaged page hides can neither be called different nor equal.
		b.Equal, b.Reason = nil, "part of bucket key of "+damaged+" can not be read"
	}
	return b, r.fillValues(ctx, &b, o)
}

// table reads the live keys of the members side by side and lines them up; damaged names a member of which damage hid some.
func (r *Result) table(ctx context.Context, take []int) (table map[string][]*Cell, damaged string, err error) {
	live := make([]map[string]*Cell, len(r.Members))
	whole := make([]bool, len(r.Members))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for _, i := range take {
		g.Go(func() (err error) {
			live[i], whole[i], err = r.liveKeys(gctx, i)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, "", err
	}
	table = make(map[string][]*Cell, len(live[take[0]]))
	for _, i := range take {
		if !whole[i] {
			damaged = r.Members[i].Label()
		}
		for k, c := range live[i] {
			cells := table[k]
			if cells == nil {
				cells = make([]*Cell, len(r.Members))
				table[k] = cells
			}
			cells[i] = c
		}
		live[i] = nil
	}
	return table, damaged, nil
}

// liveKeys reads the live keys of one member at its revision of the common index; false when damage hid some.
func (r *Result) liveKeys(ctx context.Context, i int) (map[string]*Cell, bool, error) {
	live, whole, n := map[string]*Cell{}, true, 0
	for rev, err := range r.Members[i].DB.Handle.Revisions() {
		if n++; n%4096 == 0 && ctx.Err() != nil {
			return nil, false, ctx.Err()
		}
		if err != nil || rev.Err != nil {
			whole = false
			continue
		}
		if rev.Main > r.Revs[i] {
			break
		}
		if rev.Tombstone {
			delete(live, string(rev.KV.Key))
			continue
		}
		c := live[string(rev.KV.Key)]
		if c == nil {
			c = &Cell{}
			live[string(rev.KV.Key)] = c
		}
		*c = Cell{Mod: rev.KV.ModRevision, Create: rev.KV.CreateRevision, Version: rev.KV.Version, Lease: rev.KV.Lease,
			ValueLen: len(rev.KV.Value), hash: sum64(rev.KV.Value)}
	}
	return live, whole, nil
}

// weigh counts a row and keeps it when it differs.
func (b *Bucket) weigh(take []int, row Row, maxRows int) {
	var have []int
	for _, i := range take {
		if row.Cells[i] != nil {
			have = append(have, i)
		}
	}
	if len(have) == 0 {
		b.Compared--
		return
	}
	equal, same := len(have) == len(take), len(have) == len(take)
	first := row.Cells[have[0]]
	for _, i := range have[1:] {
		c := row.Cells[i]
		equal = equal && c.Mod == first.Mod && c.Create == first.Create && c.Version == first.Version
		if c.hash != first.hash || c.ValueLen != first.ValueLen || c.Lease != first.Lease || c.Text != first.Text {
			equal, same = false, false
		}
	}
	if equal {
		return
	}
	b.Differ++
	if same {
		b.SameContent++
	}
	if len(have) == 1 {
		b.Only[have[0]]++
	}
	if len(b.Rows) < maxRows {
		row.SameContent = same
		b.Rows = append(b.Rows, row)
	}
}
