package verdict_test

import (
	"slices"
	"strings"
	"testing"

	"go.etcd.io/etcd/server/v3/storage/wal"

	"github.com/etcd-medic/etcd-medic/compare/cause"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/compare/verdict"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// Written logs are short, and a purged script needs small segments.
func TestMain(m *testing.M) {
	wal.SegmentSizeBytes = 512 << 10
	evidencetest.Main(m)
}

// member is a data dir without a log and a database: what is judged here is told by findings.
func member(name string) *evidence.Member {
	return &evidence.Member{Source: &evidence.Source{Name: name, Kind: evidence.KindDataDir}}
}

func members(n int) (out []*evidence.Member) {
	for _, name := range []string{"n1", "n2", "n3"}[:n] {
		out = append(out, member(name))
	}
	return out
}

// found is a finding that decides, at an index; 0 is a place that is not known.
func found(id check.ID, class check.Class, index uint64, names ...string) check.Finding {
	return check.Finding{ID: string(id) + "-1", Check: id, Class: class, Severity: check.Error, Members: names,
		Title: string(id) + " found it", At: check.At{Index: index},
		Evidence: []check.Evidence{{Member: names[0], Observed: "this", Expected: "that"}}}
}

func judge(n int, fs ...check.Finding) *verdict.Answer {
	return verdict.Judge(&verdict.Input{Input: &check.Input{Members: members(n)}, Findings: fs, Mixed: true})
}

// TestClassOfFirstBreak: the first break in history names the class; what explains it comes before it.
func TestClassOfFirstBreak(t *testing.T) {
	undecodable := found(check.K04, check.ClassDBDamage, 5, "n1")
	undecodable.Facts.Undecodable = true
	note := found(check.R01, check.ClassDataDivergence, 1, "n1")
	note.Severity = check.Warning
	for name, c := range map[string]struct {
		sources int
		fs      []check.Finding
		class   check.Class
		first   check.ID
	}{
		"the lower index": {3, []check.Finding{found(check.M03, check.ClassMembership, 9, "n1"),
			found(check.R04, check.ClassMemberLostData, 4, "n2")}, check.ClassMemberLostData, check.R04},
		"an unknown place comes last": {3, []check.Finding{found(check.W01, check.ClassWALDamage, 0, "n1"),
			found(check.M03, check.ClassMembership, 900, "n2")}, check.ClassMembership, check.M03},
		"a warning decides nothing": {3, []check.Finding{note, found(check.M03, check.ClassMembership, 9, "n1")},
			check.ClassMembership, check.M03},
		"the earlier check at one place": {3,
			[]check.Finding{found(check.S01, check.ClassSnapshotDamage, 4, "n1", "n2"),
				found(check.M03, check.ClassMembership, 4, "n3")}, check.ClassSnapshotDamage, check.S01},
		"contents that differ already": {3, []check.Finding{found(check.A01, check.ClassLatentDivergence, 4, "n1"),
			found(check.K01, check.ClassDataDivergence, 9, "n1", "n2")}, check.ClassDataDivergence, check.A01},
		"control state alone": {3, []check.Finding{found(check.A01, check.ClassLatentDivergence, 4, "n1")},
			check.ClassLatentDivergence, check.A01},
		"one source against its log": {1, []check.Finding{found(check.K03, check.ClassDataDivergence, 4, "n1")},
			check.ClassDBDamage, check.K03},
		"one source, by a wrong counter": {1, []check.Finding{found(check.A04, check.ClassDataDivergence, 4, "n1")},
			check.ClassDataDivergence, check.A04},
		"damage explains content": {3, []check.Finding{found(check.K01, check.ClassDataDivergence, 4, "n1", "n2"),
			found(check.D02, check.ClassDBDamage, 0, "n2")}, check.ClassDBDamage, check.D02},
		"damage of another member": {3, []check.Finding{found(check.K01, check.ClassDataDivergence, 4, "n1", "n2"),
			found(check.D02, check.ClassDBDamage, 0, "n3")}, check.ClassDataDivergence, check.K01},
		"damage of all members alike": {3, []check.Finding{found(check.K01, check.ClassDataDivergence, 4, "n1", "n2"),
			found(check.D02, check.ClassDBDamage, 0, "n1", "n2")}, check.ClassDataDivergence, check.K01},
		"a torn copy explains content": {3, []check.Finding{found(check.L01, check.ClassLatentDivergence, 4, "n1",
			"n2"),
			found(check.X05, check.ClassTornCopy, 0, "n1")}, check.ClassTornCopy, check.X05},
		"pages explain what a member says of itself": {3, []check.Finding{
			found(check.C03, check.ClassLatentDivergence, 4, "n1"), found(check.D02, check.ClassDBDamage, 0, "n1")},
			check.ClassDBDamage, check.D02},
		"rows do not": {3, []check.Finding{found(check.C03, check.ClassLatentDivergence, 4, "n1"),
			found(check.D03, check.ClassDBDamage, 0, "n1")}, check.ClassLatentDivergence, check.C03},
		"a history that others contradict": {3, []check.Finding{found(check.K04, check.ClassDBDamage, 5, "n1"),
			found(check.K01, check.ClassDataDivergence, 9, "n1", "n2")}, check.ClassDataDivergence, check.K04},
		"a history that only the file contradicts": {3, []check.Finding{found(check.K04, check.ClassDBDamage, 5, "n1"),
			found(check.K01, check.ClassDataDivergence, 9, "n2", "n3")}, check.ClassDBDamage, check.K04},
		"records that are none": {3, []check.Finding{undecodable,
			found(check.K01, check.ClassDataDivergence, 9, "n1", "n2")}, check.ClassDBDamage, check.K04},
	} {
		t.Run(name, func(t *testing.T) {
			v := judge(c.sources, c.fs...).Verdict
			if v.Class != c.class || v.Health != check.Unhealthy || v.FirstBreak == nil ||
				v.FirstBreak.Check != c.first {
				t.Errorf("%s, %d, %+v; want %s, %s", v.Class, v.Health, v.FirstBreak, c.class, c.first)
			}
			if !strings.Contains(v.Summary, string(c.first)+" found it") ||
				!strings.HasSuffix(v.FirstBreak.Observed, "this") ||
				v.FirstBreak.Expected != "that" {
				t.Errorf("%q, %+v", v.Summary, v.FirstBreak)
			}
			if slices.Reverse(c.fs); c.sources == 3 && name != "the earlier check at one place" {
				if again := judge(3, c.fs...).Verdict; again.Class != v.Class {
					t.Errorf("%s, and %s in another order", v.Class, again.Class)
				}
			}
		})
	}
}

// TestLeadingCause: the verdict names the cause of the first break, never one that explains something else beside it.
func TestLeadingCause(t *testing.T) {
	fs := []check.Finding{found(check.M03, check.ClassMembership, 4, "n1"),
		found(check.W01, check.ClassWALDamage, 0, "n2")}
	damage := verdict.Cause{ID: cause.WALCRCMismatch, Title: "damage", Certainty: cause.Proof,
		Because: []string{"W01-1"}}
	lists := verdict.Cause{ID: cause.StuckLearner, Title: "lists", Certainty: cause.Strong, Because: []string{"M03-1"}}
	side := verdict.Cause{ID: cause.NospaceAlarm, Title: "side", Certainty: cause.Proof, Because: []string{"M03-1"},
		Secondary: true}
	for name, c := range map[string]struct {
		causes []verdict.Cause
		want   cause.ID
	}{
		"in front":       {[]verdict.Cause{lists, damage}, lists.ID},
		"put in front":   {[]verdict.Cause{damage, lists}, lists.ID},
		"of another":     {[]verdict.Cause{damage}, damage.ID},
		"beside it only": {[]verdict.Cause{side}, ""},
		"none":           {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			given := slices.Clone(c.causes)
			a := verdict.Judge(&verdict.Input{Input: &check.Input{Members: members(3)}, Findings: fs, Causes: c.causes,
				Mixed: true})
			if got := a.Verdict.Cause; c.want == "" && got != nil || c.want != "" && (got == nil || *got != c.want) {
				t.Errorf("cause %v, want %s", got, c.want)
			}
			if len(a.Causes) != len(given) || c.want != "" && !strings.HasPrefix(a.Verdict.Summary, a.Causes[0].Title) {
				t.Errorf("%+v: %s", a.Causes, a.Verdict.Summary)
			}
			for i := range given {
				if given[i].ID != c.causes[i].ID {
					t.Error("the causes that were given are in another order")
				}
			}
		})
	}
}

