package cli

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/backup"
	"github.com/etcd-medic/etcd-medic/compare/backup/locate"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/repair/restoretest"
)

type verifyOptions struct {
	output
	sources
	failOn    failOn
	evidence  int
	quiet     bool
	metrics   string
	against   []string
	limit     int
	brief     bool
	newest    string
	maxAge    time.Duration
	maxBehind int64
	shardText string
	shard     locate.Shard
	push      string
	drill     bool
	drillOpt  restoretest.Options
	isolate   string
}

const verifyLong = `Prove that a backup can be restored, layer by layer: sha256 trailer, size, both meta pages, every
page, every bucket, the MVCC history, auth, members, leases, alarms, storage version, who took it, revision and
compaction. Each layer ends as holds, violated or not-checked. etcdutl snapshot status does not check the trailer; a
backup with a flipped byte passes it.

BACKUP is a file of etcdctl snapshot save, a database copied from a data dir, a folder, an archive, - for standard
input, or http(s)://HOST:PORT of a running member, whose snapshot is then taken and verified.

A folder means everything in it, with its subfolders and links. Backups are recognised by their content, whatever their
name (k3s, rke2, etcdadm, scripts around kubeadm), also in .gz, .zst, .xz, .bz2, .zip and .tar. A file that is named
like a backup, or like the backups next to it, and holds something else is a damaged backup. Skipped files are listed
with the reason. Full and delta snapshots of etcd-backup-restore are verified as chains: sha256, order, gaps, and
whether each delta applies. --newest selects the newest of each folder, --newest=series the newest of each series of
names that differ only in their time stamp.

s3://BUCKET/KEY, gs://BUCKET/KEY and azblob://CONTAINER/KEY name an object or everything below a prefix. Credentials are
found as the drivers of gocloud.dev/blob find them, and parameters follow as in
's3://backups/etcd/?region=eu-central-1'. One object at a time is copied to scratch. --shard I/N verifies one of N
parts, for several runs in parallel; --max-age and --newest keep a series in one part.

--against SOURCE (repeatable; another backup, packed or not, a data dir, a running member) reports how many revisions
the backup lags. It lists the keys that would differ from the source after a restore, by prefix and Kubernetes kind, the
differences in auth, leases and members, and whether both are of one history. If the backup lacks a key that its own
revision must hold, the backup is damaged. --max-behind limits the revisions, --max-age the time since the newest backup
of each series was written.

--drill restores the backup into a scratch folder and starts a server of the matching version on it in a sandbox without
network access. It reads every key back and compares it with the file, compares HashKV, leases, users and roles, writes
and reads, and stops the server. It needs free disk space of twice the backup; nothing outside the scratch folder is
touched. If a drill could not run, or ran out of time, the backup is inconclusive.

For timers: -q prints nothing if all backups are good, else one line for each that is not. --metrics-file writes a file
for the textfile collector of Prometheus node_exporter (replaced in one step), with a healthy sample for everything that
was named. The exit code is that of the worst backup.

Exit codes: 0 every backup is good (without a trailer: only if nothing else is wrong, see --fail-on warning), 1 could
not read, 2 wrong usage, 3 a backup is damaged or too old, 4 a backup could not be read or judged, there is none, or a
requested test (--drill, --against, --max-behind) could not be done, 5 refused: --metrics-file names something else than
metrics.`

const verifyExample = `  etcd-medic verify backup.db
  etcd-medic verify /backups -q --newest=series --max-age 26h --metrics-file /var/lib/node_exporter/etcd_backup.prom
  etcd-medic verify /var/lib/rancher/k3s/server/db/snapshots --brief
  aws s3 cp s3://backups/etcd.db.gz - | etcd-medic verify -
  etcd-medic verify backup.db -w json | jq '.backup.layers[] | select(.outcome != "holds")'
  etcd-medic verify 's3://backups/etcd/?region=eu-central-1' --shard 3/20 -w jsonl --metrics-push http://push:9091/metrics/job/etcd-backups/shard/3
  etcd-medic verify backup.db --against https://10.0.0.1:2379 --cacert ca.crt --cert client.crt --key client.key
  etcd-medic verify backup.db --against node1=/copies/node1 --max-behind 10000
  etcd-medic verify tuesday.db --against monday=monday.db --against node1=/copies/node1
  etcd-medic verify backup.db --drill
  etcd-medic verify backup.db --fail-on warning`

