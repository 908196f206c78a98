package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// maxPlaces is the maximum number of findings about damaged places of one kind. If there are more, one finding covers
// all; it lists and names at most maxPlaces places and ranges.
const maxPlaces = 20

// placeFindings makes findings of one member's damaged places. If there are few of a kind, each gets a finding. Else
// one finding covers all, with their number, their ranges and the first places as evidence.
func placeFindings[D any](places []D, kindOf func(D) string, one func(D) Finding,
	ranges func([]D) string) (fs []Finding) {
	groups := map[string][]D{}
	for _, d := range places {
		k := kindOf(d)
		groups[k] = append(groups[k], d)
	}
	for _, d := range places {
		k := kindOf(d)
		g := groups[k]
		if len(g) <= maxPlaces {
			if len(g) > 0 {
				fs = append(fs, one(d))
			}
			continue
		}
		groups[k] = nil // this finding covers the others
		f := one(g[0])
		for _, x := range g[1:maxPlaces] {
			f.Evidence = append(f.Evidence, one(x).Evidence...)
		}
		f.Title += fmt.Sprintf(" (the first of %d places)", len(g))
		f.Explanation = fmt.Sprintf("%d places like this: %s. The first: %s", len(g), ranges(g), f.Explanation)
		fs = append(fs, f)
	}
	return fs
}

// maxAlike is the maximum number of findings of one check that state the same of the same members.
const maxAlike = 100

// Grouped replaces more than maxAlike findings that differ in their place only by one, with their number and the
// first places as evidence. Damaged places are grouped by their checks already; this bounds what any other check says
// about content that no server writes.
func Grouped(fs []Finding) []Finding {
	if len(fs) <= maxAlike {
		return fs
	}
	kindOf := func(f Finding) string {
		return fmt.Sprintf("%s %s %s %q %q %s %s %q %v %v %v %v", f.Kind, f.Severity, f.Class, f.Members, f.Odd,
			f.Facts.LogDamage, f.Facts.DBDamage, f.Facts.Bucket, f.Facts.Undecodable, f.Facts.RecordMissing,
			f.Facts.VotersDiffer, f.Undecided)
	}
	count := map[string]int{}
	for _, f := range fs {
		count[kindOf(f)]++
	}
	out, at := []Finding{}, map[string]int{}
	for _, f := range fs {
		k := kindOf(f)
		if count[k] <= maxAlike {
			out = append(out, f)
			continue
		}
		first, seen := at[k]
		if !seen {
			at[k] = len(out)
			f.Title += fmt.Sprintf(" (the first of %d places)", count[k])
			f.Explanation = fmt.Sprintf("%d places like this. The first: %s", count[k], f.Explanation)
			out = append(out, f)
			continue
		}
		g := &out[first]
		g.Facts.About = append(g.Facts.About, f.Facts.About...)
		if n := min(max(0, maxPlaces-len(g.Evidence)), len(f.Evidence)); n > 0 {
			g.Evidence = append(slices.Clip(g.Evidence), f.Evidence[:n]...)
			g.More += f.More + len(f.Evidence) - n
		} else {
			g.More += f.More + len(f.Evidence)
		}
	}
	return out
}

// logRanges says where the damage of a log is, and what it lost.
func logRanges(ds []*dumplog.DamageError) string {
	first, last := ds[0], ds[len(ds)-1]
	s := fmt.Sprintf("from segment %s offset %d to segment %s offset %d", first.Segment, first.Offset, last.Segment,
		last.Offset)
	var lost [][2]uint64
	for _, d := range ds {
		if d.LostFrom > 0 {
			lost = append(lost, [2]uint64{d.LostFrom, max(d.LostFrom, d.LostTo)})
		}
	}
	if len(lost) > 0 {
		s += "; lost entries " + rangesText(lost)
	}
	return s
}

// snapRanges says which .snap files are damaged, by the indexes in their names.
func snapRanges(files []*dumplog.SnapFile) string {
	indexes := make([][2]uint64, 0, len(files))
	for _, f := range files {
		indexes = append(indexes, [2]uint64{f.NameIndex, f.NameIndex})
	}
	return "of the indexes " + rangesText(indexes)
}

// pageRanges says which pages of a database are damaged.
func pageRanges(ds []*dumpdb.DamageError) string {
	pages := make([][2]uint64, 0, len(ds))
	for _, d := range ds {
		pages = append(pages, [2]uint64{d.Page, d.Page})
	}
	return "pages " + rangesText(pages)
}

// rangesText joins ranges that touch and names the first.
func rangesText(rs [][2]uint64) string {
	slices.SortFunc(rs, func(a, b [2]uint64) int { return slices.Compare(a[:], b[:]) })
	joined := rs[:1]
	for _, r := range rs[1:] {
		if last := &joined[len(joined)-1]; r[0] <= last[1] || r[0] == last[1]+1 {
			last[1] = max(last[1], r[1])
		} else {
			joined = append(joined, r)
		}
	}
	var texts []string
	for _, r := range joined[:min(len(joined), maxPlaces)] {
		if r[0] == r[1] {
			texts = append(texts, fmt.Sprint(r[0]))
		} else {
			texts = append(texts, fmt.Sprintf("%d..%d", r[0], r[1]))
		}
	}
	if more := len(joined) - len(texts); more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more ranges", more))
	}
	return strings.Join(texts, ", ")
}
