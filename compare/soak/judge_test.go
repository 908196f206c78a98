package soak

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// answer reads an answer from the words of a document.
func answer(t *testing.T, doc string) *Answer {
	t.Helper()
	a := decode([]byte(doc))
	if a.Failure != "" {
		t.Fatal(a.Failure)
	}
	return a
}

const (
	saysHealthy = `{"verdict":{"healthy":true,"class":"healthy"},"best":{"members":["a","b","c"],"ranking":[{"member":"a","usable":true},{"member":"b","usable":true},{"member":"c","usable":true}]}}`
	saysUnknown = `{"verdict":{"healthy":null,"class":"inconclusive","summary":"no log"}}`
	blamesA     = `{"verdict":{"healthy":false,"class":"db-damage"},"findings":[{"id":"D02-1","severity":"error","members":["a"]}],
		"best":{"members":["b","c"],"ranking":[{"member":"b","usable":true},{"member":"c","usable":true},{"member":"a"}]}}`
	blamesB = `{"verdict":{"healthy":false,"class":"wal-damage"},"findings":[{"id":"W01-1","severity":"error","members":["b"]},{"id":"W02-1","severity":"warning","members":["c"]}],
		"causes":[{"id":"x","certainty":"proof","members":["b"]},{"id":"y","certainty":"hint","members":["c"]},{"id":"z","certainty":"proof","members":["c"],"aside":true}],
		"best":{"members":["a"],"ranking":[{"member":"a","usable":true},{"member":"c","usable":true,"lacks":{"committedEntries":2}},{"member":"b","usable":false}]}}`
	ranksAFirst = `{"verdict":{"healthy":false,"class":"db-damage"},"best":{"members":["c"],"ranking":[{"member":"c","usable":true},{"member":"a","usable":true},{"member":"b","usable":true}]}}`
)

func TestJudge(t *testing.T) {
	three := []Source{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	healthy := Truth{Kind: healthyKind, Healthy: true}
	damaged := Truth{Kind: "page", Damaged: []string{"a"}, Classes: []string{"db-damage"}}
	with := func(t Truth, edit func(*Truth)) Truth { edit(&t); return t }
	for _, tc := range []struct {
		name, doc string
		truth     Truth
		want      string
	}{
		{"healthy, told so", saysHealthy, healthy, ""},
		{"healthy, alarm", blamesA, healthy, "false alarm, wrong member, wrong member"},
		{"healthy, not known", saysUnknown, healthy, "inconclusive"},
		{"damaged, right", blamesA, damaged, ""},
		{"damaged, missed", saysHealthy, damaged, "missed, wrong best"},
		{"damaged, may share the first place", saysHealthy, with(damaged, func(t *Truth) { t.MayShareBest = true }),
			"missed"},
		{"damaged, not known", saysUnknown, damaged, "inconclusive"},
		{"damaged, may be inconclusive", saysUnknown, with(damaged, func(t *Truth) { t.MayBeInconclusive = true }), ""},
		{"cannot be shown, called healthy", saysHealthy,
			with(damaged, func(t *Truth) { t.Unprovable, t.AnyBest = true, true }), ""},
		{"cannot be shown, not known", saysUnknown, with(damaged, func(t *Truth) { t.Unprovable = true }), ""},
		{"damaged, another accused", blamesB, damaged, "wrong class, wrong member, wrong member, wrong member, wrong " +
			"member, wrong best"},
		{"damaged, who is accused is open", blamesB,
			with(damaged, func(t *Truth) { t.AnyAccused, t.AnyBest, t.Classes = true, true, nil }), ""},
		{"damaged, ranked above a sound one", ranksAFirst, damaged, "wrong best"},
		{"damaged without a loss, ranked above a sound one", ranksAFirst,
			with(damaged, func(t *Truth) { t.MayShareBest = true }), ""},
	} {
		c := &Case{Sources: three, Truth: tc.truth}
		var got []string
		for _, p := range Judge(c, answer(t, tc.doc)) {
			got = append(got, string(p.Sort))
		}
		if s := strings.Join(got, ", "); s != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, s, tc.want)
		}
	}
	if got := Judge(&Case{Sources: three}, &Answer{Failure: "panic"}); len(got) != 1 || got[0].Sort != Failed {
		t.Errorf("a failure gives %v", got)
	}
}

func TestSingleSourceAccusesNobodyElse(t *testing.T) {
	c := &Case{Sources: []Source{{Name: "a"}}, Truth: Truth{Damaged: []string{"a"}}}
	if got := Judge(c, answer(t, blamesA)); len(got) != 0 {
		t.Error(got)
	}
}

func TestBestLacksNothing(t *testing.T) {
	healthy := Truth{Kind: healthyKind, Healthy: true}
	c := &Case{Sources: []Source{{Name: "a", Lags: true, Behind: true}, {Name: "b"}, {Name: "c"}}, Truth: healthy}
	if got := Judge(c, answer(t, saysHealthy)); len(got) != 1 || got[0].Sort != WrongBest {
		t.Errorf("a member that lacks writes shares the first place: %v", got)
	}
	c.Sources[0].Behind = false
	if got := Judge(c, answer(t, saysHealthy)); len(got) != 0 {
		t.Error(got)
	}
	const nobody = `{"verdict":{"healthy":true,"class":"healthy"},"best":{"members":[],"ranking":[]}}`
	if got := Judge(c, answer(t, nobody)); len(got) != 1 || got[0].Sort != WrongBest {
		t.Errorf("nobody is best: %v", got)
	}
}

