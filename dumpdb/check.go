package dumpdb

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
)

// PageReport is the result of a full walk over the page graph.
type PageReport struct {
	Damage []*DamageError
	// Pages is the high-water mark. The others are numbers of pages, overflow pages included.
	Pages, Reachable, Free, Lost uint64
	// FreelistStored is false if the file has no freelist (etcd 3.3 and later on Linux). Free then counts the
	// unreachable pages.
	FreelistStored bool
	// Complete is false if damage hides part of the page graph. Pages below the damage then count as free or lost.
	Complete bool
}

// Check walks every page reachable from the used meta page. It returns an error only if ctx ends; damage is in the
// report.
func (db *DB) Check(ctx context.Context) (*PageReport, error) {
	c := db.newChecker()
	for i := range db.buckets {
		if err := c.bucket(ctx, &db.buckets[i], 0); err != nil {
			return nil, err
		}
	}
	return c.finish(), nil
}

// checker collects the results of the walks over the buckets of one view.
type checker struct {
	db     *DB
	used   bitmap
	report PageReport
	// nestedSeen counts the nested buckets.
	nestedSeen int
}

func (db *DB) newChecker() *checker {
	c := &checker{db: db, used: slices.Clone(db.rootUsed)}
	r := &c.report
	r.Pages, r.FreelistStored, r.Complete = db.meta.HighWater, db.meta.Freelist != noFreelist, true
	c.metas()
	if need := min(db.meta.HighWater, 1<<40) * uint64(db.pageSize); need > uint64(db.f.data) {
		c.add(&DamageError{Place: db.place(db.filePages()), Kind: DamageTruncated,
			Expected: fmt.Sprintf("%d bytes (%d pages)", need, db.meta.HighWater),
			Observed: fmt.Sprintf("%d bytes", db.f.data)})
	}
	c.add(db.rootDamage...)
	return c
}

// metas reports a meta page that is not valid, even if the other one is, or whose page header is wrong.
func (c *checker) metas() {
	c.report.Damage = append(c.report.Damage, c.db.metaDamage()...)
	for _, m := range c.db.metas {
		if !c.used.set(m.Page) {
			continue
		}
		c.add(&DamageError{Place: c.db.place(m.Page), Kind: DamageDoubleUse, Expected: "a meta page",
			Observed: "a reference from a tree"})
	}
}

func (c *checker) add(d ...*DamageError) {
	c.report.Damage = append(c.report.Damage, d...)
	if len(d) > 0 {
		c.report.Complete = false
	}
}

// bucket walks the pages of one bucket and of those nested in it.
func (c *checker) bucket(ctx context.Context, b *bucket, depth int) error {
	s, damage, err := c.db.feed(ctx, b, span{}, c.used, func() sink { return &nestedSink{} })
	if err != nil {
		return err
	}
	c.add(damage...)
	return c.nested(ctx, b.Name, &s.(*nestedSink).nestedBuckets, depth+1)
}

// maxNesting bounds the depth of buckets inside buckets, maxNested their number in one, maxNestedAll that of all.
const (
	maxNesting   = 16
	maxNested    = 1000
	maxNestedAll = 10_000
)

func (c *checker) nested(ctx context.Context, parent string, n *nestedBuckets, depth int) error {
	if n.more > 0 {
		c.add(&DamageError{Place: n.found[0].Place, Kind: DamageBuckets, Bucket: parent, Expected: "no nested bucket",
			Observed: fmt.Sprintf("%d; all but the first %d are not examined", len(n.found)+n.more, len(n.found))})
	}
	for i := range n.found {
		b := &n.found[i]
		if c.nestedSeen++; c.nestedSeen == maxNestedAll {
			c.add(&DamageError{Place: b.Place, Kind: DamageBuckets, Bucket: parent, Expected: "no nested bucket",
				Observed: fmt.Sprintf("more than %d in all; the others are not examined", maxNestedAll)})
		}
		if c.nestedSeen >= maxNestedAll {
			return nil
		}
		if depth > maxNesting {
			c.add(&DamageError{Place: b.Place, Kind: DamagePage, Bucket: parent,
				Expected: fmt.Sprintf("at most %d nested buckets", maxNesting), Observed: "another"})
			continue
		}
		b.Name = parent + "/" + b.Name
		if err := c.bucket(ctx, b, depth); err != nil {
			return err
		}
	}
	return nil
}

// finish adds the freelist and counts.
func (c *checker) finish() *PageReport {
	r, db := &c.report, c.db
	free := newBitmap(db.filePages())
	if r.FreelistStored {
		c.freelist(free)
	}
	for _, w := range c.used {
		r.Reachable += uint64(bits.OnesCount64(w))
	}
	for _, w := range free {
		r.Free += uint64(bits.OnesCount64(w))
	}
	// With damage a page can be above the high-water mark. min keeps the subtraction from wrapping.
	rest := r.Pages - min(r.Pages, r.Reachable+r.Free)
	if r.FreelistStored {
		r.Lost = rest
	} else {
		r.Free = rest
	}
	return r
}

// nestedBuckets are the first buckets inside another one, as etcd never creates them. more counts the others.
type nestedBuckets struct {
	found []bucket
	more  int
}

func (n *nestedBuckets) add(l *leaf, e elem) {
	if b, dmg := parseBucket(l, e); dmg != nil {
		return
	} else if n.found = append(n.found, b); len(n.found) > maxNested {
		n.found, n.more = n.found[:maxNested], n.more+1
	}
}

func (n *nestedBuckets) join(o *nestedBuckets) {
	n.found, n.more = append(n.found, o.found...), n.more+o.more
	if over := len(n.found) - maxNested; over > 0 {
		n.found, n.more = n.found[:maxNested], n.more+over
	}
}

// nestedSink collects nested buckets.
type nestedSink struct{ nestedBuckets }

func (s *nestedSink) newPortion() portion { return &nestedPortion{} }
func (s *nestedSink) merge(p portion)     { s.join(&p.(*nestedPortion).nestedBuckets) }

type nestedPortion struct{ nestedBuckets }

func (p *nestedPortion) leaf(l *leaf) {
	for _, e := range l.elems {
		if e.flags&flagBucket != 0 {
			p.add(l, e)
		}
	}
}
