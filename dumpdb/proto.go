package dumpdb

import (
	"errors"
	"fmt"
)

// errProto is wrapped by every decoding error of a protobuf value.
var errProto = errors.New("not a valid protobuf message")

// field is one protobuf field as it stands on the wire.
type field struct {
	num  uint64
	wire byte
	n    uint64 // varint and fixed values
	b    []byte // length-delimited values
}

// uvarint decodes up to ten bytes and drops what exceeds 64 bits, as the generated decoders of etcd do; n is 0 when b ends before.
func uvarint(b []byte) (v uint64, n int) {
	for i, c := range b[:min(len(b), 10)] {
		v |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			return v, i + 1
		}
	}
	return 0, 0
}

// nextField cuts one field off b. Groups are refused: no etcd message has any.
func nextField(b []byte) (f field, rest []byte, err error) {
	tag, n := uvarint(b)
	if n <= 0 || tag>>3 == 0 || tag>>3 > 1<<29-1 {
		return f, nil, fmt.Errorf("%w: bad field tag", errProto)
	}
	f.num, f.wire, b = tag>>3, byte(tag&7), b[n:]
	switch f.wire {
	case 0:
		if f.n, n = uvarint(b); n <= 0 {
			return f, nil, fmt.Errorf("%w: field %d: bad varint", errProto, f.num)
		}
		return f, b[n:], nil
	case 1:
		if len(b) < 8 {
			return f, nil, fmt.Errorf("%w: field %d is cut off", errProto, f.num)
		}
		f.n = le.Uint64(b)
		return f, b[8:], nil
	case 2:
		size, n := uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return f, nil, fmt.Errorf("%w: field %d wants more bytes than the %d left", errProto, f.num, len(b))
		}
		end := n + int(size)
		f.b = b[n:end:end]
		return f, b[end:], nil
	case 5:
		if len(b) < 4 {
			return f, nil, fmt.Errorf("%w: field %d is cut off", errProto, f.num)
		}
		f.n = uint64(le.Uint32(b))
		return f, b[4:], nil
	}
	return f, nil, fmt.Errorf("%w: field %d has wire type %d", errProto, f.num, f.wire)
}

// eachField calls fn for every field whose wire type is the one given in wires for its number; others, which a later
// version may have added, are stepped over. A known field with another wire type is an error, as it is for etcd.
func eachField(b []byte, wires []byte, fn func(field) error) error {
	for len(b) > 0 {
		f, rest, err := nextField(b)
		if err != nil {
			return err
		}
		b = rest
		if f.num >= uint64(len(wires)) || wires[f.num] == skipField {
			continue
		}
		if wires[f.num] != f.wire {
			return fmt.Errorf("%w: field %d has wire type %d, not %d", errProto, f.num, f.wire, wires[f.num])
		}
		if err := fn(f); err != nil {
			return err
		}
	}
	return nil
}

// skipField stands in a wire table for numbers that have no meaning.
const skipField = 0xff