func TestLaggingMemberIsNoMeasureForBest(t *testing.T) {
	c := &Case{Sources: []Source{{Name: "a"}, {Name: "b", Lags: true}, {Name: "c", Aged: true}},
		Truth: Truth{Damaged: []string{"a"}, Classes: []string{"db-damage"}}}
	if got := Judge(c, answer(t, ranksAFirst)); len(got) != 0 {
		t.Error(got)
	}
}

func TestOrderMustNotMatter(t *testing.T) {
	two := []Source{{Name: "a", Path: t.TempDir()}, {Name: "b", Path: t.TempDir()}}
	turns := 0
	problems := Examine(&Case{Seed: 1, Name: "x", Sources: two, Truth: Truth{Healthy: true}}, func(s []Source) *Answer {
		turns++
		if s[0].Name == "a" {
			return answer(t, saysHealthy)
		}
		return answer(t, saysUnknown)
	})
	if len(problems) != 1 || problems[0].Sort != Order || turns != 2 {
		t.Errorf("after %d diagnoses: %v", turns, problems)
	}
}

func TestDiagnosisThatWritesIsSeen(t *testing.T) {
	dir := t.TempDir()
	problems := Examine(&Case{Sources: []Source{{Name: "a", Path: dir}}, Truth: Truth{Healthy: true}},
		func([]Source) *Answer {
			if err := os.WriteFile(filepath.Join(dir, "lock"), nil, 0o600); err != nil {
				t.Error(err)
			}
			return answer(t, saysHealthy)
		})
	if len(problems) != 1 || problems[0].Sort != Failed {
		t.Error(problems)
	}
}

func TestTable(t *testing.T) {
	table := NewTable()
	fault := Case{Seed: 17, Name: "page-zero/all", Shape: "kube", Line: "3.6.16",
		Truth: Truth{Kind: "page-zero", What: "page 7 is zeros", Damaged: []string{"node2"}}}
	table.Add(fault, []Problem{{Missed, "healthy"}, {WrongBest, "node2"}, {WrongBest, "again"}})
	fine := fault
	fine.Truth.Kind, fine.Name = "page-random", "page-random/all"
	table.Add(fine, nil)
	table.Add(Case{Seed: 2, Name: "healthy/all", Line: "3.4.3", Truth: Truth{Kind: healthyKind}}, nil)
	table.Broken(9, "a server ended")
	var b bytes.Buffer
	if err := table.Write(&b); err != nil {
		t.Fatal(err)
	}
	out := b.String()
	var rows []string
	for _, l := range strings.Split(out, "\n") {
		if f := strings.Fields(l); len(f) > 3 && slices.Contains([]string{"healthy", "page-zero", "page-random", "all"},
			f[0]) {
			rows = append(rows, strings.Join(f, " "))
		}
	}
	want := []string{"healthy 3.4.3 1 0 0 0 0 0 0 0 0 0", "page-zero 3.6.16 1 0 0 1 0 0 1 0 0 0",
		"all 3 0 0 1 0 0 1 0 0 0"}
	if !slices.Equal(rows, want) {
		t.Errorf("got rows\n%s\nin\n%s", strings.Join(rows, "\n"), out)
	}
	for _, s := range []string{"make soak SEEDS=17 CASE=page-zero/all", "truth: page 7 is zeros (damaged: node2)",
		"no history: seed 9: a server ended"} {
		if !strings.Contains(out, s) {
			t.Errorf("%q is not in\n%s", s, out)
		}
	}
	if wrong, judged := table.Wrong(); wrong != 1 || judged != 3 {
		t.Errorf("%d of %d are wrong", wrong, judged)
	}
}

func TestKeptCaseIsJudgedAgain(t *testing.T) {
	root, src := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(src, "file"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := Case{Seed: 3, Name: "healthy/node1", Line: "3.6.16", Sources: []Source{{Name: "node1", Path: src}},
		Truth: Truth{Kind: healthyKind, Healthy: true}}
	if err := Keep(root, c, []Problem{{FalseAlarm, "K03-1"}}, &Collected{Log: []string{"put"}}); err != nil {
		t.Fatal(err)
	}
	table, paths := NewTable(), []string{}
	err := Again(root, Config{Table: table, Diagnose: func(s []Source) *Answer {
		paths = append(paths, s[0].Path)
		return answer(t, saysUnknown)
	}})
	if err != nil {
		t.Fatal(err)
	}
	if wrong, judged := table.Wrong(); wrong != 1 || judged != 1 {
		t.Errorf("%d of %d are wrong", wrong, judged)
	}
	if b, err := os.ReadFile(filepath.Join(paths[0], "file")); err != nil || string(b) != "x" {
		t.Errorf("the kept source: %q, %v", b, err)
	}
	if err := Again(t.TempDir(), Config{Table: table}); err == nil {
		t.Error("an empty folder gives no error")
	}
}
