package dumpdb

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
)

// maxDepth bounds recursion; even a bbolt tree of 2^64 keys is far less deep.
const maxDepth = 64

// bitmap has one bit per page id of the file.
type bitmap []uint64

func newBitmap(n uint64) bitmap { return make(bitmap, (n+63)/64) }

// set marks id and reports whether it was already marked. It is safe for concurrent use.
func (b bitmap) set(id uint64) bool {
	if id/64 >= uint64(len(b)) {
		return false
	}
	bit := uint64(1) << (id % 64)
	return atomic.OrUint64(&b[id/64], bit)&bit != 0
}

func (b bitmap) has(id uint64) bool {
	return id/64 < uint64(len(b)) && atomic.LoadUint64(&b[id/64])&(1<<(id%64)) != 0
}

// span is the range of keys that a page may contain: from first up to but not including end; nil end means unbounded.
type span struct{ first, end []byte }

// leaf is one leaf page with its readable elements. All slices are valid only during the callback.
type leaf struct {
	page  *page
	elems []elem
	span  span
	// whole is true if the page has no damage.
	whole bool
}

// scan walks one tree in key order. It visits each page at most once, so the walk always ends.
type scan struct {
	db     *DB
	ctx    context.Context
	bucket string
	used   bitmap
	want   span // leaves outside are not read
	onLeaf func(*leaf) bool
	// onDamage receives all damage in walk order. Both callbacks return false to stop the walk.
	onDamage func(*DamageError) bool
	// onUnit, if set, is called for the pages at depth unitDepth; they are not read.
	onUnit    func(id uint64, sp span) bool
	unitDepth int
	// rightEdge reads only the last child of each branch page.
	rightEdge bool
	levels    [maxDepth]level
	err       error // of the context
}

// level has the buffers of one depth, so that a parent's elements stay valid while its children are read.
type level struct {
	reader pageReader
	page   page
	elems  []elem
	leaf   leaf
	probs  []tableProblem
}

func (db *DB) newScan(ctx context.Context, bucket string) *scan {
	return &scan{db: db, ctx: ctx, bucket: bucket, used: newBitmap(db.filePages())}
}

// tree walks the tree at root.
func (s *scan) tree(root uint64) {
	s.child([]elem{{child: root}}, 0, 0, span{})
}

// child reads page refs[i] and the pages below it.
func (s *scan) child(refs []elem, i, depth int, sp span) bool {
	if s.err = s.ctx.Err(); s.err != nil {
		return false
	}
	if s.onUnit != nil && depth == s.unitDepth {
		return s.onUnit(refs[i].child, sp)
	}
	p, lv, dmg := s.load(refs, i, depth)
	if dmg != nil {
		return s.damage(dmg, sp)
	}
	if s.used.set(p.id) {
		return s.damage(s.twice(p, depth), sp)
	}
	for n := range uint64(p.overflow) {
		if s.used.set(p.id + n + 1) {
			overlap := &DamageError{Place: p.place(), Kind: DamageDoubleUse, Expected: "unused overflow pages",
				Observed: fmt.Sprintf("page %d is used elsewhere", p.id+n+1)}
			if !s.damage(overlap, sp) {
				return false
			}
			break
		}
	}
	switch p.flags {
	case flagLeaf:
		return s.leaf(lv, sp)
	case flagBranch:
		return s.branch(lv, depth, sp)
	}
	return s.damage(&DamageError{Place: p.place(), Kind: DamagePage, Expected: "a branch or leaf page",
		Observed: "type " + pageType(p.flags)}, sp)
}

func (s *scan) load(refs []elem, i, depth int) (*page, *level, *DamageError) {
	if depth >= maxDepth {
		id := refs[i].child
		return nil, nil, &DamageError{Place: s.db.place(id), Kind: DamagePage,
			Expected: fmt.Sprintf("a tree of at most %d levels", maxDepth), Observed: "a deeper one"}
	}
	lv := &s.levels[depth]
	if lv.reader.f == nil {
		lv.reader = s.db.reader()
	}
	p, dmg := lv.reader.page(refs, i)
	lv.page = p
	return &lv.page, lv, dmg
}

