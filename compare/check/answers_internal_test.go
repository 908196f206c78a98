package check

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/compare/serverlog"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// TestUncheckedReasons: a check that cannot be made of these sources says why.
func TestUncheckedReasons(t *testing.T) {
	bare := Sources{withLog(member("n1"), 20), withLog(member("n2"), 20)}
	foreign := withDB(member("n1"), 5)
	foreign.DB.Foreign = true
	closed := member("n1")
	closed.Problems = []evidence.Problem{{Part: "wal", File: "0.wal", Err: errors.New("denied")},
		{Part: "db", File: "db", Err: errors.New("denied")}}
	unread := &Input{Members: bare, Replay: &replay.Result{}}
	noFirst := &Input{Members: bare, Replay: &replay.Result{Survey: &replay.Survey{}}}
	compared := func(records *diff.Records) *Input {
		return &Input{Members: bare, Diff: &diff.Result{Records: records}}
	}
	for _, c := range []struct {
		run  func(*Input) Result
		in   *Input
		want string
	}{
		{runSecretsInLog, unread, "the logs could not be merged"},
		{runSecretsInLog, &Input{Members: bare}, "the logs could not be merged"},
		{runLogNotOlder, unread, "the logs could not be merged"},
		{runLogNotOlder, &Input{Members: bare}, "the logs could not be merged"},
		{runV2StoreTrue, unread, "the logs could not be merged"},
		{runForced, &Input{Members: bare}, "the logs could not be replayed"},
		{runLogsMatch, &Input{Members: bare}, "no log entries"},
		{runLogsMatch, noFirst, "no log entries"},
		{runIndexPossible, &Input{Members: bare}, "no source has both a log and a consistent index"},
		{runIndexPossible, &Input{Members: Sources{withDB(member("n1"), 5)}},
			"no source has both a log and a consistent index"},
		{runCommitInLog, &Input{Members: bare}, "no log carries a HardState"},
		{runCommitInLog, &Input{Members: Sources{member("n1")}}, "no log carries a HardState"},
		{runLearnersMove, &Input{Members: bare}, "no source shows raft's configuration"},
		{runCompactMarks, &Input{Members: bare}, "no data dir holds a compaction mark"},
		{runDBMetas, &Input{Members: bare}, "no source brought a database that opens"},
		{runDBPages, &Input{Members: bare}, "no source brought a database"},
		{runDBPages, &Input{Members: Sources{foreign}}, "n1 holds no page of a database; see B02."},
		{runDBPages, &Input{Members: Sources{foreign, withDB(member("n2"), 5)}},
			"n1 holds no page of a database; see B02."},
		{runDBPages, &Input{Members: Sources{closed, withDB(member("n2"), 5)}}, "n1: db: denied"},
		{runServerLogs, &Input{Members: bare}, "no server log was given (--server-log)"},
		{runLearnerFlags, &Input{Members: bare},
			"no source shows both raft's configuration and the member list at its applied index"},
		{runRecordsEqual, &Input{Members: bare}, "the databases could not be compared"},
		{runRecordsEqual, compared(nil), "the records were not compared"},
		{runRecordsEqual, compared(&diff.Records{Reason: "r"}), "r"},
		{runRecordsEqual, &Input{Members: bare, Diff: &diff.Result{Buckets: []diff.Bucket{{Name: "key",
			Equal: release.No}}, Records: &diff.Records{Equal: release.Yes}}}, "live keys differ already"},
		{runRevisionsEqual, &Input{Members: bare}, "the databases could not be compared"},
	} {
		r := c.run(c.in)
		if r.Reason != c.want || len(r.Findings) > 0 || r.Outcome == Holds || r.Outcome == Violated {
			t.Errorf("%+v, want %q", r, c.want)
		}
	}
	equal := compared(&diff.Records{Equal: release.Yes})
	equal.Diff.Buckets = []diff.Bucket{{Name: "key", Equal: release.Yes}}
	if r := runRecordsEqual(equal); r.Outcome != Holds {
		t.Errorf("equal records: %+v", r)
	}
	other := &Input{Members: bare, ServerLogs: map[string]*serverlog.Journal{"n3": {}}}
	if r := runServerLogs(other); r.Outcome != Holds || len(r.Findings) > 0 {
		t.Errorf("the server log of another source: %+v", r)
	}
}

