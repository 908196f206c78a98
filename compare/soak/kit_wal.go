package soak

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
)

// The types of WAL records.
const (
	recMetadata = 1
	recEntry    = 2
	recState    = 3
	recCRC      = 4
	recSnapshot = 5
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// walRecord is one record of a segment.
type walRecord struct {
	typ      int64
	data     []byte
	from, to int64 // in the file, padding included
}

// segment is one file of a log, read leniently: it ends where records end.
type segment struct {
	file    string
	size    int64
	records []walRecord
}

func segmentFiles(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
	slices.Sort(files)
	return files, err
}

func readLog(dir string) ([]segment, error) {
	files, err := segmentFiles(dir)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, errNotHere
	}
	var out []segment
	for _, f := range files {
		b, size, err := readUsed(f)
		if err != nil {
			return nil, err
		}
		s := segment{file: f, size: size}
		for at := int64(0); at+8 <= int64(len(b)); {
			field := binary.LittleEndian.Uint64(b[at:])
			n, pad := int64(field&(1<<56-1)), int64(0)
			if field>>63 == 1 {
				pad = int64(field >> 56 & 7)
			}
			if field == 0 || at+8+n+pad > int64(len(b)) {
				break
			}
			var r walpb.Record
			if err := r.Unmarshal(b[at+8 : at+8+n]); err != nil {
				break
			}
			s.records = append(s.records, walRecord{typ: r.Type, data: r.Data, from: at, to: at + 8 + n + pad})
			at += 8 + n + pad
		}
		out = append(out, s)
	}
	return out, nil
}

// readUsed reads a segment up to the zeros that it was allocated with, and returns its size.
func readUsed(file string) ([]byte, int64, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = f.Close() }() // read only
	st, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	var out []byte
	block := make([]byte, 256<<10)
	zeros := make([]byte, len(block))
	for {
		n, err := io.ReadFull(f, block)
		if n == 0 || bytes.Equal(block[:n], zeros[:n]) {
			return out, st.Size(), nil
		}
		out = append(out, block[:n]...)
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, 0, err
		}
	}
}

// writeLog writes the records of all segments again with a CRC chain that fits. Files keep their size unless they have
// to grow.
func writeLog(segs []segment) error {
	crc := uint32(0)
	for i, s := range segs {
		var b []byte
		for k, r := range s.records {
			rec := walpb.Record{Type: r.typ, Data: r.data}
			if r.typ == recCRC {
				if i == 0 && k == 0 { // a purged log begins with the sum of what is gone
					crc = firstCRC(s)
				}
				rec.Data, rec.Crc = nil, crc
			} else {
				crc = crc32.Update(crc, castagnoli, r.data)
				rec.Crc = crc
			}
			body, err := rec.Marshal()
			if err != nil {
				return err
			}
			field, pad := uint64(len(body)), (8-len(body)%8)%8
			if pad > 0 {
				field |= uint64(0x80|pad) << 56
			}
			b = binary.LittleEndian.AppendUint64(b, field)
			b = append(append(b, body...), make([]byte, pad)...)
		}
		if err := writeSparse(s.file, b, max(s.size, int64(len(b)))); err != nil {
			return err
		}
	}
	return nil
}

// firstCRC is the checksum in the first record of a segment, read from its file.
func firstCRC(s segment) uint32 {
	b, err := os.ReadFile(s.file)
	if err != nil || len(b) < 8 {
		return 0
	}
	n := binary.LittleEndian.Uint64(b) & (1<<56 - 1)
	var r walpb.Record
	if n > uint64(len(b)-8) || r.Unmarshal(b[8:8+n]) != nil {
		return 0
	}
	return r.Crc
}

func writeSparse(file string, b []byte, size int64) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Truncate(size)
	}
	return errors.Join(err, f.Close())
}

// at names a record of a log.
type at struct{ seg, rec int }

