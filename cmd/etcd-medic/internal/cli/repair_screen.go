package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/repair/run"
	"github.com/etcd-medic/etcd-medic/shell"
)

// planAnswer is the plan on one screen: what is kept, what that gives up, what is done to whom, what to type now.
func planAnswer(p *plan.Plan, file string) *render.Answer {
	w := p.Shown()
	a := &render.Answer{Word: "PLANNED", Mood: render.Good, Title: "DO NOW",
		Says: fmt.Sprintf("%s (mode %s) is written to %s; nothing else was changed", planNoun(p), p.Mode, file),
		Last: string(p.Mode) + " in " + file}
	if p.Mode == plan.RehearseOnly {
		a.Word, a.Mood = "PLANNED, TO TRY ONLY", render.Doubtful
	}
	a.Pairs = [][2]string{{"WRONG", wrongPair(p)},
		{"KEEP", keepBriefly(p)}, {"LOSES", p.GivenUp()},
		{"WAY", string(p.Mode) + ": " + strings.TrimSuffix(p.Why, ": "+p.Verdict.Summary)}}
	if p.Missing != nil {
		a.Pairs = slices.Insert(a.Pairs, 1, [2]string{"NEEDS", p.Missing.Text()})
	}
	if p.Best.Name != "" {
		a.Last += "; keep " + p.Best.Name
	}
	if len(p.Cautions) > 0 {
		a.Pairs = append(a.Pairs, [2]string{"WARN", p.Cautions[0]})
	}
	a.Pairs = append(a.Pairs, [2]string{"TAKES", costText(w)})
	a.Spare = 1
	a.Head = []string{"MEMBER", "ID", "REVISION", "MISSING", "WHAT IS DONE"}
	for i := range p.Members {
		m := &p.Members[i]
		done := string(m.Action)
		if m.Action == plan.Best {
			done = "keep: the best member"
		}
		if m.Action != plan.Best && m.Why != "" {
			done += ": " + m.Why
		}
		a.Rows = append(a.Rows, []string{m.Name, m.ID.String(), dash(number(m.Revision)), dash(number(int64(m.Lacks))),
			done})
	}
	for _, c := range nextOfPlan(p, file).Commands {
		c.Prefix = strings.TrimSuffix(c.Prefix, "$ ")
		a.Commands = append(a.Commands, c)
	}
	a.Commands = withSaves(plainCommands(mendFirst(p)), a.Commands)
	a.More = fmt.Sprintf("%s and --full: %s, %s", filepath.Base(file), stepCount(w),
		plural.Of(len(p.Cautions), "warning", "warnings"))
	if n := len(p.OtherWays()); n > 0 {
		a.More += ", " + plural.Of(n, "other way", "other ways")
	}
	return a
}

// planNoun says what the plan is for. A healthy cluster has one when data dirs of members it removed are given.
func planNoun(p *plan.Plan) string {
	if p.Verdict.Class == check.ClassHealthy {
		return "the plan for a healthy cluster"
	}
	return "the repair of " + string(p.Verdict.Class)
}

func wrongPair(p *plan.Plan) string {
	if p.Verdict.Class == check.ClassHealthy {
		return ""
	}
	return cmp.Or(p.Verdict.Problem, p.Verdict.Summary)
}

// mendFirst are the commands that come before the plan: what mends the member that is kept, and what saves data.
func mendFirst(p *plan.Plan) []shell.Command {
	if p.Lost.MendArgs.IsZero() {
		return p.Lost.SaveArgs
	}
	return append([]shell.Command{p.Lost.MendArgs}, p.Lost.SaveArgs...)
}

// withSaves puts the commands that save data first, and keeps the next command among the three that are shown.
func withSaves(saves, next []render.Command) []render.Command {
	if len(saves) <= 2 || len(next) == 0 {
		return append(saves, next...)
	}
	return slices.Concat(saves[:2], next[:1], saves[2:], next[1:])
}

// keepBriefly is the member that is kept with what speaks for it, without what speaks against the others.
func keepBriefly(p *plan.Plan) string {
	if p.Best.Name == "" {
		return "no member"
	}
	return fmt.Sprintf("%s, revision %d: %s", p.Best.Name, p.Best.Revision, cmp.Or(p.Best.For, p.Best.Why))
}

