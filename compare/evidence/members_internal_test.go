package evidence

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// logged is a member with a log that ends at an index, and a database that has applied another one.
func logged(member, cluster dumplog.ID, last, applied uint64) *Member {
	m := &Member{Source: &Source{Name: "n"}, MemberID: member, ClusterID: cluster}
	m.WAL.Log = &dumplog.Log{}
	m.WAL.Summary.FirstIndex, m.WAL.Summary.LastIndex = 1, last
	m.DB = &DB{Handle: &dumpdb.DB{}, File: "db"}
	m.DB.Meta.ConsistentIndex = &applied
	return m
}

// TestNeverCommitted: the entry at a stored index was not committed if too many voters' logs end below it.
func TestNeverCommitted(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m, a, b *Member)
		want   bool
	}{
		"two of three end below": {func(_, _, _ *Member) {}, true},
		"one reaches it":         {func(_, a, _ *Member) { a.WAL.Summary.LastIndex = 30 }, false},
		"of another cluster":     {func(_, a, _ *Member) { a.ClusterID = 8 }, false},
		"no voter":               {func(m, _, _ *Member) { m.Membership.Voters[1] = 9 }, false},
		"no log":                 {func(_, a, _ *Member) { a.WAL.Log = nil }, false},
		"a damaged log": {func(_, a, _ *Member) {
			a.WAL.Summary.Damage = make([]*dumplog.DamageError, 1)
		}, false},
		"a log below its database":  {func(_, a, _ *Member) { *a.DB.Meta.ConsistentIndex = 21 }, false},
		"a log at its database":     {func(_, a, _ *Member) { *a.DB.Meta.ConsistentIndex = 20 }, true},
		"a copy of the same member": {func(_, a, _ *Member) { a.MemberID = 1 }, false},
		"five voters": {func(m, _, _ *Member) {
			m.Membership.Voters = []dumplog.ID{1, 2, 3, 4, 5}
		}, false},
		"four voters": {func(m, _, _ *Member) { m.Membership.Voters = []dumplog.ID{1, 2, 3, 4} }, true},
		"one voter":   {func(m, _, _ *Member) { m.Membership.Voters = []dumplog.ID{1} }, false},
		"no voters":   {func(m, _, _ *Member) { m.Membership.Voters = nil }, false},
	} {
		m, a, b := logged(1, 7, 30, 30), logged(2, 7, 20, 15), logged(3, 7, 29, 29)
		m.Membership.Voters = []dumplog.ID{1, 2, 3}
		c.change(m, a, b)
		if got := m.NeverCommitted([]*Member{m, a, b}); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestStranger: a database without a log is a stranger if no data dir ever knew one of its members.
func TestStranger(t *testing.T) {
	backup := func(ids ...dumplog.ID) *Member {
		m := &Member{Source: &Source{}, DB: &DB{}}
		m.Membership.Bucket = ids
		return m
	}
	dir := logged(1, 7, 30, 30)
	dir.Membership = Membership{Voters: []dumplog.ID{1, 2}, Removed: []dumplog.ID{3}}
	own, noDB := backup(9), backup(9)
	own.ClusterID, noDB.DB = 7, nil
	for name, c := range map[string]struct {
		m    *Member
		dirs []*Member
		want bool
	}{
		"unknown members":      {backup(8, 9), []*Member{dir}, true},
		"one that is known":    {backup(8, 2), []*Member{dir}, false},
		"the dir's own":        {backup(1), []*Member{dir}, false},
		"one that was removed": {backup(3), []*Member{dir}, false},
		"known to another dir": {backup(9), []*Member{dir, logged(9, 7, 1, 1)}, false},
		"no members":           {backup(), []*Member{dir}, false},
		"no data dir":          {backup(9), nil, false},
		"after another backup": {backup(9), []*Member{backup(9), dir}, true},
		"with a cluster ID":    {own, []*Member{dir}, false},
		"without a database":   {noDB, []*Member{dir}, false},
	} {
		if got := OfAnotherCluster(append(c.dirs, c.m), c.m); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestStrangerAmongBackups: without a data dir, the lists of members of most files say which cluster it is. A member
// that was removed since is of the same.
func TestStrangerAmongBackups(t *testing.T) {
	backup := func(ids ...dumplog.ID) *Member {
		m := &Member{Source: &Source{}, DB: &DB{}}
		m.Membership.Bucket = ids
		return m
	}
	removed := backup(3)
	removed.Membership.Removed = []dumplog.ID{1, 2}
	for name, c := range map[string]struct {
		files []*Member
		want  []bool
	}{
		"one":                         {[]*Member{backup(1)}, []bool{false}},
		"of one cluster":              {[]*Member{backup(1, 2), backup(2, 3)}, []bool{false, false}},
		"by way of another":           {[]*Member{backup(1, 2), backup(3, 4), backup(2, 3)}, []bool{false, false, false}},
		"all members were replaced":   {[]*Member{backup(1, 2), removed}, []bool{false, false}},
		"of two clusters":             {[]*Member{backup(1), backup(8)}, []bool{true, true}},
		"two of one, one of another":  {[]*Member{backup(1), backup(8), backup(1)}, []bool{false, true, false}},
		"two of each":                 {[]*Member{backup(1), backup(8), backup(1), backup(8)}, []bool{true, true, true, true}},
		"one without a list":          {[]*Member{backup(1), backup()}, []bool{false, false}},
		"one that has no database":    {[]*Member{backup(1), {Source: &Source{}}}, []bool{false, false}},
		"two of one, two of a second": {[]*Member{backup(1), backup(1), backup(8), backup(9)}, []bool{false, false, true, true}},
	} {
		for i, m := range c.files {
			if got := OfAnotherCluster(c.files, m); got != c.want[i] {
				t.Errorf("%s: %d is %t", name, i, got)
			}
		}
	}
}

// TestDatabaseOfAnotherCluster: every list of this cluster has to be without the members that the database lists.
func TestDatabaseOfAnotherCluster(t *testing.T) {
	dir := func(id dumplog.ID, cindex uint64, bucket ...dumplog.ID) *Member {
		m := logged(id, 7, 30, cindex)
		m.WAL.Summary.FirstIndex = 10
		m.WAL.Summary.Snapshots = []dumplog.SnapshotRecord{{Index: 20, Term: 2}}
		m.Membership = Membership{Voters: []dumplog.ID{1, 2}, RaftKnown: true, Bucket: bucket}
		return m
	}
	with := func(m *Member, change func(m *Member)) *Member {
		change(m)
		return m
	}
	snap := func(members, removed []dumplog.ID) func(m *Member) {
		v2 := &dumplog.V2Store{Removed: removed}
		for _, id := range members {
			v2.Members = append(v2.Members, dumplog.V2Member{ID: id})
		}
		return func(m *Member) {
			m.snapRead, m.Snap.Files = true, []*dumplog.SnapFile{{Index: 20, Term: 2, V2: v2}}
		}
	}
	removes := func(id dumpdb.ID) func(m *Member) {
		return func(m *Member) { m.DB.Removed = []dumpdb.ID{id} }
	}
	other := dir(2, 30, 1, 2)
	for name, c := range map[string]struct {
		m      *Member
		others []*Member
		want   bool
	}{
		"another member lists none of them": {dir(1, 8, 9), []*Member{other}, true},
		"the snapshot lists none of them":   {with(dir(1, 8, 9), snap([]dumplog.ID{1, 2}, nil)), nil, true},
		"no list that is whole":             {dir(1, 8, 9), nil, false},
		"the log has all entries since":     {dir(1, 9, 9), nil, true},
		"it ends below the snapshot": {with(dir(1, 9, 9), func(m *Member) { m.WAL.Summary.LastIndex = 19 }), nil,
			false},
		"it lost entries since": {with(dir(1, 9, 9), func(m *Member) {
			m.WAL.Summary.Damage = []*dumplog.DamageError{{LostFrom: 12, LostTo: 12}}
		}), nil, false},
		"it removes the member": {with(dir(1, 9, 9), func(m *Member) {
			m.WAL.Conf = []ConfEntry{{Index: 12, Change: dumplog.ConfChange{NodeID: 9}}}
		}), nil, false},
		"the other list is of an earlier time": {dir(1, 8, 9), []*Member{dir(2, 7, 1, 2)}, false},
		"the other list is of the same index":  {dir(1, 8, 9), []*Member{dir(2, 8, 1, 2)}, true},
		"another with the same database":       {dir(1, 8, 9), []*Member{other, dir(2, 8, 9)}, true},
		"all have the same database":           {dir(1, 8, 9), []*Member{dir(2, 8, 9)}, false},
		"a data dir of another cluster": {dir(1, 8, 9),
			[]*Member{with(dir(2, 30, 2), func(m *Member) { m.ClusterID = 8 })}, false},
		"the other has no database": {dir(1, 8, 9),
			[]*Member{with(dir(2, 30, 1, 2), func(m *Member) { m.DB = nil })}, false},
		"one is a voter":            {dir(1, 8, 9, 2), []*Member{other}, false},
		"its own row":               {dir(1, 8, 9, 1), []*Member{other}, false},
		"as new as the snapshot":    {dir(1, 20, 9), []*Member{other}, false},
		"below the snapshot by one": {dir(1, 19, 9), []*Member{other}, true},
		"no rows":                   {dir(1, 8), []*Member{other}, false},
		"no configuration": {with(dir(1, 8, 9), func(m *Member) { m.Membership.RaftKnown = false }),
			[]*Member{other}, false},
		"removed, says the snapshot": {with(dir(1, 8, 9), snap([]dumplog.ID{1, 2}, []dumplog.ID{9})),
			[]*Member{other}, false},
		"removed, says the other": {dir(1, 8, 9),
			[]*Member{with(dir(2, 30, 1, 2), func(m *Member) { m.Membership.Removed = []dumplog.ID{9} })}, false},
		"a learner": {with(dir(1, 8, 9), func(m *Member) { m.Membership.Learners = []dumplog.ID{9} }),
			[]*Member{other}, false},
		"a conf change of the other": {dir(1, 8, 9), []*Member{with(dir(2, 30, 1, 2), func(m *Member) {
			m.WAL.Conf = []ConfEntry{{Index: 3, Change: dumplog.ConfChange{NodeID: 9}}}
		})}, false},
		"beyond the log":           {dir(1, 31, 9), nil, true},
		"at the end of the log":    {dir(1, 30, 9), nil, false},
		"beyond it, its own row":   {dir(1, 31, 9, 1), nil, false},
		"beyond it, one is known":  {dir(1, 31, 9), []*Member{dir(2, 30, 1, 2, 9)}, false},
		"beyond it, removed":       {with(dir(1, 31, 9), removes(1)), nil, false},
		"beyond it, voter removed": {with(dir(1, 31, 9), removes(2)), nil, false},
		"beyond it, former voter removed": {with(with(dir(1, 31, 9), removes(3)), func(m *Member) {
			m.WAL.Conf = []ConfEntry{{Index: 3, Change: dumplog.ConfChange{NodeID: 3}}}
		}), nil, false},
		"beyond it, a stranger removed": {with(dir(1, 31, 9), removes(4)), nil, true},
		"without a cluster ID":          {with(dir(1, 8, 9), func(m *Member) { m.ClusterID = 0 }), []*Member{other}, false},
	} {
		if got := c.m.DatabaseOfAnotherCluster(append(c.others, c.m)); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestLogOfMember: what a log and its snapshot records say about indexes.
func TestLogOfMember(t *testing.T) {
	m := logged(1, 7, 30, 30)
	m.WAL.LastByTerm = []TermEnd{{Term: 2, First: 5, Last: 20}, {Term: 3, First: 21, Last: 30}}
	m.WAL.Summary.Jumps = []dumplog.Jump{{From: 10, To: 12}}
	for index, want := range map[uint64]bool{4: false, 5: true, 9: true, 10: false, 12: false, 13: true, 30: true,
		31: false} {
		if got := m.WAL.Holds(index); got != want {
			t.Errorf("holds %d: %t", index, got)
		}
	}
	for index, want := range map[uint64]uint64{4: 0, 5: 2, 20: 2, 21: 3, 30: 3, 31: 0} {
		if got := m.WAL.TermAt(index); got != want {
			t.Errorf("term at %d: %d, want %d", index, got, want)
		}
	}
	if r := m.NewestRecord(); r.Index != 0 {
		t.Errorf("newest of none: %+v", r)
	}
	m.WAL.Summary.Snapshots = []dumplog.SnapshotRecord{{Term: 1, Index: 8}, {Term: 2, Index: 9},
		{Term: 1, Index: 9}, {Term: 3, Index: 4}}
	if r := m.NewestRecord(); r.Index != 9 || r.Term != 2 {
		t.Errorf("newest: %+v", r)
	}
	for name, c := range map[string]struct {
		change func(m *Member)
		want   bool
	}{
		"from the first entry":  {func(*Member) {}, true},
		"from index 0":          {func(m *Member) { m.WAL.Summary.FirstIndex = 0 }, true},
		"from the second entry": {func(m *Member) { m.WAL.Summary.FirstIndex = 2 }, false},
		"of a restore":          {func(m *Member) { m.WAL.Summary.Start = dumplog.StartRestore }, false},
		"without an entry":      {func(m *Member) { m.WAL.Summary.LastIndex = 0 }, false},
		"without a log":         {func(m *Member) { m.WAL.Log = nil }, false},
	} {
		m := logged(1, 7, 30, 30)
		m.WAL.Summary.Start = dumplog.StartBootstrap
		if c.change(m); m.LogFromStart() != c.want {
			t.Errorf("%s: %t", name, !c.want)
		}
	}
}

// TestRevisions: without a bucket key that was read, no revision is known.
func TestRevisions(t *testing.T) {
	m := logged(1, 7, 30, 30)
	if m.CurrentRevision() != 0 || m.CompactRevision() != -1 {
		t.Error("revisions of a bucket that was not read")
	}
	m.DB.KV = &dumpdb.KVStats{CurrentRev: 9, CompactRev: 4}
	if m.CurrentRevision() != 9 || m.CompactRevision() != 4 {
		t.Errorf("%d, %d", m.CurrentRevision(), m.CompactRevision())
	}
	m.DB = nil
	if m.CurrentRevision() != 0 || m.CompactRevision() != -1 || m.StoredIndex() != 0 || m.RootUnreadable() {
		t.Error("something of a database that is not there")
	}
}

// TestRootUnreadable: damage that hides all buckets, not a database without buckets.
func TestRootUnreadable(t *testing.T) {
	m := logged(1, 7, 30, 30)
	if m.RootUnreadable() {
		t.Error("no damage")
	}
	m.DB.Damage = make([]*dumpdb.DamageError, 1)
	if !m.RootUnreadable() {
		t.Error("damage, no bucket")
	}
	m.DB.Buckets = make([]dumpdb.Bucket, 1)
	if m.RootUnreadable() {
		t.Error("damage, a bucket")
	}
	m.DB.Buckets, m.DB.Handle = nil, nil
	if m.RootUnreadable() {
		t.Error("a database that does not open")
	}
}

// TestNewestSnapFile: of the files that a server would use, the one with the highest index.
func TestNewestSnapFile(t *testing.T) {
	file := func(term, index uint64) *dumplog.SnapFile { return &dumplog.SnapFile{Term: term, Index: index} }
	m := logged(1, 7, 30, 30)
	m.WAL.Summary.Snapshots = []dumplog.SnapshotRecord{{Term: 2, Index: 9}, {Term: 2, Index: 12}, {Term: 2, Index: 15}}
	m.Snap.Files = []*dumplog.SnapFile{file(2, 12), file(2, 9), file(3, 12), file(2, 20),
		{Term: 2, Index: 15, Broken: true},
		{Term: 2, Index: 15, Damage: &dumplog.DamageError{}}}
	if m.NewestSnap() != nil {
		t.Error("the snap folder was not read")
	}
	m.snapRead = true
	if got := m.NewestSnap(); got != m.Snap.Files[0] {
		t.Errorf("%+v", got)
	}
	m.WAL.Log = nil
	if got := m.NewestSnap(); got != m.Snap.Files[3] {
		t.Errorf("without a log: %+v", got)
	}
}

// TestConfigurationChanges: what each kind of change makes of voters, learners and removed members.
func TestConfigurationChanges(t *testing.T) {
	ids := func(ids ...dumplog.ID) []dumplog.ID { return ids }
	for name, c := range map[string]struct {
		kind                      dumplog.ConfChangeType
		id                        dumplog.ID
		voters, learners, removed []dumplog.ID
	}{
		"a voter":                {dumplog.ConfChangeAddNode, 7, ids(1, 2, 7), ids(5), nil},
		"a promotion":            {dumplog.ConfChangeAddNode, 5, ids(1, 2, 5), nil, nil},
		"a learner":              {dumplog.ConfChangeAddLearnerNode, 7, ids(1, 2), ids(5, 7), nil},
		"a voter stays one":      {dumplog.ConfChangeAddLearnerNode, 2, ids(1, 2), ids(5), nil},
		"a voter is removed":     {dumplog.ConfChangeRemoveNode, 2, ids(1), ids(5), ids(2)},
		"a learner is removed":   {dumplog.ConfChangeRemoveNode, 5, ids(1, 2), nil, ids(5)},
		"an update changes none": {dumplog.ConfChangeUpdateNode, 7, ids(1, 2), ids(5), nil},
	} {
		conf := configuration{newIDList(ids(1, 2)), newIDList(ids(5)), newIDList(nil)}
		conf.apply(dumplog.ConfChange{Type: c.kind, NodeID: c.id})
		for what, x := range map[string][2][]dumplog.ID{"voters": {conf.voters.list(), c.voters},
			"learners": {conf.learners.list(), c.learners}, "removed": {conf.removed.list(), c.removed}} {
			if !slices.Equal(x[0], x[1]) {
				t.Errorf("%s: %s %v, want %v", name, what, x[0], x[1])
			}
		}
	}
}

// emptyDatabase opens a database without buckets.
func emptyDatabase(t *testing.T) *dumpdb.DB {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	b, err := bbolt.Open(path, 0o600, nil)
	if err == nil {
		err = b.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	h, err := dumpdb.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

// TestFactsOfParts: facts of what damage or absence leaves of a member.
func TestFactsOfParts(t *testing.T) {
	m := logged(1, 7, 60, 60)
	m.DB.Handle = emptyDatabase(t)
	m.WAL.Log = nil
	m.Problems = []Problem{{Part: "wal", File: "0.wal", Err: errors.New("denied")}}
	m.snapRead = true
	m.Snap.Files = []*dumplog.SnapFile{{File: "s", Term: 2, Index: 9, Size: 5, V2: &dumplog.V2Store{Version: "3.4.0"},
		Damage: &dumplog.DamageError{Kind: dumplog.DamageCRC, LostFrom: 4}}}
	m.DB.Meta.ScheduledCompact, m.DB.Meta.FinishedCompact = &dumpdb.Rev{Main: 8}, &dumpdb.Rev{Main: 6}
	m.DB.KV = &dumpdb.KVStats{Violations: []dumpdb.Violation{{Rule: "undecodable"}, {Rule: "order"},
		{Rule: "undecodable"}}}
	f := m.Facts()
	if f.WAL != nil || !slices.Equal(f.Problems, []ProblemFacts{{Part: "wal", File: "0.wal", Error: "denied"}}) {
		t.Errorf("%+v", f)
	}
	if s := f.Snapshots[0]; s.File != "s" || s.Term != 2 || s.Index != 9 || s.Size != 5 || s.V2.Version != "3.4.0" ||
		s.Damage == nil || s.Damage.Kind != string(dumplog.DamageCRC) || s.Damage.LostFrom != 4 {
		t.Errorf("%+v", s)
	}
	if d := f.DB; d.Undecodable != 2 || *d.ScheduledCompact != 8 || *d.FinishedCompact != 6 || d.Keys == nil {
		t.Errorf("%+v", d)
	}
	for i := range maxDamageFacts + 3 {
		m.DB.Damage = append(m.DB.Damage, &dumpdb.DamageError{Place: dumpdb.Place{Page: uint64(i), Offset: 7},
			Bucket: "key", Kind: dumpdb.DamageTruncated})
	}
	m.DB.Size = 1234
	f = m.Facts()
	if d := f.DB; len(d.Damage) != maxDamageFacts || d.DamageOmitted != 3 || d.Keys != nil || f.Auth != nil ||
		d.Damage[2].Page != 2 || d.Damage[2].Offset != 7 || d.Damage[2].Bucket != "key" ||
		d.Damage[2].Kind != string(dumpdb.DamageTruncated) || d.Damage[2].File != "db" || d.ConsistentIndex == nil {
		t.Errorf("unreadable root: %+v", d)
	}
	m.DB.Handle = nil
	if d := m.Facts().DB; d.Size != 1234 || d.ConsistentIndex != nil || len(d.Damage) != maxDamageFacts {
		t.Errorf("not opened: %+v", d)
	}
	if ids := m.Facts().Membership.Voters; ids == nil || len(ids) != 0 {
		t.Errorf("voters %v", ids)
	}
}

// TestManySnapFacts: of very many files of a snap folder the newest are listed.
func TestManySnapFacts(t *testing.T) {
	m := &Member{Source: &Source{}, snapRead: true}
	for i := range maxSnapFacts + 2 {
		m.Snap.Files = append(m.Snap.Files, &dumplog.SnapFile{Index: uint64(i)})
		m.Snap.SnapDBs = append(m.Snap.SnapDBs, dumplog.SnapDB{Index: uint64(i)})
		m.Snap.LeftOvers = append(m.Snap.LeftOvers, dumplog.LeftOver{Name: fmt.Sprint(i)})
	}
	f := m.Facts()
	if len(f.Snapshots) != maxSnapFacts || f.Snapshots[0].Index != 2 || len(f.SnapDBs) != maxSnapFacts ||
		f.SnapDBs[0].Index != 2 || len(f.LeftOvers) != maxSnapFacts || f.LeftOvers[0].Name != "0" ||
		f.SnapOmitted != 6 {
		t.Errorf("%d %d %d, %d omitted", len(f.Snapshots), len(f.SnapDBs), len(f.LeftOvers), f.SnapOmitted)
	}
}

// TestListedDamage: the list of damage is bounded however often places are added.
func TestListedDamage(t *testing.T) {
	places := make([]*dumplog.DamageError, 15)
	for i := range places {
		places[i] = &dumplog.DamageError{LostFrom: uint64(i + 1), LostTo: 90, Kind: dumplog.DamageCRC, After: 3, Len: 4}
	}
	f := &WALFacts{}
	f.AddDamage(places)
	f.AddDamage(places)
	f.AddDamage(places)
	if len(f.Damage) != maxDamageFacts || f.DamageOmitted != 25 || f.Damage[15].LostFrom != 1 ||
		f.Damage[0].After != 3 || f.Damage[0].LostTo != 90 || f.Damage[0].Length != 4 {
		t.Errorf("%d listed, %d omitted: %+v", len(f.Damage), f.DamageOmitted, f.Damage[15])
	}
}

// TestCutLists: each list of the JSON form is cut, and what is left out is counted by name.
func TestCutLists(t *testing.T) {
	ids := make([]dumplog.ID, maxInList+1)
	own := &dumplog.ConfState{Voters: ids, Learners: ids, VotersOutgoing: ids, LearnersNext: ids}
	c := cutter{}
	got := c.conf("x", own)
	if c["x"] != 4 || len(got.Voters)+len(got.Learners)+len(got.VotersOutgoing)+len(got.LearnersNext) != 4*maxInList ||
		len(own.Voters) != maxInList+1 {
		t.Errorf("%v, %d", c, len(got.Voters))
	}
	if (&cutter{}).conf("x", nil) != nil || cutMap(&c, "y", map[string]int(nil)) != nil {
		t.Error("nothing is cut to something")
	}
	s := SnapFacts{}
	if c.snap(&s); s.V2 != nil {
		t.Errorf("%+v", s)
	}
	s.V2 = &dumplog.V2Store{Members: make([]dumplog.V2Member, maxInList+1), Removed: ids,
		UserKeys: make([]string, maxInList+2)}
	c.snap(&s)
	if len(s.V2.Members) != maxInList || len(s.V2.Removed) != maxInList || len(s.V2.UserKeys) != maxInList ||
		c["snapshots.v2.members"] != 1 || c["snapshots.v2.removed"] != 1 || c["snapshots.v2.userKeys"] != 2 {
		t.Errorf("%v", c)
	}
	for n, want := range map[int]int{maxInList - 1: 0, maxInList: 0, maxInList + 2: 2} {
		c := cutter{}
		list := make([]int, n)
		if got := cutFront(&c, "z", list); len(got) != n-want || c["z"] != want {
			t.Errorf("%d of %d, %v", len(got), n, c)
		}
		if got := cut(&c, "w", list); len(got) != n-want || c["w"] != want {
			t.Errorf("%d of %d, %v", len(got), n, c)
		}
	}
}

// TestAbandonedSnap: a server set a .snap file aside that is empty, or cut short and not named by the log.
func TestAbandonedSnap(t *testing.T) {
	m := &Member{}
	m.WAL.Summary.Snapshots = []dumplog.SnapshotRecord{{Index: 8, Term: 2}}
	for name, c := range map[string]struct {
		file dumplog.SnapFile
		want bool
	}{
		"cut short":                {dumplog.SnapFile{NameIndex: 9, NameTerm: 2, Cut: true, Broken: true, Size: 5}, true},
		"the log names it":         {dumplog.SnapFile{NameIndex: 8, NameTerm: 2, Cut: true, Broken: true, Size: 5}, false},
		"the log names it, empty":  {dumplog.SnapFile{NameIndex: 8, NameTerm: 2, Cut: true, Broken: true}, true},
		"at the index of another":  {dumplog.SnapFile{NameIndex: 8, NameTerm: 3, Cut: true, Broken: true, Size: 5}, true},
		"in its place":             {dumplog.SnapFile{NameIndex: 9, NameTerm: 2, Cut: true, Size: 5}, false},
		"with its content altered": {dumplog.SnapFile{NameIndex: 9, NameTerm: 2, Broken: true, Size: 5}, false},
	} {
		if got := m.AbandonedSnap(&c.file); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestUnfinishedSnap: a .snap file that is cut short after every snapshot that a sound log names, with the entries up
// to it in the log.
func TestUnfinishedSnap(t *testing.T) {
	for name, c := range map[string]struct {
		file   dumplog.SnapFile
		change func(m *Member)
		want   bool
	}{
		"empty":                     {file: dumplog.SnapFile{Cut: true, NameIndex: 9}, want: true},
		"a part of it":              {file: dumplog.SnapFile{Cut: true, NameIndex: 9, Size: 1}, want: true},
		"the whole content":         {file: dumplog.SnapFile{NameIndex: 9, Size: 1}},
		"set aside":                 {file: dumplog.SnapFile{Cut: true, NameIndex: 9, Broken: true}},
		"the log names it":          {file: dumplog.SnapFile{Cut: true, NameIndex: 8}},
		"the log names a later one": {file: dumplog.SnapFile{Cut: true, NameIndex: 7}},
		"beyond the log":            {file: dumplog.SnapFile{Cut: true, NameIndex: 11}},
		"no log":                    {dumplog.SnapFile{Cut: true, NameIndex: 9}, func(m *Member) { m.WAL = WAL{} }, false},
		"a damaged log": {dumplog.SnapFile{Cut: true, NameIndex: 9}, func(m *Member) {
			m.WAL.Summary.Damage = []*dumplog.DamageError{{}}
		}, false},
	} {
		m := &Member{WAL: WAL{Log: &dumplog.Log{}}}
		m.WAL.Summary.FirstIndex, m.WAL.Summary.LastIndex = 1, 10
		m.WAL.Summary.Snapshots = []dumplog.SnapshotRecord{{Index: 8}}
		if c.change != nil {
			c.change(m)
		}
		c.file.Damage = &dumplog.DamageError{}
		if got := m.UnfinishedSnap(&c.file); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
		if f := m.snapFacts(&c.file); f.Unfinished != c.want || f.Damage != nil == c.want {
			t.Errorf("%s: the facts call it unfinished %t, damage %v", name, f.Unfinished, f.Damage)
		}
	}
}
