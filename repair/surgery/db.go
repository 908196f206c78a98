package surgery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// DB rebuilds a database from its readable parts, or goes back one transaction.
type DB struct {
	// Previous makes the previous meta page the used one instead of building a new file.
	Previous bool
	// Base is a backup of the same cluster from which the log is replayed if records are missing; empty means from the
	// log's first entry.
	Base evidence.Spec
	// Proven replaces rows that differ by those of a member that the diagnosis proves right.
	Proven bool
}

// Name is db.
func (DB) Name() string { return "db" }

func (c DB) apply(ctx context.Context, w *work) error {
	if w.parts.DB == "" && (c.Previous || w.source().Source.Kind != evidence.KindDataDir) {
		return refusef("", "%s has no database", w.report.Source)
	}
	if err := w.out.Mkdir(dirOf(w.dbPath())); err != nil {
		return err
	}
	w.madeDB = true
	switch {
	case c.Previous:
		return previous(ctx, w)
	case !placed(ctx, w.parts.DB):
		return makeWhole(ctx, w, c)
	}
	return rebuildFrom(ctx, w, c)
}

// smallBuckets are the buckets except key. Each is read from the newest transaction or, if damaged there, from the
// previous one.
var smallBuckets = []string{"meta", "lease", "alarm", "auth", "authUsers", "authRoles", "members", "members_removed",
	"cluster"}

