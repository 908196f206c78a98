package rebuild

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/etcd-medic/etcd-medic/compare/backup/chain"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// emptyDB is a new database with buckets, which a test writes to.
func emptyDB(t *testing.T, buckets ...string) *bbolt.DB {
	t.Helper()
	db, err := bbolt.Open(filepath.Join(t.TempDir(), "db"), 0o600, &bbolt.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range buckets {
			if _, err := tx.CreateBucket([]byte(name)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// rowsOf counts the committed rows of bucket key.
func rowsOf(t *testing.T, db *bbolt.DB) (n int) {
	t.Helper()
	err := db.View(func(tx *bbolt.Tx) error {
		n = tx.Bucket([]byte("key")).Stats().KeyN
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestChainTransactions: a transaction of a chain ends before the first new revision after it is full. A rollback drops
// what was not committed.
func TestChainTransactions(t *testing.T) {
	db := emptyDB(t, "key")
	w := &chainWriter{b: &chained{res: &Result{}, chain: &chain.Chain{}}, db: db}
	if err := w.rollback(); err != nil {
		t.Errorf("nothing is open: %v", err)
	}
	for i, c := range []struct {
		full      int
		rev       int64
		committed int
	}{{0, 2, 0}, {datadir.TxRecords, 2, 0}, {datadir.TxRecords - 1, 3, 0}, {datadir.TxRecords, 4, 3}, {0, 4, 3},
		{datadir.TxRecords + 1, 5, 5}} {
		if w.n = c.full; w.tx == nil {
			w.n = 0
		}
		before := w.tx
		if err := w.event(&chain.Event{Key: []byte("k"), Value: []byte("v"), ModRevision: c.rev}); err != nil {
			t.Fatal(err)
		}
		if i > 0 && (before != w.tx) != (c.full >= datadir.TxRecords && w.sub == 0) {
			t.Errorf("event %d: a new transaction is %t", i, before != w.tx)
		}
		if got := rowsOf(t, db); got != c.committed {
			t.Errorf("event %d: %d records are committed, want %d", i, got, c.committed)
		}
	}
	if w.n != 1 || w.rev != 5 || w.sub != 0 || w.b.res.Records != 6 || w.b.res.Entries != 4 || w.b.res.Applied != 4 {
		t.Errorf("%d in the transaction, revision %d/%d, %+v", w.n, w.rev, w.sub, w.b.res)
	}
	if err := w.rollback(); err != nil || rowsOf(t, db) != 5 {
		t.Errorf("%v, %d records are left", err, rowsOf(t, db))
	}
	large := &chainWriter{b: w.b, db: emptyDB(t, "key"), size: datadir.TxBytes}
	for rev := range int64(2) { // the first begins the transaction
		e := &chain.Event{Key: []byte("k"), Value: make([]byte, datadir.TxBytes), ModRevision: rev + 2}
		if err := large.event(e); err != nil {
			t.Fatal(err)
		}
	}
	if n := rowsOf(t, large.db); n != 1 {
		t.Errorf("%d large records are committed, want 1", n)
	}
	if err := large.rollback(); err != nil {
		t.Error(err)
	}
	bare := &chainWriter{b: w.b, db: emptyDB(t)}
	err := bare.event(&chain.Event{ModRevision: 2})
	if err == nil || !strings.Contains(err.Error(), "has no bucket key") {
		t.Errorf("a database without keys: %v", err)
	}
	if err := bare.rollback(); err != nil {
		t.Error(err)
	}
}

// TestResultOfAChain: what is at another revision than asked for is an error, not a result.
func TestResultOfAChain(t *testing.T) {
	path := madeDB(t, 40) // revision 41
	for stop, want := range map[int64]string{41: "", 40: "is at revision 41, not at 40",
		42: "is at revision 41, not at 42"} {
		b := &chained{stop: stop, res: &Result{From: Point{Index: 7, Revision: 3}}}
		err := b.result(t.Context(), path)
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
			continue
		}
		if r := b.res; err != nil || r.To != (Point{Index: 7, Revision: 41}) || r.Keys != 4 || r.HashKV == 0 ||
			r.Etcd != "any" {
			t.Errorf("%v, %+v", err, r)
		}
	}
	if err := (&chained{res: &Result{}}).result(t.Context(), filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a result that is not there")
	}
}

// TestMembersOfBase: the members and raft's configuration of a base have to decode. Removed members are known by their
// IDs; a row of another form is none.
func TestMembersOfBase(t *testing.T) {
	for name, c := range map[string]struct{ member, confState, want string }{
		"sound":           {`{"id":1}`, `{"voters":[1]}`, ""},
		"no confState":    {`{"id":1}`, "", ""},
		"a broken member": {`{"id":`, `{"voters":[1]}`, "bucket members of the base does not decode"},
		"broken raft":     {`{"id":1}`, `{`, "meta/confState of the base does not decode"},
	} {
		err := emptyDB(t, "members", "members_removed", "meta").Update(func(tx *bbolt.Tx) error {
			errs := []error{tx.Bucket([]byte("members")).Put([]byte("1"), []byte(c.member)),
				tx.Bucket([]byte("members_removed")).Put([]byte("1f"), []byte("removed")),
				tx.Bucket([]byte("members_removed")).Put([]byte("no ID"), []byte("removed"))}
			if c.confState != "" {
				errs = append(errs, tx.Bucket([]byte("meta")).Put([]byte("confState"), []byte(c.confState)))
			}
			ms, err := readMembers(tx, release.AnyOf(5))
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
			if err == nil && (len(ms.byID) != 1 || len(ms.rules.Removed) != 1 || !ms.rules.Removed[dumplog.ID(0x1f)]) {
				t.Errorf("%s: %+v, removed %v", name, ms.byID, ms.rules.Removed)
			}
			return errors.Join(errs...)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestKeptValue: a put with ignore_value has the value of an earlier record of its key, and is an error without it.
func TestKeptValue(t *testing.T) {
	err := emptyDB(t, "key").Update(func(tx *bbolt.Tx) error {
		e := &engine{key: tx.Bucket([]byte("key")), at: Point{Index: 9}}
		first, second := dumpdb.Rev{Main: 2}, dumpdb.Rev{Main: 3, Sub: 1}
		if err := e.put(&replay.Change{Rev: first, Key: "k", Create: 2, Version: 1, Lease: 5,
			Value: []byte("v")}); err != nil {
			return err
		}
		if err := e.put(&replay.Change{Rev: second, Key: "k", Create: 2, Version: 2, From: first}); err != nil {
			return err
		}
		for at, want := range map[dumpdb.Rev]mvccpb.KeyValue{
			first:  {Key: []byte("k"), Value: []byte("v"), CreateRevision: 2, ModRevision: 2, Version: 1, Lease: 5},
			second: {Key: []byte("k"), Value: []byte("v"), CreateRevision: 2, ModRevision: 3, Version: 2},
		} {
			b, err := want.Marshal()
			if err != nil || string(e.key.Get(at.Bytes())) != string(b) {
				t.Errorf("%s: %q, want %q, %v", at, e.key.Get(at.Bytes()), b, err)
			}
		}
		for name, c := range map[string]replay.Change{"of no record": {Key: "k", From: dumpdb.Rev{Main: 7}},
			"of another key": {Key: "z", From: first}} {
			c.Rev = dumpdb.Rev{Main: 8}
			if err := e.put(&c); err == nil || !strings.Contains(err.Error(), "entry 9 keeps the value of revision") {
				t.Errorf("%s: %v", name, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestShadowKeys: the keys that differ between the histories with and without the skipped entries: by their value, by
// their lease, or because one history lacks them.
func TestShadowKeys(t *testing.T) {
	machine := func(records ...mvccpb.KeyValue) *replay.Machine {
		var edits []datadir.Edit
		for i, kv := range records {
			b, err := kv.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			rev := dumpdb.Rev{Main: kv.ModRevision, Sub: int64(i)}
			edits = append(edits, datadir.PutBucketKey("key", rev.Bytes(), b))
		}
		for _, id := range []byte{7, 8} {
			edits = append(edits, datadir.PutBucketKey("lease", []byte{0, 0, 0, 0, 0, 0, 0, id}, []byte{8, id, 16, 60}))
		}
		db, err := dumpdb.Open(madeDB(t, 4, edits...))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = db.Close() }() // only read
		m, err := replay.NewMachine(t.Context(), db, replay.MachineOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	kv := func(key, value string, lease int64) mvccpb.KeyValue {
		return mvccpb.KeyValue{Key: []byte(key), Value: []byte(value), CreateRevision: 9, ModRevision: 9, Version: 1,
			Lease: lease}
	}
	with := machine(kv("a", "1", 7), kv("b", "1", 7), kv("c", "1", 0), kv("d", "1", 0))
	without := machine(kv("a", "1", 7), kv("b", "1", 8), kv("c", "2", 0), kv("e", "1", 0))
	res := &Result{Consequences: &Consequences{}}
	(&shadow{with}).keys(without, res)
	var got []string
	for _, k := range res.Consequences.Keys {
		got = append(got, fmt.Sprintf("%s: %s; %s", k.Key, k.Without, k.With))
	}
	want := []string{"b: lease 7; lease 8", "c: value of revision 9.2; another value",
		"d: value of revision 9.3; absent", "e: absent; value of revision 9.3"}
	if !slices.Equal(got, want) || res.Consequences.KeyCount != 4 {
		t.Errorf("%q of %d, want %q", got, res.Consequences.KeyCount, want)
	}
}

// TestComparedWithADamagedMember: what a member cannot show is not compared, with the reason.
func TestComparedWithADamagedMember(t *testing.T) {
	path := madeDB(t, 40)
	ours, err := dumpdb.Open(madeDB(t, 40))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ours.Close() }() // only read
	var page int64
	for r, err := range ours.Revisions() {
		if err != nil {
			t.Fatal(err)
		}
		page = int64(r.Page)
		break
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(make([]byte, 4096), page*4096)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	set, err := evidence.Open(t.Context(), []evidence.Spec{{Where: path}}, evidence.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = set.Close() }() // only read
	b := &builder{res: &Result{To: Point{Index: 41, Revision: 41, CompactRevision: -1}}, sv: &survey{}}
	v, err := b.against(t.Context(), ours, set.Members[0])
	if err != nil {
		t.Fatal(err)
	}
	if key := v.Buckets[0]; key.Equal != release.Unknown || key.Why == "" || v.HashKV != release.Unknown {
		t.Errorf("%+v, hash %v", key, v.HashKV)
	}
	for _, x := range v.Buckets[1:] {
		if !x.Equal.Certain() || x.Why != "" {
			t.Errorf("a bucket that is whole: %+v", x)
		}
	}
}

// TestFoundText: how many of the log's last writes a base shows, if the log writes any.
func TestFoundText(t *testing.T) {
	const shown = " that the log writes up to the base's index 7, the base has "
	for want, f := range map[string]replay.LastWritesFound{
		"the log writes no key up to the base's index 7":             {},
		"of the last 1 key" + shown + "0 at the revision that fits":  {Tried: 1},
		"of the last 3 keys" + shown + "2 at the revision that fits": {Tried: 3, Found: 3, InPlace: 2},
	} {
		if got := foundText(f, 7); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
