package dumplog

import (
	"encoding/binary"
	"errors"
)

// errWire is what every broken protobuf message comes down to; the place is added by the caller.
var errWire = errors.New("bytes are no protobuf message")

// The wire types of protobuf that etcd's messages use. Groups (3, 4) never occur and count as damage.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireFixed32 = 5
)

// field is one field of a message. Its slices alias the message.
type field struct {
	num  int32
	wire int8
	// v is the value of a varint or fixed field, b that of a length-delimited one.
	v   uint64
	b   []byte
	raw []byte // tag and value
}

// scanner walks the fields of a message without knowing its type. It allocates nothing and never reads beyond b.
type scanner struct {
	b []byte
	// bad is set when the rest of b is no field; next then returns false.
	bad bool
}

// varint reads one varint from the head of b; n is 0 when b holds none. Ten bytes that overflow 64 bits are refused. The generated
// code of gogo drops what overflows; no writer makes such bytes.
func varint(b []byte) (v uint64, n int) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), 1
	}
	v, n = binary.Uvarint(b)
	if n < 0 {
		n = 0
	}
	return v, n
}

// next reads the next field into f and tells whether there was one.
func (s *scanner) next(f *field) bool {
	b := s.b
	if len(b) == 0 {
		return false
	}
	tag, n := varint(b)
	if n == 0 || tag>>3 == 0 || tag>>3 > 1<<29-1 {
		s.bad = true
		return false
	}
	f.num, f.wire, f.v, f.b = int32(tag>>3), int8(tag&7), 0, nil
	used := n + f.value(b[n:])
	if used == n {
		s.bad = true
		return false
	}
	f.raw, s.b = b[:used:used], b[used:]
	return true
}

// value reads the value behind a tag and returns its length, 0 when there is none.
func (f *field) value(b []byte) int {
	var n int
	switch f.wire {
	case wireVarint:
		f.v, n = varint(b)
	case wireBytes:
		l, k := varint(b)
		if k == 0 || l > uint64(len(b)-k) {
			return 0
		}
		n = k + int(l)
		f.b = b[k:n:n]
	case wireFixed64:
		if len(b) < 8 {
			return 0
		}
		f.v, n = binary.LittleEndian.Uint64(b), 8
	case wireFixed32:
		if len(b) < 4 {
			return 0
		}
		f.v, n = uint64(binary.LittleEndian.Uint32(b)), 4
	}
	return n
}
