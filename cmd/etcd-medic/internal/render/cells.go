package render

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"unicode"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// The bytes that separate cells between encoding and layout. Text that is safe to show contains none of them.
const (
	cellEnd  = '\x1f' // after each cell: name, cellName, value
	cellName = '\x1e'
	noteMark = '\x1d' // starts a line that is not a row of a table
)

// tableRows is a stream for a terminal: rows as cells, for columnWriter.
type tableRows struct{}

func (tableRows) begin(dst []byte, _ Head) []byte { return dst }
func (tableRows) first(row []byte) []byte         { return row }
func (tableRows) end(dst []byte) []byte           { return dst }

func (tableRows) row(dst []byte, r Row, o Options) []byte {
	if isNote(r) {
		return appendNotes(dst, r.Line(nil, o))
	}
	c := cells{o: o}
	var below []byte
	switch v := r.(type) {
	case *LogEntry:
		v.cells(&c)
	case *LogRecord:
		v.cells(&c)
	case KeyRow:
		v.cells(&c)
		below = v.appendObject(nil)
	case *KeyRow:
		v.cells(&c)
		below = v.appendObject(nil)
	case SalvagedRow:
		v.KeyRow.cells(&c)
		v.origin(&c)
		below = v.KeyRow.appendObject(nil)
	default:
		r.Fields(&c)
	}
	return appendNotes(append(append(dst, c.buf...), '\n'), below)
}

// isNote reports whether a row is about the whole or about damage. Such rows are printed between tables, in full.
func isNote(r Row) bool {
	switch r.(type) {
	case LogHead, LogSegment, LogPeer, LogDamage, LogLeftOver, SnapMissing, MetaPage, PageSummary, TrailerRow, DBDamage:
		return true
	}
	return false
}

func appendNotes(dst, text []byte) []byte {
	for line := range bytes.Lines(text) {
		if line = bytes.TrimRight(line, "\n"); len(line) > 0 {
			dst = append(dst, noteMark)
			from := len(dst)
			dst = append(safeFrom(append(dst, line...), from, false), '\n')
		}
	}
	return dst
}

// cells receives a row as the cells of a table: one per field, nested ones as text.
type cells struct {
	buf []byte
	o   Options
}

func (c *cells) put(name string, value []byte) {
	c.buf = append(append(c.buf, title(name)...), cellName)
	from := len(c.buf)
	if bytes.ContainsFunc(value, unicode.IsControl) { // a line break, or a separator of cells
		value = strconv.AppendQuote(nil, string(value))
	}
	c.buf = append(safeFrom(append(c.buf, value...), from, false), cellEnd)
}

// text adds a value in the form of text lines.
func (c *cells) text(name string, write func(*textFields)) {
	t := textFields{o: c.o, bare: true}
	write(&t)
	_, value, _ := bytes.Cut(t.buf, []byte("="))
	c.put(name, value)
}

// Str adds a cell with the text itself.
func (c *cells) Str(n, v string) { c.put(n, []byte(v)) }

// Int adds a cell with a decimal number.
func (c *cells) Int(n string, v int64) { c.put(n, strconv.AppendInt(nil, v, 10)) }

// Uint adds a cell with a decimal number.
func (c *cells) Uint(n string, v uint64) { c.put(n, strconv.AppendUint(nil, v, 10)) }

// ID adds a cell with a hexadecimal ID.
func (c *cells) ID(n string, v uint64) { c.put(n, strconv.AppendUint(nil, v, 16)) }

// Bool adds true or false.
func (c *cells) Bool(n string, v bool) { c.put(n, strconv.AppendBool(nil, v)) }

// Secret adds a cell that shows the value only with Options.Secrets.
func (c *cells) Secret(n string, v []byte) { c.text(n, func(t *textFields) { t.Secret("", v) }) }

// JSON adds nothing: JSON documents appear only in the formats that can hold them.
func (c *cells) JSON(string, []byte) {}

// Strs adds one cell with the texts, separated by spaces.
func (c *cells) Strs(n string, v []string) { c.put(n, []byte(strings.Join(v, " "))) }

// Value adds the length and digest of a value, or the value with Options.Values.
func (c *cells) Value(n string, v []byte) { c.content(n, v, c.o.Values) }

// Raw is Value for data that may contain secrets: it also needs Options.Secrets.
func (c *cells) Raw(n string, v []byte) { c.content(n, v, c.o.Values && c.o.Secrets) }

// Obj adds one cell with the nested fields in the form of text lines.
func (c *cells) Obj(n string, f func(Fields)) {
	c.text(n, func(t *textFields) {
		t.buf = append(t.buf, '=')
		f(t)
	})
}