// twice distinguishes a page that is its own ancestor from one that is only referenced again.
func (s *scan) twice(p *page, depth int) *DamageError {
	for i := range depth {
		if s.levels[i].page.id == p.id {
			return &DamageError{Place: p.place(), Kind: DamageCycle, Expected: "a page below its parent",
				Observed: fmt.Sprintf("page %d is its own ancestor", p.id)}
		}
	}
	return &DamageError{Place: p.place(), Kind: DamageDoubleUse, Expected: "one reference", Observed: "a second one"}
}

// leaf reads the rows of a leaf page. Only a root page, which no parent bounds, may have none: bbolt removes any other
// page with its last row. One at the right edge without a trace of rows hides nothing (EmptyTails).
func (s *scan) leaf(lv *level, sp span) bool {
	lv.elems, lv.probs = lv.page.parseElems(lv.elems[:0], lv.probs[:0])
	bad := len(lv.probs)
	if !s.problems(lv, sp) {
		return false
	}
	if sp.first != nil && bad == 0 && len(lv.elems) == 0 && (sp.end != nil || !lv.page.blank()) {
		bad++
		if !s.damage(&DamageError{Place: lv.page.place(), Kind: DamageEmpty, Expected: "rows",
			Observed: "a leaf page without rows"}, sp) {
			return false
		}
	}
	if observed := reused(s.bucket, lv.elems); observed != "" && bad == 0 {
		return s.damage(&DamageError{Place: lv.page.place(), Kind: DamageReused, Expected: "rows of bucket " + s.bucket,
			Observed: observed}, sp)
	}
	if n := len(lv.elems); n > 0 {
		outside := s.outside(&lv.page, lv.elems[0].key, lv.elems[n-1].key, sp)
		if outside != nil {
			bad++
			if !s.damage(outside, sp) {
				return false
			}
		}
	}
	lv.leaf = leaf{page: &lv.page, elems: s.want.trim(lv.elems), span: sp, whole: bad == 0}
	return s.onLeaf(&lv.leaf)
}

// reused says what a sound leaf page of a bucket holds instead of its rows, "" if it holds them. Its parent was written
// before the page was used again: the rows that the parent means are not there.
func reused(bucket string, elems []elem) string {
	isBucket := func(e elem) bool { return e.flags&flagBucket != 0 }
	switch {
	case bucket == "" || len(elems) < 2: // the root tree; a single wrong row can be a damaged one
	case slices.ContainsFunc(elems, func(e elem) bool { return isBucket(e) && string(e.key) == "key" }) &&
		slices.ContainsFunc(elems, func(e elem) bool { return isBucket(e) && string(e.key) == "meta" }):
		return "the list of buckets of another transaction"
	case bucket == "key" && !slices.ContainsFunc(elems, func(e elem) bool {
		return len(e.key) == revKeySize || len(e.key) == revKeySize+1 || isBucket(e)
	}):
		return "rows of another bucket"
	}
	return ""
}

// outside compares the keys of a page with the span in its parent.
func (s *scan) outside(p *page, first, last []byte, sp span) *DamageError {
	if sp.first != nil && bytes.Compare(first, sp.first) < 0 {
		return &DamageError{Place: p.place(), Kind: DamageKeyOrder, Expected: "keys from " + showKey(sp.first) +
			" as its parent says", Observed: showKey(first)}
	}
	if sp.end != nil && bytes.Compare(last, sp.end) >= 0 {
		return &DamageError{Place: p.place(), Kind: DamageKeyOrder, Expected: "keys below " + showKey(sp.end) +
			" as its parent says", Observed: showKey(last)}
	}
	return nil
}

