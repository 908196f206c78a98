package evidence

import (
	"fmt"
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/dumpdb"
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

// TestRefusedInAPurgedLog: a purged log is judged from its oldest known configuration on. What servers refused between
// that and a newer one is refused, and what came before it is not judged.
func TestRefusedInAPurgedLog(t *testing.T) {
	conf := func(voters ...dumplog.ID) *dumplog.ConfState { return &dumplog.ConfState{Voters: voters} }
	remove := func(index uint64, id dumplog.ID) ConfEntry {
		return ConfEntry{Index: index,
			Change: dumplog.ConfChange{ID: 7, Type: dumplog.ConfChangeRemoveNode, NodeID: id}}
	}
	m := &Member{WAL: WAL{Log: &dumplog.Log{}, Conf: []ConfEntry{remove(60, 9), remove(80, 9), remove(90, 3)},
		Summary: dumplog.Summary{FirstIndex: 50, LastIndex: 110, HardState: &dumplog.HardState{Commit: 110},
			Snapshots: []dumplog.SnapshotRecord{{Index: 55, ConfState: conf()}, {Index: 70, ConfState: conf(1, 2, 3)},
				{Index: 100, ConfState: conf(1, 2)}}}}}
	m.membershipLoading().load()
	var refused []uint64
	for _, c := range m.WAL.Conf {
		if c.Refused {
			refused = append(refused, c.Index)
		}
	}
	if want := []uint64{80}; !slices.Equal(refused, want) {
		t.Errorf("refused %v, want %v", refused, want)
	}
	if want := []dumplog.ID{1, 2}; !m.Membership.RaftKnown || !slices.Equal(m.Membership.Voters, want) {
		t.Errorf("voters %v, want %v", m.Membership.Voters, want)
	}
}

// TestListComparable: up to 3.4 a log that lost entries at its end may have lost a conf change that the bucket shows.
// Later releases store the index of every entry, which tells.
func TestListComparable(t *testing.T) {
	for name, c := range map[string]struct {
		damage dumplog.DamageError
		minor  int
		want   bool
	}{
		"a torn record":             {dumplog.DamageError{Kind: dumplog.DamageTornTail}, 4, false},
		"a torn record on 3.5":      {dumplog.DamageError{Kind: dumplog.DamageTornTail}, 5, true},
		"the last entries lost":     {dumplog.DamageError{Kind: dumplog.DamageCRC, LostFrom: 61}, 4, false},
		"entries lost in between":   {dumplog.DamageError{Kind: dumplog.DamageCRC, LostFrom: 51, LostTo: 55}, 4, true},
		"damage that lost no entry": {dumplog.DamageError{Kind: dumplog.DamagePadding}, 4, true},
	} {
		m := &Member{Commit: 50, Version: Version{Minor: c.minor, Text: fmt.Sprintf("3.%d.x", c.minor)},
			Membership: Membership{RaftKnown: true}, WAL: WAL{Log: &dumplog.Log{},
				Summary: dumplog.Summary{FirstIndex: 1, LastIndex: 60, Damage: []*dumplog.DamageError{&c.damage}}}}
		if got := m.ListComparable(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestListsOfOneFile: the v2 store and the bucket give names, peer URLs and who was removed. A member has started once
// it has published client URLs in one of them.
func TestListsOfOneFile(t *testing.T) {
	m := &Member{snapRead: true, MemberID: 1}
	m.Snap.Files = []*dumplog.SnapFile{{Index: 5, ConfState: dumplog.ConfState{Voters: []dumplog.ID{3, 1}},
		V2: &dumplog.V2Store{Removed: []dumplog.ID{9}, Members: []dumplog.V2Member{
			{ID: 2, Name: "n2", PeerURLs: []string{"http://b"}, ClientURLs: []string{"http://c"}},
			{ID: 1, Name: "old", PeerURLs: []string{"http://a"}}, {ID: 3}}}}}
	m.DB = &DB{Members: []dumpdb.Member{{ID: 1, Name: "n1", ClientURLs: []string{"http://d"}}, {ID: 4}},
		Removed: []dumpdb.ID{9, 8}}
	m.membershipLoading().load()
	ms := &m.Membership
	for id, want := range map[dumplog.ID]struct {
		name, url string
		started   bool
	}{1: {"n1", "http://a", true}, 2: {"n2", "http://b", true}, 3: {}, 4: {}} {
		url := ""
		if urls := ms.PeerURLs[id]; len(urls) > 0 {
			url = urls[0]
		}
		if ms.Names[id] != want.name || url != want.url || ms.Started[id] != want.started {
			t.Errorf("member %d: %q at %q, started %t", id, ms.Names[id], url, ms.Started[id])
		}
	}
	if m.NodeName != "n1" || !slices.Equal(ms.V2, []dumplog.ID{1, 2, 3}) ||
		!slices.Equal(ms.Bucket, []dumplog.ID{1, 4}) ||
		!slices.Equal(ms.Removed, []dumplog.ID{8, 9}) || !slices.Equal(ms.Voters, []dumplog.ID{1, 3}) || !ms.RaftKnown {
		t.Errorf("%s, %+v", m.NodeName, ms)
	}
	m = &Member{Source: &Source{}, DB: &DB{Members: []dumpdb.Member{{ID: 0, Name: "other"}}}}
	if m.membershipLoading().load(); m.NodeName != "" {
		t.Errorf("a source without a member ID has the name %q", m.NodeName)
	}
}
