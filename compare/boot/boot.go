// Package boot decides whether a server of the release that wrote a data dir starts on it, what the server repairs
// itself, and whether the member has lost entries that it may have acknowledged.
//
// It checks only damage and indexes. compare/preflight decides about servers of other releases.
package boot

import (
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/release"
)

// Answer is a server's reaction to a data dir.
type Answer struct {
	// Starts is Unknown if it depends on more than the files show.
	Starts release.Answer
	// Why is what stops the server, or what is not known; empty if it starts.
	Why string
	// Mends are things that the server repairs when it starts.
	Mends []string
	// Torn is the range of entries that the server cuts off as an unfinished write. Nil if there are none.
	Torn *Range
	// Forgot is the range of entries that the member had applied or knew to be committed, but that its log has lost. A
	// server may start, but the member must not vote any more. Nil if there are none.
	Forgot *Range
}

// Range is a range of raft indexes, both included.
type Range struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
}

// String returns the range in words.
func (r Range) String() string {
	if r.From >= r.To {
		return fmt.Sprintf("entry %d", r.From)
	}
	return fmt.Sprintf("entries %d to %d", r.From, r.To)
}

// Trusted reports whether a server starts and the member has lost no entry that it acknowledged.
func (a *Answer) Trusted() bool { return a.Starts.Certain() && a.Forgot == nil }

// EndsWhole reports whether a member's log shows everything that the member has acknowledged. A torn record was not
// acknowledged. Records that were overwritten or lost at the end may have been, and so may those of a file that was cut
// short.
func EndsWhole(f *evidence.Facts) bool {
	if f.WAL == nil || Of(f).Forgot != nil || f.WAL.DamageOmitted > 0 {
		return false
	}
	return !slices.ContainsFunc(f.WAL.Damage, func(x evidence.DamageFacts) bool {
		torn := x.OnStart == dumplog.StartCuts && !cutShort(f.WAL, &x)
		// Without LostTo it is not known where the loss ends.
		return !torn && x.OnStart != dumplog.StartUnnoticed && max(x.LostFrom, x.LostTo) >= f.WAL.LastIndex
	})
}

// cutShort reports whether the file ends within the damaged record. A server writes into space that it has reserved, so
// zeros follow what it did not finish.
func cutShort(w *evidence.WALFacts, x *evidence.DamageFacts) bool {
	return slices.ContainsFunc(w.Segments, func(s dumplog.Segment) bool {
		return s.Name == x.File && x.Offset+x.Length >= s.Size
	})
}

// Of judges the data dir with these facts.
func Of(f *evidence.Facts) Answer {
	d := &dir{f: f, a: Answer{Starts: release.Yes}}
	if f.WAL == nil {
		d.open("it has no log: the server's behavior depends on its flags and peers")
		return d.a
	}
	if f.WroteBy.Etcd != nil {
		d.version = release.Of(*f.WroteBy.Etcd)
	}
	d.log()
	d.snapshot()
	d.positions()
	d.database()
	return d.a
}

type dir struct {
	f       *evidence.Facts
	a       Answer
	version release.Version
	// last is where the log ends for the server.
	last uint64
	// chosen is the index of the raft snapshot from which the server starts, 0 for none.
	chosen uint64
}

func (d *dir) refused(format string, args ...any) {
	if !d.a.Starts.Excluded() {
		d.a.Starts, d.a.Why = release.No, fmt.Sprintf(format, args...)
	}
}

func (d *dir) open(format string, args ...any) {
	if d.a.Starts.Certain() {
		d.a.Starts, d.a.Why = release.Unknown, fmt.Sprintf(format, args...)
	}
}

func (d *dir) mends(format string, args ...any) {
	d.a.Mends = append(d.a.Mends, fmt.Sprintf(format, args...))
}

