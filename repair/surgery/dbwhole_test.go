package surgery_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/surgery"
)

// TestDBFromNothing: a database that is empty or missing is made again from the log, and holds what the other members
// hold.
func TestDBFromNothing(t *testing.T) {
	set := evidencetest.Incident(t, "f2-empty-db")
	for _, missing := range []bool{false, true} {
		dir := evidencetest.Copy(t, filepath.Join(set, "node3"))
		if missing {
			if err := os.Remove(filepath.Join(dir, "member", "snap", "db")); err != nil {
				t.Fatal(err)
			}
		}
		out := filepath.Join(t.TempDir(), "new")
		r, err := surgery.Run(t.Context(), surgery.Options{Source: evidence.Spec{Name: "node3", Where: dir}, Out: out},
			surgery.DB{})
		if err != nil {
			t.Fatalf("missing %v: %v", missing, err)
		}
		if r.Unchanged || len(r.GivesUp) > 0 || r.After.Class != "healthy" {
			t.Errorf("missing %v: %+v", missing, r)
		}
		sameHash(t, filepath.Join(set, "node1"), out)
	}
}

// TestDBFromAnotherMember: where the log cannot be executed, a database that stands within it is taken.
func TestDBFromAnotherMember(t *testing.T) {
	dir := evidencetest.Copy(t, filepath.Join(evidencetest.Incident(t, "t-purged-lagging"), "m1"))
	peers := []evidence.Spec{}
	for _, n := range []string{"m2", "m3"} {
		peers = append(peers, evidence.Spec{Name: n, Where: filepath.Join(evidencetest.Incident(t, "t-purged-lagging"),
			n)})
	}
	want := hashOf(t, dir)
	if err := os.Truncate(filepath.Join(dir, "member", "snap", "db"), 0); err != nil {
		t.Fatal(err)
	}
	spec := evidence.Spec{Name: "m1", Where: dir}
	out := filepath.Join(t.TempDir(), "new")
	_, err := surgery.Run(t.Context(), surgery.Options{Source: spec, Out: out}, surgery.DB{})
	var refused *refusal.Error
	if !errors.As(err, &refused) || !strings.Contains(refused.Hint, "--with") {
		t.Fatalf("a purged log alone: %v, want a refusal that asks for other members", err)
	}
	r, err := surgery.Run(t.Context(), surgery.Options{Source: spec, With: peers, Out: out}, surgery.DB{})
	if err != nil {
		t.Fatal(err)
	}
	if got := hashOf(t, out); got.Rev != want.Rev {
		t.Errorf("made %+v by %v, was %+v", got, r.Did, want)
	}
}

// TestDBOfAnOpenOutcome: whether root may revoke a lease with an old auth revision depends on the patch release. Where
// neither the log nor another member shows what happened, no database is made of a guess.
func TestDBOfAnOpenOutcome(t *testing.T) {
	for name, c := range map[string]struct {
		authRevision uint64 // in the header of the revoke
		open         bool
	}{"the auth revision of then": {5, false}, "an old one": {4, true}} {
		h := clustertest.NewHand(t, t.TempDir(), "node1", 0xa1, 0xc1)
		h.Found(false, 0xa1)
		index := h.RootRevokes(2, c.authRevision) + 1
		h.RootRequest(index, 5, clustertest.PutRequest("l", "2", 0))
		h.State(2, 0xa1, index)
		dir := h.Close(index, 2)
		if err := os.Remove(filepath.Join(dir, "member", "snap", "db")); err != nil {
			t.Fatal(err)
		}
		evidencetest.Unchanged(t, dir)
		_, err := surgery.Run(t.Context(), surgery.Options{Source: evidence.Spec{Name: "node1", Where: dir},
			Out: filepath.Join(t.TempDir(), "new")}, surgery.DB{})
		var refused *refusal.Error
		if errors.As(err, &refused) != c.open || c.open && !strings.Contains(err.Error(), "the outcome of 1 entry depends") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func sameHash(t *testing.T, a, b string) {
	t.Helper()
	if x, y := hashOf(t, a), hashOf(t, b); x != y {
		t.Errorf("HashKV %+v and %+v", x, y)
	}
}

func hashOf(t *testing.T, dir string) dumpdb.HashKV {
	t.Helper()
	db, err := dumpdb.Open(filepath.Join(dir, "member", "snap", "db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }() // only read
	h, err := db.HashKV(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	return h
}
