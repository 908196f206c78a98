package dumplog_test

import (
	"bytes"
	"errors"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestManyParts: a request of very many parts, or of very many bytes, is not decoded, and the error says that this
// alone is the reason. One of half as many is decoded.
func TestManyParts(t *testing.T) {
	wrapped := func(num protowire.Number) func(b []byte) []byte {
		return func(b []byte) []byte {
			return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), b)
		}
	}
	bare := func(b []byte) []byte { return b }
	member := func(b []byte) []byte { return wrapped(1301)(wrapped(2)(b)) }
	for name, c := range map[string]struct {
		part []byte
		wrap func([]byte) []byte
		kind dumplog.Kind
		typ  dumplog.EntryType
	}{
		"compares":        {[]byte{1<<3 | 2, 0}, wrapped(6), dumplog.KindTxn, dumplog.EntryNormal},
		"success":         {[]byte{2<<3 | 2, 0}, wrapped(6), dumplog.KindTxn, dumplog.EntryNormal},
		"failure":         {[]byte{3<<3 | 2, 2, 3<<3 | 2, 0}, wrapped(6), dumplog.KindTxn, dumplog.EntryNormal},
		"fields of a put": {[]byte{14 << 3, 0}, wrapped(4), dumplog.KindPut, dumplog.EntryNormal},
		"fields of a header": {append(wrapped(100)(bytes.Repeat([]byte{14 << 3, 0}, 10)), 3<<3|2, 0), bare,
			dumplog.KindRange, dumplog.EntryNormal},
		"checkpoints":           {[]byte{1<<3 | 2, 0}, wrapped(11), dumplog.KindLeaseCheckpoint, dumplog.EntryNormal},
		"URLs of a member":      {[]byte{2<<3 | 2, 0}, member, dumplog.KindClusterMemberAttrSet, dumplog.EntryNormal},
		"membership changes":    {[]byte{2<<3 | 2, 0}, bare, dumplog.KindConfChangeV2, dumplog.EntryConfChangeV2},
		"requests in a request": {[]byte{3<<3 | 2, 0}, bare, dumplog.KindRange, dumplog.EntryNormal},
	} {
		n := dumplog.MaxParts
		if name == "fields of a header" {
			n /= 10
		}
		for _, k := range []int{n / 2, n + 2} {
			e := dumplog.Entry{Term: 1, Index: 1, Type: c.typ, Data: c.wrap(bytes.Repeat(c.part, k))}
			var d dumplog.Decoder
			r, err := e.Decode()
			large := new(dumplog.TooLargeError)
			if k < n && (r.Kind != c.kind || err != nil || d.TooLarge(&e) != nil) {
				t.Errorf("%d of %s: %s, %v", k, name, r.Kind, err)
			}
			if k > n && (r.Kind != dumplog.KindUnknown || !errors.As(err, &large) || d.TooLarge(&e) == nil) {
				t.Errorf("%d of %s: %s, %v", k, name, r.Kind, err)
			}
		}
	}
	var d dumplog.Decoder
	put := protowire.AppendBytes([]byte{4<<3 | 2},
		protowire.AppendBytes([]byte{2<<3 | 2}, make([]byte, dumplog.MaxPayload)))
	if err := d.TooLarge(&dumplog.Entry{Term: 1, Index: 1, Data: put}); err == nil {
		t.Error("a payload of any size is decoded")
	}
	if err := d.TooLarge(&dumplog.Entry{Term: 1, Index: 1, Data: put[:dumplog.MaxPayload]}); err != nil {
		t.Errorf("what does not decode is called too large: %v", err)
	}
}