// log follows the server through the segments.
func (d *dir) log() {
	d.last = d.f.WAL.LastIndex
	for i := range d.f.WAL.Damage {
		x := &d.f.WAL.Damage[i]
		if x.Kind == string(dumplog.DamageRequest) { // see request
			continue
		}
		switch x.OnStart {
		case dumplog.StartUnnoticed:
		case dumplog.StartRefused:
			if x.Kind != string(dumplog.DamageLostTail) { // reported by positions
				d.refused("the server refuses its log: %s", x.Detail)
			}
		case dumplog.StartCuts:
			d.cut(x)
		case dumplog.StartDrops:
			d.mends("the server treats the zeros at %s as the end of the log, and drops everything after them",
				place(x))
			d.ends(x)
		default:
			d.open("whether a server starts on its log is not known: %s", x.Detail)
		}
	}
	if n := d.f.WAL.DamageOmitted; n > 0 {
		d.open("whether a server starts on its log is not known: %d damaged places are not listed", n)
	}
}

func place(x *evidence.DamageFacts) string { return fmt.Sprintf("%s offset 0x%x", x.File, x.Offset) }

// cut handles an unfinished write, which the server cuts off.
func (d *dir) cut(x *evidence.DamageFacts) {
	if d.version.Has(release.TornWriteRefused).Certain() {
		d.refused("etcd %s refuses a log that ends inside a record; another patch release of its minor version cuts "+
			"it off", d.version)
		return
	}
	d.ends(x)
	d.mends("the server cuts the unfinished record at %s off", place(x))
	from, to := max(x.LostFrom, d.last+1), max(x.LostTo, d.last+1)
	d.a.Torn = &Range{From: from, To: max(from, to)}
}

// ends records that the server's log ends before a damaged place. What follows may be intact: the server does not read
// it.
func (d *dir) ends(x *evidence.DamageFacts) { d.last = min(d.last, x.After) }

// snapshot follows the server's choice of the raft snapshot.
func (d *dir) snapshot() {
	commit := uint64(0)
	if hs := d.f.WAL.HardState; hs != nil {
		commit = hs.Commit
	}
	known := map[uint64]bool{}
	for _, s := range d.f.WAL.Snapshots {
		if s.Index <= max(commit, d.last) {
			known[s.Index] = true
			if d.version.Has(release.SnapFileUnused).Certain() {
				d.chosen = max(d.chosen, s.Index)
			}
		}
	}
	if d.version.Has(release.SnapFileUnused).Certain() {
		return
	}
	if p := d.unread("snap"); p != nil {
		d.open("whether a server starts on it is not known: %s was not examined: %s", p.File, p.Error)
		d.chosen = newest(known)
		return
	}
	for i := range d.f.Snapshots {
		switch s := &d.f.Snapshots[i]; {
		case s.Damage != nil:
			d.mends("the server renames the damaged %s and starts from an older snapshot, or from the first entry",
				s.File)
		case known[s.Index]:
			d.chosen = max(d.chosen, s.Index)
		}
	}
}

// unread returns the problem of a part that could not be read, nil if there is none.
func (d *dir) unread(part string) *evidence.ProblemFacts {
	for i := range d.f.Problems {
		if d.f.Problems[i].Part == part {
			return &d.f.Problems[i]
		}
	}
	return nil
}

// newest returns the highest index, 0 if there is none.
func newest(known map[uint64]bool) (index uint64) {
	for i := range known {
		index = max(index, i)
	}
	return index
}

// positions compares commit index, log, snapshot and database.
func (d *dir) positions() {
	w := d.f.WAL
	if hs := w.HardState; hs != nil && d.last == w.LastIndex && hs.Commit > max(d.last, d.chosen) {
		d.refused("the server refuses its log: HardState commits entry %d, but the log ends with %d", hs.Commit, d.last)
	}
	if w.FirstIndex > d.chosen+1 && len(w.Segments) > 0 && w.Segments[0].First > d.chosen {
		d.refused("the server refuses its log: it starts with entry %d, and no raft snapshot that the server uses "+
			"reaches it", w.FirstIndex)
	}
	for i := range w.Damage {
		d.request(&w.Damage[i])
	}
	promised := d.f.Commit
	if hs := w.HardState; hs != nil {
		promised = max(promised, hs.Commit)
	}
	if end := max(d.last, d.chosen); promised > end && !d.received(end) {
		d.a.Forgot = &Range{From: end + 1, To: promised}
		d.a.Torn = nil
	}
}

