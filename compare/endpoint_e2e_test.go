//go:build e2e

package compare_test

import (
	"context"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// TestE2EEndpoints reads running members by their maintenance snapshot, with and without a data dir beside them.
func TestE2EEndpoints(t *testing.T) {
	for _, line := range clustertest.Lines {
		t.Run(line, func(t *testing.T) {
			c := clustertest.Start(t, clustertest.Server(t, line), 3, clustertest.Options{})
			for range 20 {
				c.Put(0, "k", "v")
			}
			c.WaitEqual()
			var specs []evidence.Spec
			for i := range c.Size() {
				specs = append(specs, evidence.Spec{Name: c.Name(i), Where: c.Endpoint(i)})
			}
			d, err := compare.Compare(context.Background(), specs, compare.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if key := d.Buckets[0]; key.Equal == nil || !*key.Equal || key.Compared != 1 || d.Sources[0].Kind != evidence.KindEndpoint {
				t.Errorf("%+v from %+v", key, d.Sources)
			}
			r := diagnose(t, specs[:1])
			if r.Verdict.Healthy == nil || !*r.Verdict.Healthy {
				t.Errorf("%s: %s", r.Verdict.Class, r.Verdict.Summary)
			}
		})
	}
}
