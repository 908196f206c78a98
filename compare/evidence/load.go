package evidence

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"

	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/folder"
	"github.com/etcd-medic/etcd-medic/internal/holder"
	"github.com/etcd-medic/etcd-medic/internal/memory"
	"github.com/etcd-medic/etcd-medic/internal/progress"
	"github.com/etcd-medic/etcd-medic/release"
)

// load reads one source. It returns an error only if nothing at all could be read.
func load(ctx context.Context, src *Source, o Options, h *hashing) (m *Member, err error) {
	m = &Member{Source: src}
	if src.Manifest, err = listFiles(ctx, src.layout); err != nil {
		return nil, err
	}
	src.InUse = inUse(src.layout)
	src.Manifest.hashing = h
	switch {
	case o.Hash:
		src.Manifest.startHash()
	case o.List:
		src.Manifest.tryOpen()
	}
	defer func() {
		if err != nil {
			src.Manifest.stopHash() // the digests are not needed any more
		}
	}()
	if err := m.loading().readShown(ctx, h.ctx, o); err != nil {
		return nil, err
	}
	nothing := !m.HasWAL() && !m.HasSnap() && m.DB == nil
	// The trailer of a single file is compared with its digest.
	if later := o.Hash && o.HashLater && len(src.Manifest.Files) != 1; nothing || !later {
		if err := m.loading().digested(); err != nil {
			return nil, err
		}
	}
	if o.Deep {
		m.loading().trailer()
	}
	if nothing {
		return nil, m.loading().nothing()
	}
	m.Version = fingerprint(m)
	m.membershipLoading().load()
	m.loading().applied()
	src.Collected = src.layout.collected(m)
	return m, nil
}

// inUse describes the process that has a lock on the database or on a segment of the log. It neither takes nor requests
// the lock.
func inUse(l layout) string {
	segments, err := folder.Match(l.wal, "*.wal")
	if err != nil || l.wal == "" {
		segments = nil
	}
	paths := segments
	if l.db != "" {
		paths = append([]string{l.db}, segments...)
	}
	locks, err := holder.Of(paths...)
	// the system does not say; Unchanged verifies separately that the files do not change
	if err != nil || len(locks) == 0 {
		return ""
	}
	first := locks[0]
	return fmt.Sprintf("%s has locked %s", first, filepath.Base(first.Path))
}

// HeldBy describes the process that has a lock on a file of a source, "" if the system shows none. It skips archives
// and sources on other hosts. It opens nothing for writing, and neither takes nor requests a lock.
func HeldBy(spec Spec) string {
	st, err := os.Stat(spec.Where)
	switch {
	case err != nil:
		return ""
	case st.Mode().IsRegular():
		return inUse(layout{db: spec.Where, wal: spec.WALDir})
	case !st.IsDir():
		return ""
	}
	for _, dir := range []string{filepath.Join(spec.Where, "member"), spec.Where} {
		l := layout{db: filepath.Join(dir, "snap", "db"), wal: cmp.Or(spec.WALDir, filepath.Join(dir, "wal"))}
		if _, err := os.Stat(l.db); err != nil {
			l.db = ""
		}
		if held := inUse(l); held != "" {
			return held
		}
	}
	return inUse(layout{wal: spec.Where})
}

// loading reads a member from its source.
type loading struct{ *Member }

func (m *Member) loading() loading { return loading{m} }

// readShown is read with progress on the display.
func (m loading) readShown(ctx, whole context.Context, o Options) error {
	ctx, work := progress.Begin(ctx, "reading "+m.Source.Name, m.Source.Manifest.Bytes)
	defer work.End()
	return m.read(ctx, progress.Carry(whole, ctx), o)
}

// read reads log, snapshots and db. It returns an error only if the context ends.
func (m loading) read(ctx, whole context.Context, o Options) error {
	l := m.Source.layout
	if err := m.wal(ctx, l.wal, o); err != nil {
		return err
	}
	m.snaps(l, o)
	return m.database(ctx, whole, l.db, o)
}