// TestNothingBroken: the healthy classes, and what keeps a verdict from being one.
func TestNothingBroken(t *testing.T) {
	note := func(class check.Class) check.Finding {
		f := found(check.R02, class, 4, "n1")
		f.Severity = check.Info
		return f
	}
	open := verdict.CheckOutcome{ID: check.D02, Title: "pages", Outcome: check.NotChecked, Reason: "no reason"}
	warned := found(check.X01, "", 0, "n1")
	warned.Severity = check.Warning
	withDB := members(2)
	withDB[0].DB = &evidence.DB{}
	for name, c := range map[string]struct {
		in     verdict.Input
		class  check.Class
		health check.Health
		says   string
	}{
		"sound": {verdict.Input{}, check.ClassHealthy, check.Healthy, "no problem found"},
		"lagging": {verdict.Input{Findings: []check.Finding{note(check.ClassUncommittedTail),
			note(check.ClassLagging)}},
			check.ClassLagging, check.Healthy, "how far"},
		"tail": {verdict.Input{Findings: []check.Finding{note(check.ClassUncommittedTail)}},
			check.ClassUncommittedTail, check.Healthy, "above the commit index"},
		"a warning is told": {verdict.Input{Findings: []check.Finding{warned}}, check.ClassHealthy, check.Healthy,
			"; X01 found it"},
		"a source is missing": {verdict.Input{Unread: []verdict.Unread{{Name: "n9", Error: "gone"}}},
			check.ClassInconclusive, check.HealthUnknown, "1 of the sources"},
		"evidence that does not suffice": {verdict.Input{Findings: []check.Finding{note(check.ClassInconclusive)}},
			check.ClassInconclusive, check.HealthUnknown, "R02 found it"},
		"a needed check is open": {verdict.Input{Input: &check.Input{Members: withDB},
			Checks: []verdict.CheckOutcome{open}}, check.ClassInconclusive, check.HealthUnknown, "no reason"},
		"a check that the sources do not call for": {verdict.Input{Checks: []verdict.CheckOutcome{open}},
			check.ClassHealthy, check.Healthy, "no problem found"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.in.Input == nil {
				c.in.Input = &check.Input{Members: members(2)}
			}
			c.in.Mixed = true
			a := verdict.Judge(&c.in)
			if v := a.Verdict; v.Class != c.class || v.Health != c.health || !strings.Contains(v.Summary, c.says) ||
				v.FirstBreak != nil || len(a.Next) == 0 {
				t.Errorf("%s, %d: %s; next %v", v.Class, v.Health, v.Summary, a.Next)
			}
		})
	}
}

