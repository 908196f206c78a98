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

// keys lists the records of bucket key that are asked for.
func (l *dbLister) keys(ctx context.Context) error {
	if err := l.exists(); err != nil {
		return err
	}
	switch {
	case l.o.stats:
		return l.usage(ctx)
	case l.o.salvage:
		return l.salvaged(ctx)
	}
	for r, err := range l.db.Query(ctx, l.o.query()) {
		switch {
		case errors.Is(err, dumpdb.ErrCompacted), errors.Is(err, dumpdb.ErrFutureRev):
			return usagef("", "%v", err)
		case err != nil:
			if err := l.damaged(err); err != nil {
				return err
			}
			continue
		case r.Err != nil:
			l.bad++
		}
		if err := l.write(render.KeyRow{Revision: &r, KeysOnly: l.o.keysOnly}); err != nil {
			return err
		}
	}
	return nil
}

// salvaged lists what the file holds anywhere. The query is applied here: salvage knows none.
func (l *dbLister) salvaged(ctx context.Context) error {
	q := l.o.query()
	for r, err := range l.db.SalvageRevisions(ctx) {
		if err != nil {
			if err := l.damaged(err); err != nil {
				return err
			}
			continue
		}
		if r.Err == nil && (q.Key != nil && string(r.KV.Key) != string(q.Key) || len(r.KV.Key) < len(q.Prefix) || string(r.KV.Key[:len(q.Prefix)]) != string(q.Prefix)) {
			continue
		}
		if r.Main < q.FromRev || q.ToRev > 0 && r.Main > q.ToRev {
			continue
		}
		if err := l.write(render.SalvagedRow{Salvaged: &r, KeysOnly: l.o.keysOnly}); err != nil {
			return err
		}
	}
	return nil
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

// pages lists every page of the file.
func (l *dbLister) pages(ctx context.Context) error {
	for p, err := range l.db.Pages(ctx) {
		if err := l.damaged(err); err != nil {
			return err
		}
		if err := l.write(render.PageRow{PageInfo: p}); err != nil {
			return err
		}
	}
	return nil
}

// onePage shows a page and its elements.
func (l *dbLister) onePage() error {
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