// digested waits for the digests and lists the files that could not be hashed before all other problems.
func (m loading) digested() error {
	man := m.Source.Manifest
	if man == nil || m.settled {
		return nil
	}
	if man.done != nil {
		if err := man.wait(); err != nil {
			return err
		}
	}
	m.settled = true
	rest := m.Problems
	m.Problems = nil
	for _, f := range man.Unreadable {
		m.problem("file", f.Path, fmt.Errorf("cannot be read: %w", f.Err))
	}
	m.Problems = append(m.Problems, rest...)
	return nil
}

func (m loading) nothing() error {
	e := &SourceError{Where: m.Source.Where, Found: "nothing readable", Expected: expectedSource}
	for _, p := range m.Problems {
		next := fmt.Errorf("%s: %w", p.File, p.Err)
		if e.Err != nil { // on the line of the others
			next = fmt.Errorf("%w; %w", e.Err, next)
		}
		e.Err = next
	}
	return e
}

func (m loading) problem(part, file string, err error) {
	m.Problems = append(m.Problems, Problem{Part: part, File: filepath.Base(file), Err: err})
}

func (m loading) snaps(l layout, o Options) {
	var err error
	switch {
	case l.snapFile != "":
		var f *dumplog.SnapFile
		if f, err = dumplog.ReadSnapFile(l.snapFile); err == nil {
			m.Snap, m.snapRead = dumplog.SnapDir{Files: []*dumplog.SnapFile{f}}, true
		}
	case l.snap != "":
		var d *dumplog.SnapDir
		nodes := max(dumplog.MaxV2Nodes/max(o.sources, 1), leastV2Nodes)
		if d, err = dumplog.ReadSnapDirBound(l.snap, nodes); err == nil {
			m.Snap, m.snapRead = *d, true
		}
	}
	if err != nil {
		m.problem("snap", l.snap+l.snapFile, err)
	}
	if !o.Listing {
		m.leaveOutSnaps()
	}
}

// leaveOutSnaps leaves the .snap files out if one of them was not examined: which of them a server uses, and what is in
// it, is unknown then.
func (m loading) leaveOutSnaps() {
	for _, f := range m.Snap.Files {
		if err := f.NotExamined(); err != nil {
			m.problem("snap", f.File, fmt.Errorf("%w: the .snap files are left out", err))
			m.Snap.Files, m.snapRead = nil, false // what was received stays known
			return
		}
	}
}

// database opens the database and reads what the options ask for. The handle is valid until whole ends.
func (m loading) database(ctx, whole context.Context, path string, o Options) error {
	if path == "" {
		return nil
	}
	d := &DB{File: filepath.Base(path)}
	h, err := dumpdb.OpenContext(whole, path)
	if err != nil {
		var de *dumpdb.DamageError
		if errors.As(err, &de) {
			d.Damage, d.KVDamaged = append(d.Damage, de), true
			if st, err := os.Stat(path); err == nil {
				d.Size = st.Size()
				d.Foreign = m.Source.Kind == KindBackup && !hasBoltPages(path, d.Size)
			}
			m.DB = d
		}
		m.problem("db", path, err)
		return nil
	}
	rows := memory.Rows(dumpdb.MaxSmall)
	if _, err := h.SmallSize(max(rows/int64(max(o.sources, 1)), min(leastSmallBytes, rows))); err != nil {
		m.problem("db", path, fmt.Errorf("%w: the database is left out", err))
		return errors.Join(ctx.Err(), h.Close())
	}
	d.Handle, m.DB = h, d
	d.readBuckets()
	if o.Deep {
		return d.readDeep(ctx, o.NoHashes)
	}
	return nil
}

