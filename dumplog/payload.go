package dumplog

import (
	"errors"
	"fmt"

	"github.com/etcd-medic/etcd-medic/internal/wire"
)

// DecodeMetadata reads etcdserverpb.Metadata {1 NodeID, 2 ClusterID}, the payload of a metadata record (etcd 3.0 to
// 3.8, server/etcdserver/bootstrap.go). It returns an error if the bytes are something else.
func DecodeMetadata(b []byte) (Metadata, error) {
	var m Metadata
	err := eachField(b, func(f *field) bool {
		switch {
		case f.Num == 1 && f.Type == wire.Varint:
			m.MemberID = ID(f.V)
		case f.Num == 2 && f.Type == wire.Varint:
			m.ClusterID = ID(f.V)
		default:
			return false
		}
		return true
	})
	if err == nil && (m.MemberID == 0 || m.ClusterID == 0) {
		err = errors.New("member or cluster ID is 0")
	}
	return m, wrap("metadata", err)
}

// DecodeHardState reads raftpb.HardState {1 term, 2 vote, 3 commit}, the payload of a state record. It returns an error
// if the bytes are something else, or if the term is 0, which etcd never writes.
func DecodeHardState(b []byte) (HardState, error) {
	var h HardState
	err := eachField(b, func(f *field) bool {
		switch {
		case f.Type != wire.Varint:
			return false
		case f.Num == 1:
			h.Term = f.V
		case f.Num == 2:
			h.Vote = ID(f.V)
		case f.Num == 3:
			h.Commit = f.V
		default:
			return false
		}
		return true
	})
	if err == nil && h.Term == 0 {
		err = errors.New("term is 0")
	}
	return h, wrap("HardState", err)
}

// DecodeSnapshotRecord reads walpb.Snapshot {1 index, 2 term, 3 conf_state}, the payload of a snapshot record.
// conf_state exists since etcd 3.5. It returns an error if the bytes are something else.
func DecodeSnapshotRecord(b []byte) (SnapshotRecord, error) {
	var s SnapshotRecord
	var bad error
	err := eachField(b, func(f *field) bool {
		switch {
		case f.Num == 1 && f.Type == wire.Varint:
			s.Index = f.V
		case f.Num == 2 && f.Type == wire.Varint:
			s.Term = f.V
		case f.Num == 3 && f.Type == wire.Bytes:
			var cs ConfState
			cs, bad = decodeConfState(f.B)
			s.ConfState = &cs
		default:
			return false
		}
		return true
	})
	err = errors.Join(err, bad)
	if err == nil && (s.Index == 0) != (s.Term == 0) {
		err = fmt.Errorf("index %d and term %d do not fit together", s.Index, s.Term)
	}
	return s, wrap("snapshot record", err)
}

// decodeConfState reads raftpb.ConfState {1 voters, 2 learners, 3 voters_outgoing, 4 learners_next, 5 auto_leave}.
func decodeConfState(b []byte) (ConfState, error) {
	var cs ConfState
	lists := [...]*[]ID{1: &cs.Voters, 2: &cs.Learners, 3: &cs.VotersOutgoing, 4: &cs.LearnersNext}
	err := eachField(b, func(f *field) bool {
		switch {
		case f.Num == 5 && f.Type == wire.Varint:
			cs.AutoLeave = f.V != 0
		case f.Num < 1 || f.Num > 4:
			return false
		case len(*lists[f.Num]) > maxMembers:
			return false
		case f.Type == wire.Varint:
			*lists[f.Num] = append(*lists[f.Num], ID(f.V))
		case f.Type == wire.Bytes:
			return unpack(f.B, lists[f.Num])
		default:
			return false
		}
		return true
	})
	return cs, wrap("ConfState", err)
}

// unpack reads a packed list of varints. etcd writes its lists unpacked, but a protobuf reader must accept both.
func unpack(b []byte, to *[]ID) bool {
	for len(b) > 0 {
		v, n := wire.Uvarint(b)
		if n == 0 || len(*to) > maxMembers {
			return false
		}
		*to = append(*to, ID(v))
		b = b[n:]
	}
	return true
}

