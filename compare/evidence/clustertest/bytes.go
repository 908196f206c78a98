package clustertest

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
	"google.golang.org/protobuf/encoding/protowire"
)

// Script bytes of WriteBytes: each step is its kind, the length of its data in two bytes, and the data.
const (
	// BytesRecord adds a WAL record with a right checksum: a byte for the type, then its data.
	BytesRecord = iota
	// BytesEntry adds an entry with the next index: a byte for the type, one for the term, then its data.
	BytesEntry
	// BytesRow puts a row into the database: a byte for the bucket, one for the length of the key, then key and value.
	BytesRow
	// BytesSnap makes a .snap file with a right checksum, at the index of the last entry: the v2 store as JSON.
	BytesSnap
	// BytesFile makes or replaces a file: a byte for its name, then what it holds.
	BytesFile
	// BytesPatch overwrites bytes of a file in the end: a byte for its name, four for the place, then the bytes.
	BytesPatch
	// BytesCut cuts a file in the end: a byte for its name, then four for the length.
	BytesCut
	bytesKinds
)

// bytesNames are the files that scripts name.
var bytesNames = []string{"wal/0000000000000000-0000000000000000.wal", "snap/db",
	"snap/0000000000000001-0000000000000003.snap", "wal/0000000000000001-0000000000000004.wal", "wal/0.tmp",
	"snap/0000000000000001-0000000000000009.snap.broken", "snap/0000000000000007.snap.db", "snap/db.tmp.1",
	"wal/0000000000000002-ffffffffffffffff.wal", "snap/tmp1", "../etcd-medic-collect.json", "snap/0.snap"}

var bytesBuckets = []string{"key", "meta", "lease", "auth", "authUsers", "authRoles", "members", "members_removed",
	"alarm", "cluster", "other"}

// BytesStep is a step of a script for WriteBytes.
func BytesStep(kind byte, data ...byte) []byte {
	return append(binary.BigEndian.AppendUint16([]byte{kind}, uint16(len(data))), data...)
}

// bytesDir is a data dir while it is made of bytes.
type bytesDir struct {
	tb    testing.TB
	dir   string
	wal   []byte
	chain uint32
	index uint64
	rows  []handRow
	files [][]byte // name, then content
	later [][]byte // patches and cuts
}

// WriteBytes makes a data dir of any bytes. They are read as steps that write records, rows and files of the form that
// etcd gives them, or any others, so that what is behind checksums and page headers is reached too. The same bytes make
// the same dir, apart from times.
func WriteBytes(tb testing.TB, dir string, script []byte) {
	tb.Helper()
	w := &bytesDir{tb: tb, dir: filepath.Join(dir, "member")}
	w.record(4, nil)
	w.record(1, protowire.AppendVarint(protowire.AppendTag(protowire.AppendVarint(
		protowire.AppendTag(nil, 1, protowire.VarintType), 7), 2, protowire.VarintType), 9))
	w.record(5, nil)
	for len(script) >= 3 {
		n := min(int(binary.BigEndian.Uint16(script[1:])), len(script)-3)
		w.step(script[0]%bytesKinds, script[3:3+n])
		script = script[3+n:]
	}
	for _, sub := range []string{"wal", "snap"} {
		synthOK(tb, os.MkdirAll(filepath.Join(w.dir, sub), 0o700))
	}
	synthOK(tb, os.WriteFile(w.path(0), w.wal, 0o600))
	w.database()
	for _, f := range w.files {
		synthOK(tb, os.WriteFile(w.path(f[0]), f[1:], 0o600))
	}
	for _, p := range w.later {
		w.spoil(p)
	}
}

func (w *bytesDir) path(name byte) string {
	return filepath.Join(w.dir, filepath.FromSlash(bytesNames[int(name)%len(bytesNames)]))
}

