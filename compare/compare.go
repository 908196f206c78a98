package compare

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/release"
)

// ErrMixed says that the sources belong to different clusters, so that comparing them makes no sense.
type ErrMixed struct{ Clusters map[string][]string }

// Error names the clusters and their sources.
func (e *ErrMixed) Error() string {
	var each []string
	for _, id := range slices.Sorted(maps.Keys(e.Clusters)) {
		each = append(each, id+" ("+strings.Join(e.Clusters[id], ", ")+")")
	}
	return "the sources belong to different clusters: " + strings.Join(each, ", ") +
		"; compare sources of one cluster at a time"
}

// Compare compares the sources bucket by bucket at the highest index that all of them have applied.
func Compare(ctx context.Context, specs []evidence.Spec, o Options) (*Comparison, error) {
	o.fill()
	set, err := evidence.Open(ctx, specs, evidence.Options{Hash: true, Deep: true, NoHashes: true, Progress: o.Progress,
		Access: o.Access})
	if err != nil {
		return nil, err
	}
	defer func() { _ = set.Close() }()
	c, err := Opened(ctx, set, o)
	if err != nil {
		return nil, err
	}
	return c, set.Unchanged(ctx)
}

// Opened is Compare for sources that are open already; it does not close them. A comparison needs Deep and no hashes.
func Opened(ctx context.Context, set *evidence.Set, o Options) (*Comparison, error) {
	o.fill()
	if clusters(set.Members) > 1 {
		return nil, mixed(set.Members)
	}
	rp, err := replay.RunWithPlausibleIndex(ctx, set.Members, replay.Options{MaxBytes: o.ReplayBytes})
	if err != nil {
		return nil, err
	}
	d, err := diff.Run(ctx, set.Members, rp, diff.Options{MaxRows: o.MaxRows, Values: o.Values})
	if err != nil {
		return nil, err
	}
	r := &Report{}
	r.sources(set, o)
	c := &Comparison{SchemaVersion: SchemaVersion, Tool: Tool{Name: "etcd-medic", Version: o.Version},
		Sources: r.Sources, Buckets: []BucketComparison{}}
	c.window(d)
	for _, b := range d.Buckets {
		c.Buckets = append(c.Buckets, c.bucket(d, &b, o))
	}
	c.records(d)
	c.log(set.Members, rp)
	return c, nil
}

func mixed(members []*evidence.Member) error {
	e := &ErrMixed{Clusters: map[string][]string{}}
	for _, m := range members {
		if m.ClusterID != 0 {
			e.Clusters[m.ClusterID.String()] = append(e.Clusters[m.ClusterID.String()], m.Label())
		}
	}
	return e
}

func (c *Comparison) window(d *diff.Result) {
	c.Window = Window{AppliedIndex: d.Common, Revisions: map[string]int64{}, CompactRevision: d.Compact, Note: d.Note}
	for i, m := range d.Members {
		if m.HasDB() {
			if bad := m.DB.Handle.InvalidMeta(); bad != nil {
				if c.Window.Earlier == nil {
					c.Window.Earlier = map[string]string{}
				}
				c.Window.Earlier[m.Label()] = bad.Error() + "; if it was the newer one, the last transaction is missing"
			}
		}
		if why := d.NotCompared[i]; why != "" {
			if c.Window.LeftOut == nil {
				c.Window.LeftOut = map[string]string{}
			}
			c.Window.LeftOut[m.Label()] = why
			continue
		}
		if d.KeysNotCompared[i] == "" {
			c.Window.Revisions[m.Label()] = d.Revs[i]
		}
	}
}

// records reports records that differ although all live keys are equal.
func (c *Comparison) records(d *diff.Result) {
	r := d.Records
	if r == nil || !r.Equal.Excluded() {
		return
	}
	out := BucketComparison{Bucket: "records of key", Equal: r.Equal, Only: map[string]int{}, Differ: r.Differ,
		Compared: r.Differ, Rows: []DiffRow{}, More: r.Differ - len(r.Rows),
		Reason: "superseded records differ, which reads at older revisions, watches and HashKV show; live keys are " +
			"equal"}
	for i := range r.Rows {
		row := &r.Rows[i]
		dr := DiffRow{Key: check.Bytes(row.Rev.String()), Members: map[string]*DiffCell{}}
		for _, pos := range row.At {
			var cell *DiffCell
			if x := row.Cells[pos]; x != nil {
				cell = &DiffCell{Text: x.Text}
			}
			dr.Members[d.Members[pos].Label()] = cell
		}
		out.Rows = append(out.Rows, dr)
	}
	c.Buckets = append(c.Buckets, out)
}

func (c *Comparison) bucket(d *diff.Result, b *diff.Bucket, o Options) BucketComparison {
	out := BucketComparison{Bucket: b.Name, Equal: b.Equal, Reason: b.Reason, Only: map[string]int{}, Differ: b.Differ,
		SameContent: b.SameContent, Compared: b.Compared, Rows: []DiffRow{}, More: b.Differ - len(b.Rows)}
	if b.Name == "key" {
		out.withoutKeysOf(d)
	}
	if out.Reason == "" {
		out.Reason = b.Limits
	}
	for i, n := range b.Only {
		if n > 0 {
			out.Only[d.Members[i].Label()] = n
		}
	}
	for _, row := range b.Rows {
		out.Rows = append(out.Rows, diffRow(d, b.Name, row, o))
	}
	for _, row := range b.Normal {
		out.Normal = append(out.Normal, diffRow(d, b.Name, row, o))
	}
	return out
}

