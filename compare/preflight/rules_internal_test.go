package preflight

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// made is a data dir whose log starts with entry 1; its snapshot is at 10 and its database at 20.
func made(minor int) *dir {
	d := &dir{to: Version{Minor: minor, Patch: -1}, snapIndex: 10, m: &evidence.Member{
		Source: &evidence.Source{Name: "node1"}, WAL: evidence.WAL{Log: &dumplog.Log{}},
		DB: &evidence.DB{File: "db", Handle: &dumpdb.DB{}}}}
	index := uint64(20)
	d.m.DB.Meta.ConsistentIndex = &index
	d.m.WAL.Summary.FirstIndex = 1
	return d
}

// TestRulesOnEntries: rules that go by single entries are violated by the first one that the server reads or executes,
// and by none below it.
func TestRulesOnEntries(t *testing.T) {
	learner := &dumplog.ConfChange{Type: dumplog.ConfChangeAddLearnerNode, NodeID: 0xab}
	voter := &dumplog.ConfChange{Type: dumplog.ConfChangeAddNode, NodeID: 0xab}
	for _, c := range []struct {
		name  string
		rule  Rule
		minor int
		entry entry
		says  string
	}{
		{"learner", learnerEntries, 3, entry{index: 11, conf: learner}, "the log adds a learner"},
		{"learner up to the snapshot", learnerEntries, 3, entry{index: 10, conf: learner}, ""},
		{"voter", learnerEntries, 3, entry{index: 11, conf: voter}, ""},
		{"other request", learnerEntries, 3, entry{index: 11}, ""},
		{"user that is no text", userNames, 7, entry{index: 11, badUser: "\xff"}, "1 entry has a user name"},
		{"user that is no text up to the snapshot", userNames, 7, entry{index: 10, badUser: "\xff"}, ""},
		{"later request", knownRequests, 4, entry{index: 21, kind: dumplog.KindDowngradeInfoSet},
			"1 entry above the consistent index 20"},
		{"later request that was executed", knownRequests, 4, entry{index: 20, kind: dumplog.KindDowngradeInfoSet}, ""},
		{"known request", knownRequests, 4, entry{index: 21, kind: dumplog.KindLeaseCheckpoint}, ""},
		{"request that every server knows", knownRequests, 4, entry{index: 21, kind: dumplog.KindPut}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := made(c.minor)
			c.entry.pos = dumplog.Pos{Segment: "1.wal", Offset: 64}
			d.entries = []entry{c.entry}
			v := c.rule.Run(d)
			if (v == nil) != (c.says == "") {
				t.Fatalf("%+v, want %q", v, c.says)
			}
			if v != nil && (!strings.HasPrefix(v.says, c.says) || len(v.evidence) != 1 || v.server == "" ||
				v.evidence[0].File != "1.wal" || *v.evidence[0].Offset != 64) {
				t.Errorf("%+v", v)
			}
		})
	}
}

// TestRulesOnPlaces: rules that compare snapshot, log and database hold up to the last index that fits, and not above.
func TestRulesOnPlaces(t *testing.T) {
	for _, c := range []struct {
		name   string
		rule   Rule
		change func(*dir)
		says   string
	}{
		{"database at the snapshot", dbReachesSnapshot, func(d *dir) { *d.m.DB.Meta.ConsistentIndex = 10 }, ""},
		{"database below the snapshot", dbReachesSnapshot, func(d *dir) { *d.m.DB.Meta.ConsistentIndex = 9 },
			"the database has applied entry 9, the raft snapshot is at 10"},
		{"no snapshot", dbReachesSnapshot, func(d *dir) { *d.m.DB.Meta.ConsistentIndex, d.snapIndex = 0, 0 }, ""},
		{"database there", dbPresent, func(*dir) {}, ""},
		{"no database and no log", dbPresent, func(d *dir) { d.m.DB, d.m.WAL.Log = nil, nil }, ""},
		{"no database, snapshot", dbPresent, func(d *dir) { d.m.DB = nil }, "member/snap/db is missing"},
		{"no database, whole log", dbPresent, func(d *dir) { d.m.DB, d.snapIndex = nil, 0 }, ""},
		{"no database, log of a restored cluster", dbPresent, func(d *dir) {
			d.m.DB, d.snapIndex, d.m.WAL.Summary.Start = nil, 0, dumplog.StartRestore
		}, "the database is missing and the log begins with a restore"},
		{"no database, purged log", dbPresent, func(d *dir) {
			d.m.DB, d.snapIndex, d.m.WAL.Summary.FirstIndex = nil, 0, 2
		}, "the database is missing and the log does not reach back"},
		{"oldest segment at the snapshot", logReachesSnapshot, func(d *dir) {
			d.m.WAL.Summary.Segments = []dumplog.Segment{{First: 10}}
		}, ""},
		{"oldest segment after the snapshot", logReachesSnapshot, func(d *dir) {
			d.m.WAL.Summary.Segments = []dumplog.Segment{{First: 11}}
		}, "the oldest segment starts at index 11, the raft snapshot in use is at 10"},
		{"log that continues after the snapshot in use", logReachesSnapshot, func(d *dir) {
			d.m.WAL.Summary.Jumps = []dumplog.Jump{{From: 5, To: 10}}
		}, ""},
		{"log that continues after a later snapshot", logReachesSnapshot, func(d *dir) {
			d.m.WAL.Summary.Jumps = []dumplog.Jump{{From: 11, To: 30}}
		}, "entries 11 to 30 are not in the log"},
		{"snapshot in use below the last entry before a gap", logReachesSnapshot, func(d *dir) {
			d.m.WAL.Summary.Jumps = []dumplog.Jump{{From: 21, To: 30}}
		}, "entries 21 to 30 are not in the log: the member received"},
		{"the same, and a release that may not notice", logReachesSnapshot, func(d *dir) {
			d.m.WAL.Summary.Jumps, d.to = []dumplog.Jump{{From: 21, To: 30}}, Version{Minor: 4, Patch: 9}
		}, "entries 21 to 30 are not in the log, and the snapshot in use is at 10: whether"},
		{"snapshot in use inside of a gap", logReachesSnapshot, func(d *dir) {
			d.m.WAL.Summary.Jumps = []dumplog.Jump{{From: 5, To: 30}}
		}, "entries 5 to 30 are not in the log: the member received"},
		{"no v2 store", v2Content, func(d *dir) { d.snap = &dumplog.SnapFile{} }, ""},
		{"empty v2 store", v2Content, func(d *dir) { d.snap = &dumplog.SnapFile{V2: &dumplog.V2Store{}} }, ""},
		{"keys of users in the v2 store", v2Content, func(d *dir) {
			d.snap = &dumplog.SnapFile{V2: &dumplog.V2Store{UserKeys: []string{"/1/a", "/1/b"}}}
		}, "the v2 store has 2 keys of users, first /1/a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := made(6)
			c.change(d)
			v := c.rule.Run(d)
			if (v == nil) != (c.says == "") || v != nil && !strings.HasPrefix(v.says+v.unknown, c.says) {
				t.Errorf("%+v, want %q", v, c.says)
			}
		})
	}
}

