package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/repair/rebuild"
)

type rebuildOptions struct {
	output
	sources
	rebuild.Options
	base, to, line     string
	logDirs, againstAt []string
	skip               []uint
}

const rebuildLong = `Create the database as of a chosen point of the log: point-in-time recovery. The base is a backup,
a data dir or a database file. The committed entries after its consistent index come from the logs of one or more
members (and the base's own). They are executed by the rules of the server's apply: permissions, leases, alarms,
compares, compactions, members, users and roles.

--to names the point:
  index=N       after the raft entry N
  revision=R    when the revision became R
  before=KEY    before the last entry that changed KEY, a deletion by range or lease included
  time=T        before the first entry that was certainly proposed later than T (RFC 3339); refused if no entry
                shows a later time
  last          the end of what the sources prove committed

An entry that no source shows to be committed is committed all the same if the logs of a majority of the voters hold it
and show no newer term than that of the entry. The result says so. Give the logs of all members.

Without --base the log must reach back to the first entry of the cluster. A gap is refused, and the missing indexes are
named. --skip leaves out a single entry; revisions keep their numbers, the history up to the last empty one is
compacted, and later entries with different results because of it are listed.

If patch releases execute an entry differently, the members' databases decide. Entries that they do not decide are
listed, and the exit code is 4. The same holds if a later entry would leave the same content. --etcd names the release
that ran.

--base may be a folder with a chain of full and delta snapshots of etcd-backup-restore, or a full snapshot in one. The
deltas then replace the logs, and time=T is the time at which a change was received. Only a chain that etcd-medic verify
finds complete up to the target is applied. With --log, the entries of the logs are applied to the full snapshot
instead, with users, leases and members; --against compares the keys with a member.

The result is a backup with a sha256 trailer (-o), for etcdutl snapshot restore, and with --db-output a database without
one. It is compared with every given member that passed the point (--log and --against): bucket by bucket, by content.

Exit codes: 0 done, 1 could not read or write, 2 wrong usage, 3 a member holds other content, 4 entries whose result the
log does not decide, and no member to prove the result, 5 refused: a gap, a base of another cluster or too new, damage,
an output that exists.`

const rebuildExample = `  etcd-medic rebuild --base backup.db --log node1/ --log node2/ --to before=/registry/namespaces/shop -o before.db
  etcd-medic rebuild --base node1/ --to revision=1043 -o r1043.db
  etcd-medic rebuild --log node1/ --to last --skip 5120 -o without.db --db-output without/member/snap/db`

func newRebuildCmd(s *Streams, run func(context.Context, *rebuildOptions) error) *cobra.Command {
	o := &rebuildOptions{output: output{io: s}}
	cmd := &cobra.Command{
		Use:     "rebuild --base SOURCE --log SOURCE... --to POINT -o FILE",
		Short:   "the database at a point of the log, from a base and committed entries",
		Long:    rebuildLong,
		Example: rebuildExample,
		Args:    rebuildArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
	}
	o.output.flags(cmd)
	o.accessFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&o.base, "base", "", "backup, data dir or database to start from, as [NAME=]WHERE; empty: the log "+
		"reaches back to its first entry")
	f.StringArrayVar(&o.logDirs, "log", nil, "data dir or WAL folder whose log is used, as [NAME=]WHERE; repeatable")
	f.StringArrayVar(&o.againstAt, "against", nil, "further member to compare the result with; repeatable")
	f.StringVar(&o.to, "to", "", "index=N, revision=R, before=KEY, time=T or last")
	f.UintSliceVar(&o.skip, "skip", nil, "index of an entry to leave out; repeatable")
	f.StringVarP(&o.Out, "output", "o", "", "the new backup file")
	f.StringVar(&o.DBOut, "db-output", "", "also write the database without trailer here")
	f.BoolVar(&o.SkipHashCheck, "skip-hash-check", false, "take a base whose sha256 trailer does not match")
	f.StringVar(&o.line, "etcd", "", "apply the rules of this version, such as 3.5 or 3.4.23 (default: the minor "+
		"version that the sources show)")
	return cmd
}

// rebuildArgs refuses arguments: which source is the base and which is the log has to be said.
func rebuildArgs(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usagef("--log for the member whose log is used, --base for the database to start from",
		"rebuild takes its sources from flags, not as arguments: %s", strings.Join(args, " "))
}

func (o *rebuildOptions) check() (err error) {
	if o.To, err = rebuild.ParseTarget(o.to); err != nil {
		return usagef("want --to index=N, revision=R, before=KEY, time=T or last", "--to: %v", err)
	}
	if o.Out == "" {
		return usagef("name a new file", "--output is missing")
	}
	if o.base != "" {
		if o.Base, err = evidence.ParseSpec(o.base); err != nil {
			return usagef("see etcd-medic help sources", "--base: %v", err)
		}
	}
	if o.Logs, err = parseSpecs("--log", o.logDirs); err != nil {
		return err
	}
	if o.Against, err = parseSpecs("--against", o.againstAt); err != nil {
		return err
	}
	if o.base == "" && len(o.logDirs) == 0 {
		return usagef("name a base with --base, logs with --log, or both", "there is nothing to rebuild from")
	}
	if o.line != "" {
		if o.Version, err = release.Parse(o.line); err != nil || !o.Version.Supported().Certain() {
			return usagef("want 3.3 to 3.8, or a release such as 3.4.23", "--etcd %s", o.line)
		}
	}
	for _, i := range o.skip {
		o.Skip = append(o.Skip, uint64(i))
	}
	return nil
}

func parseSpecs(flag string, list []string) (out []evidence.Spec, err error) {
	for _, s := range list {
		spec, err := evidence.ParseSpec(s)
		if err != nil {
			return nil, usagef("see etcd-medic help sources", "%s: %v", flag, err)
		}
		out = append(out, spec)
	}
	return out, nil
}

func runRebuild(ctx context.Context, o *rebuildOptions) error {
	o.Options.Progress, o.Access = o.io.Progress(), o.access
	o.io.heldSources(append([]evidence.Spec{o.Base}, o.Logs...))
	var res *rebuild.Result
	var err error
	if chains := rebuild.ChainsAt(o.Base); len(chains) > 0 {
		res, err = rebuild.RunChain(ctx, o.Options, chains)
	} else {
		res, err = rebuild.Run(ctx, o.Options)
	}
	o.io.clearStatus()
	if err != nil {
		return err
	}
	if err := o.show(res); err != nil {
		return err
	}
	switch {
	case res.Differs():
		return result(ExitFindings)
	case res.Unsettled > 0, res.DoubtfulCount > 0 && !res.Equal():
		return result(ExitInconclusive)
	}
	return nil
}

func pointText(index, term uint64, rev, comp int64) string {
	return fmt.Sprintf("entry %d/%d, revision %d, compact revision %d", term, index, rev, comp)
}
