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

// TestStoredSince: a row that a conf change stored is one of the configurations since the first raft snapshot that the
// log continues without a gap.
func TestStoredSince(t *testing.T) {
	conf := []evidence.ConfEntry{
		{Index: 30, Change: dumplog.ConfChange{Type: dumplog.ConfChangeRemoveNode, NodeID: 3}},
		{Index: 40, Change: dumplog.ConfChange{Type: dumplog.ConfChangeAddLearnerNode, NodeID: 4}}}
	at := func(index uint64, voters ...dumplog.ID) dumplog.SnapshotRecord {
		return dumplog.SnapshotRecord{Index: index, ConfState: &dumplog.ConfState{Voters: voters}}
	}
	old := dumplog.SnapshotRecord{Index: 22}
	three, two := at(20, 1, 2, 3), at(33, 1, 2)
	snapshots := []dumplog.SnapshotRecord{three, two}
	for name, c := range map[string]struct {
		log              dumplog.Summary
		voters, learners []dumpdb.ID
		since            uint64
		altered          bool
	}{
		"the newest":            {dumplog.Summary{FirstIndex: 15, Snapshots: snapshots}, []dumpdb.ID{1, 2}, []dumpdb.ID{4}, 20, false},
		"replayed at a start":   {dumplog.Summary{FirstIndex: 15, Snapshots: snapshots}, []dumpdb.ID{1, 2}, nil, 20, false},
		"that of the snapshot":  {dumplog.Summary{FirstIndex: 15, Snapshots: snapshots}, []dumpdb.ID{3, 2, 1}, nil, 20, false},
		"never since":           {dumplog.Summary{FirstIndex: 15, Snapshots: snapshots}, []dumpdb.ID{1, 3}, nil, 20, true},
		"before the log begins": {dumplog.Summary{FirstIndex: 31, Snapshots: snapshots}, []dumpdb.ID{1, 2, 3}, nil, 33, true},
		"a snapshot was received": {dumplog.Summary{FirstIndex: 15, Snapshots: snapshots,
			Jumps: []dumplog.Jump{{From: 23, To: 32}}}, []dumpdb.ID{1, 2, 3}, nil, 33, true},
		"received after it": {dumplog.Summary{FirstIndex: 15, Snapshots: snapshots,
			Jumps: []dumplog.Jump{{From: 35, To: 50}}}, []dumpdb.ID{1, 3}, nil, 0, false},
		"an older release wrote a record": {dumplog.Summary{FirstIndex: 15,
			Snapshots: []dumplog.SnapshotRecord{three, old, two}}, []dumpdb.ID{1, 3}, nil, 0, false},
		"damaged": {dumplog.Summary{FirstIndex: 15, Snapshots: snapshots, Damage: []*dumplog.DamageError{{}}},
			[]dumpdb.ID{1, 3}, nil, 0, false},
		"no snapshot before": {dumplog.Summary{FirstIndex: 15}, []dumpdb.ID{1, 3}, nil, 0, false},
	} {
		m := &evidence.Member{AppliedMin: 60, DB: &evidence.DB{}, Source: &evidence.Source{Name: "n1"}}
		m.WAL.Summary, m.WAL.Conf = c.log, conf
		m.DB.Meta.ConfState = &dumpdb.ConfState{Voters: c.voters, Learners: c.learners}
		_, r := storedSince(m)
		if (r != nil) != (c.since > 0) || r != nil && r.Index != c.since {
			t.Errorf("%s: since %+v, want %d", name, r, c.since)
		}
		mb := (&Input{Members: []*evidence.Member{m}}).Membership()
		if f := mb.neverConfigured(m); (f != nil) != c.altered || f != nil && f.Kind != KindConfStateNeverHeld {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// TestHoldsBootstrap: the log of a member that joined shows the bootstrap if it begins with the first entry, since a
// restored cluster sends a snapshot instead.
func TestHoldsBootstrap(t *testing.T) {
	founding := []evidence.ConfEntry{{Term: 1, Index: 1}, {Term: 1, Index: 2}}
	later := []evidence.ConfEntry{{Term: 2, Index: 9}}
	for name, c := range map[string]struct {
		start dumplog.StartKind
		first uint64
		conf  []evidence.ConfEntry
		want  bool
	}{
		"bootstrap":                         {dumplog.StartBootstrap, 1, founding, true},
		"restored":                          {dumplog.StartRestore, 1, founding, false},
		"joined, all entries received":      {dumplog.StartJoin, 1, founding, true},
		"joined, after a snapshot":          {dumplog.StartJoin, 9, later, false},
		"joined, the first segment is gone": {dumplog.StartJoin, 2, founding[1:], false},
		"purged":                            {dumplog.StartPurged, 1, founding, false},
	} {
		m := &evidence.Member{}
		m.WAL.Log = &dumplog.Log{}
		m.WAL.Summary.Start, m.WAL.Summary.FirstIndex, m.WAL.Summary.LastIndex = c.start, c.first, 20
		m.WAL.Conf = c.conf
		if got := holdsBootstrap(m); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
