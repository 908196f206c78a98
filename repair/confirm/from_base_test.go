package confirm_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/repair/confirm"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
	"github.com/etcd-medic/etcd-medic/repair/rebuild"
)

// purged makes a data dir of a member as a server leaves it that has purged its log up to an index, and a backup of
// that index.
func purged(t *testing.T, incident, name string, index uint64) (dir, backup string) {
	t.Helper()
	src := filepath.Join(evidencetest.Incident(t, incident), name)
	backup = filepath.Join(t.TempDir(), "backup.db")
	if _, err := rebuild.Run(t.Context(), rebuild.Options{Logs: []evidence.Spec{{Where: src}},
		To: rebuild.Target{Index: index}, Out: backup}); err != nil {
		t.Fatal(err)
	}
	set, err := evidence.Open(t.Context(), []evidence.Spec{{Where: src}}, evidence.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	m := set.Members[0]
	v, err := datadir.ViewOf(m)
	if err != nil {
		t.Fatal(err)
	}
	d := datadir.Dir{MemberID: uint64(m.MemberID), ClusterID: uint64(m.ClusterID), Term: 1, Index: index,
		Voters: v.Voters, Learners: v.Learners,
		Members: v.Members, Removed: v.Removed, ClusterVersion: m.DB.Cluster.Version, Minor: m.Version.Minor,
		Commit: m.ConsistentIndex()}
	for e, err := range replay.Log(t.Context(), set.Members) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Index == index {
			d.Term = e.Term
		}
		if e.Index > index {
			d.Entries = append(d.Entries, datadir.Entry{Type: e.Type, Term: e.Term, Index: e.Index,
				Data: slices.Clone(e.Data)})
		}
	}
	dir = filepath.Join(t.TempDir(), name)
	if _, err := datadir.Write(t.Context(), dir, d, datadir.CopyOf(m.Source.Parts().DB)); err != nil {
		t.Fatal(err)
	}
	return dir, backup
}

func edit(t *testing.T, dir string, edits ...datadir.Edit) {
	t.Helper()
	if err := datadir.EditNew(filepath.Join(dir, "member", "snap", "db"), edits...); err != nil {
		t.Fatal(err)
	}
}

// flip changes the last byte of the value of the record nth from the end that is no tombstone.
func flip(nth int) datadir.Edit {
	return func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte("key"))
		c := b.Cursor()
		for k, v := c.Last(); k != nil; k, v = c.Prev() {
			if len(k) > 17 {
				continue
			}
			if nth--; nth > 0 {
				continue
			}
			v = slices.Clone(v)
			v[len(v)-1] ^= 1
			return b.Put(k, v)
		}
		return errors.New("there are not that many records")
	}
}

// TestFromBackup: the log of a member that purged it continues from a backup; what differs after it refutes, what the
// backup itself may be wrong about does not.
func TestFromBackup(t *testing.T) {
	const index = 150
	dir, backup := purged(t, "m-healthy-3.6", "node1", index)
	r := ask(t, confirm.Options{}, dir)
	want(t, r, all(compare.NotPossible, "node1"))
	if !strings.Contains(r.Confirm.Reason, "begin with entry 151") {
		t.Errorf("%+v", r.Confirm)
	}
	r = ask(t, confirm.Options{}, dir, backup)
	want(t, r, map[string]compare.ConfirmStatus{"node1": compare.Confirmed, "backup.db": compare.NotPossible})
	if b := r.Confirm.Base; b == nil || b.Kind != "backup" || b.Source != "backup.db" || b.Index != index {
		t.Errorf("%+v", b)
	}
	altered := evidencetest.Copy(t, dir)
	edit(t, altered, flip(2))
	r = ask(t, confirm.Options{}, altered, backup)
	want(t, r, map[string]compare.ConfirmStatus{"node1": compare.Refuted, "backup.db": compare.NotPossible})

	altered = evidencetest.Copy(t, dir)
	edit(t, altered, datadir.SetAuthRevision(99))
	r = ask(t, confirm.Options{}, altered, backup)
	want(t, r, all(compare.NotPossible, "node1", "backup.db"))
	if m := member(t, r, "node1"); !strings.Contains(m.Reason, "bucket auth") || len(m.Differences) == 0 {
		t.Errorf("%+v", m)
	}
}

// TestOlderRecordThanBase: a record that the base holds as well is none that the server made.
func TestOlderRecordThanBase(t *testing.T) {
	dir, backup := purged(t, "k-lagging-node", "node1", 100)
	edit(t, dir, func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte("key"))
		k, v := b.Cursor().First()
		v = slices.Clone(v)
		v[len(v)-1] ^= 1
		return b.Put(slices.Clone(k), v)
	})
	r := ask(t, confirm.Options{}, dir, backup)
	want(t, r, all(compare.NotPossible, "node1", "backup.db"))
	if m := member(t, r, "node1"); !strings.Contains(m.Reason, "base holds already") {
		t.Errorf("%+v", m)
	}
}

// TestFromReceivedSnapshot: a .snap.db in the snap folder is a base as well.
func TestFromReceivedSnapshot(t *testing.T) {
	dir, backup := purged(t, "m-healthy-3.6", "node2", 150)
	if err := datadir.CopyDB(t.Context(), filepath.Join(dir, "member", "snap", "0000000000000096.snap.db"),
		backup); err != nil {
		t.Fatal(err)
	}
	r := ask(t, confirm.Options{}, dir)
	want(t, r, all(compare.Confirmed, "node2"))
	if b := r.Confirm.Base; b == nil || b.Kind != "snapshot-db" || b.Source != "node2" || b.Index != 150 {
		t.Errorf("%+v", b)
	}
}

// TestFromLaggingMember: without any other base, an older database of a member confirms and never refutes.
func TestFromLaggingMember(t *testing.T) {
	ahead, backup := purged(t, "m-healthy-3.6", "node1", 150)
	lagging, _ := purged(t, "m-healthy-3.6", "node2", 150)
	db := filepath.Join(lagging, "member", "snap", "db")
	if err := os.Remove(db); err != nil {
		t.Fatal(err)
	}
	if err := datadir.CopyDB(t.Context(), db, backup); err != nil {
		t.Fatal(err)
	}
	r := ask(t, confirm.Options{}, ahead, lagging)
	want(t, r, map[string]compare.ConfirmStatus{"node1": compare.Confirmed, "node2": compare.NotPossible})
	if b := r.Confirm.Base; b == nil || b.Kind != "member-db" || b.Source != "node2" {
		t.Errorf("%+v", b)
	}
	altered := evidencetest.Copy(t, ahead)
	edit(t, altered, flip(2))
	r = ask(t, confirm.Options{}, altered, lagging)
	want(t, r, all(compare.NotPossible, "node1", "node2"))
	if m := member(t, r, "node1"); !strings.Contains(m.Reason, "which of the two is wrong") {
		t.Errorf("%+v", m)
	}
}
