package main

import (
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// record is one record of a segment.
type record struct {
	off, end int // of the frame
	typ      uint64
	crc      uint32
	data     []byte
}

// crcType is the type of the record that starts a segment and continues the CRC chain.
const crcType = 4

// records reads the records of a segment up to the first invalid one.
func records(b []byte) (out []record) {
	for off := 0; off+8 <= len(b); {
		word := binary.LittleEndian.Uint64(b[off:])
		size, pad := int(word&(1<<56-1)), int(word>>56&7)
		if word>>63 == 0 {
			pad = 0
		}
		if size < 2 || off+8+size+pad > len(b) {
			return out
		}
		r := record{off: off, end: off + 8 + size + pad}
		if !r.parse(b[off+8 : off+8+size]) {
			return out
		}
		out, off = append(out, r), r.end
	}
	return out
}

func (r *record) parse(b []byte) bool {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return false
		}
		b = b[n:]
		var v uint64
		switch typ {
		case protowire.VarintType:
			v, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			r.data, n = protowire.ConsumeBytes(b)
		default:
			return false
		}
		if n < 0 {
			return false
		}
		switch num {
		case 1:
			r.typ = v
		case 2:
			r.crc = uint32(v)
		}
		b = b[n:]
	}
	return true
}

// appendRecord writes a record as etcd does: a length word with the padding, {1 type, 2 crc, 3 data}, padding to eight
// bytes.
func appendRecord(b []byte, typ uint64, crc uint32, data []byte) []byte {
	rec := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), typ)
	rec = protowire.AppendVarint(protowire.AppendTag(rec, 2, protowire.VarintType), uint64(crc))
	if data != nil {
		rec = protowire.AppendBytes(protowire.AppendTag(rec, 3, protowire.BytesType), data)
	}
	word, pad := uint64(len(rec)), (8-len(rec)%8)%8
	if pad > 0 {
		word |= uint64(0x80|pad) << 56
	}
	b = append(binary.LittleEndian.AppendUint64(b, word), rec...)
	return append(b, make([]byte, pad)...)
}

// mend rewrites a segment with a valid chain, and returns the chain at its end. It keeps the size if possible.
func mend(b []byte, chain uint32) ([]byte, uint32) {
	rs := records(b)
	if len(rs) == 0 {
		return b, chain
	}
	var out []byte
	for _, r := range rs {
		if r.typ != crcType {
			chain = crc32.Update(chain, castagnoli, r.data)
		}
		out = appendRecord(out, r.typ, chain, r.data)
	}
	out = append(out, b[rs[len(rs)-1].end:]...)
	if len(out) > len(b) {
		out = out[:len(b)]
	}
	return out, chain
}

// segments returns the paths of a log's segments, in order.
func segments(walDir string) []string {
	found, _ := filepath.Glob(filepath.Join(walDir, "*.wal")) // the pattern is well-formed
	slices.Sort(found)
	return found
}

// mendLog recomputes the chain of all segments of a folder. It reads only the data: the preallocated rest of a segment
// is zeros.
func mendLog(walDir string) error {
	var chain uint32
	for _, p := range segments(walDir) {
		b, err := head(p)
		if err != nil {
			return err
		}
		b, chain = mend(b, chain)
		if err := overwrite(p, 0, b); err != nil {
			return err
		}
	}
	return nil
}

// maxHead is how much of a file is mutated, in bytes: the rest is preallocated.
const maxHead = 4 << 20

// head reads the start of a file, without the zeros at its end.
func head(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	b := make([]byte, maxHead)
	n, err := f.ReadAt(b, 0)
	if n == 0 {
		return nil, err
	}
	b = b[:n]
	for len(b) > 8 && b[len(b)-1] == 0 {
		b = b[:len(b)-1]
	}
	return b[:min(n, (len(b)+7)/8*8+8)], nil
}

// overwrite writes bytes into an existing file.
func overwrite(path string, off int64, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, off)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
