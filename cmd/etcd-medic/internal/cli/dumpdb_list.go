package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// dbLister writes the rows of one database.
type dbLister struct {
	stream   *render.Stream
	o        *dumpDBOptions
	db       *dumpdb.DB
	isBackup bool
	// noMeta is true if neither meta page is valid, which has already been reported.
	noMeta bool
	rows   int64
	// bad counts damage.
	bad int
}

// errEnough ends a listing at --limit.
var errEnough = errors.New("enough rows")

func (l *dbLister) list(ctx context.Context) error {
	var err error
	switch {
	case l.o.pages:
		err = l.pages(ctx)
	case l.o.page >= 0:
		err = l.onePage()
	case l.o.bucket == "":
		err = l.overview(ctx)
	case l.o.bucket == "key":
		err = l.keys(ctx)
	default:
		err = l.small(ctx)
	}
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	if l.o.bucket == "" && !l.o.pages && l.o.page < 0 {
		return nil // the overview has it
	}
	return l.altered()
}

// altered says that the file differs from what was saved: the rows may not be either, though they decode. Where one
// meta page is not valid, they may be those of one transaction earlier.
func (l *dbLister) altered() error {
	if l.noMeta {
		return nil
	}
	if d := l.db.InvalidMeta(); d != nil && !l.o.pages && l.o.page < 0 { // lists of pages have it
		if err := l.damaged(d); err != nil {
			return err
		}
	}
	if !l.isBackup {
		return nil
	}
	t, err := l.db.Trailer()
	if err != nil || t.State != "mismatch" {
		return err
	}
	l.bad++
	return l.stream.Write(render.TrailerRow{Trailer: t})
}

func (l *dbLister) write(r render.Row) error {
	if l.o.limit > 0 && l.rows >= l.o.limit {
		return errEnough
	}
	l.rows++
	return l.stream.Write(r)
}

// damaged writes every damage inside err as a row, and returns any other error.
func (l *dbLister) damaged(err error) error {
	return eachDamage(err, l.noMeta, func(d *dumpdb.DamageError) error {
		l.bad++
		return l.stream.Write(render.DBDamage{DamageError: d})
	})
}

// eachDamage calls use for every damage inside err and returns the other errors. noMeta skips damage of the meta pages,
// which was reported before the first row.
func eachDamage(err error, noMeta bool, use func(*dumpdb.DamageError) error) error {
	if err == nil {
		return nil
	}
	var rest []error
	for _, e := range flatten(err) {
		var d *dumpdb.DamageError
		if !errors.As(e, &d) {
			rest = append(rest, e)
			continue
		}
		if noMeta && errors.Is(d, dumpdb.ErrNoMeta) {
			continue
		}
		if err := use(d); err != nil {
			return err
		}
	}
	return errors.Join(rest...)
}

// overview shows meta pages, page graph, trailer and buckets.
func (l *dbLister) overview(ctx context.Context) error {
	for _, m := range l.db.Metas() {
		if !m.Valid || m.HeaderProblem != "" {
			l.bad++
		}
		if err := l.write(render.MetaPage{Meta: m}); err != nil {
			return err
		}
	}
	rep, err := l.db.Check(ctx)
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if rep == nil {
		return err
	}
	if err := l.write(render.PageSummary{PageReport: rep, FileSize: l.db.Size(),
		PageSize: l.db.PageSize()}); err != nil {
		return err
	}
	if err := l.trailer(); err != nil {
		return err
	}
	if err := l.buckets(ctx); err != nil {
		return err
	}
	for _, d := range rep.Damage {
		if err := l.damaged(d); err != nil {
			return err
		}
	}
	return nil
}

func (l *dbLister) trailer() error {
	if !l.isBackup {
		return nil
	}
	t, err := l.db.Trailer()
	if err != nil {
		return err
	}
	if t.State == "mismatch" {
		l.bad++
	}
	return l.write(render.TrailerRow{Trailer: t})
}

func (l *dbLister) buckets(ctx context.Context) error {
	buckets, _ := l.db.Buckets() // damage of the root tree is in the page report
	for _, b := range buckets {
		row := render.BucketRow{Bucket: b}
		for _, err := range l.db.Rows(b.Name) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				row.Damaged++
			} else {
				row.Rows++
			}
		}
		if err := l.write(row); err != nil {
			return err
		}
	}
	return nil
}

