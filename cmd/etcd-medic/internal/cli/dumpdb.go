package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

type dumpDBOptions struct {
	output
	sources
	bucket string

	key, prefix, history string
	rev, fromRev, toRev  int64
	live, deleted        bool
	keysOnly, kube       bool
	salvage, free        bool
	pages, previous      bool
	page                 int64
	stats, hashKV        bool
	depth                int
	limit                int64
}

const dumpDBLong = `Show the bbolt file of a member, a backup or a .snap.db. Without BUCKET: both meta pages, the page
graph and the buckets with their row counts. With BUCKET: its rows, decoded. etcd's names and common spellings of them
are accepted (auth-users, auth_users, authUsers). Damage is shown where it is found ("!!"), and the listing continues
after it. After the rows of a backup whose sha256 trailer does not match, the trailer is shown. On a terminal the rows
are tables that fit its width; in a pipe, and with -w lines, each row is one line.

Values are shown as length and digest unless --values is given; password hashes need --unsafe-show-secrets.

For bucket key the rows are all records in revision order. --key, --prefix and revisions narrow them; --live shows the
keys that exist, --rev those that existed at a revision, --deleted those that no longer do, --history every record of
one key, --salvage also what damaged, lost and free pages still hold, --free only what free pages hold. --hashkv gives
the hash that the server's HashKV gives, at the current revision or at --rev, without a server.

--kube names kind, namespace and name of Kubernetes objects; with --values they are decoded (YAML in tables, JSON
else). The data of Secrets stays hidden unless --unsafe-show-secrets is given.

Exit codes: 0 sound, 1 could not read, 2 wrong usage, 3 damage was met.`

