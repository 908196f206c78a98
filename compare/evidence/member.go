package evidence

import (
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
	// Missing are the parts that this kind of source should have and that are not there.
	Missing []string
	// Collected is true for a copy that the command collect made of a running member: the member went on after it.
	Collected bool
	// InUse says which process held a lock on which file when reading began, "" for none that the system shows.
	InUse  string
	spec   Spec
	layout layout
}

// Member is the facts of one source. Parts that are absent are empty (see HasWAL, HasSnap and HasDB), DB is nil; damage
// is kept beside what could be read.
type Member struct {
	Source *Source
	// MemberID and ClusterID come from the WAL metadata, the only place etcd takes them from; zero when there is no
	// WAL.
	MemberID, ClusterID dumplog.ID
	// NodeName is the member's own name in the members bucket or the v2 store; "" when unknown.
	NodeName   string
	WAL        WAL
	Snap       dumplog.SnapDir
	DB         *DB
	Membership Membership
	Version    Version
	// Commit is the highest index this source proves committed: max of HardState.commit, consistent index and
	// snapshots.
	Commit uint64
	// AppliedMin is the last entry certainly applied to the db (consistent index); AppliedMax the last that may be.
	// They differ up to 3.4 only, where entries without a key write do not move the consistent index. A backup carries
	// no log that bounds what it may hold; the commit index of the other sources does.
	AppliedMin, AppliedMax uint64
	// Problems are failures to read a part: facts about the source, told beside the rest.
	Problems []Problem
	// Redact makes the digests that stand for values; all sources of a run share it.
	Redact *redact.Key
	// snapRead is true when there was a snap folder that could be listed, or a .snap file that could be read.
	snapRead bool
	// settled is true when Problems tell of files that could not be hashed.
	settled bool
	// othersCommit is the highest commit index of all sources.
	othersCommit uint64
	// indexOverride replaces the stored consistent index; 0 when that one stands.
	indexOverride uint64
}

// Problem is a part of a source that could not be read, or a part that is not there.
type Problem struct {
	Part string
	File string
	Err  error
}

// WAL is an opened log and what one pass over it shows. Its zero value is the WAL of a source that brought none: every
// part of it can be read, and nothing is in it.
type WAL struct {
	// Log is nil without a log; its iterators then yield nothing.
	Log     *dumplog.Log
	Summary dumplog.Summary
	// Conf are the membership changes of the effective log, in order.
	Conf []ConfEntry
	// LastByTerm is the last index of each term of the effective log, in term order.
	LastByTerm []TermEnd
	// First is the first request of a server in a log that reaches back to its founding; zero when there is none.
	First FirstRequest
	// Sums tell where two logs of one run hold the same entries; nil where appends replaced entries, and for a single
	// source.
	Sums *LogSums
}

// TermAt is the term of the effective log at an index, where the log jumps inside one term too; 0 when the log does not
// reach the index.
func (w *WAL) TermAt(index uint64) uint64 {
	for _, t := range w.LastByTerm {
		if t.First <= index && index <= t.Last {
			return t.Term
		}
	}
	return 0
}

// ConfEntry is one membership change in the log.
type ConfEntry struct {
	Pos         dumplog.Pos
	Term, Index uint64
	Change      dumplog.ConfChange
	// Refused is true when every server refuses the change at its place: it uses up its index and changes nothing.
	Refused bool
}

// FirstRequest is the first entry of a log that a server proposed: behind the conf changes of the founding and the
// empty entries of leaders, which carry no request ID and are the same in every cluster that was founded with the same
// flags.
type FirstRequest struct {
	Index uint64
	ID    dumplog.RequestID
}

// TermEnd is the first and last entry of one term in the effective log.
type TermEnd struct{ Term, First, Last uint64 }

// DB is an opened database and what reading it shows.
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
	// Size is the size of the file in bytes, set for backups and for files that do not open.
	Size int64
	// Foreign is true for a file that does not open and holds not one page of a database: zeros, noise or another kind
	// of file.
	Foreign bool
	HashKV  *dumpdb.HashKV
	// Hashes are content hashes by bucket, comparable between members; "" means not comparable.
	Hashes map[string]string
	// RecordsHash is equal on databases that hold the same records of bucket key down to the last byte; "" when it was
	// not taken or a part of the bucket cannot be read.
	RecordsHash string
	// Content gives the content hash of bucket key at lower revisions; nil where RecordsHash is "".
	Content *dumpdb.Content
	// Damage is everything that the page walk and the bucket readers met.
	Damage []*dumpdb.DamageError
	// KVDamaged is true when part of bucket key could not be read: comparisons of keys then prove nothing by absence.
	KVDamaged bool
	// known are the places in Damage, once one was looked up.
	known map[damagePlace]bool
}

// Present tells whether there is a log that opened and could be scanned, even if no entry is in it.
func (w *WAL) Present() bool { return w.Log != nil }

// HasWAL tells whether the source brought a log that opened and could be scanned, even if no entry is in it.
func (m *Member) HasWAL() bool { return m.WAL.Present() }

// HasSnap tells whether the source brought a snap folder that could be listed or a .snap file that could be read.
func (m *Member) HasSnap() bool { return m.snapRead }

// Label returns the source's name.
func (m *Member) Label() string { return m.Source.Name }

// HasLog tells whether the source brought a log with at least one entry.
func (m *Member) HasLog() bool {
	return m.HasWAL() && m.WAL.Summary.LastIndex > 0
}

// HasDB tells whether the source brought a db that opens.
func (m *Member) HasDB() bool { return m.DB != nil && m.DB.Handle != nil }

// RootUnreadable tells a database that opens and in which no bucket can be reached, because of damage: what it holds is
// unknown, not none.
func (m *Member) RootUnreadable() bool {
	return m.HasDB() && len(m.DB.Buckets) == 0 && len(m.DB.Damage) > 0
}

// ConsistentIndex returns meta/consistent_index, 0 when absent; where the stored one is impossible, the one it was
// taken for instead (see OverrideConsistentIndex).
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

// newestSnapshotIndex counts only snapshots the WAL knows: a .snap without a record is an orphan that etcd skips.
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

// CompactRevision returns max(scheduled, finished), -1 when never compacted.
func (m *Member) CompactRevision() int64 {
	if m.DB == nil || m.DB.KV == nil {
		return -1
	}
	return m.DB.KV.CompactRev
}

// HighestTerm returns the highest term in the member's log: of entries, snapshot records and HardState; 0 without a
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

// IndexFrozen tells whether meta/term is above every term of the log while committed entries stand above the consistent
// index: a server of 3.5 then does not store the index any more (server/etcdserver/cindex, 3.5.0 to 3.5.2), and what it
// has applied is not told by the index.
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
