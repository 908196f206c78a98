package dumplog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/etcd-medic/etcd-medic/internal/wire"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// nextCRC continues the rolling CRC of the log over the data of one record.
func nextCRC(chain uint32, data []byte) uint32 { return crc32.Update(chain, castagnoli, data) }

const (
	wordSize = 8
	// maxRecord bounds the memory of one frame. etcd's largest record is one raft entry, which --max-request-bytes
	// limits to far less.
	maxRecord = 512 << 20
	// headRoom is the most bytes that a record can have before its data.
	headRoom = 32
)

// frame is a decoded length word.
type frame struct {
	rec int64 // size of the record
	pad int64 // padding after it
}

func (f frame) len() int64 { return wordSize + f.rec + f.pad }

// parseWord reads a length word. etcd's reader ignores bits 59 to 62 and whether the padding fits. Every writer sets
// them as accepted here (wal/encoder.go, encodeFrameSize), so other values are damage.
func parseWord(w uint64) (frame, error) {
	f := frame{rec: int64(w & (1<<56 - 1))}
	f.pad = (8 - f.rec%8) % 8
	top := byte(w >> 56)
	if want := byte(f.pad); (f.pad == 0 && top != 0) || (f.pad != 0 && top != 0x80|want) {
		return f, fmt.Errorf("length word %#016x: padding bits %#x do not fit a record of %d bytes", w, top, f.rec)
	}
	if f.rec < 2 || f.rec > maxRecord {
		return f, fmt.Errorf("length word %#016x: a record cannot have %d bytes", w, f.rec)
	}
	return f, nil
}

var (
	errRecordShape = errors.New("the frame does not contain a walpb.Record")
	errNoType      = errors.New("record has no type")
)

// parseRecord decodes walpb.Record {1 type, 2 crc, 3 data}. Every etcd writes the fields in this order.
func parseRecord(b []byte) (t RecordType, crc uint32, data []byte, err error) {
	s := scanner{b: b}
	var f field
	seen := 0
	for s.next(&f) {
		switch {
		case f.Num == 1 && f.Type == wire.Varint && seen == 0:
			t = RecordType(f.V)
		case f.Num == 2 && f.Type == wire.Varint && seen == 1 && f.V <= 1<<32-1:
			crc = uint32(f.V)
		case f.Num == 3 && f.Type == wire.Bytes && seen == 2:
			data = f.B
		default:
			return t, crc, data, errRecordShape
		}
		seen++
	}
	if s.bad {
		return t, crc, data, errRecordShape
	}
	if seen == 0 {
		return t, crc, data, errNoType
	}
	return t, crc, data, nil
}

// recordSize returns the size of a record according to its own first bytes, independent of the length word. It returns
// 0 if the bytes are not the head of a record.
func recordSize(b []byte) int64 {
	t, n := wire.Uvarint(tail(b, 1))
	if len(b) == 0 || b[0] != 0x08 || n == 0 || !knownType(RecordType(t)) {
		return 0
	}
	i := 1 + n
	if i >= len(b) || b[i] != 0x10 {
		return 0
	}
	v, n := wire.Uvarint(b[i+1:])
	if n == 0 || v > 1<<32-1 {
		return 0
	}
	i += 1 + n
	if i >= len(b) || b[i] != 0x1a {
		return int64(i)
	}
	l, n := wire.Uvarint(b[i+1:])
	if n == 0 || l > maxRecord {
		return 0
	}
	return int64(i+1+n) + int64(l)
}

func tail(b []byte, n int) []byte {
	if len(b) < n {
		return nil
	}
	return b[n:]
}

func knownType(t RecordType) bool { return t >= RecordMetadata && t <= RecordSnapshot }

// frameSizeOf returns the length of the frame of a record of n bytes.
func frameSizeOf(n int64) int64 { return wordSize + (n+7)&^7 }

func word(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }
