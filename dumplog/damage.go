package dumplog

import "fmt"

// DamageKind names what is wrong at one place of a log or snapshot file.
type DamageKind string

// The kinds of damage. Each needs a different remedy; see the package comment.
const (
	// DamageTornTail: the last record of the last segment is incomplete (crash while writing). etcd cuts it off.
	DamageTornTail DamageKind = "torn-tail"
	// DamageTail: the end of the last segment is not a record that continues the log. More than one bit is wrong, and
	// no valid record follows. Either an unfinished write replaced older bytes, or the end was overwritten. etcd
	// refuses such a log.
	DamageTail DamageKind = "damaged-tail"
	// DamageZeroHole: zeros in the middle, with valid frames after them. etcd treats the zeros as the end and drops the
	// rest.
	DamageZeroHole DamageKind = "zero-hole"
	// DamageCRC: the stored CRC does not match the data.
	DamageCRC DamageKind = "crc-mismatch"
	// DamageFrame: the length word is impossible.
	DamageFrame DamageKind = "bad-frame-length"
	// DamageType: the type field contradicts the payload, or is not a type that etcd writes.
	DamageType DamageKind = "bad-record-type"
	// DamagePayload: frame and CRC are valid, but the payload does not decode.
	DamagePayload DamageKind = "bad-payload"
	// DamageForeign: bytes that are not a frame.
	DamageForeign DamageKind = "foreign-bytes"
	// DamageMissingSegment: the sequence of segment files has a gap.
	DamageMissingSegment DamageKind = "missing-segment"
	// DamageUnreadable: a file cannot be read, or is empty where content is required.
	DamageUnreadable DamageKind = "unreadable"
	// DamageTruncated: a segment that is not the last ends inside a record.
	DamageTruncated DamageKind = "truncated"
	// DamageMixed: the segment belongs to another member or cluster than the first one.
	DamageMixed DamageKind = "mixed-metadata"
	// DamageChain: a segment's CRC record does not continue the previous segment's chain.
	DamageChain DamageKind = "chain-break"
	// DamageIndexGap: entries are missing between two neighbors, and no snapshot record explains it.
	DamageIndexGap DamageKind = "index-gap"
	// DamageLostTail: the log ends without damage, but below the commit index in its HardState.
	DamageLostTail DamageKind = "lost-tail"
	// DamageRecord: the frame is valid, but the record in it does not decode.
	DamageRecord DamageKind = "bad-record"
	// DamagePadding: the padding after a record is not zero. Nothing is lost.
	DamagePadding DamageKind = "bad-padding"
	// DamageTermOrder: a term is lower than that of an earlier entry or HardState.
	DamageTermOrder DamageKind = "term-order"
	// DamageName: the numbers in the name of a segment do not match its content. The file was renamed.
	DamageName DamageKind = "wrong-name"
	// DamageSnapshotRecord: a snapshot record with a valid CRC that the entries around it contradict.
	DamageSnapshotRecord DamageKind = "wrong-snapshot-record"
	// DamageRequest: the entry decodes, its data is not a request of etcd. This package does not decode requests unless
	// it is asked to; compare/replay reports this kind.
	DamageRequest DamageKind = "bad-request"
	// DamageMarks: the log changes its term, replaces entries or records snapshots more often than can be listed. No
	// entry is lost, but what was replaced is not known.
	DamageMarks DamageKind = "too-many-marks"
	// DamageMissingSnapDB: the newest raft snapshot is ahead of the database, and its .snap.db file is gone. This
	// package does not read databases; compare/evidence reports this kind.
	DamageMissingSnapDB DamageKind = "missing-snap-db"
)

// DamageError describes one damaged place in a log. It is a fact about the data, not a failure of the program.
// Iterators yield it and continue with the next record.
type DamageError struct {
	Pos
	Kind DamageKind
	// Len is the number of unreadable bytes, 0 if unknown or none.
	Len int64
	// LostFrom and LostTo are the raft indexes that are or may be lost, both 0 if none are known. LostTo 0 with
	// LostFrom set means LostFrom and every later entry.
	LostFrom, LostTo uint64
	// After is the index of the last entry before the damaged place, 0 before the first one. A server that takes the
	// place for the end of the log keeps the entries up to there.
	After uint64
	// Server says in words what etcd does when it starts with this file, OnStart as a value.
	Server  string
	OnStart StartEffect
	// Message is what the server logs when it refuses to start, "" where the bytes decide.
	Message string
	Err     error
	// Short is true if the frame extends past the end of the file. etcd treats that as a torn write, whatever the bytes
	// are.
	Short bool
	// harmless is set if the damaged record is known not to be an entry.
	harmless bool
}

// Error returns place, kind and cause on one line.
func (e *DamageError) Error() string {
	s := fmt.Sprintf("%s: %s", e.Pos, e.Kind)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the underlying error, if any.
func (e *DamageError) Unwrap() error { return e.Err }

// losesEntries reports whether the damage may have lost entries. An intact record or a wrong order loses none.
func (e *DamageError) losesEntries() bool {
	switch e.Kind {
	case DamagePadding, DamageTermOrder, DamageIndexGap, DamageChain, DamageName, DamageSnapshotRecord,
		DamageMarks:
		return false
	case DamageMissingSegment, DamageUnreadable:
		return true
	}
	return e.Len > 0 && !e.harmless
}
