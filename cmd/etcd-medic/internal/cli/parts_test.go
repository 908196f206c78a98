package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// The parts of a data dir that can be gone, and how.
var (
	dirParts  = []string{"wal", "snap", "db", "segment", ".snap"}
	partFates = []string{"missing", "empty", "unreadable"}
)

// partCase is one part of one member of an incident that is gone.
type partCase struct{ incident, member, part, fate string }

func (c partCase) String() string {
	return strings.Join([]string{c.incident, c.member, c.part, c.fate}, "/")
}

// partCases are all cases of an incident.
func partCases(t *testing.T, incident string) (out []partCase) {
	t.Helper()
	members, err := filepath.Glob(filepath.Join(evidencetest.Incident(t, incident), "*"))
	if err != nil || len(members) == 0 {
		t.Fatalf("no member: %v", err)
	}
	for _, m := range members {
		for _, part := range dirParts {
			if len(partPaths(m, part)) == 0 {
				continue
			}
			for _, fate := range partFates {
				out = append(out, partCase{incident, filepath.Base(m), part, fate})
			}
		}
	}
	return out
}

// partPaths are where the part of a data dir is: nothing where the member has no such part.
func partPaths(dir, part string) []string {
	pattern := map[string]string{"wal": "wal", "snap": "snap", "db": "snap/db", "segment": "wal/*.wal",
		".snap": "snap/*.snap"}[part]
	found, _ := filepath.Glob(filepath.Join(dir, "member", filepath.FromSlash(pattern))) // the pattern is well-formed
	return found[:min(len(found), 1)]
}

