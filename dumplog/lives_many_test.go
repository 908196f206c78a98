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
