package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// printedCommands are the commands of a page, in order, each once.
func printedCommands(text string) (out []string) {
	for l := range strings.Lines(text) {
		l = strings.TrimSpace(l)
		cmd, ok := strings.CutPrefix(l, "$ ")
		if !ok && strings.HasPrefix(l, "etcd-medic ") {
			cmd, ok = l, true
		}
		if ok && !slices.Contains(out, cmd) {
			out = append(out, cmd)
		}
	}
	return out
}

// arguments takes a printed command apart as a shell does. What it writes to a file by itself is cut off.
func arguments(t *testing.T, line string) []string {
	t.Helper()
	line, _, _ = strings.Cut(line, " > ")
	cmd := exec.Command("sh", "-c", "set -- "+line+`; printf '%s\000' "$@"`)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// fillers are the words in capitals that a person replaces, and what the test puts there.
func fillers(sources []string, db string) *strings.Replacer {
	return strings.NewReplacer("FRESH_COPIES", strings.Join(sources, " "), "SOURCE...", strings.Join(sources, " "),
		"OTHER_MEMBER...", "", "OTHER.db", db, "--best MEMBER", "--best m1")
}

// sourceArgs names the sources of a set by where they lie, with names of their own.
func sourceArgs(t *testing.T, dir string) (args []string, db string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range entries {
		path := filepath.Join(dir, e.Name())
		args = append(args, "m"+string(rune('1'+i))+"="+path)
		if db == "" {
			if db = filepath.Join(path, "member", "snap", "db"); !exists(db) {
				db = path
			}
		}
	}
	return args, db
}

// TestPrintedCommandsWork: every command that a page prints about any set of testdata is one that the program takes,
// and that can do what it is for: none is wrong usage, none cannot read what it names, and no plan is refused that was
// just suggested.
func TestPrintedCommandsWork(t *testing.T) {
	for _, name := range incidentNames(t) {
		t.Run(name, func(t *testing.T) {
			dir := evidencetest.Copy(t, evidencetest.Incident(t, name))
			evidencetest.Unchanged(t, dir)
			sources, db := sourceArgs(t, dir)
			t.Chdir(t.TempDir())
			done := map[string]bool{}
			fill := fillers(sources, db)
			for _, args := range [][]string{append([]string{"diagnose", "--full"}, sources...),
				{"diagnose", "--full", sources[0]}, {"inspect", sources[0]}, {"verify", db}} {
				out, _, _ := medicOn(t, 0, args)
				for _, cmd := range printedCommands(out) {
					runPrinted(t, args, fill.Replace(cmd), done)
				}
			}
		})
	}
}

// notAtHand is a source that a person has to get first: the data dir of a member that was not given.
var notAtHand = regexp.MustCompile(` \S+=DATA_DIR_OF_\S+`)

// runPrinted runs a command of this program; those that a plan prints are run too.
func runPrinted(t *testing.T, from []string, line string, done map[string]bool) {
	t.Helper()
	line = notAtHand.ReplaceAllString(line, "")
	if done[line] || !strings.HasPrefix(line, "etcd-medic ") || strings.Contains(line, "repair rehearse") ||
		strings.HasPrefix(line, "etcd-medic collect ") { // needs the member's host
		return
	}
	done[line] = true
	args := arguments(t, line)[1:]
	if i := slices.Index(args, "-o"); i > 0 {
		_ = os.RemoveAll(args[i+1])
	}
	out, errs, code := medicOn(t, 0, args)
	if code == ExitUsage || code == ExitError || code == ExitRefused && args[0] == "repair" && args[1] == "plan" {
		t.Errorf("%v prints\n%s\nwhich ends in exit code %d: %s", from, line, code, errs)
	}
	if slices.Contains(args, "plan") {
		for _, cmd := range printedCommands(out) {
			runPrinted(t, args, cmd, done)
		}
	}
}

// TestPrintedCommandsOfAnArchive: what is in an archive has no path; the commands name the archive, or say what to
// unpack.
func TestPrintedCommandsOfAnArchive(t *testing.T) {
	archive := filepath.Join(evidencetest.Root(t), "testdata", "incidents", "a-auth-revision-replay", "nodes.tar.gz")
	t.Chdir(t.TempDir())
	done := map[string]bool{}
	out, _, _ := medicOn(t, 0, []string{"diagnose", "--full", archive})
	for _, cmd := range printedCommands(out) {
		runPrinted(t, []string{"diagnose", archive}, fillers([]string{archive}, archive).Replace(cmd), done)
	}
	if len(done) < 5 {
		t.Errorf("%d commands were run", len(done))
	}
}
