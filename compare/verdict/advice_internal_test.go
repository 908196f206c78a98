package verdict

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/boot"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/shell"
)

func adviceFor(kinds ...evidence.Kind) *advice {
	rk := rankingOf(kinds...)
	return &advice{Input: rk.Input, ranking: rk}
}

func remedy(text string) []check.Remedy { return []check.Remedy{{Text: text}} }

// TestShown: what is lost can be shown if it is listed, or if a command reads it from a log.
func TestShown(t *testing.T) {
	for name, c := range map[string]struct {
		l    Lost
		want bool
	}{
		"nothing":   {Lost{CommittedEntries: 1}, false},
		"entries":   {Lost{Entries: make([]LostEntry, 1)}, true},
		"records":   {Lost{Records: LostRecords{Rows: make([]LostRecord, 1)}}, true},
		"a command": {Lost{Command: shell.Format("etcd-medic dumplog")}, true},
	} {
		if got := c.l.Shown(); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestAgainstOthersInWords: a shorter log is a reason only for a member that does not lag anyway.
func TestAgainstOthersInWords(t *testing.T) {
	for want, list := range map[string][]standing{
		"": {{}, {shorter: 2, behind: 1}},
		"its log lacks 2 entries that another log holds, perhaps committed": {{shorter: 2}},
		"differs from the majority in 1 place that the log does not decide": {{minority: 1}},
		"differs from a majority that agrees in 2 warnings":                 {{odd: 2}},
	} {
		for _, s := range list {
			var said []string
			s.sayAgainstOthers(func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) })
			if got := strings.Join(said, "; "); got != want {
				t.Errorf("%+v: %q, want %q", s, got, want)
			}
		}
	}
}

// TestNextUndecided: the findings that leave the verdict open say what to do; if none does, evidence is missing.
func TestNextUndecided(t *testing.T) {
	ad := adviceFor(evidence.KindBackup)
	ad.Findings = []check.Finding{{Class: check.ClassTornCopy, Remedy: remedy("other")}}
	if got := adviceOf(ad, ad.nextUndecided); len(got) != 1 || !strings.HasPrefix(got[0], "add the missing files") {
		t.Errorf("%q", got)
	}
	ad.Findings = append(ad.Findings, check.Finding{Class: check.ClassInconclusive, Remedy: remedy("decide")})
	if got := adviceOf(ad, ad.nextUndecided); !slices.Equal(got, []string{"decide $"}) {
		t.Errorf("%q", got)
	}
	ad.Members[0].Problems = []evidence.Problem{{Part: "wal", Err: fmt.Errorf("open: %w", fs.ErrPermission)}}
	if got := adviceOf(ad, ad.nextUndecided); len(got) != 1 || !strings.HasPrefix(got[0], "let this user read all files of ") {
		t.Errorf("%q", got)
	}
}

// TestNextNotPermitted: a database that this user may not read is not gone, so no other one is made in its place.
func TestNextNotPermitted(t *testing.T) {
	ad := adviceFor(evidence.KindDataDir)
	ad.Facts = []evidence.Facts{{Name: ad.Members[0].Label(),
		WAL: &evidence.WALFacts{FirstIndex: 1, LastIndex: 9, Start: dumplog.StartBootstrap}}}
	if got := adviceOf(ad, ad.nextInconclusive); len(got) < 2 {
		t.Errorf("%q", got)
	}
	ad.Members[0].Problems = []evidence.Problem{{Part: "db", Err: fmt.Errorf("open: %w", fs.ErrPermission)}}
	got := adviceOf(ad, ad.nextInconclusive)
	if len(got) != 1 || !strings.HasPrefix(got[0], "let this user read all files of ") {
		t.Errorf("%q", got)
	}
}

// TestNextHealthy: a healthy cluster's findings say what to do about them.
func TestNextHealthyRemedy(t *testing.T) {
	ad := adviceFor(evidence.KindDataDir)
	ad.Findings = []check.Finding{{Remedy: remedy("first")}, {Remedy: remedy("second")}}
	if got := adviceOf(ad, ad.nextHealthy); len(got) < 2 || got[0] != "first $" || got[1] != "second $" {
		t.Errorf("%q", got)
	}
}

// TestNextAlone: one source alone asks for the others, and for a backup where it cannot be used itself.
func TestNextAlone(t *testing.T) {
	ad := adviceFor(evidence.KindDataDir)
	ad.Findings = []check.Finding{{Check: check.C05, Remedy: remedy("of C05")},
		{Check: check.C05}, {Check: check.K01, Remedy: remedy("of K01")}}
	for _, c := range []struct {
		best *Best
		want []string
	}{
		{nil, []string{"keep this copy", "without other members", "of C05"}},
		{&Best{}, []string{"keep this copy", "without other members", "of C05"}},
		{&Best{Members: []string{"n1"}}, []string{"keep this copy", "of C05"}},
	} {
		ad.Best = c.best
		inThisOrder(t, adviceOf(ad, ad.nextAlone), c.want)
	}
}

