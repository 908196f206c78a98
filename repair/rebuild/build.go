package rebuild

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

var allBuckets = []string{"key", "meta", "lease", "alarm", "auth", "authUsers", "authRoles", "members",
	"members_removed", "cluster"}

// engine executes entries on a separate database.
type engine struct {
	b   *builder
	m   *replay.Machine
	db  *bbolt.DB
	tx  *bbolt.Tx
	key *bbolt.Bucket
	// n counts the entries of the transaction, size the bytes of its records.
	n, size int
	// shadow also executes the skipped entries; nil if none is skipped.
	shadow *shadow
	// members is the membership according to the log; confChanged is set once a conf change took effect.
	members     *members
	confChanged bool
	// look, if set, is called for every step that writes keys, before it is executed.
	look   func(*replay.Step)
	at     Point
	record []byte
	// disputed counts executed entries for which another member has a different entry at the same index.
	disputed int
	// leaning are the rules that depend on the patch release, as earlier entries showed them.
	leaning leanings
	// unsettled are the entries whose effect a later entry may have had.
	unsettled []unsettled
}

// build executes the log on a copy of the base at path.
func (b *builder) build(ctx context.Context, path string, look func(*replay.Step)) error {
	e, err := b.newEngine(ctx, path)
	if err != nil {
		return err
	}
	e.look = look
	err = e.run(ctx)
	if err == nil {
		err = e.finish(ctx)
	}
	if err != nil {
		if e.tx != nil {
			_ = e.tx.Rollback()
		}
		return errors.Join(err, e.db.Close())
	}
	return e.db.Close()
}

func (b *builder) newEngine(ctx context.Context, path string) (*engine, error) {
	e := &engine{b: b, at: b.from, leaning: leanings{}}
	if b.base != nil {
		b.say("copying the base")
		if err := datadir.CopyDB(ctx, path, b.parts.DB); err != nil {
			return nil, err
		}
	}
	var err error
	// The array freelist allocates pages in order, so that equal input makes equal files.
	e.db, err = bbolt.Open(path, 0o600, &bbolt.Options{NoSync: true, NoGrowSync: true, NoFreelistSync: true,
		FreelistType: bbolt.FreelistArrayType})
	if err != nil {
		return nil, err
	}
	if err := e.prepare(ctx); err != nil {
		if e.tx != nil {
			_ = e.tx.Rollback()
		}
		return nil, errors.Join(err, e.db.Close())
	}
	return e, nil
}

// prepare opens the first transaction and reads the initial state.
func (e *engine) prepare(ctx context.Context) error {
	tx, err := e.db.Begin(true)
	if err != nil {
		return err
	}
	e.tx = tx
	for _, name := range allBuckets {
		if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
			return err
		}
	}
	if e.b.base == nil {
		if err := tx.Bucket([]byte("auth")).Put([]byte("authRevision"),
			binary.BigEndian.AppendUint64(nil, 1)); err != nil {
			return err
		}
	}
	if err := e.begin(); err != nil {
		return err
	}
	if e.m, err = e.b.machine(ctx, e.value); err != nil {
		return err
	}
	if e.members, err = readMembers(tx, e.b.version); err != nil {
		return err
	}
	e.members.rules.Admits = e.b.admits
	if err := e.anchored(); err != nil {
		return err
	}
	if len(e.b.o.Skip) > 0 {
		e.shadow, err = e.b.newShadow(ctx, e.value)
	}
	return err
}

// machine returns the model of the base.
func (b *builder) machine(ctx context.Context, values func(string, dumpdb.Rev) ([]byte, bool)) (*replay.Machine,
	error) {
	var db *dumpdb.DB
	if b.base != nil {
		db = b.base.DB.Handle
	}
	single := b.base != nil && len(b.base.DB.Members) == 1 || b.base == nil && len(b.logs) > 0 &&
		len(b.logs[0].Membership.Voters) == 1
	m, err := replay.NewMachine(ctx, db, replay.MachineOptions{Version: b.rules, Single: single, Values: values})
	switch {
	case errors.Is(err, replay.ErrKeysUnread):
		return nil, refuse("the base is damaged: %w; "+soundOne, err)
	case err != nil:
		return nil, fmt.Errorf("the base: %w", err)
	}
	return m, nil
}

