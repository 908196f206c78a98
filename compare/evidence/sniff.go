package evidence

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"github.com/etcd-medic/etcd-medic/internal/regular"
)

// trailerLen is the sha256 that snapshot save appends to a file whose size is a multiple of the page size.
const trailerLen = 32

// boltMagic is go.etcd.io/bbolt's magic number in both meta pages, behind the 16 byte page header.
const boltMagic = 0xED0CDAED

func readHead(path string, buf []byte) (int, error) {
	f, _, err := regular.Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	n, err := io.ReadFull(f, buf)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// looksLikeBolt tells a bbolt file by the magic of either meta page, so that a file with one dead meta is still taken.
func looksLikeBolt(head []byte) bool {
	for _, page := range []int{0, 512, 1024, 2048, 4096, 8192} {
		if len(head) >= page+20 && binary.LittleEndian.Uint32(head[page+16:]) == boltMagic {
			return true
		}
	}
	return false
}

// looksLikeSnapshot tells a file written by bbolt's Tx.WriteTo (snapshot save, .snap.db): both metas carry the same
// root and meta 0 is one transaction ahead. A commit always moves the root, so a live db never shows this.
func looksLikeSnapshot(head []byte) bool {
	const page = 4096
	if len(head) < page+80 {
		return false
	}
	meta := func(at int) (root, txid uint64) {
		return binary.LittleEndian.Uint64(head[at+16+16:]), binary.LittleEndian.Uint64(head[at+16+48:])
	}
	r0, t0 := meta(0)
	r1, t1 := meta(page)
	return r0 == r1 && t0 == t1+1
}

// boltMetaEnd is what the first meta page needs; a shorter file is cut too short to tell what it was.
const boltMetaEnd = 80

// sniffPages bounds how many pages are looked at for one that is a bbolt page.
const sniffPages = 256

// hasBoltPages tells a file that is or once was a bbolt database: a magic number, or, where both meta pages are
// overwritten, pages that carry their own number and a type. Noise and other files have neither.
func hasBoltPages(path string, size int64) bool {
	head := make([]byte, 8192+32)
	n, err := readHead(path, head)
	if err != nil || looksLikeBolt(head[:n]) {
		return true // a file that can not be read is told when it is opened
	}
	f, _, err := regular.Open(path)
	if err != nil {
		return true
	}
	defer func() { _ = f.Close() }()
	for _, page := range []int64{4096, 8192, 16384, 65536} {
		step := max(size/page/sniffPages, 1)
		for id := int64(2); id*page+16 <= size; id += step {
			if isBoltPage(f, id, page) {
				return true
			}
		}
	}
	return false
}

// isBoltPage tells whether the header at that place names its own page and is that of a branch, leaf or freelist page.
func isBoltPage(r io.ReaderAt, id, pageSize int64) bool {
	var h [16]byte
	if _, err := r.ReadAt(h[:], id*pageSize); err != nil {
		return false
	}
	flags := binary.LittleEndian.Uint16(h[8:])
	return binary.LittleEndian.Uint64(h[:]) == uint64(id) && (flags == 1 || flags == 2 || flags == 16)
}

// IsDatabaseHead tells from the first bytes of a file whether it is or once was a bbolt database: by a magic number, or
// by pages that carry their own number where the meta pages are overwritten.
func IsDatabaseHead(head []byte) bool {
	if looksLikeBolt(head) {
		return true
	}
	r := bytes.NewReader(head)
	for _, page := range []int64{4096, 8192, 16384} {
		for id := int64(2); (id+1)*page <= int64(len(head)); id++ {
			if isBoltPage(r, id, page) {
				return true
			}
		}
	}
	return false
}