// TestDowngradeAllowed: a lower server starts if the cluster has enabled a downgrade to its minor version, one below
// its own.
func TestDowngradeAllowed(t *testing.T) {
	for _, c := range []struct {
		minor        int
		enabled      bool
		target, have string
		want         bool
	}{{5, true, "3.5.0", "3.6.0", true}, {5, false, "3.5.0", "3.6.0", false}, {5, true, "3.4.0", "3.6.0", false},
		{5, true, "3.5.0", "3.7.0", false}, {4, true, "3.4.0", "3.5.0", false}} {
		d := made(c.minor)
		d.m.DB.Cluster.DowngradeEnabled, d.m.DB.Cluster.DowngradeTarget = c.enabled, c.target
		if got := d.downgradeAllowed(lineOf(c.have)); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestPickSnapshot: the newest file is used, by term and then by index, in whichever order the files stand.
func TestPickSnapshot(t *testing.T) {
	file := func(term, index uint64) *dumplog.SnapFile { return &dumplog.SnapFile{Term: term, Index: index} }
	sum := &dumplog.Summary{HardState: &dumplog.HardState{Commit: 50}}
	for _, at := range [][2]uint64{{2, 10}, {2, 20}, {3, 15}, {4, 60}} {
		sum.Snapshots = append(sum.Snapshots, dumplog.SnapshotRecord{Term: at[0], Index: at[1]})
	}
	path := t.TempDir()
	if err := os.MkdirAll(filepath.Join(path, "member", "snap"), 0o700); err != nil {
		t.Fatal(err)
	}
	set, err := evidence.Open(t.Context(), []evidence.Spec{{Name: "n", Where: path}}, evidence.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = set.Close() })
	member := set.Members[0]
	for name, c := range map[string]struct {
		files       []*dumplog.SnapFile
		minor       int
		term, index uint64
	}{
		"by index":             {[]*dumplog.SnapFile{file(2, 10), file(2, 20)}, 5, 2, 20},
		"by index, reversed":   {[]*dumplog.SnapFile{file(2, 20), file(2, 10)}, 5, 2, 20},
		"by term":              {[]*dumplog.SnapFile{file(2, 20), file(3, 15)}, 5, 3, 15},
		"by term, reversed":    {[]*dumplog.SnapFile{file(3, 15), file(2, 20)}, 5, 3, 15},
		"without a record":     {[]*dumplog.SnapFile{file(2, 10), file(2, 11)}, 5, 2, 10},
		"above the commit":     {[]*dumplog.SnapFile{file(4, 60), file(2, 10)}, 5, 2, 10},
		"3.7 needs no file":    {nil, 7, 3, 15},
		"none that it may use": {[]*dumplog.SnapFile{file(2, 11)}, 5, 0, 0},
	} {
		d := &dir{to: Version{Minor: c.minor, Patch: -1}, m: member}
		d.m.Snap.Files = c.files
		d.pickSnapshot(sum)
		if d.snapTerm != c.term || d.snapIndex != c.index {
			t.Errorf("%s: %d/%d, want %d/%d", name, d.snapTerm, d.snapIndex, c.term, c.index)
		}
	}
}
