package cli

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/internal/progress"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
	"github.com/etcd-medic/etcd-medic/repair/extract"
	"github.com/etcd-medic/etcd-medic/repair/rebuild"
)

type extractOptions struct {
	output
	sources
	extract.Options
	form, leases, rangeStart, rangeEnd string
	keys, prefixes, endpoints          []string
	logDirs                            []string
	logs                               []evidence.Spec
	write                              bool
}

const extractLong = `Copy keys from a data dir, a backup, a database file (sound or damaged) or a running member, and
write them in a usable form: JSON lines, a script for etcdctl, manifests for kubectl apply, a backup that etcdutl
snapshot restore accepts, or directly into another cluster.

Without a selection all keys are taken. KEY arguments, --prefix and --range-start/--range-end add up; --namespace,
--kind and --name narrow that down to objects of Kubernetes. The state is that of --rev, by default the current
revision; --deleted brings deleted keys too, with the last value that the database still holds; --history takes every
record.

Formats (--format):
  jsonl    one object per record with its revisions and lease; the only one that loses nothing
  put      a shell script that calls etcdctl put; values may hold any byte
  txn      a shell script that calls etcdctl txn, many keys at once; with --only-if-absent one by one
  yaml     a folder with one manifest per Kubernetes object, without status and other fields that a server
           sets; Secrets in plain text
  backup   a database with the selected keys under their own revisions, compacted at the revision of the state, and a
           sha256 trailer; users, roles, members and cluster version are included, alarms are not

With --to-endpoints the keys go into a running cluster. Without --write that is a dry run: the cluster is only read, and
the result says which keys are absent, equal or different. Every write is conditional on what was seen, so a key that
changes meanwhile is left unchanged and reported.

Leases (--leases) are granted again with their stored TTL (grant), left off so that keys stay (detach), or their keys
are left out (skip). How much of a TTL had passed is not in the database.

A server writes its database some time after it has acknowledged a write. What it had not written when it was killed or
copied is only in its log. For a data dir, committed entries above the database's consistent index are therefore
executed on a scratch copy first, by the rules of rebuild. Entries that are not proven committed, or cannot be executed,
are counted, and the exit code is 4; --log names other members whose logs prove more. It is 4, too, for a data dir that
has no log, or whose log has lost its end: how many entries are missing is not known then.

What could not be read is listed, with the revisions it may hide. --salvage adds records from damaged and lost pages,
and with --deleted the last values of deleted keys from pages that are not in use any more: compaction does not wipe
them.

Exit codes: 0 all requested keys are in the output, 1 could not read or write, 2 wrong usage, 3 something is missing or
could not be written (damage, a key that does not exist, a conflict), 4 nothing was selected, or the log holds more than
the extract, 5 refused: the output exists, or the revision is out of reach.`

const extractExample = `  etcd-medic extract node1/ --namespace shop --format yaml -o shop/
  etcd-medic extract backup.db /app/leader /app/config --rev 1043 --format put -o leader.sh
  etcd-medic extract damaged.db --salvage --format backup -o rescued.db
  etcd-medic extract backup.db --prefix /registry/secrets/ --deleted --to-endpoints http://127.0.0.1:2379 --only-if-absent`

func newExtractCmd(s *Streams, run func(context.Context, *extractOptions) error) *cobra.Command {
	o := &extractOptions{output: output{io: s}}
	cmd := &cobra.Command{
		Use:     "extract SOURCE [KEY...]",
		Short:   "take keys out of a database, a backup or a member into a new form",
		Long:    extractLong,
		Example: extractExample,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.parse(args[:1]); err != nil {
				return err
			}
			o.keys = args[1:]
			if err := o.check(cmd); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
	}
	o.output.flags(cmd)
	o.accessFlags(cmd)
	f := cmd.Flags()
	f.StringArrayVar(&o.logDirs, "log", nil, "data dir or WAL folder of another member, whose log proves more "+
		"entries committed; repeatable")
	f.StringArrayVar(&o.prefixes, "prefix", nil, "keys that begin with this; repeatable")
	f.StringVar(&o.rangeStart, "range-start", "", "keys from this one on")
	f.StringVar(&o.rangeEnd, "range-end", "", "up to but not including this one")
	f.StringVarP(&o.Select.Namespace, "namespace", "n", "", "objects of this Kubernetes namespace")
	f.StringVar(&o.Select.Kind, "kind", "", "objects of this Kubernetes kind, such as Deployment or Deployment.apps")
	f.StringVar(&o.Select.Name, "name", "", "Kubernetes objects of this name")
	f.Int64Var(&o.Rev, "rev", 0, "the state at this revision; 0 is the current one")
	f.BoolVar(&o.History, "history", false, "every record in place of the state")
	f.BoolVar(&o.Deleted, "deleted", false, "deleted keys too, with their last value")
	f.BoolVar(&o.Salvage, "salvage", false, "records from damaged and lost pages too")
	f.StringVar(&o.leases, "leases", "grant", "keys with a lease: grant|detach|skip")
	f.BoolVar(&o.OnlyIfAbsent, "only-if-absent", false, "write a key only where the target has none (txn, "+
		"--to-endpoints)")
	f.StringVar(&o.form, "format", "jsonl", "what to write: "+strings.Join(extract.Formats(), "|"))
	f.StringVarP(&o.Out, "output", "o", "", "the new file or folder; - writes jsonl, put or txn to stdout in place "+
		"of the result")
	f.StringSliceVar(&o.endpoints, "to-endpoints", nil, "write into the cluster at these client URLs")
	f.BoolVar(&o.write, "write", false, "with --to-endpoints: really write")
	offer(cmd, "format", extract.Formats()...)
	offer(cmd, "leases", "grant", "detach", "skip")
	return cmd
}

