package replay

import (
	"errors"
	"iter"

	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// cursor reads bucket key group by group (one main revision at a time), with a window for looking ahead.
type cursor struct {
	next func() (dumpdb.Revision, error, bool)
	stop func()
	// ahead are the groups read and not taken yet.
	ahead []*group
	// pending is the first record of the group behind the window.
	pending *record
	hole    bool
	done    bool
	// bump is the empty record that restore --bump-revision leaves: no entry wrote it.
	bump dumpdb.Rev
	err  error
}

func newCursor(db *dumpdb.DB, bump dumpdb.Rev) *cursor {
	c := &cursor{bump: bump}
	c.next, c.stop = iter.Pull2(db.Revisions())
	return c
}

// peek returns the i-th group ahead, nil behind the end.
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
	first := c.pending
	if first == nil {
		first = c.record()
	}
	c.pending = nil
	if first == nil {
		return nil
	}
	g := &group{main: first.rev.Main, records: []record{*first}, hole: c.hole}
	c.hole = false
	for {
		r := c.record()
		if r == nil {
			return g
		}
		if r.rev.Main != g.main {
			c.pending = r
			return g
		}
		g.records = append(g.records, *r)
	}
}

// record returns the next record; damage on the way becomes a hole before the next group.
func (c *cursor) record() *record {
	for !c.done {
		rev, err, ok := c.next()
		if !ok {
			c.done = true
			break
		}
		var d *dumpdb.DamageError
		switch {
		case errors.As(err, &d):
			c.hole = true
			continue
		case err != nil:
			c.err, c.done = err, true
			continue
		case rev.Rev == c.bump && c.bump != (dumpdb.Rev{}):
			continue
		}
		return &record{rev: rev.Rev, key: string(rev.KV.Key), del: rev.Tombstone, create: rev.KV.CreateRevision,
			version: rev.KV.Version, lease: rev.KV.Lease, vhash: hashValue(rev.KV.Value), bad: rev.Err != nil}
	}
	return nil
}
