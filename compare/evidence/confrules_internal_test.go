package evidence

import (
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// TestOldestConfiguration: conf changes are judged from the oldest configuration on from which the log continues.
func TestOldestConfiguration(t *testing.T) {
	cs := func(ids ...dumplog.ID) *dumplog.ConfState { return &dumplog.ConfState{Voters: ids} }
	snap := func(index uint64, change func(f *dumplog.SnapFile)) func(m *Member) {
		return func(m *Member) {
			f := &dumplog.SnapFile{Term: 2, Index: index, ConfState: *cs(1, 2), V2: &dumplog.V2Store{
				Members: []dumplog.V2Member{{ID: 1, PeerURLs: []string{"http://a"}},
					{ID: 8, PeerURLs: []string{"http://h"}}},
				Removed: []dumplog.ID{5}}}
			m.Snap.Files, m.snapRead = []*dumplog.SnapFile{f}, true
			m.WAL.Summary.Snapshots = append(m.WAL.Summary.Snapshots, dumplog.SnapshotRecord{Term: 2, Index: index})
			if change != nil {
				change(f)
			}
		}
	}
	records := func(rs ...dumplog.SnapshotRecord) func(m *Member) {
		return func(m *Member) { m.WAL.Summary.Snapshots = rs }
	}
	for name, c := range map[string]struct {
		change  func(m *Member)
		from    uint64
		members []dumplog.ID
		urls    bool
	}{
		"none": {func(*Member) {}, 40, nil, false},
		"a record": {records(dumplog.SnapshotRecord{Index: 20, ConfState: cs(1, 2, 3)}), 20, []dumplog.ID{1, 2, 3},
			false},
		"the older of two": {records(dumplog.SnapshotRecord{Index: 20, ConfState: cs(1, 2, 3)},
			dumplog.SnapshotRecord{Index: 9, ConfState: cs(1)}), 9, []dumplog.ID{1}, false},
		"one without":      {records(dumplog.SnapshotRecord{Index: 9}), 40, nil, false},
		"without voters":   {records(dumplog.SnapshotRecord{Index: 9, ConfState: cs()}), 40, nil, false},
		"at index 0":       {records(dumplog.SnapshotRecord{ConfState: cs(1)}), 40, nil, false},
		"at the newest":    {records(dumplog.SnapshotRecord{Index: 40, ConfState: cs(1)}), 40, []dumplog.ID{1}, false},
		"above the newest": {records(dumplog.SnapshotRecord{Index: 41, ConfState: cs(1)}), 40, nil, false},
		"a file":           {snap(15, nil), 15, []dumplog.ID{1, 2}, true},
		"a file set aside": {snap(15, func(f *dumplog.SnapFile) { f.Broken = true }), 40, nil, false},
		"a damaged file": {snap(15, func(f *dumplog.SnapFile) {
			f.Damage = &dumplog.DamageError{}
		}), 40, nil, false},
		"an unknown file": {snap(15, func(f *dumplog.SnapFile) { f.Term = 3 }), 40, nil, false},
		"without a store": {snap(15, func(f *dumplog.SnapFile) { f.V2 = nil }), 15, []dumplog.ID{1, 2}, false},
		"no snap folder":  {func(m *Member) { snap(15, nil)(m); m.snapRead = false }, 40, nil, false},
		"an older record": {func(m *Member) {
			records(dumplog.SnapshotRecord{Index: 9, ConfState: cs(1)})(m)
			snap(15, nil)(m)
		}, 9, []dumplog.ID{1}, false},
	} {
		m := logged(1, 7, 60, 60)
		m.WAL.Summary.FirstIndex = 5
		c.change(m)
		r := &confRules{m: m, rules: apply.NewMembers(release.AnyOf(5))}
		if from := m.oldestConfState(40, r); from != c.from {
			t.Errorf("%s: from %d, want %d", name, from, c.from)
		}
		for id := range dumplog.ID(10) {
			x, ok := r.rules.Get(id)
			if ok != slices.Contains(c.members, id) || (len(x.PeerURLs) > 0) != (c.urls && id == 1) {
				t.Errorf("%s: member %d: %t %q", name, id, ok, x.PeerURLs)
			}
		}
		if r.rules.Removed[5] != c.urls {
			t.Errorf("%s: 5 is removed: %t", name, r.rules.Removed[5])
		}
	}
}

// TestRemovedBeforeTheLog: a member that the database lists as removed was removed before a purged log, unless the log
// removes it or names it later.
func TestRemovedBeforeTheLog(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *Member)
		want   bool
	}{
		"before the log":   {func(*Member) {}, true},
		"by the log":       {func(m *Member) { m.WAL.Conf = removal(30) }, false},
		"by a known start": {func(m *Member) { m.WAL.Conf = removal(20) }, true},
		"added by the log": {func(m *Member) { m.WAL.Conf = addition(30) }, true},
		"added by the log and listed": {func(m *Member) {
			m.WAL.Conf, m.Membership.Bucket = addition(30), []dumplog.ID{9}
		}, false},
		"added as learner and listed": {func(m *Member) {
			m.WAL.Conf, m.Membership.Bucket = addition(30), []dumplog.ID{9}
			m.WAL.Conf[0].Change.Type = dumplog.ConfChangeAddLearnerNode
		}, false},
		"added by a known start and listed": {func(m *Member) {
			m.WAL.Conf, m.Membership.Bucket = addition(20), []dumplog.ID{9}
		}, true},
		"updated by the log and listed": {func(m *Member) {
			m.WAL.Conf, m.Membership.Bucket = addition(30), []dumplog.ID{9}
			m.WAL.Conf[0].Change.Type = dumplog.ConfChangeUpdateNode
		}, true},
		"added by the log and stored as voter": {func(m *Member) {
			m.WAL.Conf, m.Membership.MetaConfState = addition(30), []dumplog.ID{1, 9}
			m.DB.Meta.ConfState = &dumpdb.ConfState{}
		}, false},
		"added by the log, listed but not stored as voter": {func(m *Member) {
			m.WAL.Conf, m.Membership.Bucket, m.Membership.MetaConfState = addition(30), []dumplog.ID{9}, []dumplog.ID{1}
			m.DB.Meta.ConfState = &dumpdb.ConfState{}
		}, true},
		"a later record": {func(m *Member) {
			m.WAL.Summary.Snapshots = append(m.WAL.Summary.Snapshots, dumplog.SnapshotRecord{Index: 30,
				ConfState: &dumplog.ConfState{Voters: []dumplog.ID{1}, Learners: []dumplog.ID{9}}})
		}, false},
		"the record at the start": {func(m *Member) {
			m.WAL.Summary.Snapshots[0].ConfState.Voters = []dumplog.ID{1, 9}
		}, false},
		"a later file": {func(m *Member) {
			m.snapRead = true
			m.Snap.Files = []*dumplog.SnapFile{{Index: 20, ConfState: dumplog.ConfState{Voters: []dumplog.ID{1, 9}}}}
		}, false},
		"a log from its start": {func(m *Member) { m.WAL.Summary.FirstIndex = 1 }, false},
		"no database":          {func(m *Member) { m.DB = nil }, false},
	} {
		m := logged(1, 7, 60, 60)
		m.WAL.Summary.FirstIndex, m.DB.Removed = 21, []dumpdb.ID{9}
		m.WAL.Summary.Snapshots = []dumplog.SnapshotRecord{{Index: 20,
			ConfState: &dumplog.ConfState{Voters: []dumplog.ID{1}}}}
		c.change(m)
		if got := m.confRules(50).rules.Removed[9]; got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestGapsOfALog: after a part that the log lacks nothing is known of the configuration, up to the next snapshot that
// shows it. Damage that lost no entry, or everything after it, leaves no such part.
func TestGapsOfALog(t *testing.T) {
	record := func(index uint64, voters ...dumplog.ID) dumplog.SnapshotRecord {
		return dumplog.SnapshotRecord{Index: index, ConfState: &dumplog.ConfState{Voters: voters}}
	}
	m := logged(1, 7, 60, 60)
	m.WAL.Summary.Damage = []*dumplog.DamageError{{LostFrom: 18, LostTo: 20}, {LostFrom: 50}, {LostTo: 40}, {}}
	m.WAL.Summary.Jumps = []dumplog.Jump{{From: 8, To: 10}}
	m.WAL.Summary.Snapshots = []dumplog.SnapshotRecord{record(25, 1, 2), record(15, 1), record(5, 1, 2, 3),
		record(12), {Index: 11}}
	r := &confRules{m: m, rules: apply.NewMembers(release.AnyOf(6))}
	if r.noteGaps(); !slices.Equal(r.gaps, []uint64{10, 20}) || len(r.known) != 3 {
		t.Fatalf("gaps %v, known %v", r.gaps, r.known)
	}
	for _, c := range []struct {
		index uint64
		blind bool
		known bool // member 2
	}{{9, false, false}, {10, false, false}, {11, true, false}, {15, true, false}, {16, false, false},
		{20, false, false}, {21, true, false}, {25, true, false}, {26, false, true}, {40, false, true}} {
		r.passGaps(c.index)
		if _, known := r.rules.Get(2); r.blind != c.blind || known != c.known {
			t.Errorf("before entry %d: blind %t, member 2 known %t", c.index, r.blind, known)
		}
	}
	// Changes between the configuration at entry 5 and the end of the gap are not known.
	r = &confRules{m: m, rules: apply.NewMembers(release.AnyOf(6))}
	r.noteGaps()
	r.passGaps(11)
	if _, known := r.rules.Get(2); !r.blind || known {
		t.Errorf("right after the gap: blind %t, member 2 known %t", r.blind, known)
	}
	m.WAL.Summary.Snapshots[2].Index = 10 // received with the snapshot that makes the gap
	r = &confRules{m: m, rules: apply.NewMembers(release.AnyOf(6))}
	r.noteGaps()
	r.passGaps(11)
	if _, known := r.rules.Get(2); r.blind || !known {
		t.Errorf("with a configuration at the end of the gap: blind %t, member 2 known %t", r.blind, known)
	}
}

// TestConfigurationsAfterGaps: a .snap file shows the configuration after a gap if a server would use it.
func TestConfigurationsAfterGaps(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *Member, f *dumplog.SnapFile)
		want   int
	}{
		"a file":            {func(*Member, *dumplog.SnapFile) {}, 1},
		"set aside":         {func(_ *Member, f *dumplog.SnapFile) { f.Broken = true }, 0},
		"damaged":           {func(_ *Member, f *dumplog.SnapFile) { f.Damage = &dumplog.DamageError{} }, 0},
		"of another term":   {func(_ *Member, f *dumplog.SnapFile) { f.Term = 3 }, 0},
		"without voters":    {func(_ *Member, f *dumplog.SnapFile) { f.ConfState.Voters = nil }, 0},
		"not read":          {func(m *Member, _ *dumplog.SnapFile) { m.snapRead = false }, 0},
		"a log without gap": {func(m *Member, _ *dumplog.SnapFile) { m.WAL.Summary.Jumps = nil }, 0},
	} {
		m := logged(1, 7, 60, 60)
		m.WAL.Summary.Jumps = []dumplog.Jump{{From: 8, To: 10}}
		m.WAL.Summary.Snapshots = []dumplog.SnapshotRecord{{Term: 2, Index: 10}}
		f := &dumplog.SnapFile{Term: 2, Index: 10, ConfState: dumplog.ConfState{Voters: []dumplog.ID{1}}}
		m.Snap.Files, m.snapRead = []*dumplog.SnapFile{f}, true
		c.change(m, f)
		r := &confRules{m: m, rules: apply.NewMembers(release.AnyOf(6))}
		if r.noteGaps(); len(r.known) != c.want {
			t.Errorf("%s: %d configurations", name, len(r.known))
		}
	}
}

