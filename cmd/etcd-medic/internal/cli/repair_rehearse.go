package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/repair/run"
	"github.com/etcd-medic/etcd-medic/shell"
)

// sandboxOptions are the common options of commands that run servers on copies.
type sandboxOptions struct {
	run.Options
	isolation string
}

func (o *sandboxOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.Work, "work", "", "scratch folder (default: next to the plan)")
	f.BoolVar(&o.Keep, "keep", false, "leave the scratch folder there")
	f.BoolVar(&o.Again, "again", false, "discard an interrupted run and start again")
	f.StringVar(&o.EtcdBinary, "etcd-binary", "", "run the copies with this etcd server")
	f.StringVar(&o.VerifyWith, "verify-with", "", "run only a plan that a key of this file signed (PLAN.sig; public "+
		"SSH keys, one a line)")
	f.StringVar(&o.isolation, "isolation", "auto", "auto|netns|proxy: how servers are kept from the rest of the world")
}

func (o *sandboxOptions) fill(s *Streams) error {
	i, err := node.ParseIsolation(o.isolation)
	if err != nil {
		return usagef("", "--isolation: %v", err)
	}
	o.Isolation, o.Version, o.Progress = i, Version(), s.Progress()
	return nil
}

type repairRehearseOptions struct {
	output
	sources
	sandboxOptions
	file string
	mode string
}

const repairRehearseLong = `Apply a plan to scratch copies of its sources with real etcd servers, in a sandbox without
network access, and prove the result. The rehearsal starts the members, moves the leader to the best member, removes and
re-adds the others one at a time, and waits until each holds the best member's database. Then it compares HashKV, reads
and writes through each member, and diagnoses the stopped data dirs over all buckets. If the plan repairs files, the
repairs are made again on copies, servers start on them, and they must hold what the plan says.

The reported times and sizes show how long the real repair takes. With auth enabled no password is needed: the sandbox
has its own CA and a client certificate for user root. A second run after an interruption continues where the first one
ended.

Exit codes: 0 all proofs hold, 1 could not read or write, 2 wrong usage, 5 refused: the plan or its sources changed,
another run is in progress, no server or no isolation for it, not enough space; 6 started and not finished, or a proof
is violated: the journal next to the plan shows the progress.`

const repairRehearseExample = `  etcd-medic repair rehearse plan.yaml
  etcd-medic repair rehearse plan.yaml node1=/elsewhere/node1 node2=/elsewhere/node2 node3=/elsewhere/node3
  etcd-medic repair rehearse plan.yaml --etcd-binary /usr/local/bin/etcd -w json`

func newRepairRehearseCmd(s *Streams, run func(context.Context, *repairRehearseOptions) error) *cobra.Command {
	o := &repairRehearseOptions{output: output{io: s}}
	cmd := &cobra.Command{
		Use:     "rehearse PLAN [SOURCE...]",
		Short:   "apply a plan to scratch copies with real servers and prove the result",
		Long:    repairRehearseLong,
		Example: repairRehearseExample,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.parse(args[1:]); err != nil {
				return err
			}
			o.file, o.Specs, o.Rehearse = args[0], o.specs, plan.Mode(o.mode)
			if err := o.fill(s); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
	}
	o.output.flags(cmd)
	o.fullFlag(cmd)
	o.sources.flags(cmd)
	o.sandboxOptions.flags(cmd)
	cmd.Flags().StringVar(&o.mode, "mode", "", "rehearse this way of the plan instead of the recommended one: mend, "+
		"live, force-new-cluster, clone or rebuild")
	return cmd
}

func runRepairRehearse(ctx context.Context, o *repairRehearseOptions) error {
	o.io.heldPlan(o.file, o.specs)
	out, err := run.Rehearse(ctx, o.file, o.Options)
	var next, others []shell.Command
	if p, bad := plan.Load(o.file); bad == nil && out != nil {
		next, others = p.ApplyAfter(out.Way, o.file)
	}
	return o.outcome(o.file, out, err, next, others...)
}

// heldPlan is heldSources for the sources of a plan, or those given instead.
func (s *Streams) heldPlan(file string, given []evidence.Spec) {
	if p, err := plan.Load(file); err == nil && len(given) == 0 {
		given = p.Specs()
	}
	s.heldSources(given)
}

