package extract

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/internal/ctxtest"
)

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// fewKeys is a database with some keys, each with its lease.
func fewKeys(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	w, err := newDBWriter(path)
	must(t, err)
	for i := range int64(9) {
		kv := dumpdb.KeyValue{Key: fmt.Append(nil, "key", i), Value: []byte("v"), CreateRevision: i + 2,
			ModRevision: i + 2, Version: 1, Lease: 5}
		must(t, w.record(&Record{KeyValue: kv, Rev: dumpdb.Rev{Main: i + 2}}))
	}
	must(t, w.put("lease", []byte("\x00\x00\x00\x00\x00\x00\x00\x05"), []byte("\x08\x05\x10\x09")),
		w.put("cluster", []byte("clusterVersion"), []byte("3.5.0")), w.close())
	return path
}

// begun is a reader of a source, as Run begins with.
func begun(ctx context.Context, t *testing.T, o Options) *reader {
	t.Helper()
	must(t, o.Valid())
	x, done, err := start(ctx, fewKeys(t), &o)
	must(t, err)
	t.Cleanup(done)
	return x
}

// TestStartEnds: a source is not read in part: where the context ends while it is opened, there is no reader.
func TestStartEnds(t *testing.T) {
	path := fewKeys(t)
	for asked := int64(0); ; asked++ {
		ctx := ctxtest.EndingAfter(asked)
		x, done, err := start(ctx, path, &Options{Format: JSONL, Stream: io.Discard})
		if ctx.Left() >= 0 {
			must(t, err)
			done()
			return
		}
		if x != nil || !errors.Is(err, context.Canceled) {
			t.Fatalf("end at %d: %+v, %v", asked, x, err)
		}
	}
}

// TestRunEnds: whenever the context ends, the extract fails with that and leaves nothing.
func TestRunEnds(t *testing.T) {
	path := fewKeys(t)
	for _, o := range []Options{{Format: Backup}, {Format: Backup, History: true}, {Format: JSONL},
		{Format: JSONL, Salvage: true}} {
		asked := int64(0)
		for ; ; asked++ {
			ctx := ctxtest.EndingAfter(asked)
			o.Out = filepath.Join(t.TempDir(), "out")
			_, err := Run(ctx, path, o)
			if ctx.Left() >= 0 {
				must(t, err)
				break
			}
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("%+v, end at %d: %v", o, asked, err)
			}
			if _, err := os.Lstat(o.Out); !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("%+v, end at %d: the output is there (%v)", o, asked, err)
			}
		}
		if asked < 10 {
			t.Errorf("%+v: the context was asked only %d times", o, asked)
		}
	}
}

