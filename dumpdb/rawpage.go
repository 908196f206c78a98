package dumpdb

import (
	"fmt"
	"slices"
)

// RawPage is one page as it is in the file, whether or not anything refers to it.
type RawPage struct {
	Place
	// SelfID is the id in the page header.
	SelfID uint64
	// Type is branch, leaf, meta, freelist or unknown(0x…).
	Type     string
	Count    int
	Overflow uint32
	// Elements are the elements of a branch or leaf page that are inside it.
	Elements []Element
	// Meta is set on pages 0 and 1, Freelist on a freelist page.
	Meta     *Meta
	Freelist []uint64
	// Damage is what is wrong with the page itself.
	Damage []*DamageError
	// Data is the page with its overflow, as far as the file contains it.
	Data []byte
}

// Element is one element of a branch or leaf page.
type Element struct {
	Index int
	// Offset is the offset of the key in the file; the value follows it.
	Offset int64
	// Bucket is true if the value of a leaf element is a bucket. Child is the page to which a branch element points.
	Bucket     bool
	Child      uint64
	Key, Value []byte
}

// Page reads page id with its overflow. The error is a *DamageError if the file does not contain any of it.
func (db *DB) Page(id uint64) (*RawPage, error) {
	data, dmg := db.rawRun(id)
	if dmg != nil {
		return nil, dmg
	}
	p := parseHeader(data)
	raw := &RawPage{Place: db.place(id), SelfID: p.id, Type: pageType(p.flags), Count: p.count, Overflow: p.overflow,
		Data: data}
	if p.id != id {
		raw.damage(DamagePageID, fmt.Sprintf("page %d", id), fmt.Sprintf("page %d", p.id))
	}
	if want := (uint64(p.overflow) + 1) * uint64(db.pageSize); uint64(len(data)) < want {
		raw.damage(DamageTruncated, fmt.Sprintf("%d bytes", want), fmt.Sprintf("%d bytes", len(data)))
	}
	switch {
	case id < 2:
		raw.meta(db, id)
	case p.flags == flagBranch || p.flags == flagLeaf:
		raw.elements(&p)
	case p.flags == flagFreelist:
		ids, _, dmg := db.readFreelist(id)
		if raw.Freelist = ids; dmg != nil {
			raw.Damage = append(raw.Damage, dmg)
		}
	}
	return raw, nil
}

func (raw *RawPage) damage(kind DamageKind, expected, observed string) {
	raw.Damage = append(raw.Damage, &DamageError{Place: raw.Place, Kind: kind, Expected: expected, Observed: observed})
}

func (raw *RawPage) meta(db *DB, id uint64) {
	m := readMeta(db.f, id, raw.Offset)
	m.Used = m.Valid && id == db.meta.Page
	raw.Meta = &m
	if !m.Valid {
		raw.damage(DamageMeta, "a valid meta page", m.Problem)
	}
}

func (raw *RawPage) elements(p *page) {
	elems, problems := p.parseElems(nil, nil)
	for _, pr := range problems {
		raw.damage(pr.kind, pr.expected, pr.observed)
	}
	for _, e := range elems {
		raw.Elements = append(raw.Elements, Element{Index: e.index, Offset: raw.Offset + int64(e.pos),
			Bucket: e.flags&flagBucket != 0,
			Child:  e.child, Key: e.key, Value: e.value})
	}
}

// rawRun reads page id with its stated overflow, as far as the file and maxRun allow.
func (db *DB) rawRun(id uint64) ([]byte, *DamageError) {
	place := db.place(id)
	b := make([]byte, db.pageSize)
	n, err := db.f.read(b, place.Offset)
	if n < headerSize {
		return nil, &DamageError{Place: place, Kind: DamageOutOfFile,
			Expected: fmt.Sprintf("a page below %d", db.filePages()), Observed: fmt.Sprintf("page %d", id), Err: err}
	}
	overflow := uint64(le.Uint32(b[12:]))
	if n < len(b) || overflow == 0 {
		return b[:n:n], nil
	}
	size := min((overflow+1)*uint64(db.pageSize), uint64(db.f.data-place.Offset), maxRun)
	b = slices.Grow(b, int(size)-len(b))[:size]
	n, _ = db.f.read(b, place.Offset)
	return b[:n:n], nil
}
