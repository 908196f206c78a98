package render

import (
	"bufio"
	"cmp"
	"errors"
	"io"
)

// Row is one typed row of a stream.
type Row interface {
	// Kind names the type of the row in JSON, such as "entry".
	Kind() string
	// Line appends the row as one line of text, without the line feed.
	Line(dst []byte, o Options) []byte
	// Fields passes the row's values to f, in a stable order.
	Fields(f Fields)
}

// Fields receives the named values of a row. One description of a row serves every format.
type Fields interface {
	// Str, Int, Uint and Bool are plain values: text, decimal numbers, true or false.
	Str(name, v string)
	Int(name string, v int64)
	Uint(name string, v uint64)
	// ID is an identifier: lower-case hex, a string in JSON.
	ID(name string, v uint64)
	Bool(name string, v bool)
	// Bytes are keys and names, shown in full.
	Bytes(name string, v []byte)
	// Value is content: shown as length and digest unless values are requested.
	Value(name string, v []byte)
	// Raw is content that may contain secrets: shown only if values and secrets are requested.
	Raw(name string, v []byte)
	// Secret is a password, hash or token: hidden unless secrets are requested.
	Secret(name string, v []byte)
	// JSON is decoded content: a whole JSON text. Lines of text omit it; rows show it below.
	JSON(name string, text []byte)
	// Strs and IDs are lists of texts and identifiers; at returns item i of n.
	Strs(name string, v []string)
	IDs(name string, n int, at func(i int) uint64)
	// Obj is a group of fields, List a list of n groups.
	Obj(name string, fn func(Fields))
	List(name string, n int, fn func(i int, f Fields))
}

// Head is the start of a stream before its first row.
type Head struct {
	// Source is the label of the source, SourceKind what it is.
	Source, SourceKind string
}

// encoder is one format of a stream. row adds a separator before each row; first removes it from the first one.
type encoder interface {
	begin(dst []byte, h Head) []byte
	row(dst []byte, r Row, o Options) []byte
	first(row []byte) []byte
	end(dst []byte) []byte
}

func newEncoder(f Format, o Options) encoder {
	switch f {
	case Table:
		if o.Columns {
			return tableRows{}
		}
	case JSON:
		return jsonDoc{}
	case JSONL:
		return jsonLines{}
	case Lines:
		return fieldLines{}
	}
	return textLines{}
}

// Stream writes rows in one format. Its memory does not grow with their number.
type Stream struct {
	w    *bufio.Writer
	enc  encoder
	head Head
	o    Options
	buf  []byte
	rows int
	// table lays out rows for w, nil if they are written unchanged.
	table *columnWriter
}

// NewStream prepares a stream on w. Nothing is written before the first row or Close.
func NewStream(w io.Writer, f Format, h Head, o Options) *Stream {
	s := &Stream{enc: newEncoder(f, o), head: h, o: o}
	if _, ok := s.enc.(tableRows); ok {
		s.table = &columnWriter{w: w, width: cmp.Or(o.Width, 80), bold: o.Color}
		w = s.table
	}
	s.w = bufio.NewWriterSize(w, 64<<10)
	return s
}

// Write adds one row.
func (s *Stream) Write(r Row) error {
	s.buf = s.enc.row(s.buf[:0], r, s.o)
	return s.writeRaw(s.buf)
}

// Encode appends the row as this stream writes it; WriteEncoded adds such rows. Encode is safe for concurrent use, so
// that one goroutine can encode while another writes.
func (s *Stream) Encode(dst []byte, r Row) []byte { return s.enc.row(dst, r, s.o) }

// Options returns the options of the stream.
func (s *Stream) Options() Options { return s.o }

// WriteEncoded writes what Encode returned for one or more rows.
func (s *Stream) WriteEncoded(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	return s.writeRaw(b)
}

func (s *Stream) writeRaw(b []byte) error {
	if s.rows == 0 {
		if _, err := s.w.Write(s.enc.begin(nil, s.head)); err != nil {
			return err
		}
		b = s.enc.first(b)
	}
	s.rows++
	_, err := s.w.Write(b)
	return err
}

// Flush writes buffered rows to the underlying writer, for streams that are watched live.
func (s *Stream) Flush() error {
	err := s.w.Flush()
	if s.table != nil && err == nil {
		err = s.table.flush()
	}
	return err
}

// Close ends the document and flushes. After an error, which it returns, the document stays incomplete, so that it is
// not mistaken for a complete one. It does not close the underlying writer.
func (s *Stream) Close(err error) error {
	if err == nil {
		var tail []byte
		if s.rows == 0 {
			tail = s.enc.begin(nil, s.head)
		}
		_, err = s.w.Write(s.enc.end(tail))
	}
	failed := s.w.Flush() // after a failed write its error
	if !errors.Is(err, failed) {
		err = errors.Join(err, failed)
	}
	if s.table != nil && failed == nil {
		err = errors.Join(err, s.table.end())
	}
	return err
}
