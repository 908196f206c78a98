package wire_test

import (
	"bytes"
	"math"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/etcd-medic/etcd-medic/internal/wire"
)

// TestUvarintAsEtcd compares with the decoder that etcd generates, at every length and with each value of the last
// byte.
func TestUvarintAsEtcd(t *testing.T) {
	for length := 1; length <= 12; length++ {
		for last := range 256 {
			b := bytes.Repeat([]byte{0xff}, length)
			b[length-1] = byte(last)
			var want etcdserverpb.CompactionRequest
			err := want.Unmarshal(append([]byte{1 << 3}, b...))
			v, n := wire.Uvarint(b)
			switch {
			case (err == nil) != (n == length):
				t.Fatalf("% x: etcd says %v, read %d bytes of %d", b, err, n, length)
			case err == nil && int64(v) != want.Revision:
				t.Fatalf("% x: etcd reads %d, read %d", b, want.Revision, int64(v))
			}
		}
	}
}

// TestTagsAsEtcd compares field numbers with the decoder that etcd generates, with each bit of a tag set.
func TestTagsAsEtcd(t *testing.T) {
	for bit := range 64 {
		for _, other := range []uint64{0, 1 << 3, 3 << 3, 1<<34 | 1<<3, 1<<36 | 1<<3} {
			tag := 1<<bit&^7 | other
			b := append(protowire.AppendVarint(nil, tag), 5)
			var want etcdserverpb.CompactionRequest
			err := want.Unmarshal(b)
			var f wire.Field
			n := f.Next(b)
			if (err == nil) != (n == len(b)) || err == nil && (f.Num == 1) != (want.Revision == 5) {
				t.Errorf("tag %#x: etcd says %v, %v; read %d of %d bytes, field %d", tag, &want, err, n, len(b), f.Num)
			}
		}
	}
}

func TestFields(t *testing.T) {
	msg := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), math.MaxUint64)
	msg = protowire.AppendBytes(protowire.AppendTag(msg, 2, protowire.BytesType), []byte("value"))
	msg = protowire.AppendFixed64(protowire.AppendTag(msg, 3, protowire.Fixed64Type), 7)
	msg = protowire.AppendFixed32(protowire.AppendTag(msg, protowire.MaxValidNumber, protowire.Fixed32Type), 8)
	var f wire.Field
	var got []wire.Field
	for rest := msg; len(rest) > 0; {
		n := f.Next(rest)
		if n == 0 {
			t.Fatalf("no field at % x", rest)
		}
		got, rest = append(got, f), rest[n:]
	}
	if len(got) != 4 || got[0].V != math.MaxUint64 || string(got[1].B) != "value" || got[2].V != 7 || got[3].V != 8 ||
		got[3].Num != int32(protowire.MaxValidNumber) {
		t.Fatalf("read %+v", got)
	}
	if len(got[1].Raw) != 7 || got[1].Type != wire.Bytes {
		t.Fatalf("raw % x of type %d", got[1].Raw, got[1].Type)
	}
	for name, b := range map[string][]byte{
		"nothing": {}, "number 0": {0x00, 0x01}, "no value": {0x08}, "end of no group": {0x0c},
		"group without end": {0x0b, 0x08, 1}, "group in a group without end": {0x0b, 0x0b, 0x0c},
		"group with a cut field": {0x0b, 0x12, 5, 0x0c}, "group with no type": {0x0b, 0x0f, 0x0c},
		"length beyond the end": {0x12, 0x05, 1},
		"fixed cut":             {0x19, 1, 2}, "a number too large": {0x80, 0x80, 0x80, 0x80, 0x40, 1},
		"endless varint": bytes.Repeat([]byte{0x80}, 20),
	} {
		if n := f.Next(b); n != 0 {
			t.Errorf("%s: read %d bytes", name, n)
		}
	}
}

// TestGroupsAsEtcd compares with the decoder that etcd generates, on every short sequence of parts of messages.
func TestGroupsAsEtcd(t *testing.T) {
	parts := [][]byte{{0x0b}, {0x1b}, {0x1c}, {0x24}, {0x18, 1}, {0x1a, 2, 7, 7}, {0x1a, 9}, {0x1d, 1, 2, 3, 4},
		{0x19, 1}, {0x1f}, {0x03}, {0x08, 5}, {0x80}}
	taken := 0
	for n := range 13 * 13 * 13 * 13 * 13 {
		var b []byte
		for range 5 {
			b, n = append(b, parts[n%13]...), n/13
		}
		var want etcdserverpb.CompactionRequest
		err := want.Unmarshal(b)
		revision, ok := revisionOf(b)
		if ok != (err == nil) || ok && revision != want.Revision {
			t.Fatalf("% x: etcd says %v, revision %d; read %v, revision %d", b, err, want.Revision, ok, revision)
		}
		if ok {
			taken++
		}
	}
	if taken < 100 {
		t.Errorf("%d messages are taken", taken)
	}
}

// revisionOf reads field 1 of a CompactionRequest; ok is false if it is not a message or a field has another type.
func revisionOf(b []byte) (revision int64, ok bool) {
	var f wire.Field
	for len(b) > 0 {
		n := f.Next(b)
		if n == 0 || f.Num <= 2 && f.Type != wire.Varint {
			return 0, false
		}
		if f.Num == 1 {
			revision = int64(f.V)
		}
		b = b[n:]
	}
	return revision, true
}

// FuzzNext reads hostile bytes: never beyond the end, and what protowire takes is read the same.
func FuzzNext(f *testing.F) {
	f.Add([]byte{0x08, 0x96, 0x01})
	f.Add([]byte{0x12, 0x02, 'a', 'b', 0x19, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Add(append([]byte{0x08}, bytes.Repeat([]byte{0xff}, 10)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		var got wire.Field
		n := got.Next(b)
		if n < 0 || n > len(b) || len(got.B) > n {
			t.Fatalf("read %d of %d bytes", n, len(b))
		}
		num, typ, m := protowire.ConsumeField(b)
		if m > 0 && (n != m || got.Num != int32(num) || got.Type != int8(typ)) {
			t.Fatalf("protowire reads field %d of type %d with %d bytes, read %d of type %d with %d", num, typ, m,
				got.Num, got.Type, n)
		}
	})
}
