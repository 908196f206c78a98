package rebuild

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// Options say what is rebuilt from what.
type Options struct {
	// Base is a data dir, a db or a backup; an empty Where is the empty state of a new cluster. Logs are data dirs or WAL folders;
	// the base's own log is used too if it has one. Against are further members to hold the result against.
	Base    evidence.Spec
	Logs    []evidence.Spec
	Against []evidence.Spec
	To      Target
	// Skip are indexes of entries that are not executed.
	Skip []uint64
	// Out is the backup to write, DBOut a database without the trailer ("" writes none). They must not exist.
	Out, DBOut string
	// Minor is the 3.x minor whose rules apply; 0 takes it from the sources.
	Minor    int
	Access   evidence.Access
	Progress func(what string)
}

// builder carries one rebuild.
type builder struct {
	o   Options
	res *Result
	// set are all sources; base is nil for the empty state, logs have a log, members are what the result is held against.
	set  *evidence.Set
	base *evidence.Member
	// parts tell the path of the base's database.
	parts   *evidence.Parts
	logs    []*evidence.Member
	members []*evidence.Member
	from    Point
	// commit is the end of what base and logs prove committed, proven what any source proves.
	commit, proven uint64
	minor          int
	sv             *survey
	// stop is the last index to execute; 0 when Target decides while executing.
	stop uint64
}

// Run rebuilds. On error nothing is left at Options.Out and DBOut.
func Run(ctx context.Context, o Options) (*Result, error) {
	b := &builder{o: o, res: &Result{SchemaVersion: SchemaVersion, Target: o.To.String(), Output: o.Out, DB: o.DBOut, Logs: []string{},
		Skipped: []EntryLine{}, Doubtful: []EntryLine{}, Verified: []Verification{}, Notes: []string{}}}
	for _, out := range []string{o.Out, o.DBOut} {
		if _, err := os.Lstat(out); out != "" && err == nil {
			return nil, refuse("%s exists; a rebuild only writes new paths", out)
		}
	}
	if err := b.open(ctx); err != nil {
		return nil, err
	}
	defer func() { _ = b.close() }()
	if err := b.plan(ctx); err != nil {
		return nil, err
	}
	scratch, err := os.MkdirTemp(filepath.Dir(o.Out), ".etcd-medic-rebuild-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	if o.To.Before != nil {
		if err := b.findBefore(ctx, filepath.Join(scratch, "look")); err != nil {
			return nil, err
		}
	}
	work := filepath.Join(scratch, "db")
	if err := b.build(ctx, work, nil); err != nil {
		return nil, err
	}
	if err := b.verify(ctx, work); err != nil {
		return nil, err
	}
	return b.res, b.publish(ctx, work)
}

// open reads the facts of all sources and decides who is who.
func (b *builder) open(ctx context.Context) error {
	var specs []evidence.Spec
	hasBase := b.o.Base.Where != ""
	if hasBase {
		base, err := b.locate(ctx)
		if err != nil {
			return err
		}
		specs = append(specs, base)
	}
	specs = append(append(specs, b.o.Logs...), b.o.Against...)
	b.say("reading the sources")
	set, err := evidence.Open(ctx, specs, evidence.Options{Access: b.o.Access, Progress: b.o.Progress})
	if err != nil {
		return errors.Join(err, b.close())
	}
	b.set = set
	if len(set.Failed) > 0 {
		return errors.Join(set.Failed[0].Err, b.close())
	}
	for i, m := range set.Members {
		switch {
		case hasBase && i == 0:
			b.base = m
		case m.HasDB():
			b.members = append(b.members, m)
		}
		isLog := i < len(specs)-len(b.o.Against)
		if isLog && m.HasLog() {
			b.logs = append(b.logs, m)
			b.res.Logs = append(b.res.Logs, m.Label())
		}
		if isLog {
			b.commit = max(b.commit, m.Commit)
		}
		b.proven = max(b.proven, m.Commit)
	}
	if err := b.fits(ctx); err != nil {
		return errors.Join(err, b.close())
	}
	return nil
}

// locate finds the base's database. A running member is streamed once and read from scratch from then on.
func (b *builder) locate(ctx context.Context) (evidence.Spec, error) {
	spec := b.o.Base
	parts, err := evidence.LocateWith(ctx, spec, b.o.Access)
	if err != nil {
		return spec, err
	}
	b.parts = parts
	if parts.DB == "" {
		return spec, errors.Join(&evidence.SourceError{Where: spec.Where, Found: "no db", Expected: "a data dir, a db or a backup"}, b.close())
	}
	if parts.Kind == evidence.KindEndpoint {
		spec = evidence.Spec{Name: parts.Name, Where: parts.DB}
	}
	return spec, nil
}