// TestFilesVanish: an extract whose files are removed while it is under way is an error.
func TestFilesVanish(t *testing.T) {
	for name, pattern := range map[string]string{"the result": "out.partial/result", "scratch": "*extract*/*.run"} {
		dir := t.TempDir()
		t.Setenv("TMPDIR", dir)
		ctx := ctxtest.Asked{Context: t.Context(), Do: func() error {
			found, err := filepath.Glob(filepath.Join(dir, pattern))
			for _, f := range found {
				err = errors.Join(err, os.Remove(f))
			}
			return err
		}}
		o := Options{Format: Backup, Out: filepath.Join(dir, "out"), Memory: 600}
		if _, err := Run(ctx, fewKeys(t), o); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNoPlace: where output or scratch cannot be made, the error says so, and the output is given up.
func TestNoPlace(t *testing.T) {
	for _, format := range []Format{Backup, JSONL} {
		x := begun(t.Context(), t, Options{Format: format, Out: filepath.Join(t.TempDir(), "out")})
		must(t, os.MkdirAll(filepath.Join(x.out.Path, resultName, "x"), 0o700))
		write := x.toSink
		if format == Backup {
			write = x.backup
		}
		if err := write(t.Context()); err == nil || errors.Is(err, errNothing) {
			t.Errorf("%s: %v", format, err)
		}
	}
	out, path := filepath.Join(t.TempDir(), "out"), fewKeys(t)
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	if _, err := Run(t.Context(), path, Options{Format: JSONL, Out: out}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no scratch: %v", err)
	}
	if left, err := filepath.Glob(out + "*"); err != nil || len(left) > 0 {
		t.Errorf("%q is left (%v)", left, err)
	}
}

// TestNoManifest: a file that cannot be made is an error.
func TestNoManifest(t *testing.T) {
	f := &folder{x: &reader{res: &Result{}}, dir: t.TempDir()}
	must(t, f.write([]string{"file"}, "", nil))
	for want, path := range map[error][]string{
		syscall.ENOTDIR: {"file", "x"}, syscall.ENAMETOOLONG: {"ns", strings.Repeat("n", 300)},
	} {
		if err := f.write(path, "", nil); !errors.Is(err, want) || f.x.res.Files != 1 {
			t.Errorf("%v: %v, %d files", want, err, f.x.res.Files)
		}
	}
}

// readOnly is a writer of a new file whose transaction does not write.
func readOnly(t *testing.T) *dbWriter {
	t.Helper()
	w, err := newDBWriter(filepath.Join(t.TempDir(), "db"))
	must(t, err, w.tx.Commit())
	w.tx, err = w.db.Begin(false)
	must(t, err)
	w.keys = w.tx.Bucket([]byte("key"))
	t.Cleanup(func() { must(t, w.abort()) })
	return w
}

// TestNotWritten: a backup whose file takes no rows is an error.
func TestNotWritten(t *testing.T) {
	for _, history := range []bool{false, true} {
		x := begun(t.Context(), t, Options{Format: Backup, History: history, Out: filepath.Join(t.TempDir(), "out")})
		if err := x.backupKeys(t.Context(), readOnly(t)); !errors.Is(err, berrors.ErrTxNotWritable) || !x.res.Empty() {
			t.Errorf("history %v: %v, %+v", history, err, x.res)
		}
		if err := x.backupRest(readOnly(t)); !errors.Is(err, berrors.ErrTxNotWritable) {
			t.Errorf("history %v, other buckets: %v", history, err)
		}
	}
	w := readOnly(t)
	tx := w.tx
	if err := w.next(); !errors.Is(err, berrors.ErrTxNotWritable) || w.tx != nil {
		t.Errorf("the next transaction: %v", err)
	}
	must(t, tx.Rollback())
	closed := &dbWriter{db: &bbolt.DB{}}
	if err := closed.begin(); !errors.Is(err, berrors.ErrDatabaseNotOpen) {
		t.Errorf("no database: %v", err)
	}
	if sum, err := appendTrailer(filepath.Join(t.TempDir(), "none")); sum != "" || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %q, %v", sum, err)
	}
}

// TestUseFails: the first error of what takes the records ends the walk.
func TestUseFails(t *testing.T) {
	full := errors.New("full")
	for _, salvage := range []bool{false, true} {
		x := begun(t.Context(), t, Options{Format: JSONL, Stream: io.Discard, Salvage: salvage})
		for range x.rows(t.Context()) {
			break
		}
		calls := 0
		once := func() error {
			if calls++; calls == 1 {
				return full
			}
			return nil
		}
		err := x.selected(t.Context(), func(*dumpdb.Salvaged, bool) error { return once() })
		if err != full || calls != 1 {
			t.Errorf("salvage %v: %v after %d calls", salvage, err, calls)
		}
		for name, walk := range map[string]func(context.Context, func(*Record) error) error{
			"live": x.live, "history": x.history,
		} {
			calls = 0
			if err := walk(t.Context(), func(*Record) error { return once() }); err != full || calls != 1 {
				t.Errorf("%s, salvage %v: %v after %d calls", name, salvage, err, calls)
			}
		}
		if !x.res.Empty() {
			t.Errorf("records are counted that were not taken: %+v", x.res)
		}
	}
	s := &spool{order: byKey, budget: 1 << 20}
	must(t, s.add(&ref{key: []byte("a")}), s.add(&ref{key: []byte("b")}))
	for r, err := range s.sorted() {
		if err != nil || string(r.key) != "a" {
			t.Errorf("%+v, %v", r, err)
		}
		break
	}
}

// TestSourceEnds: what ends the reading of the source alone is no damage.
func TestSourceEnds(t *testing.T) {
	ended := false
	ctx := ctxtest.Asked{Context: t.Context(), Do: func() error {
		if ended {
			return context.Canceled
		}
		return nil
	}}
	x := begun(ctx, t, Options{Format: JSONL, Stream: io.Discard})
	none := func(*dumpdb.Salvaged, bool) error { return nil }
	must(t, x.selected(t.Context(), none))
	ended = true
	if err := x.selected(t.Context(), none); !errors.Is(err, context.Canceled) || x.res.Short() {
		t.Errorf("%v, %+v", err, x.res)
	}
}

// full is a writer that has no room.
type full struct{}

// Write fails.
func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

// TestScriptFails: a part of a script that cannot be written is an error: its head, a lease, a put.
func TestScriptFails(t *testing.T) {
	x := &reader{o: &Options{}, res: &Result{}}
	out := func() *file { return &file{Writer: bufio.NewWriterSize(full{}, 16)} }
	plain := &Record{KeyValue: dumpdb.KeyValue{Key: []byte("k")}}
	leased := &Record{KeyValue: dumpdb.KeyValue{Key: []byte("k"), Lease: 5}}
	for name, begun := range map[string]bool{"the head": false, "a lease": true} {
		p, txn := newPutScript(out(), x), newTxnScript(out(), x)
		p.begun, txn.begun = begun, begun
		for _, s := range []sink{p, txn} {
			if err := s.put(leased); !errors.Is(err, io.ErrShortWrite) {
				t.Errorf("%s, %T: %v", name, s, err)
			}
		}
	}
	txn := newTxnScript(out(), x)
	txn.begun, txn.ops = true, make([]string, txnOps)
	if err := txn.put(plain); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("a whole transaction: %v", err)
	}
	c, err := NewChangeScript(full{}, "a", "b", 1, nil)
	must(t, err)
	if err := c.Put([]byte("k"), make([]byte, 300<<10), 0); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("a large value: %v", err)
	}
	if err := c.Put([]byte("k"), nil, 5); !errors.Is(err, io.ErrShortWrite) || c.granted[6] {
		t.Errorf("the lease of a change: %v", err)
	}
}

