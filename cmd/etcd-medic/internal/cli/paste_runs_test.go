package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/repair/run"
	"github.com/etcd-medic/etcd-medic/shell"
	"github.com/etcd-medic/etcd-medic/shell/shelltest"
)

// hostilePlan plans the repair of the hostile cluster and returns the plan's path, the plan, and what it prints.
func hostilePlan(t *testing.T) (string, *plan.Plan, *printedBy) {
	t.Helper()
	dirs := hostileCluster(t)
	file := filepath.Join(t.TempDir(), "-pl'an $(: >RAN).yaml")
	p := newPrintedBy(t)
	p.run("repair", "plan", "-o", file, "--best", "$(: >RAN)", "$(: >RAN)="+dirs[0], dirs[1], dirs[2])
	made, err := plan.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	return file, made, p
}

// journalOf is the journal of a run that ended within a step, with values that do something.
func journalOf(t *testing.T, p *plan.Plan, w *plan.Way, steps int) []byte {
	t.Helper()
	values := map[string]string{"out": "-o$(: >RAN)\n: >RAN\n", "file:backup": "/b`: >RAN`\x1b[2J.db"}
	for i := range p.Members {
		name := p.Members[i].Name
		values["dir:"+name] = "/var/lib/$(: >RAN) 'etcd\n: >RAN\n"
		values["endpoint:"+name] = "https://10.0.0.1:2379/';: >RAN;'"
		values["id:"+name] = "$(: >RAN)"
		values["initial:"+name] = "n`: >RAN`=http://10.0.0.1:2380,m\"=http://10.0.0.2:2380"
	}
	records := []run.Record{{State: run.StateRun, Plan: p.Digest}, {State: run.StateNote, Values: values}}
	for i := range steps {
		records = append(records, run.Record{State: run.StateBegin, Step: w.Steps[i].ID})
		if i < steps-1 {
			records = append(records, run.Record{State: run.StateDone, Step: w.Steps[i].ID, Detail: "$(: >RAN)\x1b[2J"})
		}
	}
	var out []byte
	for i, r := range records {
		r.Run, r.Mode, r.Time = 1, w.Mode, time.Unix(1763000000+int64(i), 0)
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		out = append(append(out, b...), '\n')
	}
	return out
}

// TestPastedCommandsOfRuns: wherever a run was interrupted, what status and abort print runs only what it names.
func TestPastedCommandsOfRuns(t *testing.T) {
	file, made, p := hostilePlan(t)
	seen := 0
	for i := range made.Ways {
		w := &made.Ways[i]
		if !w.Possible {
			continue
		}
		for steps := range len(w.Steps) + 1 {
			if err := os.WriteFile(run.JournalPath(file), journalOf(t, made, w, steps), 0o600); err != nil {
				t.Fatal(err)
			}
			p.both("repair", "status", file)
			p.both("repair", "abort", file)
		}
		if seen++; w.Mode == plan.Live && len(p.docs) < 10 {
			t.Errorf("%d commands of a live run were seen", len(p.docs))
		}
	}
	if live := made.Way(plan.Live); live == nil || !live.Possible || seen < 2 {
		t.Fatalf("%d ways are possible; the live one is %+v", seen, live)
	}
	p.paste(12, 12)
}

// hostileOutcome is the result of a run with everything in it that becomes a command.
func hostileOutcome(p *plan.Plan) *run.Outcome {
	out := &run.Outcome{SchemaVersion: plan.SchemaVersion, Plan: p.Digest, Mode: plan.Live, Way: plan.Live,
		Steps:  []run.StepResult{{ID: "1", Title: hostileNames[2], State: "failed", Detail: hostileNames[1]}},
		Proofs: []run.Proof{{What: hostileKeys[3], Outcome: "violated", Detail: hostileNames[2]}},
		Dirs:   map[string]string{hostileNames[2]: "/new\n: >RAN\n"}, Notes: slices.Clone(hostileNames)}
	for _, name := range hostileNames {
		compare := shell.Format("etcd-medic compare --as-script {} {}", shell.Operand("-"+name),
			shell.FillFor("COPY_OF_OLD_DATA_DIR_OF", name))
		out.Only = append(out.Only, run.OnlyHeld{Member: name, Keys: 1, Script: "-held by " + name + ".sh"},
			run.OnlyHeld{Member: name, Unknown: name, Command: compare.String(), CommandArgs: compare})
	}
	for i := range p.Ways {
		for j := range p.Ways[i].Steps {
			out.Install = append(out.Install, p.Ways[i].Steps[j].ByHand...)
		}
	}
	return out
}

