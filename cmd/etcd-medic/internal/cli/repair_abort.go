package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/repair/run"
)

const repairAbortLong = `Show how to abort an apply run: what the newest run has done, what it has not, the state of
each member that it touched, and the commands that go back from there. It reads the plan and its journal. Some steps
cannot be undone: a member that was removed never gets its ID back. Then it says how to get to a sound cluster.

Nothing is written and no cluster is contacted. The run is unchanged: the same apply command continues it. End a run in
progress with ^C first.

etcdctl takes certificates and user from ETCDCTL_CACERT, ETCDCTL_CERT, ETCDCTL_KEY and ETCDCTL_USER.

Exit codes: 0 done, 1 could not read, 2 wrong usage, 5 the plan was edited, or a process is using it.`

func newRepairAbortCmd(s *Streams, run func(context.Context, *output, string) error) *cobra.Command {
	o := &output{io: s}
	cmd := &cobra.Command{
		Use:   "abort PLAN",
		Short: "show what an apply run has done and how to go back",
		Long:  repairAbortLong,
		Example: "  etcd-medic repair abort plan.yaml\n  etcd-medic repair abort plan.yaml -w json | jq '.members[] " +
			"| {name, state}'",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return run(cmd.Context(), o, args[0]) },
	}
	o.flags(cmd)
	return cmd
}

func runRepairAbort(_ context.Context, o *output, file string) error {
	w, err := run.Abort(file)
	if err != nil {
		return err
	}
	return render.Document(o.io.Out, o.format, w, wayBackSheet(w, file), o.renderOptions())
}

func wayBackSheet(w *run.WayBack, file string) render.Sheet {
	head := render.Section{Pairs: [][2]string{{"plan", file}, {"run", w.State}}}
	if w.Run > 0 {
		head.Pairs[1][1] = fmt.Sprintf("%d: %s, %s", w.Run, w.Mode, w.State)
	}
	s := render.Sheet{Sections: []render.Section{head}}
	if w.Run == 0 {
		head.Lines = []string{"no application of this plan has begun: there is nothing to go back from"}
		return render.Sheet{Sections: []render.Section{head}}
	}
	steps := render.Section{Title: "steps", Head: []string{"step", "state", "what"}}
	for _, d := range w.Done {
		steps.Rows = append(steps.Rows, []string{d.ID, d.State, d.Title})
	}
	if u := w.UnderWay; u != nil {
		steps.Rows = append(steps.Rows, []string{u.ID, u.State, u.Title})
		steps.Lines = []string{"a step that was begun, or failed, may be done all the same: look before you go back"}
		if w.Untouched {
			steps.Lines = []string{"step " + u.ID + " failed before it changed anything"}
		}
	}
	for _, l := range w.Left {
		steps.Rows = append(steps.Rows, []string{l, "not begun", ""})
	}
	s.Sections = append(s.Sections, steps)
	if w.Mode != plan.Live {
		s.Sections = append(s.Sections, render.Section{Title: "going back",
			Lines: []string{"only copies were written to: nothing in the cluster was changed by this run. Remove " +
				"what it has written"}})
	}
	if len(w.Look) > 0 {
		s.Sections = append(s.Sections, render.Section{Title: "look first", Commands: commandLines(w.Look)})
	}
	for i := range w.Members {
		m := &w.Members[i]
		sec := render.Section{Title: m.Name, Lines: []string{m.State}, Commands: commandLines(m.Back)}
		if m.Final && len(m.Back) > 0 {
			sec.Lines = append(sec.Lines, "there is no way back to what it was; this leads to a sound cluster:")
		}
		s.Sections = append(s.Sections, sec)
	}
	if len(w.Files) > 0 {
		s.Sections = append(s.Sections, render.Section{Title: "written", Lines: w.Files})
	}
	if len(w.NextArgs) > 0 {
		s.Sections = append(s.Sections, render.Section{Title: "or continue", Commands: render.Prompts(w.NextArgs...)})
	}
	return s
}

// commandLines shows commands and notes with where each is typed.
func commandLines(cmds []plan.Command) []render.Command {
	var out []render.Command
	for _, c := range cmds {
		out = append(out, render.Command{Prefix: c.Prefix(), Run: c.Args})
	}
	return out
}
