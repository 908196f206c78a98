package evidence_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// changeOf is a conf change with the peer URL given.
func changeOf(kind raftpb.ConfChangeType, id uint64, url string) raftpb.ConfChange {
	return raftpb.ConfChange{ID: clustertest.RequestID(0xa1, 1000, id), Type: kind, NodeID: id,
		Context: fmt.Appendf(nil, `{"id":%d,"peerURLs":[%q]}`, id, url)}
}

// TestRefusedChanges: what servers refuse changes neither raft's configuration nor the removed members.
func TestRefusedChanges(t *testing.T) {
	const a1, a2, a3, b1, b2 = 0xa1, 0xa2, 0xa3, 0xb1, 0xb2
	learner := func(id uint64, url string) raftpb.ConfChange {
		return changeOf(raftpb.ConfChangeAddLearnerNode, id, url)
	}
	voter := func(id uint64, url string) raftpb.ConfChange { return changeOf(raftpb.ConfChangeAddNode, id, url) }
	request := clustertest.RequestID(a1, 1000, 77)
	for name, c := range map[string]struct {
		changes          []raftpb.ConfChange
		version          string
		rows             []uint64
		refused          []int
		voters, learners []dumplog.ID
	}{
		"a learner": {changes: []raftpb.ConfChange{learner(b1, "http://b1")}, version: "3.6.0", rows: []uint64{b1},
			voters: []dumplog.ID{a1, a2, a3}, learners: []dumplog.ID{b1}},
		"a second learner": {changes: []raftpb.ConfChange{learner(b1, "http://b1"), learner(b2, "http://b2")},
			version: "3.6.0", rows: []uint64{b1},
			refused: []int{1}, voters: []dumplog.ID{a1, a2, a3}, learners: []dumplog.ID{b1}},
		"a second learner where a flag allows it": {changes: []raftpb.ConfChange{learner(b1, "http://b1"),
			learner(b2, "http://b2")}, version: "3.6.0", rows: []uint64{b1, b2},
			voters: []dumplog.ID{a1, a2, a3}, learners: []dumplog.ID{b1, b2}},
		"a second learner on 3.5, which has no flag": {changes: []raftpb.ConfChange{learner(b1, "http://b1"),
			learner(b2, "http://b2")}, rows: []uint64{b1},
			refused: []int{1}, voters: []dumplog.ID{a1, a2, a3}, learners: []dumplog.ID{b1}},
		"an ID that is there": {changes: []raftpb.ConfChange{voter(a2, "http://b1")}, version: "3.6.0",
			refused: []int{0}, voters: []dumplog.ID{a1, a2, a3}},
		"a URL that another member has": {changes: []raftpb.ConfChange{voter(b1, "http://127.0.0.1:162")},
			version: "3.6.0", refused: []int{0},
			voters: []dumplog.ID{a1, a2, a3}},
		"a removal of an unknown member": {changes: []raftpb.ConfChange{clustertest.RemoveMember(b1, request)},
			version: "3.6.0", refused: []int{0},
			voters: []dumplog.ID{a1, a2, a3}},
		"an ID that was removed": {changes: []raftpb.ConfChange{clustertest.RemoveMember(a3, request),
			voter(a3, "http://a3")}, version: "3.6.0", refused: []int{1},
			voters: []dumplog.ID{a1, a2}},
		"a promotion of a voter": {changes: []raftpb.ConfChange{clustertest.Promote(a3, request)}, version: "3.6.0",
			refused: []int{0},
			voters:  []dumplog.ID{a1, a2, a3}},
		"a promotion of a learner": {changes: []raftpb.ConfChange{learner(b1, "http://b1"),
			clustertest.Promote(b1, request)}, version: "3.6.0", rows: []uint64{b1},
			voters: []dumplog.ID{a1, a2, a3, b1}},
		"an update of an unknown member": {changes: []raftpb.ConfChange{changeOf(raftpb.ConfChangeUpdateNode, b1,
			"http://b1")}, version: "3.6.0", refused: []int{0},
			voters: []dumplog.ID{a1, a2, a3}},
	} {
		t.Run(name, func(t *testing.T) {
			h := clustertest.NewHand(t, t.TempDir(), "node1", a1, 0xc1)
			h.Found(false, a1, a2, a3)
			index := uint64(3)
			for _, cc := range c.changes {
				index++
				h.Conf(2, index, cc)
			}
			for _, id := range append([]uint64{a1, a2, a3}, c.rows...) {
				h.Member(id, id >= b1, true)
			}
			if c.version != "" {
				h.Row("meta", "storageVersion", c.version)
			}
			h.State(2, a1, index)
			m := open(t, evidence.Spec{Name: "node1", Where: h.Close(index, 2)}).Members[0]
			if !slices.Equal(m.Membership.Voters, c.voters) || !slices.Equal(m.Membership.Learners, c.learners) {
				t.Errorf("voters %v learners %v, want %v %v", m.Membership.Voters, m.Membership.Learners, c.voters,
					c.learners)
			}
			var refused []int
			for _, x := range m.WAL.Conf {
				if x.Refused {
					refused = append(refused, int(x.Index)-4)
				}
			}
			if !slices.Equal(refused, c.refused) {
				t.Errorf("refused %v, want %v", refused, c.refused)
			}
		})
	}
}

