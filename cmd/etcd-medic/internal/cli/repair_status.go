package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/repair/run"
)

const repairStatusLong = `Show the progress of a plan: every rehearsal or apply run with its steps, what failed and what
is left, and the command that continues. It reads the journal next to the plan. Nothing is written.

Exit codes: 0 done, 1 could not read, 2 wrong usage, 5 the plan was edited, 6 a run started and has not reached its
goal.`

func newRepairStatusCmd(s *Streams, run func(context.Context, *output, string) error) *cobra.Command {
	o := &output{io: s}
	cmd := &cobra.Command{
		Use:     "status PLAN",
		Short:   "show the progress of a plan",
		Long:    repairStatusLong,
		Example: "  etcd-medic repair status plan.yaml\n  etcd-medic repair status plan.yaml -w json | jq .runs",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return run(cmd.Context(), o, args[0]) },
	}
	o.flags(cmd)
	return cmd
}

func runRepairStatus(_ context.Context, o *output, file string) error {
	st, err := run.Status(file)
	if err != nil {
		return err
	}
	if err := render.Document(o.io.Out, o.format, st, standingSheet(st, file), o.renderOptions()); err != nil {
		return err
	}
	if unfinished(st) {
		return result(ExitUnfinished)
	}
	return nil
}

func unfinished(st *run.Standing) bool {
	return slices.ContainsFunc(st.Runs, func(r run.Run) bool {
		return r.State == "failed" ||
			r.State == "interrupted"
	})
}

// newestRun is the run to continue; none has no state.
func newestRun(st *run.Standing) (last run.Run) {
	if len(st.Runs) > 0 {
		last = st.Newest()
	}
	return last
}

func standingSheet(st *run.Standing, file string) render.Sheet {
	head := render.Section{Pairs: [][2]string{{"plan", file}, {"way", string(st.Mode)}, {"at work", "no"},
		{"runs", fmt.Sprint(len(st.Runs))}}}
	if st.AtWork {
		head.Pairs[2][1] = "yes, a process holds the plan's lock"
	}
	s := render.Sheet{Sections: []render.Section{head}}
	for _, r := range st.Runs {
		sec := render.Section{Title: fmt.Sprintf("run %d: %s, %s", r.Run, r.Mode, r.State),
			Head: []string{"step", "state", "seconds", "what"}}
		for _, step := range r.Steps {
			sec.Rows = append(sec.Rows, []string{step.ID, step.State, fmt.Sprintf("%.2f", step.Seconds), step.Detail})
		}
		for _, l := range r.Left {
			sec.Rows = append(sec.Rows, []string{l, "left", "", ""})
		}
		s.Sections = append(s.Sections, sec)
	}
	next := render.Section{Title: "next", Commands: render.Prompts(st.NextArgs...)}
	if last := newestRun(st); (last.State == "failed" || last.State == "interrupted") && !st.AtWork {
		next.Lines = []string{"it continues from the first step that is not done; what a step changes and how to " +
			"undo " +
			"it is in the plan:"}
		switch {
		case last.Mode == plan.Live && st.NextComplete:
			next.Lines = append(next.Lines, "with the flags of the run, without its password and --accept-lost-writes:")
		case last.Mode == plan.Live:
			next.Lines = append(next.Lines, "add the hooks, data dirs and login that the run was started with:")
		}
	}
	if len(st.Next) > 0 {
		s.Sections = append(s.Sections, next)
	}
	return s
}
