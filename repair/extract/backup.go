package extract

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// smallBuckets are copied row by row. Every bucket must exist; otherwise older servers and restores fail on the file.
var smallBuckets = []string{"meta", "lease", "alarm", "auth", "authUsers", "authRoles", "members", "members_removed",
	"cluster"}

// backup writes a bbolt file with the selected records under their own revisions, and appends the sha256 as snapshot
// save does, unless the source's does not fit.
//
// A state without its history looks like the result of a compaction: the newest record of every key, and the compaction
// marks at its revision. With the marks, the revision of the backup is that of the state even if its newest record is
// older.
func (x *reader) backup(ctx context.Context) (err error) {
	if x.o.Stream != nil {
		return errors.New("a backup is a file")
	}
	tmp := filepath.Join(x.out.Path, resultName)
	w, err := newDBWriter(tmp)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.abort())
			if errors.Is(err, errNothing) {
				err = nil
			}
		}
	}()
	if err = x.backupKeys(ctx, w); err != nil {
		return err
	}
	if x.res.Empty() {
		return errNothing
	}
	if err = x.backupRest(w); err != nil {
		return err
	}
	if err = w.close(); err != nil {
		return err
	}
	if l := &x.res.Lost; l.Trailer != "" || l.Ending != "" { // a sum would certify what may be wrong
		x.res.note("the backup has no sha256 trailer, since that of the source does not fit: restore asks for " +
			"--accept-unproven-content")
	} else if x.res.SHA256, err = appendTrailer(tmp); err != nil {
		return err
	}
	return x.out.CommitFile(resultName)
}

// backupKeys writes bucket key in revision order, which is fastest for bbolt.
func (x *reader) backupKeys(ctx context.Context, w *dbWriter) error {
	if x.o.History {
		return x.selected(ctx, func(rec *dumpdb.Salvaged, _ bool) error {
			r := &Record{KeyValue: rec.KV, Rev: rec.Rev, Tombstone: rec.Tombstone, Origin: rec.Origin}
			return x.emit(r, w.record)
		})
	}
	states, err := x.states(ctx)
	if err != nil {
		return err
	}
	sorted := x.newSpool(byRev, nil)
	if err := x.decide(states, func(k keyState) error { return sorted.add(k.put) }); err != nil {
		return err
	}
	rd := x.db.RecordReader()
	for r, err := range sorted.sorted() {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		rec, err := x.load(rd, r)
		if err != nil {
			if err := x.res.damaged(err); err != nil {
				return err
			}
			continue
		}
		if err := x.emit(rec, w.record); err != nil {
			return err
		}
	}
	return nil
}

// backupRest copies the other buckets and sets the compaction marks.
func (x *reader) backupRest(w *dbWriter) error {
	for _, name := range smallBuckets {
		for row, err := range x.db.Rows(name) {
			if err != nil {
				if x.noMeta && errors.Is(err, dumpdb.ErrNoMeta) {
					break // reported when it was opened
				}
				if err := x.res.damaged(err); err != nil {
					return err
				}
				continue
			}
			if !x.carries(name, row.Key) {
				continue
			}
			if err := w.put(name, row.Key, row.Value); err != nil {
				return err
			}
		}
	}
	if x.o.History {
		return nil
	}
	mark := dumpdb.Rev{Main: x.res.Revision}.Bytes()
	return errors.Join(w.put("meta", []byte("scheduledCompactRev"), mark),
		w.put("meta", []byte("finishedCompactRev"), mark))
}

// carries leaves out alarms, which belong to a member's disk and not to the data, and leases without a key.
func (x *reader) carries(bucket string, key []byte) bool {
	switch bucket {
	case "alarm":
		x.res.note("an alarm of the source is left out")
		return false
	case "lease":
		if x.o.Leases != LeaseGrant {
			return false
		}
		return x.o.Select.Everything() || len(key) == 8 && x.used[int64(binary.BigEndian.Uint64(key))]
	case "meta":
		return x.o.History || string(key) != "scheduledCompactRev" && string(key) != "finishedCompactRev"
	}
	return true
}

// dbWriter writes a new bbolt file in large transactions.
type dbWriter struct {
	path string
	db   *bbolt.DB
	tx   *bbolt.Tx
	keys *bbolt.Bucket
	// n counts the records of the transaction, size their bytes.
	n, size int
}

func newDBWriter(path string) (*dbWriter, error) {
	// The array freelist allocates pages in order, so that equal input makes equal files.
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoSync: true, NoGrowSync: true, NoFreelistSync: true,
		FreelistType: bbolt.FreelistArrayType})
	if err != nil {
		return nil, err
	}
	w := &dbWriter{path: path, db: db}
	if err := w.begin(); err != nil {
		return nil, errors.Join(err, w.abort())
	}
	for _, name := range append([]string{"key"}, smallBuckets...) {
		if _, err := w.tx.CreateBucketIfNotExists([]byte(name)); err != nil {
			return nil, errors.Join(err, w.abort())
		}
	}
	return w, w.next()
}

func (w *dbWriter) begin() (err error) {
	if w.tx, err = w.db.Begin(true); err != nil {
		return err
	}
	if w.keys = w.tx.Bucket([]byte("key")); w.keys != nil {
		w.keys.FillPercent = 0.9
	}
	w.n, w.size = 0, 0
	return nil
}

func (w *dbWriter) next() error {
	tx := w.tx
	w.tx = nil
	if err := tx.Commit(); err != nil {
		return err
	}
	return w.begin()
}

// record writes one record of bucket key.
func (w *dbWriter) record(rec *Record) error {
	key := rec.Rev.Bytes()
	kv := mvccpb.KeyValue{Key: rec.Key}
	if rec.Tombstone {
		key = append(key, 't')
	} else {
		kv = mvccpb.KeyValue{Key: rec.Key, CreateRevision: rec.CreateRevision, ModRevision: rec.ModRevision,
			Version: rec.Version,
			Value:   rec.Value, Lease: rec.Lease}
	}
	value, err := kv.Marshal()
	if err != nil {
		return err
	}
	if err := w.keys.Put(key, value); err != nil {
		return err
	}
	w.n, w.size = w.n+1, w.size+len(value)
	if w.n >= datadir.TxRecords || w.size >= datadir.TxBytes {
		return w.next()
	}
	return nil
}

func (w *dbWriter) put(bucket string, key, value []byte) error {
	return w.tx.Bucket([]byte(bucket)).Put(append([]byte{}, key...), append([]byte{}, value...))
}

func (w *dbWriter) close() error {
	tx := w.tx
	w.tx = nil
	return errors.Join(tx.Commit(), w.db.Sync(), w.db.Close())
}

// abort removes the file.
func (w *dbWriter) abort() error {
	if w.tx != nil {
		_ = w.tx.Rollback()
	}
	_ = w.db.Close()
	return os.Remove(w.path)
}

// appendTrailer appends the sha256 of a file to it and returns it in hex.
func appendTrailer(path string) (sum string, err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	digest := h.Sum(nil)
	if _, err := f.Write(digest); err != nil {
		return "", err
	}
	return hex.EncodeToString(digest), f.Sync()
}
