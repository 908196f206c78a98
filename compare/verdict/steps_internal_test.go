package verdict

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/shell"
)

// TestStepsOnce: a step is listed once. It is the same if its command is, or without a command if its text is.
func TestStepsOnce(t *testing.T) {
	ad := adviceFor(evidence.KindDataDir, evidence.KindDataDir)
	show := shell.Format("etcd-medic inspect")
	ad.Findings = []check.Finding{{Remedy: []check.Remedy{{Text: "a", Command: show}, {Text: "b", Command: show},
		{Text: "a"}, {Text: "b"}, {Text: "a"}, {Text: "c", Command: shell.Format("etcd-medic watch")}}}}
	ad.Unread = []Unread{{Name: "n9", Error: "gone"}, {Name: "n9", Error: "gone"}, {Name: "n8", Error: "gone"}}
	ad.Verdict.Class = check.ClassMembership
	ad.next()
	var got []string
	for _, n := range ad.Next {
		got = append(got, strings.TrimSpace(n.Text+" $ "+n.Command.String()))
	}
	inThisOrder(t, got[:min(len(got), 6)], []string{"make source n9 readable and run again $",
		"make source n8 readable and run again $", "a $ etcd-medic inspect", "a $", "b $",
		"c $ etcd-medic watch"})
	if last := got[len(got)-1]; !strings.HasPrefix(last, "see every conf change in the log $ etcd-medic dumplog n1") {
		t.Errorf("%q", got)
	}
}

// TestNextChoose: of members that are equally good one has to be chosen. Where nothing shows which is right, that is
// what to look for first.
func TestNextChoose(t *testing.T) {
	ad := adviceFor(evidence.KindDataDir, evidence.KindDataDir)
	ad.Facts = []evidence.Facts{{Name: "n1"}, {Name: "n2"}}
	row := func(names ...string) (rows []Rank) {
		for _, n := range names {
			rows = append(rows, Rank{Member: n})
		}
		return rows
	}
	for want, best := range map[string]*Best{
		"the members are equally good: choose the one to keep": {Members: []string{"n1", "n2"},
			Ranking: row("n1", "n2")},
		"nothing shows which member is right: look for": {Members: []string{"n1", "n2"},
			Ranking: row("n1", "n2"), Undecided: "why"},
		"": {Members: []string{"n1"}, Ranking: row("n1", "n2")},
	} {
		ad.Best = best
		got := adviceOf(ad, ad.nextDivergence)
		if chosen := got[1]; want != "" && !strings.HasPrefix(chosen, want) || want == "" &&
			slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, "equally good: choose") }) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	ad.Best = nil
	if got := adviceOf(ad, ad.nextDivergence); len(got) != 2 || !strings.HasPrefix(got[1], "no member is usable") {
		t.Errorf("%q", got)
	}
}

