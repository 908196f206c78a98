package serverlog_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/compare/serverlog"
)

// bigLog is a log of n lines as a server under load writes it, with one message that matters near its end.
func bigLog(n int) string {
	var b strings.Builder
	for i := range n {
		switch i % 8 {
		case 0:
			fmt.Fprintf(&b, `{"level":"warn","ts":"2026-01-02T03:04:05.678Z","caller":"etcdserver/util.go:170","msg":"apply request took too long","took":"%d.2ms","expected-duration":"100ms","prefix":"read-only range ","request":"key:\"/registry/pods/default/web-%d\" ","response":"range_response_count:1 size:2718"}`+"\n", i, i)
		case 4:
			fmt.Fprintf(&b, "2026-01-02 03:04:05.678901 I | mvcc: store.index: compact %d\n", i)
		default:
			fmt.Fprintf(&b, `{"level":"info","ts":"2026-01-02T03:04:05.678Z","caller":"traceutil/trace.go:171","msg":"trace[%d] range","detail":"{range_begin:/registry/minions/; range_end:/registry/minions0; response_count:0; response_revision:%d; }","duration":"112.8ms","start":"2026-01-02T03:04:05.500Z","end":"2026-01-02T03:04:05.678Z","steps":["trace[1] 'agreement among raft nodes before linearized reading'  (duration: 90.1ms)"],"step_count":1}`+"\n", i, i)
		}
		if i == n-10 {
			b.WriteString(`{"level":"panic","ts":"2026-01-02T03:04:05.678Z","msg":"tocommit(9) is out of range [lastIndex(4)]. Was the raft log corrupted, truncated, or lost?"}` + "\n")
		}
	}
	return b.String()
}

func cpu(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano())
}

// TestBigLogIsReadFast: 80,000 lines take about a second of the processor at most, which the load of the machine does
// not change much. Trying every pattern on every line takes a minute.
func TestBigLogIsReadFast(t *testing.T) {
	text := bigLog(80_000)
	before := cpu(t)
	var s serverlog.Scanner
	for line := range strings.Lines(text) {
		s.Line(line)
	}
	took := cpu(t) - before
	found := s.Matches()
	if s.Lines() != 80_001 || len(found) != 2 || found[0].ID != "slow-disk" || found[0].Count != 10_000 ||
		found[1].ID != "tocommit-out-of-range" {
		t.Errorf("%d lines, %+v", s.Lines(), found)
	}
	if took > 3*time.Second {
		t.Errorf("80,000 lines took %v of the processor", took)
	}
	t.Logf("scanned in %v", took)

	before = cpu(t)
	j, err := serverlog.Read(t.Context(), strings.NewReader(text))
	if err != nil || j.Lines != 80_001 || len(j.Events) != 1 {
		t.Errorf("%v: %d lines, %d events", err, j.Lines, len(j.Events))
	}
	if took = cpu(t) - before; took > 6*time.Second {
		t.Errorf("a journal of 80,000 lines took %v of the processor", took)
	}
	t.Logf("read in %v", took)
}

func BenchmarkScan(b *testing.B) {
	text := bigLog(80_000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		var s serverlog.Scanner
		for line := range strings.Lines(text) {
			s.Line(line)
		}
	}
}
