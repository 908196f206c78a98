package render

import "strconv"

// fieldLines is a stream as "name" : value lines with a blank line between rows, like etcdctl -w fields. Nested names
// are joined with dots.
type fieldLines struct{}

func (fieldLines) begin(dst []byte, _ Head) []byte { return dst }

func (fieldLines) row(dst []byte, r Row, o Options) []byte {
	f := flatFields{buf: append(dst, '\n'), o: o}
	f.Str("kind", r.Kind())
	from := len(dst)
	r.Fields(&f)
	return safeFrom(f.buf, from, true)
}

// first removes the blank line.
func (fieldLines) first(row []byte) []byte { return row[1:] }
func (fieldLines) end(dst []byte) []byte   { return dst }

// flatFields writes each value on a separate line with its full name.
type flatFields struct {
	buf    []byte
	prefix string
	o      Options
}

func (f *flatFields) line(n string, value func(*textFields)) {
	f.buf = append(f.buf, '"')
	f.buf = append(append(f.buf, f.prefix...), n...)
	f.buf = append(f.buf, `" : `...)
	t := textFields{buf: f.buf, o: f.o}
	value(&t)
	t.buf = append(t.buf, '\n')
	f.buf = t.buf
}

// via removes the " name=" that textFields writes.
func (f *flatFields) via(n string, put func(*textFields)) {
	f.line(n, func(t *textFields) {
		at := len(t.buf)
		t.bare = true
		put(t)
		t.buf = append(t.buf[:at], t.buf[at+1:]...) // the empty name leaves "="
	})
}

// Str writes a quoted string.
func (f *flatFields) Str(n, v string) {
	f.line(n, func(t *textFields) { t.buf = strconv.AppendQuote(t.buf, v) })
}

// Int writes a decimal number.
func (f *flatFields) Int(n string, v int64) { f.via(n, func(t *textFields) { t.Int("", v) }) }

// Uint writes a decimal number.
func (f *flatFields) Uint(n string, v uint64) { f.via(n, func(t *textFields) { t.Uint("", v) }) }

// ID writes a hexadecimal ID.
func (f *flatFields) ID(n string, v uint64) { f.via(n, func(t *textFields) { t.ID("", v) }) }

// Bool writes true or false.
func (f *flatFields) Bool(n string, v bool) { f.via(n, func(t *textFields) { t.Bool("", v) }) }

// Bytes writes a quoted string with escapes for what is not printable.
func (f *flatFields) Bytes(n string, v []byte) {
	f.via(n, func(t *textFields) { t.Bytes("", v) })
}

// Value writes length and digest, or the value with Options.Values.
func (f *flatFields) Value(n string, v []byte) { f.via(n, func(t *textFields) { t.Value("", v) }) }

// Raw is Value for data that may contain secrets: it also needs Options.Secrets.
func (f *flatFields) Raw(n string, v []byte) { f.via(n, func(t *textFields) { t.Raw("", v) }) }

// Secret writes the value only with Options.Secrets.
func (f *flatFields) Secret(n string, v []byte) { f.via(n, func(t *textFields) { t.Secret("", v) }) }

// Strs writes all texts in brackets on one line.
func (f *flatFields) Strs(n string, v []string) { f.via(n, func(t *textFields) { t.Strs("", v) }) }

// JSON writes the document as it is; it must be on one line.
func (f *flatFields) JSON(n string, text []byte) {
	f.line(n, func(t *textFields) { t.buf = append(t.buf, text...) })
}

// IDs writes hexadecimal IDs in brackets on one line.
func (f *flatFields) IDs(n string, count int, at func(int) uint64) {
	f.via(n, func(t *textFields) { t.IDs("", count, at) })
}

// Obj writes the nested fields with n and a dot before their names.
func (f *flatFields) Obj(n string, fn func(Fields)) {
	was := f.prefix
	f.prefix = was + n + "."
	fn(f)
	f.prefix = was
}

// List writes the fields of each item with n[i] and a dot before their names.
func (f *flatFields) List(n string, count int, fn func(int, Fields)) {
	was := f.prefix
	for i := range count {
		f.prefix = was + n + "[" + strconv.Itoa(i) + "]."
		fn(i, f)
	}
	f.prefix = was
}