// entries returns the places of the entries, last written wins for an index, in order of their indexes. Those that a
// snapshot of the leader replaced before they were committed are left out: no member holds or applies them.
func entries(segs []segment) (places []at, list []raftpb.Entry) {
	byIndex := map[uint64]int{}
	commit := uint64(0)
	for i, s := range segs {
		for k, r := range s.records {
			var snap walpb.Snapshot
			if r.typ == recSnapshot && snap.Unmarshal(r.data) == nil && len(list) > 0 &&
				snap.Index > list[len(list)-1].Index {
				for len(list) > 0 && list[len(list)-1].Index > commit {
					places, list = places[:len(list)-1], list[:len(list)-1]
				}
			}
			var state raftpb.HardState
			if r.typ == recState && state.Unmarshal(r.data) == nil {
				commit = max(commit, state.Commit)
			}
			var e raftpb.Entry
			if r.typ != recEntry || e.Unmarshal(r.data) != nil {
				continue
			}
			if n, ok := byIndex[e.Index]; ok {
				places, list = places[:n], list[:n]
			}
			byIndex[e.Index] = len(list)
			places, list = append(places, at{i, k}), append(list, e)
		}
	}
	return places, list
}

// request returns the request of an entry, nil if it has none.
func request(e *raftpb.Entry) *etcdserverpb.InternalRaftRequest {
	var r etcdserverpb.InternalRaftRequest
	if e.Type != raftpb.EntryNormal || len(e.Data) == 0 || r.Unmarshal(e.Data) != nil {
		return nil
	}
	return &r
}

// last returns the place of the last record of a type.
func last(segs []segment, typ int64) (at, bool) {
	for i := len(segs) - 1; i >= 0; i-- {
		for k := len(segs[i].records) - 1; k >= 0; k-- {
			if segs[i].records[k].typ == typ {
				return at{i, k}, true
			}
		}
	}
	return at{}, false
}

func (a at) of(segs []segment) *walRecord { return &segs[a.seg].records[a.rec] }

// logBounds are the first and the last index of the entries in the log.
func logBounds(dir string) (first, end uint64) {
	segs, err := readLog(dir)
	if err != nil {
		return 0, 0
	}
	_, list := entries(segs)
	if len(list) == 0 {
		return 0, 0
	}
	return list[0].Index, list[len(list)-1].Index
}

// startsAtFirstEntry reports whether the log of a member reaches back to its bootstrap.
func startsAtFirstEntry(dir string) bool {
	first, _ := logBounds(dir)
	files, err := segmentFiles(dir)
	return first == 1 && err == nil && len(files) > 0 &&
		filepath.Base(files[0]) == "0000000000000000-0000000000000000.wal"
}

// skipsEntries reports whether the log of a member lacks entries between two others: a snapshot of another member
// brought their effect.
func skipsEntries(dir string) bool {
	segs, err := readLog(dir)
	if err != nil {
		return true
	}
	_, list := entries(segs)
	for i := range list {
		if i > 0 && list[i].Index != list[i-1].Index+1 {
			return true
		}
	}
	return false
}

// logPuts counts the entries of the log that are a plain put of that value.
func logPuts(dir, key, value string) (n int) {
	segs, err := readLog(dir)
	if err != nil {
		return 0
	}
	_, list := entries(segs)
	for i := range list {
		if r := request(&list[i]); r != nil && r.Put != nil && string(r.Put.Key) == key &&
			string(r.Put.Value) == value {
			n++
		}
	}
	return n
}

func snapFiles(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "member", "snap", "*.snap"))
	slices.Sort(files)
	return files, err
}

// newestSnap is the index of the newest .snap file, 0 without one.
func newestSnap(dir string) uint64 {
	files, err := snapFiles(dir)
	if err != nil || len(files) == 0 {
		return 0
	}
	return snapIndex(files[len(files)-1])
}

// firstOf is the index in the name of a segment, 0 if the name is none.
func firstOf(file string) uint64 {
	var seq, index uint64
	if _, err := fmt.Sscanf(filepath.Base(file), "%016x-%016x.wal", &seq, &index); err != nil {
		return 0
	}
	return index
}

// snapIndex is the index in the name of a .snap file.
func snapIndex(file string) uint64 {
	var term, index uint64
	if _, err := fmt.Sscanf(filepath.Base(file), "%016x-%016x.snap", &term, &index); err != nil {
		return 0
	}
	return index
}