// takeAway does to the part what the case says. Where the user may read everything, a link to itself stands for what
// cannot be read.
func (c partCase) takeAway(t *testing.T, dir string) {
	t.Helper()
	path := partPaths(filepath.Join(dir, c.member), c.part)[0]
	st, err := os.Stat(path)
	if err == nil && c.fate == "unreadable" && os.Geteuid() != 0 {
		err = os.Chmod(path, 0)
		t.Cleanup(func() { _ = os.Chmod(path, 0o700) }) // so that the test's folder can be removed
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	if err == nil {
		err = os.RemoveAll(path)
	}
	switch {
	case err != nil:
	case c.fate == "unreadable":
		err = os.Symlink(path, path)
	case c.fate == "empty" && st.IsDir():
		err = os.Mkdir(path, 0o700)
	case c.fate == "empty":
		err = os.WriteFile(path, nil, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// everyCommand is every command that reads sources; %s stands for the member that lacks something, DB for its database,
// ALL for all members, OTHER for another member.
// The last argument of those that write is a path in OUT.
var everyCommand = []string{
	"diagnose ALL -w json", "diagnose ALL --timeline", "diagnose %s", "inspect %s -w json", "compare ALL -w json",
	"history k ALL -w json",
	"repair plan ALL -o OUT/plan.json", "preflight %s --to 3.6 -w json", "verify DB -w json", "explain W04 ALL",
	"dumplog %s -w jsonl", "dumplog %s --raw", "dumplog %s --stats", "dumplog %s --lives", "dumplog %s --snaps",
	"dumpdb %s -w jsonl", "dumpdb %s key", "dumpdb %s --hashkv", "dumpdb %s --salvage", "dumpdb %s --pages",
	"dumpdb %s --free", "dumpdb %s --kube", "inspect %s --full", "verify DB --against OTHER -w json",
	"verify DB --against %s -w json", "explain P01 %s",
	"report ALL -o OUT/page.html", "report ALL -o OUT/issue.md", "report ALL -o OUT/all.json",
	"bundle ALL -o OUT/bundle.tar.zst", "bundle ALL --keys clear --list",
	"compare %s OTHER --as-script", "dumplog OTHER --peer %s",
	"extract %s -o OUT/keys.jsonl", "extract %s --format backup -o OUT/backup.db",
	"rebuild --log %s --to index=20 -o OUT/rebuilt.db", "rebuild --base %s --log OTHER --to last -o OUT/based.db",
	"restore %s --initial-cluster a=http://127.0.0.1:2380 -o OUT/restored",
	"restore DB --surviving OTHER --initial-cluster a=http://127.0.0.1:2380 --accept-unproven-content -o OUT/surviving",
	"collect --no-client --data-dir %s -o OUT/copy.tar.zst",
	"repair wal %s -o OUT/wal", "repair wal %s --with OTHER -o OUT/wal2", "repair db %s --rebuild -o OUT/db",
	"repair db %s --previous-meta -o OUT/db2",
	"repair meta %s --set-consistent-index 5 -o OUT/meta",
}

// run runs a command on the set in the folder in, and gives it a new folder for what it writes.
func (c partCase) run(t *testing.T, command, in, out string) (code int, stdout, stderr *bytes.Buffer) {
	t.Helper()
	members, err := filepath.Glob(filepath.Join(in, "*"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(out, 0o700); err != nil {
		t.Fatal(err)
	}
	other := members[0]
	if len(members) > 1 && filepath.Base(other) == c.member {
		other = members[1]
	}
	var args []string
	for a := range strings.FieldsSeq(command) {
		switch a {
		case "ALL":
			args = append(args, members...)
		case "DB":
			args = append(args, filepath.Join(in, c.member, "member", "snap", "db"))
		case "OTHER":
			args = append(args, other)
		case "%s":
			args = append(args, filepath.Join(in, c.member))
		default:
			args = append(args, strings.ReplaceAll(a, "OUT", out))
		}
	}
	s, stdout, stderr := streams(nil)
	return Main(t.Context(), args, s), stdout, stderr
}

// runWithout runs commands on the incident without the part and holds every end against the rules.
func runWithout(t *testing.T, c partCase, commands []string) {
	dir := t.TempDir()
	if err := evidencetest.CopyTo(evidencetest.Incident(t, c.incident), filepath.Join(dir, "in")); err != nil {
		t.Fatal(err)
	}
	in := filepath.Join(dir, "in")
	if c.part != "" {
		c.takeAway(t, in)
	}
	for i, command := range commands {
		code, stdout, stderr := c.run(t, command, in, filepath.Join(dir, fmt.Sprintf("out%d", i)))
		if code < ExitDone || code > ExitUnfinished || code == ExitUsage &&
			(c.part == "" || !aboutSource(stderr.String())) {
			t.Errorf("%s: exit code %d: %.300s", command, code, stderr)
		}
		if strings.Contains(stderr.String(), "defect") {
			t.Errorf("%s: %s", command, stderr)
		}
		if strings.Contains(command, "-w json") && stdout.Len() > 0 && !validJSON(stdout.Bytes()) {
			t.Errorf("%s: no JSON:\n%.400s", command, stdout)
		}
		if code == ExitDone && strings.HasPrefix(command, "diagnose ALL") &&
			(c.part == "wal" || c.part == "db" || c.part == "segment" && c.fate != "missing") {
			t.Errorf("%s: exit code 0 without %s", command, c.part)
		}
	}
}

// aboutSource tells whether an error says what a path holds, or that nothing is there, and what was expected: a source
// that lacks a part may be no source for the command. Wrong flags and arguments say neither.
func aboutSource(said string) bool {
	return strings.Contains(said, "found ") && strings.Contains(said, "expected ") ||
		strings.Contains(said, "no such file or directory")
}

// validJSON tells whether b is one JSON document or one a line.
func validJSON(b []byte) bool {
	d := json.NewDecoder(bytes.NewReader(b))
	for {
		var v any
		if err := d.Decode(&v); err != nil {
			return errors.Is(err, io.EOF)
		}
	}
}

// chosen picks n of the cases by a seed and the name of the incident, other kinds for every incident.
func chosen(cases []partCase, n int, seed string) []partCase {
	rank := func(c partCase) uint64 {
		h := fnv.New64a()
		_, _ = fmt.Fprintf(h, "%s %s", seed, c) // a hash never fails to write
		return h.Sum64()
	}
	slices.SortFunc(cases, func(a, b partCase) int {
		if rank(a) < rank(b) {
			return -1
		}
		return 1
	})
	return cases[:min(n, len(cases))]
}

// TestWithoutParts runs commands on every incident with a part of a member gone. The cases and commands are a choice by
// a seed (ETCD_MEDIC_TEST_SEED); the tests with tag e2e run them all.
func TestWithoutParts(t *testing.T) {
	seed := os.Getenv("ETCD_MEDIC_TEST_SEED")
	for n, incident := range evidencetest.Incidents(t) {
		for k, c := range chosen(partCases(t, incident), 2, seed) {
			t.Run(c.String(), func(t *testing.T) {
				t.Parallel()
				commands := []string{everyCommand[0]}
				for i := range 6 {
					commands = append(commands, everyCommand[(n*12+k*6+i)%len(everyCommand)])
				}
				runWithout(t, c, commands)
			})
		}
	}
}

// TestWithAllParts: no command of the list is wrong usage where nothing is gone, which would test nothing.
func TestWithAllParts(t *testing.T) {
	runWithout(t, partCase{incident: "m-healthy-3.6", member: "node2"}, everyCommand)
}

// TestWithoutALog is the panic that was: the log of one member is gone, whatever is wrong beside it.
func TestWithoutALog(t *testing.T) {
	for _, incident := range []string{"a-auth-revision-replay", "h-misconfigured-member-add", "m-healthy-3.6"} {
		for _, fate := range partFates {
			c := partCase{incident, "node2", "wal", fate}
			t.Run(c.String(), func(t *testing.T) {
				t.Parallel()
				runWithout(t, c, []string{everyCommand[0], "repair plan ALL -o OUT/plan.json"})
			})
		}
	}
}

// notOfFiles are the commands that everyCommand leaves out, and why.
var notOfFiles = map[string]string{
	"node run": "starts servers on a copy", "lab": "makes its own cluster", "watch": "reads running members",
	"repair rehearse": "reads a plan", "repair apply": "reads a plan", "repair status": "reads the journal of a run",
	"repair abort": "reads the journal of a run", "version": "reads nothing", "completion": "reads nothing",
	"docs": "writes the documents of the project",
}

// TestListOfCommandsIsComplete: each command that reads sources is in the list.
func TestListOfCommandsIsComplete(t *testing.T) {
	var leaves func(cmd *cobra.Command, path string)
	left := maps.Clone(notOfFiles)
	leaves = func(cmd *cobra.Command, path string) {
		for _, c := range cmd.Commands() {
			name := strings.TrimPrefix(path+" "+c.Name(), " ")
			if leaves(c, name); c.HasSubCommands() || c.IsAdditionalHelpTopicCommand() {
				continue
			}
			_, excused := notOfFiles[name]
			delete(left, name)
			tested := slices.ContainsFunc(everyCommand, func(s string) bool { return strings.HasPrefix(s, name+" ") })
			if tested == excused {
				t.Errorf("%s: tested %v, left out %v", name, tested, excused)
			}
		}
	}
	leaves(newRoot(&Streams{Out: io.Discard, Err: io.Discard, Getenv: os.Getenv}), "")
	if len(left) > 0 {
		t.Errorf("no such commands: %v", left)
	}
}
