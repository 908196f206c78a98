package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/compare/serverlog"
)

// commandsOf are the command lines of etcd-medic in the shell blocks of a document.
func commandsOf(t *testing.T, file string) (out []string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	in := false
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "```"):
			in = !in && line == "```sh"
		case in:
			if i := strings.Index(line, "etcd-medic "); i == 0 || i > 0 && strings.HasSuffix(line[:i], "| ") {
				command, _, _ := strings.Cut(line[i:], " > ")
				command, _, _ = strings.Cut(command, " | ")
				out = append(out, strings.TrimSuffix(command, ";"))
			}
		}
	}
	return out
}

// shellWords splits a line as a shell does that meets single quotes only.
func shellWords(line string) (out []string) {
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimSpace(line) {
		if rest, ok := strings.CutPrefix(line, "'"); ok {
			word, tail, _ := strings.Cut(rest, "'")
			out, line = append(out, word), tail
			continue
		}
		word, tail, _ := strings.Cut(line, " ")
		out, line = append(out, word), tail
	}
	return out
}

// guides are the documents for users.
func guides(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(evidencetest.Root(t), "docs", "*.md"))
	if err != nil || len(files) < 5 {
		t.Fatal("no documents: ", err)
	}
	return append(files, filepath.Join(evidencetest.Root(t), "README.md"))
}

// TestDocumentedCommandsAreOnes: every command line in a document names a command and flags that there are.
func TestDocumentedCommandsAreOnes(t *testing.T) {
	n := 0
	for _, file := range guides(t) {
		for _, line := range commandsOf(t, file) {
			n++
			var out, errs bytes.Buffer
			args := slices.Concat(shellWords(line)[1:], []string{"--help"})
			if code := Main(t.Context(), args,
				&Streams{Out: &out, Err: &errs, Width: 80,
					Getenv: func(string) string { return "" }}); code != ExitDone {
				t.Errorf("%s: %s: exit code %d: %s", filepath.Base(file), line, code, errs.String())
			}
		}
	}
	if n < 50 {
		t.Errorf("%d commands found", n)
	}
}

// TestCommandsOfMessagesAreOnes: what explain says to type names a command and flags that there are.
func TestCommandsOfMessagesAreOnes(t *testing.T) {
	n := 0
	for _, m := range serverlog.All() {
		for _, line := range m.Type {
			i := strings.Index(line, "etcd-medic ")
			if i < 0 {
				continue
			}
			n++
			var out, errs bytes.Buffer
			args := slices.Concat(shellWords(line[i:])[1:], []string{"--help"})
			if code := Main(t.Context(), args,
				&Streams{Out: &out, Err: &errs, Width: 80,
					Getenv: func(string) string { return "" }}); code != ExitDone {
				t.Errorf("%s: %s: exit code %d: %s", m.ID, line, code, errs.String())
			}
		}
	}
	if n < 80 {
		t.Errorf("%d commands found", n)
	}
}

// TestExplainSuggests: a code with a slip leads to the code that was meant, and a text that is none to those that share
// a word with it.
func TestExplainSuggests(t *testing.T) {
	for ask, want := range map[string]string{
		"auth-revison-replay":   "did you mean auth-revision-replay?",
		"tocomit-out-of-range":  "did you mean tocommit-out-of-range?",
		"slow_disk":             "did you mean slow-disk?",
		"something about lease": "near it: ",
		"qqqqqqqqqqqqqqqq":      "lists all of them",
	} {
		var out, errs bytes.Buffer
		code := Main(t.Context(), []string{"explain", ask},
			&Streams{Out: &out, Err: &errs, Width: 80, Getenv: func(string) string { return "" }})
		if code != ExitUsage || !strings.Contains(errs.String(), want) {
			t.Errorf("%s: exit code %d: %s, want %q", ask, code, errs.String(), want)
		}
	}
}

// TestRunbooksAreWhole: 25 cases, each with what is seen, what to type, what it means, what it costs and how to verify,
// and each in the list at the top.
func TestRunbooksAreWhole(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(evidencetest.Root(t), "docs", "RUNBOOKS.md"))
	if err != nil {
		t.Fatal(err)
	}
	top, rest, _ := strings.Cut(string(b), "\n## ")
	cases := strings.Split(rest, "\n## ")
	if len(cases) != 25 || strings.Count(top, "](#") < 25 {
		t.Errorf("%d cases, %d in the list", len(cases), strings.Count(top, "](#"))
	}
	for _, c := range cases {
		title, _, _ := strings.Cut(c, "\n")
		for _, part := range []string{"*You see:*", "```sh\netcd-medic ", "*It means:*", "*It costs:*", "*Verify:*"} {
			if !strings.Contains(c, part) {
				t.Errorf("%s: no %q", title, part)
			}
		}
	}
}

