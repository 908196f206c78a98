package check_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/membershippb"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/casetest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

const (
	a1, a2, a3, b1, b2 = 0xa1, 0xa2, 0xa3, 0xb1, 0xb2
	life               = 1763000000000
)

func addLearner(id uint64) raftpb.ConfChange {
	return raftpb.ConfChange{ID: clustertest.RequestID(a1, life, id), Type: raftpb.ConfChangeAddLearnerNode, NodeID: id,
		Context: fmt.Appendf(nil, `{"id":%d,"peerURLs":["http://127.0.0.1:%d"],"isLearner":true}`, id, id)}
}

// grown writes the dirs of members a1 to a3, and of learner b1 when its log is to end at an index: b1 is added at index
// 4, puts follow, and at index 20 another learner is asked for when second is true. Every database lists the rows
// given.
func grown(t *testing.T, learnerEnd uint64, second bool, rows ...uint64) []string {
	t.Helper()
	const last = 40
	root := t.TempDir()
	var dirs []string
	ids := []uint64{a1, a2, a3}
	if learnerEnd > 0 {
		ids = append(ids, b1)
	}
	for n, id := range ids {
		h := clustertest.NewHand(t, root, fmt.Sprintf("node%d", n+1), id, 0xc1)
		end := uint64(last)
		if id == b1 {
			end = learnerEnd
		}
		h.Found(false, a1, a2, a3)
		for index := uint64(4); index <= end; index++ {
			switch {
			case index == 4:
				h.Conf(2, index, addLearner(b1))
			case index == 5:
				h.Publish(2, index, b1, clustertest.RequestID(b1, life, 1))
			case index == 20 && second:
				h.Conf(2, index, addLearner(b2))
			default:
				h.Put(2, index, clustertest.RequestID(a1, life, index), "/k", fmt.Sprint(index), true)
			}
		}
		h.State(2, a1, end)
		for _, row := range append([]uint64{a1, a2, a3}, rows...) {
			if row != b1 || end >= 4 {
				h.Member(row, row == b1, true)
			}
		}
		h.Row("meta", "storageVersion", "3.6.0")
		h.Row("cluster", "clusterVersion", "3.6.0")
		dirs = append(dirs, h.Close(end, 2))
	}
	return dirs
}

// TestLearners: one that followed the log and stopped only lags; one that blocks another, or never got the log, is an
// error.
func TestLearners(t *testing.T) {
	for name, c := range map[string]struct {
		end     uint64
		second  bool
		want    check.Outcome
		kind    check.Kind
		members []string
	}{
		"level":         {end: 40, want: check.Holds},
		"stopped first": {end: 25, want: check.Holds, kind: check.KindLearnerLags},
		"blocks the addition": {end: 10, second: true, want: check.Violated, kind: check.KindLearnerBlocks,
			members: []string{"node4"}},
		"behind, after the refusal": {end: 25, second: true, want: check.Holds, kind: check.KindLearnerLags},
		"holds nothing of the log": {end: 3, want: check.Violated, kind: check.KindLearnerNeverCaughtUp,
			members: []string{"node4"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputOf(t, grown(t, c.end, c.second, b1)...)
			r := run(t, in, "M10")
			if r.Outcome != c.want || !slices.Equal(accused(r), c.members) || c.kind != "" &&
				(len(r.Findings) != 1 || r.Findings[0].Kind != c.kind) {
				t.Errorf("%s %v: %+v", r.Outcome, accused(r), r.Findings)
			}
			if r := run(t, in, "M03"); r.Outcome == check.Violated {
				t.Errorf("a refused learner is missed in bucket members: %+v", r.Findings)
			}
		})
	}
}