func inThisOrder(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestNextRebuild: a backup is made from the logs if they are whole from the first entry and the best member lacks
// some of their entries.
func TestNextRebuild(t *testing.T) {
	for name, c := range map[string]struct {
		lost  int
		rp    *replay.Result
		start dumplog.StartKind
		want  bool
	}{
		"whole":               {1, &replay.Result{First: 1}, dumplog.StartBootstrap, true},
		"nothing is lost":     {0, &replay.Result{First: 1}, dumplog.StartBootstrap, false},
		"purged":              {1, &replay.Result{First: 2}, dumplog.StartBootstrap, false},
		"a gap":               {1, &replay.Result{First: 1, Gaps: make([]replay.Gap, 1)}, dumplog.StartBootstrap, false},
		"restored":            {1, &replay.Result{First: 1}, dumplog.StartRestore, false},
		"no log was replayed": {1, nil, dumplog.StartBootstrap, false},
	} {
		ad := adviceFor(evidence.KindDataDir, evidence.KindBackup)
		ad.Members[0].WAL.Log, ad.Members[0].WAL.Summary = &dumplog.Log{}, dumplog.Summary{Start: c.start}
		ad.Replay, ad.Best = c.rp, &Best{Members: []string{"n1"}, Lost: Lost{CommittedEntries: c.lost}}
		got := adviceOf(ad, ad.nextRebuild)
		if (len(got) > 0) != c.want ||
			c.want && !strings.HasSuffix(got[0], "$ etcd-medic rebuild --log n1 --to last -o rebuilt.db") {
			t.Errorf("%s: %q", name, got)
		}
		ad.Best.Lost = Lost{}
		ad.Findings = []check.Finding{{Kind: check.KindBelowCompactionAgainstLog, Members: []string{"n1"}}}
		if got := adviceOf(ad, ad.nextRebuild); (len(got) > 0) != (c.want || c.lost == 0) {
			t.Errorf("%s, the database contradicts the log: %q", name, got)
		}
		ad.Best.Lost.Mend = shell.Format("mend")
		if got := adviceOf(ad, ad.nextRebuild); len(got) > 0 {
			t.Errorf("%s, another member has the right record: %q", name, got)
		}
		ad.Best.Lost.Records = LostRecords{Count: 2, Mendable: 1}
		if got := adviceOf(ad, ad.nextRebuild); (len(got) > 0) != (c.want || c.lost == 0) {
			t.Errorf("%s, another member has one of two right records: %q", name, got)
		}
		ad.Best, ad.Findings = nil, nil
		if got := adviceOf(ad, ad.nextRebuild); len(got) > 0 {
			t.Errorf("%s, no member is best: %q", name, got)
		}
		got = adviceOf(ad, ad.nextDamage)
		if c.lost > 0 && (len(got) == 2) != c.want || !strings.HasPrefix(got[len(got)-1], "if nothing can be repaired") {
			t.Errorf("%s, damaged: %q", name, got)
		}
	}
}

// TestNextDivergence: entries after the end of the member are not called writes, since some may have no effect.
func TestNextDivergence(t *testing.T) {
	for want, lost := range map[string]Lost{
		"save the 2 committed writes that n1 is missing":  {CommittedEntries: 2},
		"save the 2 committed entries that n1 is missing": {CommittedEntries: 2, AfterEnd: 1},
	} {
		ad := adviceFor(evidence.KindDataDir, evidence.KindDataDir)
		ad.Best = &Best{Members: []string{"n1"}, Ranking: []Rank{{Member: "n1"}, {Member: "n2"}}, Lost: lost}
		got := adviceOf(ad, ad.nextDivergence)
		if !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, want) }) ||
			!strings.HasPrefix(got[0], "stop writes") {
			t.Errorf("%q, want %q", got, want)
		}
	}
	ad := adviceFor(evidence.KindDataDir)
	inThisOrder(t, adviceOf(ad, ad.nextDivergence), []string{"stop writes", "no member is usable"})
}

