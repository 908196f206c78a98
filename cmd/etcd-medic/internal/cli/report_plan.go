package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render/htmlreport"
	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render/mdreport"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/repair/run"
	"github.com/etcd-medic/etcd-medic/shell"
)

// planWriters are the kinds of checklist by the end of the file's name.
var planWriters = map[string]func(io.Writer, *render.Checklist) error{
	".html": htmlreport.WriteChecklist,
	".md":   mdreport.WriteChecklist,
}

// isPlan reports whether the arguments of report are one plan.
func isPlan(args []string) bool {
	if len(args) != 1 {
		return false
	}
	switch strings.ToLower(filepath.Ext(args[0])) {
	case ".yaml", ".yml":
		st, err := os.Stat(args[0])
		return err == nil && st.Mode().IsRegular()
	}
	return false
}

// runReportPlan writes a plan as a checklist. Its exit code is that of repair status.
func runReportPlan(o *reportOptions, file string) error {
	write := planWriters[strings.ToLower(filepath.Ext(o.file))]
	if write == nil {
		return usagef("-o plan.html", "%s: a checklist has to end in .html or .md", o.file)
	}
	if _, err := os.Lstat(o.file); err == nil {
		return refusal.New("give a name that is free", "%s exists; nothing is overwritten", o.file)
	}
	p, err := plan.Load(file)
	if err != nil {
		return err
	}
	st, err := run.Status(file)
	if err != nil {
		return err
	}
	records, err := run.ReadJournal(file)
	if err != nil {
		return err
	}
	c := checklist(p, st, records)
	if err := writeNew(o.file, func(w io.Writer) error { return write(w, c) }); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(o.io.Out, "%s: %s\nwrote %s\n", c.Way, c.State, o.file)
	if unfinished(st) {
		return result(ExitUnfinished)
	}
	return nil
}

// checklist joins a plan with its journal. The steps are ticked from the newest run that was no rehearsal.
func checklist(p *plan.Plan, st *run.Standing, records []run.Record) *render.Checklist {
	c := &render.Checklist{Tool: p.Tool.Name, Version: p.Tool.Version, Digest: p.Digest,
		Summary: cmp.Or(p.Verdict.Problem, p.Verdict.Summary),
		Way:     string(p.Mode), WayWhy: p.Why,
		Keep: p.Best.Name, KeepWhy: cmp.Or(p.Best.For, p.Best.Why), Loses: p.GivenUp(),
		Unproven: p.Lost.Unproven, Save: shell.Texts(mendFirst(p)),
		Cautions: p.Cautions, State: "not begun", Next: st.Next}
	if l := &p.Lost; l.CommittedEntries+l.Records.Count+len(l.Others) == 0 && len(l.Unproven) > 0 {
		c.Loses = "nothing that is known" // the reasons are listed separately
	}
	for _, e := range p.Lost.Entries {
		c.Lost = append(c.Lost, [4]string{fmt.Sprintf("%d/%d", e.Term, e.Index), e.What, strings.Join(e.HeldBy, ", "),
			e.ProposedBy})
	}
	for i := range p.Members {
		m := &p.Members[i]
		c.Members = append(c.Members, render.ChecklistMember{Name: m.Name, ID: m.ID.String(), Action: string(m.Action),
			Why: m.Why})
	}
	mode, real := p.Mode, (*run.Run)(nil)
	if w := p.Shown(); w != nil {
		mode = w.Mode
	}
	for i := range st.Runs {
		r := &st.Runs[i]
		c.Runs = append(c.Runs, render.ChecklistRun{Title: fmt.Sprintf("run %d: %s", r.Run, r.Mode),
			State: r.State, Begun: r.Begun, Last: r.Last})
		if run.IsRehearsal(r.Mode) {
			if real == nil {
				c.State = "rehearsed, " + r.State + "; not begun on the cluster"
			}
			continue
		}
		real, mode = r, r.Mode
		c.State, c.Finished = fmt.Sprintf("run %d, %s: %s", r.Run, r.Mode, r.State), r.State == "reached"
	}
	steps := stepsOf(p, mode)
	for i := range steps {
		c.Steps = append(c.Steps, checklistStep(&steps[i], real, records))
	}
	for i := range p.Ways {
		if w := &p.Ways[i]; w.Mode != mode && p.Mode != plan.RehearseOnly {
			s := "possible: "
			if !w.Possible {
				s = "not possible: "
			}
			c.Other = append(c.Other, string(w.Mode)+", "+s+w.Why)
		}
	}
	return c
}

// stepsOf are the steps of a way, or of the way whose steps it does to copies.
func stepsOf(p *plan.Plan, mode plan.Mode) []plan.Step {
	w := p.Way(mode)
	if w == nil {
		return nil
	}
	if uses := p.Way(w.Uses); uses != nil && len(w.Steps) == 0 {
		return uses.Steps
	}
	return w.Steps
}

func checklistStep(s *plan.Step, real *run.Run, records []run.Record) render.ChecklistStep {
	out := render.ChecklistStep{ID: s.ID, Title: s.Title, Member: s.Member, Precondition: s.Precondition,
		Effect: s.Effect, Undo: s.Undo, Until: s.Done}
	for _, b := range s.ByHand {
		out.Commands = append(out.Commands, render.ChecklistCommand{On: b.On, Run: b.Run, Note: b.Note})
	}
	if real == nil {
		return out
	}
	for i := range real.Steps {
		if r := &real.Steps[i]; r.ID == s.ID {
			out.State, out.Detail, out.Seconds = r.State, r.Detail, r.Seconds
		}
	}
	for _, r := range records {
		if r.Run == real.Run && r.Step == s.ID && (r.State == run.StateBegin || r.State == run.StateDone ||
			r.State == run.StateFailed) {
			out.At = r.Time
		}
	}
	return out
}
