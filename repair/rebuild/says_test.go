package rebuild_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/repair/rebuild"
)

// TestCaughtUpSays: each thing that a log shows has its sentence, and makes the database incomplete where it lacks it.
func TestCaughtUpSays(t *testing.T) {
	for _, tc := range []struct {
		c     rebuild.CaughtUp
		whole bool
		says  []string
	}{
		{rebuild.CaughtUp{ConsistentIndex: 4, Commit: 9}, true, nil},
		{rebuild.CaughtUp{ConsistentIndex: 4, Commit: 9, Executed: 5, Etcd: "3.5"}, true,
			[]string{"5 committed entries above the database's consistent index 4 were executed by the rules of " +
				"etcd 3.5, up to entry 9"}},
		{rebuild.CaughtUp{FromStart: true}, true, []string{"the log of the source is whole from the first entry on"}},
		{rebuild.CaughtUp{ConsistentIndex: 4, Commit: 9, Missing: 2, Why: "torn"}, false,
			[]string{"missing: 2 committed entries above the database's consistent index 4, up to entry 9: torn"}},
		{rebuild.CaughtUp{Commit: 9, Unproven: 3}, false,
			[]string{"missing: 3 entries at the end of the log, above entry 9, that may have been acknowledged: this"}},
		{rebuild.CaughtUp{ConsistentIndex: 12, Commit: 9, EndUnknown: "there is no log"}, false,
			[]string{"missing: an unknown number of entries above entry 12, which the server may have acknowledged: " +
				"there is no log; name"}},
		{rebuild.CaughtUp{Executed: 5, Doubtful: 1}, false,
			[]string{"5 committed entries", "the outcome of 1 of them depends on the patch release of the server"}},
	} {
		same := slices.EqualFunc(tc.c.Says(), tc.says, strings.HasPrefix)
		if !same || tc.c.Whole() != tc.whole {
			t.Errorf("%+v: whole %v, says %q; want %v, %q", tc.c, tc.c.Whole(), tc.c.Says(), tc.whole, tc.says)
		}
	}
}

// TestPositionOfRebuilt: the database says where it stands in the log, in the form that its servers write.
func TestPositionOfRebuilt(t *testing.T) {
	wal := founded(t, false, "k", 5) // entries 3 to 7, all of term 2
	meta := func(path string) *dumpdb.MetaBucket {
		t.Helper()
		db, err := dumpdb.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = db.Close() }()
		m, err := db.MetaBucket()
		if err != nil {
			t.Fatal(err)
		}
		return &m
	}
	for version, hasTerm := range map[string]bool{"3.4.0": false, "3.5.0": true} {
		base := filepath.Join(t.TempDir(), "base.db")
		build := func(base, out string, index uint64) {
			t.Helper()
			if _, err := run(t, rebuild.Options{Base: evidence.Spec{Where: base}, Logs: []evidence.Spec{{Where: wal}},
				To: rebuild.Target{Index: index}, Version: release.Of(version), Out: out}); err != nil {
				t.Fatal(err)
			}
		}
		build("", base, 5)
		for _, from := range []string{"", base} {
			for index := uint64(5); index <= 7; index++ {
				out := filepath.Join(t.TempDir(), "out.db")
				build(from, out, index)
				m := meta(out)
				if m.ConsistentIndex == nil || *m.ConsistentIndex != index || (m.Term != nil) != hasTerm ||
					hasTerm && *m.Term != 2 {
					t.Errorf("%s, up to %d from %q: %+v", version, index, from, m)
				}
			}
		}
	}
}