func stepCount(w *plan.Way) string {
	if w == nil || len(w.Steps) == 1 {
		return "the step"
	}
	return plural.Of(len(w.Steps), "step", "steps")
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func plainCommands(commands []shell.Command) []render.Command {
	out := make([]render.Command, len(commands))
	for i, c := range commands {
		out[i] = render.Command{Run: c}
	}
	return out
}

// outcomeAnswer is what a run did on one screen: whether the goal is reached, what failed or could not be proven, what
// to type now.
func outcomeAnswer(out *run.Outcome, next, others []shell.Command, kept string) *render.Answer {
	n := map[string]int{}
	a := &render.Answer{Word: "NOT REACHED", Mood: render.Bad, Title: "DO NOW", Commands: plainCommands(next),
		Head: []string{"PROOF", "OUTCOME", "DETAIL"}}
	for _, p := range out.Proofs {
		if n[p.Outcome]++; p.Outcome != "holds" {
			a.Rows = append(a.Rows, []string{p.What, p.Outcome, p.Detail})
		}
	}
	proofs := fmt.Sprintf("%d of %d proofs hold", n["holds"], len(out.Proofs))
	a.Says = "the goal is not reached: " + proofs
	if out.Reached {
		a.Word, a.Mood, a.Says = "DONE", render.Good, "the goal is reached: every proof holds ("+
			plural.Of(len(out.Proofs), "proof", "proofs")+")"
		if open(out) > 0 {
			a.Mood, a.Says = render.Doubtful, "the goal is reached: no proof is violated, "+proofs
		}
	}
	a.Last = string(out.Mode) + ", " + proofs
	if failed := failedStep(out); failed != nil {
		a.Says = "the goal is not reached: step " + failed.ID + " failed"
		a.Last = fmt.Sprintf("%s, step %s failed", out.Mode, failed.ID)
	}
	if left := leftText(out.Only); left != "" {
		a.Says, a.Last = a.Says+"; "+left, a.Last+"; "+left
		if a.Mood == render.Good {
			a.Mood = render.Doubtful
		}
		a.Commands = withSaves(plainCommands(onlyCommands(out.Only)), a.Commands)
	}
	server := out.Server
	if out.Raises != "" {
		server += "; " + out.Raises
	}
	a.Pairs = [][2]string{
		{"WHAT", fmt.Sprintf("%s, way %s, in %.1f s; database %s", out.Mode, out.Way, out.Seconds,
			plural.Size(out.Bytes))},
		{"STEPS", stepsText(out)}, {"ALONE", onlyText(out.Only)}, {"SERVER", server}, {"NEW DIRS", dirsText(out)},
	}
	a.Pairs = append(a.Pairs, noteLines(out.Notes)...)
	if len(out.Install) > 0 {
		a.Title, a.Commands = "PUT IN PLACE", installCommands(out)
	}
	a.More = fmt.Sprintf("--full: %s, %s, %s", plural.Of(len(out.Steps), "step", "steps"),
		plural.Of(len(out.Proofs), "proof", "proofs"), plural.Of(len(out.Notes), "note", "notes"))
	if kept != "" {
		a.More = "all of it is in " + kept
	}
	if len(others) > 0 {
		a.More += ", with " + plural.Of(len(others), "other way", "other ways")
	}
	return a
}

// screenNotes is the maximum number of notes on the screen.
const screenNotes = 3

// noteLines are a line for each note; the last line counts those that are left out.
func noteLines(notes []string) (out [][2]string) {
	for i, note := range notes {
		if i == screenNotes-1 && len(notes) > screenNotes {
			return append(out, [2]string{"NOTE", plural.Of(len(notes)-i, "more note", "more notes")})
		}
		out = append(out, [2]string{"NOTE", note})
	}
	return out
}

func installCommands(out *run.Outcome) []render.Command {
	commands := make([]render.Command, len(out.Install))
	for i, c := range out.Install {
		commands[i] = render.Command{Prefix: c.Prefix(), Run: c.Args}
	}
	return commands
}

// stepsText counts the steps and names a failed step.
func stepsText(out *run.Outcome) string {
	s := plural.Of(len(out.Steps), "step", "steps")
	if len(out.Steps) == 0 {
		return ""
	}
	if last := failedStep(out); last != nil {
		s += fmt.Sprintf("; %s failed: %s", last.ID, last.Detail)
	}
	return s
}

// failedStep is the step at which a run ended, nil if it did not.
func failedStep(out *run.Outcome) *run.StepResult {
	if n := len(out.Steps); n > 0 && out.Steps[n-1].State == "failed" {
		return &out.Steps[n-1]
	}
	return nil
}

// leftText says in short what is left to decide about members that were taken out, "" for nothing.
func leftText(only []run.OnlyHeld) string {
	var all []string
	for i := range only {
		switch o := &only[i]; {
		case o.Keys > 0:
			all = append(all, fmt.Sprintf("only %s held %s", o.Member, plural.Of(o.Keys, "key", "keys")))
		case o.Unknown != "":
			all = append(all, "what only "+o.Member+" held is unknown")
		}
	}
	return strings.Join(all, ", ")
}

// onlyCommands show what members held that were taken out.
func onlyCommands(only []run.OnlyHeld) []shell.Command {
	var out []shell.Command
	for i := range only {
		switch o := &only[i]; {
		case o.Script != "":
			out = append(out, shell.Format("less {}", shell.Operand(o.Script)))
		case o.Unknown != "":
			out = append(out, o.CommandArgs)
		}
	}
	return out
}

// onlyText says of whom something is left to decide.
func onlyText(only []run.OnlyHeld) string {
	var all []string
	for i := range only {
		all = append(all, only[i].Text())
	}
	return strings.Join(all, "; ")
}

func dirsText(out *run.Outcome) string {
	if len(out.Dirs) == 0 {
		return ""
	}
	return plural.Of(len(out.Dirs), "data dir", "data dirs")
}

// keepResult writes the full result of a run to a file next to the plan, since a run cannot be repeated to see more of
// it. It returns the file's path.
func (o *output) keepResult(file string, sheet render.Sheet) (string, error) {
	var b bytes.Buffer
	opts := o.renderOptions()
	opts.Color, opts.Width, opts.Full = false, 0, true
	if err := render.Document(&b, render.Table, nil, sheet, opts); err != nil {
		return "", err
	}
	path := file + ".result.txt"
	return path, replaceFile(path, b.Bytes())
}
