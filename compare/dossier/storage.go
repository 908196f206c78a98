package dossier

import (
	"context"
	"encoding/binary"
	"errors"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/timeline"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// Storage is the layout of one member's database file.
type Storage struct {
	Member   string `json:"member"`
	PageSize int    `json:"pageSize"`
	Pages    int    `json:"pages"`
	// PerCell is how many pages one cell of the strip represents. States names the columns of Cells.
	PerCell int      `json:"perCell"`
	States  []string `json:"states"`
	Cells   [][]int  `json:"cells"`
	// Owner is, by cell, the bucket with most of its pages, as position in Buckets; -1 for none.
	Buckets []string `json:"buckets"`
	Owner   []int    `json:"owner"`
	// Beyond counts the pages above the high-water mark, which are in no cell: they were preallocated, or remain from a
	// larger database.
	Beyond int `json:"beyond"`
	// Spans are, by cell, the lowest and highest revision of bucket key that is stored there or that damage hides
	// there; 0 and 0 for none.
	Spans [][2]int64 `json:"spans"`
	// Damaged are pages that could not be read.
	Damaged []uint64 `json:"damaged"`
	// Note says why the pages could not be listed.
	Note string `json:"note,omitempty"`
	// Prefixes are the largest prefixes of bucket key, only for the recommended member.
	Prefixes []Prefix `json:"prefixes,omitempty"`
}

// Prefix counts the records of one prefix.
type Prefix struct {
	Name      string `json:"name"`
	Keys      int64  `json:"keys"`
	Revisions int64  `json:"revisions"`
	Bytes     int64  `json:"bytes"`
	LiveBytes int64  `json:"liveBytes"`
	// Rest is true for the sum of the prefixes that are not listed.
	Rest bool `json:"rest,omitempty"`
}

// maxCells and maxPrefixes bound the drawing.
const (
	maxCells    = 720
	maxPrefixes = 80
	maxDamaged  = 1000
	fewPrefixes = 4
	maxDepth    = 4
)

var pageStates = []dumpdb.PageState{dumpdb.PageMeta, dumpdb.PageReachable, dumpdb.PageOverflow, dumpdb.PageFreelist,
	dumpdb.PageFree, dumpdb.PageLost, dumpdb.PageBeyond}

// storage reads every database, several at a time. It counts prefixes for the recommended member, else for the first.
func (d *Dossier) storage(ctx context.Context, members []*evidence.Member, kept string) error {
	members = slices.DeleteFunc(slices.Clone(members), func(m *evidence.Member) bool { return !m.HasDB() })
	d.Storage = make([]Storage, len(members))
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, m := range members {
		g.Go(func() error { return d.Storage[i].read(ctx, m, kept == m.Label() || kept == "" && i == 0) })
	}
	return g.Wait()
}

// read fills in one member's layout, with its prefixes if asked for.
func (s *Storage) read(ctx context.Context, m *evidence.Member, prefixes bool) error {
	*s = Storage{Member: m.Label(), PageSize: m.DB.Handle.PageSize(), Cells: [][]int{}, Owner: []int{},
		Buckets: []string{}, Damaged: []uint64{}, Spans: [][2]int64{}}
	if err := s.pages(ctx, m.DB); err != nil {
		return err
	}
	if err := s.revisions(ctx, m.DB); err != nil || !prefixes {
		return err
	}
	return s.prefixes(ctx, m.DB.Handle)
}

// pages summarizes the pages of the file in at most maxCells cells.
func (s *Storage) pages(ctx context.Context, db *evidence.DB) error {
	size := max(s.PageSize, 512)
	s.Pages = int(db.Handle.Size() / int64(size))
	used := s.Pages
	if mark := db.Handle.Meta().HighWater; mark > 2 && mark < uint64(s.Pages) {
		used = int(mark)
	}
	s.Beyond = s.Pages - used
	s.PerCell = used/maxCells + 1
	for _, st := range pageStates {
		s.States = append(s.States, string(st))
	}
	owned := map[int]int{}
	for p, err := range db.Handle.Pages(ctx) {
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			s.Note = err.Error()
			break
		}
		at := int(p.Page) / s.PerCell
		if int(p.Page) >= used || at >= maxCells {
			continue
		}
		for len(s.Cells) <= at {
			s.flush(owned)
			s.Cells, s.Owner = append(s.Cells, make([]int, len(pageStates))), append(s.Owner, -1)
		}
		if i := slices.Index(pageStates, p.State); i >= 0 {
			s.Cells[at][i]++
		}
		if p.Bucket != "" {
			owned[s.bucket(timeline.Clip(timeline.EscapeKey([]byte(p.Bucket)), 60))]++
		}
	}
	s.flush(owned)
	for _, e := range db.Damage {
		if e.Page > 0 && len(s.Damaged) < maxDamaged && !slices.Contains(s.Damaged, e.Page) {
			s.Damaged = append(s.Damaged, e.Page)
		}
	}
	return nil
}