// close removes the scratch of the sources.
func (b *builder) close() error {
	var errs []error
	if b.set != nil {
		errs = append(errs, b.set.Close())
	}
	if b.parts != nil {
		errs = append(errs, b.parts.Close())
	}
	return errors.Join(errs...)
}

func (b *builder) say(format string, args ...any) {
	if b.o.Progress != nil {
		b.o.Progress(fmt.Sprintf(format, args...))
	}
}

// fits refuses sources that can not go together.
func (b *builder) fits(ctx context.Context) error {
	if len(b.logs) == 0 {
		return &evidence.SourceError{Where: "--log", Found: "no source with a log entry", Expected: "data dirs or WAL folders"}
	}
	cluster := b.logs[0].ClusterID
	for _, m := range b.set.Members {
		if m.ClusterID != 0 && m.ClusterID != cluster {
			return refuse("%s belongs to cluster %s, %s to cluster %s", b.logs[0].Label(), cluster, m.Label(), m.ClusterID)
		}
		b.minor = max(b.minor, m.Version.Minor)
	}
	if b.o.Minor > 0 {
		b.minor = b.o.Minor
	}
	if b.minor == 0 {
		b.minor = 6
		b.res.note("no source tells its etcd version; the rules of 3.6 were applied")
	}
	b.res.Etcd = fmt.Sprintf("3.%d", b.minor)
	b.from.CompactRevision = -1
	b.from.Revision = 1
	if b.base == nil {
		return nil
	}
	return b.fitsBase(ctx)
}

// fitsBase wants a base that opens, is sound in every page, and says where in the log it stands.
func (b *builder) fitsBase(ctx context.Context) error {
	if !b.base.HasDB() {
		return &evidence.SourceError{Where: b.o.Base.Where, Found: "no db that opens", Expected: "a data dir, a db or a backup"}
	}
	db := b.base.DB.Handle
	b.res.Base = b.base.Label()
	rep, err := db.Check(ctx)
	if err != nil {
		return err
	}
	if len(rep.Damage) > 0 {
		return refuse("the base is damaged in %d places (first: %v); etcd-medic extract --format backup or repair db makes a sound one from what is readable", len(rep.Damage), rep.Damage[0])
	}
	m, err := db.MetaBucket()
	if err != nil {
		return refuse("bucket meta of the base can not be read: %v", err)
	}
	if m.ConsistentIndex == nil {
		return refuse("the base has no consistent index: nobody knows where in the log it stands")
	}
	b.from.Index = *m.ConsistentIndex
	if m.Term != nil {
		b.from.Term = *m.Term
	}
	b.from.CompactRevision = m.CompactRev()
	if b.from.Revision, err = db.CurrentRev(); err != nil {
		return err
	}
	return b.sameCluster()
}

// sameCluster holds the members that the base names against the owners of the logs: a backup carries no cluster ID.
func (b *builder) sameCluster() error {
	known := map[dumpdb.ID]bool{}
	for _, m := range b.base.DB.Members {
		known[m.ID] = true
	}
	for _, id := range b.base.DB.Removed {
		known[id] = true
	}
	for _, m := range b.logs {
		if m.MemberID == 0 || known[dumpdb.ID(m.MemberID)] {
			return nil
		}
		if m.WAL == nil {
			continue
		}
		for _, c := range m.WAL.Conf {
			if c.Change.NodeID == m.MemberID && c.Index > b.from.Index || known[dumpdb.ID(c.Change.NodeID)] {
				return nil // joined later, or shares members with the base
			}
		}
	}
	if len(known) == 0 {
		return nil
	}
	return refuse("the base names other members than the logs belong to: it was taken from another cluster, or before a restore gave the members new IDs")
}

