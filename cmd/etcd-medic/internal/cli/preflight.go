package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/compare/preflight"
	"github.com/etcd-medic/etcd-medic/release"
)

type preflightOptions struct {
	output
	sources
	to       string
	version  preflight.Version
	evidence int
}

const preflightLong = `Predict, without starting anything, whether a data dir will boot on an etcd version. If not, show
which start-up check stops it, in the server's own words, and where the cause is on disk. Also show what opening it
changes permanently, and what to do before an upgrade or downgrade: v2 content, v2 requests after the newest raft
snapshot, zombie members and learners, storage version, cluster version.

The prediction is about the data dir alone: it ignores flags, certificates, ports and what peers say.

Exit codes: 0 it boots, 1 could not read, 2 wrong usage, 3 it does not boot, 4 unknown.`

const preflightExample = `  etcd-medic preflight /copies/node1 --to 3.6
  etcd-medic preflight /copies/node1 --to 3.7 -w json | jq '.rules[] | select(.outcome == "violated")'
  etcd-medic preflight n1=/data/n1 --wal-dir n1=/wal/n1 --to 3.5.21`

func newPreflightCmd(s *Streams, run func(context.Context, *preflightOptions) error) *cobra.Command {
	o := &preflightOptions{output: output{io: s}}
	cmd := &cobra.Command{
		Use:     "preflight SOURCE --to VERSION",
		Short:   "predict whether a data dir will boot on an etcd version",
		Long:    preflightLong,
		Example: preflightExample,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.parseFiles(cmd, args); err != nil {
				return err
			}
			var err error
			if o.to == "" {
				return usagef(fmt.Sprintf("want --to 3.%d to 3.%d", preflight.Oldest, preflight.Newest),
					"--to is missing: the etcd version that shall open the dir")
			}
			if o.version, err = preflight.ParseVersion(o.to); err != nil {
				return usagef(fmt.Sprintf("want --to 3.%d to 3.%d", preflight.Oldest, preflight.Newest), "--to: %v",
					err)
			}
			if o.evidence < 1 {
				return usagef("", "--evidence must be 1 or more")
			}
			return run(cmd.Context(), o)
		},
	}
	o.output.flags(cmd)
	o.sources.flags(cmd)
	cmd.Flags().StringVar(&o.to, "to", "", "etcd version that shall open the dir, such as 3.6 (its newest release) "+
		"or 3.6.16")
	cmd.Flags().IntVar(&o.evidence, "evidence", 5, "evidence rows shown per rule in the table")
	offer(cmd, "to", release.Lines()...)
	return cmd
}

func runPreflight(ctx context.Context, o *preflightOptions) error {
	r, err := preflight.Run(ctx, o.specs[0], o.version,
		preflight.Options{Version: Version(), Progress: o.io.Progress()})
	o.io.clearStatus()
	if err != nil {
		return err
	}
	o.opts.MaxEvidence = o.evidence
	if err := render.Preflight(o.io.Out, o.format, r, o.renderOptions()); err != nil {
		return err
	}
	switch {
	case r.Boots == release.Unknown:
		return result(ExitInconclusive)
	case r.Boots.Excluded():
		return result(ExitFindings)
	}
	return nil
}
