package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/release"
)

type compareOptions struct {
	output
	sources
	limit    int
	asScript bool
}

const compareLong = `Compare the content of several sources bucket by bucket, at the raft index that all of them have
applied, then their logs entry by entry. Normal differences between members (page layout, password salts, compaction)
are ignored. compare shows differences and does not judge them: diagnose does.

With --as-script and two sources, stdout is a shell script of etcdctl del and put that would give a cluster with the
keys of the first source the keys of the second: values and leases, not revisions. It holds the values in plain text.
Read it before you run it; on a running cluster whose members differ, repair the members first (etcd-medic repair plan).

Exit codes: 0 equal, 1 could not read, 2 wrong usage, 3 something differs, 4 something could not be compared.`

const compareExample = `  etcd-medic compare node1/ node2/ node3/
  etcd-medic compare old=backup1.db new=backup2.db --limit 100
  etcd-medic compare node1/ node2/ -w json | jq '.buckets[] | select(.equal != true)'
  etcd-medic compare old=backup1.db new=backup2.db --as-script > forward.sh`

func newCompareCmd(s *Streams, run func(context.Context, *compareOptions) error) *cobra.Command {
	o := &compareOptions{output: output{io: s}}
	cmd := &cobra.Command{
		Use:     "compare SOURCE SOURCE...",
		Short:   "compare several sources, bucket by bucket",
		Long:    compareLong,
		Example: compareExample,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.parse(args); err != nil {
				return err
			}
			if o.limit < 1 {
				return usagef("", "--limit must be 1 or more")
			}
			if o.asScript && len(o.specs) != 2 {
				return usagef("give the source to change and the source to reach",
					"--as-script takes two sources, %d given", len(o.specs))
			}
			return run(cmd.Context(), o)
		},
	}
	o.output.flags(cmd)
	o.sources.flags(cmd)
	o.accessFlags(cmd)
	cmd.Flags().BoolVar(&o.asScript, "as-script", false, "print what would turn the keys of the first source into "+
		"those of the second, for a shell")
	cmd.Flags().IntVar(&o.limit, "limit", 20, "rows shown per bucket; the others are counted")
	return cmd
}

func runCompare(ctx context.Context, o *compareOptions) error {
	opts := o.compareOptions(&o.sources)
	opts.MaxRows = o.limit
	if o.asScript {
		return compareScript(ctx, o, opts)
	}
	c, err := compare.Compare(ctx, o.specs, opts)
	o.io.clearStatus()
	if err != nil {
		return err
	}
	if err := render.Comparison(o.io.Out, o.format, c, o.renderOptions()); err != nil {
		return err
	}
	o.io.unusable(c.Sources)
	return result(comparisonCode(c))
}

// comparisonCode derives the exit code from the document alone.
func comparisonCode(c *compare.Comparison) int {
	code := ExitDone
	for _, s := range c.Sources {
		if s.Error != "" {
			code = ExitInconclusive
		}
	}
	if len(c.Window.LeftOut) > 0 || len(c.Window.Earlier) > 0 || len(c.Log.Damage) > 0 {
		code = ExitInconclusive
	}
	for _, b := range c.Buckets {
		switch {
		case b.Equal == release.Unknown:
			code = ExitInconclusive
		case b.Equal.Excluded():
			return ExitFindings
		}
	}
	if c.Log.Equal.Excluded() {
		return ExitFindings
	}
	return code
}