// request handles an entry whose data is not a request, if the server applies it.
func (d *dir) request(x *evidence.DamageFacts) {
	if x.Kind != string(dumplog.DamageRequest) || x.LostFrom <= d.chosen || x.LostFrom > d.last {
		return
	}
	if x.OnStart == dumplog.StartRefused || d.version.Has(release.V2Executed).Excluded() {
		d.refused("the server panics when it applies entry %d: its data is not a request", x.LostFrom)
		return
	}
	d.open("whether the server panics when it applies entry %d is not known: its data is not a request", x.LostFrom)
}

// received reports whether the log ends with the record of a snapshot from a leader. Its database may contain a few
// later entries.
func (d *dir) received(end uint64) bool {
	for _, s := range d.f.WAL.Snapshots {
		if s.Index == end && s.Index > d.f.WAL.LastIndex {
			return true
		}
	}
	return false
}

// database follows bbolt and the stores.
func (d *dir) database() {
	db := d.f.DB
	if db == nil {
		if d.chosen == 0 && d.f.WAL.FirstIndex <= 1 && len(d.f.Problems) == 0 {
			d.beganRestored()
			d.mends("the server rebuilds the missing database from the log, which reaches back to the first entry")
			return
		}
		if p := d.unread("db"); p != nil {
			d.open("whether a server starts on its database is not known: %s was not examined: %s", p.File, p.Error)
			return
		}
		d.refused("its database is missing, and the log does not reach back to the first entry or names a raft " +
			"snapshot")
		return
	}
	if len(db.Metas) == 0 {
		d.noMeta(db)
		return
	}
	for i := range db.Metas {
		if !db.Metas[i].Valid {
			d.mends("the server opens the database at its other meta page, one transaction earlier, and executes the " +
				"log from there")
		}
	}
	for i := range db.Damage {
		d.dbDamage(&db.Damage[i])
	}
	if db.DamageOmitted > 0 {
		d.open("whether a server starts on its database is not known: %d damaged places are not listed",
			db.DamageOmitted)
	}
	if db.Undecodable > 0 {
		d.refused("the server refuses its database: %s of bucket key", plural.Of(db.Undecodable, "undecodable row",
			"undecodable rows"))
	}
	ci := uint64(0)
	if db.ConsistentIndex != nil {
		ci = *db.ConsistentIndex
	}
	if d.chosen <= ci {
		return
	}
	for _, s := range d.f.SnapDBs {
		if s.Index == d.chosen {
			d.mends("the server installs the received %s", s.File)
			return
		}
	}
	d.refused("the server refuses its database: it has applied entry %d, but the raft snapshot is of entry %d", ci,
		d.chosen)
}

// noMeta handles a file that bbolt does not open, or initializes if it is empty.
func (d *dir) noMeta(db *evidence.DBFacts) {
	switch {
	case db.Size > 0:
		d.refused("the server refuses its database: neither meta page is valid")
		return
	case d.chosen > 0:
		d.refused("the server refuses its database: it is empty, but the raft snapshot is of entry %d", d.chosen)
		return
	case d.f.WAL.FirstIndex > 1:
		d.refused("the server refuses its database: it is empty, but the log begins at entry %d", d.f.WAL.FirstIndex)
		return
	}
	d.beganRestored()
	d.mends("the server fills the empty database from the log, which reaches back to the first entry")
}

// beganRestored is for a server that fills a new database from the log of a restored cluster.
func (d *dir) beganRestored() {
	if d.f.WAL.Start == dumplog.StartRestore {
		d.open("the log begins with a restore from a backup: a server fills a new database from it, and what the " +
			"backup held is missing then")
	}
}

func (d *dir) dbDamage(x *evidence.DamageFacts) {
	switch dumpdb.DamageKind(x.Kind) {
	case dumpdb.DamageMeta, dumpdb.DamageMetaHeader, dumpdb.DamageFreelist, dumpdb.DamageBucket, dumpdb.DamageEmpty:
	case dumpdb.DamageRow:
		switch x.Bucket {
		case "key", "lease", "authUsers", "authRoles", "alarm":
			d.refused("the server refuses its database: %s", x.Detail)
		case "members", "members_removed":
			if d.version.Has(release.MembersFromDB).Possible() {
				d.open("whether a server starts on its database is not known: %s", x.Detail)
			}
		}
	default:
		d.refused("the server refuses its database: %s", x.Detail)
	}
}
