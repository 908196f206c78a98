//go:build e2e

package cli

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// etcdWords are the words in capitals of commands of etcd, and what the test puts there.
var etcdWords = strings.NewReplacer("CLIENT_URL_OF_THE_LEADER", "http://127.0.0.1:1", "CLIENT_URL",
	"http://127.0.0.1:1",
	"NEW_MEMBER_ID", "8211f1d0f64f3269", "MEMBER_ID", "8211f1d0f64f3269", "NEW.db", "new.db", "OTHER.db", "other.db")

// usage is what etcd's tools say of arguments that they do not take.
var usage = regexp.MustCompile(`(?i)unknown (flag|shorthand|command)|invalid argument|accepts \d+ arg|` +
	`requires at least|flag needs an argument|command needs|command accepts|bad member ID|not provided|usage:`)

// TestE2EPrintedEtcdCommands: etcd's own tools take every command of theirs that is printed about any incident. No
// server answers: the commands fail, and must not fail because of how they are written.
func TestE2EPrintedEtcdCommands(t *testing.T) {
	bin := filepath.Dir(clustertest.Server(t, "3.5.35"))
	help, err := exec.Command(filepath.Join(bin, "etcd-3.5.35"), "--help").CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	var commands []string
	for _, name := range incidentNames(t) {
		for _, c := range etcdCommandsOf(t, name) {
			if !slices.Contains(commands, c) {
				commands = append(commands, c)
			}
		}
	}
	t.Chdir(t.TempDir())
	tools := map[string]int{}
	for _, c := range commands {
		args := arguments(t, etcdWords.Replace(c))
		tools[args[0]]++
		if args[0] == "etcd" {
			for _, a := range args[1:] {
				name, _, _ := strings.Cut(a, "=")
				if strings.HasPrefix(a, "--") && !strings.Contains(string(help), "\n  "+name+" ") {
					t.Errorf("%s\netcd has no flag %s", c, name)
				}
			}
			continue
		}
		out, err := runEtcdTool(t, filepath.Join(bin, args[0]+"-3.6"), args[1:])
		if usage.MatchString(out) || strings.Contains(err, "status 128") {
			t.Errorf("%s\n%s: %s", c, err, out)
		}
	}
	if tools["etcdctl"] < 10 || tools["etcd"] == 0 {
		t.Errorf("commands of etcd's tools: %v", tools)
	}
}

// runEtcdTool runs a tool that finds no server, with a password so that it asks for none.
func runEtcdTool(t *testing.T, tool string, args []string) (out, failure string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, tool, args...)
	cmd.Env = append(os.Environ(), "ETCDCTL_DIAL_TIMEOUT=200ms", "ETCDCTL_COMMAND_TIMEOUT=300ms", "ETCDCTL_PASSWORD=x")
	b, err := cmd.CombinedOutput()
	if err != nil {
		failure = err.Error()
	}
	return string(b), failure
}

// etcdCommandsOf are the commands of etcd's tools that are printed about a set: by diagnose, inspect, and the plan of a
// repair, in text and in its file.
func etcdCommandsOf(t *testing.T, name string) (out []string) {
	t.Helper()
	dir := evidencetest.Incident(t, name)
	sources, db := sourceArgs(t, dir)
	plan := filepath.Join(t.TempDir(), "plan.yaml")
	for _, args := range [][]string{append([]string{"diagnose", "--full"}, sources...), append([]string{"diagnose"},
		sources...), {"diagnose", "--full", sources[0]}, {"inspect", sources[0]}, {"verify", "--full", db},
		append([]string{"repair", "plan", "--full", "-o", plan}, sources...)} {
		text, _, _ := medicOn(t, 0, args)
		for l := range strings.Lines(text) {
			l = strings.TrimPrefix(strings.TrimSpace(l), "$ ")
			if word, _, _ := strings.Cut(l, " "); slices.Contains([]string{"etcdctl", "etcdutl", "etcd"}, word) {
				out = append(out, l)
			}
		}
	}
	return out
}

// TestE2EPrintedAfterRehearsal: what a rehearsal prints for any incident that can be planned is a command that the
// program takes. A way that writes new data dirs is applied; the live one finds no servers and is refused.
func TestE2EPrintedAfterRehearsal(t *testing.T) {
	ran := map[string]int{}
	for _, name := range incidentNames(t) {
		dir := evidencetest.Incident(t, name)
		evidencetest.Unchanged(t, dir)
		sources, _ := sourceArgs(t, dir)
		plan := filepath.Join(t.TempDir(), "plan.yaml")
		if _, _, code := medicOn(t, 0, append([]string{"repair", "plan", "-o", plan}, sources...)); code != ExitDone {
			continue
		}
		args := []string{"repair", "rehearse", plan}
		out, errs, code := medicOn(t, 80, args)
		// The program of a test contains the server of 3.6 alone.
		if version := serverOf(errs); code == ExitRefused && version != "" {
			args = append(args, "--etcd-binary", clustertest.Server(t, version))
			out, errs, code = medicOn(t, 80, args)
		}
		fits(t, args, 80, out)
		if code != ExitDone {
			t.Errorf("%s: exit code %d: %s\n%s", name, code, errs, out)
			continue
		}
		if len(ran) < 3 { // the other ways are in the file only
			all, err := os.ReadFile(plan + ".result.txt")
			if err != nil {
				t.Fatal(err)
			}
			out += string(all)
		}
		for _, line := range printedCommands(out) {
			ran[runApplied(t, name, line)]++
		}
	}
	if ran["live"] == 0 || ran["clone"] == 0 {
		t.Errorf("commands that were run, by mode: %v", ran)
	}
}

// serverOf returns the release of the server that a refused command wants, "" if it was refused for something else.
func serverOf(errs string) string {
	for _, version := range []string{"3.4.23", "3.5.35", "3.7.3"} {
		if strings.Contains(errs, "a server for etcd "+version[:3]+" refused: ") {
			return version
		}
	}
	return ""
}

// runApplied runs a printed command and returns its mode.
func runApplied(t *testing.T, name, line string) string {
	t.Helper()
	args := arguments(t, strings.NewReplacer("-o OUT", "-o "+filepath.Join(t.TempDir(), "out"),
		"ETCD_BINARY", clustertest.Server(t, "3.4.23"), "CLIENT_URLS", "http://127.0.0.1:1").Replace(line))[1:]
	mode := ""
	if i := slices.Index(args, "--mode"); i >= 0 {
		mode = args[i+1]
	}
	want := []int{ExitDone}
	if mode == "live" {
		want = []int{ExitRefused}
	}
	env := func(name string) string { return map[string]string{"ETCD_MEDIC_PASSWORD": "x"}[name] }
	if out, errs, code := medicWith(t, 0, env, args); !slices.Contains(want, code) {
		t.Errorf("%s: %s\nexit code %d, want %v: %s\n%s", name, line, code, want, errs, out)
	}
	return mode
}
