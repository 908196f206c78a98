package dumplog_test

import (
	"bytes"
	"hash/crc32"
	"testing"

	"go.etcd.io/etcd/server/v3/etcdserver/api/snap/snappb"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestCutSnapFile: a file that ends before its content does is cut short; one with other damage is not.
func TestCutSnapFile(t *testing.T) {
	whole, err := (&snappb.Snapshot{Crc: 0x12345678, Data: make([]byte, 300)}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	sound, err := (&snappb.Snapshot{Crc: crc32.Checksum(make([]byte, 300), crc32.MakeTable(crc32.Castagnoli)),
		Data: make([]byte, 300)}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	longer := bytes.Replace(sound, []byte{2<<3 | 2, 0xac, 0x02}, []byte{2<<3 | 2, 0xac, 0x0a}, 1)
	const name = "0000000000000002-000000000000000b.snap"
	for n := range len(whole) {
		if s := dumplog.DecodeSnapFile(name, whole[:n]); !s.Cut || s.Damage == nil {
			t.Errorf("the first %d bytes: cut %t, damage %v", n, s.Cut, s.Damage)
		}
	}
	other := append([]byte{0xff}, whole[1:]...)
	long := append([]byte{1 << 3}, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)
	for what, b := range map[string][]byte{"the whole file": whole, "no message": other, "text": []byte("not a snapshot"),
		"with more after it": append(whole[:len(whole):len(whole)], 0), "a number that is too long": long,
		"a size that was raised": longer} {
		if s := dumplog.DecodeSnapFile(name, b); s.Cut || s.Damage == nil {
			t.Errorf("%s: cut %t, damage %v", what, s.Cut, s.Damage)
		}
	}
}
