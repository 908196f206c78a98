package rebuild

import (
	"context"
	"errors"
	"testing"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// TestRowsThatCannotBeWritten: whatever row of the result cannot be written, the rebuild fails with the reason.
func TestRowsThatCannotBeWritten(t *testing.T) {
	db := emptyDB(t, allBuckets...)
	m, err := replay.NewMachine(t.Context(), nil, replay.MachineOptions{Version: release.Exact(5, 9)})
	if err != nil {
		t.Fatal(err)
	}
	// In a transaction that only reads, each write fails.
	err = db.View(func(tx *bbolt.Tx) error {
		c := &Consequences{EmptyRevisions: []int64{1}}
		e := &engine{b: &builder{version: release.Exact(5, 9), res: &Result{Consequences: c}}, m: m, tx: tx, db: db,
			key: tx.Bucket([]byte("key")), at: Point{Index: 9, Term: 2, Revision: 1}}
		rows := e.smallRows()
		for name, do := range map[string]func() error{
			"auth":         func() error { return rows.auth(&dumplog.Request{Kind: dumplog.KindAuthEnable}) },
			"role deleted": func() error { return rows.roleDeleted("r") },
			"user":         func() error { return rows.user("u") },
			"alarm":        func() error { return rows.alarm(&dumplog.AlarmRequest{Action: 1}) },
			"alarm off":    func() error { return rows.alarm(&dumplog.AlarmRequest{}) },
			"downgrade":    func() error { return rows.downgrade(&dumplog.DowngradeInfoSet{Version: "3.4.0"}) },
			"lease":        func() error { return rows.lease(5, 60, 0) },
			"meta":         rows.writeMeta,
			"record":       func() error { return e.put(&replay.Change{Rev: dumpdb.Rev{Main: 2}, Key: "k"}) },
			"empty":        e.passEmpty,
			"at the end":   func() error { return e.finish(context.Background()) },
		} {
			if err := do(); !errors.Is(err, bolterrors.ErrTxNotWritable) {
				t.Errorf("%s: %v", name, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	closed := &engine{b: &builder{res: &Result{}}, m: m, db: db}
	for name, do := range map[string]func(context.Context) error{"first": closed.prepare, "last": closed.finish,
		"between": func(context.Context) error { return closed.begin() }} {
		if err := do(t.Context()); !errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
			t.Errorf("%s, with a closed database: %v", name, err)
		}
	}
}
