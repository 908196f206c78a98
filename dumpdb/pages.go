package dumpdb

import (
	"context"
	"iter"
)

// PageState says how a view uses a page.
type PageState string

// The states of a page.
const (
	PageMeta      PageState = "meta"
	PageReachable PageState = "reachable"
	// PageOverflow belongs to an earlier page.
	PageOverflow PageState = "overflow"
	PageFreelist PageState = "freelist"
	// PageFree is listed as free, or unreachable in a file without a freelist.
	PageFree PageState = "free"
	// PageLost is neither reachable nor listed as free.
	PageLost PageState = "lost"
	// PageBeyond is in the file above the high-water mark.
	PageBeyond PageState = "beyond"
)

// PageInfo is one line of a page listing. Type, Count and Overflow come from the header. The header of a free page
// shows its former use.
type PageInfo struct {
	Place
	State    PageState
	Type     string
	Count    int
	Overflow uint32
	// Bucket owns the page; "" for the root tree and for pages without a bucket.
	Bucket string
}

// owners has, for every page of the file, the bucket that reaches it: 0 none, 1 the root tree, meta pages and freelist,
// n+2 bucket n of names.
type owners struct {
	of     []uint16
	names  []string
	free   bitmap
	report *PageReport
	// damage of bucket key, whose spans say which keys are lost.
	damage []*DamageError
}

// owners walks every bucket once.
func (db *DB) owners(ctx context.Context) (*owners, error) {
	c := db.newChecker()
	o := &owners{of: make([]uint16, db.filePages()), free: newBitmap(db.filePages())}
	o.claim(c.used, 1)
	for i := range db.buckets {
		before := len(c.report.Damage)
		if err := c.bucket(ctx, &db.buckets[i], 0); err != nil {
			return nil, err
		}
		o.names = append(o.names, db.buckets[i].Name)
		o.claim(c.used, uint16(min(i+2, 1<<16-1)))
		if db.buckets[i].Name == "key" {
			o.damage = c.report.Damage[before:]
		}
	}
	if db.meta.Freelist != noFreelist {
		c.freelist(o.free)
		o.claim(c.used, 1)
	}
	o.report = &c.report
	return o, nil
}

// claim makes n the owner of every used page that has no owner yet.
func (o *owners) claim(used bitmap, n uint16) {
	for id := range o.of {
		if o.of[id] == 0 && used.has(uint64(id)) {
			o.of[id] = n
		}
	}
}

func (o *owners) bucket(id uint64) string {
	if n := int(o.of[id]); n >= 2 && n-2 < len(o.names) {
		return o.names[n-2]
	}
	return ""
}

// Pages lists every page of the file with its state and owner. A page that cannot be read is yielded with its
// *DamageError.
func (db *DB) Pages(ctx context.Context) iter.Seq2[PageInfo, error] {
	return func(yield func(PageInfo, error) bool) {
		o, err := db.owners(ctx)
		if err != nil {
			yield(PageInfo{}, err)
			return
		}
		head := make([]byte, headerSize)
		var overflowEnd uint64
		for id := range db.filePages() {
			info := PageInfo{Place: db.place(id), Bucket: o.bucket(id)}
			_, err := db.f.read(head, info.Offset)
			if err != nil {
				err = &DamageError{Place: info.Place, Kind: DamageTruncated, Err: err}
			}
			p := parseHeader(head)
			info.Type, info.Count, info.Overflow = pageType(p.flags), p.count, p.overflow
			info.State = o.state(&db.meta, id, &p, id < overflowEnd)
			switch info.State {
			case PageOverflow:
				info.Type, info.Count, info.Overflow = "", 0, 0
			case PageReachable, PageFreelist:
				overflowEnd = id + uint64(p.overflow) + 1
			}
			ended := ctx.Err()
			if ended != nil {
				err = ended
			}
			if !yield(info, err) || ended != nil {
				return
			}
		}
	}
}

// state says how the view of a meta page uses a page.
func (o *owners) state(view *Meta, id uint64, p *page, overflow bool) PageState {
	switch {
	case id < 2:
		return PageMeta
	case id >= view.HighWater:
		return PageBeyond
	case o.of[id] != 0 && overflow:
		return PageOverflow
	case o.of[id] == 1 && p.flags == flagFreelist:
		return PageFreelist
	case o.of[id] != 0:
		return PageReachable
	case view.Freelist == noFreelist || o.free.has(id):
		return PageFree
	}
	return PageLost
}
