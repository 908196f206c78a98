package render

import (
	"strconv"

	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// SalvagedRow is a record of bucket key found anywhere in the file. KeyRow shows the record.
type SalvagedRow struct {
	*dumpdb.Salvaged
	KeyRow *KeyRow
}

// Kind is "revision", as for rows from the tree.
func (SalvagedRow) Kind() string { return "revision" }

// Line is that of KeyRow with the origin.
func (r SalvagedRow) Line(dst []byte, o Options) []byte {
	return r.KeyRow.appendObject(textLine(r.KeyRow.line(dst, o), o, r.origin))
}

// Fields are those of KeyRow and the origin.
func (r SalvagedRow) Fields(f Fields) {
	r.KeyRow.Fields(f)
	r.origin(f)
}

func (r SalvagedRow) origin(f Fields) {
	f.Str("origin", string(r.Origin))
	num(f, "copies", int64(r.Copies))
	num(f, "conflicts", int64(r.Conflicts))
}

// UsageGroup is the space used by one prefix or kind.
type UsageGroup struct {
	// What is total, prefix or kind.
	What string
	dumpdb.Group
}

// Kind is "usage".
func (UsageGroup) Kind() string { return "usage" }

// Line shows group and counts.
func (g UsageGroup) Line(dst []byte, o Options) []byte {
	dst = append(dst, g.What...)
	if g.Name != "" {
		dst = appendWord(append(dst, ' '), g.Name)
	}
	return textLine(dst, o, g.counts)
}

// Fields are group and counts.
func (g UsageGroup) Fields(f Fields) {
	f.Str("of", g.What)
	f.Str("name", g.Name)
	g.counts(f)
}

func (g UsageGroup) counts(f Fields) {
	f.Int("keys", g.Keys)
	f.Int("revisions", g.Revisions)
	f.Int("tombstones", g.Tombstones)
	f.Int("bytes", g.Bytes)
	f.Int("liveBytes", g.LiveBytes)
	f.Int("maxValue", g.MaxValue)
}

// UsageKey is a key in a ranking.
type UsageKey struct {
	// What is largest or busiest.
	What string
	dumpdb.KeyUsage
}

// Kind is the ranking.
func (k UsageKey) Kind() string { return k.What }

// Line shows the key and its size.
func (k UsageKey) Line(dst []byte, o Options) []byte {
	return textLine(append(dst, k.What...), o, k.Fields)
}

// Fields are key, revision and counts.
func (k UsageKey) Fields(f Fields) {
	f.Bytes("key", k.Key)
	f.Str("revision", k.Rev.String())
	f.Int("bytes", k.Bytes)
	f.Int("revisions", k.Revisions)
}

// PageRow is one page of the file.
type PageRow struct{ dumpdb.PageInfo }

// Kind is "page".
func (PageRow) Kind() string { return "page" }

// Line shows number, state, type and bucket.
func (p PageRow) Line(dst []byte, o Options) []byte {
	dst = strconv.AppendUint(append(dst, "page "...), p.Page, 10)
	dst = append(append(dst, ' '), p.State...)
	return textLine(dst, o, p.content)
}

// Fields are those of the page header, with state and bucket.
func (p PageRow) Fields(f Fields) {
	f.Uint("page", p.Page)
	f.Str("state", string(p.State))
	p.content(f)
}

func (p PageRow) content(f Fields) {
	word(f, "type", p.Type)
	num(f, "count", int64(p.Count))
	num(f, "overflow", int64(p.Overflow))
	word(f, "bucket", p.Bucket)
	f.Int("offset", p.Offset)
}

// RawPage is the header of one page.
type RawPage struct{ *dumpdb.RawPage }

// Kind is "page".
func (RawPage) Kind() string { return "page" }

// Line shows the header.
func (p RawPage) Line(dst []byte, o Options) []byte {
	dst = strconv.AppendUint(append(dst, "page "...), p.Page, 10)
	return textLine(dst, o, p.content)
}

// Fields are those of the header, the meta page or the freelist.
func (p RawPage) Fields(f Fields) {
	f.Uint("page", p.Page)
	p.content(f)
}

func (p RawPage) content(f Fields) {
	f.Uint("selfID", p.SelfID)
	f.Str("type", p.Type)
	f.Int("count", int64(p.Count))
	f.Int("overflow", int64(p.Overflow))
	f.Int("offset", p.Offset)
	f.Int("bytes", int64(len(p.Data)))
	if p.RawPage.Meta != nil {
		f.Obj("meta", func(f Fields) { MetaPage{*p.RawPage.Meta}.Fields(f) })
	}
	if len(p.Freelist) > 0 {
		f.Int("freePages", int64(len(p.Freelist)))
	}
}

// PageElement is one element of a branch or leaf page.
type PageElement struct{ *dumpdb.Element }

// Kind is "element".
func (PageElement) Kind() string { return "element" }

// Line shows key and value or child.
func (e PageElement) Line(dst []byte, o Options) []byte {
	dst = strconv.AppendInt(append(dst, "  element "...), int64(e.Index), 10)
	return textLine(dst, o, e.content)
}

// Fields are key and value or child.
func (e PageElement) Fields(f Fields) {
	f.Int("index", int64(e.Index))
	e.content(f)
}

func (e PageElement) content(f Fields) {
	f.Bytes("key", e.Key)
	switch {
	case e.Child != 0:
		f.Uint("child", e.Child)
	default:
		f.Raw("val", e.Value)
	}
	flag(f, "bucket", e.Element.Bucket)
	f.Int("offset", e.Offset)
}