// TestApplies: a check is made if the sources hold what it needs.
func TestApplies(t *testing.T) {
	log, db := withLog(member("log"), 20), withDB(member("db"), 5)
	entries := &replay.Result{First: 1}
	for name, c := range map[string]struct {
		needs Need
		in    Input
		want  string
	}{
		"nothing":                   {0, Input{}, ""},
		"two of one":                {NeedTwo, Input{Members: Sources{log}}, needsTwo},
		"two of two":                {NeedTwo, Input{Members: Sources{log, db}}, ""},
		"a log of none":             {NeedLog, Input{Members: Sources{db}}, "no source brought a WAL"},
		"a log":                     {NeedLog, Input{Members: Sources{db, log}}, ""},
		"a database of none":        {NeedDB, Input{Members: Sources{log}}, "no source brought a database that opens"},
		"a database":                {NeedDB, Input{Members: Sources{log, db}}, ""},
		"a replay without entries":  {NeedReplay, Input{Members: Sources{db}, Replay: &replay.Result{}}, "replay"},
		"no replay":                 {NeedReplay, Input{Members: Sources{db}}, "replay"},
		"a replay without database": {NeedReplay, Input{Members: Sources{log}, Replay: entries}, "replay"},
		"a replay":                  {NeedReplay, Input{Members: Sources{log, db}, Replay: entries}, ""},
	} {
		why, ok := (&Check{Needs: c.needs}).Applies(&c.in)
		if ok != (c.want == "") || !strings.HasSuffix(why, c.want) {
			t.Errorf("%s: %q, %t", name, why, ok)
		}
	}
	type key struct{}
	ctx := context.WithValue(t.Context(), key{}, 1)
	if got := (&Input{Ctx: ctx}).Context(); got.Value(key{}) != 1 || (&Input{}).Context() == nil {
		t.Error("the context of an input is another")
	}
}

// TestOutcomeOfFindings: notes violate nothing, and what could not be checked does not hide a violation.
func TestOutcomeOfFindings(t *testing.T) {
	of := func(s ...Severity) (fs []Finding) {
		for _, x := range s {
			fs = append(fs, Finding{Severity: x})
		}
		return fs
	}
	for name, c := range map[string]struct {
		fs   []Finding
		open string
		want Outcome
	}{
		"none": {nil, "", Holds}, "a note": {of(Info), "", Holds}, "a warning": {of(Warning, Info), "", Violated},
		"an error": {of(Info, Error), "open", Violated}, "open": {nil, "open", NotChecked},
		"a note and open": {of(Info), "open", NotChecked},
	} {
		if r := outcome(c.fs, c.open); r.Outcome != c.want || r.Reason != c.open || len(r.Findings) != len(c.fs) {
			t.Errorf("%s: %+v", name, r)
		}
	}
	for n, want := range map[int][2]int{0: {3, 0}, 2: {2, 1}, 3: {3, 0}, 4: {3, 0}} {
		in := &Input{MaxRows: n}
		cut, added := in.cut(Finding{Evidence: make([]Evidence, 3), More: 5}), Finding{}
		for range 3 {
			in.add(&added, func() Evidence { return Evidence{} })
		}
		if len(cut.Evidence) != want[0] || cut.More != 5+want[1] || len(added.Evidence) != want[0] ||
			added.More != want[1] {
			t.Errorf("at most %d: %d and %d more, added %d and %d more", n, len(cut.Evidence), cut.More,
				len(added.Evidence), added.More)
		}
	}
}