// emptyKV is a cluster without keys. It ends the context of the copy.
type emptyKV struct {
	clientv3.KV
	end context.CancelFunc
}

// Txn begins what ends the context.
func (e *emptyKV) Txn(context.Context) clientv3.Txn { return &emptyTxn{end: e.end} }

type emptyTxn struct {
	clientv3.Txn
	end context.CancelFunc
}

// Then takes anything.
func (e *emptyTxn) Then(...clientv3.Op) clientv3.Txn { return e }

// Commit finds no key.
func (e *emptyTxn) Commit() (*clientv3.TxnResponse, error) {
	e.end()
	none := &etcdserverpb.ResponseOp{Response: &etcdserverpb.ResponseOp_ResponseRange{
		ResponseRange: &etcdserverpb.RangeResponse{}}}
	return &clientv3.TxnResponse{Header: &etcdserverpb.ResponseHeader{}, Responses: []*etcdserverpb.ResponseOp{none}},
		nil
}

// TestGrantEnds: a copy that ends while leases are granted says so, and calls no key refused.
func TestGrantEnds(t *testing.T) {
	cli, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://127.0.0.1:1"}, Logger: zap.NewNop()})
	must(t, err)
	defer func() { _ = cli.Close() }() // nothing is under way
	ctx, cancel := context.WithCancel(t.Context())
	cli.KV = &emptyKV{end: cancel}
	c := &copier{x: &reader{o: &Options{}}, to: Target{Client: cli, Write: true}, res: &ClusterCopy{},
		granted: map[int64]bool{}, batch: []want{{key: []byte("k"), lease: 5}}}
	if err := c.flush(ctx); !errors.Is(err, context.Canceled) || c.res.Absent != 1 || c.res.Failed+c.res.Written > 0 {
		t.Errorf("%v, %+v", err, c.res)
	}
	if kept, err := c.grantAll(ctx, []want{{lease: 5}}); kept != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", kept, err)
	}
}