// TestPastedCommandsOfOutcomes: the same for what apply and rehearse print at their end.
func TestPastedCommandsOfOutcomes(t *testing.T) {
	file, made, p := hostilePlan(t)
	for _, format := range []render.Format{render.JSON, render.Table} {
		for _, full := range []bool{true, false} {
			for _, failed := range []error{nil, errors.New("failed at `: >RAN`")} {
				var printed bytes.Buffer
				to := &Streams{Out: &printed, Err: &bytes.Buffer{}, Getenv: func(string) string { return "" }}
				o := &output{io: to, format: format}
				o.opts.Full = full
				next := []shell.Command{shell.Format("etcd-medic diagnose {}", shell.Operand("-o\n: >RAN\n"))}
				if err := o.outcome(file, hostileOutcome(made), failed, next); !errors.Is(err, failed) {
					t.Fatal(err)
				}
				if !shell.IsSafe(printed.Bytes()) {
					t.Errorf("%s holds what a terminal obeys", format)
				}
				if format == render.JSON {
					p.document(printed.Bytes())
					continue
				}
				p.lines(printed.String())
			}
		}
	}
	kept, err := os.ReadFile(file + ".result.txt")
	if err != nil {
		t.Fatal(err)
	}
	p.file("result.txt", kept)
	p.paste(25, 20)
}

// hookInHelp is a hook that a text for people shows: what stands between quotes after its flag.
var hookInHelp = regexp.MustCompile(`--hook-[a-z]+ '([^']+)'`)

// TestDocumentedHooks: the hooks that help and documents show run the program that they name, with the bytes that they
// get, and every variable of hooks in a text stands between double quotes.
func TestDocumentedHooks(t *testing.T) {
	var out bytes.Buffer
	if code := Main(t.Context(), []string{"repair", "apply", "--help"}, &Streams{Out: &out, Err: &out,
		Getenv: func(string) string { return "" }}); code != ExitDone {
		t.Fatalf("exit code %d", code)
	}
	texts := map[string]string{"help": out.String()}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/cli/*.md", "deploy/*", "deploy/*/*"} {
		files, err := filepath.Glob(filepath.Join("../../../..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if b, err := os.ReadFile(file); err == nil { // a folder is none
				texts[file] = string(b)
			}
		}
	}
	variable := regexp.MustCompile(`.?\$\{?ETCD_MEDIC_\w+\}?.?`)
	hooks, variables := map[string]bool{}, 0
	for name, text := range texts {
		for _, use := range variable.FindAllString(text, -1) {
			if variables++; !strings.HasPrefix(use, `"`) || !strings.HasSuffix(use, `"`) {
				t.Errorf("%s: %s stands without quotes", name, use)
			}
		}
		for _, m := range hookInHelp.FindAllStringSubmatch(text, -1) {
			hooks[m[1]] = true
		}
	}
	if len(hooks) == 0 || variables < 4 {
		t.Fatalf("%d hooks and %d variables were seen", len(hooks), variables)
	}
	into := newPasted(t)
	for _, name := range append(slices.Clone(hostileNames), hostileKeys...) {
		into.Env = []string{"ETCD_MEDIC_MEMBER_NAME=" + name, "ETCD_MEDIC_DATA_DIR=" + name}
		for hook := range hooks {
			for _, sh := range shelltest.Shells(t) {
				calls := into.Run(sh, hook)
				if len(calls) != 1 || !slices.Contains(calls[0], name) || slices.Index(calls[0], "--") != 1 {
					t.Errorf("%s with %q ran %q", hook, name, calls)
				}
			}
		}
	}
}

// TestPromptsStayLines: a name with a line feed in it does not become a line among the commands that a person is asked
// to type.
func TestPromptsStayLines(t *testing.T) {
	var stderr bytes.Buffer
	s := &Streams{In: strings.NewReader("\n"), Err: &stderr, Getenv: os.Getenv}
	s.guard()
	if err := s.prompt()(t.Context(), []string{"stop " + hostileNames[2] + ", one of:",
		"  [systemd] systemctl stop etcd", "then it must not answer"}); err != nil {
		t.Fatal(err)
	}
	s.notef("member %s", hostileNames[2])
	s.warnf("member %s", hostileNames[2])
	s.inUse(hostileNames[2], "process 1")
	s.errorf("member %s", hostileNames[2])
	if n := strings.Count(stderr.String(), "\n"); n != 7 || !shell.IsSafe(stderr.Bytes()) {
		t.Errorf("%d lines were printed, want 7:\n%s", n, &stderr)
	}
}
