package evidence

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/redact"
)

// Source is one input after detection.
type Source struct {
	// Name is the label used in every report: given by the user, else the member's own name, else from the path.
	Name string
	Kind Kind
	// Where is the path as the user gave it.
	Where    string
	Manifest *Manifest
	// Missing are the parts that a source of this kind should have but lacks.
	Missing []string
	// Collected is true for a copy that the command collect made of a running member. The member may have applied more
	// since.
	Collected bool
	// InUse describes the process that had a lock on a file when reading started, "" if the system shows none.
	InUse  string
	spec   Spec
	layout layout
	// running is what a running member said around the moment of its snapshot; nil for other sources.
	running *running
}

// Member is the facts of one source. Absent parts are empty (see HasWAL, HasSnap and HasDB); DB is nil if absent.
// Damage is kept together with what could be read.
type Member struct {
	Source *Source
	// MemberID and ClusterID come from the WAL metadata, the only place from which etcd reads them; zero if there is no
	// WAL.
	MemberID, ClusterID dumplog.ID
	// NodeName is the member's own name in the members bucket or the v2 store; "" if unknown.
	NodeName   string
	WAL        WAL
	Snap       dumplog.SnapDir
	DB         *DB
	Membership Membership
	Version    Version
	// Commit is the highest index that this source proves committed: the maximum of HardState.commit, consistent index,
	// snapshots, and conf changes whose effect the database shows.
	Commit uint64
	// AppliedMin is the last entry certainly applied to the db (consistent index), AppliedMax the last that may be.
	// They differ up to 3.4, where entries without a key write do not move the consistent index, and where the database
	// holds effects of entries above it (AppliedBeyond). A backup has no log, so the commit index of the other sources
	// bounds it. A running member says itself what it has applied.
	AppliedMin, AppliedMax uint64
	// RemovalsAbove are the removals of members above the consistent index, and above the newest raft snapshot, whose
	// rows the database holds.
	RemovalsAbove []ConfEntry
	// Problems are parts that could not be read. They are facts about the source.
	Problems []Problem
	// Redact computes the digests of values; all sources of a run share it.
	Redact *redact.Key
	// snapRead is true if a snap folder could be listed or a .snap file could be read.
	snapRead bool
	// settled is true once Problems contains the files that could not be hashed.
	settled bool
	// confApplied is the last conf change above the stored commit index whose effect the database shows, 0 if none is.
	confApplied uint64
	// othersCommit is the highest commit index of all sources. For one without a log it counts the idle entries above
	// that, too.
	othersCommit uint64
	// parted is the first entry of the log that other members committed otherwise, 0 if there is none.
	parted uint64
	// indexOverride replaces the stored consistent index; 0 means no override.
	indexOverride uint64
	// beyond is the highest entry above the consistent index of which the database is known to hold effects, 0 if there
	// is none.
	beyond uint64
	// exactIndex is an index of which the snapshot of a running member shows the content; 0 if none is known.
	exactIndex uint64
}

// Problem is a part of a source that is missing or could not be read.
type Problem struct {
	Part string
	File string
	Err  error
}

// WAL is an open log and the result of one pass over it. The zero value represents a source without a log: it is valid
// and empty.
type WAL struct {
	// Log is nil without a log; its iterators then yield nothing.
	Log     *dumplog.Log
	Summary dumplog.Summary
	// Conf are the membership changes of the effective log, in order.
	Conf []ConfEntry
	// LastByTerm is the last index of each term of the effective log, in term order.
	LastByTerm []TermEnd
	// First is the first request of a server in a log that reaches back to the bootstrap; zero if there is none.
	First FirstRequest
	// Idle are the runs of entries above the commit index of the last HardState that write no key, bounded. A lease
	// revoke is one of them: only the key space shows whether it deletes keys.
	Idle []IndexRange
	// Sums show where two logs of one run have the same entries; nil for a log with overwrites, and for a single
	// source.
	Sums *LogSums
}