// mayPrecedeRestore reports whether the base may be the backup that the cluster was restored from, or one of its age.
// The index of such a base is one of another log, even if member IDs and terms are the same.
func (b *builder) mayPrecedeRestore() bool {
	return b.base != nil && !b.base.HasWAL() && b.restored() != nil
}

// anchored refuses a base without any of the log's last writes up to the base's index. One that may be older than a
// restore needs most of them, in their place: keys that are written again and again with one value are in both.
func (e *engine) anchored() error {
	f := e.b.sv.writes.Find(e.m)
	old := e.b.mayPrecedeRestore()
	switch {
	case f.Tried >= 4 && f.Found == 0:
		return refuse("the base shows none of the last %d keys that the log writes up to the base's index %d: they "+
			"do not belong together", f.Tried, e.b.from.Index)
	case old && !f.Most() && (f.Tried > 0 || e.b.from.Term == 0):
		return refuse("the log begins with a restore, and nothing shows that the base was taken after it: %s; the "+
			"backup of a restore has an index of the old cluster's log", foundText(f, e.b.from.Index))
	case old && f.Tried > 0 && f.InPlace < fewWrites:
		e.b.res.note("the log begins with a restore, and only %s that the base was taken after it",
			plural.Of(f.InPlace, "key shows", "keys show"))
	case f.Tried == 0 && e.b.base != nil && len(e.b.res.Logs) > 0:
		e.b.res.note("the log shows no write up to the base's index, so only IDs and terms say that both belong " +
			"together")
	}
	return nil
}

func foundText(f replay.LastWritesFound, index uint64) string {
	if f.Tried == 0 {
		return fmt.Sprintf("the log writes no key up to the base's index %d", index)
	}
	return fmt.Sprintf("of the last %s that the log writes up to the base's index %d, the base has %d at the revision "+
		"that fits", plural.Of(f.Tried, "key", "keys"), index, f.InPlace)
}

// fewWrites may be the same before and after a restore by chance.
const fewWrites = 4

// value reads the value of an earlier record from the open transaction.
func (e *engine) value(key string, at dumpdb.Rev) ([]byte, bool) {
	raw := e.key.Get(at.Bytes())
	kv, err := dumpdb.DecodeKeyValue(raw)
	if raw == nil || err != nil || string(kv.Key) != key {
		return nil, false
	}
	return kv.Value, true
}

func (e *engine) begin() error {
	if e.tx == nil {
		tx, err := e.db.Begin(true)
		if err != nil {
			return err
		}
		e.tx = tx
	}
	e.key = e.tx.Bucket([]byte("key"))
	e.key.FillPercent = 0.9
	e.n, e.size = 0, 0
	return nil
}

func (e *engine) commit() error {
	tx := e.tx
	e.tx = nil
	return tx.Commit()
}

// finish writes meta, and removes what compactions dropped.
func (e *engine) finish(ctx context.Context) error {
	if e.tx == nil {
		if err := e.begin(); err != nil {
			return err
		}
	}
	e.at.Revision, e.at.CompactRevision = e.m.Revision(), e.m.CompactRevision()
	if err := e.passEmpty(); err != nil {
		return err
	}
	e.leftOpen()
	e.b.res.To, e.b.res.Keys = e.at, int64(e.m.Keys())
	if err := e.smallRows().writeMeta(); err != nil {
		return err
	}
	if err := e.compaction().run(ctx); err != nil {
		return err
	}
	if e.shadow != nil {
		e.shadow.keys(e.m, e.b.res)
	}
	if e.disputed > 0 {
		e.b.res.note("at %d indexes the logs hold different entries; the entry that a member knows to be committed "+
			"was executed", e.disputed)
	}
	return errors.Join(e.commit(), e.db.Sync())
}
