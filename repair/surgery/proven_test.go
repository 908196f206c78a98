package surgery_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence/casetest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
	"github.com/etcd-medic/etcd-medic/repair/surgery"
)

// shape is the folder of the data dirs of a set.
func shape(t *testing.T, name string) string {
	t.Helper()
	sources, _ := evidencetest.Shape(t, name)
	_, dir, named := strings.Cut(sources[0], "=")
	if !named {
		dir = sources[0]
	}
	return filepath.Dir(dir)
}

// TestMissingLastSegment: a log whose last segment is gone is whole as far as it goes; only the database shows that it
// ends too early. The other members' logs complete it, and without them nothing is called done.
func TestMissingLastSegment(t *testing.T) {
	dir := shape(t, "e3-wal-missing-last-segment")
	node := func(n string) string { return filepath.Join(dir, n) }
	for _, peers := range [][]string{{node("node2"), node("node3")}, {node("node3")}} {
		_, r, err := repair(t, surgery.WAL{}, node("node1"), peers)
		ok(t, err)
		if r.After.Health != check.Healthy || r.Unchanged ||
			!strings.Contains(strings.Join(r.Did, "\n"), "lost entries 324 to 515 taken from the log of") {
			t.Errorf("%d peers: after %s (%s), did %q", len(peers), r.After.Class, r.After.Summary, r.Did)
		}
	}
	refuses(t, surgery.WAL{}, node("node1"), nil, surgery.AcceptLostCommits, "entries 324 to 515")
	_, r, err := repair(t, surgery.WAL{}, node("node1"), nil, surgery.AcceptLostCommits)
	ok(t, err)
	if !r.Unchanged || len(r.GivesUp) == 0 {
		t.Errorf("a log that still ends too early passes for mended: %+v", r)
	}
}

// TestProvenValues: a new file made of the pages that can be read keeps rows that are wrong; the report says so, offers
// what was tried, and that cures it.
func TestProvenValues(t *testing.T) {
	for _, c := range []struct{ dir, bad string }{
		{evidencetest.Incident(t, "n-silent-kv-divergence"), "node2"},
		{shape(t, "s-superseded-value-altered"), "node1"},
		{shape(t, "s-lease-bucket-dropped"), "node1"},
		{shape(t, "s-auth-user-hash-differs"), "node2"},
	} {
		name := filepath.Base(c.dir)
		var with []string
		for _, n := range []string{"node1", "node2", "node3"} {
			if n != c.bad {
				with = append(with, filepath.Join(c.dir, n))
			}
		}
		bad := filepath.Join(c.dir, c.bad)
		_, r, err := repair(t, surgery.DB{}, bad, with)
		ok(t, err)
		if name == "s-lease-bucket-dropped" { // a replay of the log gives the whole bucket
			if r.Unchanged || r.After.Health != check.Healthy {
				t.Errorf("%s: %v, after %s: %s", name, r.Unchanged, r.After.Class, r.After.Summary)
			}
		} else if !r.Unchanged || len(r.Offers) != 1 || !strings.Contains(r.Offers[0], "--take-proven") ||
			!strings.Contains(r.Offers[0], "healthy") {
			t.Errorf("%s: %v, offers %q", name, r.Unchanged, r.Offers)
		}
		_, r, err = repair(t, surgery.DB{Proven: true}, bad, with)
		ok(t, err)
		if r.Unchanged || r.After.Health != check.Healthy {
			t.Errorf("%s: after %s: %s", name, r.After.Class, r.After.Summary)
		}
		// Nobody but the others can prove a value.
		var refused *refusal.Error
		if _, _, err := repair(t, surgery.DB{Proven: true}, with[0], []string{bad, with[1]}); !errors.As(err,
			&refused) {
			t.Errorf("%s: a sound member takes rows of others: %v", name, err)
		}
		if _, _, err := repair(t, surgery.DB{Proven: true}, bad, nil); !errors.As(err, &refused) {
			t.Errorf("%s: alone: %v", name, err)
		}
	}
}

// TestProvenAtAnotherIndex: without a log nothing shows what entries between two databases change: no rows are taken.
func TestProvenAtAnotherIndex(t *testing.T) {
	dirs := clustertest.Synth{Members: 3, Entries: 40, Keys: 5, Value: 20}.Write(t, t.TempDir())
	casetest.EditDB(t, dirs[0], casetest.AlterRecords(9, 20))
	file := func(name, dir string, edits ...datadir.Edit) string {
		path := filepath.Join(t.TempDir(), name)
		ok(t, datadir.CopyDB(t.Context(), path, dbOf(dir), edits...))
		return path
	}
	later := datadir.SetConsistentIndex(45)
	a, b, c := file("a", dirs[0]), file("b", dirs[1], later), file("c", dirs[2], later)
	refuses(t, surgery.DB{Proven: true}, a, []string{b, c}, "", "is at entry 45, the source at 43, and entries between")
	if _, r, err := repair(t, surgery.DB{}, a, []string{b, c}); err != nil || !r.Unchanged || len(r.Offers) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
}