// TermAt returns the term of the effective log at an index, also inside a gap within one term; 0 if the log does not
// reach the index.
func (w *WAL) TermAt(index uint64) uint64 {
	for _, t := range w.LastByTerm {
		if t.First <= index && index <= t.Last {
			return t.Term
		}
	}
	return 0
}

// Holds reports whether the effective log has an entry at an index: a received snapshot does not stand for it, and it
// may be lost with damaged bytes.
func (w *WAL) Holds(index uint64) bool {
	return w.TermAt(index) != 0 && !slices.ContainsFunc(w.Summary.Jumps, func(j dumplog.Jump) bool {
		return j.From <= index && index <= j.To
	}) && !slices.ContainsFunc(w.Summary.Damage, func(d *dumplog.DamageError) bool {
		return d.LostFrom <= index && index <= d.LostTo
	})
}

// ConfEntry is one membership change in the log.
type ConfEntry struct {
	Pos         dumplog.Pos
	Term, Index uint64
	Change      dumplog.ConfChange
	// Refused is true if every server refuses the change at its index, so that it has no effect.
	Refused bool
}

// FirstRequest is the first entry of a log that a server proposed. It follows the conf changes of the bootstrap and the
// empty entries of leaders. These have no request ID and are the same in every cluster created with the same flags.
type FirstRequest struct {
	Index uint64
	ID    dumplog.RequestID
}

// TermEnd is the first and last entry of one term in the effective log.
type TermEnd struct{ Term, First, Last uint64 }

// DB is an open database and the result of reading it.
type DB struct {
	Handle  *dumpdb.DB
	File    string
	Pages   *dumpdb.PageReport
	Buckets []dumpdb.Bucket
	Meta    dumpdb.MetaBucket
	KV      *dumpdb.KVStats
	Auth    dumpdb.Auth
	Leases  []dumpdb.Lease
	Alarms  []dumpdb.Alarm
	Members []dumpdb.Member
	Removed []dumpdb.ID
	Cluster dumpdb.Cluster
	Trailer dumpdb.Trailer
	// Size is the file size in bytes, set for backups and for files that do not open.
	Size int64
	// Foreign is true for a file that does not open and contains no database page: zeros, noise or another kind of
	// file.
	Foreign bool
	HashKV  *dumpdb.HashKV
	// Hashes are content hashes by bucket, comparable between members; "" means not comparable.
	Hashes map[string]string
	// RecordsHash is equal for databases with identical records of bucket key. It is "" if it was not computed or part
	// of the bucket cannot be read.
	RecordsHash string
	// Content gives the content hash of bucket key at lower revisions; nil if RecordsHash is "".
	Content *dumpdb.Content
	// Damage is all damage from the page walk and the bucket readers.
	Damage []*dumpdb.DamageError
	// KVDamaged is true if part of bucket key could not be read. Missing keys then prove nothing.
	KVDamaged bool
	// known indexes the places in Damage, filled on first use.
	known map[damagePlace]bool
}

// Present reports whether there is a log that could be opened and scanned, even if it has no entry.
func (w *WAL) Present() bool { return w.Log != nil }

// HasWAL reports whether the source has a log that could be opened and scanned, even if it has no entry.
func (m *Member) HasWAL() bool { return m.WAL.Present() }

// HasSnap reports whether the source has a snap folder that could be listed or a .snap file that could be read.
func (m *Member) HasSnap() bool { return m.snapRead }

// Label returns the source's name.
func (m *Member) Label() string { return m.Source.Name }

// HasLog reports whether the source has a log with at least one entry.
func (m *Member) HasLog() bool {
	return m.HasWAL() && m.WAL.Summary.LastIndex > 0
}

// LogFromStart reports whether the log reaches back to the first entry of a cluster that began empty. The log of a
// restored cluster has entry 1 too, but what the backup held is in no entry.
func (m *Member) LogFromStart() bool {
	return m.HasLog() && m.WAL.Summary.FirstIndex <= 1 && m.WAL.Summary.Start != dumplog.StartRestore
}

