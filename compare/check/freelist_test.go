package check_test

import (
	"testing"

	"go.etcd.io/bbolt"

	"github.com/etcd-medic/etcd-medic/compare/check"
)

// storeFreelist opens the database as a server on Windows or macOS does.
func storeFreelist(t *testing.T, dir string) {
	t.Helper()
	db, err := bbolt.Open(dbOf(dir), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(func(tx *bbolt.Tx) error {
		_,
			err := tx.CreateBucketIfNotExists([]byte("alarm"))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// Servers on other systems than Linux store a freelist; only where the members differ it says more.
func TestStoredFreelist(t *testing.T) {
	dirs := sound().Write(t, t.TempDir())
	storeFreelist(t, dirs[0])
	for kind, in := range map[check.Kind]*check.Input{check.KindFreelistStored: dirInput(t, dirs[0]),
		check.KindFreelistStoredAlone: dirInput(t, dirs...)} {
		f := wantFinding(t, in, "D08", []string{"node1"}, "normal for a server on Windows or macOS")
		if f.Severity != check.Info || f.Kind != kind {
			t.Errorf("%s, %s, want %s", f.Severity, f.Kind, kind)
		}
	}
	for _, d := range dirs[1:] {
		storeFreelist(t, d)
	}
	for _, f := range runCheck(t, dirInput(t, dirs...), "D08").Findings {
		if f.Kind != check.KindFreelistStored {
			t.Errorf("%v: %s", f.Members, f.Kind)
		}
	}
}
