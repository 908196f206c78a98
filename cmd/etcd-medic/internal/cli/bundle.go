package cli

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/bundle"
	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/compare/dossier"
	"github.com/etcd-medic/etcd-medic/compare/dossier/redact"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

type bundleOptions struct {
	output
	sources
	logs    serverLogs
	failOn  failOn
	file    string
	keys    string
	mode    redact.Mode
	list    bool
	maxRows int
}

const bundleSuffix = ".tar.zst"

const bundleLong = `Diagnose the sources and write one archive to attach to a bug: the report as page, Markdown, text
and JSON, the facts of each member, counts of its log, the known lines of servers' logs given with --server-log, and a
manifest of digests. It is a few megabytes at most, however large the sources are. diagnose FILE.tar.zst prints the
report again.

--keys says how keys are shown. hashed is the default, because others read the bundle: each part of a key is replaced by
a hash with a salt that is made for this bundle and discarded. Equal parts stay equal. prefix shows at most the first
two parts of a key. clear shows keys. With hashed and prefix, names of Kubernetes objects and lines of server logs are
left out.

A bundle never contains values, passwords, password hashes or tokens. It contains user names, role names, member names
and addresses. --list writes nothing and lists what the bundle would contain.

Exit codes: 0 healthy or nothing at or above --fail-on, 1 could not read or write, 2 wrong usage, 3 findings at or
above --fail-on, 4 inconclusive, or a source could not be used. The bundle is written in all of these cases but 1 and
2. 5 refused: the file exists, or would be inside a source.`

const bundleExample = `  etcd-medic bundle node1=/copies/node1 node2=/copies/node2 node3=/copies/node3 -o bundle.tar.zst
  etcd-medic bundle copies.tar.gz --keys clear --list
  etcd-medic bundle node1=/copies/node1 --server-log node1=etcd-node1.log --keys clear -o bundle.tar.zst
  etcd-medic diagnose bundle.tar.zst`

func newBundleCmd(s *Streams, run func(context.Context, *bundleOptions) error) *cobra.Command {
	o := &bundleOptions{output: output{io: s}}
	cmd := &cobra.Command{
		Use:     "bundle SOURCE... -o FILE.tar.zst",
		Short:   "write an archive to attach to a bug, without values and secrets",
		Long:    bundleLong,
		Example: bundleExample,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.parse(args); err != nil {
				return err
			}
			var err error
			switch o.mode, err = redact.ParseMode(o.keys); {
			case err != nil:
				return usagef("", "--keys: %v", err)
			case o.maxRows < 1 || o.maxRows > maxReportRows:
				return usagef("", "--limit must be from 1 to %d", maxReportRows)
			case o.list && o.file != "":
				return usagef("leave out one of them", "--list writes no file")
			case !o.list && !strings.HasSuffix(o.file, bundleSuffix):
				return usagef("-o bundle.tar.zst", "the file for the bundle has to end in %s", bundleSuffix)
			}
			return run(cmd.Context(), o)
		},
	}
	o.sources.flags(cmd)
	o.accessFlags(cmd)
	o.logs.flag(cmd)
	o.failOn.flag(cmd)
	f := cmd.Flags()
	f.StringVarP(&o.file, "output", "o", "", "file for the bundle, "+bundleSuffix+"; must not exist")
	f.StringVar(&o.keys, "keys", string(redact.Hashed), "how keys are shown: clear|hashed|prefix")
	f.BoolVar(&o.list, "list", false, "list what the bundle would hold, and write nothing")
	f.IntVar(&o.maxRows, "limit", 100_000, "rows listed per bucket that differs; the others are counted")
	offer(cmd, "keys", "clear", "hashed", "prefix")
	return cmd
}

func runBundle(ctx context.Context, o *bundleOptions) error {
	if _, err := os.Lstat(o.file); err == nil && !o.list {
		return refusal.New("give a name that is free", "%s exists; nothing is overwritten", o.file)
	}
	if !o.list {
		if err := datadir.Outside(o.file, o.specs...); err != nil {
			return err
		}
	}
	in, err := o.collect(ctx)
	o.io.clearStatus()
	if err != nil {
		return err
	}
	files, err := bundle.Files(in)
	if err != nil {
		return err
	}
	if o.list {
		_, _ = fmt.Fprintf(o.io.Out, "%s\n\n", in.Dossier.Redaction)
		for _, f := range files {
			_, _ = fmt.Fprintf(o.io.Out, "%10d  %-32s  %s\n", len(f.Content), render.Safe(f.Name), render.Safe(f.What))
		}
	} else {
		if err := writeNew(o.file, func(w io.Writer) error { return bundle.Write(w, files) }); err != nil {
			return err
		}
		o.io.wrote(o.file, in.Dossier.Report)
		_, _ = fmt.Fprintf(o.io.Out, "%s\n", in.Dossier.Redaction)
	}
	o.io.unusable(in.Dossier.Report.Sources)
	return result(reportCode(in.Dossier.Report, o.failOn))
}

// collect reads the sources and redacts the content of the bundle.
func (o *bundleOptions) collect(ctx context.Context) (*bundle.Input, error) {
	c := o.compareOptions(&o.sources)
	var err error
	if c.ServerLogs, err = o.logs.read(ctx); err != nil {
		return nil, err
	}
	salt := make([]byte, 32)
	if _, err := rand.Read(salt); err != nil {
		return nil, err
	}
	r := redact.New(o.mode, salt)
	in := &bundle.Input{Keys: string(o.mode), Created: time.Now()}
	if o.mode == redact.Clear {
		in.ServerLogs = c.ServerLogs
	}
	in.Dossier, err = dossier.Collect(ctx, o.specs, dossier.Options{Compare: c, MaxRows: o.maxRows,
		Then: func(ctx context.Context, members []*evidence.Member, d *dossier.Dossier) error {
			for _, m := range members {
				counts, err := bundle.CountLog(ctx, m, r.KeyPrefix)
				if err != nil {
					return err
				}
				in.Logs = append(in.Logs, counts)
			}
			return r.Learn(ctx, members, d)
		}})
	if err != nil {
		return nil, err
	}
	r.Apply(in.Dossier)
	return in, nil
}

// showBundle prints the report of a bundle again. It returns false if the source is not a bundle.
func (o *diagnoseOptions) showBundle(ctx context.Context) (shown bool, err error) {
	if len(o.specs) != 1 || o.specs[0].Name != "" || o.confirm || len(o.logs.args) > 0 || len(o.walDirs) > 0 {
		return false, nil
	}
	b, err := bundle.Open(ctx, o.specs[0].Where)
	if b == nil || err != nil {
		return false, err
	}
	o.io.errorf("this is the report in a bundle of %s, made by %s %s with keys %s; no source was read",
		b.Info.Created.UTC().Format(time.RFC3339), b.Info.Tool.Name, b.Info.Tool.Version, b.Info.Keys)
	r, err := b.Report()
	if err != nil {
		return true, err
	}
	text := b.Screen
	switch {
	case o.format == render.JSON:
		text, err = b.Indented()
	case o.format == render.JSONL:
		text = slices.Concat(b.Diagnosis, []byte("\n"))
	case o.opts.Full || o.timeline:
		text = b.Full
	}
	if err != nil {
		return true, err
	}
	w := render.SafeWriter(o.io.Out)
	if o.format != render.Table {
		w = render.SafeJSONWriter(o.io.Out)
	}
	if _, err := w.Write(text); err != nil {
		return true, err
	}
	return true, result(reportCode(r, o.failOn))
}
