package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/dossier"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/compare/timeline"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/repair/confirm"
)

type diagnoseOptions struct {
	output
	sources
	failOn   failOn
	evidence int
	logs     serverLogs
	timeline bool
	// lanes is the timeline drawn by --timeline.
	lanes *timeline.Timeline
	// confirm requests a second opinion from a real server, with confirmOpt.
	confirm    bool
	confirmOpt confirm.Options
	isolate    string
	noDigests  bool
	diagnose   diagnoseFunc
}

// diagnoseFunc is compare.Diagnose, or a replacement in tests.
type diagnoseFunc func(context.Context, *diagnoseOptions) (*compare.Report, error)

const diagnoseLong = `Read the data dirs of all members of a cluster (as many as there are), prove where a database
stopped matching the log or the other members, name the cause and the best member, and say what to do next.

SOURCE is [NAME=]PATH: a data dir, backup, db file, WAL folder, or a .tar, .tar.gz, .tar.zst of them; a folder that
holds one data dir per member stands for all of them. See etcd-medic help sources.

--endpoints names running members; with --cluster one of them is enough to find all. One snapshot of each is streamed,
which is little work for the server and stops nothing. The members are compared at a revision that all have: keys, auth,
leases, members, alarms. One line says what cannot be proven without logs; etcd-medic collect copies running members
with their logs.

A bundle (see etcd-medic bundle) is not a source: the report in it is printed again, and nothing else is read.

--confirm asks for a second opinion: an etcd server of the matching release executes the committed log in a sandbox
without network access. The log must reach back to the first entry of a new cluster, to a backup among the sources, to a
database received from a leader (.snap.db) or to that of a member that lags. The server's content is compared with each
member's database at that member's applied index. Each member is confirmed, refuted or not possible, with the reason. If
it is refuted, bucket, key and first differing revision are named. Sources are not touched. Scratch space of about twice
the database is needed and freed afterwards.

--server-log NAME=FILE also reads the log output of the server that wrote source NAME: what it says about restarts,
snapshots and errors is compared with the files (check G01).

Exit codes: 0 healthy or nothing at or above --fail-on, 1 could not read, 2 wrong usage, 3 findings at or above
--fail-on, 4 inconclusive: the evidence does not suffice, a source could not be used, or --confirm contradicts a
verdict of healthy.`

const diagnoseExample = `  etcd-medic diagnose node1=/copies/node1 node2=/copies/node2 node3=/copies/node3
  etcd-medic diagnose copies.tar.gz
  etcd-medic diagnose --endpoints https://10.0.0.1:2379,https://10.0.0.2:2379 --cacert ca.crt --cert root.crt --key root.key
  etcd-medic diagnose --endpoints http://10.0.0.1:2379 --cluster
  etcd-medic diagnose node1/ node2/ -w json | jq .verdict
  etcd-medic diagnose n1=/data/n1 --wal-dir n1=/wal/n1
  etcd-medic diagnose node1/ node2/ node3/ last-backup.db --confirm
  etcd-medic diagnose node1=/copies/node1 node2=/copies/node2 --server-log node1=etcd-node1.log`

func newDiagnoseCmd(s *Streams, run func(context.Context, *diagnoseOptions) error) *cobra.Command {
	o := &diagnoseOptions{output: output{io: s}, diagnose: diagnose}
	cmd := &cobra.Command{
		Use:     "diagnose SOURCE...",
		Short:   "find what broke first, its cause, and the best member",
		Long:    diagnoseLong,
		Example: diagnoseExample,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("see "+cmd.CommandPath()+" --help", "requires at least 1 SOURCE, or --endpoints")
			}
			if err := o.parse(args); err != nil {
				return err
			}
			if o.evidence < 1 {
				return usagef("", "--evidence must be 1 or more")
			}
			var err error
			if o.confirmOpt.Isolation, err = node.ParseIsolation(o.isolate); err != nil {
				return usagef("want auto, netns or proxy", "--isolation: %v", err)
			}
			if o.confirmOpt.Timeout <= 0 {
				return usagef("", "--confirm-timeout must be above 0")
			}
			return run(cmd.Context(), o)
		},
	}
	o.output.flags(cmd)
	o.sources.flags(cmd)
	o.accessFlags(cmd)
	o.logs.flag(cmd)
	o.failOn.flag(cmd)
	o.fullFlag(cmd)
	o.quietFlag(cmd)
	digestsFlag(cmd, &o.noDigests)
	cmd.Flags().IntVar(&o.evidence, "evidence", 3, "evidence rows shown per finding in the table")
	cmd.Flags().BoolVar(&o.timeline, "timeline", false, "draw a lane for each member, and list terms, starts, conf "+
		"changes, snapshots, alarms and divergences, on one raft-index axis")
	o.confirmFlags(cmd)
	return cmd
}

