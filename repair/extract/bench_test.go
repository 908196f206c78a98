package extract_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/repair/extract"
)

// BenchmarkExtract takes the state of 200,000 keys out of a database of 400,000 records.
func BenchmarkExtract(b *testing.B) {
	path := filepath.Join(b.TempDir(), "db")
	clustertest.Synth{Members: 1, Entries: 400_000, Keys: 200_000, Value: 300}.WriteDB(b, path)
	for _, f := range []extract.Format{extract.JSONL, extract.Put, extract.Txn, extract.Backup} {
		b.Run(string(f), func(b *testing.B) {
			for i := range b.N {
				res, err := extract.Run(b.Context(), path,
					extract.Options{Format: f, Out: filepath.Join(b.TempDir(), fmt.Sprint(i))})
				if err != nil || res.Keys != 200_000 {
					b.Fatal(err, res)
				}
			}
			b.ReportMetric(200_000*float64(b.N)/b.Elapsed().Seconds(), "keys/s")
		})
	}
}
