package evidence

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"github.com/etcd-medic/etcd-medic/internal/regular"
)

// trailerLen is the size of the sha256 that snapshot save appends to a file whose size is a multiple of the page size.
const trailerLen = 32

// boltMagic is go.etcd.io/bbolt's magic number in both meta pages, after the 16 byte page header.
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

// looksLikeBolt recognizes a bbolt file by the magic of either meta page, so that one damaged meta page does not
// matter.
func looksLikeBolt(head []byte) bool {
	for _, page := range []int{0, 512, 1024, 2048, 4096, 8192} {
		if len(head) >= page+20 && binary.LittleEndian.Uint32(head[page+16:]) == boltMagic {
			return true
		}
	}
	return false
}

// looksLikeSnapshot recognizes a file from bbolt's Tx.WriteTo (snapshot save, .snap.db): both meta pages have the same
// root, and meta 0 is one transaction ahead. A commit always moves the root, so a live db never has this.
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

// boltHead is how every bbolt file begins: page 0 of type meta, without elements and overflow, and the magic number.
const boltHead = "\x00\x00\x00\x00\x00\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\xED\xDA\x0C\xED"

// sniffPages bounds how many pages are searched for a bbolt page.
const sniffPages = 256

// hasBoltPages reports whether a file is or was a bbolt database. It has the magic number or, if both meta pages are
// overwritten, pages with their own number and a type. Noise and other files have neither. A file that ends before the
// magic number is one if it begins as every database does.
func hasBoltPages(path string, size int64) bool {
	head := make([]byte, 8192+32)
	n, err := readHead(path, head)
	if err != nil || looksLikeBolt(head[:n]) {
		return true // an unreadable file is reported when it is opened
	}
	if n < len(boltHead) {
		return string(head[:n]) == boltHead[:n]
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

// isBoltPage reports whether the header at that page contains its own page number and the type of a branch, leaf or
// freelist page.
func isBoltPage(r io.ReaderAt, id, pageSize int64) bool {
	var h [16]byte
	if _, err := r.ReadAt(h[:], id*pageSize); err != nil {
		return false
	}
	flags := binary.LittleEndian.Uint16(h[8:])
	return binary.LittleEndian.Uint64(h[:]) == uint64(id) && (flags == 1 || flags == 2 || flags == 16)
}

// IsDatabaseHead reports, from the first bytes of a file, whether it is or was a bbolt database: by the magic number
// or, if the meta pages are overwritten, by pages with their own number.
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
