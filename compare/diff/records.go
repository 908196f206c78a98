package diff

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/release"
)

// Records is the comparison of the records of bucket key one by one, including superseded ones and tombstones. It
// compares a record between members that have its revision and have not compacted it, and a put also with those that
// still hold one there. Where the keys of a member cannot be compared at one index, the member must also hold what
// another one, at a later revision, has from before.
type Records struct {
	// Equal is unknown if nothing could be compared; Reason says why.
	Equal  release.Answer
	Reason string
	// Differ counts records that differ, Rows are the first of them in revision order. AtLeast is true if members lack
	// more keys than can be remembered.
	Differ  int
	AtLeast bool
	Rows    []RecordRow
}

// RecordRow is a record that differs between members. Cells are by member, nil if the member has no record at that
// revision. At are the compared members.
type RecordRow struct {
	Rev   dumpdb.Rev
	Key   []byte
	At    []int
	Cells []*RecordCell
	// Created is set where compared members are at an earlier revision: that at which the key was created. As it
	// was not deleted since, each of them must have a record of it from there on, and has none.
	Created int64
}

// Before reports whether a compared member is at an earlier revision than the record, so that it lacks the key as such.
func (row *RecordRow) Before(m *evidence.Member) bool {
	return row.Created > 0 && m.CurrentRevision() < row.Rev.Main
}

// RecordCell is one member's version of a record.
type RecordCell struct {
	Page   uint64
	Offset int64
	// Sum is the digest of the stored bytes. Text describes them without the value, Content without the key, too.
	Sum, Text, Content string
}

// maxRecordRows is the default bound for listed records.
const maxRecordRows = 50

// CompareRecords compares the records of all members. It reads members with identical records once, and nothing if all
// are identical.
func (r *Result) CompareRecords(ctx context.Context, o Options) (*Records, error) {
	out, k := &Records{}, keyComparer{r}
	take := slices.DeleteFunc(r.taking(), func(i int) bool { return r.Members[i].DB.KVDamaged })
	if len(take) < 2 {
		out.Reason = r.tooFew()
		return out, nil
	}
	distinct := k.distinctRecords(take)
	if len(distinct) < 2 {
		out.Equal = release.Yes
		return out, nil
	}
	if o.MaxRows == 0 {
		o.MaxRows = maxRecordRows
	}
	from := int64(0)
	if _, same := k.sameRecords(ctx, take); same {
		from = r.Revs[take[0]] + 1
	}
	err := r.findKept(ctx, take, o)
	if err != nil {
		return nil, err
	}
	m := newRecordMerge(r, take, distinct, from)
	defer m.stop()
	err = m.each(ctx, 0, func(at []int, differ bool) {
		if !differ {
			return
		}
		if out.Differ++; len(out.Rows) < o.MaxRows {
			out.Rows = append(out.Rows, m.row(at))
		}
	})
	if err != nil {
		return nil, err
	}
	out.Equal, out.AtLeast = release.AnswerOf(out.Differ == 0), r.kept.full
	return out, nil
}

// EachRecord calls fn for every record that differs, in revision order: for all of them if main is 0, else for those of
// that main revision. It reads the records again.
func (r *Result) EachRecord(ctx context.Context, main int64, fn func(*RecordRow)) error {
	take := slices.DeleteFunc(r.taking(), func(i int) bool { return r.Members[i].DB.KVDamaged })
	distinct := keyComparer{r}.distinctRecords(take)
	if len(distinct) < 2 {
		return nil
	}
	if err := r.findKept(ctx, take, Options{}); err != nil {
		return err
	}
	m := newRecordMerge(r, take, distinct, main)
	defer m.stop()
	return m.each(ctx, main, func(at []int, differ bool) {
		if differ {
			row := m.row(at)
			fn(&row)
		}
	})
}

// distinctRecords returns the first of each group of members with identical records, according to their hashes.
func (r keyComparer) distinctRecords(take []int) []int {
	var out []int
	for _, i := range take {
		d := r.Members[i].DB
		if !slices.ContainsFunc(out, func(j int) bool {
			o := r.Members[j].DB
			return d.RecordsHash != "" && d.RecordsHash == o.RecordsHash &&
				r.Members[i].CompactRevision() == r.Members[j].CompactRevision()
		}) {
			out = append(out, i)
		}
	}
	return out
}

// recordMerge walks the records of several members in revision order.
type recordMerge struct {
	r       *Result
	cursors []*recordCursor
	// as maps each compared member to the cursor that reads its records.
	take []int
	as   map[int]*recordCursor
	// rev is the current revision of the merge.
	rev dumpdb.Rev
	// ended is set to end the walk early.
	ended bool
	err   error
}

type recordCursor struct {
	member *evidence.Member
	pull   func() (dumpdb.Revision, error, bool)
	stop   func()
	rec    dumpdb.Revision
	ok     bool
}

func newRecordMerge(r *Result, take, distinct []int, from int64) *recordMerge {
	m := &recordMerge{r: r, take: take, as: map[int]*recordCursor{}}
	for _, i := range distinct {
		c := &recordCursor{member: r.Members[i]}
		c.pull, c.stop = iter.Pull2(r.Members[i].DB.Handle.RevisionsFrom(dumpdb.Rev{Main: from}))
		c.advance(m)
		m.cursors = append(m.cursors, c)
		m.as[i] = c
	}
	for _, i := range take {
		for n := 0; m.as[i] == nil; n++ {
			if d := r.Members[i].DB; d.RecordsHash == r.Members[distinct[n]].DB.RecordsHash {
				m.as[i] = m.cursors[n]
			}
		}
	}
	return m
}

