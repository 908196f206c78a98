package rebuild_test

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/repair/rebuild"
)

// BenchmarkRebuild executes a log of 300,000 puts of 300 bytes on an empty base, with everything around it: reading the
// sources, the survey, writing database and backup with their syncs, reading the result back.
func BenchmarkRebuild(b *testing.B) {
	const entries = 300_000
	dirs := clustertest.Synth{Members: 1, Entries: entries, Keys: 50_000, Value: 300}.Write(b, b.TempDir())
	before := cpu(b)
	b.ResetTimer()
	for i := range b.N {
		out := filepath.Join(b.TempDir(), fmt.Sprint(i))
		res, err := rebuild.Run(b.Context(), rebuild.Options{Logs: []evidence.Spec{{Where: dirs[0]}},
			To: rebuild.Target{Last: true}, Out: out})
		if err != nil || res.To.Revision != entries+1 || !res.Verified[0].Buckets[0].Equal.Certain() {
			b.Fatalf("%+v %v", res, err)
		}
	}
	b.ReportMetric(float64(entries)*float64(b.N)/b.Elapsed().Seconds(), "entries/s")
	b.ReportMetric(float64(entries)*float64(b.N)/(cpu(b)-before).Seconds(), "entries/cpu-s")
}

// cpu is the processor time of this process: on a busy machine it tells more than the clock.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
