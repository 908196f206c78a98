package preflight

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
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

func dbLeftOut(d *dir) {
	d.m.DB, d.m.Problems = nil, []evidence.Problem{{Part: "db", File: "db", Err: errors.New("permission denied")}}
}

func leftOut(d *dir) {
	d.m.Problems = []evidence.Problem{{Part: "snap", File: "7.snap", Err: errors.New("too large")}}
}

func damagedSnap(index uint64, broken bool) func(d *dir) {
	return func(d *dir) {
		d.m.Snap.Files = []*dumplog.SnapFile{{NameIndex: index, Broken: broken,
			Damage: &dumplog.DamageError{Err: errors.New("crc")}}}
	}
}

// TestRulesOnMembers: a member that bucket and raft's configuration do not list alike is named.
func TestRulesOnMembers(t *testing.T) {
	type members = []dumpdb.Member
	for name, c := range map[string]struct {
		rows             members
		voters, learners []dumplog.ID
		change           func(d *dir)
		want             []string
	}{
		"alike":             {members{{ID: 1}, {ID: 2, IsLearner: true}}, []dumplog.ID{1}, []dumplog.ID{2}, nil, nil},
		"unknown to raft":   {members{{ID: 1}, {ID: 2}}, []dumplog.ID{1}, nil, nil, []string{"2 a member"}},
		"a promotion lost":  {members{{ID: 1, IsLearner: true}}, []dumplog.ID{1}, nil, nil, []string{"1 learner"}},
		"a promotion early": {members{{ID: 1}}, nil, []dumplog.ID{1}, nil, []string{"1 voter"}},
		"no row":            {members{{ID: 1}}, []dumplog.ID{1, 2}, []dumplog.ID{3}, nil, []string{"2 absent", "3 absent"}},
		"raft is not known": {members{{ID: 1}}, nil, nil, func(d *dir) { d.m.Membership.RaftKnown = false }, nil},
		"no rows":           {nil, []dumplog.ID{1}, nil, nil, nil},
		"no database":       {members{{ID: 1}}, nil, nil, func(d *dir) { d.m.DB = nil }, nil},
	} {
		d := made(7)
		d.m.DB.Members = c.rows
		d.m.Membership = evidence.Membership{RaftKnown: true, Voters: c.voters, Learners: c.learners}
		for i := range c.rows {
			d.m.Membership.Bucket = append(d.m.Membership.Bucket, dumplog.ID(c.rows[i].ID))
		}
		if c.change != nil {
			c.change(d)
		}
		var got []string
		if v := membersDrift.Run(d); v != nil {
			for _, e := range v.evidence {
				got = append(got, strings.TrimLeft(string(e.Key), "0")+" "+e.Observed)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestRowsDecode: a row that the server reads at its start and cannot decode stops it.
func TestRowsDecode(t *testing.T) {
	damage := func(kind dumpdb.DamageKind, bucket string) func(d *dir) {
		return func(d *dir) {
			d.m.DB.Damage = []*dumpdb.DamageError{{Kind: kind, Bucket: bucket, Err: errors.New("x")}}
		}
	}
	violation := func(rule string) func(d *dir) {
		return func(d *dir) { d.m.DB.KV = &dumpdb.KVStats{Violations: []dumpdb.Violation{{Rule: rule}}} }
	}
	for _, c := range []struct {
		minor  int
		change func(d *dir)
		bucket string
	}{
		{6, func(*dir) {}, ""},
		{6, func(d *dir) { d.m.DB = nil }, ""},
		{6, damage(dumpdb.DamageRow, "lease"), "lease"},
		{6, damage(dumpdb.DamageMeta, "lease"), ""},
		{6, damage(dumpdb.DamageRow, "other"), ""},
		{6, damage(dumpdb.DamageRow, "members"), "members"},
		{6, damage(dumpdb.DamageRow, "members_removed"), "members_removed"},
		{4, damage(dumpdb.DamageRow, "members"), ""},
		{6, violation("undecodable"), "key"},
		{6, violation("order"), ""},
	} {
		d := made(c.minor)
		c.change(d)
		v := rowsDecode.Run(d)
		if (v == nil) != (c.bucket == "") || v != nil && (!strings.HasSuffix(v.says, "in bucket "+c.bucket) ||
			v.server != bucketPanics[c.bucket] || len(v.evidence) != 1) {
			t.Errorf("%d, %q: %+v", c.minor, c.bucket, v)
		}
	}
}

// TestClusterVersionSeen: the highest version among those that the server reads: the database or the v2 store, and the
// entries above its snapshot in the forms that it knows.
func TestClusterVersionSeen(t *testing.T) {
	v2 := entry{index: 11, v2: &dumplog.V2Request{Method: "PUT", Path: "/0/version", Val: "3.6.0"}}
	other := entry{index: 11, v2: &dumplog.V2Request{Method: "PUT", Path: "/1/a", Val: "3.6.0"}}
	set := entry{index: 11, version: "3.6.0"}
	old := entry{index: 10, version: "3.6.0"}
	store := &dumplog.SnapFile{File: "x.snap", V2: &dumplog.V2Store{Version: "3.6.0"}}
	for name, c := range map[string]struct {
		minor   int
		snap    *dumplog.SnapFile
		entries []entry
		want    string
	}{
		"database":               {6, nil, nil, "3.5"},
		"not read by 3.4":        {4, nil, nil, ""},
		"v2 store":               {4, store, nil, "3.6"},
		"v2 store, not read":     {6, store, nil, "3.5"},
		"no v2 store":            {4, &dumplog.SnapFile{}, nil, ""},
		"v2 entry":               {6, nil, []entry{v2}, "3.6"},
		"v2 entry, not decoded":  {7, nil, []entry{v2}, "3.5"},
		"another v2 entry":       {6, nil, []entry{other}, "3.5"},
		"request":                {6, nil, []entry{set}, "3.6"},
		"request, not known":     {4, nil, []entry{set}, ""},
		"request, not replayed":  {6, nil, []entry{old}, "3.5"},
		"a lower one afterwards": {6, nil, []entry{set, {index: 12, version: "3.4.0"}}, "3.6"},
	} {
		d := made(c.minor)
		d.m.DB.Cluster.Version, d.snap, d.entries = "3.5.0", c.snap, c.entries
		got, at := d.clusterVersionSeen()
		if got != lineOf(c.want) || len(at) != min(1, len(c.want)) {
			t.Errorf("%s: %v at %+v, want %s", name, got, at, c.want)
		}
		if len(at) > 0 && at[0].Observed == "" {
			t.Errorf("%s: %+v", name, at)
		}
	}
	for minor, want := range map[int]string{3: "cluster cannot be downgraded (current version: 3.3", 4: "invalid downgrade"} {
		d := made(minor)
		d.snap = store
		v := clusterVersion.Run(d)
		if v == nil || !strings.HasPrefix(v.server, want) || v.says != "the cluster version is 3.6" {
			t.Errorf("3.%d: %+v", minor, v)
		}
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
		{"no database and no log", dbPresent, func(d *dir) { d.m.DB, d.m.WAL.Log = nil, nil },
			"there is neither a database nor a readable log"},
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
		{"database of the snapshot", dbReachesSnapshot, func(d *dir) {
			*d.m.DB.Meta.ConsistentIndex, d.m.Snap.SnapDBs = 9, []dumplog.SnapDB{{Index: 8}, {Index: 10}}
		}, ""},
		{"database of another snapshot", dbReachesSnapshot, func(d *dir) {
			*d.m.DB.Meta.ConsistentIndex, d.m.Snap.SnapDBs = 9, []dumplog.SnapDB{{Index: 11}}
		}, "the database has applied entry 9"},
		{"database that is there and was not opened", dbReachesSnapshot, dbLeftOut,
			"what the database has applied is not known: db: permission denied"},
		{"the same, whether it exists", dbPresent, dbLeftOut, "db: permission denied"},
		{"no database", dbPresent, func(d *dir) { d.m.DB = nil }, "member/snap/db is missing"},
		{".snap files are left out", snapChosen, leftOut, "7.snap: too large"},
		{".snap files are left out, of v2", v2Content, leftOut, "7.snap: too large"},
		{"another part is left out", snapChosen, func(d *dir) {
			leftOut(d)
			d.m.Problems[0].Part = "wal"
		}, ""},
		{"newest .snap file is damaged", snapChosen, damagedSnap(10, false), "1 .snap files do not decode"},
		{"damaged .snap file is older", snapChosen, damagedSnap(9, false), ""},
		{"damaged .snap file was renamed", snapChosen, damagedSnap(11, true), ""},
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
	for _, at := range [][2]uint64{{2, 10}, {2, 20}, {4, 50}, {4, 60}, {3, 15}} {
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
		"by index":           {[]*dumplog.SnapFile{file(2, 10), file(2, 20)}, 5, 2, 20},
		"by index, reversed": {[]*dumplog.SnapFile{file(2, 20), file(2, 10)}, 5, 2, 20},
		"by term":            {[]*dumplog.SnapFile{file(2, 20), file(3, 15)}, 5, 3, 15},
		"by term, reversed":  {[]*dumplog.SnapFile{file(3, 15), file(2, 20)}, 5, 3, 15},
		"without a record":   {[]*dumplog.SnapFile{file(2, 10), file(2, 11)}, 5, 2, 10},
		"above the commit":   {[]*dumplog.SnapFile{file(4, 60), file(2, 10)}, 5, 2, 10},
		"3.7 needs no file":  {nil, 7, 3, 15},
		"3.7 uses no file":   {[]*dumplog.SnapFile{file(2, 10)}, 7, 3, 15},
		"renamed":            {[]*dumplog.SnapFile{file(2, 10), {Term: 2, Index: 20, Broken: true}}, 5, 2, 10},
		"damaged":            {[]*dumplog.SnapFile{file(2, 10), {Term: 2, Index: 20, Damage: &dumplog.DamageError{}}}, 5, 2, 10},
		"renamed, without a record on 3.3.9": {[]*dumplog.SnapFile{file(2, 10), {Term: 2, Index: 21, Broken: true}},
			3, 2, 10},
		"without a record on 3.3.9": {[]*dumplog.SnapFile{file(2, 10), file(2, 11)}, 3, 2, 11},
		"a record at the commit":    {[]*dumplog.SnapFile{file(2, 10), file(4, 50)}, 5, 4, 50},
		"none that it may use":      {[]*dumplog.SnapFile{file(2, 11)}, 5, 0, 0},
	} {
		d := &dir{to: Version{Minor: c.minor, Patch: 9}, m: member}
		d.m.Snap.Files = c.files
		d.pickSnapshot(sum)
		if d.snapTerm != c.term || d.snapIndex != c.index || (d.snap != nil) != (c.minor < 7 && c.index > 0) {
			t.Errorf("%s: %d/%d, want %d/%d", name, d.snapTerm, d.snapIndex, c.term, c.index)
		}
	}
	d := &dir{to: Version{Minor: 7, Patch: -1}, m: member}
	if d.pickSnapshot(&dumplog.Summary{Snapshots: sum.Snapshots}); d.snapIndex != 0 {
		t.Errorf("without a HardState: %d", d.snapIndex)
	}
}
