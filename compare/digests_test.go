package compare_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// TestWithoutDigests: a report without the sha256 of its sources is the same in everything else, and still sees that a
// source was given twice.
func TestWithoutDigests(t *testing.T) {
	dir := evidencetest.Incident(t, "k-lagging-node")
	evidencetest.Unchanged(t, dir)
	node := func(name, of string) evidence.Spec { return evidence.Spec{Name: name, Where: filepath.Join(dir, of)} }
	for name, c := range map[string]struct {
		specs []evidence.Spec
		twice bool
	}{
		"members": {specs: []evidence.Spec{node("a", "node1"), node("b", "node2"), node("c", "node3")}},
		"twice": {specs: []evidence.Spec{node("a", "node1"), node("b", "node2"), node("again", "node1")},
			twice: true},
		"files": {specs: []evidence.Spec{node("a", "node1/member/snap/db"), node("b", "node3/member/snap/db")}},
		"one file": {specs: []evidence.Spec{node("a", "node1/member/snap/db"), node("b", "node1/member/snap/db")},
			twice: true},
	} {
		t.Run(name, func(t *testing.T) {
			with := diagnose(t, c.specs)
			without, err := compare.Diagnose(context.Background(), c.specs,
				compare.Options{Version: "test", NoDigests: true})
			if err != nil {
				t.Fatal(err)
			}
			for i := range with.Sources {
				if with.Sources[i].SHA256 == "" || without.Sources[i].SHA256 != "" {
					t.Errorf("digests %q and %q", with.Sources[i].SHA256, without.Sources[i].SHA256)
				}
				with.Sources[i].SHA256 = ""
			}
			if diff := cmp.Diff(string(document(t, with)), string(document(t, without))); diff != "" {
				t.Error(diff)
			}
			if got := len(findings(without, "", "X01")) > 0; got != c.twice {
				t.Errorf("given twice: %v, want %v", got, c.twice)
			}
		})
	}
}