// TestEarlierBackups: a backup from before a restore is a note about the member that continues it; if no member does,
// it may be of another cluster.
func TestEarlierBackups(t *testing.T) {
	b, m := withDB(member("b.db"), 5), withDB(member("n1"), 9)
	b.DB.KV.LastRev.Main, b.Membership.Bucket, b.Source.Kind = 40, []dumplog.ID{7}, evidence.KindDataDir
	for _, f := range earlierFindings([]Earlier{{Backup: b}, {Backup: b, Member: m, Records: 12}}) {
		if got := f.Remedy[0].Command.String(); got != "etcd-medic inspect b.db" {
			t.Errorf("a data dir without a log: %s", got)
		}
	}
	b.Source.Kind = evidence.KindBackup
	fs := earlierFindings([]Earlier{{Backup: b}, {Backup: b, Member: m, Records: 12}})
	if len(fs) != 2 || fs[0].Kind != KindBackupUnrelated || fs[0].Severity != Warning ||
		fs[1].Kind != KindBackupBeforeRestore || fs[1].Severity != Info {
		t.Fatalf("%+v", fs)
	}
	for _, f := range fs {
		if !slices.Equal(f.Members, []string{"b.db"}) || len(f.Evidence) != 1 || f.Evidence[0].Observed != "[7]" ||
			len(f.Remedy) != 1 {
			t.Errorf("%+v", f)
		}
	}
	if !strings.Contains(fs[1].Explanation, "12 of them, up to revision 40") ||
		!strings.HasSuffix(fs[1].Remedy[0].Command.String(), "--against n1") {
		t.Errorf("%+v", fs[1])
	}
	late, none := &replay.OtherLog{AtLeast: 41}, &replay.OtherLog{}
	same := earlierFindings([]Earlier{{Backup: b, OtherLog: late, Member: m, Records: 12}, {Backup: b, OtherLog: late}})
	for i, want := range []string{"12 of them, up to revision 40", "compacted all that it holds"} {
		f := same[i]
		if f.Kind != KindBackupBeforeRestore || !strings.Contains(f.Explanation, want) ||
			f.Evidence[0].Observed != "40" || !strings.HasPrefix(f.Evidence[0].Expected, "41 or more") {
			t.Errorf("same IDs: %+v", f)
		}
	}
	if f := earlierFindings([]Earlier{{Backup: b, OtherLog: none}})[0]; !strings.Contains(f.Explanation,
		"no entry of this log up to its index put what it holds") ||
		!strings.HasPrefix(f.Evidence[0].Observed, "none that the log's entries up to") {
		t.Errorf("nothing of the log: %+v", f)
	}
	inferred := earlierFindings([]Earlier{{Backup: b, OtherLog: &replay.OtherLog{AtLeast: 41, Inferred: true}}})[0]
	if !strings.Contains(inferred.Explanation, "is inferred") || strings.Contains(same[1].Explanation, "inferred") {
		t.Errorf("inferred: %+v", inferred)
	}
	refused := earlierFindings([]Earlier{{Backup: b, OtherLog: &replay.OtherLog{AtLeast: 41, Inferred: true,
		Refused: true}}})[0]
	if refused.Severity != Warning || refused.Class != ClassInconclusive || inferred.Class != "" ||
		!strings.HasSuffix(refused.Title, "or of a member that refused writes") {
		t.Errorf("refused: %+v", refused)
	}
	damaged := earlierFindings([]Earlier{{Backup: b, OtherLog: late, Damaged: true}})[0]
	if !strings.HasSuffix(damaged.Title, "or has lost what the log wrote to it") ||
		!strings.Contains(damaged.Explanation, "Its file is damaged") {
		t.Errorf("damaged: %+v", damaged)
	}
}