// TestRefusedWithoutURLs: a log that continues a snapshot record, without the .snap file, names no peer URLs. The
// database shows that an addition with the URL of a member was refused, if it has applied the change.
func TestRefusedWithoutURLs(t *testing.T) {
	const a1, a2, b1 = 0xa1, 0xa2, 0xb1
	for name, c := range map[string]struct {
		rows    []uint64
		applied uint64
		voters  []dumplog.ID
	}{
		"refused":                {rows: []uint64{a1, a2}, applied: 11, voters: []dumplog.ID{a1, a2}},
		"accepted":               {rows: []uint64{a1, a2, b1}, applied: 11, voters: []dumplog.ID{a1, a2, b1}},
		"committed, not applied": {rows: []uint64{a1, a2}, applied: 10, voters: []dumplog.ID{a1, a2, b1}},
	} {
		t.Run(name, func(t *testing.T) {
			h := clustertest.NewHand(t, t.TempDir(), "node1", a1, 0xc1)
			h.Snapshot(2, 9, a1, a2)
			h.Request(2, 10, nil)
			h.Conf(2, 11, changeOf(raftpb.ConfChangeAddNode, b1, "http://127.0.0.1:162"))
			for _, id := range c.rows {
				h.Member(id, false, true)
			}
			h.Row("meta", "storageVersion", "3.6.0")
			h.State(2, a1, 11)
			dir := h.Close(c.applied, 2)
			snap := filepath.Join(dir, "member", "snap", fmt.Sprintf("%016x-%016x.snap", 2, 9))
			if err := os.Remove(snap); err != nil {
				t.Fatal(err)
			}
			m := open(t, evidence.Spec{Name: "node1", Where: dir}).Members[0]
			if !slices.Equal(m.Membership.Voters, c.voters) {
				t.Errorf("voters %v, want %v", m.Membership.Voters, c.voters)
			}
		})
	}
}

// TestRefusedAfterGap: what a received snapshot brought is not in the log, but its record has the configuration.
func TestRefusedAfterGap(t *testing.T) {
	const a1, a2, b1 = 0xa1, 0xa2, 0xb1
	request := clustertest.RequestID(a1, 1000, 77)
	for name, c := range map[string]struct {
		received []uint64 // none: the record has no configuration, as in 3.4
		want     bool
	}{
		"a member that the snapshot brought":      {[]uint64{a1, a2, b1}, false},
		"a member that it did not bring":          {[]uint64{a1, a2}, true},
		"the configuration after it is not known": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := clustertest.NewHand(t, t.TempDir(), "node1", a1, 0xc1)
			h.Found(false, a1, a2)
			h.Request(2, 3, nil)
			h.State(2, a1, 3)
			h.Snapshot(2, 20, c.received...)
			h.Conf(2, 21, clustertest.RemoveMember(b1, request))
			h.Request(2, 22, nil)
			h.State(2, a1, 22)
			h.Snapshot(2, 22, a1, a2)
			h.Row("meta", "storageVersion", "3.6.0")
			m := open(t, evidence.Spec{Name: "node1", Where: h.Close(22, 2)}).Members[0]
			if got := m.WAL.Conf[len(m.WAL.Conf)-1]; got.Index != 21 || got.Refused != c.want {
				t.Errorf("entry %d refused: %t, want entry 21, %t", got.Index, got.Refused, c.want)
			}
		})
	}
}
