package diff

import (
	"maps"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/release"
)

// attributes compares names and client URLs in bucket members, which a member publishes at each start. Releases of 3.5
// may leave a row as it was (3.5.1 to 3.5.19), so what differs on databases of 3.5 is listed as normal, and what a row
// lacks proves nothing: it may have been written there.
func (r *rowComparer) attributes(b *Bucket) {
	take := slices.DeleteFunc(r.whole(b.Name), func(i int) bool {
		return !r.Members[i].Version.Follows(release.MemberRowsReplaced)
	})
	r.laggingAttributes(b, take)
	if len(take) < 2 {
		return
	}
	table := r.lineUp(take, attributeRows)
	for _, key := range slices.Sorted(maps.Keys(table)) {
		row := Row{Key: []byte(key), Kind: AttributesRow, Cells: table[key]}
		have := slices.DeleteFunc(slices.Clone(take), func(i int) bool { return row.Cells[i] == nil })
		if len(have) < 2 || allSame(row.Cells, have) {
			continue
		}
		if !r.split(b.Name, &row, have, map[int]string{}, map[[2]int]bool{}) {
			b.Moved++
			continue
		}
		for _, i := range take {
			if row.Cells[i] == nil {
				row.Out = append(row.Out, i)
			}
		}
		for _, i := range r.taking() {
			if !slices.Contains(take, i) {
				row.Out = append(row.Out, i)
			}
		}
		b.Differ++
		if len(b.Rows) < r.o.MaxRows {
			b.Rows = append(b.Rows, row)
		}
		b.Equal, b.Reason = release.No, ""
	}
}

// laggingAttributes lists rows as normal that differ where a release that may leave them has its part in it.
func (r *rowComparer) laggingAttributes(b *Bucket, strict []int) {
	all := r.whole(b.Name)
	if len(all) == len(strict) {
		return
	}
	table := r.lineUp(all, attributeRows)
	for _, key := range slices.Sorted(maps.Keys(table)) {
		row := Row{Key: []byte(key), Kind: AttributesRow, Cells: table[key]}
		have := slices.DeleteFunc(slices.Clone(all), func(i int) bool { return row.Cells[i] == nil })
		if len(have) < 2 || allSame(row.Cells, have) || len(b.Normal) >= r.o.MaxRows ||
			!r.split(b.Name, &row, have, map[int]string{}, map[[2]int]bool{}) {
			continue
		}
		for _, i := range r.taking() {
			if !slices.Contains(have, i) && !slices.Contains(row.Out, i) {
				row.Out = append(row.Out, i)
			}
		}
		b.Normal = append(b.Normal, row)
	}
}

// attributeRows leave rows out that lack a name or client URLs.
func attributeRows(m *evidence.Member) map[string]string {
	out := map[string]string{}
	for _, v := range m.DB.Members {
		if v.Name != "" && len(v.ClientURLs) > 0 {
			out[v.ID.String()] = AttributesText(v.Name, v.ClientURLs)
		}
	}
	return out
}

// AttributesText formats the attributes that a member publishes.
func AttributesText(name string, clientURLs []string) string {
	return "name " + name + ", client URLs " + strings.Join(slices.Sorted(slices.Values(clientURLs)), ",")
}