func (s *scan) branch(lv *level, depth int, sp span) bool {
	lv.elems, lv.probs = lv.page.parseElems(lv.elems[:0], lv.probs[:0])
	if !s.problems(lv, sp) {
		return false
	}
	n := len(lv.elems)
	if n == 0 {
		return s.damage(&DamageError{Place: lv.page.place(), Kind: DamagePage, Expected: "children",
			Observed: "an empty branch page"}, sp)
	}
	if d := s.outside(&lv.page, lv.elems[0].key, lv.elems[n-1].key, sp); d != nil && !s.damage(d, sp) {
		return false
	}
	refs := s.upToWanted(lv.elems, sp)
	for i := range refs {
		below := childSpan(lv.elems, i, sp)
		if !s.wanted(below) || s.rightEdge && i+1 < n {
			continue
		}
		if !s.child(refs, i, depth+1, below) {
			return false
		}
	}
	return true
}

// upToWanted leaves out the children after the last one that is wanted, so that no page is read along with a wanted one
// in vain.
func (s *scan) upToWanted(elems []elem, sp span) []elem {
	for n := len(elems); n > 0; n-- {
		if s.wanted(childSpan(elems, n-1, sp)) {
			return elems[:n]
		}
	}
	return nil
}

// childSpan returns the key span of child i according to its parent.
func childSpan(elems []elem, i int, sp span) span {
	below := span{first: elems[i].key, end: sp.end}
	if i+1 < len(elems) {
		below.end = elems[i+1].key
	}
	return below
}

// trim removes elements outside the span from both ends.
func (sp span) trim(elems []elem) []elem {
	for sp.first != nil && len(elems) > 0 && bytes.Compare(elems[0].key, sp.first) < 0 {
		elems = elems[1:]
	}
	for sp.end != nil && len(elems) > 0 && bytes.Compare(elems[len(elems)-1].key, sp.end) >= 0 {
		elems = elems[:len(elems)-1]
	}
	return elems
}

// wanted reports whether a page with this span can contain keys of s.want.
func (s *scan) wanted(sp span) bool {
	if s.want.first != nil && sp.end != nil && bytes.Compare(sp.end, s.want.first) <= 0 {
		return false
	}
	return s.want.end == nil || bytes.Compare(sp.first, s.want.end) < 0
}

// maxProblems bounds the problems of one page that are reported one by one.
const maxProblems = 100

// problems reports what parseElems found.
func (s *scan) problems(lv *level, sp span) bool {
	for n, pr := range lv.probs {
		if n == maxProblems {
			pr.kind, pr.expected = DamagePage, "a sound page"
			pr.observed = fmt.Sprintf("%d more problems from element %d on", len(lv.probs)-n, pr.index)
			rest := lostSpan(lv.elems, pr, sp)
			rest.end = sp.end
			return s.damage(&DamageError{Place: lv.page.place(), Kind: pr.kind, Expected: pr.expected,
				Observed: pr.observed}, rest)
		}
		d := &DamageError{Place: lv.page.place(), Kind: pr.kind, Expected: pr.expected, Observed: pr.observed}
		if !s.damage(d, lostSpan(lv.elems, pr, sp)) {
			return false
		}
	}
	return true
}

// lostSpan narrows the lost keys of a problem to those between its readable neighbors.
func lostSpan(elems []elem, pr tableProblem, sp span) span {
	for i, e := range elems {
		if e.index < pr.index {
			sp.first = e.key
		}
		if e.index > pr.index {
			sp.end = elems[i].key
			break
		}
	}
	return sp
}

func (s *scan) damage(d *DamageError, sp span) bool {
	d.Bucket = s.bucket
	d.FirstKey, d.LastKey = slices.Clone(sp.first), slices.Clone(sp.end)
	return s.onDamage(d)
}

func (p *page) place() Place { return Place{Page: p.id, Offset: p.off} }

// place returns the place of a page id, which may be out of range.
func (db *DB) place(id uint64) Place {
	return Place{Page: id, Offset: int64(min(id, 1<<40)) * int64(db.pageSize)}
}
