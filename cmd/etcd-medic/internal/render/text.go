package render

import "strconv"

// textLines is the text format of a stream: one line per row, for searching.
type textLines struct{}

func (textLines) begin(dst []byte, _ Head) []byte { return dst }
func (textLines) row(dst []byte, r Row, o Options) []byte {
	from := len(dst)
	return append(safeFrom(r.Line(dst, o), from, false), '\n')
}
func (textLines) first(row []byte) []byte { return row }
func (textLines) end(dst []byte) []byte   { return dst }

// textFields appends " name=value" for each field: the readable form of a request inside a line.
type textFields struct {
	buf []byte
	o   Options
	// bare omits the space before the first field.
	bare bool
}

func (t *textFields) name(n string) {
	if !t.bare {
		t.buf = append(t.buf, ' ')
	}
	t.bare = false
	t.buf = append(append(t.buf, n...), '=')
}

// Str writes the text, quoted only if it would be ambiguous.
func (t *textFields) Str(n, v string) {
	t.name(n)
	t.buf = appendWord(t.buf, v)
}

// Int writes a decimal number.
func (t *textFields) Int(n string, v int64) {
	t.name(n)
	t.buf = strconv.AppendInt(t.buf, v, 10)
}

// Uint writes a decimal number.
func (t *textFields) Uint(n string, v uint64) {
	t.name(n)
	t.buf = strconv.AppendUint(t.buf, v, 10)
}

// ID writes a hexadecimal ID.
func (t *textFields) ID(n string, v uint64) {
	t.name(n)
	t.buf = strconv.AppendUint(t.buf, v, 16)
}

// Bool writes true or false.
func (t *textFields) Bool(n string, v bool) {
	t.name(n)
	t.buf = strconv.AppendBool(t.buf, v)
}

// Bytes writes a quoted string with escapes for what is not printable.
func (t *textFields) Bytes(n string, v []byte) {
	t.name(n)
	t.buf = strconv.AppendQuote(t.buf, string(v))
}

// Value writes length and digest, or the value with Options.Values.
func (t *textFields) Value(n string, v []byte) {
	t.content(n, v, t.o.Values)
}

// Raw is Value for data that may contain secrets: it also needs Options.Secrets.
func (t *textFields) Raw(n string, v []byte) { t.content(n, v, t.o.Values && t.o.Secrets) }

func (t *textFields) content(n string, v []byte, show bool) {
	t.name(n)
	if show {
		t.buf = strconv.AppendQuote(t.buf, string(v))
		return
	}
	t.buf = append(t.buf, "<len "...)
	t.buf = strconv.AppendInt(t.buf, int64(len(v)), 10)
	t.buf = append(t.buf, " digest "...)
	t.buf = append(t.o.Redact.Append(t.buf, v), '>')
}

// Secret writes <secret>, or the value with Options.Secrets.
func (t *textFields) Secret(n string, v []byte) {
	t.name(n)
	if t.o.Secrets {
		t.buf = strconv.AppendQuote(t.buf, string(v))
		return
	}
	t.buf = append(t.buf, "<secret>"...)
}

// JSON writes nothing: the document does not fit on a line for people.
func (t *textFields) JSON(string, []byte) {}

// Strs writes the texts in brackets.
func (t *textFields) Strs(n string, v []string) {
	t.name(n)
	t.buf = append(t.buf, '[')
	for i, s := range v {
		if i > 0 {
			t.buf = append(t.buf, ' ')
		}
		t.buf = appendWord(t.buf, s)
	}
	t.buf = append(t.buf, ']')
}

// IDs writes hexadecimal IDs in brackets.
func (t *textFields) IDs(n string, count int, at func(int) uint64) {
	t.name(n)
	t.buf = append(t.buf, '[')
	for i := range count {
		if i > 0 {
			t.buf = append(t.buf, ' ')
		}
		t.buf = strconv.AppendUint(t.buf, at(i), 16)
	}
	t.buf = append(t.buf, ']')
}

// Obj writes the nested fields in braces.
func (t *textFields) Obj(n string, fn func(Fields)) {
	t.name(n)
	t.nest(fn)
}

func (t *textFields) nest(fn func(Fields)) {
	t.buf = append(t.buf, '{')
	t.bare = true
	fn(t)
	t.bare = false
	t.buf = append(t.buf, '}')
}

// List writes each item in braces, all of them in brackets.
func (t *textFields) List(n string, count int, fn func(int, Fields)) {
	t.name(n)
	t.buf = append(t.buf, '[')
	for i := range count {
		if i > 0 {
			t.buf = append(t.buf, ' ')
		}
		t.nest(func(f Fields) { fn(i, f) })
	}
	t.buf = append(t.buf, ']')
}

// appendWord appends a string without quotes if that is unambiguous, else quoted.
func appendWord(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == '"' || c == '=' || c == '{' || c == '[' || c == ']' || c == '}' {
			return strconv.AppendQuote(dst, s)
		}
	}
	if s == "" {
		return append(dst, `""`...)
	}
	return append(dst, s...)
}