// TestNextMendRecords: the right records are brought back before anything is reseeded; those that no source holds are
// counted.
func TestNextMendRecords(t *testing.T) {
	ad := adviceFor(evidence.KindDataDir, evidence.KindDataDir)
	ad.Best = &Best{Members: []string{"n1"}}
	if got := adviceOf(ad, ad.nextMendRecords); len(got) > 0 {
		t.Errorf("nothing to mend: %q", got)
	}
	ad.Best.Lost = Lost{Mend: shell.Format("mend"), Records: LostRecords{Count: 3, Mendable: 3}}
	const open = "of the other 1 no database is known to hold the right one"
	if got := adviceOf(ad, ad.nextMendRecords); len(got) != 1 || strings.Contains(got[0], "no database") ||
		!strings.Contains(got[0], "mend n1: 3 of its records are") || !strings.HasSuffix(got[0], "$ mend") {
		t.Errorf("%q", got)
	}
	ad.Keep, ad.Best.Lost.Records.Mendable = "n2", 2
	if got := adviceOf(ad, ad.nextMendRecords); len(got) != 1 || !strings.Contains(got[0], "It brings back 2: "+open) ||
		!strings.Contains(got[0], "mend n2: ") {
		t.Errorf("%q", got)
	}
	ad.Best.Members = nil
	if got := adviceOf(ad, ad.nextMendRecords); len(got) > 0 {
		t.Errorf("no member is usable: %q", got)
	}
}

