package cli

import (
	"context"
	"errors"
	"slices"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

func (o *dumpDBOptions) query() dumpdb.Query {
	q := dumpdb.Query{FromRev: o.fromRev, ToRev: o.toRev, Rev: o.rev, Live: o.live, Deleted: o.deleted}
	if k := o.key + o.history; k != "" {
		q.Key = []byte(k)
	}
	if o.prefix != "" {
		q.Prefix = []byte(o.prefix)
	}
	return q
}

// keys lists the requested data of bucket key.
func (l *dbLister) keys(ctx context.Context) error {
	if !l.noMeta {
		if err := l.exists(); err != nil {
			return err
		}
	}
	switch {
	case l.o.stats:
		return l.usage(ctx)
	case l.o.hashKV:
		return l.hashKV(ctx)
	}
	return l.records(ctx)
}

// hashKV shows the hash, or why there is none.
func (l *dbLister) hashKV(ctx context.Context) error {
	h, err := l.db.HashKV(ctx, l.o.rev)
	if err != nil {
		return l.damaged(outOfReach(err))
	}
	return l.write(render.HashRow{HashKV: h})
}

// outOfReach turns the error for an unavailable revision into a usage error.
func outOfReach(err error) error {
	if errors.Is(err, dumpdb.ErrCompacted) || errors.Is(err, dumpdb.ErrFutureRev) {
		return usagef("", "%v", err)
	}
	return err
}

func (l *dbLister) usage(ctx context.Context) error {
	u, err := l.db.Usage(ctx, l.o.query(), l.o.depth)
	if u == nil {
		return err
	}
	rows := []render.Row{render.UsageGroup{What: "total", Group: u.Total}}
	for _, g := range u.Prefixes {
		rows = append(rows, render.UsageGroup{What: "prefix", Group: g})
	}
	for _, g := range u.Kinds {
		rows = append(rows, render.UsageGroup{What: "kind", Group: g})
	}
	for _, k := range u.Largest {
		rows = append(rows, render.UsageKey{What: "largest", KeyUsage: k})
	}
	for _, k := range u.Busiest {
		rows = append(rows, render.UsageKey{What: "busiest", KeyUsage: k})
	}
	for _, r := range rows {
		if err := l.write(r); err != nil {
			return err
		}
	}
	return l.damaged(err)
}

// pages lists every page of the file, then damage without a page in it, such as a truncated file.
func (l *dbLister) pages(ctx context.Context) error {
	for p, err := range l.db.Pages(ctx) {
		if err := l.damaged(err); err != nil {
			return err
		}
		if err := l.write(render.PageRow{PageInfo: p}); err != nil {
			return err
		}
	}
	rep, err := l.db.Check(ctx)
	if rep == nil {
		return err
	}
	for _, d := range rep.Damage {
		if err := l.damaged(d); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// onePage shows a page and its elements.
func (l *dbLister) onePage() error {
	if end := l.pageEnd(); uint64(l.o.page) >= end && end > 0 {
		return usagef("", "there is no page %d: the last is %d", l.o.page, end-1)
	}
	p, err := l.db.Page(uint64(l.o.page))
	if err != nil {
		return l.damaged(err)
	}
	if err := l.write(render.RawPage{RawPage: p}); err != nil {
		return err
	}
	for i := range p.Elements {
		if err := l.write(render.PageElement{Element: &p.Elements[i]}); err != nil {
			return err
		}
	}
	for _, d := range slices.Clone(p.Damage) {
		if err := l.damaged(d); err != nil {
			return err
		}
	}
	return nil
}

// pageEnd is the first page id that neither the file nor its meta page has.
func (l *dbLister) pageEnd() uint64 {
	size := int64(l.db.PageSize())
	return max(l.db.Meta().HighWater, uint64((l.db.Size()+size-1)/size))
}
