package compare_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// BenchmarkDiagnose shows that time grows linearly with entries and revisions: three members, values of 1000 bytes.
func BenchmarkDiagnose(b *testing.B) {
	for _, n := range []int{50_000, 100_000, 200_000} {
		b.Run(fmt.Sprintf("entries=%d", n), func(b *testing.B) {
			var specs []evidence.Spec
			for _, dir := range (clustertest.Synth{Members: 3, Entries: n, Keys: n / 5, Value: 1000}).Write(b,
				b.TempDir()) {
				specs = append(specs, evidence.Spec{Name: filepath.Base(dir), Where: dir})
			}
			b.ReportAllocs()
			for b.Loop() {
				r, err := compare.Diagnose(context.Background(), specs, compare.Options{})
				if err != nil {
					b.Fatal(err)
				}
				if r.Verdict.Class != "healthy" {
					b.Fatalf("%s: %s", r.Verdict.Class, r.Verdict.Summary)
				}
			}
		})
	}
}