// withoutKeysOf says of which members the keys were not compared: then not all of them are known to be equal.
func (b *BucketComparison) withoutKeysOf(d *diff.Result) {
	var why []string
	for i, m := range d.Members {
		if s := d.KeysNotCompared[i]; s != "" && d.NotCompared[i] == "" {
			why = append(why, m.Label()+" was left out: "+s)
		}
	}
	if len(why) == 0 {
		return
	}
	if b.Equal.Certain() {
		b.Equal = release.Unknown
	}
	if b.Reason == "" {
		b.Reason = strings.Join(why, "; ")
	}
}

func diffRow(d *diff.Result, bucket string, row diff.Row, o Options) DiffRow {
	dr := DiffRow{Key: check.Bytes(row.Key), Members: map[string]*DiffCell{}}
	for i, m := range d.Members {
		if d.NotCompared[i] == "" {
			dr.Members[m.Label()] = cell(bucket, row.Cells[i], o.Values)
		}
		if c := row.Cells[i]; c != nil && dr.Object == nil {
			dr.Object = evidence.ObjectOf(&c.Object)
		}
	}
	return dr
}

func cell(bucket string, c *diff.Cell, values bool) *DiffCell {
	if c == nil {
		return nil
	}
	if bucket != "key" {
		return &DiffCell{Text: c.Text}
	}
	out := &DiffCell{ModRevision: c.Mod, SubRevision: c.Sub, CreateRevision: c.Create, Version: c.Version,
		Value: &Value{Len: c.ValueLen, Digest: c.ValueDigest}}
	if c.Lease != 0 {
		out.Lease = fmt.Sprintf("%x", uint64(c.Lease))
	}
	if values {
		b := check.Bytes(c.Value)
		out.Value.Bytes = &b
	}
	return out
}

// log sums up the comparison of entries that the replay has made.
func (c *Comparison) log(members []*evidence.Member, rp *replay.Result) {
	c.Log = LogComparison{Differ: []LogDiff{}, LastIndexes: map[string]uint64{}}
	first, last, logs := uint64(0), uint64(0), 0
	for _, m := range members {
		c.logDamage(m, rp.Commit)
		if !m.HasLog() {
			continue
		}
		s := &m.WAL.Summary
		c.Log.LastIndexes[m.Label()] = s.LastIndex
		if logs++; logs == 1 {
			first, last = s.FirstIndex, min(s.LastIndex, m.Commit)
			continue
		}
		// Two or more logs hold the indexes from the second lowest start on; with two logs that is their overlap.
		first, last = max(first, s.FirstIndex), min(last, s.LastIndex, m.Commit)
	}
	if logs < 2 || last < first {
		return
	}
	c.Log.FirstIndex, c.Log.LastIndex = first, last
	if c.Log.Compared = int(last-first+1) - absent(members, first, last); c.Log.Compared == 0 {
		return
	}
	c.Log.Equal = release.AnswerOf(len(rp.LogDiffs) == 0 && len(rp.Shifts) == 0)
	for _, d := range rp.LogDiffs {
		row := LogDiff{Index: d.Index, Members: map[string]string{}}
		for i, text := range d.By {
			row.Members[members[i].Label()] = text
		}
		c.Log.Differ = append(c.Log.Differ, row)
	}
}

// logDamage names the places at which a log has lost committed entries, at most maxLogDamage of them.
func (c *Comparison) logDamage(m *evidence.Member, commit uint64) {
	for _, d := range m.WAL.Summary.Damage {
		if d.LostFrom == 0 || d.LostFrom > commit || len(c.Log.Damage[m.Label()]) == maxLogDamage {
			continue
		}
		add(&c.Log.Damage, m, d.Error()+lostEntries(d))
	}
}

// absent counts the indexes from first to last that a log has lost, or never had because its member received a
// snapshot.
func absent(members []*evidence.Member, first, last uint64) (n int) {
	var gaps [][2]uint64
	gap := func(from, to uint64) {
		if from, to = max(from, first), min(to, last); from <= to {
			gaps = append(gaps, [2]uint64{from, to})
		}
	}
	for _, m := range members {
		for _, d := range m.WAL.Summary.Damage {
			if d.LostFrom > 0 {
				gap(d.LostFrom, cmp.Or(d.LostTo, last))
			}
		}
		for _, j := range m.WAL.Summary.Jumps {
			gap(j.From, j.To)
		}
	}
	slices.SortFunc(gaps, func(a, b [2]uint64) int { return cmp.Compare(a[0], b[0]) })
	for _, g := range gaps {
		if g[1] >= first {
			n += int(g[1] - max(g[0], first) + 1)
			first = g[1] + 1
		}
	}
	return n
}