func (w *bytesDir) step(kind byte, data []byte) {
	arg := func(i int) byte {
		if i < len(data) {
			return data[i]
		}
		return 0
	}
	switch kind {
	case BytesRecord:
		w.record(uint64(arg(0)), data[min(1, len(data)):])
	case BytesEntry:
		w.index++
		var e []byte
		for i, v := range []uint64{uint64(arg(0)), uint64(arg(1)), w.index} {
			e = protowire.AppendVarint(protowire.AppendTag(e, protowire.Number(i+1), protowire.VarintType), v)
		}
		w.record(2, protowire.AppendBytes(protowire.AppendTag(e, 4, protowire.BytesType), data[min(2, len(data)):]))
	case BytesRow:
		rest := data[min(2, len(data)):]
		n := min(int(arg(1)), len(rest))
		w.rows = append(w.rows, handRow{bytesBuckets[int(arg(0))%len(bytesBuckets)], rest[:n], rest[n:]})
	case BytesSnap:
		meta := protowire.AppendVarint(protowire.AppendTag(nil, 2, protowire.VarintType), w.index)
		meta = protowire.AppendVarint(protowire.AppendTag(meta, 3, protowire.VarintType), 1)
		snap := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), data)
		snap = protowire.AppendBytes(protowire.AppendTag(snap, 2, protowire.BytesType), meta)
		file := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType),
			uint64(crc32.Checksum(snap, crc32.MakeTable(crc32.Castagnoli))))
		w.files = append(w.files, append([]byte{2}, protowire.AppendBytes(
			protowire.AppendTag(file, 2, protowire.BytesType), snap)...))
	case BytesFile:
		w.files = append(w.files, append([]byte{arg(0)}, data[min(1, len(data)):]...))
	default:
		w.later = append(w.later, append([]byte{kind}, data...))
	}
}

// record appends a WAL record: length and padding in eight bytes, type, checksum of the chain, data.
func (w *bytesDir) record(typ uint64, data []byte) {
	if typ != 4 {
		w.chain = crc32.Update(w.chain, crc32.MakeTable(crc32.Castagnoli), data)
	}
	r := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), typ)
	r = protowire.AppendVarint(protowire.AppendTag(r, 2, protowire.VarintType), uint64(w.chain))
	if data != nil {
		r = protowire.AppendBytes(protowire.AppendTag(r, 3, protowire.BytesType), data)
	}
	size, pad := uint64(len(r)), (8-len(r)%8)%8
	if pad > 0 {
		size |= uint64(0x80|pad) << 56
	}
	w.wal = append(binary.LittleEndian.AppendUint64(w.wal, size), r...)
	w.wal = append(w.wal, make([]byte, pad)...)
}

// database writes the rows that a database takes.
func (w *bytesDir) database() {
	w.tb.Helper()
	db, err := bbolt.Open(w.path(1), 0o600,
		&bbolt.Options{NoSync: true, NoFreelistSync: true, NoGrowSync: true, FreelistType: bbolt.FreelistMapType})
	synthOK(w.tb, err)
	synthOK(w.tb, db.Update(func(tx *bbolt.Tx) error {
		for _, name := range bytesBuckets[:len(bytesBuckets)-1] {
			if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
				return err
			}
		}
		for _, r := range w.rows {
			b, err := tx.CreateBucketIfNotExists([]byte(r.bucket))
			if err != nil {
				return err
			}
			if len(r.key) > 0 && len(r.key) < bbolt.MaxKeySize {
				if err := b.Put(r.key, r.value); err != nil {
					return fmt.Errorf("%s %x: %w", r.bucket, r.key, err)
				}
			}
		}
		return nil
	}))
	synthOK(w.tb, db.Close())
}

// spoil overwrites or cuts a file that is there.
func (w *bytesDir) spoil(p []byte) {
	w.tb.Helper()
	if len(p) < 6 {
		return
	}
	f, err := os.OpenFile(w.path(p[1]), os.O_RDWR, 0o600)
	if err != nil {
		return
	}
	st, err := f.Stat()
	synthOK(w.tb, err)
	at := int64(binary.BigEndian.Uint32(p[2:])) % (st.Size() + 1)
	if p[0] == BytesCut {
		synthOK(w.tb, f.Truncate(at))
	} else {
		_, err = f.WriteAt(p[6:], at)
		synthOK(w.tb, err)
	}
	synthOK(w.tb, f.Close())
}
