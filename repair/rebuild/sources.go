package rebuild

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/release"
)

// open reads the facts of all sources and assigns their roles.
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
			b.commit = max(b.commit, provenBy(m))
		}
		b.proven = max(b.proven, provenBy(m))
	}
	if err := b.fits(ctx); err != nil {
		return errors.Join(err, b.close())
	}
	return nil
}

// locate finds the base's database. A running member is streamed once and then read from scratch.
func (b *builder) locate(ctx context.Context) (evidence.Spec, error) {
	spec := b.o.Base
	parts, err := evidence.LocateWith(ctx, spec, b.o.Access)
	if err != nil {
		return spec, err
	}
	b.parts = parts
	if parts.DB == "" {
		return spec, errors.Join(&evidence.SourceError{Where: spec.Where, Found: "no db",
			Expected: "a data dir, a db or a backup"}, b.close())
	}
	if parts.Kind == evidence.KindEndpoint {
		spec = evidence.Spec{Name: parts.Name, Where: parts.DB}
	}
	return spec, nil
}

// unchanged verifies that no source changed while it was read.
func (b *builder) unchanged(ctx context.Context) error {
	if b.parts != nil {
		if err := b.parts.Unchanged(ctx); err != nil {
			return err
		}
	}
	return b.set.Unchanged(ctx)
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

// fits refuses sources that do not belong together.
func (b *builder) fits(ctx context.Context) error {
	if len(b.logs) == 0 {
		return &evidence.SourceError{Where: "--log", Found: "no source with a log entry",
			Expected: "data dirs or WAL folders"}
	}
	cluster := b.logs[0].ClusterID
	for _, m := range b.set.Members {
		if m.ClusterID != 0 && m.ClusterID != cluster {
			return refuse("%s belongs to cluster %s, %s to cluster %s", b.logs[0].Label(), cluster, m.Label(),
				m.ClusterID)
		}
		b.version = release.Highest(b.version, m.Version.Release())
	}
	if b.o.Version.Known() {
		b.version = b.o.Version
	}
	b.from.CompactRevision = -1
	b.from.Revision = 1
	if b.base == nil {
		return b.beganEmpty()
	}
	return b.fitsBase(ctx)
}

// restored returns a log that begins with a restore, nil if none does.
func (b *builder) restored() *evidence.Member {
	for _, m := range b.logs {
		if m.HasWAL() && m.WAL.Summary.Start == dumplog.StartRestore {
			return m
		}
	}
	return nil
}

// beganEmpty refuses to execute from the empty state if the cluster was restored: the log then reaches back to entry 1,
// but the keys of the backup are in no entry.
func (b *builder) beganEmpty() error {
	if m := b.restored(); m != nil {
		return refusal.New("restore that backup again with the same flags, and name the new data dir with --base",
			"the log of %s begins with a restore from a backup: what the backup held is in no entry", m.Label())
	}
	return nil
}

// settleVersion uses the cluster version in the log if no source shows its release. Without either, the result has the
// format of 3.6, and entries that releases execute differently are doubtful.
func (b *builder) settleVersion() {
	switch {
	case b.version.Known():
		b.rules = b.version
	case b.sv.cluster.Known():
		b.version = b.sv.cluster
		b.rules = b.version
		b.res.note("no source shows its etcd version; the log's cluster version is %s",
			strings.TrimSuffix(b.version.String(), ".x"))
	default:
		b.version = release.AnyOf(6)
		b.res.note("neither the sources nor the log show an etcd version: the result has the form of 3.6, and what " +
			"releases execute differently counts as doubtful; --etcd names one")
	}
	b.res.Etcd = strings.TrimSuffix(b.version.String(), ".x")
}

// soundOne is what to do about a base that is damaged.
const soundOne = "etcd-medic extract --format backup or repair db makes a sound one from what is readable"

// fitsBase requires a base that opens, has no damage, and shows its position in the log.
func (b *builder) fitsBase(ctx context.Context) error {
	if !b.base.HasDB() {
		return &evidence.SourceError{Where: b.o.Base.Where, Found: "no db that opens",
			Expected: "a data dir, a db or a backup"}
	}
	db := b.base.DB.Handle
	b.res.Base = b.base.Label()
	rep, err := db.Check(ctx)
	if err != nil {
		return err
	}
	if len(rep.Damage) > 0 {
		return refuse("the base is damaged in %s (first: %v); "+soundOne, plural.Of(len(rep.Damage), "place", "places"),
			rep.Damage[0])
	}
	if tr, err := db.Trailer(); err == nil && tr.State == "mismatch" {
		if !b.o.SkipHashCheck {
			return refuse("the sha256 trailer of the base is not that of its bytes: something in it was changed or " +
				"lost since it was saved (--skip-hash-check takes it nevertheless)")
		}
		b.res.note("the sha256 trailer of the base does not hold: any value of it may be wrong")
		b.unproven = true
	}
	m, err := db.MetaBucket()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return refuse("bucket meta of the base cannot be read: %v", err)
	}
	if m.ConsistentIndex == nil {
		return refuse("the base has no consistent index, so its position in the log is unknown")
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

// sameCluster compares the members of the base with the owners of the logs: a backup has no cluster ID.
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
		if !m.HasWAL() {
			continue
		}
		for _, c := range m.WAL.Conf {
			if c.Change.NodeID == m.MemberID && c.Index > b.from.Index || known[dumpdb.ID(c.Change.NodeID)] {
				return nil // joined later, or has members in common with the base
			}
		}
	}
	if len(known) == 0 {
		return nil
	}
	return refuse("the base names other members than the logs belong to: it was taken from another cluster, or " +
		"before a restore gave the members new IDs")
}
