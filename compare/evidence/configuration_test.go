package evidence

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestConfigurationCurrent: the member list of a log is raft's at the commit index only if the log has every entry
// after the newest ConfState. A missing entry could be a conf change.
func TestConfigurationCurrent(t *testing.T) {
	three := &dumplog.ConfState{Voters: []dumplog.ID{1, 2, 3}}
	at := func(index uint64) []dumplog.SnapshotRecord {
		return []dumplog.SnapshotRecord{{}, {Term: 2, Index: index, ConfState: three}}
	}
	lost := func(from, to uint64) []*dumplog.DamageError {
		return []*dumplog.DamageError{{Kind: dumplog.DamageCRC, LostFrom: from, LostTo: to}}
	}
	gap := func(from, to uint64) []dumplog.Jump { return []dumplog.Jump{{From: from, To: to}} }
	type log = dumplog.Summary
	none := []dumplog.SnapshotRecord{{Index: 20, ConfState: &dumplog.ConfState{}}}
	for name, c := range map[string]struct {
		log  log
		want bool
	}{
		"a log from entry 1":                     {log{FirstIndex: 1, LastIndex: 50}, true},
		"a log that ends below the commit index": {log{FirstIndex: 1, LastIndex: 49}, false},
		"a log without entries":                  {log{}, false},
		"a log that follows the ConfState":       {log{FirstIndex: 21, LastIndex: 50, Snapshots: at(20)}, true},
		"one entry missing after the ConfState":  {log{FirstIndex: 22, LastIndex: 50, Snapshots: at(20)}, false},
		"a ConfState at the commit index":        {log{FirstIndex: 60, LastIndex: 60, Snapshots: at(50)}, true},
		"a ConfState without voters is none":     {log{FirstIndex: 21, LastIndex: 50, Snapshots: none}, false},
		"entries lost up to the ConfState": {log{FirstIndex: 1, LastIndex: 50, Snapshots: at(20),
			Damage: lost(10, 20)}, true},
		"entries lost after the ConfState": {log{FirstIndex: 1, LastIndex: 50, Snapshots: at(20),
			Damage: lost(10, 21)}, false},
		"all entries lost from one on": {log{FirstIndex: 1, LastIndex: 50, Snapshots: at(20),
			Damage: lost(10, 0)}, false},
		"the last committed entry lost":       {log{FirstIndex: 1, LastIndex: 50, Damage: lost(50, 50)}, false},
		"entries lost above the commit index": {log{FirstIndex: 1, LastIndex: 60, Damage: lost(51, 55)}, true},
		"damage that lost no entry":           {log{FirstIndex: 1, LastIndex: 50, Damage: lost(0, 0)}, true},
		"a gap up to the ConfState": {log{FirstIndex: 1, LastIndex: 50, Snapshots: at(20),
			Jumps: gap(10, 20)}, true},
		"a gap after the newest ConfState": {log{FirstIndex: 1, LastIndex: 50, Snapshots: at(20),
			Jumps: gap(30, 40)}, false},
	} {
		m := &Member{Commit: 50, WAL: WAL{Log: &dumplog.Log{}, Summary: c.log}}
		if m.ConfigurationCurrent() {
			t.Errorf("%s: current, although no list of members is known", name)
		}
		m.Membership.RaftKnown = true
		if got := m.ConfigurationCurrent(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestConfigurationOfSnapshotFile: a .snap file alone shows the configuration up to its index, and no further.
func TestConfigurationOfSnapshotFile(t *testing.T) {
	file := &dumplog.SnapFile{Term: 2, Index: 20, ConfState: dumplog.ConfState{Voters: []dumplog.ID{1}}}
	for commit, want := range map[uint64]bool{20: true, 21: false} {
		m := &Member{Commit: commit, snapRead: true, Snap: dumplog.SnapDir{Files: []*dumplog.SnapFile{file}},
			Membership: Membership{RaftKnown: true}}
		if got := m.ConfigurationCurrent(); got != want {
			t.Errorf("committed up to %d: %v, want %v", commit, got, want)
		}
	}
}

// TestMembershipAnswers: every list of members makes an ID known, only the voters make a voter, and a majority is more
// than half of them.
func TestMembershipAnswers(t *testing.T) {
	ms := Membership{Voters: []dumplog.ID{1, 2}, Learners: []dumplog.ID{3}, Removed: []dumplog.ID{4},
		Bucket: []dumplog.ID{5}, V2: []dumplog.ID{6}, PeerURLs: map[dumplog.ID][]string{7: nil}}
	for id := dumplog.ID(1); id <= 8; id++ {
		if ms.Knows(id) != (id <= 7) || ms.IsVoter(id) != (id <= 2) {
			t.Errorf("member %d: known %v, voter %v", id, ms.Knows(id), ms.IsVoter(id))
		}
	}
	for voters, want := range []int{1, 1, 2, 2, 3, 3} {
		ms.Voters = make([]dumplog.ID, voters)
		if voters > 0 && ms.Quorum() != want {
			t.Errorf("a majority of %d voters is %d, want %d", voters, ms.Quorum(), want)
		}
	}
}

// TestNewestSnap: a server starts from the newest intact .snap file that its log names by index and term.
func TestNewestSnap(t *testing.T) {
	file := func(term, index uint64) *dumplog.SnapFile { return &dumplog.SnapFile{Term: term, Index: index} }
	damaged, renamed := file(2, 90), file(2, 80)
	damaged.Damage, renamed.Broken = &dumplog.DamageError{Kind: dumplog.DamageCRC}, true
	m := &Member{snapRead: true, Snap: dumplog.SnapDir{Files: []*dumplog.SnapFile{file(2, 30), damaged, renamed,
		file(3, 40), file(2, 50)}}}
	if f := m.NewestSnap(); f == nil || f.Index != 50 {
		t.Errorf("without a log: %+v", f)
	}
	m.WAL = WAL{Log: &dumplog.Log{}, Summary: dumplog.Summary{Snapshots: []dumplog.SnapshotRecord{{Term: 2, Index: 30},
		{Term: 2, Index: 40}, {Term: 2, Index: 80}, {Term: 2, Index: 90}}}}
	if f := m.NewestSnap(); f == nil || f.Index != 30 {
		t.Errorf("with a log that names entry 40 in another term: %+v", f)
	}
	m.snapRead = false
	if f := m.NewestSnap(); f != nil {
		t.Errorf("a folder that was not read has %+v", f)
	}
}