// TestContradictedRows: a row of bucket members is wrong if it says something else than raft's configuration.
func TestContradictedRows(t *testing.T) {
	m := withDB(member("n1"), 9)
	m.Membership = evidence.Membership{Voters: []dumplog.ID{1, 2}, Learners: []dumplog.ID{3, 4}}
	m.DB.Removed = []dumpdb.ID{9}
	m.DB.Members = []dumpdb.Member{{ID: 1}, {ID: 2, IsLearner: true}, {ID: 3}, {ID: 4, IsLearner: true}, {ID: 5},
		{ID: 6, IsLearner: true}, {ID: 9}}
	var got []Kind
	for i := range m.DB.Members {
		got = append(got, contradicted(m, &m.DB.Members[i]))
	}
	want := []Kind{"", KindVoterListedAsLearner, KindLearnerListedAsVoter, "", KindMemberZombie, KindMemberZombie,
		KindMemberListedAndRemoved}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	rows := staleRowsOf(m)
	if len(rows) != 4 || len(rows[2].rows[0]) != 2 || rows[2].kind != KindMemberZombie {
		t.Fatalf("%+v", rows)
	}
	m.Version = evidence.Version{Minor: 4, Text: "3.4.x"}
	for minor, lost := range map[int]bool{4: true, 6: false} {
		m.Version.Minor = minor
		if f := rows[1].finding(); strings.Contains(f.Explanation, "Up to 3.4") != lost {
			t.Errorf("3.%d: %s", minor, f.Explanation)
		}
	}
	m.Version.Minor = 4
	if f := rows[0].finding(); strings.Contains(f.Explanation, "Up to 3.4") {
		t.Errorf("a voter: %s", f.Explanation)
	}
	other := withDB(member("n2"), 9)
	other.Membership, other.DB.Members, other.DB.Removed = m.Membership, m.DB.Members[:5], m.DB.Removed
	all := rows
	for _, s := range staleRowsOf(other) {
		all = s.joined(all)
	}
	if len(all) != 5 || len(all[0].members) != 2 || len(all[1].members) != 2 || len(all[2].members) != 1 ||
		all[4].kind != KindMemberZombie {
		t.Errorf("%+v", all)
	}
	if got := confIndexOf(m); got != 0 {
		t.Errorf("without a log: a conf change at %d", got)
	}
}

// TestDifferencesOfTTLs: TTLs that settings explain are a warning, unless something shows which member is wrong.
func TestDifferencesOfTTLs(t *testing.T) {
	const id = 7
	key := []byte(dumplog.ID(id).String())
	for name, c := range map[string]struct {
		ttls    []int64
		change  func(in *Input)
		warning bool
		kind    Kind
	}{
		"two minimums":       {[]int64{3, 6, 3}, nil, true, "k"},
		"the highest":        {[]int64{3, 75, 3}, nil, true, "k"},
		"above any":          {[]int64{3, 76, 3}, nil, false, "k"},
		"all above any":      {[]int64{600, 600, 600}, nil, true, KindRemainingDiffers},
		"remaining":          {[]int64{60, 60, 60}, nil, true, KindRemainingDiffers},
		"a lease is missing": {[]int64{3, 6}, nil, false, "k"},
		"another kind of row": {[]int64{3, 6}, func(in *Input) { in.Diff.Buckets[1].Rows[0].Kind = diff.WholeRow }, true,
			KindRemainingDiffers},
		"the log shows it": {[]int64{3, 6, 3}, func(in *Input) {
			in.Replay.Members[1].Leases = []replay.LeaseFact{{ID: id, Asked: 10, Stored: 6}}
		}, false, "k"},
		"a second row": {[]int64{60, 60, 60}, func(in *Input) {
			for i, ttl := range []int64{3, 6, 3} {
				db := in.Members[i].DB
				db.Leases = append(db.Leases, dumpdb.Lease{ID: id + 1, TTL: ttl})
			}
			second := in.Diff.Buckets[1].Rows[0]
			second.Key = []byte(dumplog.ID(id + 1).String())
			in.Diff.Buckets[1].Rows = append(in.Diff.Buckets[1].Rows, second)
		}, true, "k"},
	} {
		in := threeMembers(release.Yes)
		for i, ttl := range c.ttls {
			in.Members[i].DB.Leases = []dumpdb.Lease{{ID: 6, TTL: 1}, {ID: id, TTL: ttl}}
		}
		in.Diff.Buckets = append(in.Diff.Buckets, diff.Bucket{Name: "lease", Equal: release.No,
			Rows: []diff.Row{{Key: key, Kind: diff.TTLRow, Cells: cellsOf("a", "b", "a")}}})
		if c.change != nil {
			c.change(in)
		}
		fs := in.storedTTLs().differences([]Finding{{Kind: "k", Severity: Error, Class: ClassLatentDivergence}})
		if f := fs[0]; len(fs) != 1 || (f.Severity == Warning) != c.warning || (f.Class == "") != c.warning ||
			f.Kind != c.kind || (f.Explanation != "") != c.warning {
			t.Errorf("%s: %+v", name, fs)
		}
		if fs := in.storedTTLs().differences(nil); fs != nil {
			t.Errorf("%s: of nothing: %+v", name, fs)
		}
	}
}

