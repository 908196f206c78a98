package dumplog

import (
	"testing"

	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
)

// TestStartMarks: how the first records of a log show the way in which its member was created.
func TestStartMarks(t *testing.T) {
	must := func(b []byte, err error) []byte {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	add := func(index uint64) *item {
		cc := raftpb.ConfChange{Type: raftpb.ConfChangeAddNode, NodeID: index}
		it := &item{}
		it.rec.Type = RecordEntry
		it.head = entryHead{typ: EntryConfChange, term: 1, index: index, data: must(cc.Marshal())}
		return it
	}
	put := &item{}
	put.rec.Type, put.head = RecordEntry, entryHead{typ: EntryNormal, term: 2, index: 3}
	state := func(term, vote, commit uint64) *item {
		it := &item{}
		it.rec.Type = RecordState
		it.rec.Data = must((&raftpb.HardState{Term: term, Vote: vote, Commit: commit}).Marshal())
		return it
	}
	snapshot := func(term, index uint64) *item {
		it := &item{}
		it.rec.Type = RecordSnapshot
		it.rec.Data = must((&walpb.Snapshot{Term: term, Index: index}).Marshal())
		return it
	}
	for name, c := range map[string]struct {
		records []*item
		want    StartKind
	}{
		"bootstrap": {[]*item{snapshot(0, 0), add(1), add(2), state(1, 0, 2)}, StartBootstrap},
		"restore":   {[]*item{snapshot(0, 0), add(1), add(2), state(1, 7, 2), snapshot(1, 2)}, StartRestore},
		"restore without its HardState": {[]*item{snapshot(0, 0), add(1), add(2), snapshot(1, 2), put},
			StartRestore},
		"join": {[]*item{snapshot(0, 0), state(4, 0, 9)}, StartJoin},
		"join with the entries of the leader": {[]*item{snapshot(0, 0), add(1), add(2), put, state(2, 0, 3)},
			StartJoin},
		"no HardState":                    {[]*item{snapshot(0, 0), add(1), add(2), put}, ""},
		"a later snapshot":                {[]*item{add(1), add(2), put, snapshot(2, 3)}, ""},
		"a snapshot of another term":      {[]*item{add(1), add(2), snapshot(2, 2)}, ""},
		"a snapshot of fewer members":     {[]*item{add(1), add(2), snapshot(1, 1)}, ""},
		"the snapshot of an empty log":    {[]*item{snapshot(0, 0)}, ""},
		"a bootstrap of fewer than added": {[]*item{add(1), add(2), state(1, 0, 1)}, StartJoin},
	} {
		var s startMarks
		for _, it := range c.records {
			s.add(it)
		}
		if s.kind != c.want {
			t.Errorf("%s: %q, want %q", name, s.kind, c.want)
		}
	}
}
