package surgery_test

import (
	"path/filepath"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/repair/surgery"
)

// TestSoundSourceIsNoDamage: beside a member that differs, the result of a sound member is not called as damaged as its
// source: the difference is not its error.
func TestSoundSourceIsNoDamage(t *testing.T) {
	dir := evidencetest.Incident(t, "n-silent-kv-divergence")
	node := func(n string) string { return filepath.Join(dir, n) }
	_, r, err := repair(t, surgery.DB{}, node("node1"), []string{node("node2"), node("node3")})
	ok(t, err)
	if r.Unchanged || len(r.Offers) > 0 {
		t.Errorf("unchanged %v, offers %q; node2 is the one that differs", r.Unchanged, r.Offers)
	}
	_, r, err = repair(t, surgery.DB{}, node("node2"), []string{node("node1"), node("node3")})
	ok(t, err)
	if !r.Unchanged || len(r.Offers) == 0 {
		t.Errorf("unchanged %v, offers %q; want it as damaged as before, and an offer", r.Unchanged, r.Offers)
	}
}
