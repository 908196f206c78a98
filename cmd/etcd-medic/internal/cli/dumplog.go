package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/progress"
	"github.com/etcd-medic/etcd-medic/shell"
)

type dumpLogOptions struct {
	output
	sources
	logFilter
	raw, snaps, stats, lives bool
	peers                    []string
	follow                   bool
	followIdle               time.Duration
	decoder                  string
	decoderTimeout           time.Duration
}

const dumpLogLong = `List the records of a write-ahead log in the order of its files. On a terminal they are a table
that fits its width. In a pipe, and with -w lines, each is one line: offset and length first, then the content of the
record. Entries are decoded; the end of the line says who proposed each, in which run of which process, for which user
and at which auth revision. Damage is shown where it is found ("!!"), and the listing continues after it. The
first line says how the log starts (bootstrap, join, restore, purged) and how far it goes.

With a filter only entries are listed, and damage. --peer names the sources of other members: what they prove committed
counts as far as both logs agree.

--lives shows which process of which member proposed what: request IDs carry the low 16 bits of the member ID and the
start time of the process. Ranges of entries follow, with the time after which they were proposed, and approximately
before which. Lease renewals and managedFields of Kubernetes make them narrower.

--snaps shows the raft snapshot files and whether they agree with the snapshot records of the log and with the database.

--follow shows what a running server appends, until interrupted; it takes no lock and opens for reading only. An entry
is called uncommitted there when it was not known to be committed at the time it was read.

--stream-decoder works as in etcd-dump-logs: the command gets the data of each entry as a line of hex and answers each
with a line "status|decoded data". It sees values and secrets in plain text.

SRC is a data dir, a member or wal dir, or a .snap file. Values are shown as length and digest unless --values is given.

Exit codes: 0 sound, 1 could not read, 2 wrong usage, 3 damage was met, 130 interrupted.`

