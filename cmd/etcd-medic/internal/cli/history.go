package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/compare"
)

type historyOptions struct {
	output
	sources
	key string
}

const historyLong = `Follow one key through the log and the databases of all sources: every committed entry that names
it or revokes its lease, with what that entry did on each member (applied at which revision, refused and why,
missing), and every record of it that a database still holds, in live, older and free pages.

Values are shown as length and digest unless --values is given.

Exit codes: 0 done, 1 could not read, 2 wrong usage, 3 damage was met, 4 a source could not be used.`

const historyExample = `  etcd-medic history /app/leader node1/ node2/ node3/
  etcd-medic history /registry/pods/default/web-0 node1/ --values
  etcd-medic history /app/leader node1/ node2/ -w json | jq .entries`

func newHistoryCmd(s *Streams, run func(context.Context, *historyOptions) error) *cobra.Command {
	o := &historyOptions{output: output{io: s}}
	cmd := &cobra.Command{
		Use:     "history KEY SOURCE...",
		Short:   "follow one key through the log and the databases",
		Long:    historyLong,
		Example: historyExample,
		Args:    cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.parse(args[1:]); err != nil {
				return err
			}
			o.key = args[0]
			return run(cmd.Context(), o)
		},
	}
	o.output.flags(cmd)
	o.sources.flags(cmd)
	o.accessFlags(cmd)
	return cmd
}

func runHistory(ctx context.Context, o *historyOptions) error {
	h, err := compare.History(ctx, []byte(o.key), o.specs, o.compareOptions(&o.sources))
	o.io.clearStatus()
	if err != nil {
		return err
	}
	if err := render.History(o.io.Out, o.format, h, o.renderOptions()); err != nil {
		return err
	}
	o.io.unusable(h.Sources)
	return result(historyCode(h))
}

func historyCode(h *compare.KeyHistory) int {
	if len(h.Damage) > 0 {
		return ExitFindings
	}
	if len(h.LeftOut) > 0 {
		return ExitInconclusive
	}
	for _, s := range h.Sources {
		if s.Error != "" {
			return ExitInconclusive
		}
	}
	return ExitDone
}
