package replay

import (
	"encoding/hex"
	"runtime"
	"testing"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestSameEntry compares the first conf change of a restore as etcdutl 3.6 and 3.7 write it, and one that differs.
func TestSameEntry(t *testing.T) {
	const rest = "18ebd7f38ebdcad19b840122107b226964223a312c226e616d65223a31"
	entry := func(kind dumplog.EntryType, term uint64, data string) *dumplog.Entry {
		b, err := hex.DecodeString(data)
		if err != nil {
			t.Fatal(err)
		}
		return &dumplog.Entry{Term: term, Index: 1, Type: kind, Data: b}
	}
	const conf = dumplog.EntryConfChange
	old := entry(conf, 1, "08001000"+rest)
	for _, c := range []struct {
		name string
		e    *dumplog.Entry
		same bool
	}{
		{"the same bytes", entry(conf, 1, "08001000"+rest), true},
		{"without ID", entry(conf, 1, "1000"+rest), true},
		{"without ID and type", entry(conf, 1, rest), true},
		{"another term", entry(conf, 2, "1000"+rest), false},
		{"another ID", entry(conf, 1, "08011000"+rest), false},
		{"another type", entry(conf, 1, "1001"+rest), false},
		{"another node", entry(conf, 1, "100018ecd7f38ebdcad19b8401"+rest[22:]), false},
		{"another context", entry(conf, 1, "1000"+rest[:len(rest)-1]+"2"), false},
		{"what does not decode", entry(conf, 1, "1000"+rest[:len(rest)-2]), false},
		{"not a conf change", entry(dumplog.EntryNormal, 1, "1000"+rest), false},
	} {
		if got := sameEntry(old, c.e); got != c.same {
			t.Errorf("%s: %t, want %t", c.name, got, c.same)
		}
	}
}

// TestMergedEndsItsReaders: logs that are not read to their ends are closed.
func TestMergedEndsItsReaders(t *testing.T) {
	set := open(t, handLogs(t, from1(20), from1(20))...)
	const times = 50
	before := runtime.NumGoroutine()
	for range times {
		n := 0
		for _, err := range merged(t.Context(), logSet{members: set.Members}) {
			if err != nil {
				t.Fatal(err)
			}
			if n++; n == 3 {
				break
			}
		}
		if n != 3 {
			t.Fatalf("%d entries", n)
		}
	}
	if more := runtime.NumGoroutine() - before; more >= times {
		t.Errorf("%d readers are left", more)
	}
}
