// Package wire splits protobuf messages into fields, for all packages that read records of etcd: log entries, snapshot
// files and rows of the database.
//
// It uses google.golang.org/protobuf/encoding/protowire, which differs in overflow and groups from the decoders that
// etcd generates up to 3.6 (gogo). A varint of ten bytes that exceeds 64 bits, and a field number of more than 32, are
// errors in protowire, while etcd drops the extra bits; the end of a group needs the number of its start. Package wire
// does the same as these servers. Those of 3.7 decode with google.golang.org/protobuf, which refuses such messages; no
// server writes them.
package wire

import "google.golang.org/protobuf/encoding/protowire"

// The wire types. No message of etcd has a group; one that another writer or damage put there is skipped, as etcd does.
const (
	Varint  = int8(protowire.VarintType)
	Fixed64 = int8(protowire.Fixed64Type)
	Bytes   = int8(protowire.BytesType)
	Group   = int8(protowire.StartGroupType)
	Fixed32 = int8(protowire.Fixed32Type)

	endGroup = int8(protowire.EndGroupType)
)

// Field is one field of a message. Its slices alias the message.
type Field struct {
	Num  int32
	Type int8
	// V is the value of a varint or fixed field, B that of a length-delimited one. A group has neither.
	V uint64
	B []byte
	// Raw is the tag and the value.
	Raw []byte
}

// Uvarint reads one varint from the start of b; n is 0 if there is none.
func Uvarint(b []byte) (v uint64, n int) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), 1
	}
	return longUvarint(b)
}

// maxVarint is the length of the longest varint; the tenth byte has room for one bit.
const maxVarint = 10

func longUvarint(b []byte) (v uint64, n int) {
	if v, n = protowire.ConsumeVarint(b); n > 0 {
		return v, n
	}
	if len(b) < maxVarint || b[maxVarint-1] >= 0x80 {
		return 0, 0
	}
	v, n = overflowing([maxVarint]byte(b))
	return v, n
}

// overflowing reads a varint of ten bytes and drops the bits above the 64th.
func overflowing(b [maxVarint]byte) (v uint64, n int) {
	b[maxVarint-1] &= 1
	if v, n = protowire.ConsumeVarint(b[:]); n < 0 {
		return 0, 0
	}
	return v, n
}

// Number returns the field number in a tag, 0 if there is none. Like the decoders that etcd generates it takes the 32
// bits above the type, also where no writer may put them.
func Number(tag uint64) int32 { return max(0, int32(tag>>3)) }

// Next reads the field at the start of b and returns its length, 0 if there is none.
func (f *Field) Next(b []byte) int {
	tag, n := Uvarint(b)
	num := Number(tag)
	if n == 0 || num == 0 {
		return 0
	}
	f.Num, f.Type, f.V, f.B = num, int8(tag&7), 0, nil
	used := n + f.value(b[n:])
	if used == n {
		return 0
	}
	f.Raw = b[:used:used]
	return used
}

// value reads the value after a tag and returns its length, 0 if there is none.
func (f *Field) value(b []byte) int {
	n := 0
	switch f.Type {
	case Varint:
		f.V, n = Uvarint(b)
	case Bytes:
		l, k := Uvarint(b)
		if k == 0 || l > uint64(len(b)-k) {
			return 0
		}
		n = k + int(l)
		f.B = b[k:n:n]
	case Fixed64:
		f.V, n = protowire.ConsumeFixed64(b)
	case Fixed32:
		var v uint32
		v, n = protowire.ConsumeFixed32(b)
		f.V = uint64(v)
	case Group:
		n = group(b)
	}
	return max(n, 0)
}

// group returns the length of the fields after the tag of a group, with its end, 0 if it does not end. Like the
// decoders that etcd generates it counts starts and ends, whatever their field numbers, and does not read field
// numbers in it. Groups in groups take no memory, so that their depth needs no limit.
func group(b []byte) int {
	at, depth := 0, 1
	for at < len(b) {
		tag, n := Uvarint(b[at:])
		if n == 0 {
			return 0
		}
		at += n
		switch t := int8(tag & 7); t {
		case Group:
			depth++
		case endGroup:
			if depth--; depth == 0 {
				return at
			}
		default:
			f := Field{Type: t}
			if n = f.value(b[at:]); n == 0 {
				return 0
			}
			at += n
		}
	}
	return 0
}