// outcome shows what a run did, also when it did not reach its goal; the error then decides the exit code. others are
// commands for another choice than next; the screen only counts them.
func (o *output) outcome(file string, out *run.Outcome, err error, next []shell.Command,
	others ...shell.Command) error {
	o.io.clearStatus()
	if out == nil {
		return err
	}
	var refused *refusal.Error
	if errors.As(err, &refused) {
		return err
	}
	if err != nil {
		next, others = []shell.Command{plan.StatusCommand(file)}, nil
	}
	sheet, kept := outcomeSheet(out, slices.Concat(next, others)), ""
	if o.format == render.Table && !o.opts.Full {
		var bad error
		if kept, bad = o.keepResult(file, sheet); bad != nil {
			o.opts.Full, err = true, errors.Join(err, bad)
		}
	}
	return errors.Join(render.Reply(o.io.Out, o.format, out, outcomeAnswer(out, next, others, kept), sheet,
		o.renderOptions()), err)
}

func outcomeSheet(out *run.Outcome, next []shell.Command) render.Sheet {
	reached := "NOT reached"
	if out.Reached {
		reached = "reached: every proof holds"
	}
	if out.Reached && open(out) > 0 {
		reached = fmt.Sprintf("reached: no proof is violated, %d could not be made", open(out))
	}
	head := render.Section{Pairs: [][2]string{
		{"goal", reached},
		{"done", fmt.Sprintf("%s, way %s, in %.1f s; database %s", out.Mode, out.Way, out.Seconds,
			plural.Size(out.Bytes))},
		{"server", out.Server},
		{"mind", out.Raises},
	}}
	steps := render.Section{Title: "steps", Head: []string{"step", "state", "seconds", "what"}}
	for _, s := range out.Steps {
		steps.Rows = append(steps.Rows, []string{s.ID, s.State, fmt.Sprintf("%.2f", s.Seconds), s.Detail})
	}
	proofs := render.Section{Title: "proofs", Head: []string{"outcome", "what", "detail"}}
	for _, p := range out.Proofs {
		proofs.Rows = append(proofs.Rows, []string{p.Outcome, p.What, p.Detail})
	}
	s := render.Sheet{Sections: []render.Section{head, steps, proofs}}
	if len(out.Drift) > 0 {
		drift := render.Section{Title: "since the copies", Head: []string{"member", "revision", "now", "applied index",
			"now", "unlisted"}}
		for _, d := range out.Drift {
			drift.Rows = append(drift.Rows, []string{d.Member, fmt.Sprint(d.PlannedRevision), fmt.Sprint(d.Revision),
				fmt.Sprint(d.PlannedIndex), fmt.Sprint(d.AppliedIndex), fmt.Sprint(d.Unlisted)})
		}
		s.Sections = append(s.Sections, drift)
	}
	if len(out.Isolation) > 0 {
		s.Sections = append(s.Sections, render.Section{Title: "isolation", Lines: out.Isolation})
	}
	if len(out.Notes) > 0 {
		s.Sections = append(s.Sections, render.Section{Title: "notes", Lines: dashed(out.Notes)})
	}
	if len(out.Install) > 0 {
		sec := render.Section{Title: "put in place"}
		for _, c := range out.Install {
			sec.Commands = append(sec.Commands, render.Command{Prefix: c.Prefix(), Run: c.Args})
		}
		s.Sections = append(s.Sections, sec)
	}
	if len(next) > 0 {
		s.Sections = append(s.Sections, render.Section{Title: "next", Commands: render.Prompts(next...)})
	}
	if only := onlySection(out.Only); len(only.Lines) > 0 {
		s.Sections = append(s.Sections, only)
	}
	return s
}

// onlySection says what members held that were taken out. It comes last: it is what is left to decide.
func onlySection(only []run.OnlyHeld) render.Section {
	sec := render.Section{Title: "held by members that were taken out"}
	for i := range only {
		o := &only[i]
		sec.Lines = append(sec.Lines, "- "+o.Text())
	}
	sec.Commands = render.Prompts(onlyCommands(only)...)
	return sec
}

func open(out *run.Outcome) int {
	n := 0
	for _, p := range out.Proofs {
		if p.Outcome != "holds" {
			n++
		}
	}
	return n
}
