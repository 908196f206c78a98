package dumplog

import "fmt"

// DamageKind names what is wrong at a place of a log or snapshot file.
type DamageKind string

// The kinds of damage. Each is a different fact with a different remedy; see the package comment.
const (
	// DamageTornTail: the last record of the last segment is incomplete (crash while writing); etcd cuts it off.
	DamageTornTail DamageKind = "torn-tail"
	// DamageTail: the end of the last segment holds other bytes than a record that continues the log, more than one bit
	// is wrong, and nothing behind it holds: an unfinished write over older bytes, or an end that was overwritten. etcd
	// refuses such a log.
	DamageTail DamageKind = "damaged-tail"
	// DamageZeroHole: zeros in the middle with valid frames behind; etcd takes it for the end and drops the rest.
	DamageZeroHole DamageKind = "zero-hole"
	// DamageCRC: the stored CRC does not fit the data.
	DamageCRC DamageKind = "crc-mismatch"
	// DamageFrame: the length word is impossible.
	DamageFrame DamageKind = "bad-frame-length"
	// DamageType: the type field contradicts the payload, or is none that etcd writes.
	DamageType DamageKind = "bad-record-type"
	// DamagePayload: the frame and CRC hold but the payload does not decode.
	DamagePayload DamageKind = "bad-payload"
	// DamageForeign: bytes that are no frame.
	DamageForeign DamageKind = "foreign-bytes"
	// DamageMissingSegment: the sequence of segment files has a hole.
	DamageMissingSegment DamageKind = "missing-segment"
	// DamageUnreadable: a file cannot be read, or is empty where content must be.
	DamageUnreadable DamageKind = "unreadable"
	// DamageTruncated: a segment that is not the last ends inside a record.
	DamageTruncated DamageKind = "truncated"
	// DamageMixed: the segment belongs to another member or cluster than the first one.
	DamageMixed DamageKind = "mixed-metadata"
	// DamageChain: a segment's CRC record does not continue the previous segment's chain.
	DamageChain DamageKind = "chain-break"
	// DamageIndexGap: entries are missing between two neighbours and no snapshot record explains it.
	DamageIndexGap DamageKind = "index-gap"
	// DamageLostTail: the log ends in order, before the commit index of its own HardState.
	DamageLostTail DamageKind = "lost-tail"
	// DamageRecord: the frame holds, the record in it does not decode.
	DamageRecord DamageKind = "bad-record"
	// DamagePadding: the padding behind a record is not zero; nothing is lost.
	DamagePadding DamageKind = "bad-padding"
	// DamageTermOrder: a term is lower than that of an earlier entry or HardState.
	DamageTermOrder DamageKind = "term-order"
	// DamageName: the numbers in the name of a segment do not fit its content; the file was renamed.
	DamageName DamageKind = "wrong-name"
	// DamageSnapshotRecord: a snapshot record with a sound CRC that the entries around it contradict.
	DamageSnapshotRecord DamageKind = "wrong-snapshot-record"
	// DamageMissingSnapDB: the newest raft snapshot is ahead of the database, and the .snap.db file that leads there is
	// gone. This package does not see databases; it names the kind for those who do.
	DamageMissingSnapDB DamageKind = "missing-snap-db"
)

// DamageError says where a log stops making sense and why. It is a fact about the data, not a failure of the program:
// iterators yield it beside records and go on.
type DamageError struct {
	Pos
	Kind DamageKind
	// Len is the number of bytes that could not be read, 0 when unknown or none.
	Len int64
	// LostFrom and LostTo are the raft indexes that are certainly or possibly lost, both 0 when none are known;
	// LostTo 0 with LostFrom set means "LostFrom and whatever followed".
	LostFrom, LostTo uint64
	// Server says what etcd itself does when it starts on this file; OnStart is the same as a value.
	Server  string
	OnStart StartEffect
	Err     error
	// Short is true when the frame reaches beyond the end of the file, which etcd takes for a torn write whatever the
	// bytes say.
	Short bool
	// harmless: the damaged record is known to be no entry.
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

// losesEntries tells whether entries may be lost in this damage. What was proven to be whole loses none, and neither
// does an order that is wrong.
func (e *DamageError) losesEntries() bool {
	switch e.Kind {
	case DamagePadding, DamageTermOrder, DamageIndexGap, DamageChain, DamageName, DamageSnapshotRecord:
		return false
	case DamageMissingSegment, DamageUnreadable:
		return true
	}
	return e.Len > 0 && !e.harmless
}