// eachField calls use for every field of a message that may contain only known fields.
func eachField(b []byte, use func(*field) bool) error {
	s := scanner{b: b}
	var f field
	for s.next(&f) {
		if !use(&f) {
			return &fieldError{f.Num, f.Type}
		}
	}
	if s.bad {
		return errWire
	}
	return nil
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return &payloadError{what, err}
}

// fieldError and payloadError are texts only where someone reads them: a log may have millions of damaged records, each
// of which is tried as every type.
type fieldError struct {
	num  int32
	kind int8
}

// Error names the field.
func (e *fieldError) Error() string {
	return fmt.Sprintf("field %d of wire type %d does not belong here", e.num, e.kind)
}

type payloadError struct {
	what string
	err  error
}

// Error says which payload does not decode, and why.
func (e *payloadError) Error() string { return e.what + ": " + e.err.Error() }

// Unwrap returns why it does not decode.
func (e *payloadError) Unwrap() error { return e.err }

// entryHead is what the log needs of a raft entry.
type entryHead struct {
	typ         EntryType
	term, index uint64
	data        []byte
}

// decodeEntry reads raftpb.Entry {1 Type, 2 Term, 3 Index, 4 Data}. etcd 3.7 and later leave out a Type of 0. The CRC
// does not cover the record's type, so decodeEntry is strict: no other payload passes its checks.
func decodeEntry(b []byte) (entryHead, error) {
	e, ok := decodeEntryFast(b)
	if !ok {
		e = entryHead{}
		err := eachField(b, func(f *field) bool {
			switch {
			case f.Num == 1 && f.Type == wire.Varint:
				e.typ = EntryType(f.V)
			case f.Num == 2 && f.Type == wire.Varint:
				e.term = f.V
			case f.Num == 3 && f.Type == wire.Varint:
				e.index = f.V
			case f.Num == 4 && f.Type == wire.Bytes:
				e.data = f.B
			default:
				return false
			}
			return true
		})
		if err != nil {
			return e, wrap("entry", err)
		}
	}
	switch {
	case e.term == 0 || e.index == 0:
		return e, fmt.Errorf("entry: term %d, index %d", e.term, e.index)
	case e.typ < EntryNormal || e.typ > EntryConfChangeV2:
		return e, fmt.Errorf("entry: raft has no entry type %d", e.typ)
	case e.typ == EntryConfChange && len(e.data) == 0, e.typ == EntryConfChangeV2 && len(e.data) == 0 && e.term > 1<<32:
		return e, errors.New("entry: conf change without content")
	}
	return e, nil
}

// decodeEntryFast reads the layout that all writers use and returns false for any other.
func decodeEntryFast(b []byte) (e entryHead, ok bool) {
	if len(b) > 2 && b[0] == 0x08 && b[1] < 0x80 {
		e.typ = EntryType(b[1])
		b = b[2:]
	}
	if len(b) < 4 || b[0] != 0x10 {
		return e, false
	}
	v, n := wire.Uvarint(b[1:])
	if b = b[1+n:]; n == 0 || len(b) < 2 || b[0] != 0x18 {
		return e, false
	}
	e.term = v
	v, n = wire.Uvarint(b[1:])
	if n == 0 {
		return e, false
	}
	e.index = v
	if b = b[1+n:]; len(b) == 0 {
		return e, true
	}
	if b[0] != 0x22 {
		return e, false
	}
	l, n := wire.Uvarint(b[1:])
	if n == 0 || uint64(len(b)-1-n) != l {
		return e, false
	}
	e.data = b[1+n:]
	return e, true
}

// checkPayload returns an error if the data of a record cannot belong to its type.
func checkPayload(t RecordType, data []byte) (e entryHead, err error) {
	switch t {
	case RecordEntry:
		return decodeEntry(data)
	case RecordMetadata:
		_, err = DecodeMetadata(data)
	case RecordState:
		_, err = DecodeHardState(data)
	case RecordSnapshot:
		_, err = DecodeSnapshotRecord(data)
	case RecordCRC:
		if len(data) != 0 {
			err = errors.New("crc record: has data")
		}
	default:
		err = fmt.Errorf("etcd has no record type %d", t)
	}
	return e, err
}
