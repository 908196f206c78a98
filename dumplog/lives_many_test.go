package dumplog_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestTimesBounds compares with a search from mark to mark, on times that go back and forth.
func TestTimesBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	near := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	times := dumplog.Times{Near: near}
	type mark struct {
		index uint64
		at    time.Time
	}
	var marks []mark
	check := func() {
		for index := range uint64(210) {
			var after, before time.Time
			for _, m := range marks {
				switch {
				case m.index <= index && m.at.After(after):
					after = m.at
				case m.index > index && m.at.After(after) && before.IsZero():
					before = m.at
				}
			}
			if a, b := times.Bounds(index); !a.Equal(after) || !b.Equal(before) {
				t.Fatalf("entry %d: %v to %v, want %v to %v", index, a, b, after, before)
			}
		}
	}
	for i := range uint64(200) {
		id := dumplog.RequestID(uint64(7)<<48 | uint64(near.Add(time.Duration(r.IntN(5000)*int(i+1))*time.Second).
			UnixMilli())&(1<<40-1)<<8)
		e := dumplog.Entry{Term: 1, Index: i + 1}
		times.Add(&e, &dumplog.Request{Kind: dumplog.KindPut, Header: dumplog.Header{ID: id}})
		marks = marks[:0]
		for _, m := range times.Marks() {
			marks = append(marks, mark{m.Index, m.Time})
		}
		if i%50 == 49 {
			check()
		}
	}
	if len(marks) < 5 {
		t.Errorf("%d marks", len(marks))
	}
}

// TestTimesAreBounded: a mark each second for a year is thinned out, and the bounds of an entry stay true and close.
func TestTimesAreBounded(t *testing.T) {
	near := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	times := dumplog.Times{Near: near}
	const n = 1_000_000
	at := func(i uint64) time.Time { return near.Add(time.Duration(i) * time.Second) }
	for i := range uint64(n) {
		id := dumplog.RequestID(uint64(7)<<48 | uint64(at(i).UnixMilli())&(1<<40-1)<<8)
		times.Add(&dumplog.Entry{Term: 1, Index: i}, &dumplog.Request{Kind: dumplog.KindPut,
			Header: dumplog.Header{ID: id}})
	}
	if got := len(times.Marks()); got > 1<<18 || got < 1<<16 {
		t.Errorf("%d marks", got)
	}
	for i := uint64(100); i < n-100; i += 9973 {
		after, before := times.Bounds(i)
		if after.After(at(i)) || before.Before(at(i)) || before.Sub(after) > 20*time.Second {
			t.Fatalf("entry %d of %s: %s to %s", i, at(i), after, before)
		}
	}
}

// TestLivesAreBounded: of more runs than are kept the requests are counted, and those of known runs still find theirs.
func TestLivesAreBounded(t *testing.T) {
	const n, kept = 100_007, 100_000
	var l dumplog.Lives
	put := func(i uint64) {
		l.Add(&dumplog.Entry{Term: 1, Index: i + 1}, &dumplog.Request{Kind: dumplog.KindPut,
			Header: dumplog.Header{ID: dumplog.RequestID(i<<48 | i*5000<<8)}})
	}
	for i := range uint64(n) {
		put(i + 1)
	}
	put(70_000)
	runs := l.List()
	if len(runs) != kept || l.Unlisted() != 7 {
		t.Errorf("%d runs and %d requests of others, want %d and 7", len(runs), l.Unlisted(), kept)
	}
}

// TestManyLives: request IDs that fall with every entry, and members without end, cost time in proportion: well below a
// second where a square costs more than a minute.
func TestManyLives(t *testing.T) {
	const n = 80_000
	begin := time.Now()
	var l dumplog.Lives
	for i := range uint64(n) {
		l.AddMember(dumplog.ID(i<<16 | i&0xff))
		id := dumplog.RequestID(uint64(7)<<48 | (1<<39-i*5000)<<8)
		l.Add(&dumplog.Entry{Term: 1, Index: i + 1}, &dumplog.Request{Kind: dumplog.KindPut,
			Header: dumplog.Header{ID: id}})
	}
	if got := len(l.List()); got != n {
		t.Errorf("%d runs of %d", got, n)
	}
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("%d runs took %s", n, took)
	}
}