// TestBackupClasses: damage, a trailer that fits, and none.
func TestBackupClasses(t *testing.T) {
	whole := verdict.Cause{ID: cause.BackupTruncated, Because: []string{"B02-1"}}
	page := verdict.Cause{ID: cause.BboltPageDamage, Because: []string{"D02-1"}}
	bare := verdict.Cause{ID: cause.BackupWithoutHash, Because: []string{"B01-1"}}
	warned := found(check.B07, "", 0, "n1")
	warned.Severity = check.Warning
	damage := []check.Finding{found(check.D02, check.ClassDBDamage, 0, "n1"),
		found(check.B02, check.ClassBackupDamaged, 0, "n1")}
	for name, c := range map[string]struct {
		trailer string
		fs      []check.Finding
		causes  []verdict.Cause
		class   check.Class
		cause   cause.ID
	}{
		"good":         {"match", nil, nil, check.ClassBackupGood, ""},
		"good, warned": {"match", []check.Finding{warned}, nil, check.ClassBackupGood, ""},
		"bare, warned": {"absent", []check.Finding{warned}, []verdict.Cause{bare}, check.ClassBackupUnverifiable,
			bare.ID},
		"no trailer":      {"absent", nil, []verdict.Cause{bare}, check.ClassBackupUnverifiable, bare.ID},
		"damaged":         {"match", damage, []verdict.Cause{page, whole}, check.ClassBackupDamaged, whole.ID},
		"damaged, no sum": {"absent", damage, []verdict.Cause{bare, page}, check.ClassBackupDamaged, page.ID},
	} {
		t.Run(name, func(t *testing.T) {
			m := member("n1")
			m.Source.Kind, m.DB = evidence.KindBackup, &evidence.DB{Trailer: dumpdb.Trailer{State: c.trailer}}
			v := verdict.Judge(&verdict.Input{Input: &check.Input{Members: []*evidence.Member{m}}, Findings: c.fs,
				Causes: c.causes, Backup: true}).Verdict
			if strings.HasSuffix(v.Summary, "; B07 found it") != strings.Contains(name, "warned") {
				t.Errorf("the warning comes once, at the end: %q", v.Summary)
			}
			if v.Class != c.class || v.Health != c.class.Health() {
				t.Errorf("%s, %d: %s", v.Class, v.Health, v.Summary)
			}
			if got := v.Cause; c.cause == "" && got != nil || c.cause != "" && (got == nil || *got != c.cause) {
				t.Errorf("cause %v, want %s", got, c.cause)
			}
		})
	}
}

