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
		"more voters then": {[]dumplog.ID{0xa1, 0xa1, 0}, dumplog.Jump{From: 60, To: 60}, "", ""},
		"several entries": {[]dumplog.ID{0xa1, 0xa1, 0}, dumplog.Jump{From: 50, To: 52},
			"n1: entries 50..52 are missing in the log", "follows entry 49"},
		"after its term":       {[]dumplog.ID{0xa1, 0xa1, 0}, dumplog.Jump{From: 50, To: 52, State: 3}, "", ""},
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
			if name == "more voters then" { // two of five members were removed later
				m.Membership.RaftKnown, m.Commit = true, 90
				for _, id := range []dumplog.ID{0xa4, 0xa5} {
					m.WAL.Conf = append(m.WAL.Conf, evidence.ConfEntry{Index: 70, Change: dumplog.ConfChange{
						Type: dumplog.ConfChangeRemoveNode, NodeID: id}})
				}
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
			fs[0].Evidence[0].Observed != c.at || *fs[0].Evidence[0].Offset != 80 || len(fs[0].Evidence) != 3 ||
			fs[0].Evidence[2].Member != "n2" || fs[0].Evidence[2].Observed != "a1 in term 2") {
			t.Errorf("%s: %+v", name, fs[0])
		}
	}
}
