package datadir

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/release"
)

// threeMembers is a source of three members, one of them a learner, whose bucket says the same as raft.
func threeMembers() *evidence.Member {
	m := &evidence.Member{Source: &evidence.Source{}, DB: &evidence.DB{}}
	m.Membership = evidence.Membership{RaftKnown: true,
		Voters: []dumplog.ID{2, 1}, Learners: []dumplog.ID{3}, Removed: []dumplog.ID{9},
		Names: map[dumplog.ID]string{1: "one", 2: "two"}, PeerURLs: map[dumplog.ID][]string{}}
	for id := dumplog.ID(1); id <= 3; id++ {
		url := []string{"http://" + id.String() + ":2380"}
		m.Membership.PeerURLs[id] = url
		m.DB.Members = append(m.DB.Members, dumpdb.Member{ID: dumpdb.ID(id), PeerURLs: url, IsLearner: id == 3})
	}
	m.DB.Removed = []dumpdb.ID{9}
	return m
}

// TestView: the member list is raft's, with what the bucket knows of the members.
func TestView(t *testing.T) {
	for _, tc := range []struct {
		name    string
		set     func(m *evidence.Member)
		voters  []uint64
		learner []uint64
		removed []uint64
		differs bool
		note    string // "" is none
		refused string
	}{
		{"as the bucket says", func(*evidence.Member) {}, []uint64{1, 2}, []uint64{3}, []uint64{9}, false, "", ""},
		{"without a ConfState", func(m *evidence.Member) {
			m.Membership.RaftKnown, m.Membership.Voters, m.Membership.Learners = false, []dumplog.ID{7}, []dumplog.ID{8}
		}, []uint64{1, 2}, []uint64{3}, []uint64{9}, false, "shows no ConfState; its members bucket is taken", ""},
		{"no voters", func(m *evidence.Member) { m.Membership.Voters = nil }, nil, nil, nil, false, "",
			"does not show who the voters are"},
		{"no peer URLs", func(m *evidence.Member) { delete(m.Membership.PeerURLs, 3) }, nil, nil, nil, false, "",
			"no peer URLs of member 3"},
		{"a removed voter was added again", func(m *evidence.Member) {
			m.Membership.Removed = append(m.Membership.Removed, 2, 3)
		}, []uint64{1, 2}, []uint64{3}, []uint64{9}, false, "", ""},
		{"the bucket lacks a removed one", func(m *evidence.Member) { m.DB.Removed = nil }, []uint64{1, 2}, []uint64{3},
			[]uint64{9}, true, "says something else than raft's own list", ""},
		{"the bucket has removed one more", func(m *evidence.Member) { m.DB.Removed = append(m.DB.Removed, 0xa) },
			[]uint64{1, 2}, []uint64{3}, []uint64{9}, false, "", ""},
		{"the bucket lacks a member", func(m *evidence.Member) { m.DB.Members = m.DB.Members[:2] }, []uint64{1, 2},
			[]uint64{3}, []uint64{9}, true, "says something else", ""},
		{"the bucket has another ID", func(m *evidence.Member) { m.DB.Members[2].ID = 4 }, []uint64{1, 2}, []uint64{3},
			[]uint64{9}, true, "says something else", ""},
		{"the bucket has a voter for the learner", func(m *evidence.Member) { m.DB.Members[2].IsLearner = false },
			[]uint64{1, 2}, []uint64{3}, []uint64{9}, true, "says something else", ""},
		{"the bucket has another URL", func(m *evidence.Member) { m.DB.Members[0].PeerURLs = []string{"http://x:1"} },
			[]uint64{1, 2}, []uint64{3}, []uint64{9}, true, "says something else", ""},
	} {
		m := threeMembers()
		tc.set(m)
		v, err := viewOf(m)
		if tc.refused != "" {
			var r *refusal.Error
			if !errors.As(err, &r) || !strings.Contains(r.Reason, tc.refused) {
				t.Errorf("%s: %v, want a refusal: %s", tc.name, err, tc.refused)
			}
			if _, err := ViewOf(m); err == nil {
				t.Errorf("%s: ViewOf refuses nothing", tc.name)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		if !slices.Equal(v.voters, tc.voters) || !slices.Equal(v.learners, tc.learner) ||
			!slices.Equal(v.removed, tc.removed) || v.differs != tc.differs || len(v.members) != 3 {
			t.Errorf("%s: %+v", tc.name, v)
		}
		for i, x := range v.members {
			if x.ID != uint64(i+1) || x.IsLearner != (i == 2) || len(x.PeerURLs) != 1 {
				t.Errorf("%s: %+v", tc.name, x)
			}
		}
		if notes := strings.Join(v.notes, "\n"); !strings.Contains(notes, tc.note) || tc.note == "" && notes != "" {
			t.Errorf("%s: notes %q, want %q", tc.name, notes, tc.note)
		}
		public, err := ViewOf(m)
		if d := cmp.Diff(public, &View{v.voters, v.learners, v.members, v.removed}); err != nil || d != "" {
			t.Errorf("%s: %v %s", tc.name, err, d)
		}
	}
}

// TestViewInOrder: all lists are in the order of the IDs, so that the dirs of each member are the same.
func TestViewInOrder(t *testing.T) {
	m := threeMembers()
	m.Membership.Voters, m.Membership.Learners = []dumplog.ID{4, 1}, []dumplog.ID{5, 3}
	for _, id := range []dumplog.ID{4, 5} {
		m.Membership.PeerURLs[id] = []string{"http://a:1"}
	}
	v, err := viewOf(m)
	if err != nil || !slices.Equal(v.voters, []uint64{1, 4}) || !slices.Equal(v.learners, []uint64{3, 5}) {
		t.Fatalf("%+v %v", v, err)
	}
	var ids []uint64
	for _, x := range v.members {
		ids = append(ids, x.ID)
	}
	if !slices.Equal(ids, []uint64{1, 3, 4, 5}) {
		t.Errorf("members %d", ids)
	}
}

// TestTargetOfView: which members may get a dir, and of which cluster.
func TestTargetOfView(t *testing.T) {
	for name, tc := range map[string]struct {
		best    dumplog.ID
		target  Target
		cluster uint64
		refused string
	}{
		"a voter":                   {0xc1, Target{MemberID: 2, ClusterID: 0xc1}, 0xc1, ""},
		"a learner":                 {0xc1, Target{MemberID: 3}, 0xc1, ""},
		"the cluster of the target": {0, Target{MemberID: 2, ClusterID: 0xc2}, 0xc2, ""},
		"another cluster":           {0xc1, Target{MemberID: 2, ClusterID: 0xc2}, 0, "is of cluster c2"},
		"a member that was removed": {0xc1, Target{MemberID: 9}, 0, "was removed from the cluster"},
		"an unknown member":         {0xc1, Target{MemberID: 8}, 0, "is not a member of the cluster"},
	} {
		m := threeMembers()
		m.ClusterID = tc.best
		v, err := viewOf(m)
		if err != nil {
			t.Fatal(err)
		}
		d, err := v.dir(m, tc.target)
		var r *refusal.Error
		if tc.refused != "" {
			if !errors.As(err, &r) || !strings.Contains(r.Reason, tc.refused) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || d.ClusterID != tc.cluster || d.MemberID != tc.target.MemberID ||
			!slices.Equal(d.Voters, v.voters) || !slices.Equal(d.Learners, v.learners) {
			t.Errorf("%s: %+v %v", name, d, err)
		}
	}
}

// TestMemberOf: the bucket's name and client URLs count, where it has them.
func TestMemberOf(t *testing.T) {
	m := threeMembers()
	m.DB.Members[1].Name, m.DB.Members[1].ClientURLs = "now-two", []string{"http://two:2379"}
	for id, want := range map[dumplog.ID]Member{
		1: {ID: 1, Name: "one", PeerURLs: []string{"http://1:2380"}},
		2: {ID: 2, Name: "now-two", PeerURLs: []string{"http://2:2380"}, ClientURLs: []string{"http://two:2379"}},
	} {
		if d := cmp.Diff(want, memberOf(m, id)); d != "" {
			t.Error(d)
		}
	}
}

// TestAbsentLearners: a learner without a dir leaves the list and counts as removed.
func TestAbsentLearners(t *testing.T) {
	for _, tc := range []struct {
		targets           []Target
		learners, removed []uint64
	}{
		{[]Target{{MemberID: 1}, {MemberID: 2}, {MemberID: 3}}, []uint64{3}, []uint64{9}},
		{[]Target{{MemberID: 1}, {MemberID: 2}}, nil, []uint64{9, 3}},
	} {
		v, err := viewOf(threeMembers())
		if err != nil {
			t.Fatal(err)
		}
		v.dropAbsentLearners(tc.targets)
		gone := len(tc.learners) == 0
		if !slices.Equal(v.learners, tc.learners) || !slices.Equal(v.removed, tc.removed) || v.differs != gone ||
			len(v.members) != len(tc.targets) || (len(v.notes) > 0) != gone ||
			gone && !strings.Contains(v.notes[0], "learner 3 gets no dir") {
			t.Errorf("%v: %+v", tc.targets, v)
		}
		for i, m := range v.members {
			if m.ID != uint64(i+1) {
				t.Errorf("%v: members %+v", tc.targets, v.members)
			}
		}
		voters, err := v.dir(threeMembers(), Target{Name: "x", MemberID: 9})
		var r *refusal.Error
		if !errors.As(err, &r) || !strings.Contains(r.Reason, "was removed from the cluster") {
			t.Errorf("the ID of a removed member is used again: %+v %v", voters, err)
		}
	}
}

// TestTermAt: the term of an entry is that of the log, of a snapshot at that index or of the database.
func TestTermAt(t *testing.T) {
	index, term := uint64(7), uint64(6)
	db := &evidence.DB{Meta: dumpdb.MetaBucket{Term: &term}}
	snapshots := evidence.WAL{Log: &dumplog.Log{}}
	snapshots.Summary.Snapshots = []dumplog.SnapshotRecord{{Index: 6, Term: 2}, {Index: 7, Term: 3}}
	for name, tc := range map[string]struct {
		m    *evidence.Member
		want uint64
	}{
		"nothing":               {&evidence.Member{}, 0},
		"a database without it": {&evidence.Member{DB: &evidence.DB{}}, 0},
		"the database":          {&evidence.Member{DB: db}, 6},
		"a snapshot record":     {&evidence.Member{DB: db, WAL: snapshots}, 3},
	} {
		if got := termAt(tc.m, index); got != tc.want {
			t.Errorf("%s: term %d, want %d", name, got, tc.want)
		}
	}
	if got := termAt(&evidence.Member{DB: db, WAL: snapshots}, 8); got != 6 {
		t.Errorf("no snapshot is at index 8: term %d, want that of the database", got)
	}
}

// TestNotCloned: a database whose position in the log is not known is refused.
func TestNotCloned(t *testing.T) {
	for name, m := range map[string]*evidence.Member{
		"has no database that opens": {Source: &evidence.Source{}},
		"has no consistent index":    {Source: &evidence.Source{}, DB: &evidence.DB{Handle: &dumpdb.DB{}}},
	} {
		var r *refusal.Error
		if _, _, err := appliedAt(m, 0); !errors.As(err, &r) || !strings.Contains(r.Reason, name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	index, term := uint64(7), uint64(6)
	m := &evidence.Member{Source: &evidence.Source{}, DB: &evidence.DB{Handle: &dumpdb.DB{},
		Meta: dumpdb.MetaBucket{ConsistentIndex: &index}}}
	var r *refusal.Error
	if _, _, err := appliedAt(m, 0); !errors.As(err, &r) || !strings.Contains(r.Reason,
		"the term of entry 7 is not known") {
		t.Errorf("the term is not known: %v", err)
	}
	if got, at, err := appliedAt(m, 5); err != nil || got != 5 || at != 7 {
		t.Errorf("the term is given: %d/%d %v", got, at, err)
	}
	m.DB.Meta.Term = &term
	m.WAL = evidence.WAL{Log: &dumplog.Log{}, Summary: dumplog.Summary{MaxCommit: 8,
		Snapshots: []dumplog.SnapshotRecord{{Index: 7, Term: 4}}}}
	if got, at, err := appliedAt(m, 0); err != nil || got != 4 || at != 7 {
		t.Errorf("a snapshot at the same index: %d/%d %v", got, at, err)
	}
	m.WAL.Summary.Snapshots[0].Index = 8
	if _, _, err := appliedAt(m, 0); !errors.As(err, &r) || !strings.Contains(r.Reason,
		"is older than its own log says") {
		t.Errorf("a newer snapshot: %v", err)
	}
	if _, err := TargetOf(&evidence.Member{Source: &evidence.Source{}}); err == nil {
		t.Error("a member without an ID is a target")
	}
	if _, err := Clone(context.Background(), threeMembers(), nil, filepath.Join(t.TempDir(), "x"),
		CloneOptions{}); err == nil {
		t.Error("a clone without a target is made")
	}
}

// TestBlocks: which entries end the part of the log that clones get.
func TestBlocks(t *testing.T) {
	put, auth := []byte("\x22\x04\x0a\x02ab"), []byte("\xc2\x3e\x00") // auth enable
	for _, tc := range []struct {
		e       dumplog.Entry
		release string
		want    string
	}{
		{dumplog.Entry{Index: 5, Data: put}, "3.5.9", ""},
		{dumplog.Entry{Index: 5, Data: put}, "3.4.9", ""},
		{dumplog.Entry{Index: 5, Data: auth}, "3.5.9", ""},
		{dumplog.Entry{Index: 5, Data: auth}, "3.4.9", "entry 5 changes auth and may have taken effect already"},
		{dumplog.Entry{Index: 5, Data: []byte("\xa2\x3f\x00")}, "3.4.9", ""}, // authenticate changes nothing
		{dumplog.Entry{Index: 5, Data: []byte{0xff}}, "3.5.9", "entry 5 does not decode"},
	} {
		if got := blocks(&tc.e, release.Of(tc.release)); got != tc.want {
			t.Errorf("%s, %+v: %q, want %q", tc.release, tc.e, got, tc.want)
		}
	}
}

// TestTailNote: entries that are not carried over are named with the reason.
func TestTailNote(t *testing.T) {
	m := &evidence.Member{Source: &evidence.Source{}, WAL: evidence.WAL{Log: &dumplog.Log{}}}
	m.WAL.Summary.LastIndex = 12
	index := uint64(10)
	m.DB = &evidence.DB{Meta: dumpdb.MetaBucket{ConsistentIndex: &index}}
	const kept, left, unproven = "entries 11 to 11 of the log", "entries of the log", ": nothing proves them committed"
	for _, tc := range []struct {
		kept int
		why  string
		want []string
	}{
		{0, "",
			[]string{"the last 2 entries of the log of , 11 to 12, are not in its database and are not carried over"}},
		{0, "torn", []string{"11 to 12, are not in its database and are not carried over: torn"}},
		{1, "", []string{kept,
			"the last 1 entries of the log of , 12 to 12, are not in its database and are not carried " +
				"over" + unproven}},
		{1, "torn", []string{kept, "carried over: torn"}},
		{2, "", []string{"entries 11 to 12 of the log"}},
	} {
		notes := tailNote(m, tc.kept, tc.why)
		if len(notes) != len(tc.want) {
			t.Errorf("%d kept: %q", tc.kept, notes)
			continue
		}
		for i, want := range tc.want {
			if !strings.Contains(notes[i], want) || !strings.Contains(want, ": ") && strings.Contains(notes[i], ": ") {
				t.Errorf("%d kept: %q, want %q", tc.kept, notes[i], want)
			}
		}
	}
}

// alarmed is a database with alarms, which are shown as MEMBER/KIND once the edit was made.
func alarmed(t *testing.T, edit Edit, alarms ...[2]uint64) (left []string) {
	t.Helper()
	db, err := bolt.Open(filepath.Join(t.TempDir(), "db"), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	err = db.Update(func(tx *bolt.Tx) error {
		for _, a := range alarms {
			if err := put(tx, bucketAlarm, num(num(nil, 1, a[0]), 2, a[1]), nil); err != nil {
				return err
			}
		}
		if err := edit(tx); err != nil {
			return err
		}
		return tx.Bucket(bucketAlarm).ForEach(func(k, _ []byte) error {
			id, kind, _ := decodeAlarm(k)
			left = append(left, string(rune('0'+id))+"/"+string(rune('0'+kind)))
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return left
}

// TestClearAlarms: 0 is every member and every kind, except where exactly one member is meant.
func TestClearAlarms(t *testing.T) {
	all := [][2]uint64{{0, 1}, {0, 2}, {1, 1}, {1, 2}}
	for name, tc := range map[string]struct {
		edit Edit
		want string
	}{
		"one kind of one":         {ClearAlarm(1, 2), "0/1 0/2 1/1"},
		"all of one":              {ClearAlarm(1, 0), "0/1 0/2"},
		"one kind of all":         {ClearAlarm(0, 2), "0/1 1/1"},
		"all":                     {ClearAlarm(0, 0), ""},
		"one kind of member 0":    {ClearAlarmOf(0, 2), "0/1 1/1 1/2"},
		"all of member 0":         {ClearAlarmOf(0, 0), "1/1 1/2"},
		"exactly one kind of one": {ClearAlarmOf(1, 1), "0/1 0/2 1/2"},
	} {
		if got := strings.Join(alarmed(t, tc.edit, all...), " "); got != tc.want {
			t.Errorf("%s: %q are left, want %q", name, got, tc.want)
		}
	}
}

// TestRollBack: bbolt opens the database as it was before its last transaction.
func TestRollBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	clustertest.Synth{Members: 1, Entries: 20, Keys: 3, Value: 8}.WriteDB(t, path)
	if err := EditNew(path, PutBucketKey("meta", []byte("a"), []byte("before"))); err != nil {
		t.Fatal(err)
	}
	if err := EditNew(path, PutBucketKey("meta", []byte("a"), []byte("after"))); err != nil {
		t.Fatal(err)
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{NoFreelistSync: true})
	if err != nil {
		t.Fatal(err)
	}
	size := int64(db.Info().PageSize)
	var newest int
	_ = db.View(func(tx *bolt.Tx) error { newest = tx.ID(); return nil })
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	newer := int64(newest%2) * size
	if err := RollBack(path, size-newer, newer); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if id := b[newer]; id != byte(newest%2) {
		t.Errorf("the meta page at %d says that it is page %d", newer, id)
	}
	b[size-newer+16] ^= 1 // without the older meta page the other one holds the same
	alone := filepath.Join(t.TempDir(), "db")
	if err := os.WriteFile(alone, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if db, err = bolt.Open(alone, 0o600, &bolt.Options{ReadOnly: true}); err != nil {
		t.Fatal(err)
	}
	_ = db.View(func(tx *bolt.Tx) error {
		if v := tx.Bucket(bucketMeta).Get([]byte("a")); string(v) != "before" || tx.ID() != newest-2 {
			t.Errorf("%q in transaction %d, the newest was %d", v, tx.ID(), newest)
		}
		return nil
	})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range 2 { // it stays so once it was opened for writing
		if db, err = bolt.Open(path, 0o600, &bolt.Options{NoFreelistSync: true}); err != nil {
			t.Fatal(err)
		}
		_ = db.View(func(tx *bolt.Tx) error {
			if v := tx.Bucket(bucketMeta).Get([]byte("a")); string(v) != "before" || tx.ID() != newest-1+i {
				t.Errorf("open %d: %q in transaction %d, the newest was %d", i, v, tx.ID(), newest)
			}
			return nil
		})
		if err := errors.Join(db.Update(func(*bolt.Tx) error { return nil }), db.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if err := RollBack(filepath.Join(t.TempDir(), "missing"), 0, size); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// TestConfChangeData: a context is written where there is one.
func TestConfChangeData(t *testing.T) {
	if got := string(ConfChange(1, 5, nil)); got != "\x08\x00\x10\x01\x18\x05" {
		t.Errorf("%q", got)
	}
	if got := string(ConfChange(0, 5, []byte("x"))); got != "\x08\x00\x10\x00\x18\x05\x22\x01x" {
		t.Errorf("%q", got)
	}
}

// TestSetProgress: the bytes that were copied rise to the total over all dirs.
func TestSetProgress(t *testing.T) {
	dir := t.TempDir()
	src := filepath.Join(dir, "db")
	clustertest.Synth{Members: 1, Entries: 20, Keys: 3, Value: 8}.WriteDB(t, src)
	fi, err := os.Stat(src)
	if err != nil {
		t.Fatal(err)
	}
	var set []NamedDir
	for _, name := range []string{"a", "b"} {
		set = append(set, NamedDir{name, Dir{MemberID: 1, ClusterID: 2, Term: 1, Index: 20, Voters: []uint64{1},
			Members: []Member{{ID: 1, Name: name, PeerURLs: []string{"http://a:1"}}}, ClusterVersion: "3.5.0"}})
	}
	var seen []int64
	if _, err := WriteSet(t.Context(), filepath.Join(dir, "out"), set, src, nil, func(done, total int64) {
		if total != 2*fi.Size() || done > total {
			t.Errorf("%d of %d bytes", done, total)
		}
		seen = append(seen, done)
	}, nil); err != nil {
		t.Fatal(err)
	}
	if len(seen) < 2 || !slices.IsSorted(seen) || seen[0] == 0 || seen[len(seen)-1] != 2*fi.Size() {
		t.Errorf("%d bytes in each, progress %d", fi.Size(), seen)
	}
	if _, err := WriteSet(t.Context(), filepath.Join(dir, "quiet"), set, src, nil, nil, nil); err != nil {
		t.Error(err)
	}
}
