package locate

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
	"github.com/ulikunitz/xz/lzma"

	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// headLen is how much of a file is read to recognize it, in bytes.
const headLen = 64 << 10

// maxLayers bounds how often a file may be compressed.
const maxLayers = 3

// errPacking is wrapped by every error about the compression or the archive around a backup, as opposed to errors of
// reading the file.
var errPacking = errors.New("the packing is damaged")

// packingError wraps an error of a decoder.
type packingError struct {
	what string
	err  error
}

// Error names the layer and returns the decoder's message.
func (e *packingError) Error() string { return fmt.Sprintf("%s: %v", e.what, e.err) }

// Unwrap returns the decoder's error and errPacking.
func (e *packingError) Unwrap() []error { return []error{errPacking, e.err} }

// layer is one compression.
type layer struct {
	name  string
	magic []byte
	open  func(*bufio.Reader) (io.Reader, error)
}

// The magic numbers: RFC 1952 for gzip, RFC 8878 for zstd, the xz file format 1.1.0, bzip2 from its program.
var layers = []layer{
	{"gzip", []byte{0x1f, 0x8b}, func(r *bufio.Reader) (io.Reader, error) { return gzip.NewReader(r) }},
	{"zstd", []byte{0x28, 0xb5, 0x2f, 0xfd}, func(r *bufio.Reader) (io.Reader, error) {
		return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	}},
	{"xz", []byte{0xfd, '7', 'z', 'X', 'Z', 0}, openXZ},
	{"bzip2", []byte("BZh"), func(r *bufio.Reader) (io.Reader, error) { return bzip2.NewReader(r), nil }},
}

// maxWindow bounds the memory that the header of a compressed file may request; xz -9 and zstd --long use up to 128
// MiB.
const maxWindow = 512 << 20

// openXZ refuses a dictionary that is larger than common settings use, since it is allocated before the first byte is
// decoded.
func openXZ(r *bufio.Reader) (io.Reader, error) {
	head, err := r.Peek(xzHeaders)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if size := xzDictionary(head); size > maxWindow {
		return nil, fmt.Errorf("it needs a dictionary of %s, at most %s are allowed", plural.Size(size),
			plural.Size(maxWindow))
	}
	in := &lastBytes{r: r}
	x, err := xz.NewReader(in)
	return &xzReader{x, in}, err
}

// xzReader reports a stream without its footer, which xz.Reader takes for complete if it is cut before a block.
type xzReader struct {
	*xz.Reader
	in *lastBytes
}

// Read implements io.Reader.
func (x *xzReader) Read(p []byte) (int, error) {
	n, err := x.Reader.Read(p)
	if errors.Is(err, io.EOF) && x.in.last != [2]byte{'Y', 'Z'} {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// lastBytes keeps the last two bytes that were read, without zeros at the end: those may pad an xz stream.
type lastBytes struct {
	r    io.Reader
	last [2]byte
}

// Read implements io.Reader.
func (l *lastBytes) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	read := bytes.TrimRight(p[:n], "\x00")
	for _, b := range read[max(0, len(read)-len(l.last)):] {
		l.last[0], l.last[1] = l.last[1], b
	}
	return n, err
}

// xzHeaders is the length of the stream header and of the needed part of the first block header.
const xzHeaders, xzStreamHeader = 12 + 32, 12

// xzDictionary reads the size of the dictionary from the first block header (xz file format, 3.1): header size, flags,
// two optional sizes, then the filters. It returns 0 if the first filter is not LZMA2.
func xzDictionary(head []byte) int64 {
	if len(head) < xzStreamHeader+2 {
		return 0
	}
	flags, rest := head[xzStreamHeader+1], head[xzStreamHeader+2:]
	for _, present := range []byte{0x40, 0x80} {
		if flags&present == 0 {
			continue
		}
		_, n := binary.Uvarint(rest)
		if n <= 0 {
			return 0
		}
		rest = rest[n:]
	}
	if len(rest) < 3 || rest[0] != 0x21 || rest[1] != 1 {
		return 0
	}
	size, err := lzma.DecodeDictCap(rest[2])
	if err != nil {
		return 0
	}
	return size
}

// unwrapped is the content of a stream without its compression.
type unwrapped struct {
	*bufio.Reader
	// layers names the compressions, outermost first.
	layers  []string
	closers []func()
}

// unwrap removes compression, whatever the file's name. Errors of decoders are *packingError.
func unwrap(r io.Reader) (*unwrapped, error) {
	u := &unwrapped{Reader: bufio.NewReaderSize(r, headLen)}
	for range maxLayers {
		head, err := u.Peek(6)
		if err != nil && !errors.Is(err, io.EOF) {
			u.close()
			return nil, err
		}
		l := layerOf(head)
		if l == nil {
			break
		}
		inner, err := l.open(u.Reader)
		if err != nil {
			u.close()
			return nil, &packingError{l.name, err}
		}
		switch c := inner.(type) {
		case *zstd.Decoder:
			u.closers = append(u.closers, c.Close)
		case io.Closer:
			u.closers = append(u.closers, func() { _ = c.Close() }) // a decoder that only reads
		}
		u.layers = append(u.layers, l.name)
		u.Reader = bufio.NewReaderSize(&layerReader{l.name, inner}, headLen)
	}
	return u, nil
}

func layerOf(head []byte) *layer {
	for i := range layers {
		if bytes.HasPrefix(head, layers[i].magic) {
			return &layers[i]
		}
	}
	return nil
}

func (u *unwrapped) close() {
	for i := len(u.closers) - 1; i >= 0; i-- {
		u.closers[i]()
	}
}

// layerReader marks the errors of a decoder.
type layerReader struct {
	name string
	r    io.Reader
}

// Read implements io.Reader.
func (l *layerReader) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = &packingError{l.name, err}
	}
	return n, err
}