// revisions records which revisions of bucket key are in each cell, and which ones damage hides there.
func (s *Storage) revisions(ctx context.Context, db *evidence.DB) error {
	s.Spans = make([][2]int64, len(s.Cells))
	add := func(page uint64, from, to int64) {
		at := int(page) / s.PerCell
		if at >= len(s.Spans) || from <= 0 {
			return
		}
		x := &s.Spans[at]
		if x[0] == 0 || from < x[0] {
			x[0] = from
		}
		x[1] = max(x[1], to, from)
	}
	for r, err := range db.Handle.Query(ctx, dumpdb.Query{}) {
		var d *dumpdb.DamageError
		switch {
		case errors.As(err, &d):
			if to := mainRev(d.LastKey); to > 0 {
				add(d.Page, max(mainRev(d.FirstKey), 1), to)
			}
		case err != nil:
			return err
		case r.Err == nil:
			add(r.Page, r.Main, r.Main)
		}
	}
	return ctx.Err()
}

// mainRev returns the main revision at the start of a key of bucket key, 0 if it is too short or invalid.
func mainRev(key []byte) int64 {
	if len(key) < 8 {
		return 0
	}
	return max(0, int64(binary.BigEndian.Uint64(key)))
}

// flush records which bucket has most of the last cell.
func (s *Storage) flush(owned map[int]int) {
	best := -1
	for b, n := range owned {
		if best < 0 || n > owned[best] || n == owned[best] && b < best {
			best = b
		}
	}
	if n := len(s.Owner); n > 0 {
		s.Owner[n-1] = best
	}
	clear(owned)
}

func (s *Storage) bucket(name string) int {
	i := slices.Index(s.Buckets, name)
	if i < 0 {
		i = len(s.Buckets)
		s.Buckets = append(s.Buckets, name)
	}
	return i
}

// prefixes counts the content of bucket key by the first two parts of keys, largest first. It ignores what damage
// hides.
func (s *Storage) prefixes(ctx context.Context, db *dumpdb.DB) error {
	u, err := db.Usage(ctx, dumpdb.Query{}, 2)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if u == nil {
		s.Note = err.Error()
		return nil
	}
	// All keys are below one or two prefixes: use more parts.
	for depth := 3; len(u.Prefixes) < fewPrefixes && depth <= maxDepth; depth++ {
		deeper, _ := db.Usage(ctx, dumpdb.Query{}, depth)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if deeper == nil || len(deeper.Prefixes) > maxPrefixes { // these are nearly single keys
			break
		}
		u = deeper
	}
	var rest Prefix
	for i, g := range u.Prefixes {
		p := Prefix{Name: timeline.Clip(timeline.EscapeKey([]byte(g.Name)), 120), Keys: g.Keys, Revisions: g.Revisions,
			Bytes: g.Bytes, LiveBytes: g.LiveBytes}
		if i < maxPrefixes {
			s.Prefixes = append(s.Prefixes, p)
			continue
		}
		rest.Keys, rest.Revisions, rest.Bytes, rest.LiveBytes = rest.Keys+p.Keys, rest.Revisions+p.Revisions,
			rest.Bytes+p.Bytes, rest.LiveBytes+p.LiveBytes
	}
	if rest.Revisions > 0 {
		rest.Name, rest.Rest = "everything else", true
		s.Prefixes = append(s.Prefixes, rest)
	}
	return nil
}
