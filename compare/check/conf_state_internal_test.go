package check

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestBeforeReceived: a row is older than a received snapshot if the member had that configuration before it, at a
// snapshot of its own or after a conf change.
func TestBeforeReceived(t *testing.T) {
	change := func(index uint64, kind dumplog.ConfChangeType, id dumplog.ID) evidence.ConfEntry {
		return evidence.ConfEntry{Index: index, Change: dumplog.ConfChange{Type: kind, NodeID: id}}
	}
	conf := []evidence.ConfEntry{change(1, dumplog.ConfChangeAddNode, 1), change(2, dumplog.ConfChangeAddNode, 2),
		change(30, dumplog.ConfChangeAddLearnerNode, 3), change(90, dumplog.ConfChangeRemoveNode, 2)}
	jump := []dumplog.Jump{{From: 50, To: 80}}
	own := dumplog.SnapshotRecord{Index: 20, ConfState: &dumplog.ConfState{Voters: []dumplog.ID{1, 2}}}
	received := dumplog.SnapshotRecord{Index: 80, ConfState: &dumplog.ConfState{Voters: []dumplog.ID{1, 2, 3}}}
	whole := dumplog.Summary{FirstIndex: 1, Jumps: jump}
	purged := dumplog.Summary{FirstIndex: 25, Jumps: jump, Snapshots: []dumplog.SnapshotRecord{own, received}}
	for name, c := range map[string]struct {
		log              dumplog.Summary
		voters, learners []dumpdb.ID
		want             bool
	}{
		"bootstrap":                    {whole, []dumpdb.ID{1, 2}, nil, true},
		"after a change":               {whole, []dumpdb.ID{1, 2}, []dumpdb.ID{3}, true},
		"in the middle of a bootstrap": {whole, []dumpdb.ID{1}, nil, true},
		"the one that was received":    {whole, []dumpdb.ID{1, 2, 3}, nil, false},
		"after the snapshot":           {whole, []dumpdb.ID{1}, []dumpdb.ID{3}, false},
		"empty":                        {whole, nil, nil, false},
		"no snapshot was received":     {dumplog.Summary{FirstIndex: 1}, []dumpdb.ID{1, 2}, nil, false},
		"purged, its own snapshot":     {purged, []dumpdb.ID{1, 2}, nil, true},
		"purged, after a change":       {purged, []dumpdb.ID{1, 2}, []dumpdb.ID{3}, true},
		"purged, received":             {purged, []dumpdb.ID{1, 2, 3}, nil, false},
		"purged, of before the log":    {purged, []dumpdb.ID{1}, nil, false},
	} {
		m := &evidence.Member{AppliedMin: 85}
		m.WAL.Summary, m.WAL.Conf = c.log, conf
		cs := &dumpdb.ConfState{Voters: c.voters, Learners: c.learners}
		if got := beforeReceived(m, cs); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
		if m.AppliedMin = 90; beforeReceived(m, cs) {
			t.Errorf("%s: the change in entry 90 stored another one", name)
		}
	}
}