// TestRowsThatAreNotListed: a bucket with more different rows than are kept counts the places of the others too.
func TestRowsThatAreNotListed(t *testing.T) {
	in := threeMembers(release.Yes)
	b := &diff.Bucket{Name: "alarm", Equal: release.No, Differ: 5, Compared: 9}
	for _, key := range []string{"a", "b"} {
		b.Rows = append(b.Rows, diff.Row{Key: []byte(key), Cells: cellsOf("1", "2", "1")})
	}
	f := in.contents().stateFinding(ClassLatentDivergence, b, nil)
	if f == nil || f.More != 3*3 || len(f.Evidence) != 2*3 || !strings.HasPrefix(f.Title, "5 of 9 rows") {
		t.Errorf("%+v", f)
	}
	f = in.contents().stateFinding(ClassLatentDivergence, b, func(row *diff.Row) bool { return row.Key[0] == 'a' })
	if f == nil || f.More != 0 || len(f.Evidence) != 3 || !f.Open || !strings.HasPrefix(f.Title, "at least 1 of 9 rows") {
		t.Errorf("of some rows: %+v", f)
	}
	if f := in.contents().stateFinding(ClassLatentDivergence, b, func(*diff.Row) bool { return false }); f != nil {
		t.Errorf("of no row: %+v", f)
	}
}

// TestTTLsOfOneRun: the minimums of two members are compared, and without a lease that the log grants nothing is.
func TestTTLsOfOneRun(t *testing.T) {
	fact := func(stored int64) *replay.MemberResult {
		return &replay.MemberResult{Leases: []replay.LeaseFact{{ID: 1, Index: 5, Term: 2, Asked: 1, Stored: stored}}}
	}
	for name, c := range map[string]struct {
		members []*replay.MemberResult
		want    []Kind
		reason  string
	}{
		"different minimums": {[]*replay.MemberResult{fact(3), fact(6)}, []Kind{KindTTLMinimumsDiffer}, ""},
		"equal":              {[]*replay.MemberResult{fact(3), fact(3)}, nil, ""},
		"no lease":           {[]*replay.MemberResult{{}, {}}, nil, "no database holds a lease whose grant is in the log"},
		"below":              {[]*replay.MemberResult{fact(3), fact(0)}, []Kind{KindTTLBelowGrant}, ""},
	} {
		in := &Input{Members: Sources{member("n1"), member("n2")}, MaxRows: 20,
			Replay: &replay.Result{Members: c.members}}
		r := runLeaseTTLs(in)
		var got []Kind
		for _, f := range r.Findings {
			got = append(got, f.Kind)
		}
		if !slices.Equal(got, c.want) || r.Reason != c.reason || (r.Outcome == "") != (c.reason != "") {
			t.Errorf("%s: %s %q, %q", name, r.Outcome, got, r.Reason)
		}
	}
}

