package replay

import (
	"errors"
	"iter"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// cursor reads bucket key group by group (one main revision at a time), with a window for looking ahead.
type cursor struct {
	rows *prefetch[row]
	// ahead are the groups read and not taken yet.
	ahead []*group
	// pending is the first record of the group after the window.
	pending *record
	// room is memory for the next groups, which are many and soon dropped.
	room []group
	hole bool
	// main is the revision of the group that is being read, divided is true if a hole hides its last records.
	main    int64
	divided bool
	err     error
}

// groupsAtOnce is how many groups get their memory at once.
const groupsAtOnce = 32

// row is a record, or a hole that damage left, or the error that ends the reading.
type row struct {
	record
	hole bool
	// divided is the main revision of which the hole hides the last records, 0 if there is none.
	divided int64
	err     error
}

// newCursor starts reading. bump is the empty record that restore --bump-revision leaves: no entry wrote it.
func newCursor(db *dumpdb.DB, bump dumpdb.Rev) *cursor {
	return &cursor{rows: startPrefetch(rowsOf(db, bump), nil)}
}

// newCursorFrom is newCursor from a revision on.
func newCursorFrom(db *dumpdb.DB, bump, from dumpdb.Rev) *cursor {
	return &cursor{rows: startPrefetch(rowsIn(db.RevisionsFrom(from), bump, nil), nil)}
}

func (c *cursor) stop() { c.rows.stop() }

// rowsOf converts the records of bucket key: values are hashed, so that nothing of the database's buffers is kept.
func rowsOf(db *dumpdb.DB, bump dumpdb.Rev) iter.Seq[row] { return rowsIn(db.Revisions(), bump, nil) }

// rowsBetween is rowsOf for the records of a span of revisions, as far as reads asks for them.
func rowsBetween(db *dumpdb.DB, bump dumpdb.Rev, s span, reads rowFilter) iter.Seq[row] {
	return rowsIn(db.RevisionsBetween(dumpdb.Rev{Main: s.from}, dumpdb.Rev{Main: s.end}), bump, reads)
}

// rowFilter reports whether the content of a record matters. first is true for the first record of a main revision.
type rowFilter func(first bool, key []byte, del bool) bool

// rowsIn converts records. Those for which reads is false stay unread: to hash each value takes longer than to read it.
// The last records of a main revision that a hole divides belong to the hole.
func rowsIn(revisions iter.Seq2[dumpdb.Revision, error], bump dumpdb.Rev, reads rowFilter) iter.Seq[row] {
	return func(yield func(row) bool) {
		main, lost := int64(-1), int64(-1)
		for rev, err := range revisions {
			var d *dumpdb.DamageError
			out := row{}
			switch {
			case errors.As(err, &d):
				out.hole = true
				from, to := d.Revisions()
				if from.Sub > 0 {
					out.divided = from.Main
				}
				if lost = -1; to.Sub > 0 {
					lost = to.Main
				}
			case err != nil:
				out.err = err
			case rev.Rev.Main == lost:
				continue
			case rev.Rev == bump && bump != (dumpdb.Rev{}):
				continue
			case reads != nil && !reads(rev.Main != main, rev.KV.Key, rev.Tombstone):
				main = rev.Main
				out.record = record{rev: rev.Rev, del: rev.Tombstone, unread: true}
			default:
				main = rev.Main
				out.record = record{rev: rev.Rev, key: string(rev.KV.Key), del: rev.Tombstone,
					create:  rev.KV.CreateRevision,
					version: rev.KV.Version, lease: rev.KV.Lease, vhash: apply.SumOf(rev.KV.Value), bad: rev.Err != nil}
				out.marked = rev.Tombstone && rev.KV.HoldsMore()
			}
			if !yield(out) || out.err != nil {
				return
			}
		}
	}
}

// peek returns the i-th group ahead, nil after the end.
func (c *cursor) peek(i int) *group {
	for len(c.ahead) <= i {
		g := c.read()
		if g == nil {
			return nil
		}
		c.ahead = append(c.ahead, g)
	}
	return c.ahead[i]
}

// take drops the first group.
func (c *cursor) take() *group {
	g := c.peek(0)
	if g != nil {
		c.ahead = c.ahead[1:]
	}
	return g
}

func (c *cursor) read() *group {
	for {
		first := c.pending
		if first == nil {
			first = c.record()
		}
		c.pending = nil
		if first == nil {
			return nil
		}
		if g := c.group(first); !c.divided {
			return g
		}
	}
}

// group reads the group of a record.
func (c *cursor) group(first *record) *group {
	if len(c.room) == 0 {
		c.room = make([]group, groupsAtOnce)
	}
	g := &c.room[0]
	c.room = c.room[1:]
	g.begin(first, c.hole)
	c.hole, c.divided, c.main = false, false, g.main
	r := c.record()
	for ; r != nil && r.rev.Main == g.main; r = c.record() {
		g.records = append(g.records, *r)
	}
	c.pending = r
	return g
}

// record returns the next record; damage on the way becomes a hole before the next group.
func (c *cursor) record() *record {
	for {
		r := c.rows.nextInBatch()
		switch {
		case r == nil:
			return nil
		case r.hole:
			c.hole = true
			c.divided = c.divided || r.divided == c.main
		case r.err != nil:
			c.err = r.err
			return nil
		default:
			return &r.record
		}
	}
}
