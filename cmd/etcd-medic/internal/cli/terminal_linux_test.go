package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// cliEnv makes this test binary the program itself, with the arguments that follow.
const cliEnv = "TEST_RUN_CLI"

// onTerminal runs the program as a process whose terminal has this size, without a pager, and returns its last screen
// (one row is left for the prompt) and all rows.
func onTerminal(t *testing.T, dir string, columns, rows int, args []string) (screen, all []string) {
	t.Helper()
	p := newTerminal(t)
	if err := unix.IoctlSetWinsize(int(p.slave.Fd()), unix.TIOCSWINSZ,
		&unix.Winsize{Row: uint16(rows), Col: uint16(columns)}); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), cliEnv+"=1", "PAGER=cat", "TERM=xterm", "NO_COLOR=1")
	cmd.Dir = dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.slave, p.slave, p.slave
	_ = cmd.Run() // the exit code is the verdict's
	const end = "\x00END\x00"
	if _, err := p.slave.WriteString(end); err != nil {
		t.Fatal(err)
	}
	p.until("all is shown", func() bool { return strings.Contains(p.shown(), end) })
	text, _, _ := strings.Cut(p.shown(), end)
	for line := range strings.Lines(strings.ReplaceAll(text, "\r\n", "\n")) {
		line = strings.TrimRight(line[strings.LastIndex(line, "\r")+1:], "\n")
		for r := []rune(line); len(r) > columns; r = r[columns:] {
			all = append(all, string(r[:columns]))
			line = string(r[columns:])
		}
		all = append(all, line)
	}
	return all[max(0, len(all)-rows+1):], all
}

// TestLastScreens: on a terminal of 80×24 and of 120×40 the last screen of every incident has the verdict, first and
// last, whom to keep, and the first command to type: of diagnose, inspect, verify and repair plan.
func TestLastScreens(t *testing.T) {
	for _, name := range incidentNames(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := evidencetest.Incident(t, name)
			evidencetest.Unchanged(t, dir)
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			var sources []string
			for _, e := range entries {
				sources = append(sources, e.Name())
			}
			db := filepath.Join(sources[0], "member", "snap", "db")
			if !exists(filepath.Join(dir, db)) {
				db = sources[0]
			}
			for i, size := range [][2]int{{80, 24}, {120, 40}} {
				plan := filepath.Join(t.TempDir(), string(rune('a'+i))+".yaml")
				lastScreen(t, dir, size, append([]string{"diagnose"}, sources...))
				lastScreen(t, dir, size, append([]string{"repair", "plan", "-o", plan}, sources...))
			}
			lastScreen(t, dir, [2]int{80, 24}, []string{"inspect", sources[0]})
			lastScreen(t, dir, [2]int{80, 24}, []string{"verify", db})
		})
	}
}

func lastScreen(t *testing.T, dir string, size [2]int, args []string) {
	t.Helper()
	screen, all := onTerminal(t, dir, size[0], size[1], args)
	if len(all) > 0 && strings.HasPrefix(all[0], "etcd-medic: refused: ") { // nothing to repair
		if args[0] != "repair" || len(all) > 10 {
			t.Errorf("%v on %v: %s", args, size, strings.Join(all, "\n"))
		}
		return
	}
	text := strings.Join(screen, "\n")
	word, _, ok := strings.Cut(screen[0], ":")
	switch {
	case len(all) > len(screen):
		t.Errorf("%v on %v takes %d rows:\n%s", args, size, len(all), strings.Join(all, "\n"))
	case !ok || word != strings.ToUpper(word):
		t.Errorf("%v on %v begins with %q", args, size, screen[0])
	}
	if last := lastVerdict(screen); !strings.HasPrefix(last, word) {
		t.Errorf("%v on %v ends with %q, not %s", args, size, last, word)
	}
	if (word == "NOT HEALTHY" || args[0] == "repair") && !strings.Contains(text, "\n    etcd") {
		t.Errorf("%v on %v shows no command:\n%s", args, size, text)
	}
}

// lastVerdict is the last line that is no message of stderr, which shares the terminal.
func lastVerdict(screen []string) string {
	for i := len(screen) - 1; i >= 0; i-- {
		if l := screen[i]; l != "" && !strings.HasPrefix(l, "etcd-medic: ") && !strings.HasPrefix(l, "hint: ") &&
			!strings.HasPrefix(l, "warning: ") {
			return l
		}
	}
	return ""
}

// TestTablesOnTerminal: what dumplog and dumpdb list is a table that fits the terminal, in a pipe lines.
func TestTablesOnTerminal(t *testing.T) {
	node := filepath.Join(evidencetest.Incident(t, "a-auth-revision-replay"), "node1")
	for head, args := range map[string][]string{"INDEX  TERM  RECORD": {"dumplog", node},
		"REVISION  KEY":          {"dumpdb", node, "key"},
		"ID                NAME": {"dumpdb", node, "members"}, "NAME             ROWS": {"dumpdb", node}} {
		for _, columns := range []int{80, 120} {
			_, all := onTerminal(t, "", columns, 24, append(args, "--no-pager"))
			at := 0
			for i, l := range all {
				if strings.HasPrefix(l, head) {
					at = i + 1
				}
			}
			if at == 0 || at == len(all) {
				t.Errorf("%v on %d columns has no table headed %s:\n%s", args, columns, head, strings.Join(all, "\n"))
			}
		}
		if out, _, _ := medicOn(t, 0, args); strings.Contains(out, head) {
			t.Errorf("%v in a pipe is a table:\n%.300s", args, out)
		}
	}
}