const dumpDBExample = `  etcd-medic dumpdb node1/
  etcd-medic dumpdb node1/ key --prefix /app/ --keys-only
  etcd-medic dumpdb node1/ key --history /app/leader --values
  etcd-medic dumpdb node1/ --hashkv --rev 1043
  etcd-medic dumpdb node1/ --prefix /registry/deployments/ --live --kube --values
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
	o.output.rowFlags(cmd)
	o.accessFlagsWithTLSKey(cmd)
	o.secretFlag(cmd)
	f := cmd.Flags()
	o.keyFlagsTo(f)
	f.BoolVar(&o.pages, "pages", false, "list every page with its state, type and bucket")
	f.Int64Var(&o.page, "page", -1, "show one page with its elements")
	f.BoolVar(&o.previous, "previous-meta", false, "read the other meta page: the db one transaction earlier")
	f.Int64Var(&o.limit, "limit", 0, "stop after this many rows")
	return cmd
}

// keyFlagsTo adds the flags for bucket key.
func (o *dumpDBOptions) keyFlagsTo(f *pflag.FlagSet) {
	f.StringVar(&o.key, "key", "", "only this key")
	f.StringVar(&o.prefix, "prefix", "", "only keys with this prefix")
	f.StringVar(&o.history, "history", "", "every record of this key, oldest first")
	f.Int64Var(&o.rev, "rev", 0, "the keys that existed at this revision, in key order; with --hashkv the revision "+
		"to hash at")
	f.Int64Var(&o.fromRev, "from-rev", 0, "from this revision on")
	f.Int64Var(&o.toRev, "to-rev", 0, "up to and with this revision")
	f.BoolVar(&o.live, "live", false, "the keys that exist at the current revision, in key order")
	f.BoolVar(&o.deleted, "deleted", false, "the deleted keys with a tombstone")
	f.BoolVar(&o.keysOnly, "keys-only", false, "leave out values")
	f.BoolVar(&o.salvage, "salvage", false, "records from damaged, lost and free pages too, with where they were found")
	f.BoolVar(&o.stats, "stats", false, "what fills bucket key, by prefix and by Kubernetes kind")
	f.IntVar(&o.depth, "depth", 2, "with --stats: parts of the key that make a prefix")
	f.BoolVar(&o.free, "free", false, "records from free pages only: what earlier transactions left")
	f.BoolVar(&o.hashKV, "hashkv", false, "the hash of the server's HashKV")
	f.BoolVar(&o.kube, "kube", false, "kind, namespace and name of Kubernetes objects; with --values decoded")
}

// keyFlags need bucket key, pageFlags the whole file.
var (
	keyFlags = []string{"key", "prefix", "history", "rev", "from-rev", "to-rev", "live", "deleted", "salvage", "free",
		"stats", "hashkv", "kube"}
	pageFlags = []string{"pages", "page"}
)

func (o *dumpDBOptions) check(cmd *cobra.Command) error {
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
	for _, name := range pageFlags {
		if cmd.Flags().Changed(name) && o.bucket != "" {
			return usagef("leave out the bucket", "--%s is about the whole file", name)
		}
	}
	if o.rev < 0 || o.fromRev < 0 || o.toRev < 0 || o.limit < 0 || o.depth < 1 {
		return usagef("", "revisions and limits are not negative")
	}
	if o.rev > 0 && !o.deleted && !o.hashKV {
		o.live = true
	}
	if trues(o.live, o.deleted, o.salvage, o.free, o.stats, o.hashKV, o.history != "") > 1 {
		return usagef("", "--live (or --rev), --deleted, --salvage, --free, --stats, --hashkv and --history exclude "+
			"each other")
	}
	if o.toRev > 0 && o.fromRev > o.toRev {
		return usagef("", "--from-rev %d is above --to-rev %d", o.fromRev, o.toRev)
	}
	if o.hashKV && (o.key+o.prefix != "" || o.fromRev+o.toRev > 0) {
		return usagef("", "--hashkv is over all keys; only --rev goes with it")
	}
	return nil
}

// withoutMeta reports whether the requested rows can be shown for a file without a valid meta page.
func (o *dumpDBOptions) withoutMeta() bool {
	return !o.previous && (o.pages || o.page >= 0 || o.salvage || o.free || o.bucket == "")
}

// bucketName maps common spellings to etcd's names, and returns other names unchanged.
func bucketName(s string) string {
	plain := func(s string) string { return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(s)) }
	for _, b := range []string{"key", "meta", "lease", "alarm", "auth", "authUsers", "authRoles", "members",
		"members_removed", "cluster", "test"} {
		if plain(s) == plain(b) {
			return b
		}
	}
	if alias, ok := map[string]string{"keys": "key", "leases": "lease", "alarms": "alarm", "member": "members",
		"membersremove": "members_removed",
		"removed":       "members_removed", "users": "authUsers", "roles": "authRoles"}[plain(s)]; ok {
		return alias
	}
	return s
}

func runDumpDB(ctx context.Context, o *dumpDBOptions) error {
	src, err := evidence.LocateWith(ctx, o.specs[0], o.access)
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }()
	if src.DB == "" {
		return &evidence.SourceError{Where: o.specs[0].Where, Found: src.Kind.Noun() + " without a db",
			Expected: "a bbolt file such as member/snap/db"}
	}
	if o.opts.Redact, err = src.Redact(ctx); err != nil {
		return err
	}
	stream := render.NewStream(o.io.Out, o.format, render.Head{Source: src.Name, SourceKind: string(src.Kind)},
		o.renderOptions())
	l := &dbLister{stream: stream, o: o, isBackup: src.Kind == evidence.KindBackup}
	reading, work := o.io.listing(ctx, "reading "+src.Name, src.DB)
	err = stream.Close(l.open(reading, src.DB))
	work.End()
	if err != nil {
		return err
	}
	if err := src.Unchanged(ctx); err != nil {
		return err
	}
	if l.bad > 0 {
		return result(ExitFindings)
	}
	return nil
}

// open shows a file that cannot be opened as damage.
func (l *dbLister) open(ctx context.Context, path string) error {
	db, err := dumpdb.OpenContext(ctx, path)
	if errors.Is(err, dumpdb.ErrNoMeta) && l.o.withoutMeta() {
		if err := l.damaged(err); err != nil {
			return err
		}
		l.noMeta = true
		db, err = dumpdb.OpenSalvage(ctx, path)
	}
	if err != nil {
		return l.damaged(err)
	}
	defer func() { _ = db.Close() }()
	l.db = db
	if l.o.previous {
		if l.db, err = db.PreviousView(); err != nil {
			return l.damaged(err)
		}
	}
	return l.list(ctx)
}