// Bytes writes bytes without quotes if that is unambiguous, as for most names and keys.
func (c *cells) Bytes(n string, v []byte) { c.put(n, appendWord(nil, string(v))) }

// content writes the length and digest of a value, or the value.
func (c *cells) content(n string, v []byte, show bool) {
	if show {
		c.put(n, strconv.AppendQuote(nil, string(v)))
		return
	}
	c.put(n, c.o.Redact.Append(append(strconv.AppendInt(nil, int64(len(v)), 10), " B "...), v))
}

// IDs adds one cell with hexadecimal IDs, separated by spaces.
func (c *cells) IDs(n string, count int, at func(int) uint64) {
	var b []byte
	for i := range count {
		b = append(strconv.AppendUint(b, at(i), 16), ' ')
	}
	c.put(n, bytes.TrimSuffix(b, []byte(" ")))
}

// List adds one cell with the items in the form of text lines.
func (c *cells) List(n string, count int, f func(int, Fields)) {
	c.text(n, func(t *textFields) { t.List("", count, f) })
}

// title makes a heading of a field's name: peerURLs is PEER URLS.
func title(name string) string {
	var b strings.Builder
	lower := false
	for _, r := range name {
		if unicode.IsUpper(r) && lower {
			b.WriteByte(' ')
		}
		lower = unicode.IsLower(r)
		b.WriteRune(unicode.ToUpper(r))
	}
	return b.String()
}

// cells are ordered by interest: first the index, the request and the proposer, last the position in the file.
func (e *LogEntry) cells(c *cells) {
	c.Uint("index", e.Index)
	c.Uint("term", e.Term)
	c.Str("record", string(e.Request.Kind))
	t := textFields{o: c.o, bare: true}
	writeRequest(&t, e.Request)
	if e.DecodeErr != nil {
		t.Str("error", e.DecodeErr.Error())
		t.Raw("data", e.Data)
	}
	if e.Uncommitted {
		t.buf = append(t.buf, " [uncommitted]"...)
	}
	if e.Overwritten {
		t.buf = append(t.buf, " [overwritten]"...)
	}
	if e.ReplacedTo > 0 {
		t.buf = append(strconv.AppendUint(append(t.buf, " [replaces up to "...), e.ReplacedTo, 10), ']')
	}
	e.decoded(&t)
	c.put("content", t.buf)
	h := &e.Request.Header
	id, life := e.Request.ProposerID(), ""
	by := appendWord(nil, h.Username)
	if h.Username == "" {
		by = nil
	}
	if id != 0 {
		by = append(append([]byte(e.Proposer), ' '), by...)
		life = id.StartTime(NearTime).Format("2006-01-02T15:04:05Z")
	}
	c.put("proposed by", bytes.TrimSuffix(by, []byte(" ")))
	placeCells(c, e.Offset, e.Len)
	c.Str("life", life)
	num(c, "authRevision", int64(min(h.AuthRevision, math.MaxInt64)))
}

func (r *LogRecord) cells(c *cells) {
	index, term := "", ""
	switch w := r.What.(type) {
	case *dumplog.SnapshotRecord:
		index, term = strconv.FormatUint(w.Index, 10), strconv.FormatUint(w.Term, 10)
	case *dumplog.Entry:
		index, term = strconv.FormatUint(w.Index, 10), strconv.FormatUint(w.Term, 10)
	}
	c.Str("index", index)
	c.Str("term", term)
	c.Str("record", r.Type.String())
	t := textFields{o: c.o, bare: true}
	r.payload(&t, false)
	c.put("content", t.buf)
	if r.Raw {
		r.raw(c)
	} else {
		c.Str("proposed by", "")
	}
	placeCells(c, r.Offset, r.Len)
}

func placeCells(c *cells, offset, length int64) {
	c.put("offset", append([]byte("0x"), strconv.FormatInt(offset, 16)...))
	c.Int("length", length)
}

func (r KeyRow) cells(c *cells) {
	c.put("revision", appendRev(nil, r.Rev))
	c.Bytes("key", r.KV.Key)
	switch {
	case r.Tombstone:
		c.Str("val", "deleted")
	default:
		r.value(c)
		c.Int("version", r.KV.Version)
		c.Int("create", r.KV.CreateRevision)
		c.Int("mod", r.KV.ModRevision)
		if r.KV.Lease != 0 {
			c.ID("lease", uint64(r.KV.Lease))
		}
	}
	if r.Err != nil {
		c.Str("error", r.Err.Error())
	}
	writePlace(c, r.Place)
}
