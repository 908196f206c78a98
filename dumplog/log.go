package dumplog

import (
	"context"
	"iter"
)

// Log is an opened WAL folder. It never writes, renames or locks.
type Log struct {
	dir string
}

// Segment is one segment file and what reading it showed.
type Segment struct {
	Name string `json:"name"`
	// Seq and First are the two numbers of the file name: sequence and first raft index that may be in it.
	Seq   uint64 `json:"seq"`
	First uint64 `json:"first"`
	Size  int64  `json:"size"`
	// DataEnd is the offset behind the last good frame; Records the number of good frames.
	DataEnd int64 `json:"dataEnd"`
	Records int   `json:"records"`
	// FirstEntry and LastEntry are the lowest and the last entry index met, 0 when none.
	FirstEntry uint64 `json:"firstEntry"`
	LastEntry  uint64 `json:"lastEntry"`
	// End names how the segment ends: "zero" (preallocated tail), "eof" (at a frame border) or a DamageKind.
	End string `json:"end"`
}

// LeftOver is a file in the WAL folder that is no segment: 0.tmp, *.broken, foreign files.
type LeftOver struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
	// What says what it is in words.
	What string `json:"what"`
}

// Overwrite is one append that replaced the tail of the log: the record at Pos carries Index at Term, and the entries
// Index..OldLast (last of them in OldTerm) became history.
type Overwrite struct {
	Pos
	Term, Index      uint64
	OldLast, OldTerm uint64
}

// StartKind names what the first records of a WAL say about how the member came to be.
type StartKind string

// The ways a WAL starts; see the package comment for the marks.
const (
	StartUnknown   StartKind = "unknown"
	StartBootstrap StartKind = "bootstrap"
	StartJoin      StartKind = "join"
	StartRestore   StartKind = "restore"
	StartPurged    StartKind = "purged" // first segment is not segment 0
)

// Summary is what one pass over the log shows. Memory use does not grow with the number of entries.
type Summary struct {
	Metadata  *Metadata
	Segments  []Segment
	LeftOvers []LeftOver
	// Records counts the good records by type.
	Records map[RecordType]int
	// First and Last are the first and last entry of the effective log; zero when there is none.
	FirstIndex, FirstTerm, LastIndex, LastTerm uint64
	// HardState is the last one written; nil when none was.
	HardState    *HardState
	HardStatePos Pos
	Snapshots    []SnapshotRecord
	Overwrites   []Overwrite
	Damage       []*DamageError
	Start        StartKind
	// ForceNewCluster holds the position of the first entry written by --force-new-cluster, if any.
	ForceNewCluster []Pos
}

// Open lists the segments of a WAL folder. It fails only when the folder can not be listed or holds no segment.
func Open(dir string) (*Log, error) { return &Log{dir: dir}, nil }

// Close releases what Open and the iterators hold.
func (l *Log) Close() error { return nil }

// Records yields every physical record in order. Where bytes make no sense it yields a zero Record and a *DamageError,
// then goes on behind the damage. Any other error (I/O, cancelled context) ends the iteration.
func (l *Log) Records(ctx context.Context) iter.Seq2[Record, error] { return nil }

// Scan reads the whole log once and returns what it shows. Damage is in the Summary, not in the error.
func (l *Log) Scan(ctx context.Context) (*Summary, error) { return nil, nil }

// Entries yields every entry in physical order with Overwritten set; a nil Summary makes it Scan first. Damage is
// yielded as in Records.
func (l *Log) Entries(ctx context.Context, s *Summary) iter.Seq2[Entry, error] { return nil }

// Decode reads the payload of an entry. It always returns a Request, of KindUnknown when the bytes make no sense, together
// with the error that says why. It never panics and allocates no more than the payload warrants.
func (e *Entry) Decode() (*Request, error) { return nil, nil }

// DecodeMetadata, DecodeHardState and DecodeSnapshotRecord read the payloads of records.
func DecodeMetadata(b []byte) (Metadata, error) { return Metadata{}, nil }

// DecodeHardState reads raftpb.HardState.
func DecodeHardState(b []byte) (HardState, error) { return HardState{}, nil }

// DecodeSnapshotRecord reads walpb.Snapshot.
func DecodeSnapshotRecord(b []byte) (SnapshotRecord, error) { return SnapshotRecord{}, nil }