func newVerifyCmd(s *Streams, run func(context.Context, *verifyOptions) error) *cobra.Command {
	o := &verifyOptions{output: output{io: s}}
	cmd := &cobra.Command{
		Use:     "verify BACKUP...",
		Short:   "prove that backups can be restored",
		Long:    verifyLong,
		Example: verifyExample,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.parse(args); err != nil {
				return err
			}
			if o.evidence < 1 {
				return usagef("", "--evidence must be 1 or more")
			}
			if o.limit < 1 {
				return usagef("", "--limit must be 1 or more")
			}
			if o.maxAge < 0 {
				return usagef("", "--max-age must be positive")
			}
			if cmd.Flags().Changed("max-behind") != (o.maxBehind >= 0) {
				return usagef("", "--max-behind must be 0 or more")
			}
			if o.maxBehind >= 0 && len(o.against) == 0 {
				return usagef("name the source with --against", "--max-behind needs a source to compare with")
			}
			if n := locate.Newest(o.newest); n != locate.All && n != locate.NewestOfFolder &&
				n != locate.NewestOfSeries {
				return usagef("want folder or series", "--newest=%s is not known", o.newest)
			}
			var err error
			if o.shardText != "" {
				if o.shard, err = locate.ParseShard(o.shardText); err != nil {
					return usagef("as --shard 0/8 to 7/8", "--shard: %v", err)
				}
				o.shard.Series = o.maxAge > 0
			}
			if err := checkPush(o.push); err != nil {
				return err
			}
			if o.drillOpt.Isolation, err = node.ParseIsolation(o.isolate); err != nil {
				return usagef("want auto, netns or proxy", "--isolation: %v", err)
			}
			return run(cmd.Context(), o)
		},
	}
	o.verifyFlags(cmd)
	return cmd
}

func (o *verifyOptions) verifyFlags(cmd *cobra.Command) {
	o.output.flags(cmd)
	o.accessFlags(cmd)
	o.failOn.flag(cmd)
	o.fullFlag(cmd)
	f := cmd.Flags()
	f.IntVar(&o.evidence, "evidence", 5, "evidence rows shown per finding in the table")
	f.BoolVarP(&o.quiet, "quiet", "q", false,
		"print nothing when all is well, else one line for each backup that is not")
	f.BoolVar(&o.brief, "brief", false, "in the table, one line per backup")
	f.StringVar(&o.newest, "newest", "", "only the newest backup of each folder, or with =series of each series of "+
		"names")
	f.Lookup("newest").NoOptDefVal = string(locate.NewestOfFolder)
	f.DurationVar(&o.maxAge, "max-age", 0, "the newest backup of each series must not be older than this, such as 26h")
	f.Int64Var(&o.maxBehind, "max-behind", -1, "a backup must not be more than this many revisions behind a source "+
		"of --against")
	f.StringArrayVar(&o.against, "against", nil, "compare the backup with this source; repeatable")
	f.IntVar(&o.limit, "limit", 20, "keys listed per source of --against; the others are counted")
	f.BoolVar(&o.drill, "drill", false, "prove it by a restore in a sandbox")
	f.StringVar(&o.drillOpt.EtcdBinary, "etcd-binary", "", "server for --drill (default: one that etcd-medic brings)")
	f.StringVar(&o.drillOpt.Dir, "scratch-dir", "", "folder for the scratch of --drill (default: the system's)")
	f.DurationVar(&o.drillOpt.Timeout, "drill-timeout", 10*time.Minute, "end a drill after this time")
	f.StringVar(&o.isolate, "isolation", "auto", "sandbox of --drill: auto|netns|proxy")
	f.StringVar(&o.metrics, "metrics-file", "",
		"write the result for Prometheus to this file, replacing it in one step")
	f.StringVar(&o.push, "metrics-push", "", "put the result to this URL of a Prometheus Pushgateway, as "+
		"http://HOST:9091/metrics/job/NAME")
	f.StringVar(&o.shardText, "shard", "", "look only at part I of N of what folders and object storage hold, as 0/8 "+
		"to 7/8")
	_ = cmd.MarkFlagFilename("metrics-file", "prom")
}

