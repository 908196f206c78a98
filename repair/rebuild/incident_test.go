package rebuild_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/repair/rebuild"
)

// TestIncidents rebuilds real clusters from their logs alone and holds the result against every member.
func TestIncidents(t *testing.T) {
	for name, members := range map[string]map[string]bool{
		"a-auth-revision-replay": {"node1": false, "node2": false, "node3": true},
		"n-silent-kv-divergence": {"node1": true, "node2": false, "node3": true},
		"l-compaction-skew":      {"node1": true, "node2": true, "node3": true},
		"k-lagging-node":         {"node1": true, "node2": true, "node3": true},
		"d-wiped-member":         {"node1": true, "node2": true},
		"m-healthy-3.5":          {"node1": true, "node2": true, "node4": true},
		"m-healthy-3.6":          {"node1": true, "node2": true, "node4": true},
		"m-healthy-3.7":          {"node1": true, "node2": true, "node4": true},
	} {
		t.Run(name, func(t *testing.T) {
			root := evidencetest.Incident(t, name)
			var logs []evidence.Spec
			for m := range members {
				logs = append(logs, evidence.Spec{Name: m, Where: filepath.Join(root, m)})
			}
			res, err := run(t, rebuild.Options{Logs: logs, To: rebuild.Target{Last: true}})
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]bool{}
			for _, v := range res.Verified {
				got[v.Member] = true
				for _, b := range v.Buckets {
					if b.Equal.Excluded() {
						got[v.Member] = false
					}
				}
			}
			if d := cmp.Diff(members, got); d != "" {
				t.Errorf("(-want +got)\n%s\n%+v", d, res)
			}
			fromBase(t, logs, res)
		})
	}
}

// fromBase comes to the same content over a base in the middle.
func fromBase(t *testing.T, logs []evidence.Spec, want *rebuild.Result) {
	t.Helper()
	middle := filepath.Join(t.TempDir(), "middle.db")
	if _, err := run(t, rebuild.Options{Logs: logs, To: rebuild.Target{Index: want.To.Index / 2},
		Out: middle}); err != nil {
		t.Fatal(err)
	}
	got, err := run(t, rebuild.Options{Base: evidence.Spec{Name: "middle", Where: middle}, Logs: logs,
		To: rebuild.Target{Last: true}})
	if err != nil || got.HashKV != want.HashKV || got.To != want.To || got.Equal() != want.Equal() {
		t.Errorf("over a base: %+v %v", got, err)
	}
}