// TestMendsOf: which surgery fits which damage.
func TestMendsOf(t *testing.T) {
	whole := evidence.WALFacts{FirstIndex: 1, LastIndex: 9}
	purged := evidence.WALFacts{FirstIndex: 5, LastIndex: 9}
	restored := evidence.WALFacts{FirstIndex: 1, LastIndex: 9, Start: dumplog.StartRestore}
	damaged := evidence.WALFacts{FirstIndex: 1, LastIndex: 9, Damage: make([]evidence.DamageFacts, 1)}
	metas, forgot := &evidence.DBFacts{Metas: make([]dumpdb.Meta, 2)}, &boot.Range{From: 5, To: 6}
	const wal, db = "the log of n (repair wal)", "the database of n (repair db --rebuild)"
	for name, c := range map[string]struct {
		wal     *evidence.WALFacts
		db      *evidence.DBFacts
		forgot  *boot.Range
		members int
		want    string
	}{
		"no log":                         {nil, metas, nil, 1, ""},
		"database":                       {&purged, metas, nil, 1, db},
		"log":                            {&damaged, metas, nil, 1, wal},
		"end of the log, others have it": {&whole, metas, forgot, 2, wal},
		"end of the log, alone":          {&whole, metas, forgot, 1, ""},
		"no database, whole log":         {&whole, nil, nil, 1, db},
		"no meta page, whole log":        {&whole, &evidence.DBFacts{}, nil, 1, db},
		"no database, purged log":        {&purged, nil, nil, 1, ""},
		"no meta page, purged log":       {&purged, &evidence.DBFacts{}, nil, 1, ""},
		"no database, restored":          {&restored, nil, nil, 1, ""},
	} {
		ad := adviceFor(make([]evidence.Kind, c.members)...)
		f := &evidence.Facts{Name: "n", WAL: c.wal, DB: c.db}
		if got := ad.mendsOf(f, &boot.Answer{Forgot: c.forgot}); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestContinued: another log continues from the end of a member if it has the next entry and reaches the commit index.
func TestContinued(t *testing.T) {
	for name, c := range map[string]struct {
		first, last, applied uint64
		want                 bool
	}{
		"the next entry":       {10, 12, 9, true},
		"one is missing":       {11, 12, 9, false},
		"not to the commit":    {10, 11, 9, false},
		"further than needed":  {1, 20, 9, true},
		"from what it applied": {11, 12, 10, true},
	} {
		rk := rankingOf(evidence.KindDataDir, evidence.KindDataDir, evidence.KindBackup)
		m, o := rk.Members[0], rk.Members[1]
		m.DB = &evidence.DB{Handle: &dumpdb.DB{}}
		m.DB.Meta.ConsistentIndex = &c.applied
		for _, x := range []*evidence.Member{m, o} {
			x.WAL.Log = &dumplog.Log{}
			x.WAL.Summary.FirstIndex, x.WAL.Summary.LastIndex = 1, 9
		}
		if rk.continued(m, 9) != true || rk.continued(m, 12) {
			t.Errorf("%s: a log that ends at 9 continues up to 12, or does not reach 9", name)
		}
		o.WAL.Summary.FirstIndex, o.WAL.Summary.LastIndex = c.first, c.last
		if got := rk.continued(m, 12); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
		m.WAL.Summary.LastIndex = 12
		if o.WAL = (evidence.WAL{}); rk.continued(m, 12) {
			t.Errorf("%s: a member continues itself", name)
		}
	}
}

// TestNextUpgrade: the first cause with a release that not all members have says to upgrade, once.
func TestNextUpgrade(t *testing.T) {
	fixed, err := release.ParseRange("3.5.6 and later")
	if err != nil {
		t.Fatal(err)
	}
	for minor, want := range map[int]int{5: 1, 7: 0} {
		ad := adviceFor(evidence.KindDataDir)
		ad.Members[0].Version = evidence.Version{Minor: minor}
		ad.Causes = []Cause{{}, {FixedIn: []release.Range{fixed}}, {FixedIn: []release.Range{fixed}}}
		if got := adviceOf(ad, ad.nextUpgrade); len(got) != want || want > 0 && !strings.Contains(got[0], "3.5.6") {
			t.Errorf("3.%d: %q", minor, got)
		}
	}
}

// TestForcedSides: the logs part at a forced start if exactly two versions exist at an index that it wrote.
func TestForcedSides(t *testing.T) {
	for name, c := range map[string]struct {
		first, last uint64
		versions    int
		want        bool
	}{
		"inside":         {6, 8, 2, true},
		"its first":      {7, 8, 2, true},
		"its last":       {6, 7, 2, true},
		"after":          {5, 6, 2, false},
		"before":         {8, 9, 2, false},
		"three versions": {6, 8, 3, false},
	} {
		rk := rankingOf(evidence.KindDataDir, evidence.KindDataDir)
		rk.Replay.LogDiffs = []replay.LogDiff{{Index: 7, Versions: [][]int{{0}, {1}, {2}}[:c.versions]}}
		rk.Replay.Forced = []replay.Forced{{First: c.first, Last: c.last}}
		if run, sides := rk.separateHistories().forcedSides(); (run != nil) != c.want || (len(sides) == 2) != c.want {
			t.Errorf("%s: %+v, %v", name, run, sides)
		}
		rk.Replay.LogDiffs = nil
		if run, _ := rk.separateHistories().forcedSides(); run != nil {
			t.Errorf("%s, equal logs: %+v", name, run)
		}
	}
	rk := rankingOf(evidence.KindDataDir)
	rk.Replay = nil
	if run, _ := rk.separateHistories().forcedSides(); run != nil || len(rk.separateHistories().list()) > 0 {
		t.Error("histories without a log")
	}
}

// TestOlderCopiesAreNotStarted: a member that lags is started, but not on an older copy of its data dir.
func TestOlderCopiesAreNotStarted(t *testing.T) {
	lag := func(names ...string) check.Finding {
		return check.Finding{Kind: check.KindMemberLags, Class: check.ClassLagging, Members: names}
	}
	older := func(kind check.Kind) check.Finding {
		return check.Finding{Kind: kind, Members: []string{"b"}, Remedy: remedy("copy b again")}
	}
	for name, c := range map[string]struct {
		findings []check.Finding
		want     []string
	}{
		"it lags":           {[]check.Finding{lag("b")}, []string{"start the lagging member; it catches up by itself"}},
		"it served more":    {[]check.Finding{lag("b"), older(check.KindLogEndsBeforeServed)}, []string{"copy b again"}},
		"it voted later":    {[]check.Finding{lag("b"), older(check.KindVoteMissing)}, []string{"copy b again"}},
		"a copy of another": {[]check.Finding{lag("b"), older(check.KindOlderCopy)}, []string{"copy b again"}},
		"another one lags": {[]check.Finding{lag("a"), lag("b"), older(check.KindOlderCopy)},
			[]string{"copy b again", "start the lagging member; it catches up by itself"}},
	} {
		ad := adviceFor(evidence.KindDataDir, evidence.KindDataDir)
		ad.Findings, ad.Verdict = c.findings, Verdict{Class: check.ClassLagging}
		var got []string
		ad.nextHealthy(func(text string, _ shell.Command) { got = append(got, text) })
		if len(got) > 0 && strings.HasPrefix(got[len(got)-1], "nothing to repair") {
			got = got[:len(got)-1]
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestTornCopiesAreCopiedAgain: a set that is not healthy never has nothing to repair.
func TestTornCopiesAreCopiedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		remedy []check.Remedy
		want   string
	}{
		"no remedy": {nil, "copy b again, with its server stopped, and diagnose the new copy with the others. If its " +
			"host holds exactly this, start no server on it: the plan replaces it"},
		"a remedy": {remedy("collect b"), "collect b"},
	} {
		ad := adviceFor(evidence.KindDataDir, evidence.KindDataDir)
		ad.Verdict = Verdict{Class: check.ClassTornCopy}
		ad.Findings = []check.Finding{{Class: check.ClassTornCopy, Severity: check.Error, Members: []string{"b"},
			Remedy: c.remedy}}
		ad.nextTorn(func(text string, command shell.Command) {
			ad.Next = append(ad.Next, Next{Text: text, Command: command})
		})
		if len(ad.Next) == 0 || ad.Next[0].Text != c.want {
			t.Errorf("%s: %+v, want %q", name, ad.Next, c.want)
		}
	}
}
