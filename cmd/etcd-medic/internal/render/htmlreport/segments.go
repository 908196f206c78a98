package htmlreport

import (
	"github.com/etcd-medic/etcd-medic/compare/boot"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
)

// segment is a log segment with its first and last entry, or a range of entries whose segments are lost.
type segment struct {
	Name string `json:"name"`
	// Size is that of the file in bytes, Data the end of what is written.
	Size  int64  `json:"size"`
	Data  int64  `json:"data"`
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
	Bad   bool   `json:"bad"`
	// Lost is true for what is missing between two segments, or after the last one although the member had it.
	Lost bool `json:"lost"`

	records int
	end     string
}

// segmentsOf returns the segments of a member's log, and what is lost between and after them.
func segmentsOf(m *evidence.Facts) (out []segment) {
	if m.WAL == nil {
		return nil
	}
	damaged := map[string]bool{}
	for _, x := range m.WAL.Damage {
		damaged[x.File] = true
	}
	last := uint64(0)
	for i, s := range m.WAL.Segments {
		if i > 0 && s.Seq > m.WAL.Segments[i-1].Seq+1 && s.First > last+1 { // else nothing is missing but a number
			out = append(out, segment{First: last + 1, Last: s.First - 1, Lost: true})
		}
		out = append(out, segment{Name: s.Name, Size: s.Size, Data: s.DataEnd, First: s.FirstEntry, Last: s.LastEntry,
			Bad: damaged[s.Name], records: s.Records, end: s.End})
		last = max(last, s.LastEntry)
	}
	if gone := boot.Of(m).Forgot; gone != nil && len(out) > 0 {
		out = append(out, segment{First: gone.From, Last: gone.To, Lost: true})
	}
	return out
}