func (o *diagnoseOptions) confirmFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&o.confirm, "confirm", false, "have a real etcd server execute the log in a sandbox and compare its "+
		"content with each member's")
	f.StringVar(&o.confirmOpt.EtcdBinary, "etcd-binary", "",
		"server for --confirm (default: one that etcd-medic brings)")
	f.StringVar(&o.confirmOpt.Dir, "scratch-dir", "", "folder for the scratch of --confirm (default: the system's)")
	f.DurationVar(&o.confirmOpt.Timeout, "confirm-timeout", 10*time.Minute, "end --confirm after this time")
	f.StringVar(&o.isolate, "isolation", "auto", "sandbox of --confirm: auto|netns|proxy")
}

func diagnose(ctx context.Context, o *diagnoseOptions) (*compare.Report, error) {
	c := o.compareOptions(&o.sources)
	var err error
	if c.ServerLogs, err = o.logs.read(ctx); err != nil {
		return nil, err
	}
	c.NoDigests = o.noDigests || o.format == render.Table // the table does not show any
	if o.timeline && o.format == render.Table {
		c.Study = func(ctx context.Context, in *check.Input, r *compare.Report) (err error) {
			o.lanes, err = timeline.Build(ctx, dossier.TimelineInput(in, r), timeline.Options{MaxEntries: 1})
			return err
		}
	}
	if o.confirm {
		o.confirmOpt.Progress, o.confirmOpt.Values = o.io.Progress(), o.opts.Values
		c.Confirm = func(ctx context.Context, members []*evidence.Member, rp *replay.Result) (*compare.Confirmation,
			error) {
			return confirm.Run(ctx, members, rp, o.confirmOpt)
		}
	}
	return compare.Diagnose(ctx, o.specs, c)
}

func (o *output) compareOptions(s *sources) compare.Options {
	return compare.Options{Version: Version(), Access: s.access, Values: o.opts.Values, Progress: o.io.Progress()}
}

func runDiagnose(ctx context.Context, o *diagnoseOptions) error {
	if shown, err := o.showBundle(ctx); shown || err != nil {
		return err
	}
	r, err := o.diagnose(ctx, o)
	o.io.clearStatus()
	if err != nil {
		return err
	}
	r.Given = o.given()
	o.opts.MaxEvidence, o.opts.Timeline, o.opts.Lanes = o.evidence, o.timeline, o.lanes
	o.opts.Full = o.opts.Full || o.timeline || o.confirm // the requested output is more than a screen
	if err := render.Diagnosis(o.io.Out, o.format, r, o.renderOptions()); err != nil {
		return err
	}
	o.io.unusable(r.Sources)
	return result(reportCode(r, o.failOn))
}

// unusable reports on stderr which sources could not be used and which are in use. The report covers the others.
func (s *Streams) unusable(sources []compare.Source) {
	for i := range sources {
		src := &sources[i]
		if why := src.WhyUnused(); why != "" {
			s.errorf("%s", why)
		}
		if src.InUse != "" {
			s.inUse(src.Name, src.InUse)
		}
	}
}

// heldSources warns about sources that a process has locked: their files may be of different moments.
func (s *Streams) heldSources(specs []evidence.Spec) {
	seen := map[string]bool{}
	for _, spec := range specs {
		if held := evidence.HeldBy(spec); held != "" && !seen[spec.Where] {
			seen[spec.Where] = true
			s.inUse(spec.Where, held)
		}
	}
}

func (s *Streams) inUse(source, by string) {
	s.warnf("%s is in use: %s; stop the server or copy its data dir, and run again", source, by)
}

// reportCode derives the exit code from the report alone, so that it always agrees with the output.
func reportCode(r *compare.Report, f failOn) int {
	for i := range r.Findings {
		if f.reached(r.Findings[i].Severity) {
			return ExitFindings
		}
	}
	if r.Verdict.Health == check.HealthUnknown || !r.InputsUnchanged {
		return ExitInconclusive
	}
	for i := range r.Sources {
		if r.Sources[i].Error != "" {
			return ExitInconclusive
		}
	}
	return ExitDone
}
