package verdict

import (
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/shell"
)

// TestHealthyInWords: the class of a set without errors, and everything that limits it.
func TestHealthyInWords(t *testing.T) {
	note := func(class check.Class) func(hl *health) {
		return func(hl *health) {
			hl.Findings = []check.Finding{{Class: class, Severity: check.Info, Title: "what it is"}}
		}
	}
	for name, c := range map[string]struct {
		members int
		change  func(hl *health)
		class   check.Class
		says    string
	}{
		"one":     {1, nil, check.ClassHealthy, "no problem found"},
		"several": {2, nil, check.ClassHealthy, "no problem found; members differ only as healthy members do"},
		"voters are absent": {1, func(hl *health) {
			lists(hl.Members[0], 9, evidence.Membership{Voters: []dumplog.ID{1, 2, 3}})
		}, check.ClassHealthy, "no problem found in this member. Whether it agrees with the other 2 voters " +
			"cannot be checked without their data dirs"},
		"lagging": {2, note(check.ClassLagging), check.ClassLagging,
			"members differ only in how far they have applied the log"},
		"a tail": {2, note(check.ClassUncommittedTail), check.ClassUncommittedTail,
			"logs differ only above the commit index"},
		"unread": {1, func(hl *health) { hl.Unread = make([]Unread, 2) }, check.ClassInconclusive,
			"nothing wrong was found, but 2 of the sources could not be read"},
		"a finding is open": {2, note(check.ClassInconclusive), check.ClassInconclusive,
			"nothing wrong was found, but what it is"},
		"a needed check": {1, func(hl *health) {
			hl.Members[0].DB = &evidence.DB{Handle: &dumpdb.DB{}}
			hl.Checks = []CheckOutcome{{ID: check.D02, Title: "pages", Outcome: check.NotChecked, Reason: "no time"}}
		}, check.ClassInconclusive, "nothing wrong was found, but check D02 (pages) could not be made: no time"},
		"another check": {1, func(hl *health) {
			hl.Checks = []CheckOutcome{{ID: check.A01, Outcome: check.NotChecked}}
		}, check.ClassHealthy, "no problem found"},
		"apart": {2, func(hl *health) {
			hl.Diff = &diff.Result{Members: hl.Members, KeysNotCompared: map[int]string{1: "n2 is behind"}}
		},
			check.ClassHealthy, "no problem found; members differ only as healthy members do. Keys were not compared " +
				"everywhere: n2 is behind"},
		"a warning": {1, func(hl *health) {
			hl.Findings = []check.Finding{{Severity: check.Warning, Title: "an alarm"}, {Severity: check.Info, Title: "a note"}}
		}, check.ClassHealthy, "no problem found; an alarm"},
	} {
		ms := sources(make([]evidence.Kind, c.members)...)
		for _, m := range ms {
			m.Source.Kind = evidence.KindDataDir
		}
		hl := &health{Input: &Input{Input: &check.Input{Members: ms}}, Verdict: &Verdict{}}
		if c.change != nil {
			c.change(hl)
		}
		hl.healthy()
		if v := hl.Verdict; v.Class != c.class || v.Summary != c.says ||
			(v.Health == check.Healthy) != (c.class != check.ClassInconclusive) {
			t.Errorf("%s: %s, %q, want %q", name, v.Class, v.Summary, c.says)
		}
	}
}

// TestCompactionSkew: databases whose content is equal may be compacted up to different revisions, and a compaction may
// be unfinished. A member that was removed, and one without a database, says nothing of it.
func TestCompactionSkew(t *testing.T) {
	const healthy, skew = check.ClassHealthy, check.ClassCompactionSkew
	compacted := func(m *evidence.Member, at int64) { m.DB.KV = &dumpdb.KVStats{CompactRev: at} }
	started := func(m *evidence.Member, at int64) { m.DB.Meta.ScheduledCompact = &dumpdb.Rev{Main: at} }
	finished := func(m *evidence.Member, at int64) { m.DB.Meta.FinishedCompact = &dumpdb.Rev{Main: at} }
	for name, c := range map[string]struct {
		change func(m, other *evidence.Member)
		want   check.Class
	}{
		"alike":                         {func(_, _ *evidence.Member) {}, healthy},
		"one further":                   {func(m, _ *evidence.Member) { compacted(m, 6) }, skew},
		"started on both":               {func(m, o *evidence.Member) { started(m, 6); started(o, 6) }, skew},
		"finished before the last":      {func(m, _ *evidence.Member) { started(m, 6); finished(m, 5) }, skew},
		"finished":                      {func(m, _ *evidence.Member) { started(m, 5); finished(m, 5) }, healthy},
		"the other one has no database": {func(_, o *evidence.Member) { o.DB = nil }, healthy},
		"one further, and removed": {func(m, o *evidence.Member) {
			compacted(m, 6)
			o.Membership.Removed = []dumplog.ID{m.MemberID}
		}, healthy},
	} {
		ms := sources(evidence.KindDataDir, evidence.KindDataDir)
		for _, m := range ms {
			m.DB = &evidence.DB{Handle: &dumpdb.DB{}}
			compacted(m, 5)
		}
		c.change(ms[0], ms[1])
		hl := &health{Input: &Input{Input: &check.Input{Members: ms}}, Verdict: &Verdict{}}
		if hl.healthy(); hl.Verdict.Class != c.want || hl.Verdict.Health != check.Healthy {
			t.Errorf("%s: %s, %v", name, hl.Verdict.Class, hl.Verdict.Health)
		}
	}
}

