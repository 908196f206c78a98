package check_test

import (
	"fmt"
	"testing"

	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence/casetest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// TestConfChangeInLostEntries: a change of a member that damage took from one log is in another one: the row of the
// member and its v2 store are compared with it as well. If no log holds it, nothing is said of the row.
func TestConfChangeInLostEntries(t *testing.T) {
	var dirs []string
	for i, id := range []uint64{0xa1, 0xa2} {
		h := clustertest.NewHand(t, t.TempDir(), fmt.Sprintf("node%d", i+1), id, 0xc1)
		h.Found(false, 0xa1, 0xa2)
		h.Request(2, 3, nil)
		h.Conf(2, 4, clustertest.MoveMember(0xa1, 41))
		h.State(2, 0xa1, 4)
		h.V2.Members[0].Peer = "http://127.0.0.1:9"
		h.Snapshot(2, 4, 0xa1, 0xa2)
		back := clustertest.AddVoter(0xa1, 42)
		back.Type = raftpb.ConfChangeUpdateNode
		h.Conf(2, 5, back)
		for n := uint64(6); n <= 12; n++ {
			h.Put(2, n, clustertest.RequestID(0xa1, 1763000000000, n), fmt.Sprint("k", n), "v", true)
		}
		h.State(2, 0xa1, 12)
		h.Member(0xa1, false, true)
		h.Member(0xa2, false, true)
		h.Versions("3.6.0")
		dirs = append(dirs, h.Close(12, 2))
	}
	casetest.RewriteLog(t, dirs[0], func(rec *walpb.Record) {
		var e raftpb.Entry
		if rec.Type == 2 && e.Unmarshal(rec.Data) == nil && e.Index == 5 {
			rec.Type = casetest.LeftOut
		}
	})
	in := dirInput(t, dirs...)
	wantFinding(t, in, "W03", []string{"node1"})
	wantOutcome(t, in, "M16", check.Holds)
	if r := run(t, in, "M15"); r.Outcome == check.Violated {
		t.Errorf("%+v", r.Findings)
	}
	alone := dirInput(t, dirs[0])
	for _, id := range []string{"M15", "M16"} {
		if r := run(t, alone, id); r.Outcome == check.Violated {
			t.Errorf("alone: %+v", r.Findings)
		}
	}
}
