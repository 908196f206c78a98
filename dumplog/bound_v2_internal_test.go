package dumplog

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestBoundOfV2Stores: what is kept of v2 stores is bounded over all files that are read together, by number and by
// bytes, and braces inside of strings are no nodes.
func TestBoundOfV2Stores(t *testing.T) {
	store := func(keys int) []byte {
		var w strings.Builder
		w.WriteString(`{"Root":{"Value":"{{{\"{\\","Children":{"0":{},"1":{"Children":{"a":{}`)
		for i := range keys {
			fmt.Fprintf(&w, `,"key%d":{}`, i)
		}
		w.WriteString(`}}}}}`)
		return []byte(w.String())
	}
	room := newV2Room(30)
	if v, err := decodeV2Store(store(10), room); err != nil || len(v.UserKeys) != 11 || room.nodes != 13 {
		t.Fatalf("%v %v, %d nodes are left", v, err, room.nodes)
	}
	if _, err := decodeV2Store(store(7), room); !errors.Is(err, errV2Large) {
		t.Errorf("more nodes than are left: %v", err)
	}
	if v, err := decodeV2Store(store(6), room); err != nil || len(v.UserKeys) != 7 {
		t.Errorf("%v: %v", v, err)
	}
	long := `{"Root":{"Children":{"1":{"Children":{"` + strings.Repeat("k", 30*nodeBytes) + `":{}}}}}}`
	if v, err := decodeV2Store([]byte(long), newV2Room(30)); !errors.Is(err, errV2Large) || v.UserKeys != nil {
		t.Errorf("a long path: %v", err)
	}
	attributes := `{"Root":{"Children":{"0":{"Children":{"members":{"Children":{"a1":{"Children":` +
		`{"raftAttributes":{"Value":"` + strings.Repeat(" ", 30*nodeBytes) + `{}"}}}}}}}}}}`
	if _, err := decodeV2Store([]byte(attributes), newV2Room(30)); !errors.Is(err, errV2Large) {
		t.Errorf("long attributes: %v", err)
	}
}
