package cli

import (
	"bytes"
	"context"
	"math"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// keyFilter is which records of bucket key are asked for.
type keyFilter struct {
	key, prefix []byte
	from, to    dumpdb.Rev
	// at is the revision of a view, 0 for none.
	at      int64
	deleted bool
}

func newKeyFilter(o *dumpDBOptions) (f keyFilter, err error) {
	f.to = dumpdb.Rev{Main: math.MaxInt64, Sub: math.MaxInt64}
	f.deleted = o.deleted
	if o.key != "" && o.history != "" || (o.rev != "" && (o.fromRev != "" || o.toRev != "" || o.history != "" || o.deleted)) {
		return f, usagef("", "--rev, --history and --key, or --rev and a range of revisions, exclude each other")
	}
	f.prefix = []byte(o.prefix)
	if k := o.key + o.history; k != "" {
		f.key = []byte(k)
	}
	parse := func(s string, to *dumpdb.Rev) {
		if err == nil && s != "" {
			if *to, err = dumpdb.ParseRev(s); err != nil {
				err = usagef("", "%v", err)
			}
		}
	}
	parse(o.fromRev, &f.from)
	parse(o.toRev, &f.to)
	if o.toRev != "" && !strings.Contains(o.toRev, ".") {
		f.to.Sub = math.MaxInt64
	}
	var at dumpdb.Rev
	parse(o.rev, &at)
	f.at = at.Main
	return f, err
}

func (f *keyFilter) wants(r *dumpdb.Revision) bool {
	switch {
	case f.key != nil && !bytes.Equal(r.KV.Key, f.key):
		return false
	case len(f.prefix) > 0 && !bytes.HasPrefix(r.KV.Key, f.prefix):
		return false
	}
	return !f.deleted || r.Tombstone
}

// keys lists records in revision order, or the live keys at one revision in key order.
func (l *dbLister) keys(ctx context.Context) error {
	if err := l.exists(); err != nil {
		return err
	}
	if l.o.filter.at != 0 {
		return l.keysAt(ctx)
	}
	return l.eachRevision(ctx, func(r *dumpdb.Revision) error {
		return l.write(render.KeyRow{Revision: r, KeysOnly: l.o.keysOnly})
	})
}

func (l *dbLister) eachRevision(ctx context.Context, fn func(*dumpdb.Revision) error) error {
	f := &l.o.filter
	for r, err := range l.db.RevisionsFrom(f.from) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			if err := l.damaged(err); err != nil {
				return err
			}
			continue
		}
		if f.to.Less(r.Rev) {
			break
		}
		if r.Err != nil {
			l.bad++
		} else if !f.wants(&r) {
			continue
		}
		if err := fn(&r); err != nil {
			return err
		}
	}
	return nil
}

// keysAt shows the keys that lived at a revision. It holds one record per key below the asked prefix.
func (l *dbLister) keysAt(ctx context.Context) error {
	at := l.o.filter.at
	cur, err := l.db.CurrentRev()
	if err != nil {
		if err := l.damaged(err); err != nil {
			return err
		}
	}
	meta, _ := l.db.MetaBucket() // damage of bucket meta shows when that bucket is listed
	switch {
	case err == nil && at > cur:
		return usagef("", "revision %d lies in the future: the current revision is %d", at, cur)
	case at < meta.CompactRev():
		return usagef("", "revision %d has been compacted: the compact revision is %d", at, meta.CompactRev())
	}
	l.o.filter.to = dumpdb.Rev{Main: at, Sub: math.MaxInt64}
	live := map[string]dumpdb.Revision{}
	err = l.eachRevision(ctx, func(r *dumpdb.Revision) error {
		if r.Err == nil && r.Tombstone {
			delete(live, string(r.KV.Key))
			return nil
		}
		c := *r
		c.KV.Key, c.KV.Value = slices.Clone(r.KV.Key), slices.Clone(r.KV.Value)
		c.Raw, c.RawKey = slices.Clone(r.Raw), slices.Clone(r.RawKey)
		live[string(r.KV.Key)] = c
		return nil
	})
	if err != nil {
		return err
	}
	names := make([]string, 0, len(live))
	for k := range live {
		names = append(names, k)
	}
	slices.Sort(names)
	for _, k := range names {
		r := live[k]
		if err := l.write(render.KeyRow{Revision: &r, KeysOnly: l.o.keysOnly}); err != nil {
			return err
		}
	}
	return nil
}