// TestVotesOfOneTerm: each voter counts once, whichever copy of its log shows the vote.
func TestVotesOfOneTerm(t *testing.T) {
	voter := func(name string, id dumplog.ID, votes ...dumplog.Vote) *evidence.Member {
		m := withLog(member(name), 20)
		m.MemberID, m.WAL.Summary.Votes = id, votes
		return m
	}
	yes, other, later := dumplog.Vote{Term: 3, For: 1}, dumplog.Vote{Term: 3, For: 2}, dumplog.Vote{Term: 4, For: 1}
	gone := voter("gone", 8, yes)
	gone.WAL.Log = nil
	ss := Sources{voter("n1", 1, yes, yes), voter("copy", 1, yes), voter("n2", 2, other, later),
		voter("n3", 3, later, yes),
		voter("unknown", 0, yes), gone}
	var got []string
	for _, e := range ss.elections().votesFor(ss[0], 3) {
		got = append(got, e.Member)
	}
	if !slices.Equal(got, []string{"n1", "n3"}) {
		t.Errorf("votes of %q", got)
	}
}

// TestNamedMembers: a member is named by a log, a configuration or a list of any source.
func TestNamedMembers(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *evidence.Member)
		want   bool
	}{
		"not at all":     {func(*evidence.Member) {}, false},
		"its own source": {func(m *evidence.Member) { m.MemberID = 7 }, true},
		"a list":         {func(m *evidence.Member) { m.Membership.V2 = []dumplog.ID{7} }, true},
		"a conf change":  {func(m *evidence.Member) { m.WAL.Conf = []evidence.ConfEntry{added(5, 7)} }, true},
		"without the log": {func(m *evidence.Member) {
			m.WAL.Conf, m.WAL.Log = []evidence.ConfEntry{added(5, 7)}, nil
		}, false},
		"a voter of a record": {func(m *evidence.Member) {
			m.WAL.Summary.Snapshots = []dumplog.SnapshotRecord{{ConfState: &dumplog.ConfState{Voters: []dumplog.ID{7}}}}
		}, true},
		"a learner of a record": {func(m *evidence.Member) {
			m.WAL.Summary.Snapshots = []dumplog.SnapshotRecord{{},
				{ConfState: &dumplog.ConfState{Learners: []dumplog.ID{7}}}}
		}, true},
	} {
		m := withLog(member("n1"), 20)
		c.change(m)
		if got := (Sources{member("n0"), m}).configurations().named(7); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestTitleOfAlteredIDs: which of several IDs was altered is not known.
func TestTitleOfAlteredIDs(t *testing.T) {
	source := func(name string) *evidence.Member {
		m := withLog(member(name), 20)
		m.WAL.Summary.Segments = []dumplog.Segment{{Name: "0.wal"}}
		return m
	}
	a, b, c := source("a"), source("b"), source("c")
	for want, ms := range map[string][]*evidence.Member{"a: the cluster ID in the WAL metadata was altered": {a},
		"a, b: the cluster ID in the WAL metadata of one of them was altered":             {a, b},
		"a, b, c: the cluster ID in the WAL metadata of at least one of them was altered": {a, b, c}} {
		f := clusterIDFinding(ms, source("d"))
		if f.Title != want || len(f.Members) != len(ms) || len(f.Evidence) != len(ms)+1 ||
			f.Evidence[0].Field != "altered cluster ID" || f.Evidence[1].Field != "cluster ID" {
			t.Errorf("%+v, want %q", f, want)
		}
	}
}

// TestAlteredStamps: an auth revision in the header of a request was altered if nothing else is as high, the same
// process stamps a lower one later, and one log alone holds the entry.
func TestAlteredStamps(t *testing.T) {
	for name, c := range map[string]struct {
		change func(in *Input)
		want   bool
	}{
		"altered":   {func(*Input) {}, true},
		"no replay": {func(in *Input) { in.Replay = nil }, false},
		"no survey": {func(in *Input) { in.Replay.Survey = nil }, false},
		"it is the last": {func(in *Input) {
			in.Replay.Survey.Stamps[1] = in.Replay.Survey.Stamps[1][:2]
		}, false},
		"another has stamped as much": {func(in *Input) {
			in.Replay.Survey.Stamps[2] = []replay.Stamp{{Index: 3, AuthRevision: 90}}
		}, false},
		"another has stamped more, and last": {func(in *Input) {
			in.Replay.Survey.Stamps[2] = []replay.Stamp{{Index: 3, AuthRevision: 91}}
		}, false},
		"another has stamped less": {func(in *Input) {
			in.Replay.Survey.Stamps[2] = []replay.Stamp{{Index: 3, AuthRevision: 89}}
		}, true},
		"it restarted right after": {func(in *Input) {
			in.Replay.Survey.Starts = map[dumplog.ID][]replay.Start{1: {{Index: 13}}}
		}, false},
		"it restarted before": {func(in *Input) {
			in.Replay.Survey.Starts = map[dumplog.ID][]replay.Start{1: {{Index: 12}}}
		}, true},
		"it restarted at the later one": {func(in *Input) {
			in.Replay.Survey.Starts = map[dumplog.ID][]replay.Start{1: {{Index: 15}}}
		}, false},
		"it restarted after that": {func(in *Input) {
			in.Replay.Survey.Starts = map[dumplog.ID][]replay.Start{1: {{Index: 16}}}
		}, true},
		"another restarted": {func(in *Input) {
			in.Replay.Survey.Starts = map[dumplog.ID][]replay.Start{2: {{Index: 13}}}
		}, true},
		"entries between are missing": {func(in *Input) { in.Replay.Last = 14 }, false},
		"a database is as high":       {func(in *Input) { in.Members[1].DB.Auth.Revision = 90 }, false},
		"one is right below":          {func(in *Input) { in.Members[1].DB.Auth.Revision = 89 }, true},
		"but it has not applied it": {func(in *Input) {
			in.Members[1].DB.Auth.Revision, in.Members[1].AppliedMin = 90, 11
		}, true},
		"it has just applied it": {func(in *Input) {
			in.Members[1].DB.Auth.Revision, in.Members[1].AppliedMin = 90, 12
		}, false},
		"a database stores none": {func(in *Input) {
			in.Members[1].DB.Auth = dumpdb.Auth{Revision: 90}
		}, true},
		"no database": {func(in *Input) {
			for _, m := range in.Members {
				m.DB = nil
			}
		}, false},
		"two logs hold it": {func(in *Input) {
			in.Members[1].WAL.LastByTerm = in.Members[0].WAL.LastByTerm
		}, false},
		"the other is gone": {func(in *Input) { in.Members[1].WAL.Log = nil }, true},
		"no log holds it":   {func(in *Input) { in.Members[0].WAL.LastByTerm = nil }, false},
	} {
		in := threeMembers(release.Yes)
		for _, m := range in.Members {
			m.DB.Auth = dumpdb.Auth{HasRevision: true, Revision: 6}
		}
		in.Members[0].WAL.LastByTerm = []evidence.TermEnd{{Term: 2, First: 1, Last: 20}}
		in.Replay.First, in.Replay.Last = 1, 20
		in.Replay.Survey.Stamps = map[dumplog.ID][]replay.Stamp{
			1: {{Index: 5, AuthRevision: 5}, {Index: 12, AuthRevision: 90}, {Index: 15, AuthRevision: 6}},
			2: {{Index: 7, AuthRevision: 5}}}
		c.change(in)
		x := in.authRevisions().alteredStamp()
		if (x != nil) != c.want || x != nil && (x.log != 0 || x.proposer != 1 || x.at.Index != 12 ||
			x.later.Index != 15) {
			t.Errorf("%s: %+v", name, x)
		}
	}
}
