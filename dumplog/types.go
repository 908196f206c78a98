package dumplog

import (
	"fmt"
	"strconv"
)

// ID is a 64-bit identifier of a member, cluster, lease or request. Its text form, in JSON too, is lower-case hex
// without leading zeros, as in etcd's output (server/etcdserver/api/membership/member.go, types.ID).
type ID uint64

// String returns the ID in lower-case hex without leading zeros.
func (id ID) String() string { return strconv.FormatUint(uint64(id), 16) }

// MarshalText writes the hex form, so that JSON has a string: IDs exceed 2^53.
func (id ID) MarshalText() ([]byte, error) { return strconv.AppendUint(nil, uint64(id), 16), nil }

// UnmarshalText reads the hex form.
func (id *ID) UnmarshalText(b []byte) error {
	v, err := ParseID(string(b))
	*id = v
	return err
}

// ParseID reads a hex ID as etcd prints it.
func ParseID(s string) (ID, error) {
	v, err := strconv.ParseUint(s, 16, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a hex ID: %w", s, err)
	}
	return ID(v), nil
}

// Pos is a position in a log: the file name (without folder) and the byte offset in the file.
type Pos struct {
	Segment string `json:"segment"`
	Offset  int64  `json:"offset"`
}

// String returns segment@0xoffset.
func (p Pos) String() string { return fmt.Sprintf("%s@0x%x", p.Segment, p.Offset) }

// RecordType is the type field of a WAL record (server/storage/wal/wal.go).
type RecordType int64

// The record types of etcd 3.0 to 3.8.
const (
	RecordMetadata RecordType = 1
	RecordEntry    RecordType = 2
	RecordState    RecordType = 3
	RecordCRC      RecordType = 4
	RecordSnapshot RecordType = 5
)

// String returns the name: metadata, entry, state, crc, snapshot, or the number.
func (t RecordType) String() string {
	switch t {
	case RecordMetadata:
		return "metadata"
	case RecordEntry:
		return "entry"
	case RecordState:
		return "state"
	case RecordCRC:
		return "crc"
	case RecordSnapshot:
		return "snapshot"
	}
	return fmt.Sprintf("type(%d)", int64(t))
}

// EntryType is the type of a raft entry (raftpb.EntryType).
type EntryType int32

// The entry types of raft. etcd never proposes EntryConfChangeV2.
const (
	EntryNormal       EntryType = 0
	EntryConfChange   EntryType = 1
	EntryConfChangeV2 EntryType = 2
)

// HardState is raft's durable vote and commit (raftpb.HardState).
type HardState struct {
	Term   uint64 `json:"term"`
	Vote   ID     `json:"vote"`
	Commit uint64 `json:"commit"`
}

// ConfState is the raft configuration at an index (raftpb.ConfState).
type ConfState struct {
	Voters         []ID `json:"voters"`
	Learners       []ID `json:"learners,omitempty"`
	VotersOutgoing []ID `json:"votersOutgoing,omitempty"`
	LearnersNext   []ID `json:"learnersNext,omitempty"`
	AutoLeave      bool `json:"autoLeave,omitempty"`
}

// CRCState says whether the rolling CRC proves the data of one record.
type CRCState uint8

// The zero value means unchecked, because the CRC before the record is unknown. CRCMatch means that the log proves the
// data. If only the CRC field is damaged, the state is CRCMatch although StoredCRC and ComputedCRC differ.
const (
	CRCUnchecked CRCState = iota
	CRCMatch
	CRCMismatch
)

// Record is one physical WAL record (walpb.Record in its frame). Data is valid only until the iterator advances.
type Record struct {
	Pos
	// Len is the length of the whole frame in bytes: length word, record and padding.
	Len int64
	// Pad is the number of padding bytes, 0 to 7.
	Pad  uint8
	Type RecordType
	// OnDiskType is the type field in the file. It differs from Type only at a DamageType, if the data can belong to
	// only one other type. The CRC proves the data.
	OnDiskType RecordType
	// StoredCRC is the CRC-32C in the record; ComputedCRC is the chain's CRC up to and including this record's data.
	StoredCRC, ComputedCRC uint32
	CRC                    CRCState
	Data                   []byte
}

// SnapshotRecord is the payload of a snapshot record (walpb.Snapshot) and its position.
type SnapshotRecord struct {
	Pos
	Term  uint64 `json:"term"`
	Index uint64 `json:"index"`
	// ConfState is written by etcd 3.5 and later, nil before.
	ConfState *ConfState `json:"confState,omitempty"`
	// Commit is the highest commit index of the HardStates and of the conf changes of forced starts before the record:
	// what the member knew to be committed when it took or received the snapshot. It is 0 before the first HardState.
	Commit uint64 `json:"-"`
}

// Entry is one raft entry of the log. Data is valid only until the iterator advances.
type Entry struct {
	Pos
	// Len is the length of the frame in bytes.
	Len         int64
	Term, Index uint64
	Type        EntryType
	Data        []byte
	// Overwritten is true if a later record replaced this index. The entry is then not part of the effective log.
	Overwritten bool
	// CRC is CRCUnchecked for an entry after a gap if the CRC there is unknown, else CRCMatch.
	CRC CRCState
}

// Metadata is the identity in every segment of one WAL (etcdserverpb.Metadata).
type Metadata struct {
	MemberID  ID `json:"memberID"`
	ClusterID ID `json:"clusterID"`
}