// TestGuidesAreThere: the documents that people look for, and what each must answer.
func TestGuidesAreThere(t *testing.T) {
	for name, wants := range map[string][]string{
		"COPYING.md":    {"systemd", "kubeadm", "k3s", "rke2", "OpenShift", "Talos", "Docker", "snapshot", "running"},
		"KUBERNETES.md": {"/registry"},
		"BACKUPS.md":    {"cron", "OnCalendar", "CronJob", "alert"},
		"COMPARISON.md": {"etcdctl", "etcdutl", "etcd-dump", "bbolt", "auger", "etcd-recovery"},
		"LIMITS.md":     {"\n"},
		"GLOSSARY.md":   {"consistent index", "HardState"},
		"FAQ.md":        {"safe to keep running", "inconclusive"},
		"PRIVACY.md":    {"network"},
		"CAUSES.md":     {"## By what the server says", "*You see:*", "*Do:*"},
	} {
		b, err := os.ReadFile(filepath.Join(evidencetest.Root(t), "docs", name))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, want := range wants {
			if !strings.Contains(strings.ToLower(string(b)), strings.ToLower(want)) {
				t.Errorf("%s says nothing of %q", name, want)
			}
		}
	}
}

// elsewhere reports whether a documented command is run by another test: what starts servers (TestScreensOfRuns,
// verify.txtar) or reads the host of a running member (collect.txtar).
func elsewhere(args []string) bool {
	return args[0] == "collect" || args[0] == "repair" && args[1] == "rehearse" || slices.Contains(args, "--drill")
}

// TestDocumentedCommandsRun: what documents say to type about copies and backups runs on ones, and never is a wrong
// usage or cannot read what it names.
func TestDocumentedCommandsRun(t *testing.T) {
	nodes, broken := evidencetest.Incident(t, "m-healthy-3.5"), evidencetest.Incident(t, "a-auth-revision-replay")
	backup := evidencetest.Incident(t, "o-backup-good")
	evidencetest.Unchanged(t, nodes, broken, backup)
	files := guides(t)
	t.Chdir(t.TempDir())
	seen := map[string]bool{}
	for _, file := range files {
		for _, line := range commandsOf(t, file) {
			args := shellWords(line)[1:]
			if seen[line] || elsewhere(args) {
				continue
			}
			seen[line] = true
			set := nodes
			if args[0] == "repair" {
				set = broken // there is nothing to repair on the healthy one
			}
			for i, a := range args {
				args[i] = onIncident(a, set, backup)
			}
			if args[0] == "extract" && !exists(args[1]) { // rebuilt by the command before, where that could be done
				args[1] = backup
			}
			if i := slices.Index(args, "-o"); i > 0 {
				want(t, os.RemoveAll(args[i+1]))
			}
			var out, errs bytes.Buffer
			code := Main(context.Background(), args, &Streams{Out: &out, Err: &errs, Width: 80,
				Stdin: piped(t, args, backup), Getenv: func(string) string { return "" }})
			if code == ExitUsage || code == ExitError {
				t.Errorf("%s: %s: exit code %d: %s", filepath.Base(file), strings.Join(args, " "), code, errs.String())
			}
		}
	}
	if len(seen) < 35 {
		t.Errorf("%d commands were run", len(seen))
	}
}

// piped is what a document pipes into a command: a log of a server, or a backup.
func piped(t *testing.T, args []string, backup string) io.Reader {
	t.Helper()
	if args[0] == "explain" {
		return strings.NewReader("panic: tocommit(1043) is out of range [lastIndex(0)]. Was the raft log corrupted?\n")
	}
	b, err := os.ReadFile(filepath.Join(backup, "backup.db"))
	want(t, err)
	return bytes.NewReader(b)
}

// onIncident puts the places of an incident where a document names copies and backups.
func onIncident(arg, nodes, backup string) string {
	name, path, named := strings.Cut(arg, "=")
	if !named {
		name, path = "", arg
	} else {
		name += "="
	}
	switch base := filepath.Base(path); {
	case path == "/new/node1":
		return name + "new-node1"
	case slices.Contains([]string{"node1", "node2", "node3"}, base):
		return name + filepath.Join(nodes, base)
	case base == "backup.db":
		return name + filepath.Join(backup, "backup.db")
	case base == "backups":
		return name + backup
	case strings.HasSuffix(base, ".prom"):
		return name + base
	}
	return arg
}
