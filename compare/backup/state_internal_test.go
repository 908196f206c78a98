package backup

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// TestStateRows: the rows of auth, leases and members that differ are listed up to a number, and the others counted. A
// bucket that one of the two cannot show is not compared.
func TestStateRows(t *testing.T) {
	member := func(leases ...int64) *evidence.Member {
		m := &evidence.Member{Source: &evidence.Source{}, DB: &evidence.DB{Handle: &dumpdb.DB{}}}
		for _, ttl := range leases {
			m.DB.Leases = append(m.DB.Leases, dumpdb.Lease{ID: dumpdb.ID(len(m.DB.Leases) + 1), TTL: ttl})
		}
		return m
	}
	b, s := member(5, 60), member(5, 60, 70, 80, 90)
	s.DB.Auth.Enabled = true
	for maxRows, want := range map[int][2]int{10: {4, 0}, 4: {4, 0}, 3: {3, 1}, 1: {1, 3}} {
		var c Compared
		if c.state(b, s, maxRows); len(c.State) != want[0] || c.MoreState != want[1] {
			t.Errorf("at most %d: %d rows and %d more, want %v", maxRows, len(c.State), c.MoreState, want)
		}
		if row := c.State[0]; row.Bucket != "auth" || string(row.Key) != "authEnabled" || row.InBackup != "false" ||
			row.InSource != "true" {
			t.Errorf("%+v", row)
		}
	}
	var c Compared
	c.state(b, s, 10)
	if row := c.State[3]; row.Bucket != "lease" || row.InBackup != absent || row.InSource == absent {
		t.Errorf("a lease that the backup lacks: %+v", row)
	}
	for name, damaged := range map[string]*evidence.Member{"backup": b, "source": s} {
		damaged.DB.Damage = []*dumpdb.DamageError{{Bucket: "lease"}}
		var c Compared
		if c.state(b, s, 10); len(c.State) != 1 || c.State[0].Bucket != "auth" {
			t.Errorf("leases of the %s are damaged: %+v", name, c.State)
		}
		damaged.DB.Damage = nil
	}
}

// TestUnequalAtOneIndex: at one index rows of the small buckets that a restore brings back have to be equal, in the
// backup and in the source that it is compared with.
func TestUnequalAtOneIndex(t *testing.T) {
	cell := func(text string) *compare.DiffCell { return &compare.DiffCell{Text: text} }
	row := func(key string, cells map[string]*compare.DiffCell) compare.DiffRow {
		return compare.DiffRow{Key: check.Bytes(key), Members: cells}
	}
	rows := []compare.DiffRow{
		row("equal", map[string]*compare.DiffCell{"a.db": cell("x"), "n1": cell("x"), "n2": cell("y")}),
		row("other", map[string]*compare.DiffCell{"a.db": cell("x"), "n1": cell("y")}),
		row("lost", map[string]*compare.DiffCell{"a.db": nil, "n1": cell("y")}),
		row("more", map[string]*compare.DiffCell{"a.db": cell("x"), "n1": nil}),
		row("none", map[string]*compare.DiffCell{"a.db": nil, "n1": nil}),
		row("of others", map[string]*compare.DiffCell{"n1": cell("x"), "n2": cell("y")}),
		row("not compared", map[string]*compare.DiffCell{"a.db": cell("x"), "n2": cell("y")}),
	}
	doc := &compare.Comparison{Buckets: []compare.BucketComparison{
		{Bucket: "key", Equal: release.No, Rows: rows}, {Bucket: "lease", Equal: release.No, Rows: rows},
		{Bucket: "auth", Equal: release.Yes, Rows: rows}, {Bucket: "members", Rows: rows}}}
	c := Compared{Source: "n1"}
	c.atCommonIndex("a.db", doc)
	want := []StateRow{{"lease", check.Bytes("other"), "x", "y"}, {"lease", check.Bytes("lost"), absent, "y"},
		{"lease", check.Bytes("more"), "x", absent}}
	if d := cmp.Diff(want, c.Unequal); d != "" {
		t.Error(d)
	}
	c = Compared{Source: "n1", apart: true}
	if c.atCommonIndex("a.db", doc); len(c.Unequal) > 0 {
		t.Errorf("of two logs: %+v", c.Unequal)
	}
}

