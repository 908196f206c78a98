package redact

import (
	"bytes"
	"context"
	"errors"
	"hash/maphash"
	"index/suffixarray"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/etcd-medic/etcd-medic/compare/dossier"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// Learn finds the keys of the sources that occur in texts of the dossier. The sources must be open.
func (r *Redactor) Learn(ctx context.Context, members []*evidence.Member, d *dossier.Dossier) error {
	for _, m := range members {
		r.labels[m.Label()] = true
	}
	if r.mode == Clear {
		return nil
	}
	f := newFinder(d)
	for _, m := range members {
		if err := f.database(ctx, m.DB); err != nil {
			return err
		}
		if err := f.log(ctx, &m.WAL); err != nil {
			return err
		}
	}
	for text, key := range f.found {
		if !r.labels[text] {
			r.words = append(r.words, word{text: text, with: r.Key(key), name: isName(text)})
		}
	}
	slices.SortFunc(r.words, func(a, b word) int { return strings.Compare(a.text, b.text) })
	return nil
}

// isName reports whether a text has only characters that also occur in words, numbers and versions.
func isName(s string) bool {
	for i := range len(s) {
		if !isNameByte(s[i]) {
			return false
		}
	}
	return true
}

func isNameByte(c byte) bool {
	return isWordByte(c) || c == '.' || c == '-' || c == ':' || c == ' '
}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}

// finder searches all texts of a dossier for keys at once.
type finder struct {
	mu    sync.Mutex
	texts *suffixarray.Index
	// cut are the ends of texts before a "…", by their first bytes: the start of a key may be among them.
	cut map[string][]string
	// found maps spellings in the texts to their keys.
	found map[string]string
	seed  maphash.Seed
	seen  []uint64
}

// cutFrom is the shortest start of a key that is searched in a shortened text, cutWindow how far back it may start.
const (
	cutFrom   = 6
	cutWindow = 600
	seenSlots = 1 << 20
	ellipsis  = "…"
)

func newFinder(d *dossier.Dossier) *finder {
	f := &finder{cut: map[string][]string{}, found: map[string]string{}, seed: maphash.MakeSeed(),
		seen: make([]uint64, seenSlots)}
	var all strings.Builder
	known := map[string]bool{}
	eachText(d, func(s string) string {
		if s == "" || known[s] {
			return s
		}
		known[s] = true
		all.WriteString(s)
		all.WriteByte(0)
		f.cuts(s)
		return s
	})
	f.texts = suffixarray.New([]byte(all.String()))
	return f
}

// cuts adds the ends before each ellipsis.
func (f *finder) cuts(s string) {
	for from := 0; ; {
		at := strings.Index(s[from:], ellipsis)
		if at < 0 {
			return
		}
		end := from + at
		for p := max(from, end-cutWindow); p+cutFrom <= end; p++ {
			if p == 0 || !isWordByte(s[p]) || !isWordByte(s[p-1]) {
				head := s[p : p+cutFrom]
				f.cut[head] = append(f.cut[head], s[p:end])
			}
		}
		from = end + len(ellipsis)
	}
}

// key searches for one key, in every spelling that texts use.
func (f *finder) key(key []byte) {
	if len(key) == 0 || string(key) == "\x00" {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	h := maphash.Bytes(f.seed, key) | 1
	slot := &f.seen[h%seenSlots]
	if *slot == h {
		return
	}
	*slot = h
	f.spelling(key, key)
	if q := strconv.Quote(string(key)); q[1:len(q)-1] != string(key) {
		f.spelling([]byte(q[1:len(q)-1]), key)
	}
	if bytes.IndexByte(key, '\'') >= 0 {
		f.spelling(bytes.ReplaceAll(key, []byte("'"), []byte(`'\''`)), key)
	}
}

// maxSpelling bounds a spelling: texts shorten longer ones.
const maxSpelling = 8 << 10

func (f *finder) spelling(text, key []byte) {
	if len(text) <= maxSpelling && len(f.texts.Lookup(text, 1)) > 0 {
		f.found[string(text)] = string(key)
	}
	if len(text) <= cutFrom {
		return
	}
	for _, end := range f.cut[string(text[:cutFrom])] {
		if len(end) < len(text) && string(text[:len(end)]) == end && utf8.RuneStart(text[len(end)]) {
			f.found[end+ellipsis] = string(key)
		}
	}
}

// database searches for every current and earlier key of the database, and for the ranges of permissions. Keys that
// damage hides are in no text either.
func (f *finder) database(ctx context.Context, db *evidence.DB) error {
	if db == nil || db.Handle == nil {
		return nil
	}
	for row, err := range db.Handle.Query(ctx, dumpdb.Query{}) {
		var damage *dumpdb.DamageError
		switch {
		case errors.As(err, &damage):
		case err != nil:
			return err
		default:
			f.key(row.KV.Key)
		}
	}
	for _, role := range db.Auth.Roles {
		for _, p := range role.Perms {
			f.key(p.Key)
			f.key(p.RangeEnd)
		}
	}
	return ctx.Err()
}

// log searches for every key that an entry names, including overwritten entries.
func (f *finder) log(ctx context.Context, w *evidence.WAL) error {
	if !w.Present() {
		return nil
	}
	_, err := w.Log.ScanWith(ctx, func(int) func(*dumplog.Entry) {
		var dec dumplog.Decoder
		return func(e *dumplog.Entry) {
			if req, err := dec.Decode(e); err == nil {
				f.request(req)
			}
		}
	})
	return err
}

func (f *finder) request(q *dumplog.Request) {
	f.op(&dumplog.RequestOp{Range: q.Range, Put: q.Put, DeleteRange: q.DeleteRange, Txn: q.Txn})
	if a := q.Auth; a != nil {
		f.key(a.Key)
		f.key(a.RangeEnd)
		if a.Perm != nil {
			f.key(a.Perm.Key)
			f.key(a.Perm.RangeEnd)
		}
	}
}

func (f *finder) op(o *dumplog.RequestOp) {
	switch {
	case o.Put != nil:
		f.key(o.Put.Key)
	case o.DeleteRange != nil:
		f.key(o.DeleteRange.Key)
		f.key(o.DeleteRange.RangeEnd)
	case o.Range != nil:
		f.key(o.Range.Key)
		f.key(o.Range.RangeEnd)
	case o.Txn != nil:
		for i := range o.Txn.Compare {
			f.key(o.Txn.Compare[i].Key)
			f.key(o.Txn.Compare[i].RangeEnd)
		}
		for _, ops := range [][]dumplog.RequestOp{o.Txn.Success, o.Txn.Failure} {
			for i := range ops {
				f.op(&ops[i])
			}
		}
	}
}