// TestLostData: nothing in the files of a member can be repaired that an error calls wiped, rolled back or mixed.
func TestLostData(t *testing.T) {
	for _, c := range []struct {
		class    check.Class
		severity check.Severity
		member   string
		want     bool
	}{
		{check.ClassMemberLostData, check.Error, "n1", true}, {check.ClassTornCopy, check.Error, "n1", true},
		{check.ClassMemberLostData, check.Critical, "n1", true}, {check.ClassDBDamage, check.Error, "n1", false},
		{check.ClassTornCopy, check.Warning, "n1", false}, {check.ClassTornCopy, check.Error, "n2", false},
	} {
		ad := adviceFor(evidence.KindDataDir, evidence.KindBackup)
		ad.Findings = []check.Finding{{Class: c.class, Severity: c.severity, Members: []string{c.member}}}
		if got := ad.lostData("n1"); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
	ad := adviceFor(evidence.KindDataDir, evidence.KindBackup)
	for label, want := range map[string]evidence.Kind{"n1": evidence.KindDataDir, "n2": evidence.KindBackup, "n3": ""} {
		if got := ad.kindOf(label); got != want {
			t.Errorf("%s is a %q", label, got)
		}
	}
}

// TestStandingOfAMember: what counts against a member, from its files and from the findings that accuse it.
func TestStandingOfAMember(t *testing.T) {
	blamed := func(class check.Class) func(rk *ranking) {
		return func(rk *ranking) {
			rk.Findings = []check.Finding{{Check: check.K03, Class: class, Severity: check.Error,
				Members: []string{"n1"}}}
		}
	}
	marks := func(scheduled, finished int64) func(rk *ranking) {
		return func(rk *ranking) {
			rk.Members[0].DB.Meta.ScheduledCompact = &dumpdb.Rev{Main: scheduled}
			if finished > 0 {
				rk.Members[0].DB.Meta.FinishedCompact = &dumpdb.Rev{Main: finished}
			}
		}
	}
	for name, c := range map[string]struct {
		change func(rk *ranking)
		want   func(s *standing)
	}{
		"nothing":          {func(*ranking) {}, func(*standing) {}},
		"damaged log":      {blamed(check.ClassWALDamage), func(s *standing) { s.damage = 1 }},
		"damaged database": {blamed(check.ClassDBDamage), func(s *standing) { s.damage = 1 }},
		"damaged snapshot": {blamed(check.ClassSnapshotDamage), func(s *standing) { s.damage = 1 }},
		"lost data":        {blamed(check.ClassMemberLostData), func(s *standing) { s.usable = false }},
		"other content":    {blamed(check.ClassDataDivergence), func(*standing) {}},
		"no database":      {func(rk *ranking) { rk.Members[0].DB = nil }, func(s *standing) { s.usable = false }},
		"keys unreadable": {func(rk *ranking) { rk.Members[0].DB.KVDamaged = true },
			func(s *standing) { s.usable = false }},
		"no log": {func(rk *ranking) { rk.Members[0].WAL.Log = nil },
			func(s *standing) { s.usable = false }},
		"a compaction pending": {marks(9, 0), func(s *standing) { s.pending = 1 }},
		"one begun again":      {marks(9, 8), func(s *standing) { s.pending = 1 }},
		"one finished":         {marks(9, 9), func(*standing) {}},
		"lacks, not checked":   {func(rk *ranking) { rk.Replay.Members[0].Lacks = 3 }, func(*standing) {}},
		"lacks": {func(rk *ranking) { rk.Replay.Members[0].Lacks, rk.Replay.Members[0].Checked = 3, true },
			func(s *standing) { s.lacks = 3 }},
		"too many": {func(rk *ranking) { rk.Replay.Members[0].Surplus, rk.Replay.Members[0].Checked = 2, true },
			func(s *standing) { s.lacks = 2 }},
		"wrong state": {func(rk *ranking) {
			rk.Replay.Members[0].Extra, rk.Replay.Members[0].Checked = []int64{5}, true
		}, func(s *standing) { s.control = 1 }},
		"histories parted": {func(rk *ranking) { rk.Replay.LogDiffs = make([]replay.LogDiff, 1) },
			func(s *standing) { s.parted = true }},
	} {
		rk := rankingOf(evidence.KindDataDir, evidence.KindDataDir)
		for _, m := range rk.Members {
			m.WAL.Log, m.DB = &dumplog.Log{}, &evidence.DB{Handle: &dumpdb.DB{}}
		}
		c.change(rk)
		got, want := rk.standing(0, rk.Members[0], 0), standing{usable: true}
		c.want(&want)
		if blamed := len(rk.Findings); len(got.blamed) != blamed {
			t.Errorf("%s: blamed by %d findings, want %d", name, len(got.blamed), blamed)
		}
		got.blamed = nil
		if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

// TestFirstBreakOfAuth: an auth revision that does not result from the log is that of the members whose revision it
// is not, with what each of them has. Of any other check the first place counts.
func TestFirstBreakOfAuth(t *testing.T) {
	rk := rankingOf(evidence.KindDataDir, evidence.KindDataDir)
	j := &judge{Input: rk.Input}
	f := check.Finding{Check: check.A01, Members: []string{"n1", "n2"}, Evidence: []check.Evidence{
		{Member: "n1", Observed: "7", Expected: "9"}, {Member: "n2", Observed: "9"}}}
	if b := j.firstBreak(&f); !slices.Equal(b.Member, []string{"n1", "n2"}) || b.Observed != "n1 7, n2 9" ||
		b.Expected != "9" {
		t.Errorf("the log cannot decide: %+v", b)
	}
	off := rk.Replay.Members[0]
	off.Unexplained, off.AuthKnown = -2, true
	if b := j.firstBreak(&f); len(b.Member) != 2 {
		t.Errorf("a member that was not checked: %+v", b)
	}
	off.Checked = true
	if b := j.firstBreak(&f); !slices.Equal(b.Member, []string{"n1"}) {
		t.Errorf("the log decides: %+v", b)
	}
	f.Check = check.K01
	if b := j.firstBreak(&f); len(b.Member) != 2 || b.Observed != "7" {
		t.Errorf("another check: %+v", b)
	}
	f.Evidence = nil
	if b := j.firstBreak(&f); b.Observed != "" || b.Check != check.K01 {
		t.Errorf("no evidence: %+v", b)
	}
}

// TestConsequence: the summary says which members lack committed writes, and which to keep if not all are equally good.
func TestConsequence(t *testing.T) {
	row := func(name string, lacks int) (r Rank) {
		r.Member = name
		r.Lacks.CommittedEntries = lacks
		return r
	}
	tooMany := func(r Rank) Rank { r.Surplus = 2; return r }
	for name, c := range map[string]struct {
		health check.Health
		best   *Best
		want   string
	}{
		"one has too many": {check.Unhealthy, &Best{Members: []string{"n2"}, Ranking: []Rank{row("n2", 0),
			tooMany(row("n1", 0))}}, "broken; n1 holds 2 writes too many; best: n2"},
		"one lacks one and has two too many": {check.Unhealthy, &Best{Members: []string{"n2"},
			Ranking: []Rank{row("n2", 0), tooMany(row("n1", 1))}}, "broken; n1 is missing 1 committed write; n1 holds 2 writes too many; best: n2"},
		"one lacks": {check.Unhealthy, &Best{Members: []string{"n2"}, Ranking: []Rank{row("n2", 0), row("n1", 1)}},
			"broken; n1 is missing 1 committed write; best: n2"},
		"equally good": {check.Unhealthy, &Best{Members: []string{"n1", "n2"}, Ranking: []Rank{row("n1", 2),
			row("n2", 2)}}, "broken; n1 is missing 2 committed writes; n2 is missing 2 committed writes"},
		"healthy":    {check.Healthy, &Best{Members: []string{"n1"}, Ranking: []Rank{row("n1", 2)}}, "broken"},
		"none best":  {check.Unhealthy, &Best{Ranking: []Rank{row("n1", 2)}}, "broken"},
		"not ranked": {check.Unhealthy, nil, "broken"},
	} {
		j := &judge{Input: rankingOf(evidence.KindDataDir).Input}
		j.Verdict, j.Best = Verdict{Health: c.health, Summary: "broken"}, c.best
		j.consequence()
		if j.Verdict.Summary != c.want || (j.Verdict.Problem != "") != strings.Contains(c.want, "; best: ") {
			t.Errorf("%s: %+v", name, j.Verdict)
		}
	}
}

// TestLostIsBounded: entries and keys are listed up to a bound, and all are counted.
func TestLostIsBounded(t *testing.T) {
	rk := rankingOf(evidence.KindDataDir, evidence.KindDataDir)
	for i := range maxLost + 1 {
		rk.Replay.Events = append(rk.Replay.Events, &replay.Event{Index: uint64(i) + 3, Keys: []string{fmt.Sprint(i)},
			Lacking: []int{0}, Holding: []int{1}, Outcomes: make([]replay.Outcome, 2)})
	}
	rk.Replay.EventCount = len(rk.Replay.Events)
	b := &Best{Members: []string{"n1"}}
	rk.lost(b, "n1", 0)
	if l := b.Lost; len(l.Entries) != maxLost || len(l.KeyNames) != maxLost || l.CommittedEntries != maxLost+1 ||
		l.Keys != maxLost+1 {
		t.Errorf("%d entries, %d keys of %d and %d", len(l.Entries), len(l.KeyNames), l.CommittedEntries, l.Keys)
	}
}

// TestFreshlyRestored: members that a restore began have nothing but the conf changes of their start.
func TestFreshlyRestored(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *evidence.Member)
		want   bool
	}{
		"all":         {func(*evidence.Member) {}, true},
		"written to":  {func(m *evidence.Member) { m.WAL.Summary.LastIndex = 3 }, false},
		"bootstrap":   {func(m *evidence.Member) { m.WAL.Summary.Start = dumplog.StartBootstrap }, false},
		"without log": {func(m *evidence.Member) { m.WAL.Log = nil }, false},
	} {
		rk := rankingOf(evidence.KindDataDir, evidence.KindDataDir)
		for _, m := range rk.Members {
			m.WAL = evidence.WAL{Log: &dumplog.Log{}, Conf: make([]evidence.ConfEntry, 2),
				Summary: dumplog.Summary{Start: dumplog.StartRestore, LastIndex: 2}}
		}
		c.change(rk.Members[1])
		if got := (&health{Input: rk.Input}).freshlyRestored(); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
