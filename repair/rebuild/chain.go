package rebuild

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/etcd-medic/etcd-medic/compare/backup/chain"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/internal/progress"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// ChainsAt returns the chains of full and delta snapshots at a base: a folder of them, or one full snapshot with deltas
// next to it. It returns nil for any other base.
func ChainsAt(base evidence.Spec) []chain.Chain {
	dir, full := base.Where, ""
	if s, ok := chain.ParseName(base.Where); ok && s.Full {
		dir, full = filepath.Dir(base.Where), filepath.Base(base.Where)
	}
	st, err := os.Stat(dir)
	if err != nil || !st.IsDir() {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var all []chain.Snapshot
	for _, e := range entries {
		if s, ok := chain.ParseName(filepath.Join(dir, e.Name())); ok && e.Type().IsRegular() {
			all = append(all, s)
		}
	}
	chains, _ := chain.Group(all)
	return slices.DeleteFunc(chains, func(c chain.Chain) bool { return full != "" && c.Full.Name() != full })
}

// RunChain rebuilds from a chain: the full snapshot, and the changes of its deltas up to the target, record by record
// with their revisions. Auth, members and leases stay as in the full snapshot, since deltas contain only keys. With
// Logs, the entries after the full snapshot are executed instead, and everything is as after them. On error,
// Options.Out and DBOut are removed.
func RunChain(ctx context.Context, o Options, chains []chain.Chain) (*Result, error) {
	if len(o.Logs) > 0 {
		return runChainLogs(ctx, o, chains)
	}
	if len(o.Skip) > 0 || o.To.Index > 0 {
		return nil, refuse("deltas carry revisions, not log entries: without --log a chain takes no --skip or --to " +
			"index=N")
	}
	c, err := chainFor(chains, o.To)
	if err != nil {
		return nil, err
	}
	res := &Result{SchemaVersion: SchemaVersion, Base: c.Full.Name(), Target: o.To.String(), Output: o.Out, DB: o.DBOut,
		Logs:    []string{},
		Skipped: []EntryLine{}, Doubtful: []EntryLine{}, Verified: []Verification{}, Notes: []string{}}
	out := &builder{o: o, res: res}
	defer out.abandon()
	if err := out.claim(); err != nil {
		return nil, err
	}
	b := &chained{o: o, chain: c, res: res}
	work := filepath.Join(out.out.Path, "work")
	if err := b.run(ctx, out.out.Path, work); err != nil {
		return nil, err
	}
	out.unproven = b.unproven
	if err := out.chainAgainst(ctx, work); err != nil {
		return nil, err
	}
	return res, out.publish(ctx, work)
}

// chainFor selects the last chain whose full snapshot is not later than the target.
func chainFor(chains []chain.Chain, to Target) (*chain.Chain, error) {
	for i := len(chains) - 1; i >= 0; i-- {
		full := &chains[i].Full
		if to.Revision > 0 && full.Last > to.Revision || !to.Time.IsZero() && full.Created.After(to.Time) {
			continue
		}
		return &chains[i], nil
	}
	return nil, refuse("no full snapshot here is as old as %s", to)
}

// chained is one rebuild from a chain.
type chained struct {
	o     Options
	chain *chain.Chain
	res   *Result
	// serves is the revision up to which the chain can be applied, stop the last one to apply.
	serves, stop int64
	leases       map[int64]bool
	// dropped counts the records with an unknown lease.
	dropped int64
	// unproven is true if the sha256 trailer of the full snapshot does not fit its bytes.
	unproven bool
}

func (b *chained) run(ctx context.Context, scratch, work string) error {
	full := filepath.Join(scratch, "full")
	if err := b.unpack(ctx, full); err != nil {
		return err
	}
	if err := b.verify(ctx, full); err != nil {
		return err
	}
	if err := b.target(ctx); err != nil {
		return err
	}
	if err := datadir.CopyDB(ctx, work, full); err != nil {
		return err
	}
	if err := b.apply(ctx, work); err != nil {
		return err
	}
	return b.result(ctx, work)
}

// unpack writes the full snapshot into scratch.
func (b *chained) unpack(ctx context.Context, path string) error {
	r, err := b.chain.Full.Open()
	if err != nil {
		return fmt.Errorf("%s: %w", b.chain.Full.Name(), err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return errors.Join(err, r.Close())
	}
	_, work := progress.Begin(ctx, "unpacking "+b.chain.Full.Name(), 0)
	defer work.End()
	_, err = io.Copy(f, work.Reader(&interruptible{ctx, r}))
	if err = errors.Join(err, f.Close(), r.Close()); err != nil {
		return fmt.Errorf("%s: %w", b.chain.Full.Name(), err)
	}
	return nil
}

type interruptible struct {
	ctx context.Context //nolint:containedctx // one copy
	r   io.Reader
}

// Read implements io.Reader.
func (i *interruptible) Read(p []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	return i.r.Read(p)
}

// verify reads the whole chain before it is applied.
func (b *chained) verify(ctx context.Context, full string) error {
	db, err := dumpdb.Open(full)
	if err != nil {
		return refuse("%s does not open as a database: %v", b.chain.Full.Name(), err)
	}
	defer func() { _ = db.Close() }()
	rep, err := db.Check(ctx)
	if err != nil {
		return err
	}
	if len(rep.Damage) > 0 {
		return refuse("%s is damaged in %s (first: %v)", b.chain.Full.Name(),
			plural.Of(len(rep.Damage), "place", "places"), rep.Damage[0])
	}
	if t, err := db.Trailer(); err == nil && t.State == "mismatch" {
		if !b.o.SkipHashCheck {
			return refuse("the sha256 of %s is not that of its bytes (--skip-hash-check takes it nevertheless)",
				b.chain.Full.Name())
		}
		b.res.note("the sha256 of %s does not hold: any value of it may be wrong", b.chain.Full.Name())
		b.unproven = true
	}
	r, err := b.chain.Verify(ctx, db)
	if err != nil {
		return err
	}
	b.serves = r.Revision
	for _, f := range r.Faults {
		b.res.note("%s", f.Text)
	}
	meta, err := db.MetaBucket()
	if err != nil {
		return err
	}
	b.res.From = Point{Revision: r.FullRevision, CompactRevision: meta.CompactRev()}
	if meta.ConsistentIndex != nil {
		b.res.From.Index = *meta.ConsistentIndex
	}
	if meta.Term != nil {
		b.res.From.Term = *meta.Term
	}
	leases, err := db.Leases()
	if err != nil {
		return refuse("the leases of %s cannot be read: %v", b.chain.Full.Name(), err)
	}
	b.leases = map[int64]bool{}
	for _, l := range leases {
		b.leases[int64(l.ID)] = true
	}
	return nil
}

// target finds the last revision to apply.
func (b *chained) target(ctx context.Context) error {
	from, to := b.res.From.Revision, b.o.To
	switch {
	case to.Last:
		b.stop = b.serves
		if last := b.chain.Last(); b.serves < last {
			return refuse("the chain serves up to revision %d and is broken before %d; --to revision=%d rebuilds "+
				"what it serves: %v", b.serves, last, b.serves, b.res.Notes)
		}
		return nil
	case to.Revision > 0:
		b.stop = to.Revision
	default:
		if err := b.findStop(ctx); err != nil {
			return err
		}
	}
	switch {
	case b.stop < from:
		return refuse("%s holds revision %d already, which is after %s; take an older one", b.chain.Full.Name(), from,
			to)
	case b.stop > b.serves:
		return refuse("the chain serves up to revision %d only, not to %d: %v", b.serves, b.stop, b.res.Notes)
	}
	return nil
}

// findStop reads the events to find the revision of a time or of the last change of a key. An event has the time at
// which it was received, and it was committed before that. A revision counts if all its events were received by the
// time.
func (b *chained) findStop(ctx context.Context) error {
	var last, late int64
	for e, err := range b.chain.Events(ctx, b.res.From.Revision) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || e.ModRevision > b.serves {
			break
		}
		if b.o.To.Before != nil && bytes.Equal(e.Key, b.o.To.Before) {
			last = e.ModRevision
		}
		if late == 0 && !b.o.To.Time.IsZero() && e.Time.After(b.o.To.Time) {
			late = e.ModRevision
		}
	}
	switch {
	case b.o.To.Before != nil && last == 0:
		return refuse("no delta of %s changes the key", b.chain.Full.Name())
	case b.o.To.Before != nil:
		b.stop = last - 1
		b.res.note("revision %d is the last that changes the key", last)
	case late == 0:
		return refuse("no change shows a time after %s, so whether later ones are missing is not known; take "+
			"revision=%d or last", b.o.To, b.serves)
	default:
		b.stop = late - 1
		b.res.note("revision %d was received after the time asked for; it may have been committed before it", late)
	}
	return nil
}

// apply writes the records of the changes.
func (b *chained) apply(ctx context.Context, work string) error {
	db, err := bbolt.Open(work, 0o600, &bbolt.Options{NoSync: true, NoGrowSync: true, NoFreelistSync: true,
		FreelistType: bbolt.FreelistArrayType})
	if err != nil {
		return err
	}
	w := &chainWriter{b: b, db: db}
	for e, err := range b.chain.Events(ctx, b.res.From.Revision) {
		if err == nil && e.ModRevision > b.stop {
			break
		}
		if err == nil {
			err = w.event(&e)
		} else if w.rev >= b.stop {
			break // events after the target do not matter
		}
		if err != nil {
			return errors.Join(err, w.rollback(), db.Close())
		}
	}
	if w.tx != nil {
		if err := w.tx.Commit(); err != nil {
			return errors.Join(err, db.Close())
		}
	}
	if b.dropped > 0 {
		b.res.note("%d records name a lease that was granted after the full snapshot; deltas do not hold its TTL, so "+
			"these keys are without lease and do not expire", b.dropped)
	}
	b.res.note("auth, members and leases are those of the full snapshot, revision %d: deltas hold keys only",
		b.res.From.Revision)
	return errors.Join(db.Sync(), db.Close())
}

// chainWriter writes records in transactions of bounded size.
type chainWriter struct {
	b        *chained
	db       *bbolt.DB
	tx       *bbolt.Tx
	n, size  int
	rev, sub int64
}

func (w *chainWriter) rollback() error {
	if w.tx == nil {
		return nil
	}
	return w.tx.Rollback()
}

func (w *chainWriter) event(e *chain.Event) error {
	if w.tx == nil || (w.n >= datadir.TxRecords || w.size >= datadir.TxBytes) && e.ModRevision != w.rev {
		if w.tx != nil {
			if err := w.tx.Commit(); err != nil {
				return err
			}
		}
		tx, err := w.db.Begin(true)
		if err != nil {
			return err
		}
		w.tx, w.n, w.size = tx, 0, 0
	}
	if w.sub++; e.ModRevision != w.rev {
		w.rev, w.sub = e.ModRevision, 0
		w.b.res.Entries++
		w.b.res.Applied++
	}
	w.n++
	w.b.res.Records++
	at := dumpdb.Rev{Main: w.rev, Sub: w.sub}.Bytes()
	kv := &mvccpb.KeyValue{Key: e.Key}
	if e.Delete {
		at = append(at, 't') // marks a tombstone (server/storage/mvcc/revision.go)
	} else {
		kv.Value, kv.CreateRevision, kv.ModRevision, kv.Version, kv.Lease = e.Value, e.CreateRevision, e.ModRevision,
			e.Version, e.Lease
		if kv.Lease != 0 && !w.b.leases[kv.Lease] {
			kv.Lease = 0
			w.b.dropped++
		}
	}
	value, err := kv.Marshal()
	if err != nil {
		return err
	}
	w.size += len(value)
	bucket := w.tx.Bucket([]byte("key"))
	if bucket == nil {
		return refuse("%s has no bucket key", w.b.chain.Full.Name())
	}
	bucket.FillPercent = 0.9
	return bucket.Put(at, value)
}

// result reads the result.
func (b *chained) result(ctx context.Context, work string) error {
	db, err := dumpdb.Open(work)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	stats, err := db.KVStats(ctx)
	if err != nil {
		return err
	}
	if stats.CurrentRev != b.stop {
		return fmt.Errorf("the result is at revision %d, not at %d", stats.CurrentRev, b.stop)
	}
	sum, err := db.HashKV(ctx, b.stop)
	if err != nil {
		return err
	}
	b.res.To = b.res.From
	b.res.To.Revision = b.stop
	b.res.Keys, b.res.HashKV, b.res.Etcd = stats.LiveKeys, sum.Hash, "any"
	return nil
}
