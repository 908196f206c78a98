package soak

import (
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

func TestSameSeesContentOnly(t *testing.T) {
	src := synthetic(t, 0)[0]
	dir := evidencetest.Copy(t, src)
	rows, err := rows(dir, "meta")
	if err != nil || len(rows) == 0 {
		t.Fatal(err)
	}
	if err := editDB(dir, rows[0].put(rows[0].value)); err != nil { // other pages, the same rows
		t.Fatal(err)
	}
	if !same(src, dir, true) {
		t.Error("the same rows count as a change")
	}
	if err := editDB(dir, rows[0].put(rows[0].value+"x")); err != nil {
		t.Fatal(err)
	}
	if same(src, dir, true) {
		t.Error("a changed row is not seen")
	}
	if files, err := segmentFiles(dir); err != nil || flip(files[0], 100) != nil || same(src, dir, true) {
		t.Errorf("a flipped bit is not seen (%v)", err)
	}
}

// TestUnfinishedCompactionCounts: what a compaction that has begun may have removed proves nothing by being gone.
func TestUnfinishedCompactionCounts(t *testing.T) {
	dir := evidencetest.Copy(t, synthetic(t, 0)[0])
	for key, rev := range map[string]int64{"finishedCompactRev": 20, "scheduledCompactRev": 50} {
		if err := editDB(dir, row{bucket: "meta", key: key}.put(revision(rev, 0, false))); err != nil {
			t.Fatal(err)
		}
	}
	if ks, err := readKeyspace(dir); err != nil || ks.compact != 50 || ks.last < 50 {
		t.Errorf("%+v, %v", ks.compact, err)
	}
}

func TestLogThatGivesEverything(t *testing.T) {
	whole, purged := &Victim{Dir: synthetic(t, 0)[0]}, &Victim{Dir: synthetic(t, 300)[0]}
	restored := &Victim{Dir: whole.Dir, Restored: true}
	if !whole.fromStart() || purged.fromStart() || restored.fromStart() {
		t.Errorf("whole %t, purged %t, restored %t", whole.fromStart(), purged.fromStart(), restored.fromStart())
	}
}

// TestLogWithASkipGivesNotEverything: what a received snapshot brought is in no entry of the member.
func TestLogWithASkipGivesNotEverything(t *testing.T) {
	s := clustertest.NewScript("3.6.0")
	put := func() int {
		return s.Add(clustertest.Step{Req: &etcdserverpb.InternalRaftRequest{
			Put: &etcdserverpb.PutRequest{Key: []byte("/a"), Value: []byte("v")}}})
	}
	last := put()
	put()
	s.Of[1] = clustertest.ScriptMember{LogUntil: last, SnapshotAt: put()}
	put()
	dirs := s.Write(t, t.TempDir())
	if !(&Victim{Dir: dirs[0]}).fromStart() || (&Victim{Dir: dirs[1]}).fromStart() {
		t.Error("the log of node2 lacks two entries, that of node1 none")
	}
}

func TestBehindIsWhoLacksWrites(t *testing.T) {
	root := evidencetest.Incident(t, "k-lagging-node")
	var members []Source
	for _, n := range []string{"node1", "node2", "node3"} {
		members = append(members, Source{Name: n, Path: filepath.Join(evidencetest.Copy(t, root), n)})
	}
	backup := filepath.Join(t.TempDir(), "backup.db")
	if err := evidencetest.CopyTo(dbFile(members[2].Path), backup); err != nil {
		t.Fatal(err)
	}
	members = append(members, Source{Name: "backup", Path: backup})
	markBehind(members)
	for i, want := range []bool{false, false, true, true} { // node3 was stopped early, the backup is as old
		if members[i].Behind != want {
			t.Errorf("%s: behind %t", members[i].Name, members[i].Behind)
		}
	}
}

// TestConfigurationsOfALog: a log gives the configurations after each of its conf changes, and no other.
func TestConfigurationsOfALog(t *testing.T) {
	dir := synthetic(t, 0)[0]
	for _, c := range []struct {
		voters []uint64
		want   bool
	}{{[]uint64{163, 161, 162}, true}, {[]uint64{161, 162}, true}, {[]uint64{161, 163}, false}} {
		if got := wasConfigured(dir, &raftpb.ConfState{Voters: c.voters}); got != c.want {
			t.Errorf("voters %v: %v", c.voters, got)
		}
	}
	if wasConfigured(dir, &raftpb.ConfState{Voters: []uint64{161, 162}, Learners: []uint64{163}}) {
		t.Error("a learner that never was one")
	}
}

// TestAddsLearner: a conf change of the log adds a learner, or only voters.
func TestAddsLearner(t *testing.T) {
	s := clustertest.Synth{Members: 3, Entries: 30, Keys: 5, Value: 8}
	voters := s.Write(t, t.TempDir())[0]
	s.Learners = map[int]bool{2: true}
	learner := s.Write(t, t.TempDir())[0]
	if addsLearner(voters) || !addsLearner(learner) || addsLearner(t.TempDir()) {
		t.Errorf("voters %v, with a learner %v, no log %v", addsLearner(voters), addsLearner(learner),
			addsLearner(t.TempDir()))
	}
}

// TestReplacedBySnapshot: entries that a snapshot of the leader replaced before they were committed are no part of the
// log; what was committed stays.
func TestReplacedBySnapshot(t *testing.T) {
	record := func(typ int64, m interface{ Marshal() ([]byte, error) }) walRecord {
		b, err := m.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return walRecord{typ: typ, data: b}
	}
	entry := func(index uint64) walRecord { return record(recEntry, &raftpb.Entry{Term: 2, Index: index}) }
	segs := []segment{{records: []walRecord{
		record(recSnapshot, &walpb.Snapshot{}), entry(1), entry(2), entry(3),
		record(recState, &raftpb.HardState{Term: 2, Commit: 2}),
		record(recSnapshot, &walpb.Snapshot{Index: 2, Term: 2}), // its own
		entry(4),
		record(recSnapshot, &walpb.Snapshot{Index: 9, Term: 3}), entry(10),
	}}}
	places, list := entries(segs)
	var got []uint64
	for _, e := range list {
		got = append(got, e.Index)
	}
	if !slices.Equal(got, []uint64{1, 2, 10}) || places[2] != (at{0, 8}) {
		t.Errorf("entries %v at %v", got, places)
	}
}