// TestFindingsInOrder: the gravest first, then history's order, then that of the checks.
func TestFindingsInOrder(t *testing.T) {
	late, early, warned, unknown := found("late", "", 9, "n"), found("early", "", 4, "n"), found("warned", "", 1, "n"),
		found("unknown", "", 0, "n")
	warned.Severity = check.Warning
	critical := found("critical", "", 99, "n")
	critical.Severity = check.Critical
	fs := []check.Finding{unknown, warned, late, critical, early}
	verdict.SortFindings(fs)
	var got []string
	for _, f := range fs {
		got = append(got, string(f.Check))
	}
	if want := "critical early late unknown warned"; strings.Join(got, " ") != want {
		t.Errorf("%v, want %s", got, want)
	}
}

// TestLostNowhere: entries that no source holds, and who proposed them and is not among the sources.
func TestLostNowhere(t *testing.T) {
	l := verdict.Lost{Entries: []verdict.LostEntry{{HeldBy: []string{"n1"}, ProposedBy: "n9"}, {ProposedBy: "n9"},
		{ProposedBy: "n8"}, {ProposedBy: "n9"}, {ProposedBy: "n2"}, {}}}
	if n, names := l.Nowhere([]string{"n1", "n2"}); n != 5 || !slices.Equal(names, []string{"n9", "n8"}) {
		t.Errorf("%d, %v", n, names)
	}
}

// TestNextSteps: each class ends with steps of its own, and a source that could not be read comes first.
func TestNextSteps(t *testing.T) {
	for class, want := range map[check.Class]string{check.ClassForeignCluster: "sort the sources by cluster ID",
		check.ClassMembership: "see every conf change", check.ClassDBDamage: "restore from the newest sound backup",
		check.ClassDataDivergence: "stop writes to the cluster", check.ClassMemberLostData: "a change of leader may"} {
		a := verdict.Judge(&verdict.Input{Input: &check.Input{Members: members(2)}, Mixed: true,
			Findings: []check.Finding{found(check.M01, class, 4, "n1", "n2")},
			Unread:   []verdict.Unread{{Name: "n9", Error: "gone"}}})
		var said []string
		for _, n := range a.Next {
			said = append(said, n.Text)
		}
		if all := strings.Join(said, "\n"); !strings.Contains(all, want) ||
			!strings.HasPrefix(all, "make source n9 readable and run again") {
			t.Errorf("%s: %s", class, all)
		}
	}
}
