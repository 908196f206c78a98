package render

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"strings"

	"github.com/etcd-medic/etcd-medic/shell"
)

// Text from evidence must not control a terminal: control characters of both blocks, characters that reorder or hide
// text, and invalid UTF-8. All output passes through one of the functions here: lines of a page and of a stream, JSON,
// and stderr.

// safeFrom makes the bytes of dst after from safe.
func safeFrom(dst []byte, from int, json bool) []byte {
	if shell.IsSafe(dst[from:]) {
		return dst
	}
	return shell.AppendSafe(dst[:from], bytes.Clone(dst[from:]), json)
}

// Safe returns text that is safe to show.
func Safe(s string) string { return string(safeFrom([]byte(s), 0, false)) }

// SafeWriter makes text written to w safe. A character must not be split over two calls of Write.
func SafeWriter(w io.Writer) io.Writer { return safeWriter{w, false} }

// SafeJSONWriter does the same with JSON, which stays valid.
func SafeJSONWriter(w io.Writer) io.Writer { return safeWriter{w, true} }

type safeWriter struct {
	w    io.Writer
	json bool
}

// Write writes text in its safe form.
func (s safeWriter) Write(b []byte) (int, error) {
	if shell.IsSafe(b) {
		return s.w.Write(b)
	}
	if _, err := s.w.Write(shell.AppendSafe(nil, b, s.json)); err != nil {
		return 0, err
	}
	return len(b), nil
}

// painter colors text. Its sequences contain a secret number, which distinguishes them from sequences in evidence.
type painter struct{ mark string }

func newPainter() painter { return painter{"\x1b[" + fmt.Sprint(secretNumber()) + ";"} }

// secretNumber is for the sequences of one page; it is never printed.
func secretNumber() uint32 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // it never fails
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

// paint wraps text in a sequence: codes and a letter m.
func (p painter) paint(s, codes string) string {
	return p.mark + codes + "m" + s + p.mark + "0m"
}

// line returns a line that is safe to show: it keeps the painter's colors, makes the rest safe and escapes line feeds.
func (p painter) line(s string) string {
	s = strings.ReplaceAll(s, "\n", `\n`)
	if shell.IsSafe([]byte(s)) {
		return s
	}
	var b strings.Builder
	for i, piece := range strings.Split(s, p.mark) {
		if i > 0 {
			codes, rest, _ := strings.Cut(piece, "m")
			b.WriteString("\x1b[" + codes + "m")
			piece = rest
		}
		b.WriteString(Safe(piece))
	}
	return b.String()
}