const dumpLogExample = `  etcd-medic dumplog node1/
  etcd-medic dumplog node1/member/wal --raw
  etcd-medic dumplog node1/ --snaps
  etcd-medic dumplog node1/ --index ~20 --follow
  etcd-medic dumplog node1/ --prefix /app/ --user alice
  etcd-medic dumplog node1/ --uncommitted --peer node2/ --peer node3/
  etcd-medic dumplog node1/ --entry-type IRRPut,IRRTxn --stream-decoder ./decoder
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
			if err := o.parseFiles(cmd, args); err != nil {
				return err
			}
			if err := o.check(cmd); err != nil {
				return err
			}
			if err := o.checkFlags(); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
	}
	o.output.rowFlags(cmd)
	o.secretFlag(cmd)
	o.sources.flags(cmd)
	o.logFilter.flags(cmd)
	o.modeFlags(cmd)
	return cmd
}

func (o *dumpLogOptions) modeFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&o.raw, "raw", false, "list physical records: stored and computed CRC, padding, no decoding of entries")
	f.BoolVar(&o.snaps, "snaps", false, "list the raft snapshot files instead of the log")
	f.BoolVar(&o.stats, "stats", false, "count entries by kind, term, proposer, user and key prefix")
	f.BoolVar(&o.lives, "lives", false, "list the process lives of the proposing members, and when entries were "+
		"proposed")
	f.StringArrayVar(&o.peers, "peer", nil, "source of another member, whose commit index counts too; repeatable")
	f.BoolVar(&o.follow, "follow", false, "continue with what a running server appends")
	f.DurationVar(&o.followIdle, "follow-idle", 0,
		"end --follow when nothing was appended for this long; 0 means never")
	f.StringVar(&o.decoder, "stream-decoder", "", "command that gets the data of each entry as a line of hex and "+
		"answers with a line \"status|decoded data\"")
	f.DurationVar(&o.decoderTimeout, "stream-decoder-timeout", 10*time.Second, "how long the stream decoder may take "+
		"for one entry")
}

// checkFlags refuses flags that exclude each other.
func (o *dumpLogOptions) checkFlags() error {
	views := trues(o.raw, o.snaps, o.stats, o.lives)
	switch {
	case views > 1:
		return usagef("", "--raw, --snaps, --stats and --lives exclude each other")
	case o.follow && views > trues(o.raw):
		return usagef("", "--follow goes with listings and --raw only")
	case o.followIdle != 0 && !o.follow:
		return usagef("", "--follow-idle needs --follow")
	case o.followIdle < 0 || o.decoderTimeout <= 0:
		return usagef("", "a duration is not positive")
	case o.decoder != "" && views > 0:
		return usagef("", "--stream-decoder goes with a listing of entries only")
	case o.snaps && (o.active || len(o.peers) > 0):
		return usagef("", "--snaps lists files: filters and --peer do not apply")
	case o.re != nil && (o.stats || o.lives):
		return usagef("", "--grep matches lines: it does not go with --stats and --lives")
	}
	return nil
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
	var pass statsPass // counts while the source is opened, if every entry counts
	opts := evidence.Options{Listing: true, Progress: o.io.Progress()}
	if o.stats && !o.active {
		opts.Visit = pass.visit
	}
	set, m, err := openWith(ctx, o.io, o.specs[0], opts)
	if err != nil {
		return err
	}
	defer func() { _ = set.Close() }()
	o.opts.Redact = m.Redact
	head := render.Head{Source: m.Label(), SourceKind: string(m.Source.Kind)}
	snaps := o.snaps || m.Source.Kind == evidence.KindSnap
	if err := needLog(m, snaps); err != nil {
		return err
	}
	var known commits
	if !snaps {
		if known, err = o.prepare(ctx, m); err != nil {
			return err
		}
	}
	stream := render.NewStream(o.io.Out, o.format, head, o.renderOptions())
	var bad int
	switch {
	case snaps:
		bad, err = listSnaps(stream, m)
		if err == nil && len(m.Snap.Files) == 0 {
			o.io.notef("the snap folder of %s holds no raft snapshot file", m.Label())
		}
	case opts.Visit != nil:
		bad, err = writeStats(stream, m, pass.all(), m.WAL.Summary.Damage)
	case o.stats:
		bad, err = logStats(ctx, stream, m, &o.counted)
	case o.lives:
		bad, err = logLives(ctx, stream, m, &o.counted)
	default:
		reading, work := ctx, (*progress.Work)(nil)
		if !o.io.OutTTY && !o.follow { // rows and progress would share the screen
			reading, work = progress.Begin(ctx, "reading "+m.Label(), logSize(m))
		}
		bad, err = o.list(reading, stream, m, known)
		work.End()
	}
	if err = stream.Close(err); err != nil {
		return err
	}
	if !o.follow { // a running server writes to it
		if err := set.Unchanged(ctx); err != nil {
			return err
		}
	}
	if bad > 0 {
		return result(ExitFindings)
	}
	return nil
}

// logSize returns how many bytes of the log have records.
func logSize(m *evidence.Member) (n int64) {
	for i := range m.WAL.Summary.Segments {
		n += m.WAL.Summary.Segments[i].DataEnd
	}
	return n
}

// prepare determines the basis of a listing: where the log must end, what is committed, and the requested range.
func (o *dumpLogOptions) prepare(ctx context.Context, m *evidence.Member) (commits, error) {
	if d := beyondEnd(m); d != nil && !o.follow { // a running server writes both
		m.WAL.Summary.Damage = append(m.WAL.Summary.Damage, d)
	}
	known, err := o.askPeers(ctx, m)
	if err != nil {
		return known, err
	}
	return known, o.resolve(m, known.commit)
}

// list writes records or entries and returns the number of damaged ones.
func (o *dumpLogOptions) list(ctx context.Context, stream *render.Stream, m *evidence.Member, known commits) (int,
	error) {
	l := newLogLister(stream, m, o.raw)
	l.f, l.known = &o.logFilter, known
	l.commit.Store(known.commit)
	if o.decoder != "" {
		d, err := startDecoder(ctx, o.decoder, o.decoderTimeout)
		if err != nil {
			return 0, err
		}
		l.decoder = d
	}
	var err error
	switch {
	case o.follow:
		err = l.follow(ctx, o.followIdle)
	case l.decoder != nil:
		err = l.inTurn(ctx, l.read)
	default:
		err = l.run(ctx)
	}
	if l.decoder != nil {
		said, derr := l.decoder.close(err)
		if said != "" {
			o.io.errorf("stream decoder: %s", said)
		}
		err = errors.Join(err, derr)
	}
	return int(l.bad.Load()), err
}

// needLog says what was found if there is no log.
func needLog(m *evidence.Member, snaps bool) error {
	switch {
	case snaps && m.HasSnap(), !snaps && m.HasWAL():
		return nil
	}
	lack, want := "a log", "a WAL folder with segments, or a data dir that has one"
	if snaps {
		lack, want = "raft snapshot files", "raft snapshot files, or a data dir that has some"
	}
	e := &evidence.SourceError{Where: m.Source.Where, Found: m.Source.Kind.Noun() + " without " + lack, Expected: want}
	if m.HasDB() {
		e.Hint = shell.Format("etcd-medic dumpdb {}", shell.Operand(m.Source.Where)).String()
	}
	for _, p := range m.Problems {
		if errors.Is(p.Err, fs.ErrPermission) {
			e.Found = m.Source.Kind.Noun() + " that this user may not read in full"
		}
		if e.Err == nil {
			e.Err = p.Err
			continue
		}
		e.Err = fmt.Errorf("%w; %w", e.Err, p.Err)
	}
	return e
}

// openWith opens one source without digests and deep reads, since listing commands read the bytes themselves.
func openWith(ctx context.Context, s *Streams, spec evidence.Spec, o evidence.Options) (*evidence.Set, *evidence.Member,
	error) {
	set, err := evidence.Open(ctx, []evidence.Spec{spec}, o)
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

// beyondEnd returns damage that only the whole source shows: the database or a snapshot file is ahead of the end of the
// log and of the entries that damage at its end is known to have lost. It returns nil if there is none.
func beyondEnd(m *evidence.Member) *dumplog.DamageError {
	s := &m.WAL.Summary
	if len(s.Segments) == 0 || s.LastIndex == 0 {
		return nil
	}
	end, why, beyond := m.LastIndex(), "the database", m.ConsistentIndex()
	known := end
	for _, d := range s.Damage {
		if d.LostFrom > end && d.LostTo == 0 {
			return nil // it says already that all the rest is lost
		}
		known = max(known, d.LostTo)
	}
	if m.HasSnap() {
		for _, f := range m.Snap.Files {
			if !f.Broken && f.Damage == nil && f.Index > beyond {
				why, beyond = f.File, f.Index
			}
		}
	}
	if beyond <= known {
		return nil
	}
	last := &s.Segments[len(s.Segments)-1]
	return &dumplog.DamageError{Pos: dumplog.Pos{Segment: last.Name, Offset: last.DataEnd},
		Kind:     dumplog.DamageMissingSegment,
		LostFrom: known + 1, LostTo: beyond, Err: &endError{why: why, beyond: beyond, end: end},
		Server: "does not notice when it starts; as a follower it panics then (tocommit is out of range), and " +
			"entries that it writes again up to this index are not applied to the database"}
}