// small shows a bucket other than key, then the damage of rows that do not decode.
func (l *dbLister) small(ctx context.Context) error {
	if err := l.exists(); err != nil {
		return err
	}
	rows, bad := l.decodeSmall(ctx)
	for _, r := range rows {
		if err := l.write(r); err != nil {
			return err
		}
	}
	return l.damaged(bad)
}

func (l *dbLister) exists() error {
	buckets, dmg := l.db.Buckets()
	if slices.ContainsFunc(buckets, func(b dumpdb.Bucket) bool { return b.Name == l.o.bucket }) || l.nested() {
		return nil
	}
	if len(dmg) > 0 {
		for _, d := range dmg {
			if err := l.damaged(d); err != nil {
				return err
			}
		}
		return errEnough // it is unknown whether the bucket existed
	}
	var names []string
	for _, b := range buckets {
		names = append(names, b.Name)
	}
	return usagef(didYouMean(l.o.bucket, names, "the buckets are: "+strings.Join(names, " ")),
		"there is no bucket %q in this file", l.o.bucket)
}

// nested reports whether the bucket is inside another one, PARENT/CHILD; etcd never creates one.
func (l *dbLister) nested() bool {
	at := strings.LastIndexByte(l.o.bucket, '/')
	if at < 0 {
		return false
	}
	for row, err := range l.db.Rows(l.o.bucket[:at]) {
		if err == nil && row.Bucket && string(row.Key) == l.o.bucket[at+1:] {
			return true
		}
	}
	return false
}

// decodeSmall returns the rows of the small buckets. To add a bucket, add a case here and a row type in package render.
func (l *dbLister) decodeSmall(ctx context.Context) ([]render.Row, error) {
	switch l.o.bucket {
	case "meta":
		m, err := l.db.MetaBucket()
		return metaRows(&m), err
	case "auth":
		a, err := l.db.Auth()
		return authRows(&a), onlyBucket(err, "auth")
	case "authUsers":
		a, err := l.db.Auth()
		return rowsOf(a.Users, func(u dumpdb.User) render.Row { return render.UserRow{User: u} }),
			onlyBucket(err, "authUsers")
	case "authRoles":
		a, err := l.db.Auth()
		return rowsOf(a.Roles, func(r dumpdb.Role) render.Row { return render.RoleRow{Role: r} }),
			onlyBucket(err, "authRoles")
	case "lease":
		v, err := l.db.Leases()
		return rowsOf(v, func(x dumpdb.Lease) render.Row { return render.LeaseRow{Lease: x} }), err
	case "alarm":
		v, err := l.db.Alarms()
		return rowsOf(v, func(x dumpdb.Alarm) render.Row { return render.AlarmRow{Alarm: x} }), err
	case "members":
		v, err := l.db.Members()
		return rowsOf(v, func(x dumpdb.Member) render.Row { return render.MemberRow{Member: x} }), err
	case "members_removed":
		v, err := l.db.RemovedMembers()
		return rowsOf(v, func(id dumpdb.ID) render.Row {
			return render.MemberRow{Member: dumpdb.Member{ID: id}, Removed: true}
		}), err
	case "cluster":
		c, err := l.db.Cluster()
		return clusterRows(&c), err
	}
	return l.rawRows(ctx)
}

func rowsOf[T any](in []T, row func(T) render.Row) []render.Row {
	out := make([]render.Row, len(in))
	for i := range in {
		out[i] = row(in[i])
	}
	return out
}

// onlyBucket keeps the damage of one bucket: Auth reads three.
func onlyBucket(err error, bucket string) error {
	if err == nil {
		return nil
	}
	var keep []error
	for _, e := range flatten(err) {
		var d *dumpdb.DamageError
		if !errors.As(e, &d) || d.Bucket == bucket || d.Bucket == "" {
			keep = append(keep, e)
		}
	}
	return errors.Join(keep...)
}

// rawRows returns the rows of a bucket without a decoder. They are buffered, since such buckets are small.
func (l *dbLister) rawRows(ctx context.Context) ([]render.Row, error) {
	var bad error
	for row, err := range l.db.Rows(l.o.bucket) {
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			bad = errors.Join(bad, err)
		default:
			if werr := l.write(render.DBRow{Row: &row, KeysOnly: l.o.keysOnly}); werr != nil {
				return nil, werr
			}
		}
	}
	return nil, bad
}
