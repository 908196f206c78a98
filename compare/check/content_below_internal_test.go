package check

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestBelowAgainstLog: a log that was altered later proves nothing alone against a member whose own log does not hold
// the entry.
func TestBelowAgainstLog(t *testing.T) {
	withLogFrom := func(name string, first uint64) *evidence.Member {
		m := withLog(member(name), 90)
		m.WAL.Summary.FirstIndex = first
		m.WAL.LastByTerm = []evidence.TermEnd{{Term: 2, First: first, Last: 90}}
		return m
	}
	row := replay.BelowDiff{Key: "/a", Index: 20, Expected: "present", Observed: "absent"}
	for name, c := range map[string]struct {
		versions [][]int // at entry 60
		own      uint64  // the first entry in the own log
		other    uint64  // and in the log of a third member
		want     int
	}{
		"the only log of it is altered": {[][]int{{0, 2}, {1}}, 50, 50, 0},
		"it is sound":                   {nil, 50, 50, 1},
		"nothing shows which is":        {[][]int{{0}, {1}}, 50, 91, 1},
		"the own log holds it":          {[][]int{{0, 2}, {1}}, 10, 50, 1},
		"a sound log holds it":          {[][]int{{0, 2}, {1}}, 50, 10, 1},
	} {
		in := &Input{Members: Sources{withLogFrom("n1", c.own), withLogFrom("n2", 10), withLogFrom("n3", c.other)},
			Replay: &replay.Result{}}
		for i, m := range in.Members {
			m.MemberID = dumplog.ID(0xa1 + i)
			in.Replay.Members = append(in.Replay.Members, &replay.MemberResult{})
		}
		in.Replay.Members[0].Below = []replay.BelowDiff{row}
		if c.versions != nil {
			in.Replay.SameTerm = []replay.LogDiff{{Index: 60, Versions: c.versions}}
		}
		if got := in.belowAgainstLog(0); len(got) != c.want {
			t.Errorf("%s: %d rows, want %d", name, len(got), c.want)
		}
	}
}
