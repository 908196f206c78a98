package backup

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/backup/chain"
	"github.com/etcd-medic/etcd-medic/compare/cause"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/shell"
)

// TestComparedText: the line says how far the backup lags, and never a number that is not known.
func TestComparedText(t *testing.T) {
	at := &Broken{Revision: check.Rev{Main: 7, Sub: 1}}
	rows := []StateRow{{Bucket: "lease"}, {Bucket: "auth"}}
	for want, c := range map[string]Compared{
		"damaged: it lacks records that n1 has, from revision 7.1 on": {SameHistory: check.Violated, BackupLacks: true,
			First: at},
		"damaged: it lacks keys that n1 has had since revision 7.0": {SameHistory: check.Violated, BackupLacks: true,
			First: &Broken{Revision: check.Rev{Main: 7}, rewritten: true}},
		"of another history than n1 from revision 7.1 on": {SameHistory: check.Violated, First: at, RevisionsBehind: 9},
		"not comparable with n1 (no record is in both)": {SameHistory: check.NotChecked, Reason: "no record is in both",
			RevisionsBehind: 9},
		"3 revisions ahead of n1": {SameHistory: check.Holds, RevisionsBehind: -3},
		"level with n1":           {SameHistory: check.Holds},
		"level with n1; rows of auth, leases and members that differ: 2": {SameHistory: check.Holds, State: rows},
		"1 revision behind n1 (2 keys missing, 3 differ, 4 gone since); rows of auth, leases and members that " +
			"differ: 5": {SameHistory: check.Holds, RevisionsBehind: 1, Missing: 2, Differ: 3, Extra: 4, State: rows,
			MoreState: 3},
	} {
		if c.Source = "n1"; c.Text() != want {
			t.Errorf("%q, want %q", c.Text(), want)
		}
	}
}

// TestDrillText: a drill that was refused or proves nothing is not called a failed one.
func TestDrillText(t *testing.T) {
	for want, d := range map[string]Drill{
		"no drill: no room":                            {Refused: "no room", Inconclusive: "x"},
		"drill inconclusive: out of time":              {Inconclusive: "out of time"},
		"etcd 3.6.1 did not start on it":               {Version: "3.6.1", Equal: release.Yes},
		"drill with etcd 3.6.1: 5 keys equal in 1.5 s": {Version: "3.6.1", Started: true, Equal: release.Yes, Keys: 5, Seconds: 1.46},
		"drill with etcd 3.6.1 failed":                 {Version: "3.6.1", Started: true, Keys: 5},
	} {
		if d.Text() != want {
			t.Errorf("%q, want %q", d.Text(), want)
		}
	}
}