// TestChangesOfABootstrap: the changes of a bootstrap have no ID and are at the first entries without a break. They are
// never refused. After a forced start, which removes members with changes that have no ID, an ID may be used again.
func TestChangesOfABootstrap(t *testing.T) {
	change := func(index, id uint64, kind dumplog.ConfChangeType, node dumplog.ID) ConfEntry {
		return ConfEntry{Index: index, Change: dumplog.ConfChange{ID: dumplog.RequestID(id), Type: kind, NodeID: node,
			Member: &dumplog.MemberContext{ID: node, PeerURLs: []string{"http://" + node.String()}}}}
	}
	const add, remove = dumplog.ConfChangeAddNode, dumplog.ConfChangeRemoveNode
	first := []ConfEntry{change(1, 0, add, 1), change(2, 0, add, 2)}
	for name, c := range map[string]struct {
		changes []ConfEntry
		want    []uint64
	}{
		"nothing else":                 {nil, nil},
		"the next has no ID":           {[]ConfEntry{change(3, 0, remove, 9)}, nil},
		"the next has an ID":           {[]ConfEntry{change(3, 5, remove, 9)}, []uint64{3}},
		"after other entries":          {[]ConfEntry{change(4, 0, remove, 9)}, []uint64{4}},
		"without an ID after one with": {[]ConfEntry{change(3, 5, add, 3), change(4, 0, remove, 9)}, []uint64{4}},
		"added after a removal":        {[]ConfEntry{change(5, 5, remove, 2), change(6, 6, add, 2)}, []uint64{6}},
		"added after a forced start":   {[]ConfEntry{change(5, 0, remove, 2), change(6, 6, add, 2)}, nil},
		"added twice after a forced start": {[]ConfEntry{change(5, 0, remove, 2), change(6, 6, add, 2),
			change(7, 7, add, 2)}, []uint64{7}},
	} {
		m := logged(1, 7, 10, 0)
		m.DB = nil
		m.WAL.Summary.HardState = &dumplog.HardState{Commit: 10}
		m.WAL.Conf = append(slices.Clone(first), c.changes...)
		m.membershipLoading().load()
		var got []uint64
		for _, x := range m.WAL.Conf {
			if x.Refused {
				got = append(got, x.Index)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: refused %v, want %v", name, got, c.want)
		}
	}
}

// TestShownAdditions: the database shows whether an addition was refused once it has applied it.
func TestShownAdditions(t *testing.T) {
	m := logged(1, 7, 60, 40)
	m.DB.Members = []dumpdb.Member{{ID: 1}}
	for index, want := range map[uint64]map[dumplog.ID]release.Answer{
		39: {1: release.Yes, 2: release.No}, 40: {1: release.Yes, 2: release.No},
		41: {1: release.Unknown, 2: release.Unknown}} {
		r := &confRules{m: m, index: index}
		for id, answer := range want {
			if got := r.listed(id); got != answer {
				t.Errorf("entry %d, member %d: %v, want %v", index, id, got, answer)
			}
		}
	}
}

// TestListedIDs: the members and removed members of the database.
func TestListedIDs(t *testing.T) {
	m := logged(1, 7, 60, 60)
	m.DB.Members, m.DB.Removed = []dumpdb.Member{{ID: 1}}, []dumpdb.ID{9}
	if got := m.Listed(); len(got) != 2 || !got[1] || !got[9] {
		t.Errorf("%v", got)
	}
	if m.DB = nil; len(m.Listed()) != 0 {
		t.Error("without a database")
	}
}

func removal(index uint64) []ConfEntry {
	return []ConfEntry{{Index: index, Change: dumplog.ConfChange{Type: dumplog.ConfChangeRemoveNode, NodeID: 9}}}
}

// addition is the log of one entry that adds member 9.
func addition(index uint64) []ConfEntry {
	c := removal(index)
	c[0].Change.Type = dumplog.ConfChangeAddNode
	return c
}
