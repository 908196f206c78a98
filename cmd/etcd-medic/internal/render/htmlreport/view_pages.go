package htmlreport

import (
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/dossier"
)

// pagesRow is a run of pages with one state and one bucket.
type pagesRow struct {
	Member, Range, State, Bucket, Revisions string
	Bad                                     bool
}

// maxPagesRows bounds the table of pages for each member.
const maxPagesRows = 200

// pages writes the strips of pages as a table: adjacent equal cells form one row.
func (v *view) pages(s *dossier.Storage) {
	rows := 0
	for at := 0; at < len(s.Cells); {
		state, owner := cellState(s, at), s.Owner[at]
		from, span := at, [2]int64{}
		for ; at < len(s.Cells) && cellState(s, at) == state && s.Owner[at] == owner; at++ {
			if x := s.Spans[at]; x[0] > 0 {
				if span[0] == 0 || x[0] < span[0] {
					span[0] = x[0]
				}
				span[1] = max(span[1], x[1])
			}
		}
		if rows++; rows > maxPagesRows {
			v.PagesMore++
			continue
		}
		row := pagesRow{Member: text(s.Member), State: state, Bad: state == damagedState || state == "lost",
			Range: fmt.Sprintf("%d to %d", from*s.PerCell, min(at*s.PerCell, s.Pages-s.Beyond)-1)}
		if owner >= 0 && owner < len(s.Buckets) {
			row.Bucket = text(s.Buckets[owner])
		}
		if span[0] > 0 {
			row.Revisions = fmt.Sprintf("%d to %d", span[0], span[1])
		}
		v.Pages = append(v.Pages, row)
	}
}

// damagedState is the state of a cell with an unreadable page.
const damagedState = "damaged"

// cellState returns the state in which a cell is drawn: damaged first, then lost, then the state of most of its pages.
func cellState(s *dossier.Storage, at int) string {
	if slices.ContainsFunc(s.Damaged, func(p uint64) bool { return int(p)/s.PerCell == at }) {
		return damagedState
	}
	best := -1
	for k, n := range s.Cells[at] {
		if n > 0 && s.States[k] == "lost" {
			return s.States[k]
		}
		if n > 0 && (best < 0 || n > s.Cells[at][best]) {
			best = k
		}
	}
	if best < 0 {
		return "no page"
	}
	return s.States[best]
}