// TestMembersThatRaftDoesNotKnow: on all lines, unless the log has a hole where their addition may have stood.
func TestMembersThatRaftDoesNotKnow(t *testing.T) {
	old := func(tx *bbolt.Tx) error {
		if err := tx.Bucket([]byte("cluster")).Put([]byte("clusterVersion"), []byte("3.5.0")); err != nil {
			return err
		}
		return tx.Bucket([]byte("meta")).Delete([]byte("storageVersion"))
	}
	for name, c := range map[string]struct {
		rows   []uint64
		change change
		want   []string
	}{
		"none":   {rows: []uint64{b1}},
		"on 3.6": {rows: []uint64{b1, 0xd1}, want: []string{"node1", "node2", "node3"}},
		"on 3.5": {rows: []uint64{b1, 0xd1}, change: old, want: []string{"node1", "node2", "node3"}},
		"the log ends earlier": {rows: []uint64{b1, 0xd1},
			change: put("meta", "consistent_index", binary.BigEndian.AppendUint64(nil, 60))},
	} {
		t.Run(name, func(t *testing.T) {
			dirs := grown(t, 0, false, c.rows...)
			for _, d := range dirs {
				if c.change != nil {
					casetest.EditDB(t, d, c.change)
				}
			}
			r := run(t, inputOf(t, dirs...), "M07")
			if got := accused(r); !slices.Equal(got, c.want) || len(c.want) > 0 && r.Findings[0].Class != "membership" {
				t.Errorf("%s %v, want %v: %+v", r.Outcome, got, c.want, r.Findings)
			}
		})
	}
}

// TestImpossibleVersions: marks that no server writes, and a cluster version that the log does not set.
func TestImpossibleVersions(t *testing.T) {
	for _, c := range []struct {
		bucket, key, value string
		bad                bool
	}{
		{"meta", "storageVersion", "3.6.0", false},
		{"meta", "storageVersion", "4.1.0", true},
		{"meta", "storageVersion", "3.42.0", false},
		{"meta", "storageVersion", "3.5.0", true},
		{"meta", "storageVersion", "3.6.2", true},
		{"cluster", "clusterVersion", "3.7.0", false},
		{"cluster", "clusterVersion", "4.9.0", true},
		{"cluster", "clusterVersion", "2.3.0", true},
	} {
		dirs := grown(t, 0, false, b1)
		casetest.EditDB(t, dirs[0], put(c.bucket, c.key, []byte(c.value)))
		r := run(t, inputOf(t, dirs[0]), "X04")
		if bad := slices.Equal(accused(r), []string{"node1"}); bad != c.bad {
			t.Errorf("%s %s: %s %+v", c.key, c.value, r.Outcome, r.Findings)
		}
	}
}

// TestVersionOfALaterEntry: a cluster version that an entry above the consistent index sets was not edited.
func TestVersionOfALaterEntry(t *testing.T) {
	s := clustertest.NewScript("3.6.0")
	version := func(v string) *etcdserverpb.InternalRaftRequest {
		return &etcdserverpb.InternalRaftRequest{ClusterVersionSet: &membershippb.ClusterVersionSetRequest{Ver: v}}
	}
	first := s.Add(step(0, "", version("3.5.0")))
	put1 := s.Add(step(0, "", putKey("/a", 0)))
	second := s.Add(step(0, "", version("3.6.0")))
	s.Add(step(0, "", putKey("/b", 0)))
	for v, want := range map[string]struct {
		kind check.Kind
		at   uint64
	}{
		"3.6.0": {check.KindClusterVersionAboveIndex, s.Index(second)},
		"3.7.0": {check.KindClusterVersionAgainstLog, s.Index(first)},
	} {
		dirs := s.Write(t, t.TempDir())
		casetest.EditDB(t, dirs[1], put("meta", "consistent_index", binary.BigEndian.AppendUint64(nil, s.Index(put1))))
		casetest.EditDB(t, dirs[1], put("cluster", "clusterVersion", []byte(v)))
		r := run(t, inputOf(t, dirs...), "X04")
		at := slices.IndexFunc(r.Findings, func(f check.Finding) bool { return slices.Contains(f.Members, "node2") })
		if at < 0 || r.Findings[at].Kind != want.kind || r.Findings[at].At.Index != want.at {
			t.Errorf("%s: %s %+v", v, r.Outcome, r.Findings)
		}
	}
}

// TestIndexBelowAKeyWrite: up to 3.4 the index stands still for leases, not for keys.
func TestIndexBelowAKeyWrite(t *testing.T) {
	s := clustertest.NewScript("3.4.0")
	s.Add(step(0, "", putKey("/a", 0)))
	last := s.Add(step(0, "", putKey("/b", 0)))
	s.Add(step(0, "", grant(7, 60)))
	s.Add(step(0, "", grant(8, 60)))
	index := func(i uint64) change { return put("meta", "consistent_index", binary.BigEndian.AppendUint64(nil, i)) }
	for i, want := range map[uint64]check.Outcome{s.Index(last): check.Holds, s.Index(last) - 1: check.Violated} {
		dirs := s.Write(t, t.TempDir())
		casetest.EditDB(t, dirs[1], index(i))
		r := run(t, inputOf(t, dirs...), "C03")
		if r.Outcome != want || want == check.Violated && !slices.Equal(accused(r), []string{"node2"}) {
			t.Errorf("index %d: %s %+v", i, r.Outcome, r.Findings)
		}
	}
}

