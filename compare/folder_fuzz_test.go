package compare_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// FuzzDiagnose diagnoses data dirs that are made of any bytes, one or two of them: never a panic, the report is JSON,
// and a set with a violated invariant is never called healthy.
func FuzzDiagnose(f *testing.F) {
	seeds := clustertest.BytesSeeds(f)
	for _, s := range seeds {
		f.Add(s, []byte(nil))
		f.Add(seeds[1], s)
	}
	root := f.TempDir() // one per worker
	f.Fuzz(func(t *testing.T, first, second []byte) {
		var specs []evidence.Spec
		for i, script := range [][]byte{first, second} {
			if i > 0 && len(script) == 0 {
				continue
			}
			dir := filepath.Join(root, string(rune('a'+i)))
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			clustertest.WriteBytes(t, dir, script)
			specs = append(specs, evidence.Spec{Where: dir})
		}
		r, err := compare.Diagnose(context.Background(), specs, compare.Options{})
		if err != nil {
			return // nothing in it can be read
		}
		if _, err := json.Marshal(r); err != nil {
			t.Fatal(err)
		}
		if r.Verdict.Health == check.Healthy && r.Verdict.FirstBreak != nil {
			t.Errorf("healthy, although %+v", r.Verdict.FirstBreak)
		}
	})
}
