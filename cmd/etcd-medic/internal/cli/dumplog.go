package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
)

type dumpLogOptions struct {
	output
	sources
	logFilter
	raw, snaps, stats, lives bool
}

const dumpLogLong = `List the records of a write-ahead log in the order in which they stand in its files: offset and length first, then
what the record says. Entries are decoded; who proposed each, in which life of which process, for which user and at which
auth revision stands at the end of the line. Damage is shown where it is met ("!!"), and listing goes on behind it.

With a filter only entries are listed, and damage. --lives shows which process of which member proposed what: request IDs
carry the low 16 bits of the member ID and the start time of the process.

SRC is a data dir, a member or wal dir, or a .snap file. Values are shown as length and digest unless --values is given.

Exit codes: 0 sound, 1 could not read, 2 wrong usage, 3 damage was met.`

const dumpLogExample = `  etcd-medic dumplog node1/
  etcd-medic dumplog node1/member/wal --raw
  etcd-medic dumplog node1/ --snaps
  etcd-medic dumplog node1/ --index ~20
  etcd-medic dumplog node1/ --prefix /app/ --user alice
  etcd-medic dumplog node1/ --stats
  etcd-medic dumplog node1/ -w jsonl | jq -c 'select(.request == "auth_enable")'`

func newDumpLogCmd(s *Streams, run func(context.Context, *dumpLogOptions) error) *cobra.Command {
	o := &dumpLogOptions{output: output{io: s}}
	cmd := &cobra.Command{
		Use:     "dumplog SRC",
		Short:   "list the records of a write-ahead log and the raft snapshot files",
		Long:    dumpLogLong,
		Example: dumpLogExample,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.parse(args); err != nil {
				return err
			}
			if err := o.check(cmd); err != nil {
				return err
			}
			if trues(o.raw, o.snaps, o.stats, o.lives) > 1 {
				return usagef("", "--raw, --snaps, --stats and --lives exclude each other")
			}
			return run(cmd.Context(), o)
		},
	}
	o.output.flags(cmd)
	o.secretFlag(cmd)
	o.sources.flags(cmd)
	o.logFilter.flags(cmd)
	cmd.Flags().BoolVar(&o.raw, "raw", false, "list physical records: stored and computed CRC, padding, no decoding of entries")
	cmd.Flags().BoolVar(&o.snaps, "snaps", false, "list the raft snapshot files instead of the log")
	cmd.Flags().BoolVar(&o.stats, "stats", false, "count entries by kind, term, proposer, user and key prefix")
	cmd.Flags().BoolVar(&o.lives, "lives", false, "list the process lives of the proposing members")
	return cmd
}

func trues(flags ...bool) (n int) {
	for _, f := range flags {
		if f {
			n++
		}
	}
	return n
}

func runDumpLog(ctx context.Context, o *dumpLogOptions) error {
	set, m, err := openOne(ctx, o.io, o.specs[0])
	if err != nil {
		return err
	}
	defer func() { _ = set.Close() }()
	head := render.Head{Source: m.Label(), SourceKind: string(m.Source.Kind)}
	snaps := o.snaps || m.Source.Kind == evidence.KindSnap
	if err := needLog(m, snaps); err != nil {
		return err
	}
	stream := render.NewStream(o.io.Out, o.format, head, o.renderOptions())
	if !snaps {
		if err := o.resolve(m); err != nil {
			return err
		}
	}
	bad, err := o.list(ctx, stream, m, snaps)
	if err = stream.Close(err); err != nil {
		return err
	}
	if bad > 0 {
		return result(ExitFindings)
	}
	return nil
}

// list writes what is asked for and returns how much of it is damaged.
func (o *dumpLogOptions) list(ctx context.Context, stream *render.Stream, m *evidence.Member, snaps bool) (int, error) {
	switch {
	case snaps:
		return listSnaps(stream, m)
	case o.stats:
		return logStats(ctx, stream, m, &o.filter)
	case o.lives:
		return logLives(ctx, stream, m)
	}
	l := newLogLister(stream, m, o.raw)
	l.f = &o.logFilter
	err := l.run(ctx)
	return int(l.bad.Load()), err
}

// needLog says what was found where no log is.
func needLog(m *evidence.Member, snaps bool) error {
	switch {
	case snaps && m.Snap != nil, !snaps && m.WAL != nil:
		return nil
	}
	want := "a WAL folder with segments"
	if snaps {
		want = "raft snapshot files"
	}
	e := &evidence.SourceError{Where: m.Source.Where, Found: "a " + string(m.Source.Kind) + " without them", Expected: want}
	for _, p := range m.Problems {
		e.Err = errors.Join(e.Err, p.Err)
	}
	return e
}

// openOne opens one source, without digests and deep reads: listing commands look at the bytes themselves.
func openOne(ctx context.Context, s *Streams, spec evidence.Spec) (*evidence.Set, *evidence.Member, error) {
	set, err := evidence.Open(ctx, []evidence.Spec{spec}, evidence.Options{Progress: s.Progress()})
	s.clearStatus()
	if err != nil {
		return nil, nil, err
	}
	if n := len(set.Members); n != 1 {
		names := ""
		for _, m := range set.Members {
			names += " " + m.Label()
		}
		_ = set.Close()
		return nil, nil, usagef("name one of them", "%s holds %d sources:%s", spec.Where, n, names)
	}
	return set, set.Members[0], nil
}
