package render

import (
	"encoding/base64"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/etcd-medic/etcd-medic/compare"
)

// jsonDoc is a stream as one JSON document: schemaVersion, source, rows.
type jsonDoc struct{}

func (jsonDoc) begin(dst []byte, h Head) []byte {
	from := len(dst)
	dst = append(dst, `{"schemaVersion":`...)
	dst = strconv.AppendInt(dst, compare.SchemaVersion, 10)
	dst = append(dst, `,"source":{"name":`...)
	dst = appendJSONString(dst, h.Source)
	dst = append(dst, `,"kind":`...)
	dst = appendJSONString(dst, h.SourceKind)
	return append(safeFrom(dst, from, true), `},"rows":[`...)
}

func (jsonDoc) row(dst []byte, r Row, o Options) []byte {
	return appendJSONRow(append(dst, ",\n"...), r, o)
}

// first keeps the line feed and removes the comma.
func (jsonDoc) first(row []byte) []byte { return row[1:] }
func (jsonDoc) end(dst []byte) []byte   { return append(dst, "\n]}\n"...) }

// jsonLines is a stream as one JSON object per line.
type jsonLines struct{}

func (jsonLines) begin(dst []byte, _ Head) []byte { return dst }
func (jsonLines) row(dst []byte, r Row, o Options) []byte {
	return append(appendJSONRow(dst, r, o), '\n')
}
func (jsonLines) first(row []byte) []byte { return row }
func (jsonLines) end(dst []byte) []byte   { return dst }

func appendJSONRow(dst []byte, r Row, o Options) []byte {
	f := jsonFields{buf: append(dst, `{"kind":`...), o: o}
	f.buf = appendJSONString(f.buf, r.Kind())
	f.comma = true
	from := len(dst)
	r.Fields(&f)
	return append(safeFrom(f.buf, from, true), '}')
}

// jsonFields appends fields of one JSON object.
type jsonFields struct {
	buf   []byte
	o     Options
	comma bool
}

func (j *jsonFields) name(n string) {
	if j.comma {
		j.buf = append(j.buf, ',')
	}
	j.comma = true
	j.buf = append(j.buf, '"')
	j.buf = append(j.buf, n...) // names are identifiers of this package
	j.buf = append(j.buf, `":`...)
}

// Str adds a string.
func (j *jsonFields) Str(n, v string) {
	j.name(n)
	j.buf = appendJSONString(j.buf, v)
}

// Int adds a number.
func (j *jsonFields) Int(n string, v int64) {
	j.name(n)
	j.buf = strconv.AppendInt(j.buf, v, 10)
}

// Uint adds a number.
func (j *jsonFields) Uint(n string, v uint64) {
	j.name(n)
	j.buf = strconv.AppendUint(j.buf, v, 10)
}

// ID adds a string of hexadecimal digits: JSON numbers cannot hold every 64-bit ID.
func (j *jsonFields) ID(n string, v uint64) {
	j.name(n)
	j.hex(v)
}

func (j *jsonFields) hex(v uint64) {
	j.buf = append(strconv.AppendUint(append(j.buf, '"'), v, 16), '"')
}

// Bool adds true or false.
func (j *jsonFields) Bool(n string, v bool) {
	j.name(n)
	j.buf = strconv.AppendBool(j.buf, v)
}

// Bytes adds {"text":...} or {"base64":...}.
func (j *jsonFields) Bytes(n string, v []byte) {
	j.name(n)
	j.buf = appendJSONBytes(j.buf, v)
}

// Value adds {"len":...,"digest":...}, or the bytes with Options.Values.
func (j *jsonFields) Value(n string, v []byte) {
	j.content(n, v, j.o.Values)
}

// Raw is Value for data that may contain secrets: it also needs Options.Secrets.
func (j *jsonFields) Raw(n string, v []byte) { j.content(n, v, j.o.Values && j.o.Secrets) }

func (j *jsonFields) content(n string, v []byte, show bool) {
	j.name(n)
	if show {
		j.buf = appendJSONBytes(j.buf, v)
		return
	}
	j.buf = append(j.buf, `{"len":`...)
	j.buf = strconv.AppendInt(j.buf, int64(len(v)), 10)
	j.buf = append(j.buf, `,"digest":"`...)
	j.buf = append(j.o.Redact.Append(j.buf, v), `"}`...)
}

// Secret adds {"secret":true}, or the bytes with Options.Secrets.
func (j *jsonFields) Secret(n string, v []byte) {
	j.name(n)
	if j.o.Secrets {
		j.buf = appendJSONBytes(j.buf, v)
		return
	}
	j.buf = append(j.buf, `{"secret":true}`...)
}

// JSON adds a document, which must be valid JSON.
func (j *jsonFields) JSON(n string, text []byte) {
	j.name(n)
	j.buf = append(j.buf, text...)
}

// Strs adds an array of strings.
func (j *jsonFields) Strs(n string, v []string) {
	j.name(n)
	j.buf = append(j.buf, '[')
	for i, s := range v {
		if i > 0 {
			j.buf = append(j.buf, ',')
		}
		j.buf = appendJSONString(j.buf, s)
	}
	j.buf = append(j.buf, ']')
}

// IDs adds an array of hexadecimal strings.
func (j *jsonFields) IDs(n string, count int, at func(int) uint64) {
	j.name(n)
	j.buf = append(j.buf, '[')
	for i := range count {
		if i > 0 {
			j.buf = append(j.buf, ',')
		}
		j.hex(at(i))
	}
	j.buf = append(j.buf, ']')
}

// Obj adds an object.
func (j *jsonFields) Obj(n string, fn func(Fields)) {
	j.name(n)
	j.nest(fn)
}

func (j *jsonFields) nest(fn func(Fields)) {
	j.buf = append(j.buf, '{')
	j.comma = false
	fn(j)
	j.comma = true
	j.buf = append(j.buf, '}')
}

// List adds an array of objects.
func (j *jsonFields) List(n string, count int, fn func(int, Fields)) {
	j.name(n)
	j.buf = append(j.buf, '[')
	for i := range count {
		if i > 0 {
			j.buf = append(j.buf, ',')
		}
		j.nest(func(f Fields) { fn(i, f) })
	}
	j.buf = append(j.buf, ']')
}

// appendJSONBytes writes bytes as in the JSON contract: text if printable UTF-8, else base64.
func appendJSONBytes(dst, b []byte) []byte {
	if printable(b) {
		return append(appendJSONString(append(dst, `{"text":`...), string(b)), '}')
	}
	dst = append(dst, `{"base64":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, b)
	return append(dst, `"}`...)
}

// printable agrees with check.Bytes.Printable; it decides plain ASCII, the usual case, without decoding runes.
func printable(b []byte) bool {
	for i, c := range b {
		if c < ' ' || c == 0x7f {
			return false
		}
		if c >= utf8.RuneSelf {
			return printableRunes(b[i:])
		}
	}
	return true
}

func printableRunes(b []byte) bool {
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n <= 1 || !unicode.IsPrint(r) {
			return false
		}
		b = b[n:]
	}
	return true
}

// appendJSONString writes a JSON string; invalid UTF-8 becomes the replacement character, as encoding/json does.
func appendJSONString(dst []byte, s string) []byte {
	const hexDigits = "0123456789abcdef"
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
			i++
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			i++
		case c < utf8.RuneSelf:
			dst = append(dst, c)
			i++
		default:
			r, n := utf8.DecodeRuneInString(s[i:])
			dst = utf8.AppendRune(dst, r)
			i += n
		}
	}
	return append(dst, '"')
}