// plan surveys the logs, and refuses what can be seen to fail before anything is written.
func (b *builder) plan(ctx context.Context) error {
	b.say("reading the logs")
	if err := b.survey(ctx); err != nil {
		return err
	}
	b.res.From = b.from
	sv := b.sv
	if sv.baseTerm != 0 && b.from.Term != 0 && sv.baseTerm != b.from.Term {
		return refuse("the base stands at entry %d/%d and the log holds %d/%d: they are of different histories", b.from.Term, b.from.Index, sv.baseTerm, b.from.Index)
	}
	if b.base != nil && sv.last < b.from.Index {
		return refuse("the logs end at entry %d, before the base's index %d: they lead nowhere from here; a restore begins a new log, and then the restored data dir is the base to take", sv.last, b.from.Index)
	}
	b.commit = max(b.commit, min(b.proven, sv.last))
	if err := b.target(); err != nil {
		return err
	}
	if b.minor <= 4 && len(sv.unsaved) > 0 && b.base != nil {
		b.res.note("etcd up to 3.4 stores the consistent index with key writes only: the auth entries %v may have been in the base already, then the auth revision is too high", clipped(sv.unsaved))
	}
	for _, i := range b.o.Skip {
		if i <= b.from.Index || i > max(b.stop, b.commit) {
			return refuse("entry %d can not be skipped: it does not lie behind the base (at %d) and up to the end (%d)", i, b.from.Index, max(b.stop, b.commit))
		}
	}
	if b.stop == 0 {
		return nil
	}
	return b.gapUpTo(b.stop)
}

func clipped(list []uint64) []uint64 { return list[:min(len(list), 20)] }

// gapUpTo refuses when an index behind the base and up to end is in no log.
func (b *builder) gapUpTo(end uint64) error {
	var missing []Gap
	for _, g := range b.sv.gaps {
		if g.From <= end {
			missing = append(missing, Gap{g.From, min(g.To, end)})
		}
	}
	if last := max(b.sv.last, b.from.Index); last < end {
		missing = append(missing, Gap{last + 1, end})
	}
	if len(missing) == 0 {
		return nil
	}
	return &RefusedError{Reason: fmt.Sprintf("the logs (%d to %d) do not lead from the base at %d to %d without a gap; missing are the indexes ", b.sv.first, b.sv.last, b.from.Index, end), Missing: missing}
}

// target turns the target into the last index to execute where that is possible before executing.
func (b *builder) target() error {
	t := b.o.To
	switch {
	case t.Index > 0:
		if t.Index < b.from.Index {
			return refuse("the base stands at index %d already, behind index %d; take an older base", b.from.Index, t.Index)
		}
		if t.Index > b.commit {
			return refuse("entry %d is not proven committed: the sources prove entries up to %d", t.Index, b.commit)
		}
		b.stop = t.Index
	case t.Revision > 0:
		if t.Revision < b.from.Revision {
			return refuse("the base is at revision %d already, behind revision %d; take an older base", b.from.Revision, t.Revision)
		}
	case t.Before != nil:
	case t.Last:
		b.stop = b.commit
	default:
		return b.untilTime()
	}
	return nil
}

// untilTime stops before the first entry that was certainly proposed after the time.
func (b *builder) untilTime() error {
	marks := b.sv.times.Marks()
	if len(marks) == 0 {
		return refuse("the logs carry no time")
	}
	b.stop = b.commit
	var before, after string
	for _, m := range marks {
		if m.Time.After(b.o.To.Time) {
			b.stop = min(b.stop, m.Index-1)
			after = fmt.Sprintf("entry %d was proposed at %s or later (%s)", m.Index, m.Time.UTC().Format(stamp), m.Source)
			break
		}
		before = fmt.Sprintf("entry %d was proposed at %s or later (%s)", m.Index, m.Time.UTC().Format(stamp), m.Source)
	}
	if b.stop < b.from.Index {
		return refuse("the base stands at index %d, which is later than the time asked for: %s", b.from.Index, after)
	}
	for _, s := range []string{before, after} {
		if s != "" {
			b.res.note("%s", s)
		}
	}
	b.res.note("times in a log are lower bounds: entries just before the end may be later than the time asked for")
	return nil
}

const stamp = "2006-01-02T15:04:05.000Z"

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

// publish makes the backup and, if wanted, the bare database.
func (b *builder) publish(ctx context.Context, work string) error {
	b.say("writing %s", b.o.Out)
	sum, err := datadir.WriteBackup(ctx, b.o.Out, work)
	if err != nil {
		return err
	}
	b.res.SHA256 = hex.EncodeToString(sum)
	if b.o.DBOut == "" {
		return nil
	}
	if err := datadir.CopyDB(ctx, b.o.DBOut, work); err != nil {
		return errors.Join(err, os.Remove(b.o.Out))
	}
	return nil
}
