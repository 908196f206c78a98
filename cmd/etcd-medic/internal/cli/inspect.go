package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/compare"
)

type inspectOptions struct {
	output
	sources
	failOn    failOn
	noDigests bool
}

const inspectLong = `Show one source on a screen or, with --full, every fact of it: log, snapshots, database, auth,
membership, leases, alarms, and which etcd version wrote it; then the checks that need no other member. A single member
cannot show everything: diagnose takes several.

Exit codes: 0 nothing at or above --fail-on, 1 could not read, 2 wrong usage, 3 findings at or above --fail-on,
4 inconclusive.`

const inspectExample = `  etcd-medic inspect /copies/node1
  etcd-medic inspect backup.db -w json | jq '.members[0].db'
  etcd-medic inspect /copies/node1 -w fields | grep wal`

func newInspectCmd(s *Streams, run func(context.Context, *inspectOptions) error) *cobra.Command {
	o := &inspectOptions{output: output{io: s}}
	cmd := &cobra.Command{
		Use:     "inspect SOURCE",
		Short:   "show one data dir, backup or db file, with --full every fact of it",
		Long:    inspectLong,
		Example: inspectExample,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.parse(args); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
	}
	o.output.flags(cmd)
	o.sources.flags(cmd)
	o.accessFlags(cmd)
	o.failOn.flag(cmd)
	o.fullFlag(cmd)
	o.quietFlag(cmd)
	digestsFlag(cmd, &o.noDigests)
	return cmd
}

func runInspect(ctx context.Context, o *inspectOptions) error {
	c := o.compareOptions(&o.sources)
	c.NoDigests = o.noDigests || o.format == render.Table && (!o.opts.Full || o.opts.Quiet) // a screen shows no digest
	r, err := compare.Inspect(ctx, o.specs[0], c)
	o.io.clearStatus()
	if err != nil {
		return err
	}
	r.Given = o.given()
	if err := render.Inspection(o.io.Out, o.format, r, o.renderOptions()); err != nil {
		return err
	}
	o.io.unusable(r.Sources)
	return result(reportCode(r, o.failOn))
}