// TestSharesMember: a backup and a source are of one cluster if the source knows a member of the backup, or if one of
// the two lists none. A restore of an older release keeps the list of members that the backup had.
func TestSharesMember(t *testing.T) {
	list := func(bucket, removed, voters []dumplog.ID) *evidence.Member {
		m := &evidence.Member{}
		m.Membership = evidence.Membership{Bucket: bucket, Removed: removed, Voters: voters, RaftKnown: voters != nil}
		return m
	}
	ids := func(id ...dumplog.ID) []dumplog.ID { return id }
	b := list(ids(1, 2), nil, nil)
	for name, c := range map[string]struct {
		b, s *evidence.Member
		want bool
	}{
		"one of two":                   {b, list(ids(2, 3), nil, nil), true},
		"others":                       {b, list(ids(3, 4), nil, nil), false},
		"all were replaced":            {b, list(ids(3, 4), ids(1, 2), nil), true},
		"a list that a restore kept":   {b, list(ids(1, 2), nil, ids(3, 4)), false},
		"voters of the log":            {b, list(nil, nil, ids(1)), true},
		"other voters of the log":      {b, list(nil, nil, ids(3)), false},
		"the source lists none":        {b, list(nil, nil, nil), true},
		"the backup lists none":        {list(nil, nil, nil), list(ids(3), nil, nil), true},
		"members that left the backup": {list(ids(1), ids(3), nil), list(ids(3), nil, nil), false},
	} {
		if got := sharesMember(c.b, c.s); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestMayBeFromBeforeARestore: what a backup lacks is damage only if its cluster was not restored from an older one
// since.
func TestMayBeFromBeforeARestore(t *testing.T) {
	m := &evidence.Member{Source: &evidence.Source{Name: "a.db"}, DB: &evidence.DB{}}
	for says, c := range map[string]Compared{
		"a restore would lose":              {},
		"none of the members in the backup": {apart: true},
		"begins with a restore":             {restored: true},
	} {
		c.First = &Broken{}
		c.conclude(tally{onlySource: 1}, 0, 0, false)
		f := historyFinding(&c, m)
		damaged := f.Class == check.ClassBackupDamaged
		if damaged != c.promised() || damaged != c.BackupLacks || !strings.Contains(f.Explanation, says) {
			t.Errorf("%+v: %s", c, f.Explanation)
		}
	}
}

// TestMarkOpen: a source that opens and cannot be compared leaves the answer open, as one that does not open. The
// backup itself may have the same name.
func TestMarkOpen(t *testing.T) {
	source := func(name string, db *evidence.DB) *evidence.Member {
		return &evidence.Member{Source: &evidence.Source{Name: name}, DB: db}
	}
	read := &evidence.DB{Handle: &dumpdb.DB{}, KV: &dumpdb.KVStats{}}
	open := func(why string) Compared { return Compared{SameHistory: check.NotChecked, Reason: why} }
	a := &Against{Compared: []Compared{open("r0"), {SameHistory: check.Holds}, open("r2"), open("r3")}}
	r := &compare.Report{Sources: []compare.Source{{Name: "x"}, {Name: "x"}, {Name: "sound"}, {Name: "y"}, {Name: "z"},
		{Name: "z", Error: "gone"}}}
	a.markOpen(r, []*evidence.Member{source("x", &evidence.DB{Handle: &dumpdb.DB{}}), source("sound", read),
		source("y", nil), source("z", read)})
	var got []string
	for _, s := range r.Sources {
		got = append(got, s.Error)
	}
	if d := cmp.Diff([]string{"", "r0", "", "r2", "r3", "gone"}, got); d != "" {
		t.Error(d)
	}
}

// TestNotCompared: what is said of a backup that could be compared with some sources only, or with none.
func TestNotCompared(t *testing.T) {
	m := &evidence.Member{Source: &evidence.Source{Name: "a.db"}, DB: &evidence.DB{}}
	holds := Compared{Source: "n1", SameHistory: check.Holds}
	open := Compared{Source: "n2", SameHistory: check.NotChecked, Reason: "unreadable"}
	unequal := Compared{Source: "n3", SameHistory: check.Holds, Unequal: []StateRow{{Bucket: "lease", InBackup: "1"}}}
	for name, c := range map[string]struct {
		compared []Compared
		health   check.Health
		want     check.Outcome
		reason   string
		summary  string
		findings int
	}{
		"equal": {[]Compared{holds}, check.Healthy, check.Holds, "", "sound", 0},
		"none":  {nil, check.Healthy, check.NotChecked, "", "sound", 0},
		"one of two": {[]Compared{holds, open}, check.Healthy, check.NotChecked, "n2: unreadable",
			"sound; not compared: n2: unreadable", 0},
		"of an unknown backup": {[]Compared{open}, check.HealthUnknown, check.NotChecked, "n2: unreadable", "sound", 0},
		"a row that differs":   {[]Compared{unequal, open}, check.Healthy, check.Violated, "n2: unreadable", "", 1},
	} {
		r := &compare.Report{Verdict: compare.Verdict{Health: c.health, Class: check.ClassBackupGood, Summary: "sound"}}
		judgeAgainst(r, &Against{Compared: c.compared}, m)
		x := r.Checks[0]
		if x.Outcome != c.want || x.Reason != c.reason || len(r.Findings) != c.findings ||
			c.summary != "" && r.Verdict.Summary != c.summary {
			t.Errorf("%s: %+v, %q, %d findings", name, x, r.Verdict.Summary, len(r.Findings))
		}
	}
}

// TestLogsThatAreNotReplayed: a backup whose records agree is not compared as a whole where the logs were not replayed.
func TestLogsThatAreNotReplayed(t *testing.T) {
	r := &compare.Report{Verdict: compare.Verdict{Health: check.Healthy, Class: check.ClassBackupGood, Summary: "sound"}}
	a := &Against{Compared: []Compared{{Source: "n1", SameHistory: check.Holds}}, unreplayed: "the logs are gone"}
	judgeAgainst(r, a, &evidence.Member{Source: &evidence.Source{Name: "b"}})
	if x := r.Checks[0]; x.Outcome != check.NotChecked || x.Reason != "the logs are gone" ||
		r.Verdict.Summary != "sound; not compared: the logs are gone" {
		t.Errorf("%+v, %q", x, r.Verdict.Summary)
	}
}

// TestFileOfUnusable: a backup that was given no name is called by its file.
func TestFileOfUnusable(t *testing.T) {
	for want, spec := range map[string]evidence.Spec{"n": {Name: "n", Where: "/d/x.db"}, "x.db": {Where: "/d/x.db"}} {
		r := Unusable(spec, errors.New("gone"), Options{})
		if Name(r) != want || r.Verdict.Class != check.ClassInconclusive || r.Next[0].Text == "" {
			t.Errorf("%s: %+v", want, r)
		}
	}
	if got := Name(&compare.Report{}); got != "" {
		t.Errorf("no source: %q", got)
	}
}

// TestNextOfUnusable: what a running member refuses is not cured by the permissions of a file.
func TestNextOfUnusable(t *testing.T) {
	for where, want := range map[string]string{"/d/x.db": "make the file readable", "http://127.0.0.1:1": "--user",
		"https://127.0.0.1:1": "--cacert"} {
		r := Unusable(evidence.Spec{Where: where}, errors.New("refused"), Options{})
		if next := r.Next[0].Text; !strings.Contains(next, want) ||
			strings.Contains(next, "file") != (where == "/d/x.db") {
			t.Errorf("%s: %q", where, next)
		}
	}
}