func runVerify(ctx context.Context, o *verifyOptions) error {
	var others sources
	if err := others.parse(o.against); err != nil {
		return err
	}
	if err := claimMetrics(o.metrics, append(slices.Clone(o.specs), others.specs...)); err != nil {
		return err
	}
	found, err := locate.Find(ctx, o.specs, locate.Options{Stdin: o.io.Stdin, Newest: locate.Newest(o.newest),
		Shard: o.shard})
	if err != nil {
		return err
	}
	against, err := locate.Unpack(ctx, others.specs, locate.Options{})
	if err != nil {
		return errors.Join(err, found.Close())
	}
	runs, err := o.verifyAll(ctx, found.Items, against.Specs)
	err = errors.Join(err, found.Close(), against.Close())
	o.io.clearStatus()
	if err != nil {
		return err
	}
	code, err := o.show(runs, found)
	return errors.Join(o.writeMetrics(ctx, runs), err, result(code))
}

// show prints the reports and returns the combined exit code.
func (o *verifyOptions) show(runs []render.BackupRun, found *locate.Found) (code int, err error) {
	if err := allMissing(found.Items); err != nil {
		return ExitDone, err
	}
	reports := make([]*compare.Report, 0, len(runs))
	for i := range runs {
		r := runs[i].Report
		own := reportCode(r, o.failOn)
		code = worse(code, own)
		if !o.quiet || own != ExitDone {
			reports = append(reports, r)
			o.io.unusable(backup.Unsaid(r))
		}
	}
	if o.quiet && code == ExitDone {
		return code, nil
	}
	o.opts.MaxEvidence = o.evidence
	show := render.Verification{Reports: reports, Skipped: found.Skipped, Older: found.Older, Brief: o.quiet || o.brief}
	if o.quiet {
		show.Skipped, show.Older = nil, 0
	}
	return code, render.Verified(o.io.Out, o.format, &show, o.renderOptions())
}

// allMissing returns the usage error of a run in which no argument can be a backup.
func allMissing(items []*locate.Item) error {
	var errs []error
	for _, it := range items {
		var src *evidence.SourceError
		var pe *fs.PathError
		if !errors.As(it.Err, &src) && !errors.As(it.Err, &pe) {
			return nil
		}
		errs = append(errs, it.Err)
	}
	return errors.Join(errs...)
}

// verifyAll verifies one backup after the other; each uses all cores. It continues after an unreadable one.
func (o *verifyOptions) verifyAll(ctx context.Context, items []*locate.Item,
	against []evidence.Spec) ([]render.BackupRun, error) {
	opts := backup.Options{Options: o.compareOptions(&o.sources), Against: against}
	opts.MaxRows = o.limit
	opts.Fresh = backup.Freshness{Now: time.Now(), Behind: o.maxBehind >= 0, MaxBehind: o.maxBehind}
	if o.drill {
		o.drillOpt.Progress = o.io.Progress()
		opts.Drill = func(ctx context.Context, m *evidence.Member, r *compare.Report) (*backup.Drill, error) {
			return restoretest.Run(ctx, m, r, o.drillOpt)
		}
	}
	young := locate.NewestOfEach(items)
	var runs []render.BackupRun
	for _, it := range items {
		begin := time.Now()
		one := opts
		if o.maxAge > 0 && young[it] {
			one.Fresh.MaxAge = o.maxAge
		}
		r, err := backup.Item(ctx, it, "", one)
		if err != nil {
			return nil, err
		}
		if it.Packed() { // content of an archive does not have its own path
			r.Given = append([]string{it.Given}, o.walDirsGiven()...)
		}
		runs = append(runs, render.BackupRun{Report: r, Modified: it.Modified, Took: time.Since(begin),
			Drilled: o.drill})
	}
	reports := make([]*compare.Report, len(runs))
	for i := range runs {
		reports[i] = runs[i].Report
	}
	backup.JudgeSeries(items, reports)
	return runs, nil
}

func (o *verifyOptions) writeMetrics(ctx context.Context, runs []render.BackupRun) error {
	if o.metrics == "" && o.push == "" {
		return nil
	}
	var b bytes.Buffer
	if err := render.BackupMetrics(&b, runs, time.Now()); err != nil {
		return err
	}
	var errs []error
	if o.metrics != "" {
		errs = append(errs, replaceFile(o.metrics, b.Bytes()))
	}
	if o.push != "" {
		errs = append(errs, pushMetrics(ctx, o.push, b.Bytes()))
	}
	return errors.Join(errs...)
}

// worse orders exit codes of several results: findings first, then refusals, then inconclusive.
func worse(a, b int) int {
	for _, code := range []int{ExitFindings, ExitRefused, ExitInconclusive} {
		if a == code || b == code {
			return code
		}
	}
	return max(a, b)
}
