package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/backup"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/repair/drill"
)

type verifyOptions struct {
	output
	sources
	failOn   failOn
	evidence int
	quiet    bool
	metrics  string
	against  []string
	limit    int
	drill    bool
	drillOpt drill.Options
	isolate  string
}

const verifyLong = `Prove that a backup can be relied on, layer by layer: sha256 trailer, size, both meta pages, every page, every bucket, the MVCC history, auth,
members, leases, alarms, storage version, who took it, revision and compaction. Each layer ends as holds, violated or
not-checked. etcdutl snapshot status does not look at the trailer; a backup with a flipped byte passes it.

BACKUP is a file of etcdctl snapshot save, a database copied from a data dir, an archive of one, a folder of *.db files, or
http(s)://HOST:PORT of a running member, whose snapshot is then taken and verified.

--against SOURCE (repeatable; another backup, a data dir, a running member) tells how many revisions the backup is behind, which keys
a restore would leave otherwise than the source has them, by prefix and Kubernetes kind, and whether both are of one history.

--drill restores the backup into a scratch folder, starts a server of the right line on it in a sandbox that nothing leaves, reads every
key back and holds it against the file, compares HashKV, leases, users and roles, writes and reads, and stops it. Needs free disk
space of twice the backup; nothing outside the scratch folder is touched.

Made for timers: -q prints one line per backup, --metrics-file writes a file for the textfile collector of Prometheus
node_exporter (replaced in one step), and the exit code says the worst.

Exit codes: 0 every backup is good (without a trailer: only if nothing else is wrong, see --fail-on warning), 1 could not
read, 2 wrong usage, 3 a backup is damaged, 4 it could not be told, or one of several backups could not be read, 5 no drill could be held safely.`

const verifyExample = `  etcd-medic verify backup.db
  etcd-medic verify /backups -q --metrics-file /var/lib/node_exporter/etcd_backup.prom
  etcd-medic verify backup.db -w json | jq '.backup.layers[] | select(.outcome != "holds")'
  etcd-medic verify backup.db --against https://10.0.0.1:2379 --cacert ca.crt --cert client.crt --key client.key
  etcd-medic verify tuesday.db --against monday=monday.db --against node1=/copies/node1
  etcd-medic verify backup.db --drill
  etcd-medic verify backup.db --fail-on warning`

func newVerifyCmd(s *Streams, run func(context.Context, *verifyOptions) error) *cobra.Command {
	o := &verifyOptions{output: output{io: s}}
	cmd := &cobra.Command{
		Use:     "verify BACKUP...",
		Short:   "prove that backups can be relied on",
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
			var err error
			if o.drillOpt.Isolation, err = node.ParseIsolation(o.isolate); err != nil {
				return usagef("want auto, netns or proxy", "--isolation: %v", err)
			}
			return run(cmd.Context(), o)
		},
	}
	o.output.flags(cmd)
	o.accessFlags(cmd)
	o.failOn.flag(cmd)
	f := cmd.Flags()
	f.IntVar(&o.evidence, "evidence", 5, "evidence rows shown per finding in the table")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "in the table, one line per backup and nothing else")
	f.StringArrayVar(&o.against, "against", nil, "hold the backup against this source; repeatable")
	f.IntVar(&o.limit, "limit", 20, "keys listed per source of --against; the others are counted")
	f.BoolVar(&o.drill, "drill", false, "prove it by a restore in a sandbox")
	f.StringVar(&o.drillOpt.EtcdBinary, "etcd-binary", "", "server for --drill (default: one that etcd-medic brings)")
	f.StringVar(&o.drillOpt.Dir, "scratch-dir", "", "folder for the scratch of --drill (default: the system's)")
	f.DurationVar(&o.drillOpt.Timeout, "drill-timeout", 10*time.Minute, "end a drill after this time")
	f.StringVar(&o.isolate, "isolation", "auto", "sandbox of --drill: auto|netns|proxy")
	f.StringVar(&o.metrics, "metrics-file", "", "write the result for Prometheus to this file, replacing it in one step")
	_ = cmd.MarkFlagFilename("metrics-file", "prom")
	return cmd
}

func runVerify(ctx context.Context, o *verifyOptions) error {
	specs, err := backup.Expand(o.specs)
	if err != nil {
		return err
	}
	runs, err := o.verifyAll(ctx, specs)
	o.io.clearStatus()
	if err != nil {
		return err
	}
	reports := make([]*compare.Report, 0, len(runs))
	for i := range runs {
		reports = append(reports, runs[i].Report)
	}
	o.opts.MaxEvidence = o.evidence
	if err := render.Verified(o.io.Out, o.format, reports, o.quiet, o.renderOptions()); err != nil {
		return err
	}
	if err := o.writeMetrics(runs); err != nil {
		return err
	}
	code := ExitDone
	for _, r := range reports {
		o.io.unusable(r.Sources)
		code = worse(code, reportCode(r, o.failOn))
		if d, ok := drillOf(r); ok && d.Refused != "" {
			o.io.errorf("%s: no drill: %s", backup.Name(r), d.Refused)
			code = worse(code, ExitRefused)
		}
	}
	return result(code)
}

// verifyAll verifies one backup after the other; each uses all cores. With several, one that can not be read does not keep the others
// from being verified.
func (o *verifyOptions) verifyAll(ctx context.Context, specs []evidence.Spec) ([]render.BackupRun, error) {
	opts := backup.Options{Options: o.compareOptions(&o.sources)}
	opts.MaxRows = o.limit
	var others sources
	if err := others.parse(o.against); err != nil {
		return nil, err
	}
	opts.Against = others.specs
	if o.drill {
		o.drillOpt.Progress = o.io.Progress()
		opts.Drill = func(ctx context.Context, m *evidence.Member, r *compare.Report) (*backup.Drill, error) {
			return drill.Run(ctx, m, r, o.drillOpt)
		}
	}
	var runs []render.BackupRun
	var errs []error
	for _, spec := range specs {
		begin := time.Now()
		r, err := backup.Verify(ctx, spec, opts)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		run := render.BackupRun{Report: r}
		if err != nil {
			errs = append(errs, err)
			run.Report = backup.Unusable(spec, err, opts.Options)
		}
		if st, err := os.Stat(spec.Where); err == nil {
			run.Modified = st.ModTime()
		}
		run.Took = time.Since(begin)
		runs = append(runs, run)
	}
	if len(errs) == len(runs) {
		// Nothing to show, but a timer that watches the metrics must see that the backups are gone.
		return nil, errors.Join(errors.Join(errs...), o.writeMetrics(runs))
	}
	return runs, nil
}

func (o *verifyOptions) writeMetrics(runs []render.BackupRun) error {
	if o.metrics == "" {
		return nil
	}
	var b bytes.Buffer
	if err := render.BackupMetrics(&b, runs, time.Now()); err != nil {
		return err
	}
	return replaceFile(o.metrics, b.Bytes())
}

func drillOf(r *compare.Report) (*backup.Drill, bool) {
	if r.Backup == nil {
		return nil, false
	}
	d, ok := r.Backup.Drill.(*backup.Drill)
	return d, ok
}

// worse orders exit codes of several results: findings outweigh a refusal, that what could not be told.
func worse(a, b int) int {
	for _, code := range []int{ExitFindings, ExitRefused, ExitInconclusive} {
		if a == code || b == code {
			return code
		}
	}
	return max(a, b)
}