func (m *recordMerge) stop() {
	for _, c := range m.cursors {
		c.stop()
	}
}

// advance moves to the next record that decodes. A check of the history reports the others.
func (c *recordCursor) advance(m *recordMerge) {
	for {
		rec, err, ok := c.pull()
		if err != nil {
			m.err, c.ok = fmt.Errorf("%s: %w", c.member.Label(), err), false
			return
		}
		if c.rec, c.ok = rec, ok; !ok || rec.Err == nil {
			return
		}
	}
}

// next sets the lowest remaining revision and returns false at the end.
func (m *recordMerge) next() bool {
	found := false
	for _, c := range m.cursors {
		if c.ok && (!found || compareRevs(c.rec.Rev, m.rev) < 0) {
			m.rev, found = c.rec.Rev, true
		}
	}
	return found && m.err == nil && !m.ended
}

func compareRevs(a, b dumpdb.Rev) int {
	return cmp.Or(cmp.Compare(a.Main, b.Main), cmp.Compare(a.Sub, b.Sub))
}

// each walks all records, or those of one main revision, and calls fn with the compared members and whether they
// differ.
func (m *recordMerge) each(ctx context.Context, main int64, fn func(at []int, differ bool)) error {
	for n := 0; m.next() && (main == 0 || m.rev.Main == main); n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		m.weigh(fn)
	}
	return m.err
}

// weigh compares the versions of the record at the current revision and advances.
func (m *recordMerge) weigh(fn func(at []int, differ bool)) {
	at := m.participants()
	differ := false
	var first *recordCursor
	for _, i := range at {
		c := m.as[i]
		if first == nil {
			first = c
			continue
		}
		differ = differ || m.holds(c) != m.holds(first) || m.holds(c) && !sameRecord(&c.rec, &first.rec)
	}
	fn(at, differ)
	for _, c := range m.cursors {
		if m.holds(c) {
			c.advance(m)
		}
	}
}

// participants returns the members whose databases must have the same record: those that have reached the revision and
// not compacted it, of the others those that hold a put there, and those that must hold it. That others hold none
// proves nothing.
func (m *recordMerge) participants() (at []int) {
	must := m.mustHold()
	for _, i := range m.take {
		x, c := m.r.Members[i], m.as[i]
		if m.rev.Main > x.CompactRevision() && m.rev.Main <= x.CurrentRevision() || m.holds(c) && !c.rec.Tombstone ||
			slices.Contains(must, i) {
			at = append(at, i)
		}
	}
	return at
}

// mustHold are the members that lack the current record although another one shows that it was never replaced.
func (m *recordMerge) mustHold() []int {
	keys := m.r.kept.byRev[m.rev.Main]
	for _, c := range m.cursors {
		if must := keys[string(c.rec.KV.Key)]; m.holds(c) && len(must) > 0 {
			return must
		}
	}
	return nil
}

func (m *recordMerge) holds(c *recordCursor) bool { return c.ok && c.rec.Rev == m.rev }

func sameRecord(a, b *dumpdb.Revision) bool {
	return a.Tombstone == b.Tombstone && bytes.Equal(a.Raw, b.Raw)
}

func (m *recordMerge) row(at []int) RecordRow {
	row := RecordRow{Rev: m.rev, At: at, Cells: make([]*RecordCell, len(m.r.Members))}
	early, create := false, int64(0)
	for _, i := range at {
		c := m.as[i]
		if !m.holds(c) {
			early = early || m.rev.Main > m.r.Members[i].CurrentRevision()
			continue
		}
		row.Cells[i], create = CellOf(m.r.Members[i], &c.rec), c.rec.KV.CreateRevision
		if row.Key == nil {
			row.Key = slices.Clone(c.rec.KV.Key)
		}
	}
	if early {
		row.Created = create
	}
	return row
}

// CellOf describes a record of a member.
func CellOf(m *evidence.Member, rec *dumpdb.Revision) *RecordCell {
	kv := &rec.KV
	content := fmt.Sprintf("create %d mod %d version %d lease %x value <len %d digest %s>", kv.CreateRevision,
		kv.ModRevision, kv.Version, uint64(kv.Lease), len(kv.Value), m.Digest(kv.Value))
	text := fmt.Sprintf("key %q %s", kv.Key, content)
	if rec.Tombstone {
		content, text = "tombstone", fmt.Sprintf("tombstone of key %q", kv.Key)
	}
	return &RecordCell{Page: rec.Page, Offset: rec.Offset, Sum: m.Digest(rec.Raw), Text: text, Content: content}
}

// Odd returns the members whose record differs from that of an agreeing majority of these members. It is a hint, not
// proof.
func (row *RecordRow) Odd(compared []int) []int {
	r := Row{Cells: make([]*Cell, len(row.Cells))}
	for i, c := range row.Cells {
		if c != nil {
			r.Cells[i] = &Cell{Text: c.Sum + c.Text}
		}
	}
	return r.Odd(compared)
}