// TestLine: the line of a timer's log has the content of a backup that was read, and the summary unless it is healthy.
func TestLine(t *testing.T) {
	truncated := cause.ID("backup-truncated")
	etcd, revision, keys := "3.5", int64(40), int64(6)
	read := func(class check.Class) *compare.Report {
		return &compare.Report{Sources: []compare.Source{{Name: "a.db"}}, Backup: &compare.Backup{Size: 9, Trailer: "match"},
			Members: []evidence.Facts{{DB: &evidence.DBFacts{}}},
			Verdict: compare.Verdict{Class: class, Health: class.Health(), Summary: "the summary"}}
	}
	for _, c := range []struct {
		want   string
		class  check.Class
		change func(*compare.Report)
	}{
		{"a.db: good: 9 B, sha256 match", check.ClassBackupGood, nil},
		{"a.db: good: 9 B, sha256 match, etcd 3.5, revision 40, 6 keys", check.ClassBackupGood,
			func(r *compare.Report) {
				r.Members[0].WroteBy.Etcd = &etcd
				r.Members[0].DB.CurrentRevision, r.Members[0].DB.Keys = &revision, &keys
			}},
		{"a.db: good: 9 B, sha256 match", check.ClassBackupGood,
			func(r *compare.Report) { r.Members[0].DB.CurrentRevision = &revision }},
		{"a.db: damaged (backup-truncated): 9 B, sha256 match, the summary", check.ClassBackupDamaged,
			func(r *compare.Report) { r.Verdict.Cause = &truncated }},
		{"a.db: damaged: the summary", check.ClassBackupDamaged, func(r *compare.Report) { r.Members[0].DB = nil }},
		{"a.db: damaged: the summary", check.ClassBackupDamaged, func(r *compare.Report) { r.Members = nil }},
		{"a.db: good: the summary", check.ClassBackupGood, func(r *compare.Report) { r.Backup = nil }},
		{"a.db: good: 9 B, sha256 match, 1 delta up to revision 50, level with n1, level with n2, no drill: no room",
			check.ClassBackupGood, func(r *compare.Report) {
				r.Backup.Chain = &chain.Report{Deltas: make([]chain.Delta, 1), Revision: 50}
				r.Backup.Against = &Against{Compared: []Compared{{Source: "n1", SameHistory: check.Holds},
					{Source: "n2", SameHistory: check.Holds}}}
				r.Backup.Drill = &Drill{Refused: "no room"}
			}},
	} {
		r := read(c.class)
		if c.change != nil {
			c.change(r)
		}
		if got := LineOf(r).String(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestNext: what to do depends on whether a restore was tried, and remedies of findings are not lost.
func TestNext(t *testing.T) {
	const before, remedy = "as the verdict said", "raise the quota"
	const prove, keep, why = "prove by a restore that it serves", "nothing to do; keep it", "find out why there is no newer"
	for _, c := range []struct {
		name  string
		class check.Class
		drill any
		want  []string
	}{
		{"good", check.ClassBackupGood, nil, []string{prove, remedy}},
		{"good after a drill", check.ClassBackupGood, &Drill{OK: true}, []string{remedy, keep}},
		{"without a sum", check.ClassBackupUnverifiable, nil, []string{prove, remedy}},
		{"too old", check.ClassBackupStale, nil, []string{why}},
		{"open", check.ClassInconclusive, nil, []string{before}},
		{"open after a drill", check.ClassInconclusive, &Drill{}, []string{before}},
		{"open since the drill was not possible", check.ClassInconclusive, &Drill{Inconclusive: "no room"},
			[]string{"the drill proves nothing about the backup"}},
		{"damaged", check.ClassBackupDamaged, nil, []string{before}},
		{"damaged, as a drill shows", check.ClassBackupDamaged, &Drill{},
			[]string{"do not rely on this file", "take a new snapshot"}},
		{"other history", check.ClassDataDivergence, nil, []string{before}},
	} {
		r := &compare.Report{Sources: []compare.Source{{Name: "a.db"}}, Backup: &compare.Backup{Drill: c.drill},
			Verdict:  compare.Verdict{Class: c.class},
			Findings: []check.Finding{{Remedy: []check.Remedy{{Text: remedy, Command: shell.Format("etcdctl x")}}}},
			Next:     []compare.Next{{Text: before}}}
		next(r)
		if len(r.Next) != len(c.want) {
			t.Errorf("%s: %+v, want %q", c.name, r.Next, c.want)
			continue
		}
		for i, n := range r.Next {
			if !strings.HasPrefix(n.Text, c.want[i]) {
				t.Errorf("%s: %q, want %q", c.name, n.Text, c.want[i])
			}
			if n.Text == prove && n.Command.String() != "etcd-medic verify --drill a.db" ||
				n.Text == remedy && n.Command.String() != "etcdctl x" {
				t.Errorf("%s: %+v", c.name, n)
			}
		}
	}
}

// TestJudge: the first violation changes the verdict of a healthy backup only, a check is listed once, and what could
// not be checked leaves a damaged backup damaged.
func TestJudge(t *testing.T) {
	finding := func(class check.Class) check.Finding {
		return check.Finding{Class: class, Title: "second", Members: []string{"a.db"},
			Evidence: []check.Evidence{{Bucket: "key", Key: check.Bytes("k"), Expected: "1", Observed: "2"}}}
	}
	r := &compare.Report{Verdict: compare.Verdict{Health: check.Healthy, Class: check.ClassBackupGood}}
	Judge(r, check.B08, check.NotChecked, "no source")
	Judge(r, check.B08, check.Violated, "", finding(check.ClassDataDivergence), finding(check.ClassBackupDamaged))
	b := r.Verdict.FirstBreak
	if len(r.Checks) != 1 || r.Checks[0].Outcome != check.Violated || r.Checks[0].Reason != "" ||
		r.Checks[0].Title == "" || r.Findings[0].ID != "B08-1" || r.Findings[1].ID != "B08-2" {
		t.Errorf("%+v, %+v", r.Checks, r.Findings)
	}
	if r.Verdict.Class != check.ClassDataDivergence || b.Check != check.B08 || b.Bucket != "key" || b.Observed != "2" ||
		b.Expected != "1" || string(b.Key) != "k" {
		t.Errorf("%+v, %+v", r.Verdict, b)
	}
	Judge(r, check.B11, check.Violated, "", finding(check.ClassBackupStale))
	LeaveOpen(r, check.B10, "no delta")
	if r.Verdict.Class != check.ClassDataDivergence || r.Verdict.FirstBreak.Check != check.B08 || len(r.Checks) != 3 {
		t.Errorf("%+v", r.Verdict)
	}
	r = &compare.Report{Verdict: compare.Verdict{Health: check.Healthy, Class: check.ClassBackupGood, Summary: "sound"}}
	LeaveOpen(r, check.B10, "no delta")
	if r.Verdict.Class != check.ClassInconclusive || r.Verdict.Health != check.HealthUnknown ||
		r.Verdict.Summary != "sound; but no delta" {
		t.Errorf("%+v", r.Verdict)
	}
	if titleOf("none") != "" {
		t.Error(titleOf("none"))
	}
}

// TestJudgeNext: where a check of its own shows the damage, what was to be done with a sound backup is not said.
func TestJudgeNext(t *testing.T) {
	for class, replaced := range map[check.Class]bool{check.ClassBackupDamaged: true, check.ClassBackupStale: false} {
		r := &compare.Report{Verdict: compare.Verdict{Health: check.Healthy, Class: check.ClassBackupGood},
			Next: []compare.Next{{Text: "nothing to repair"}}}
		Judge(r, check.B02, check.Violated, "", check.Finding{Class: class})
		if got := strings.HasPrefix(r.Next[0].Text, "do not rely on this file"); got != replaced {
			t.Errorf("%s: %+v", class, r.Next)
		}
	}
}

// TestNextOfAnotherHistory: where the histories differ, and nothing else is worse, the members are to be diagnosed.
func TestNextOfAnotherHistory(t *testing.T) {
	m := &evidence.Member{Source: &evidence.Source{Name: "a.db"}, DB: &evidence.DB{}}
	first := []compare.Next{{Text: "as it was"}}
	for name, c := range map[string]struct {
		history check.Outcome
		class   check.Class // of a finding before
		members bool
	}{
		"the same history":           {history: check.Holds},
		"not compared":               {history: check.NotChecked},
		"another history":            {history: check.Violated, members: true},
		"another, and it is damaged": {history: check.Violated, class: check.ClassBackupDamaged},
	} {
		r := &compare.Report{Verdict: compare.Verdict{Health: check.Healthy, Class: check.ClassBackupGood}, Next: first}
		if c.class != "" {
			r.Verdict = compare.Verdict{Health: check.Unhealthy, Class: c.class}
		}
		judgeAgainst(r, &Against{Compared: []Compared{{Source: "n1", SameHistory: c.history, First: &Broken{}}}}, m)
		if got := strings.Contains(r.Next[0].Text, "diagnose all members"); got != c.members {
			t.Errorf("%s: %+v", name, r.Next)
		}
	}
}

// TestUnusableSource: a source that cannot be opened has the name it was given, else that of its place.
func TestUnusableSource(t *testing.T) {
	for want, spec := range map[string]evidence.Spec{"n1": {Name: "n1", Where: "/x"}, "/y": {Where: "/y"}} {
		a, r := &Against{}, &compare.Report{}
		a.unusable(r, spec, errors.New("gone"))
		if a.Compared[0].Source != want || r.Sources[0].Name != want || r.Sources[0].Error != "gone" ||
			a.Compared[0].SameHistory != check.NotChecked || a.Compared[0].Reason != "gone" {
			t.Errorf("%+v, %+v, want %q", a.Compared, r.Sources, want)
		}
	}
}

// TestGroups: keys are counted by prefix and Kubernetes kind, the largest group first, and not without bound.
func TestGroups(t *testing.T) {
	pod := []byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"x"}}`)
	n := newCounter(2)
	for _, c := range []diff.Change{{Key: []byte("/b/x/1"), New: true, Value: pod}, {Key: []byte("/b/x/2")},
		{Key: []byte("/a/one"), Delete: true, Was: pod}, {Key: []byte("plain"), New: true}} {
		if err := n.add(c); err != nil {
			t.Fatal(err)
		}
	}
	var c Compared
	n.into(&c)
	want := []Group{{Name: "/b/x/", Missing: 1, Differ: 1}, {Name: "/a/", Extra: 1}, {Name: "plain", Missing: 1}}
	if d := cmp.Diff(want, c.Prefixes); d != "" || c.Missing != 2 || c.Differ != 1 || c.Extra != 1 || c.More != 2 ||
		len(c.Rows) != 2 {
		t.Errorf("%+v %s", c, d)
	}
	if d := cmp.Diff([]Group{{Name: "v1 Pod", Missing: 1, Extra: 1}}, c.Kinds); d != "" || c.Rows[0].Kind != "v1 Pod" {
		t.Errorf("%s, %+v", d, c.Rows)
	}
	for i := range maxGroups + 5 {
		group(n.prefixes, fmt.Sprint("/", i)).Extra++
	}
	if g := n.prefixes["(others)"]; g == nil || g.Extra != 8 || len(n.prefixes) != maxGroups+1 {
		t.Errorf("%d groups, others %+v", len(n.prefixes), g)
	}
}

// TestPrefixOf: keys with fewer than two parts go by the part above them.
func TestPrefixOf(t *testing.T) {
	for key, want := range map[string]string{"/registry/pods/a/b": "/registry/pods/", "/registry/pods/": "/registry/pods/",
		"/a/b": "/a/", "/a": "/", "a": "a", "": "", "a/b": "a/"} {
		if got := prefixOf([]byte(key)); got != want {
			t.Errorf("%q: %q, want %q", key, got, want)
		}
	}
}

// TestRecordText: a record is described without its value.
func TestRecordText(t *testing.T) {
	m := &evidence.Member{}
	put := dumpdb.Revision{}
	put.KV.Key, put.KV.Value, put.KV.CreateRevision, put.KV.Version = []byte("k"), []byte("secret"), 3, 2
	leased := put
	leased.KV.Lease = 0x1a
	for _, c := range []struct {
		r          *dumpdb.Revision
		want, ends string
	}{
		{nil, "no such record", "record"},
		{&dumpdb.Revision{Tombstone: true, KV: put.KV}, `tombstone of "k"`, `"k"`},
		{&put, `put of "k", create 3, version 2, value of 6 bytes with digest `, ""},
		{&leased, `put of "k", create 3, version 2, value of 6 bytes with digest `, ", lease 1a"},
	} {
		got := recordText(m, c.r)
		if !strings.HasPrefix(got, c.want) || !strings.HasSuffix(got, c.ends) || strings.Contains(got, "secret") ||
			c.ends == "" && strings.Contains(got, "lease") {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestMustHold: a key of the source that was last written up to the backup's revision must be in the backup, with the
// same content. The first of them is named.
func TestMustHold(t *testing.T) {
	s := &evidence.Member{Source: &evidence.Source{Name: "n1"}}
	of := func(mod int64, isNew, deleted bool) *diff.Change {
		return &diff.Change{Key: []byte("k"), Value: []byte("value"), Mod: mod, New: isNew, Delete: deleted}
	}
	for name, c := range map[string]struct {
		changes       []*diff.Change
		lost, altered int
		first         int64
		in            string
	}{
		"written later":        {[]*diff.Change{of(8, true, false), of(9, false, false)}, 0, 0, 0, ""},
		"gone from the source": {[]*diff.Change{of(3, true, true)}, 0, 0, 0, ""},
		"lost":                 {[]*diff.Change{of(7, true, false)}, 1, 0, 7, "no such key"},
		"altered":              {[]*diff.Change{of(7, false, false)}, 0, 1, 7, "the key with other content"},
		"several, in this order": {[]*diff.Change{of(6, false, false), of(5, true, false), of(4, true, false)},
			2, 1, 6, "the key with other content"},
	} {
		compared := Compared{Source: "n1", SameHistory: check.Holds, Reason: "r"}
		for _, ch := range c.changes {
			compared.mustHold(s, ch, 7)
		}
		if compared.Lost != c.lost || compared.Altered != c.altered || (compared.First != nil) != (c.first != 0) ||
			(compared.SameHistory == check.Violated) != (c.first != 0) || (compared.Reason == "") != (c.first != 0) {
			t.Errorf("%s: %+v", name, compared)
		}
		if f := compared.First; f != nil && (f.Revision.Main != c.first || f.InBackup != c.in ||
			string(f.Key) != "k" || !strings.Contains(f.InSource, `put of "k", value of 5 bytes`)) {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// TestConclude: what a walk over both histories proves.
func TestConclude(t *testing.T) {
	at := &Broken{Revision: check.Rev{Main: 7}}
	for name, c := range map[string]struct {
		first      *Broken
		t          tally
		lostB      int64
		lostS      int64
		damaged    bool
		records    int64
		want       check.Outcome
		lacks      bool
		saysReason string
	}{
		"equal":             {records: 5, want: check.Holds},
		"nothing in common": {want: check.NotChecked, saysReason: "no record is in both"},
		"damaged": {damaged: true, records: 5, want: check.NotChecked,
			saysReason: "0 records of the backup and 0 of n1"},
		"a record of the backup": {lostB: 1, records: 5, want: check.NotChecked,
			saysReason: "1 record of the backup and 0 of n1"},
		"a record of the source": {lostS: 1, records: 5, want: check.NotChecked,
			saysReason: "0 records of the backup and 1 of n1"},
		"the backup lacks some":      {first: at, t: tally{onlySource: 2}, want: check.Violated, lacks: true},
		"the backup has others":      {first: at, t: tally{onlySource: 2, onlyBackup: 1}, want: check.Violated},
		"one differs":                {first: at, t: tally{differ: 1}, records: 5, want: check.Violated},
		"a difference beside damage": {first: at, t: tally{differ: 1}, damaged: true, want: check.Violated},
	} {
		compared := Compared{Source: "n1", SameHistory: check.NotChecked, First: c.first, Records: c.records}
		compared.conclude(c.t, c.lostB, c.lostS, c.damaged)
		if compared.SameHistory != c.want || compared.BackupLacks != c.lacks ||
			!strings.Contains(compared.Reason, c.saysReason) || (compared.Reason == "") != (c.saysReason == "") {
			t.Errorf("%s: %+v", name, compared)
		}
	}
}

// TestUnsaid: the error of a backup that was never read stands in its verdict, and is not said again.
func TestUnsaid(t *testing.T) {
	for name, c := range map[string]struct {
		r    compare.Report
		want string
	}{
		"said": {compare.Report{Verdict: compare.Verdict{Summary: "cannot be read: gone"},
			Sources: []compare.Source{{Error: "gone"}}}, ""},
		"another": {compare.Report{Verdict: compare.Verdict{Summary: "sound"},
			Sources: []compare.Source{{Error: "gone"}}}, "gone"},
		"it was read": {compare.Report{Verdict: compare.Verdict{Summary: "gone"},
			Sources: []compare.Source{{Error: "gone"}}, Members: make([]evidence.Facts, 1)}, "gone"},
		"of two files": {compare.Report{Verdict: compare.Verdict{Summary: "gone"},
			Sources: []compare.Source{{Error: "gone"}, {}}}, "gone"},
	} {
		given := c.r.Sources[0].Error
		got := Unsaid(&c.r)
		if got[0].Error != c.want || c.r.Sources[0].Error != given || len(got) != len(c.r.Sources) {
			t.Errorf("%s: %+v of %+v", name, got, c.r.Sources)
		}
	}
}
