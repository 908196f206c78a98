package render

import (
	"strconv"

	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// MetaPage is one of the two meta pages.
type MetaPage struct{ dumpdb.Meta }

// Kind is "meta-page".
func (MetaPage) Kind() string { return "meta-page" }

// Line shows the page and whether bbolt uses it.
func (m MetaPage) Line(dst []byte, o Options) []byte {
	dst = strconv.AppendUint(append(dst, "meta "...), m.Page, 10)
	switch {
	case !m.Valid:
		dst = append(dst, " NOT VALID"...)
	case m.Used:
		dst = append(dst, " valid, in use"...)
	default:
		dst = append(dst, " valid"...)
	}
	return textLine(dst, o, m.content)
}

// Fields are those of the page.
func (m MetaPage) Fields(f Fields) {
	f.Uint("page", m.Page)
	f.Bool("valid", m.Valid)
	f.Bool("used", m.Used)
	m.content(f)
}

func (m MetaPage) content(f Fields) {
	f.Int("offset", m.Offset)
	f.Uint("txid", m.Txid)
	f.Uint("pageSize", uint64(m.PageSize))
	f.Uint("root", m.Root)
	if m.Freelist == ^uint64(0) {
		f.Str("freelist", "not-stored")
	} else {
		f.Str("freelist", strconv.FormatUint(m.Freelist, 10))
	}
	f.Uint("highWater", m.HighWater)
	f.Str("checksum", strconv.FormatUint(m.Checksum, 16))
	f.Str("computed", strconv.FormatUint(m.Computed, 16))
	word(f, "problem", m.Problem)
	word(f, "headerProblem", m.HeaderProblem)
}

// PageSummary is the result of the walk over the page graph.
type PageSummary struct {
	*dumpdb.PageReport
	FileSize int64
	PageSize int
}

// Kind is "pages".
func (PageSummary) Kind() string { return "pages" }

// Line shows the counts.
func (p PageSummary) Line(dst []byte, o Options) []byte {
	return textLine(append(dst, "pages"...), o, p.Fields)
}

// Fields are sizes and counts; counts are in pages.
func (p PageSummary) Fields(f Fields) {
	f.Int("fileSize", p.FileSize)
	f.Int("pageSize", int64(p.PageSize))
	f.Uint("highWater", p.Pages)
	f.Uint("reachable", p.Reachable)
	f.Uint("free", p.Free)
	f.Uint("lost", p.Lost)
	f.Bool("freelistStored", p.FreelistStored)
	f.Int("damaged", int64(len(p.Damage)))
	flag(f, "partial", !p.Complete) // pages below the damage count as free or lost
}

// BucketRow is one bucket of the overview.
type BucketRow struct {
	dumpdb.Bucket
	// Rows counts the readable rows, Damaged the places that could not be read.
	Rows, Damaged int64
}

// Kind is "bucket".
func (BucketRow) Kind() string { return "bucket" }

// Line shows name, rows and root page.
func (b BucketRow) Line(dst []byte, o Options) []byte {
	dst = appendWord(append(dst, "bucket "...), b.Name)
	for n := len(b.Name); n < 16; n++ {
		dst = append(dst, ' ')
	}
	return textLine(dst, o, b.content)
}

// Fields are name, rows and root page.
func (b BucketRow) Fields(f Fields) {
	f.Str("name", b.Name)
	b.content(f)
}

func (b BucketRow) content(f Fields) {
	f.Int("rows", b.Rows)
	num(f, "damaged", b.Damaged)
	if b.Inline {
		f.Str("root", "inline")
		f.Uint("page", b.Page)
	} else {
		f.Str("root", strconv.FormatUint(b.Root, 10))
	}
}

// TrailerRow is the sha256 that snapshot save appends.
type TrailerRow struct{ dumpdb.Trailer }

// Kind is "trailer".
func (TrailerRow) Kind() string { return "trailer" }

// Line shows whether it matches.
func (t TrailerRow) Line(dst []byte, o Options) []byte {
	return textLine(append(dst, "trailer"...), o, t.Fields)
}

// Fields are state and sums.
func (t TrailerRow) Fields(f Fields) {
	f.Str("state", t.State)
	word(f, "expected", t.Expected)
	word(f, "computed", t.Computed)
}

// DBDamage is a damaged place of a db, shown where it was found.
type DBDamage struct{ *dumpdb.DamageError }

// Kind is "damage".
func (DBDamage) Kind() string { return "damage" }

// Line starts with !! so that it is visible and searchable.
func (d DBDamage) Line(dst []byte, o Options) []byte {
	dst = append(append(dst, "!! "...), d.DamageError.Kind...)
	return appendDBPlace(textLine(dst, o, d.facts), d.Place)
}

// Fields are kind, place and what was expected.
func (d DBDamage) Fields(f Fields) {
	f.Str("damage", string(d.DamageError.Kind))
	d.facts(f)
	writePlace(f, d.Place)
}

func (d DBDamage) facts(f Fields) {
	word(f, "bucket", d.Bucket)
	if first, last, ok := d.LostRevisions(); ok {
		f.Int("lostFromRevision", first)
		f.Int("lostToRevision", last)
	} else {
		if d.FirstKey != nil {
			f.Bytes("firstKey", d.FirstKey)
		}
		if d.LastKey != nil {
			f.Bytes("lastKey", d.LastKey)
		}
	}
	word(f, "expected", d.Expected)
	word(f, "observed", d.Observed)
	if d.Err != nil {
		f.Str("detail", d.Err.Error())
	}
}
