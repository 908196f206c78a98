package check

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestLeaderGaps: a member that most votes elected received no snapshot in its own term, so what its log lacks there
// was removed.
func TestLeaderGaps(t *testing.T) {
	for name, c := range map[string]struct {
		votes    []dumplog.ID // of the three members in term 2
		jump     dumplog.Jump
		want, at string
	}{
		"it was elected": {[]dumplog.ID{0xa1, 0xa1, 0}, dumplog.Jump{From: 50, To: 50}, "n1: entry 50 is missing in the log",
			"follows entry 49"},
		"several entries": {[]dumplog.ID{0xa1, 0xa1, 0}, dumplog.Jump{From: 50, To: 52},
			"n1: entries 50..52 are missing in the log", "follows entry 49"},
		"another one was":      {[]dumplog.ID{0xa2, 0xa2, 0}, dumplog.Jump{From: 50, To: 50}, "", ""},
		"it only voted itself": {[]dumplog.ID{0xa1, 0, 0}, dumplog.Jump{From: 50, To: 50}, "", ""},
		"before its term":      {[]dumplog.ID{0xa1, 0xa1, 0}, dumplog.Jump{From: 11, To: 15}, "", ""},
	} {
		var ss Sources
		for i, v := range c.votes {
			m := withLog(member([]string{"n1", "n2", "n3"}[i]), 90)
			m.MemberID, m.Membership.Voters = dumplog.ID(0xa1+i), []dumplog.ID{0xa1, 0xa2, 0xa3}
			m.WAL.LastByTerm = []evidence.TermEnd{{Term: 1, First: 1, Last: 10}, {Term: 2, First: 11, Last: 90}}
			if v != 0 {
				m.WAL.Summary.Votes = []dumplog.Vote{{Term: 2, For: v}}
			}
			ss = append(ss, m)
		}
		c.jump.Pos = dumplog.Pos{Segment: "a.wal", Offset: 80}
		ss[0].WAL.Summary.Jumps = []dumplog.Jump{c.jump}
		fs := ss.elections().leaderGaps(ss[0])
		if (len(fs) > 0) != (c.want != "") {
			t.Errorf("%s: %+v", name, fs)
			continue
		}
		if len(fs) > 0 && (fs[0].Title != c.want || fs[0].At != (At{Term: 2, Index: c.jump.From}) ||
			fs[0].Evidence[0].Observed != c.at || *fs[0].Evidence[0].Offset != 80) {
			t.Errorf("%s: %+v", name, fs[0])
		}
	}
}
