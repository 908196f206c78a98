package dumpdb

import (
	"errors"
	"fmt"

	"github.com/etcd-medic/etcd-medic/internal/wire"
)

// errProto is wrapped by every decoding error of a protobuf value.
var errProto = errors.New("not a valid protobuf message")

// field is one protobuf field as encoded.
type field = wire.Field

// nextField splits one field off b.
func nextField(b []byte, f *field) (rest []byte, err error) {
	n := f.Next(b)
	if n == 0 {
		return nil, noField(b)
	}
	return b[n:], nil
}

// noField says why b does not start with a field.
func noField(b []byte) error {
	tag, n := wire.Uvarint(b)
	num, left := wire.Number(tag), len(b)-n
	switch {
	case n == 0 || num == 0:
		return fmt.Errorf("%w: bad field tag", errProto)
	case int8(tag&7) == wire.Varint:
		return fmt.Errorf("%w: field %d: bad varint", errProto, num)
	case int8(tag&7) == wire.Bytes:
		return fmt.Errorf("%w: field %d needs more bytes than the %d left", errProto, num, left)
	case int8(tag&7) == wire.Fixed64, int8(tag&7) == wire.Fixed32:
		return fmt.Errorf("%w: field %d is cut off", errProto, num)
	}
	return fmt.Errorf("%w: field %d has wire type %d", errProto, num, tag&7)
}

// eachField calls fn for every field whose number has an entry in wires. It skips the others, which a later version may
// have added. A known field with another wire type is an error, as in etcd.
func eachField(b []byte, wires []int8, fn func(*field) error) error {
	var f field
	var err error
	for len(b) > 0 {
		if b, err = nextField(b, &f); err != nil {
			return err
		}
		if int(f.Num) >= len(wires) || wires[f.Num] == skipField {
			continue
		}
		if wires[f.Num] != f.Type {
			return fmt.Errorf("%w: field %d has wire type %d, not %d", errProto, f.Num, f.Type, wires[f.Num])
		}
		if err := fn(&f); err != nil {
			return err
		}
	}
	return nil
}

// unknownField returns the number of the last field of b that has no entry in wires, 0 if there is none.
func unknownField(b []byte, wires []int8) (num int32) {
	var f field
	var err error
	for len(b) > 0 {
		if b, err = nextField(b, &f); err != nil {
			return num
		}
		if int(f.Num) >= len(wires) || wires[f.Num] == skipField {
			num = f.Num
		}
	}
	return num
}

// skipField marks numbers without a meaning in a wire table.
const skipField = -1
