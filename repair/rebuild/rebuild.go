package rebuild

import (
	"context"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/majority"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// Options say what to rebuild, and from which sources.
type Options struct {
	// Base is a data dir, a db or a backup; an empty Where is the empty state of a new cluster. Logs are data dirs or
	// WAL folders; the base's own log is used too, if it has one. Against are additional members to compare the result
	// with.
	Base    evidence.Spec
	Logs    []evidence.Spec
	Against []evidence.Spec
	To      Target
	// Majority is what the members of the logs show to be committed, nil if only these sources are asked: without their
	// snapshots, logs may not show who votes.
	Majority *majority.Commit
	// Skip are indexes of entries that are not executed.
	Skip []uint64
	// Out is the backup to write, DBOut a database without the trailer ("" writes none). They must not exist.
	Out, DBOut string
	// SkipHashCheck accepts a base whose sha256 trailer does not match.
	SkipHashCheck bool
	// Version is the version whose rules apply; unknown means the minor version of the sources.
	Version  release.Version
	Access   evidence.Access
	Progress func(what string)
}

// builder is one rebuild.
type builder struct {
	o   Options
	res *Result
	// set are all sources. base is nil for the empty state, logs are the sources with a log, members those to compare
	// the result with.
	set  *evidence.Set
	base *evidence.Member
	// unproven is true if the sha256 trailer of the base does not fit its bytes.
	unproven bool
	// parts are the paths of the base.
	parts   *evidence.Parts
	logs    []*evidence.Member
	members []*evidence.Member
	from    Point
	// commit is the last index that base and logs prove committed, proven the last that any source proves. known is
	// commit without the entries that are committed because a majority holds them.
	commit, proven, known uint64
	// majority is the entry up to which commit is above known, nil if it is not.
	majority *majority.Commit
	// version is that of the servers, for the format of the result. rules is the same, or unknown if nothing shows it.
	version, rules release.Version
	sv             *survey
	// listed are the IDs in the sources' databases, filled on first use.
	listed map[dumplog.ID]bool
	// stop is the last index to execute; 0 if Target is found while executing.
	stop uint64
	// out and dbOut are the new paths under construction; dbOut is nil if no database is wanted.
	out, dbOut *datadir.Building
}

// Run rebuilds. On error it removes Options.Out and DBOut.
func Run(ctx context.Context, o Options) (*Result, error) {
	b := &builder{o: o, res: &Result{SchemaVersion: SchemaVersion, Target: o.To.String(), Output: o.Out, DB: o.DBOut,
		Logs:    []string{},
		Skipped: []EntryLine{}, Doubtful: []EntryLine{}, Verified: []Verification{}, Notes: []string{}}}
	defer b.abandon()
	if err := b.claim(); err != nil {
		return nil, err
	}
	if err := b.open(ctx); err != nil {
		return nil, err
	}
	defer func() { _ = b.close() }()
	if err := b.plan(ctx); err != nil {
		return nil, err
	}
	if o.To.Before != nil {
		if err := b.findBefore(ctx, filepath.Join(b.out.Path, "look")); err != nil {
			return nil, err
		}
	}
	work := filepath.Join(b.out.Path, "work")
	if err := b.build(ctx, work, nil); err != nil {
		return nil, err
	}
	b.sayMajority()
	if err := b.verify(ctx, work); err != nil {
		return nil, err
	}
	if err := b.unchanged(ctx); err != nil {
		return nil, err
	}
	return b.res, b.publish(ctx, work)
}

// sayMajority says how the last executed entries are known to be committed, if no source shows it.
func (b *builder) sayMajority() {
	if b.majority == nil {
		return
	}
	if known := max(b.known, b.majority.Known); b.res.To.Index > known {
		b.res.ByMajority = b.majority.Says(known + 1)
	}
}

// claim reserves the new paths, so that no second run writes there.
func (b *builder) claim() error {
	for _, x := range []struct {
		path string
		at   **datadir.Building
	}{{b.o.Out, &b.out}, {b.o.DBOut, &b.dbOut}} {
		if x.path == "" {
			continue
		}
		if err := datadir.Outside(x.path, slices.Concat(b.o.Logs, b.o.Against,
			[]evidence.Spec{b.o.Base})...); err != nil {
			return err
		}
		var err error
		*x.at, err = datadir.Begin(x.path)
		if errors.Is(err, datadir.ErrExists) {
			return refuse("%s exists; a rebuild only writes new paths", x.path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) abandon() {
	for _, out := range []*datadir.Building{b.out, b.dbOut} {
		if out != nil {
			out.Abandon()
		}
	}
}

// findBefore rebuilds to the end once, in scratch, to find the last entry that changed the key.
func (b *builder) findBefore(ctx context.Context, work string) error {
	var at uint64
	b.stop = b.commit
	if err := b.gapUpTo(b.stop); err != nil {
		return err
	}
	key := string(b.o.To.Before)
	quiet := *b
	quiet.res = &Result{}
	err := quiet.build(ctx, work, func(st *replay.Step) {
		if st.State == replay.Applied && st.Touches(key) && !slices.Contains(b.o.Skip, st.Entry.Index) {
			at = st.Entry.Index
		}
	})
	if err != nil {
		return err
	}
	if at == 0 {
		return refuse("no entry from %d to %d changes the key", b.from.Index+1, b.stop)
	}
	b.stop = at - 1
	b.res.note("entry %d is the last that changes the key", at)
	return os.Remove(work)
}

// publish writes the backup and, if wanted, the database without trailer.
func (b *builder) publish(ctx context.Context, work string) error {
	b.say("writing %s", b.o.Out)
	sum, err := datadir.WriteBackup(ctx, filepath.Join(b.out.Path, "backup"), work)
	if err != nil {
		return err
	}
	if b.unproven { // a sum would certify what may be wrong
		b.res.note("the result has no sha256 trailer, since that of the base does not fit: restore asks for " +
			"--accept-unproven-content")
		if err := datadir.DropTrailer(filepath.Join(b.out.Path, "backup")); err != nil {
			return err
		}
	} else {
		b.res.SHA256 = hex.EncodeToString(sum)
	}
	if b.dbOut != nil {
		if err := b.dbOut.CopyDB(ctx, filepath.Join(b.dbOut.Path, "db"), work); err != nil {
			return err
		}
		if err := b.dbOut.CommitFile("db"); err != nil {
			return err
		}
	}
	if err := b.out.CommitFile("backup"); err != nil {
		if b.dbOut != nil {
			err = errors.Join(err, os.Remove(b.o.DBOut))
		}
		return err
	}
	return nil
}
