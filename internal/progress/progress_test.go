package progress

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestLineOf: what the line says of work that reads, of several at a time, of a wait, and of work that has just begun.
func TestLineOf(t *testing.T) {
	now := time.Now()
	work := func(what string, done, total int64, ago time.Duration) *Work {
		w := &Work{what: what, total: total, began: now.Add(-ago)}
		w.done.Store(done)
		return w
	}
	wait := func(limit time.Duration) *Work {
		return &Work{what: "waiting for node1", limit: limit, began: now.Add(-12 * time.Second)}
	}
	for _, c := range []struct {
		works []*Work
		want  string
	}{
		{nil, ""},
		{[]*Work{work("reading node1", 1, 10, patience/2)}, ""},
		{[]*Work{work("reading node1", 1<<30, 4<<30, 10*time.Second)}, "reading node1: 1.0 GiB of 4.0 GiB, 25 %, 102 " +
			"MiB/s, 30 s left"},
		{[]*Work{work("reading node1", 5<<30, 4<<30, 10*time.Second)},
			"reading node1: 4.0 GiB of 4.0 GiB, 100 %, 410 MiB/s"},
		{[]*Work{work("reading node1", 1<<20, 2<<20, time.Second), work("reading node2", 1<<20, 2<<20, time.Second)},
			"reading node1 and 1 more: 2.0 MiB of 4.0 MiB, 50 %, 2.0 MiB/s, 1 s left"},
		{[]*Work{work("replaying the log", 3<<20, 0, 2*time.Second)}, "replaying the log: 3.0 MiB, 1.5 MiB/s"},
		{[]*Work{work("reading node1", 0, 4<<30, time.Second)}, "reading node1: 0 B of 4.0 GiB, 0 %"},
		{[]*Work{work("reading node1", 1, 4<<50, time.Hour)},
			"reading node1: 1 B of 4.0 PiB, 0 %, 0 B/s, 277 h 46 min left"},
		{[]*Work{wait(2 * time.Minute)}, "waiting for node1: 12 s of at most 2 min 0 s"},
		{[]*Work{wait(-1)}, "waiting for node1: 12 s"},
	} {
		if got := (&Display{Patience: patience, works: c.works}).lineOf(now); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestDisplay: work draws while it goes on, and nothing is drawn once all of it has ended, or the display is closed.
func TestDisplay(t *testing.T) {
	var mu sync.Mutex
	var lines []string
	drawn := func() int { mu.Lock(); defer mu.Unlock(); return len(lines) }
	d := New(func(l string) { mu.Lock(); defer mu.Unlock(); lines = append(lines, l) })
	ctx, w := Begin(With(t.Context(), d), "reading node1", 100)
	if _, err := io.Copy(io.Discard, From(Carry(context.Background(),
		ctx)).Reader(strings.NewReader(strings.Repeat("x", 40)))); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); drawn() == 0 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	w.End()
	n := drawn()
	if n == 0 || !strings.HasPrefix(lines[0], "reading node1: 40 B of 100 B, 40 %") {
		t.Fatalf("%q", lines)
	}
	time.Sleep(3 * every)
	d.Close()
	_, late := Begin(ctx, "late", 1)
	time.Sleep(3 * every)
	late.End()
	if drawn() != n {
		t.Errorf("drawn after the end: %q", lines[n:])
	}
}

// TestWithoutDisplay: nothing is counted, nothing is allocated, and every call does nothing.
func TestWithoutDisplay(t *testing.T) {
	ctx := t.Context()
	got, w := Begin(ctx, "reading", 10)
	r := strings.NewReader("")
	if got != ctx || w != nil || Wait(ctx, "waiting") != nil || From(ctx) != nil || w.Reader(r) != io.Reader(r) {
		t.Error("work without a display")
	}
	(*Display)(nil).Close()
	if n := testing.AllocsPerRun(100, func() { w.Add(1); w.End() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkAdd is what every read of a page pays: it must be far below the microsecond that the read takes.
func BenchmarkAdd(b *testing.B) {
	_, w := Begin(With(b.Context(), New(func(string) {})), "reading", 1)
	defer w.End()
	for b.Loop() {
		w.Add(4096)
	}
}