// check turns flags into options and refuses invalid combinations.
func (o *extractOptions) check(cmd *cobra.Command) error {
	o.Format, o.Leases = extract.Format(o.form), extract.LeaseMode(o.leases)
	var err error
	if o.logs, err = parseSpecs("--log", o.logDirs); err != nil {
		return err
	}
	o.selection(cmd)
	switch o.leases {
	case "grant", "detach", "skip":
	default:
		return usagef("want grant, detach or skip", "--leases %s", o.leases)
	}
	if len(o.endpoints) > 0 {
		if o.Out != "" || cmd.Flags().Changed("format") {
			return usagef("", "--to-endpoints writes into a cluster, so there is no --output and no --format")
		}
		o.Format = extract.Cluster
	} else if err := o.file(); err != nil {
		return err
	}
	if o.Rev < 0 {
		return usagef("", "a revision is not negative")
	}
	if err := o.Valid(); err != nil {
		return usagef("see etcd-medic extract --help", "%v", err)
	}
	return nil
}

func (o *extractOptions) file() error {
	if o.write {
		return usagef("", "--write goes with --to-endpoints")
	}
	if !o.Format.Known() {
		return usagef("want "+strings.Join(extract.Formats(), ", "), "--format %s", o.form)
	}
	switch o.Out {
	case "":
		return usagef("name a new path, or use --to-endpoints", "--output is missing")
	case "-":
		if o.Format == extract.YAML || o.Format == extract.Backup {
			return usagef("name a new path", "%s cannot go to stdout", o.form)
		}
		o.Stream, o.Out = o.io.Out, ""
	}
	return nil
}

func (o *extractOptions) selection(cmd *cobra.Command) {
	for _, k := range o.keys {
		o.Select.Keys = append(o.Select.Keys, []byte(k))
	}
	for _, p := range o.prefixes {
		o.Select.Prefixes = append(o.Select.Prefixes, []byte(p))
	}
	if cmd.Flags().Changed("range-start") || cmd.Flags().Changed("range-end") {
		o.Select.From = []byte(o.rangeStart)
	}
	if o.rangeEnd != "" {
		o.Select.To = []byte(o.rangeEnd)
	}
}

func runExtract(ctx context.Context, o *extractOptions) error {
	if err := o.claimable(); err != nil {
		return err
	}
	o.io.heldSources(append(slices.Clone(o.specs), o.logs...))
	up, err := rebuild.CatchUp(ctx, o.catchUp())
	if err != nil {
		return err
	}
	defer func() { _ = up.Close() }()
	src := up.Parts
	if src.DB == "" && src.WAL != "" {
		return usagef("if its log reaches back to the first entry, this makes a backup of it: "+o.fromLog().String(),
			"%s: found %s without a db; expected a data dir with one, a bbolt file or a backup", o.specs[0].Where,
			src.Kind.Noun())
	}
	if src.DB == "" {
		return &evidence.SourceError{Where: o.specs[0].Where, Found: src.Kind.Noun() + " without a db",
			Expected: "a data dir, a bbolt file or a backup"}
	}
	o.Source, o.SourceKind = src.Name, string(src.Kind)
	size := int64(0)
	if st, err := os.Stat(up.DB); err == nil {
		size = st.Size()
	}
	reading, work := progress.Begin(ctx, "reading "+src.Name, size)
	res, err := o.extract(reading, up.DB)
	work.End()
	o.io.clearStatus()
	if err != nil {
		return err
	}
	if err := src.Unchanged(ctx); err != nil {
		return err
	}
	if src.Kind == evidence.KindDataDir || src.WAL != "" {
		res.Log = up
	}
	res.Notes = append(res.Notes, up.Says()...)
	if o.Stream != nil {
		o.streamed(res)
	} else if err := o.show(res); err != nil {
		return err
	}
	switch {
	case res.Short():
		return result(ExitFindings)
	case res.Empty(), res.Behind():
		return result(ExitInconclusive)
	}
	return nil
}

// claimable refuses an output path that cannot be created, before the log is executed.
func (o *extractOptions) claimable() error {
	inputs := append(slices.Clone(o.specs), o.logs...)
	if o.Out == "" || o.Stream != nil {
		return nil
	}
	o.Inputs = inputs
	return datadir.Outside(o.Out, inputs...)
}

// catchUp says which database is read. For free and damaged pages it is the unchanged file.
func (o *extractOptions) catchUp() rebuild.CatchUpOptions {
	c := rebuild.CatchUpOptions{Source: o.specs[0], Logs: o.logs, Revision: o.Rev, Access: o.access,
		Progress: o.io.Progress()}
	if o.Salvage {
		c.AsIs = "--salvage reads the pages of the file as they are; extract without it for the newest state"
	}
	return c
}

func (o *extractOptions) extract(ctx context.Context, db string) (*extract.Result, error) {
	if len(o.endpoints) == 0 {
		return extract.Run(ctx, db, o.Options)
	}
	cli, err := o.access.Dial(ctx, o.endpoints)
	if err != nil {
		return nil, err
	}
	defer func() { _ = cli.Close() }()
	r, err := extract.ToCluster(ctx, db, o.Options, extract.Target{Client: cli, Write: o.write})
	return r, o.access.Because(ctx, o.endpoints, err)
}