// TestSnapshotsWithoutLogs: snapshots of running members agree at a revision, which proves less than their logs; what
// moved between them leaves the verdict open.
func TestSnapshotsWithoutLogs(t *testing.T) {
	ms := sources(evidence.KindEndpoint, evidence.KindEndpoint)
	build := func(moved int) *health {
		return &health{Verdict: &Verdict{}, Input: &Input{Input: &check.Input{Members: ms,
			Diff: &diff.Result{Members: ms, Revs: []int64{7, 7}, Buckets: []diff.Bucket{{Name: "lease", Moved: moved}}}}}}
	}
	hl := build(0)
	hl.healthy()
	const same = ". The members hold the same data at revision 7. Not proven: no source has"
	if s := hl.Verdict.Summary; !strings.Contains(s, same) {
		t.Errorf("%q", s)
	}
	hl = build(1)
	hl.healthy()
	const moved = "but 1 row of bucket lease differ"
	if v := hl.Verdict; v.Class != check.ClassInconclusive || !strings.Contains(v.Summary, moved) {
		t.Errorf("%s, %q", v.Class, v.Summary)
	}
}

// TestInterchangeable: equal contents are, different ones are not, and where they cannot be compared no member may lack
// or alone hold anything.
func TestInterchangeable(t *testing.T) {
	revision := int64(3)
	facts := map[string]*evidence.Facts{}
	for name, hash := range map[string]string{"a": "1", "same": "1", "other": "2", "unknown": ""} {
		f := &evidence.Facts{Name: name}
		f.DB = &evidence.DBFacts{CompactRevision: &revision, Hashes: map[string]string{"key": hash}}
		facts[name] = f
	}
	tooMany := func(r Rank) Rank { r.Surplus = 1; return r }
	row := func(name string, lacks, unique int) Rank {
		return Rank{Member: name, Lacks: Count{CommittedEntries: lacks}, Unique: Count{CommittedEntries: unique}}
	}
	for name, c := range map[string]struct {
		labels  []string
		ranking []Rank
		want    bool
	}{
		"none":                      {nil, nil, true},
		"one":                       {[]string{"a"}, nil, true},
		"equal, whatever they lack": {[]string{"a", "same"}, []Rank{row("a", 1, 0), row("same", 0, 0)}, true},
		"different":                 {[]string{"a", "other"}, []Rank{row("a", 0, 0), row("other", 0, 0)}, false},
		"different, as the third":   {[]string{"a", "same", "other"}, nil, false},
		"unknown, both whole":       {[]string{"a", "unknown"}, []Rank{row("a", 0, 0), row("unknown", 0, 0)}, true},
		"unknown, both whole, after one that is not": {[]string{"a", "unknown"},
			[]Rank{row("x", 5, 0), row("unknown", 0, 0), row("a", 0, 0)}, true},
		"unknown, the first lacks":  {[]string{"a", "unknown"}, []Rank{row("a", 1, 0), row("unknown", 0, 0)}, false},
		"unknown, the second lacks": {[]string{"a", "unknown"}, []Rank{row("a", 0, 0), row("unknown", 2, 0)}, false},
		"unknown, one has too many": {[]string{"a", "unknown"}, []Rank{tooMany(row("a", 0, 0)), row("unknown", 0, 0)},
			false},
		"unknown, one is unique":     {[]string{"a", "unknown"}, []Rank{row("a", 0, 0), row("unknown", 0, 1)}, false},
		"unknown, and not in a rank": {[]string{"a", "unknown"}, []Rank{row("a", 0, 0)}, false},
	} {
		b := &Best{Ranking: c.ranking}
		if got := b.Interchangeable(c.labels, func(l string) *evidence.Facts { return facts[l] }); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestInitialCluster: all peer URLs of all members, or a placeholder where the list does not name them all.
func TestInitialCluster(t *testing.T) {
	for want, ms := range map[string][]dumpdb.Member{
		"a=http://1,a=http://2,b=http://3": {{Name: "a", PeerURLs: []string{"http://1", "http://2"}},
			{Name: "b", PeerURLs: []string{"http://3"}}},
		"<INITIAL_CLUSTER_FOR_n1>": {{Name: "a", PeerURLs: []string{"http://1"}}, {PeerURLs: []string{"http://3"}}},
		"no URL":                   {{Name: "a", PeerURLs: []string{"http://1"}}, {Name: "b"}},
		"no member":                nil,
	} {
		h := &hands{best: &evidence.Facts{}}
		h.best.Membership.Members = ms
		got := shell.Format("{}", h.cluster("n1")).String()
		if placeholder := shell.Format("{}", shell.FillFor("INITIAL_CLUSTER_FOR", "n1")).String(); got != want &&
			(strings.HasPrefix(want, "a=") || got != placeholder) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestStanding: which sources can serve, which are outside of the cluster, and by how much they lag.
func TestStanding(t *testing.T) {
	noLog := func(m *evidence.Member) { m.WAL = evidence.WAL{} }
	damaged := func(m *evidence.Member) { m.DB.KVDamaged = true }
	for name, c := range map[string]struct {
		kind                 evidence.Kind
		change               func(m *evidence.Member)
		usable, outside, cut bool
		behind               uint64
	}{
		"data dir": {evidence.KindDataDir, nil, true, false, false, 0},
		"lags, and another log continues": {evidence.KindDataDir, func(m *evidence.Member) { m.WAL.Summary.LastIndex = 5 },
			true, false, false, 4},
		"more than is committed": {evidence.KindDataDir, func(m *evidence.Member) { m.WAL.Summary.LastIndex = 12 },
			true, false, false, 0},
		"no log":             {evidence.KindDataDir, noLog, false, false, false, 9},
		"no database":        {evidence.KindDataDir, func(m *evidence.Member) { m.DB = nil }, false, false, false, 0},
		"damaged":            {evidence.KindDataDir, damaged, false, false, false, 0},
		"database":           {evidence.KindDB, noLog, true, true, true, 9},
		"backup":             {evidence.KindBackup, noLog, true, true, true, 9},
		"endpoint":           {evidence.KindEndpoint, nil, true, false, false, 0},
		"a damaged database": {evidence.KindDB, damaged, false, true, false, 0},
	} {
		ms := sources(c.kind, evidence.KindDataDir)
		for _, m := range ms {
			lists(m, 9, evidence.Membership{})
			m.DB, m.Commit = &evidence.DB{Handle: &dumpdb.DB{}}, 9
		}
		if c.change != nil {
			c.change(ms[0])
		}
		rk := &ranking{Input: &Input{Input: &check.Input{Members: ms}}}
		s := rk.standing(0, ms[0], 9)
		if s.usable != c.usable || s.outside != c.outside || s.behind != c.behind || s.parted || s.control != 0 {
			t.Errorf("%s: %+v", name, s)
		}
		if s.cut != (s.behind > 0 && (s.outside || !rk.continued(ms[0], 9))) || c.outside && s.cut != c.cut {
			t.Errorf("%s: cut %t, %+v", name, s.cut, s)
		}
	}
	rk := rankingOf(evidence.KindDataDir)
	rk.Replay.Members[0].Checked, rk.Replay.Members[0].Lacks = true, 3
	rk.Replay.Members[0].StateDiffs = make([]replay.StateDiff, 1)
	rk.Replay.LogDiffs = make([]replay.LogDiff, 1)
	if s := rk.standing(0, rk.Members[0], 0); s.lacks != 3 || s.control != 1 || !s.parted {
		t.Errorf("%+v", s)
	}
}

// TestAboveLogs: what running members have applied above the end of all logs is not proven, and a data dir whose log
// ends below lacks it.
func TestAboveLogs(t *testing.T) {
	for name, c := range map[string]struct {
		applied, log uint64
		want         string
	}{
		"above":      {400, 151, "entries 152 to 400 are in no log"},
		"at its end": {151, 151, ""},
		"no log":     {400, 0, ""},
	} {
		ms := sources(evidence.KindEndpoint, evidence.KindDataDir)
		ms[0].AppliedMax, ms[0].Commit = c.applied, c.applied
		if c.log > 0 {
			ms[1].WAL = evidence.WAL{Log: &dumplog.Log{}, Summary: dumplog.Summary{FirstIndex: 1, LastIndex: c.log}}
		}
		in := &Input{Input: &check.Input{Members: ms}}
		if got := in.aboveLogs(); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if got := in.Members.SaidCommitted(nil); got != c.applied {
			t.Errorf("%s: committed up to %d", name, got)
		}
		rk := &ranking{in}
		in.Replay = &replay.Result{First: 1, Last: 151, Survey: &replay.Survey{LastChange: 100}}
		if got := rk.changesAfter(151); got != (c.applied > 151) {
			t.Errorf("%s: entries above 151 can have changed data: %v", name, got)
		}
	}
}