// TestBackupOf34: a backup whose consistent index lags behind what it holds of leases is not wrong.
func TestBackupOf34(t *testing.T) {
	s := clustertest.NewScript("3.4.0")
	last := s.Add(step(0, "", putKey("/a", 0)))
	s.Add(step(0, "", grant(7, 60)))
	s.Add(step(0, "", putKey("/b", 0)))
	s.Of[1] = clustertest.ScriptMember{AppliedUntil: last + 1, IndexAt: last}
	dirs := s.Write(t, t.TempDir())
	in := inputOf(t, dirs[0], backupOf(t, dirs[1]))
	for _, id := range []string{"K03", "L01", "L09"} {
		if r := run(t, in, id); r.Outcome == check.Violated {
			t.Errorf("%s: %+v", id, r.Findings)
		}
	}
}

// TestMemberRowIsGone: a row that the log wrote twice is missed on one member alone and on all; where no conf change is
// left, raft's configuration names the member that lacks it.
func TestMemberRowIsGone(t *testing.T) {
	for _, version := range []string{"3.4.0", "3.5.0", "3.6.0"} {
		s := scripted(version)
		s.Start(0)
		dirs := s.Write(t, t.TempDir())
		if r := run(t, inputOf(t, dirs...), "M16"); r.Outcome != check.Holds {
			t.Errorf("%s sound: %s %+v", version, r.Outcome, r.Findings)
		}
		casetest.EditDB(t, dirs[1], remove("members", "a1"))
		for _, sources := range [][]string{dirs, dirs[1:2]} {
			if r := run(t, inputOf(t, sources...), "M16"); r.Outcome != check.Violated ||
				!slices.Equal(accused(r), []string{"node2"}) {
				t.Errorf("%s, %d sources: %s %v %s", version, len(sources), r.Outcome, accused(r), r.Reason)
			}
		}
		in := inputOf(t, dirs...)
		for _, m := range in.Members {
			m.WAL.Conf = nil
		}
		if r := run(t, in, "M02"); r.Outcome != check.Violated || !slices.Equal(accused(r), []string{"node2"}) {
			t.Errorf("%s, conf changes purged: %s %v", version, r.Outcome, accused(r))
		}
	}
}

// TestUnpublishedRowMayBeGone: one entry alone may have been skipped.
func TestUnpublishedRowMayBeGone(t *testing.T) {
	dirs := scripted("3.5.0").Write(t, t.TempDir())
	casetest.EditDB(t, dirs[1], remove("members", "a1"))
	in := inputOf(t, dirs[1])
	in.Replay.Survey.Starts[a1] = nil
	if r := run(t, in, "M16"); r.Outcome == check.Violated {
		t.Errorf("%+v", r.Findings)
	}
}

// TestRemovalLeavesARow: a member that the log adds and removes is noted as removed.
func TestRemovalLeavesARow(t *testing.T) {
	for _, c := range []struct {
		row  bool
		want check.Outcome
	}{{true, check.Holds}, {false, check.Violated}} {
		dirs := scripted("3.5.0").Write(t, t.TempDir())
		if c.row {
			casetest.EditDB(t, dirs[0], put("members_removed", "f7", []byte("removed")))
		}
		in := inputOf(t, dirs[0])
		m := in.Members[0]
		remove := raftpb.ConfChange{Type: raftpb.ConfChangeRemoveNode, NodeID: 0xf7}
		for i, cc := range []raftpb.ConfChange{addLearner(0xf7), remove} {
			e := evidence.ConfEntry{Term: 2, Index: uint64(5 + i),
				Change: dumplog.ConfChange{ID: 9, Type: dumplog.ConfChangeType(cc.Type), NodeID: dumplog.ID(cc.NodeID)}}
			if i == 0 {
				e.Change.Member = &dumplog.MemberContext{PeerURLs: []string{"http://127.0.0.1:9"}, IsLearner: true}
			}
			m.WAL.Conf = append(m.WAL.Conf, e)
		}
		if r := run(t, in, "M16"); r.Outcome != c.want {
			t.Errorf("row %v: %s %+v", c.row, r.Outcome, r.Findings)
		}
	}
}
