package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/repair/run"
	"github.com/etcd-medic/etcd-medic/shell"
)

// planWith copies a plan and writes a journal beside it.
func planWith(t *testing.T, records ...run.Record) (file string, p *plan.Plan) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "plan.yaml")
	if err := os.WriteFile(file, []byte(read(t, "../../../../repair/plan/testdata/plans/a-auth-revision-replay.yaml")),
		0o600); err != nil {
		t.Fatal(err)
	}
	p, err := plan.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	for i, r := range records {
		r.Time = time.Date(2026, 3, 4, 10, 0, i, 0, time.UTC)
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(b, '\n'))
	}
	if len(records) > 0 {
		if err := os.WriteFile(run.JournalPath(file), []byte(lines.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return file, p
}

// reportPlan runs report on a plan and returns what was written.
func reportPlan(t *testing.T, plan, ext string) (code int, text string) {
	t.Helper()
	s, _, stderr := streams(nil)
	out := filepath.Join(t.TempDir(), "out"+ext)
	code = Main(t.Context(), []string{"report", plan, "-o", out}, s)
	if code == ExitError || code == ExitUsage {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	return code, read(t, out)
}

// TestPlanChecklist: the page of a plan has every step with its undo; those that the journal says are done are ticked,
// with their time, and a rehearsal ticks nothing.
func TestPlanChecklist(t *testing.T) {
	plain, p := planWith(t)
	steps := p.Way(p.Mode).Steps
	for _, ext := range []string{".html", ".md"} {
		code, text := reportPlan(t, plain, ext)
		if code != ExitDone || !strings.Contains(text, "not begun") ||
			strings.Contains(text, "input type=\"checkbox\" checked") || strings.Contains(text, "- [x]") {
			t.Errorf("%s: exit %d, or steps of a plan that was not begun are ticked", ext, code)
		}
		for _, s := range steps {
			if !strings.Contains(strings.ReplaceAll(text, "\\_", "_"), strings.ReplaceAll(s.Title, "'", "&#39;")) &&
				ext == ".html" {
				t.Errorf("%s does not have step %q", ext, s.Title)
			}
		}
		if n := strings.Count(text, "undo"); n < len(steps) {
			t.Errorf("%s: %d undos for %d steps", ext, n, len(steps))
		}
	}
	rehearsed, _ := planWith(t, run.Record{Run: 1, Mode: "rehearse", State: run.StateRun},
		run.Record{Run: 1, Mode: "rehearse", State: run.StateDone, Step: steps[0].ID},
		run.Record{Run: 1, Mode: "rehearse", State: run.StateEnd})
	if code, text := reportPlan(t, rehearsed, ".html"); code != ExitDone ||
		!strings.Contains(text, "rehearsed, reached") || strings.Contains(text, `type="checkbox" checked`) {
		t.Errorf("a rehearsal: exit %d", code)
	}
	half, _ := planWith(t, run.Record{Run: 1, Mode: p.Mode, State: run.StateRun},
		run.Record{Run: 1, Mode: p.Mode, State: run.StateBegin, Step: steps[0].ID},
		run.Record{Run: 1, Mode: p.Mode, State: run.StateDone, Step: steps[0].ID, Seconds: 1.5},
		run.Record{Run: 1, Mode: p.Mode, State: run.StateBegin, Step: steps[1].ID},
		run.Record{Run: 1, Mode: p.Mode, State: run.StateFailed, Step: steps[1].ID, Detail: "<b>no leader</b>"})
	code, text := reportPlan(t, half, ".html")
	if n := strings.Count(text, `type="checkbox" checked`); code != ExitUnfinished || n != 1 {
		t.Errorf("exit %d, %d steps are ticked, want 1", code, n)
	}
	for _, want := range []string{"2026-03-04 10:00:02 UTC, 1.5 s", "&lt;b&gt;no leader", "run 1, live: failed",
		"1 of 20 steps are done"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if _, text := reportPlan(t, half, ".md"); strings.Count(text, "- [x] **1. ") != 1 ||
		!strings.Contains(text, "(failed 2026-03-04 10:00:04 UTC") {
		t.Errorf("the list of tasks: %.3000s", text)
	}
}

// TestPlanChecklistUsage: only a plan is a plan, and a checklist is a page or a list.
func TestPlanChecklistUsage(t *testing.T) {
	plan, _ := planWith(t)
	dir := t.TempDir()
	taken := filepath.Join(dir, "taken.html")
	edited := filepath.Join(dir, "edited.yaml")
	for file, content := range map[string]string{taken: "x",
		edited: strings.Replace(read(t, plan), "node3", "node1", 1)} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		plan, out string
		want      int
	}{{plan, "x.json", ExitUsage}, {plan, "x.pdf", ExitUsage}, {plan, "taken.html", ExitRefused},
		{edited, "edited.html", ExitRefused}, {filepath.Join(dir, "none.yaml"), "none.html", ExitUsage}} {
		s, _, stderr := streams(nil)
		if code := Main(t.Context(), []string{"report", c.plan, "-o", filepath.Join(dir, c.out)}, s); code != c.want {
			t.Errorf("%s to %s: exit %d, want %d: %s", c.plan, c.out, code, c.want, stderr)
		}
	}
}

// TestOtherWaysOfRehearsals: a plan that can only be rehearsed shows no way that cannot be applied, in no form.
func TestOtherWaysOfRehearsals(t *testing.T) {
	ways := []plan.Way{{Mode: plan.Live, Why: "no quorum"}, {Mode: plan.Clone, Possible: true, Why: "as if lost"}}
	for mode, shown := range map[plan.Mode]bool{plan.RehearseOnly: false, plan.Reseed: true} {
		p := &plan.Plan{Mode: mode, Tries: plan.Clone, Ways: ways}
		var titles []string
		for _, s := range planSheet(p, "plan.yaml").Sections {
			titles = append(titles, s.Title)
		}
		more := planAnswer(p, "plan.yaml").More
		others := checklist(p, &run.Standing{}, nil).Other
		if slices.Contains(titles, "other ways") != shown || strings.Contains(more, "other way") != shown ||
			len(others) > 0 != shown {
			t.Errorf("%s: sections %q, more %q, others %q", mode, titles, more, others)
		}
	}
}

// TestOutcomeSaysWhatIsLeft: first and last line of a run say what only members held that were taken out, and the
// command that shows it comes first; so does the step that failed.
func TestOutcomeSaysWhatIsLeft(t *testing.T) {
	script, compare := "/p/plan.yaml.only-node2.sh", shell.Format("etcd-medic compare --as-script backup.db <COPY>")
	for name, tc := range map[string]struct {
		only        run.OnlyHeld
		left, first string
	}{
		"keys": {run.OnlyHeld{Member: "node2", Keys: 7, Script: script}, "only node2 held 7 keys", "less " + script},
		"unread": {run.OnlyHeld{Member: "node2", Unknown: "not read", CommandArgs: compare},
			"what only node2 held is unknown", "etcd-medic compare --as-script backup.db COPY"},
		"nothing": {run.OnlyHeld{Member: "node2"}, "", "etcd-medic diagnose FRESH_COPIES"},
	} {
		out := &run.Outcome{Mode: plan.Live, Reached: true, Proofs: []run.Proof{{What: "w", Outcome: "holds"}},
			Only: []run.OnlyHeld{tc.only}}
		a := outcomeAnswer(out, []shell.Command{plan.DiagnoseCommand()}, nil, "")
		good := tc.left == ""
		if !strings.Contains(a.Says, tc.left) || !strings.HasSuffix(a.Last, tc.left) || a.Word != "DONE" ||
			(a.Mood == render.Good) != good || a.Commands[0].Run.String() != tc.first {
			t.Errorf("%s: %q %q %q, %+v", name, a.Word, a.Says, a.Last, a.Commands)
		}
	}
	a := outcomeAnswer(&run.Outcome{Mode: plan.Live, Steps: []run.StepResult{{ID: "01-backup-node1", State: "done"},
		{ID: "02-stop-node2", State: "failed", Detail: "why"}}}, nil, nil, "")
	if a.Says != "the goal is not reached: step 02-stop-node2 failed" || a.Last != "live, step 02-stop-node2 failed" {
		t.Errorf("%q %q", a.Says, a.Last)
	}
}

// TestNoteLines: the screen shows each note of a run, or how many more there are.
func TestNoteLines(t *testing.T) {
	for _, c := range []struct{ notes, want []string }{
		{nil, nil}, {[]string{"a"}, []string{"a"}}, {[]string{"a", "b", "c"}, []string{"a", "b", "c"}},
		{[]string{"a", "b", "c", "d"}, []string{"a", "b", "2 more notes"}},
	} {
		var got []string
		for _, kv := range noteLines(c.notes) {
			got = append(got, kv[1])
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.notes, got, c.want)
		}
	}
}
