package dumplog

import (
	"bytes"
	"encoding/binary"
	"testing"

	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
)

// FuzzEntry decodes any bytes as a frame, a record and an entry, which a log's checksums keep from other targets. What
// is taken is what etcd's own types hold, and the layout that all writers use is read as any other.
func FuzzEntry(f *testing.F) {
	for _, e := range []raftpb.Entry{{Term: 1, Index: 1}, {Type: raftpb.EntryConfChange, Term: 2, Index: 3,
		Data: []byte{8, 1}}, {Type: raftpb.EntryConfChangeV2, Term: 1 << 40, Index: 1 << 50}} {
		b, err := e.Marshal()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		r := walpb.Record{Type: 2, Crc: 7, Data: b}
		if b, err = r.Marshal(); err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(append(binary.LittleEndian.AppendUint64(nil, uint64(len(b))), b...))
	}
	f.Add([]byte{0x10, 1, 0x18, 1, 0x22, 0})
	f.Add(append([]byte{0x10}, bytes.Repeat([]byte{0xff}, 12)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= wordSize {
			if w, err := parseWord(binary.LittleEndian.Uint64(b)); err == nil && (w.rec > maxRecord || w.len()%8 != 0) {
				t.Errorf("frame %+v", w)
			}
		}
		typ, crc, data, err := parseRecord(b)
		var record walpb.Record
		if theirs := record.Unmarshal(b); err == nil && theirs == nil && (int64(typ) != record.Type ||
			crc != record.Crc || !bytes.Equal(data, record.Data)) {
			t.Errorf("record %d %d %x, etcd's types: %+v", typ, crc, data, &record)
		}
		if n := recordSize(b); n < 0 || n > maxRecord+64 {
			t.Errorf("a record of %d bytes", n)
		}
		got, err := decodeEntry(b)
		var entry raftpb.Entry
		if theirs := entry.Unmarshal(b); err == nil && theirs == nil && (got.term != entry.Term ||
			got.index != entry.Index || int32(got.typ) != int32(entry.Type) || !bytes.Equal(got.data, entry.Data)) {
			t.Errorf("entry %+v, etcd's types: %+v", got, &entry)
		}
		fast, taken := decodeEntryFast(b)
		if taken && err == nil && (fast.term != got.term || fast.index != got.index) {
			t.Errorf("entry %+v, or %+v", fast, got)
		}
	})
}
