package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render/htmlreport"
	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render/mdreport"
	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/dossier"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

type reportOptions struct {
	output
	sources
	logs    serverLogs
	failOn  failOn
	file    string
	maxRows int
	// noDigests leaves the column sha256 empty.
	noDigests bool
	// plan is a plan to write as a checklist; then there are no sources.
	plan string
	// write is chosen by the file name.
	write func(io.Writer, *dossier.Dossier) error
}

const reportLong = `Diagnose the sources and write one file to read, to print or to attach to a bug.

FILE.html is a page that loads nothing and opens from disk: the verdict, what to keep and what that loses, the next
commands with copy buttons, the members, a timeline of the log with a lane for each member, curves, the keys that differ
as a tree with a filter, membership over time, users and roles, what fills the files, findings, checks and inputs.
Without JavaScript the same content is shown in tables.

FILE.md is a short form for an issue or a wiki, below 60 kB: verdict, members, a timeline of characters, findings,
differences, next.

FILE.json is all of it for programs (docs/JSON.md).

Lines of servers' own logs given with --server-log appear on the timeline, at the entry or the time that they name.

Keys, user names and addresses are shown. Values appear as length and digest. The report never contains passwords, their
hashes or tokens.

With a plan of etcd-medic repair plan instead of sources, FILE.html or FILE.md is its checklist: what is kept and what
is lost, every step with its precondition, effect, undo and manual commands, and what the journal next to the plan says
of each: done steps are ticked, with times.

Exit codes: 0 healthy or nothing at or above --fail-on, 1 could not read or write, 2 wrong usage, 3 findings at or
above --fail-on, 4 inconclusive, or a source could not be used. The report is written in all of these cases except 1
and 2. 5 refused: the file exists, or would be inside a source. For a plan: 0 done, 5 the plan was edited, 6 a run
started and has not reached its goal.`

const reportExample = `  etcd-medic report node1=/copies/node1 node2=/copies/node2 node3=/copies/node3 -o report.html
  etcd-medic report copies.tar.gz -o report.md
  etcd-medic report node1=/copies/node1 node2=/copies/node2 --server-log node1=etcd-node1.log -o report.html
  etcd-medic report plan.yaml -o plan.html`

func newReportCmd(s *Streams, run func(context.Context, *reportOptions) error) *cobra.Command {
	o := &reportOptions{output: output{io: s}}
	cmd := &cobra.Command{
		Use:     "report {SOURCE...|PLAN} -o FILE",
		Short:   "write a page with timeline and differences, to read or attach",
		Long:    reportLong,
		Example: reportExample,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.file == "" {
				return usagef("-o report.html", "the file for the report is missing")
			}
			if isPlan(args) {
				o.plan = args[0]
				return run(cmd.Context(), o)
			}
			if err := o.parse(args); err != nil {
				return err
			}
			if o.maxRows < 1 || o.maxRows > maxReportRows {
				return usagef("", "--limit must be from 1 to %d", maxReportRows)
			}
			var ok bool
			if o.write, ok = reportWriters[strings.ToLower(filepath.Ext(o.file))]; !ok {
				return usagef("-o report.html", "%s: the name has to end in .html, .md or .json", o.file)
			}
			return run(cmd.Context(), o)
		},
	}
	o.sources.flags(cmd)
	o.accessFlags(cmd)
	o.logs.flag(cmd)
	o.failOn.flag(cmd)
	digestsFlag(cmd, &o.noDigests)
	cmd.Flags().StringVarP(&o.file, "output", "o", "", "file for the report: .html, .md or .json; must not exist")
	cmd.Flags().IntVar(&o.maxRows, "limit", 100_000, "rows listed per bucket that differs; the others are counted")
	return cmd
}

// maxReportRows bounds --limit, so that a browser can still open the page.
const maxReportRows = 200_000

// reportWriters are the kinds of report by the end of the file's name.
var reportWriters = map[string]func(io.Writer, *dossier.Dossier) error{
	".html": htmlreport.Write,
	".md":   mdreport.Write,
	".json": render.Dossier,
}

func runReport(ctx context.Context, o *reportOptions) error {
	if o.plan != "" {
		return runReportPlan(o, o.plan)
	}
	if _, err := os.Lstat(o.file); err == nil {
		return refusal.New("give a name that is free", "%s exists; nothing is overwritten", o.file)
	}
	if err := datadir.Outside(o.file, o.specs...); err != nil {
		return err
	}
	c := o.compareOptions(&o.sources)
	c.NoDigests = o.noDigests
	var err error
	if c.ServerLogs, err = o.logs.read(ctx); err != nil {
		return err
	}
	d, err := dossier.Collect(ctx, o.specs, dossier.Options{Compare: c, MaxRows: o.maxRows})
	o.io.clearStatus()
	if err != nil {
		return err
	}
	if err := writeNew(o.file, func(w io.Writer) error { return o.write(w, d) }); err != nil {
		return err
	}
	o.io.wrote(o.file, d.Report)
	o.io.unusable(d.Report.Sources)
	return result(reportCode(d.Report, o.failOn))
}

// wrote prints the path of the report and the verdict on stdout.
func (s *Streams) wrote(file string, r *compare.Report) {
	size := int64(0)
	if fi, err := os.Stat(file); err == nil {
		size = fi.Size()
	}
	verdict := render.Safe(fmt.Sprintf("%s: %s", r.Verdict.Class, r.Verdict.Summary))
	if s.OutTTY {
		verdict = wrapWords(verdict, max(s.Width, 40))
	}
	_, _ = io.WriteString(s.Out, verdict+render.Safe(fmt.Sprintf("\nwrote %s (%d kB)\n", file, (size+999)/1000)))
}

// writeNew writes a file that must not exist yet, and removes it if it is incomplete.
func writeNew(file string, write func(io.Writer) error) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = write(f)
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		_ = os.Remove(file)
	}
	return err
}
