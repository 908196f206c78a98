package render

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"strings"

	"github.com/etcd-medic/etcd-medic/shell"
)

// What comes from evidence must not reach a terminal as something that it obeys: control characters of both blocks,
// marks that reorder or hide text, and bytes that are no text. Everything that is printed passes one of the functions
// here: lines of a page and of a stream, JSON, and what goes to stderr.

// safeFrom makes what was appended to dst since from safe.
func safeFrom(dst []byte, from int, json bool) []byte {
	if shell.IsSafe(dst[from:]) {
		return dst
	}
	return shell.AppendSafe(dst[:from], bytes.Clone(dst[from:]), json)
}

// Safe returns text as it may be shown.
func Safe(s string) string { return string(safeFrom([]byte(s), 0, false)) }

// SafeWriter makes what is written to w safe. Every Write is taken for whole: no character is spread over two.
func SafeWriter(w io.Writer) io.Writer { return safeWriter{w, false} }

// SafeJSONWriter does the same with JSON, which stays valid.
func SafeJSONWriter(w io.Writer) io.Writer { return safeWriter{w, true} }

type safeWriter struct {
	w    io.Writer
	json bool
}

// Write writes text as it may be shown.
func (s safeWriter) Write(b []byte) (int, error) {
	if shell.IsSafe(b) {
		return s.w.Write(b)
	}
	if _, err := s.w.Write(shell.AppendSafe(nil, b, s.json)); err != nil {
		return 0, err
	}
	return len(b), nil
}

// painter colors text. Its sequences carry a number that nobody can know, so that those in evidence are told from its
// own.
type painter struct{ mark string }

func newPainter() painter { return painter{"\x1b[" + fmt.Sprint(secretNumber()) + ";"} }

// secretNumber is for the sequences of one page; nothing that is printed depends on it.
func secretNumber() uint32 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // it never fails
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

// paint wraps text in a sequence: codes and a letter m.
func (p painter) paint(s, codes string) string {
	return p.mark + codes + "m" + s + p.mark + "0m"
}

// line returns a line as it may be shown: its own colors are left, all else is made safe, and line feeds in it are
// escaped.
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