// MixedLog reports whether segments of the log belong to different members or clusters. The identity that the log shows
// may then be that of another member.
func (m *Member) MixedLog() bool {
	return slices.ContainsFunc(m.WAL.Summary.Damage,
		func(d *dumplog.DamageError) bool { return d.Kind == dumplog.DamageMixed })
}

// HasDB reports whether the source has a db that opens.
func (m *Member) HasDB() bool { return m.DB != nil && m.DB.Handle != nil }

// RootUnreadable reports whether the database opens, but damage hides all its buckets. Its content is then unknown, not
// empty.
func (m *Member) RootUnreadable() bool {
	return m.HasDB() && len(m.DB.Buckets) == 0 && len(m.DB.Damage) > 0
}

// RowsHidden reports whether one of these buckets may have rows that could not be read: the bucket is not there, or
// damage is in it or in what leads to it. That a row is not among those read then shows nothing.
func (m *Member) RowsHidden(buckets ...string) bool {
	missing := m.DB.Handle.MissingBuckets()
	return slices.ContainsFunc(buckets, func(b string) bool { return slices.Contains(missing, b) }) ||
		slices.ContainsFunc(m.DB.Damage, func(d *dumpdb.DamageError) bool {
			return d.Bucket == "" || slices.Contains(buckets, d.Bucket)
		})
}

// ConsistentIndex returns meta/consistent_index, 0 if absent. For an impossible index it returns the override (see
// OverrideConsistentIndex).
func (m *Member) ConsistentIndex() uint64 {
	if m.indexOverride != 0 {
		return m.indexOverride
	}
	return m.StoredIndex()
}

// LastIndex returns the last index of the effective log or the newest snapshot index, whichever is higher.
func (m *Member) LastIndex() uint64 {
	last := m.newestSnapshotIndex()
	if m.HasWAL() {
		last = max(last, m.WAL.Summary.LastIndex)
	}
	return last
}

// newestSnapshotIndex counts only snapshots with a record in the WAL: etcd skips a .snap file without one.
func (m *Member) newestSnapshotIndex() uint64 {
	var idx uint64
	if !m.HasWAL() {
		return 0
	}
	for _, s := range m.WAL.Summary.Snapshots {
		idx = max(idx, s.Index)
	}
	return idx
}

// CurrentRevision returns the db's current revision, 0 without a db.
func (m *Member) CurrentRevision() int64 {
	if m.DB == nil || m.DB.KV == nil {
		return 0
	}
	return m.DB.KV.CurrentRev
}

// CompactRevision returns max(scheduled, finished), -1 if the db was never compacted.
func (m *Member) CompactRevision() int64 {
	if m.DB == nil || m.DB.KV == nil {
		return -1
	}
	return m.DB.KV.CompactRev
}

// HighestTerm returns the highest term in the member's log, of entries, snapshot records and HardState; 0 without a
// log.
func (m *Member) HighestTerm() uint64 {
	if !m.HasWAL() {
		return 0
	}
	s := &m.WAL.Summary
	top := s.LastTerm
	for i := range s.Snapshots {
		top = max(top, s.Snapshots[i].Term)
	}
	if s.HardState != nil {
		top = max(top, s.HardState.Term)
	}
	return top
}

// IndexFrozen reports whether meta/term is above every term of the log while there are committed entries above the
// consistent index. A server of 3.5.0 to 3.5.2 then stops storing the index (server/etcdserver/cindex), so the index
// does not show what was applied.
func (m *Member) IndexFrozen() bool {
	if m.DB == nil || m.DB.Meta.Term == nil || !m.HasLog() {
		return false
	}
	top, s := m.HighestTerm(), &m.WAL.Summary
	committed := m.newestSnapshotIndex()
	if s.HardState != nil {
		committed = max(committed, min(s.HardState.Commit, s.LastIndex))
	}
	return top > 0 && *m.DB.Meta.Term > top && m.ConsistentIndex() < committed
}