// rebuildFrom writes a new file from all readable rows.
func rebuildFrom(ctx context.Context, w *work, c DB) (err error) {
	src, err := dumpdb.OpenSalvage(ctx, w.parts.DB)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	dst, err := bolt.Open(w.dbPath(), 0o600, &bolt.Options{Timeout: time.Second, NoFreelistSync: true,
		FreelistType: bolt.FreelistMapType, NoSync: true, PageSize: src.PageSize()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	w.rebuiltDB = true
	b := &rebuilder{w: w, ctx: ctx, src: src, dst: dst, base: c.Base, proven: c.Proven}
	defer func() { err = errors.Join(err, b.log.close()) }()
	if b.prev, err = src.PreviousView(); err != nil {
		b.prev = nil // no second valid meta page
	}
	for _, name := range smallBuckets {
		if err := b.bucket(name); err != nil {
			return err
		}
	}
	if err := b.keepUnknownBuckets(); err != nil {
		return err
	}
	if err := b.keys(); err != nil {
		return err
	}
	if c.Proven {
		if err := b.takeProven(); err != nil {
			return err
		}
	}
	if err := dst.Sync(); err != nil {
		return err
	}
	return b.account()
}

type rebuilder struct {
	w         *work
	ctx       context.Context
	src, prev *dumpdb.DB
	dst       *bolt.DB

	batch []pair
	// records counts the written records, salvaged those of them outside the tree.
	records, salvaged, undecodable int
	conflicts                      int
	// last and sub are the revision of the last record.
	last, sub int64
	compact   int64
	holes     []span
	// parts are the records that transactions of several writes lack, below those that were found.
	parts []missingPart
	// filled are gaps whose records came from a peer. ended is true if a peer shows where the records end.
	filled []span
	from   string
	ended  bool
	base   evidence.Spec
	log    replayedDB
	damage []*dumpdb.DamageError
	// shown are the damaged places of which another database has every record.
	shown map[*dumpdb.DamageError]bool
	// proven is DB.Proven. emptied is true if no record was found in a bucket that is missing or was compacted.
	proven, emptied bool
	// size is the number of bytes in batch.
	size int
}

type pair struct{ key, value []byte }

// rowsOf reads a whole bucket; ok is false if rows are or may be missing.
func rowsOf(db *dumpdb.DB, name string) (rows []pair, ok bool) {
	ok = true
	for r, err := range db.Rows(name) {
		if err != nil || r.Bucket {
			ok = false
			continue
		}
		rows = append(rows, pair{append([]byte(nil), r.Key...), append([]byte{}, r.Value...)})
	}
	return rows, ok
}

func (b *rebuilder) bucket(name string) error {
	rows, whole := rowsOf(b.src, name)
	state := "damaged"
	if b.lacks(name) {
		state, whole = "missing", false
	}
	if !whole && b.prev != nil && !slices.Contains(b.prev.MissingBuckets(), name) {
		if old, ok := rowsOf(b.prev, name); ok {
			b.w.givesUp("what the last transaction changed in bucket %s: it is %s, the rows are those "+
				"of the transaction before", name, state)
			rows, whole = old, true
		}
	}
	if !whole && name != "meta" {
		if db := b.fromLog(); db != nil {
			if again, ok := rowsOf(db, name); ok {
				b.w.did("bucket %s is what a replay of the log gives: it is %s", name, state)
				rows, whole = again, true
			}
		}
	}
	if !whole {
		if name == "meta" && !hasKey(rows, "consistent_index") {
			return refusef("clone the member from another one: etcd-medic repair plan",
				"the consistent index of %s cannot be read, so it is unknown which entries its database has",
				b.w.report.Source)
		}
		b.w.givesUp("a part of bucket %s: %s could be read", name, plural.Of(len(rows), "row", "rows"))
		if err := b.w.need(AcceptDivergence, "clone the member from another one: etcd-medic repair plan",
			fmt.Sprintf("bucket %s is %s, and the previous transaction cannot be read either", name,
				state)); err != nil {
			return err
		}
	}
	return b.store(name, rows)
}

// lacks reports whether the rows of a bucket are lost with the bucket: every server makes it at its first start, and
// cluster later. Where rows are taken from a member that is proven right, they replace these as well.
func (b *rebuilder) lacks(name string) bool {
	return !b.proven && name != "cluster" && slices.Contains(b.src.MissingBuckets(), name)
}

func hasKey(rows []pair, key string) bool {
	for _, r := range rows {
		if string(r.key) == key {
			return true
		}
	}
	return false
}

// keepUnknownBuckets keeps buckets that etcd does not know.
func (b *rebuilder) keepUnknownBuckets() error {
	list, _ := b.src.Buckets() // damage in the root tree appears as missing buckets
	for _, x := range list {
		if known(x.Name) {
			continue
		}
		rows, whole := rowsOf(b.src, x.Name)
		if !whole {
			b.w.givesUp("a part of bucket %s, which etcd does not use", x.Name)
		}
		if err := b.store(x.Name, rows); err != nil {
			return err
		}
	}
	return nil
}

func known(name string) bool {
	for _, n := range smallBuckets {
		if n == name {
			return true
		}
	}
	return name == "key"
}

func (b *rebuilder) store(name string, rows []pair) error {
	return b.dst.Update(func(tx *bolt.Tx) error {
		x, err := tx.CreateBucketIfNotExists([]byte(name))
		if err != nil {
			return err
		}
		x.FillPercent = 0.9 // rows come in order
		for _, r := range rows {
			if err := x.Put(r.key, r.value); err != nil {
				return err
			}
		}
		return nil
	})
}

// batchRecords is the number of records per transaction, as in etcd's backend.
const batchRecords = 10_000

// keys writes bucket key: the records of the tree, and those of lost pages whose revision damage has cut from the tree.
func (b *rebuilder) keys() error {
	m, _ := b.src.MetaBucket() // damage there was handled above
	b.compact = m.CompactRev()
	if err := b.store("key", nil); err != nil {
		return err
	}
	for s, err := range b.src.SalvageRevisions(b.ctx) {
		var bad *dumpdb.DamageError
		switch {
		case errors.As(err, &bad):
			b.damage = append(b.damage, bad)
			continue
		case err != nil:
			return err
		case s.Origin == dumpdb.OriginFree:
			continue // deleted by a later transaction
		case s.Err != nil:
			b.undecodable++
			continue
		}
		if err := b.record(&s); err != nil {
			return err
		}
	}
	if err := b.tail(); err != nil {
		return err
	}
	if err := b.flush(); err != nil {
		return err
	}
	if err := b.fillParts(); err != nil {
		return err
	}
	// Only if every key was deleted before does a compaction remove all records.
	b.emptied = b.records == 0 && (b.compact > 0 || slices.Contains(b.src.MissingBuckets(), "key"))
	return nil
}

func (b *rebuilder) record(s *dumpdb.Salvaged) error {
	if s.Origin == dumpdb.OriginUnreachable {
		b.salvaged++
		if s.Conflicts > 0 {
			b.conflicts++
		}
	}
	if from := max(b.last, b.compact, 1); s.Main > from+1 && s.Main > b.compact {
		if err := b.hole(span{uint64(from + 1), uint64(s.Main - 1)}); err != nil {
			return err
		}
	}
	b.part(s.Rev)
	return b.add(&s.Revision)
}

func (b *rebuilder) add(r *dumpdb.Revision) error {
	b.last, b.sub = r.Main, r.Sub
	return b.write(r)
}

// write adds a record to the batch.
func (b *rebuilder) write(r *dumpdb.Revision) error {
	b.records++
	b.batch = append(b.batch, pair{append([]byte(nil), r.RawKey...), append([]byte{}, r.Raw...)})
	if b.size += len(r.Raw); len(b.batch) < batchRecords && b.size < maxTaken {
		return nil
	}
	return b.flush()
}

func (b *rebuilder) flush() error {
	rows := b.batch
	b.batch, b.size = b.batch[:0], 0
	return b.store("key", rows)
}
