package verdict

import (
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/release"
)

// openRows is a ranking of three members of whom the first two hold a row of bucket authRoles differently, and an
// undecided finding about it.
func openRows() (*ranking, *check.Finding) {
	rk := rankingOf(make([]evidence.Kind, 3)...)
	x, y := &diff.Cell{Text: "x"}, &diff.Cell{Text: "y"}
	rk.Diff = &diff.Result{Members: rk.Members, NotCompared: map[int]string{}, KeysNotCompared: map[int]string{},
		Buckets: []diff.Bucket{{Name: "authRoles", Rows: []diff.Row{{Key: []byte("q"), Cells: []*diff.Cell{x, x, y}},
			{Key: []byte("r"), Cells: []*diff.Cell{x, y, y}}}}}}
	f := &check.Finding{Undecided: true, Severity: check.Error, Kind: check.KindRowsDiffer, Title: "roles differ",
		Members:  []string{"n1", "n2", "n3"},
		Evidence: []check.Evidence{{Bucket: "authRoles", Key: check.Bytes("r")}}}
	rk.Findings = []check.Finding{*f}
	return rk, f
}

// TestLeavesOpen: a finding leaves open which of some members is right if it does not decide it, is an error, and names
// a row that these members hold differently.
func TestLeavesOpen(t *testing.T) {
	for name, c := range map[string]struct {
		change func(rk *ranking, f *check.Finding)
		at     []int
		want   bool
	}{
		"two that differ":      {nil, []int{0, 1}, true},
		"two that do not":      {nil, []int{1, 2}, false},
		"one":                  {nil, []int{0}, false},
		"none":                 {nil, nil, false},
		"all":                  {nil, []int{0, 1, 2}, true},
		"decided":              {func(_ *ranking, f *check.Finding) { f.Undecided = false }, []int{0, 1}, false},
		"a warning":            {func(_ *ranking, f *check.Finding) { f.Severity = check.Warning }, []int{0, 1}, false},
		"critical":             {func(_ *ranking, f *check.Finding) { f.Severity = check.Critical }, []int{0, 1}, true},
		"of another kind":      {func(_ *ranking, f *check.Finding) { f.Kind = "" }, []int{0, 1}, false},
		"no evidence":          {func(_ *ranking, f *check.Finding) { f.Evidence = nil }, []int{0, 1}, false},
		"nothing was compared": {func(rk *ranking, _ *check.Finding) { rk.Diff = nil }, []int{0, 1}, false},
		"of no bucket":         {func(_ *ranking, f *check.Finding) { f.Evidence[0].Bucket = "auth" }, []int{0, 1}, false},
		"of another row":       {func(_ *ranking, f *check.Finding) { f.Evidence[0].Key = check.Bytes("q") }, []int{0, 1}, false},
		"of another row that differs": {func(_ *ranking, f *check.Finding) { f.Evidence[0].Key = check.Bytes("q") },
			[]int{0, 2}, true},
		"of both rows": {func(_ *ranking, f *check.Finding) {
			f.Evidence = append(f.Evidence, check.Evidence{Bucket: "authRoles", Key: check.Bytes("q")})
		}, []int{1, 2}, true},
		"one lacks it": {func(rk *ranking, _ *check.Finding) { rk.Diff.Buckets[0].Rows[1].Cells[0] = nil },
			[]int{0, 1}, true},
		"the other lacks it": {func(rk *ranking, _ *check.Finding) { rk.Diff.Buckets[0].Rows[1].Cells[1] = nil },
			[]int{0, 1}, true},
		"both lack it": {func(rk *ranking, _ *check.Finding) { clear(rk.Diff.Buckets[0].Rows[1].Cells) },
			[]int{0, 1}, false},
		"one was not compared": {func(rk *ranking, _ *check.Finding) { rk.Diff.Buckets[0].Rows[1].Out = []int{0} },
			[]int{0, 1}, false},
		"one of three was not compared": {func(rk *ranking, _ *check.Finding) {
			rk.Diff.Buckets[0].Rows[1].Out = []int{0}
		}, []int{0, 1, 2}, false},
		"auth revisions": {func(_ *ranking, f *check.Finding) { f.Kind = check.KindAuthRevisionsDiffer }, []int{0, 1}, true},
		"auth revisions that the log gives": {func(rk *ranking, f *check.Finding) {
			f.Kind = check.KindAuthRevisionsDiffer
			rk.Replay.Members[2].Checked, rk.Replay.Members[2].AuthKnown = true, true
		}, []int{0, 1}, false},
		"rows, and the log gives auth revisions": {func(rk *ranking, _ *check.Finding) {
			rk.Replay.Members[2].Checked, rk.Replay.Members[2].AuthKnown = true, true
		}, []int{0, 1}, true},
	} {
		rk, f := openRows()
		if c.change != nil {
			c.change(rk, f)
		}
		if got := rk.leavesOpen(f, c.at); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

// TestLogGivesAuth: the log gives the auth revision if it does for one member that was replayed.
func TestLogGivesAuth(t *testing.T) {
	for _, c := range []struct{ checked, known, want bool }{{true, true, true}, {true, false, false},
		{false, true, false}} {
		rk := rankingOf(evidence.KindDataDir, evidence.KindDataDir)
		rk.Replay.Members[1].Checked, rk.Replay.Members[1].AuthKnown = c.checked, c.known
		if got := rk.logGivesAuth(); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
	if (&ranking{&Input{Input: &check.Input{}}}).logGivesAuth() {
		t.Error("without a log")
	}
}

// TestOpenFor: for a member, the findings that name it and leave open who is right.
func TestOpenFor(t *testing.T) {
	rk, f := openRows()
	f.Members = f.Members[:2]
	decided := *f
	decided.Undecided = false
	rk.Findings = []check.Finding{*f, decided}
	for pos, want := range []int{1, 1, 0} {
		got := rk.openFor(pos)
		if len(got) != want || want > 0 && got[0] != "roles differ: which member is right is not proven" {
			t.Errorf("n%d: %q", pos+1, got)
		}
	}
}

// TestUndecided: what the best members hold differently, the gravest first: live keys, superseded records, rows.
func TestUndecided(t *testing.T) {
	at := func(mod int64, sum string) *diff.Cell { return &diff.Cell{Mod: mod, ValueDigest: sum} }
	keys := func(rk *ranking, rows ...[]*diff.Cell) {
		b := diff.Bucket{Name: "key", Equal: release.No}
		for i, cells := range rows {
			b.Rows = append(b.Rows, diff.Row{Key: []byte{byte('a' + i)}, Cells: cells})
		}
		rk.Diff.Buckets = append(rk.Diff.Buckets, b)
	}
	record := diff.RecordRow{Rev: dumpdb.Rev{Main: 4}, At: []int{0, 1, 2}, Cells: []*diff.RecordCell{{Sum: "a"}, {Sum: "b"},
		{Sum: "a"}}}
	const end = ", and nothing in the sources shows which of them is right. What would: "
	const rows = "roles differ" + end + "a log that reaches further back, or an earlier backup"
	for name, c := range map[string]struct {
		change func(rk *ranking, k *keptRecords)
		best   []int
		kept   int
		want   string
	}{
		"rows":        {nil, []int{0, 1}, 0, rows},
		"one is best": {nil, []int{0}, 0, ""},
		"equal rows":  {nil, []int{1, 2}, 1, ""},
		"no findings": {func(rk *ranking, _ *keptRecords) { rk.Findings = nil }, []int{0, 1}, 0, ""},
		"a live key": {func(rk *ranking, _ *keptRecords) {
			keys(rk, []*diff.Cell{at(7, "x"), at(5, "y"), at(7, "x")})
		}, []int{0, 1}, 0, "1 live key differs between them" + end + "a log that reaches back to revision 5, or a backup " +
			"that was taken soon after it"},
		"a live key that the best hold alike": {func(rk *ranking, _ *keptRecords) {
			keys(rk, []*diff.Cell{at(7, "x"), at(5, "y"), at(7, "x")})
		}, []int{0, 2}, 0, rows},
		"a live key that one lacks": {func(rk *ranking, _ *keptRecords) {
			keys(rk, []*diff.Cell{at(7, "x"), nil, nil}, []*diff.Cell{nil, at(9, "x"), nil})
		}, []int{0, 1}, 0, "2 live keys differ between them" + end + "a log that reaches back to revision 7, or a backup " +
			"that was taken soon after it"},
		"a live key of one that was not compared": {func(rk *ranking, _ *keptRecords) {
			keys(rk, []*diff.Cell{nil, at(5, "y"), at(5, "y")})
			rk.Diff.KeysNotCompared[0] = "it lags"
		}, []int{0, 1}, 0, rows},
		"a live key that is decided": {func(rk *ranking, k *keptRecords) {
			keys(rk, []*diff.Cell{at(7, "x"), at(5, "y"), at(7, "x")})
			k.decided["a"] = true
		}, []int{0, 1}, 0, rows},
		"a record": {func(_ *ranking, k *keptRecords) { k.open, k.named = 2, []diff.RecordRow{record} }, []int{0, 1}, 0,
			"2 superseded records differ between members" + end + "a log that reaches back to revision 4, or a backup that " +
				"was taken soon after it"},
		"a record of one that is not best": {func(_ *ranking, k *keptRecords) {
			k.open, k.named = 1, []diff.RecordRow{record}
		}, []int{0, 2}, 0, rows},
		"a record, and another member is kept": {func(_ *ranking, k *keptRecords) {
			k.open, k.named = 1, []diff.RecordRow{record}
		}, []int{0, 2}, 1, rows},
	} {
		rk, _ := openRows()
		k := &keptRecords{decided: map[string]bool{}}
		if c.change != nil {
			c.change(rk, k)
		}
		if c.best[len(c.best)-1] == 2 && c.best[0] == 0 {
			rk.Findings[0].Evidence[0].Key = check.Bytes("q") // the row in which these differ
		}
		if got := rk.undecided(c.best, c.kept, k); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestHoldOther: who holds another version of a record, or lacks it, among those that were compared there.
func TestHoldOther(t *testing.T) {
	rk := rankingOf(make([]evidence.Kind, 5)...)
	cell := func(sum, text string) *diff.RecordCell { return &diff.RecordCell{Sum: sum, Text: text} }
	row := &diff.RecordRow{At: []int{0, 1, 2, 3}, Cells: []*diff.RecordCell{cell("a", "x"), cell("b", "x"), cell("a", "y"),
		nil, cell("c", "z")}}
	for pos, want := range []string{"n2 n3 n4", "n1 n3 n4", "n1 n2 n4", "n1 n2 n3"} {
		if got := strings.Join(rk.holdOther(row, pos), " "); got != want {
			t.Errorf("n%d: %s, want %s", pos+1, got, want)
		}
	}
	row.Cells[1] = cell("a", "x")
	if got := rk.holdOther(row, 0); !slices.Equal(got, []string{"n3", "n4"}) {
		t.Errorf("%q", got)
	}
}

// TestAgainstOneLog: an entry of one log that the member's database contradicts, as others do.
func TestAgainstOneLog(t *testing.T) {
	rk := rankingOf(evidence.KindDataDir, evidence.KindDataDir, evidence.KindDataDir)
	rk.Replay.Doubted = []replay.Doubted{{Index: 5, Logs: []int{2}, Against: []int{1}},
		{Index: 7, Logs: []int{2}, Against: []int{0, 1}}}
	for pos, want := range []string{"entry 7 is in one log only, and n1 ", "entry 5 is in one log only, and n2 ", ""} {
		if got := rk.againstOneLog(pos); (got == "") != (want == "") || !strings.HasPrefix(got, want) {
			t.Errorf("n%d: %q, want %q", pos+1, got, want)
		}
	}
	rk.Replay.Doubted[0].Logs = []int{0, 2}
	if got, want := rk.againstOneLog(1), "entry 5 is in 2 logs only, and n2 "; !strings.HasPrefix(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if rk.Replay = nil; rk.againstOneLog(0) != "" {
		t.Error("without a log")
	}
}

// TestComparedWith: members are compared by their keys, or by the log that was replayed on the other one.
func TestComparedWith(t *testing.T) {
	for name, c := range map[string]struct {
		change func(rk *ranking)
		want   bool
	}{
		"keys":             {func(*ranking) {}, true},
		"keys that differ": {func(rk *ranking) { rk.Diff.Buckets[0].Equal = release.No }, true},
		"keys, unknown":    {func(rk *ranking) { rk.Diff.Buckets[0].Equal = release.Unknown }, false},
		"no keys":          {func(rk *ranking) { rk.Diff.Buckets = nil }, false},
		"apart":            {func(rk *ranking) { rk.Diff.KeysNotCompared[0] = "it lags" }, false},
		"the other apart":  {func(rk *ranking) { rk.Diff.KeysNotCompared[1] = "it lags" }, false},
		"a third apart":    {func(rk *ranking) { rk.Diff.KeysNotCompared[2] = "it lags" }, true},
		"not at all":       {func(rk *ranking) { rk.Diff = nil }, false},
		"no log":           {func(rk *ranking) { rk.Diff, rk.Replay = nil, nil }, false},
		"by the log": {func(rk *ranking) {
			rk.Diff, rk.Replay.Members[0].Checked, rk.Replay.Members[1].Checked = nil, true, true
			rk.Replay.First, rk.Replay.Last, rk.Members[1].AppliedMin = 1, 9, 9
		}, true},
		"by a purged log": {func(rk *ranking) {
			rk.Diff, rk.Replay.Members[0].Checked, rk.Replay.Members[1].Checked = nil, true, true
			rk.Replay.First, rk.Replay.Last, rk.Members[1].AppliedMin = 5, 9, 9
		}, false},
		"by the log of the other": {func(rk *ranking) { rk.Diff, rk.Replay.Members[1].Checked = nil, true }, false},
		"by its own log":          {func(rk *ranking) { rk.Diff, rk.Replay.Members[0].Checked = nil, true }, false},
		"no database":             {func(rk *ranking) { rk.Diff, rk.Members[1].DB = nil, nil }, true},
	} {
		rk := rankingOf(evidence.KindDataDir, evidence.KindDataDir, evidence.KindDataDir)
		for _, m := range rk.Members {
			m.DB = &evidence.DB{Handle: &dumpdb.DB{}}
		}
		rk.Diff = &diff.Result{Members: rk.Members, NotCompared: map[int]string{}, KeysNotCompared: map[int]string{},
			Buckets: []diff.Bucket{{Name: "key", Equal: release.Yes}}}
		c.change(rk)
		if got := rk.comparedWith(0, 1); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}
