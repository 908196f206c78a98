package cli

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// incidentNames are all sets of testdata.
func incidentNames(t *testing.T) (out []string) {
	t.Helper()
	for _, kind := range []string{"incidents", "shapes"} {
		entries, err := os.ReadDir(filepath.Join(evidencetest.Root(t), "testdata", kind))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.IsDir() {
				out = append(out, e.Name())
			}
		}
	}
	return out
}

// rowsOn is how many rows of a terminal a text takes.
func rowsOn(columns int, text string) (n int) {
	for line := range strings.Lines(text) {
		n += max(1, (utf8.RuneCountInString(strings.TrimRight(line, "\n"))+columns-1)/columns)
	}
	return n
}

var rewriteScreens = flag.Bool("rewrite-screens", false, "write the screens of all sets into testdata/screens")

// shots are the screens of a set, which its file in testdata/screens keeps.
type shots struct{ strings.Builder }

// add keeps what a command shows on a terminal of so many columns.
func (s *shots) add(columns int, args []string, text string) {
	fmt.Fprintf(s, "=== %d: etcd-medic %s\n%s", columns, strings.Join(args, " "), text)
}

// compare fails for screens that are not those of the file.
func (s *shots) compare(t *testing.T, file string) {
	t.Helper()
	have, err := os.ReadFile(file)
	if err == nil && string(have) == s.String() {
		return
	}
	if !*rewriteScreens {
		t.Errorf("%s is not what is shown (%v); read the screens, then run this test with -rewrite-screens:\n%s", file,
			err, s)
	} else if err := os.WriteFile(file, []byte(s.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestOneScreen: the verdict of every incident, in words, with what to keep and what to type, stands on a terminal of
// 80×24 and of 120×40, and the verdict is what is read last. testdata/screens keeps what is shown.
func TestOneScreen(t *testing.T) {
	kept := filepath.Join(evidencetest.Root(t), "cmd", "etcd-medic", "testdata", "screens")
	for _, name := range incidentNames(t) {
		t.Run(name, func(t *testing.T) {
			dir := evidencetest.Copy(t, evidencetest.Incident(t, name)) // the plan is written next to the members
			entries, err := os.ReadDir(dir)
			want(t, err)
			args := []string{"diagnose"}
			for _, e := range entries {
				evidencetest.Unchanged(t, filepath.Join(dir, e.Name()))
				args = append(args, e.Name())
			}
			t.Chdir(dir)
			var seen shots
			screenOf(t, args, &seen)
			screenOf(t, []string{"inspect", args[1]}, &seen)
			answersOf(t, args[1:], &seen)
			seen.compare(t, filepath.Join(kept, name+".txt"))
		})
	}
}

func screenOf(t *testing.T, args []string, seen *shots) {
	t.Helper()
	out, errs, code := medicOn(t, 80, args)
	seen.add(80, args, out)
	lines := strings.Split(strings.TrimRight(out, "\n"), "\n")
	word := map[int]string{ExitDone: "HEALTHY", ExitFindings: "NOT HEALTHY", ExitInconclusive: "INCONCLUSIVE"}[code]
	first, last := lines[0], lines[len(lines)-1]
	switch {
	case word == "":
		t.Errorf("%v: exit code %d: %s", args, code, errs)
	case !strings.HasPrefix(first, word+":") || !strings.HasPrefix(last, word) && code != ExitDone:
		t.Errorf("%v ends in code %d and says %q … %q", args, code, first, last)
	}
	if word == "NOT HEALTHY" && !strings.Contains(out, "\nDO NOW") {
		t.Errorf("%v says nothing to do:\n%s", args, out)
	}
	fits(t, args, 80, out)
}

// fits tells whether a screen is one: rows, columns, and the word of the verdict first and last.
func fits(t *testing.T, args []string, columns int, text string) {
	t.Helper()
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	word, _, _ := strings.Cut(lines[0], ":")
	if last := lines[len(lines)-1]; word == "" || !strings.HasPrefix(last, word) {
		t.Errorf("%v begins with %q and ends with %q", args, lines[0], last)
	}
	if n := rowsOn(columns, text); n > 23 { // one is for the prompt
		t.Errorf("%v: %d rows of %d columns:\n%s", args, n, columns, text)
	}
	for i, l := range lines {
		if utf8.RuneCountInString(l) > columns && !strings.HasPrefix(l, "    ") {
			t.Errorf("%v: line %d has %d columns: %s", args, i+1, utf8.RuneCountInString(l), l)
		}
	}
}

// answersOf looks at the screens of verify and repair plan of a set, and at its diagnosis on a wide terminal.
func answersOf(t *testing.T, sources []string, seen *shots) {
	t.Helper()
	var backups []string
	for _, s := range sources {
		if db := filepath.Join(s, "member", "snap", "db"); exists(db) {
			s = db
		}
		if st, err := os.Stat(s); err == nil && st.Mode().IsRegular() {
			backups = append(backups, s)
		}
	}
	if len(backups) == 0 {
		t.Fatal("no database was found")
	}
	verify := [][]string{{"verify", backups[0]}}
	if len(backups) > 1 {
		verify = append(verify, append([]string{"verify"}, backups...))
	}
	for _, args := range verify {
		out, errs, code := medicOn(t, 80, args)
		if code == ExitUsage || code == ExitError || out == "" {
			t.Errorf("%v: exit code %d: %s", args, code, errs)
		}
		seen.add(80, args, out)
		fits(t, args, 80, out)
	}
	planScreens(t, sources, seen)
	args := append([]string{"diagnose"}, sources...)
	out, _, _ := medicOn(t, 120, args)
	seen.add(120, args, out)
	fits(t, args, 120, out)
}

// planScreens looks at what repair plan shows, on both terminals.
func planScreens(t *testing.T, sources []string, seen *shots) {
	t.Helper()
	args := append([]string{"repair", "plan", "-o", "plan.yaml"}, sources...)
	for _, columns := range []int{80, 120} {
		out, errs, code := medicOn(t, columns, args)
		switch {
		case code == ExitRefused:
			seen.add(columns, args, errs)
			return
		case code == ExitUsage || code == ExitError || out == "":
			t.Errorf("%v: exit code %d: %s", args, code, errs)
		}
		seen.add(columns, args, out)
		fits(t, args, columns, out)
		if !strings.Contains(out, "\nDO NOW\n    ") {
			t.Errorf("%v says no command to type:\n%s", args, out)
		}
		want(t, os.Remove("plan.yaml"))
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// medicOn runs the program as on a terminal of so many columns.
func medicOn(t *testing.T, columns int, args []string) (out, errs string, code int) {
	t.Helper()
	return medicWith(t, columns, func(string) string { return "" }, args)
}

// medicWith is medicOn with settings from an environment.
func medicWith(t *testing.T, columns int, env func(string) string, args []string) (out, errs string, code int) {
	t.Helper()
	var o, e bytes.Buffer
	code = Main(t.Context(), args, &Streams{Out: &o, Err: &e, Width: columns, Getenv: env})
	return o.String(), e.String(), code
}

// TestScreensOfRuns: what a rehearsal and an application did stands on one screen, all of it beside the plan.
func TestScreensOfRuns(t *testing.T) {
	dir := evidencetest.Incident(t, "a-auth-revision-replay")
	evidencetest.Unchanged(t, dir)
	t.Chdir(dir)
	tmp := t.TempDir()
	plan := filepath.Join(tmp, "plan.yaml")
	if _, errs, code := medicOn(t, 80, []string{"repair", "plan", "node1", "node2", "node3", "-o",
		plan}); code != ExitDone {
		t.Fatal(errs)
	}
	for _, args := range [][]string{{"repair", "rehearse", plan},
		{"repair", "apply", plan, "--mode", "clone", "-o", filepath.Join(tmp, "new")}} {
		out, errs, code := medicOn(t, 80, args)
		if code != ExitDone || !strings.HasPrefix(out, "DONE: the goal is reached: every proof holds") {
			t.Fatalf("%v: exit code %d: %s\n%s", args, code, errs, out)
		}
		fits(t, args, 80, out)
		all, err := os.ReadFile(plan + ".result.txt")
		if err != nil || !strings.Contains(string(all), "\nPROOFS\n") || !strings.Contains(string(all), "\nSTEPS\n") {
			t.Errorf("the whole result is not kept: %v\n%s", err, all)
		}
	}
	if err := os.RemoveAll(filepath.Join(tmp, "new")); err != nil {
		t.Fatal(err)
	}
	out, _, code := medicOn(t, 80, []string{"repair", "rehearse", plan, "--full", "--again"})
	if lines := strings.Split(strings.TrimSpace(out), "\n"); code != ExitDone || !strings.Contains(out, "\nPROOFS\n") ||
		!strings.HasPrefix(lines[len(lines)-1], "DONE") {
		t.Errorf("--full: exit code %d:\n%s", code, out)
	}
}

// TestFullIsShort: of all sets, the text of diagnose --full is shorter than 66 lines in the median, and ends with the
// verdict.
func TestFullIsShort(t *testing.T) {
	var lines []int
	var dirs []string
	for _, name := range incidentNames(t) {
		dirs = append(dirs, evidencetest.Incident(t, name))
	}
	for _, dir := range dirs {
		name := filepath.Base(dir)
		t.Chdir(dir)
		entries, err := os.ReadDir(".")
		if err != nil {
			t.Fatal(err)
		}
		args := []string{"diagnose", "--full"}
		for _, e := range entries {
			args = append(args, e.Name())
		}
		out, _, _ := medicOn(t, 0, args)
		isActionable(t, name, out)
		all := strings.Split(strings.TrimRight(out, "\n"), "\n")
		word, _, _ := strings.Cut(all[0], ":")
		if last := all[len(all)-1]; !strings.HasPrefix(strings.ToUpper(last), strings.ToUpper(word)) {
			t.Errorf("%s begins with %q and ends with %q", name, all[0], last)
		}
		lines = append(lines, len(all))
	}
	slices.Sort(lines)
	t.Logf("lines of --full: %v", lines)
	if median := lines[len(lines)/2]; median >= 66 {
		t.Errorf("the median is %d lines: %v", median, lines)
	}
}

// isActionable reports commands of etcdctl that say not where to, and lists with an empty item.
func isActionable(t *testing.T, name, text string) {
	t.Helper()
	for _, cmd := range printedCommands(text) {
		if strings.HasPrefix(cmd, "etcdctl ") && !strings.HasPrefix(cmd, "etcdctl --endpoints ") {
			t.Errorf("%s: no endpoint: %s", name, cmd)
		}
	}
	if flat := strings.Join(strings.Fields(text), " "); strings.Contains(flat, "; ;") || strings.Contains(flat, ";;") {
		t.Errorf("%s: an item is empty:\n%s", name, text)
	}
}

// TestEvidenceShowsTheDifference: where logs hold different entries at one index, the evidence shows each member's own.
func TestEvidenceShowsTheDifference(t *testing.T) {
	dir := evidencetest.Incident(t, "o-restored-set-wrong-same-flags")
	evidencetest.Unchanged(t, dir)
	t.Chdir(dir)
	out, errs, _ := medicOn(t, 0, []string{"diagnose", "-w", "json", "r1", "r2", "r3"})
	var r struct {
		Findings []struct {
			Check    string
			Title    string
			Evidence []struct{ Member, Field, Observed string }
		}
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err, errs)
	}
	found := map[string]bool{}
	for _, f := range r.Findings {
		seen := map[string]string{}
		for _, e := range f.Evidence {
			if e.Field == f.Evidence[0].Field {
				seen[e.Member] = e.Observed
			}
		}
		switch {
		case f.Check == "K06", f.Check == "R01", f.Check == "R05", strings.HasPrefix(f.Title, "the logs have nothing"):
			found[f.Check] = true
			if len(seen) != 3 || seen["r1"] == seen["r2"] || seen["r2"] == seen["r3"] || seen["r1"] == seen["r3"] {
				t.Errorf("%s %s: %q", f.Check, f.Title, seen)
			}
		}
	}
	if len(found) != 4 {
		t.Errorf("findings of %v", found)
	}
}

// TestMixedClusters: sources of several clusters are sorted first, whatever is wrong with one of them, and no repair is
// suggested for all of them together.
func TestMixedClusters(t *testing.T) {
	var args []string
	for i, at := range []string{"g-zombie-members/m1", "k-lagging-node/node1", "k-lagging-node/node2"} {
		dir := evidencetest.Incident(t, filepath.Dir(at))
		evidencetest.Unchanged(t, dir)
		args = append(args, string(rune('a'+i))+"="+filepath.Join(dir, filepath.Base(at)))
	}
	out, errs, code := medicOn(t, 120, append([]string{"diagnose"}, args...))
	if code != ExitFindings || !strings.Contains(out, "(foreign-cluster, proof)") ||
		!strings.HasSuffix(out, "\nNOT HEALTHY: foreign-cluster\n") {
		t.Errorf("exit code %d: %s\n%s", code, errs, out)
	}
	commands := printedCommands(out)
	if want := []string{"etcd-medic diagnose " + args[0], "etcd-medic diagnose " + args[1] + " " +
		args[2]}; !slices.Equal(commands, want) {
		t.Errorf("%q, want %q", commands, want)
	}
}