// readBuckets reads the small buckets, and keeps damage together with what decodes.
func (d *DB) readBuckets() {
	var dmg []*dumpdb.DamageError
	d.Buckets, dmg = d.Handle.Buckets()
	d.Damage = append(d.Damage, dmg...)
	var err error
	d.Meta, err = d.Handle.MetaBucket()
	d.damage("meta", err)
	d.Auth, err = d.Handle.Auth()
	d.damage("auth", err)
	d.Leases, err = d.Handle.Leases()
	d.damage("lease", err)
	d.Alarms, err = d.Handle.Alarms()
	d.damage("alarm", err)
	d.Members, err = d.Handle.Members()
	d.damage("members", err)
	d.Removed, err = d.Handle.RemovedMembers()
	d.damage("members_removed", err)
	d.Cluster, err = d.Handle.Cluster()
	d.damage("cluster", err)
}

// damagePlace identifies a damaged place.
type damagePlace struct {
	page   uint64
	offset int64
	kind   dumpdb.DamageKind
}

// damage adds the errors of a bucket reader. It splits joined errors, and skips damage that the page walk has already
// reported.
func (d *DB) damage(bucket string, err error) {
	if err == nil {
		return
	}
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range j.Unwrap() {
			d.damage(bucket, e)
		}
		return
	}
	var de *dumpdb.DamageError
	if !errors.As(err, &de) {
		de = &dumpdb.DamageError{Kind: dumpdb.DamageRow, Bucket: bucket, Err: err}
	}
	at := damagePlace{de.Page, de.Offset, de.Kind}
	if d.known[at] {
		return
	}
	if d.known == nil {
		d.known = map[damagePlace]bool{}
		for _, k := range d.Damage {
			d.known[damagePlace{k.Page, k.Offset, k.Kind}] = true
		}
		if d.known[at] {
			return
		}
	}
	d.known[at] = true
	d.Damage = append(d.Damage, de)
}

// readDeep walks the page graph, checks the MVCC invariants and computes hashes, in little more than one pass over the
// file.
func (d *DB) readDeep(ctx context.Context, noHashes bool) error {
	in, err := d.Handle.InspectWith(ctx, dumpdb.InspectOptions{NoHashes: noHashes})
	if err != nil {
		return err
	}
	d.Pages, d.KV, d.Hashes = in.Pages, in.KV, in.Hashes
	for _, e := range in.Pages.Damage {
		d.damage(e.Bucket, e)
	}
	d.damage("key", in.KVErr)
	d.KVDamaged = d.KVDamaged || slices.ContainsFunc(d.Damage, mayHideKeys)
	if in.HashErr == nil && !d.KVDamaged && !noHashes {
		d.HashKV, d.RecordsHash, d.Content = &in.HashKV, in.RecordsHash, in.Content
	}
	return ctx.Err()
}

// endUnread reports whether the newest records of bucket key may be in what cannot be read.
func (d *DB) endUnread() bool {
	return slices.ContainsFunc(d.Damage, func(e *dumpdb.DamageError) bool {
		_, to := e.Revisions()
		return mayHideKeys(e) && to == (dumpdb.Rev{})
	})
}

// mayHideKeys reports whether records of bucket key may be in what cannot be read. Nothing is read through the page
// header of a meta page.
func mayHideKeys(e *dumpdb.DamageError) bool {
	return e.Bucket == "key" || e.Bucket == "" && e.Kind != dumpdb.DamageMetaHeader
}

// trailer compares the sha256 trailer of a backup with the digest of the manifest, or computes the digest if there is
// none. A file that does not open as a database may still have a trailer. A trailer on the database of a data dir means
// that a backup was copied there.
func (m loading) trailer() {
	copied := m.Source.Kind == KindDataDir && m.HasDB() && m.DB.Handle.Size()%512 == sha256.Size
	if m.DB == nil || m.Source.Kind != KindBackup && m.Source.Kind != KindEndpoint && !copied {
		return
	}
	d, computed := m.DB, ""
	if man := m.Source.Manifest; man != nil && len(man.Files) == 1 {
		computed = man.Files[0].Body
		d.Size = man.Bytes
	}
	var err error
	switch {
	case d.Handle == nil:
		d.Trailer, err = dumpdb.ReadTrailer(m.Source.layout.db, computed)
	case computed != "":
		d.Trailer, err = d.Handle.TrailerOf(computed)
	default:
		d.Trailer, err = d.Handle.Trailer()
	}
	d.damage("", err)
}

