package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

type dumpDBOptions struct {
	output
	sources
	bucket string

	key, prefix         string
	rev, fromRev, toRev string
	history             string
	deleted, keysOnly   bool
	pages, previous     bool
	limit               int64
	filter              keyFilter
}

const dumpDBLong = `Show the bbolt file of a member, a backup or a .snap.db. Without BUCKET: both meta pages, the page graph and the
buckets with their row counts. With BUCKET: its rows, decoded. etcd's names and common spellings of them are accepted
(auth-users, auth_users, authUsers). Damage is shown where it is met ("!!"), and listing goes on behind it.

Values are shown as length and digest unless --values is given; password hashes need --unsafe-show-secrets.

For bucket key the rows are all records in revision order. --key, --prefix and revisions narrow them; --rev shows the keys
as they were at that revision, --deleted the tombstones, --history every record of one key.

Exit codes: 0 sound, 1 could not read, 2 wrong usage, 3 damage was met.`

const dumpDBExample = `  etcd-medic dumpdb node1/
  etcd-medic dumpdb node1/ key --prefix /app/ --keys-only
  etcd-medic dumpdb node1/ key --history /app/leader --values
  etcd-medic dumpdb node1/ authRoles
  etcd-medic dumpdb backup.db meta -w json`

func newDumpDBCmd(s *Streams, run func(context.Context, *dumpDBOptions) error) *cobra.Command {
	o := &dumpDBOptions{output: output{io: s}}
	cmd := &cobra.Command{
		Use:     "dumpdb SRC [BUCKET]",
		Short:   "show pages, buckets and rows of a database file",
		Long:    dumpDBLong,
		Example: dumpDBExample,
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.parse(args[:1]); err != nil {
				return err
			}
			if len(args) > 1 {
				o.bucket = bucketName(args[1])
			}
			if err := o.check(cmd); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
	}
	o.output.flags(cmd)
	o.secretFlag(cmd)
	f := cmd.Flags()
	f.StringVar(&o.key, "key", "", "bucket key: only this key")
	f.StringVar(&o.prefix, "prefix", "", "only keys with this prefix")
	f.StringVar(&o.rev, "rev", "", "bucket key: the live keys as they were at this revision")
	f.StringVar(&o.fromRev, "from-rev", "", "bucket key: from this revision (1043 or 1043.0) on")
	f.StringVar(&o.toRev, "to-rev", "", "bucket key: up to and with this revision")
	f.StringVar(&o.history, "history", "", "bucket key: every record of this key")
	f.BoolVar(&o.deleted, "deleted", false, "bucket key: only tombstones")
	f.BoolVar(&o.keysOnly, "keys-only", false, "leave out values")
	f.BoolVar(&o.pages, "pages", false, "walk the page graph and list everything that is wrong with it")
	f.BoolVar(&o.previous, "previous-meta", false, "read the other meta page: the db one transaction earlier")
	f.Int64Var(&o.limit, "limit", 0, "stop after this many rows")
	return cmd
}

// keyFlags need bucket key.
var keyFlags = []string{"key", "rev", "from-rev", "to-rev", "history", "deleted"}

func (o *dumpDBOptions) check(cmd *cobra.Command) (err error) {
	for _, name := range keyFlags {
		if !cmd.Flags().Changed(name) {
			continue
		}
		if o.bucket == "" {
			o.bucket = "key"
		}
		if o.bucket != "key" {
			return usagef("", "--%s needs bucket key, not %s", name, o.bucket)
		}
	}
	if o.bucket != "" && o.pages {
		return usagef("leave out the bucket", "--pages is about the whole file")
	}
	if o.prefix != "" && o.bucket == "" {
		o.bucket = "key"
	}
	o.filter, err = newKeyFilter(o)
	return err
}

// bucketName maps common spellings to etcd's names; an unknown one is taken as it is.
func bucketName(s string) string {
	plain := func(s string) string { return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(s)) }
	for _, b := range []string{"key", "meta", "lease", "alarm", "auth", "authUsers", "authRoles", "members", "members_removed", "cluster", "test"} {
		if plain(s) == plain(b) {
			return b
		}
	}
	if alias, ok := map[string]string{"keys": "key", "leases": "lease", "alarms": "alarm", "member": "members", "membersremove": "members_removed",
		"removed": "members_removed", "users": "authUsers", "roles": "authRoles"}[plain(s)]; ok {
		return alias
	}
	return s
}

func runDumpDB(ctx context.Context, o *dumpDBOptions) error {
	src, err := evidence.Locate(ctx, o.specs[0])
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }()
	if src.DB == "" {
		return &evidence.SourceError{Where: o.specs[0].Where, Found: "a " + string(src.Kind) + " without a db", Expected: "a bbolt file such as member/snap/db"}
	}
	stream, err := render.NewStream(o.io.Out, o.format, render.Head{Source: src.Name, SourceKind: string(src.Kind)}, o.renderOptions())
	if err != nil {
		return err
	}
	l := &dbLister{stream: stream, o: o, isBackup: src.Kind == evidence.KindBackup}
	err = l.open(ctx, src.DB)
	if err = errors.Join(err, stream.Close()); err != nil {
		return err
	}
	if l.bad > 0 {
		return result(ExitFindings)
	}
	return nil
}

// open shows a file that can not be opened as the damage it is.
func (l *dbLister) open(ctx context.Context, path string) error {
	db, err := dumpdb.Open(path)
	if err == nil {
		defer func() { _ = db.Close() }()
		if l.o.previous {
			if db, err = db.PreviousView(); err != nil {
				return l.damaged(err)
			}
		}
		l.db = db
		return l.list(ctx)
	}
	return l.damaged(err)
}