// reachOfBackups gives databases without a log the commit index of the other sources. Up to 3.4 the consistent index
// moves only with key writes. So a backup may contain leases, users, alarms and members of later entries that were
// committed when it was taken.
func reachOfBackups(members []*Member) {
	alignRunning(members)
	top, idle := uint64(0), uint64(0)
	for _, m := range members {
		m.loading().applied()
		top, idle = max(top, m.Commit), max(idle, m.WAL.IdleAfter(m.Commit))
	}
	for _, m := range members {
		if m.othersCommit = top; !m.HasLog() {
			m.othersCommit = max(top, idle)
		}
		m.parted = partedAt(m, members)
		m.loading().applied()
	}
}

// partedAt is the first entry above a member's commit index that other members committed otherwise, 0 if there is none:
// what the member's log holds from there on was never applied. Logs that agree at an entry agree before it.
func partedAt(m *Member, members []*Member) (first uint64) {
	for _, o := range members {
		if o == m || !m.HasLog() || !o.HasLog() || o.ClusterID != m.ClusterID || o.MemberID == m.MemberID {
			continue
		}
		end := min(m.LastIndex(), o.Commit)
		if end <= m.Commit {
			continue
		}
		n := sort.Search(int(end-m.Commit), func(i int) bool { //nolint:gosec // both logs hold these entries
			index := m.Commit + 1 + uint64(i) //nolint:gosec // not negative
			a, b := m.WAL.TermAt(index), o.WAL.TermAt(index)
			return a != b && a != 0 && b != 0
		})
		if at := m.Commit + 1 + uint64(n); at <= end && (first == 0 || at < first) { //nolint:gosec // not negative
			first = at
		}
	}
	return first
}

// applied computes how far the log is committed and applied. Member explains the difference between AppliedMin and
// AppliedMax.
func (m loading) applied() {
	ci := m.ConsistentIndex()
	m.Commit = max(ci, m.newestSnapshotIndex())
	if m.HasWAL() {
		if hs := m.WAL.Summary.HardState; hs != nil {
			m.Commit = max(m.Commit, min(hs.Commit, max(m.WAL.Summary.LastIndex, m.newestSnapshotIndex())))
		}
	}
	m.Commit = max(m.Commit, m.confApplied)
	m.AppliedMin, m.AppliedMax = ci, ci
	if !m.Version.Follows(release.IndexWithEveryEntry) || m.IndexFrozen() {
		// A killed server may have applied more than its stored commit index: a HardState that only raises it stays in
		// memory until the next entry is written. Key writes above that move the consistent index, which then says that
		// they are committed.
		reach := m.othersCommit
		if m.HasLog() {
			reach = max(m.Commit, min(reach, m.LastIndex()))
			reach = max(reach, m.WAL.IdleAfter(m.Commit), m.WAL.IdleAfter(reach))
		}
		if m.parted > 0 {
			reach = min(reach, m.parted-1)
		}
		m.AppliedMax = max(m.Commit, reach)
	}
	switch r := m.Source.running; {
	case r == nil || m.indexOverride != 0:
	case m.exactIndex > 0:
		m.AppliedMin, m.AppliedMax, m.Commit = m.exactIndex, m.exactIndex, max(m.Commit, m.exactIndex)
	default:
		m.AppliedMax = max(m.AppliedMax, r.committed)
	}
	m.AppliedMax, m.Commit = max(m.AppliedMax, m.beyond), max(m.Commit, m.beyond)
}
