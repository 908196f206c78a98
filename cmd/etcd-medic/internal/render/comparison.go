package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/release"
)

// comparisonPage is the text of compare.
type comparisonPage struct{ *page }

// write writes the window, one line per bucket, the rows that differ, then the logs.
func (p comparisonPage) write(c *compare.Comparison) {
	p.unused(c.Sources)
	p.window(&c.Window)
	names := memberNames(c)
	p.buckets(c.Buckets, names)
	for i := range c.Buckets {
		p.rows(&c.Buckets[i])
	}
	p.log(&c.Log)
}

func (p comparisonPage) window(w *compare.Window) {
	p.line("compared at applied index %s", num0(w.AppliedIndex))
	revs := []string{}
	for _, m := range slices.Sorted(maps.Keys(w.Revisions)) {
		revs = append(revs, fmt.Sprintf("%s %d", m, w.Revisions[m]))
	}
	compact := w.CompactRevision
	p.pairs("  ",
		[2]string{"revisions", strings.Join(revs, ", ")},
		[2]string{"compact revision", compactText(&compact)},
		[2]string{"note", w.Note})
	for _, m := range slices.Sorted(maps.Keys(w.LeftOut)) {
		p.text("  left out: "+clean(m)+": ", w.LeftOut[m])
	}
	for _, m := range slices.Sorted(maps.Keys(w.Earlier)) {
		p.text("  may be one transaction earlier: "+clean(m)+": ", w.Earlier[m])
	}
}

func memberNames(c *compare.Comparison) []string {
	var names []string
	for _, s := range c.Sources {
		if s.Error == "" {
			names = append(names, s.Name)
		}
	}
	return names
}

func (p comparisonPage) buckets(buckets []compare.BucketComparison, names []string) {
	p.section("buckets")
	head := []string{"bucket", "equal", "compared", "differ"}
	for _, n := range names {
		head = append(head, "only "+n)
	}
	var rows [][]string
	for _, b := range buckets {
		row := []string{b.Bucket, equalText(b.Equal), fmt.Sprint(b.Compared), fmt.Sprint(b.Differ)}
		for _, n := range names {
			row = append(row, fmt.Sprint(b.Only[n]))
		}
		rows = append(rows, row)
	}
	p.table("  ", head, rows)
	for _, b := range buckets {
		p.text("  "+b.Bucket+": ", b.Reason)
		if b.SameContent > 0 {
			p.line("  %s: %d of the rows that differ hold the same content at other revisions", b.Bucket, b.SameContent)
		}
	}
}

func equalText(equal release.Answer) string {
	if equal.Excluded() {
		return "NO"
	}
	return equal.String()
}

func (p comparisonPage) rows(b *compare.BucketComparison) {
	if len(b.Rows) > 0 {
		p.section("bucket " + b.Bucket)
		p.rowsByMember(b.Rows)
		if b.More > 0 {
			p.line("  … and %d more, see --limit", b.More)
		}
	}
	if len(b.Normal) > 0 {
		p.section("bucket " + b.Bucket + ", as healthy members differ")
		p.rowsByMember(b.Normal)
	}
}

func (p comparisonPage) rowsByMember(rows []compare.DiffRow) {
	for _, r := range rows {
		p.line("  %s%s", quoted(r.Key), objectText(r.Object))
		for _, m := range slices.Sorted(maps.Keys(r.Members)) {
			p.text("    "+clean(m)+": ", cellText(r.Members[m]))
		}
	}
}

func cellText(c *compare.DiffCell) string {
	if c == nil {
		return "absent"
	}
	var s []string
	if c.ModRevision != 0 {
		s = append(s, fmt.Sprintf("mod %d, create %d, version %d", c.ModRevision, c.CreateRevision, c.Version))
	}
	if c.SubRevision != 0 {
		s = append(s, fmt.Sprintf("record %d.%d", c.ModRevision, c.SubRevision))
	}
	if c.Lease != "" {
		s = append(s, "lease "+c.Lease)
	}
	if v := c.Value; v != nil {
		if v.Bytes != nil {
			s = append(s, "val "+quoted(*v.Bytes))
		} else {
			s = append(s, fmt.Sprintf("val <len %d digest %s>", v.Len, v.Digest))
		}
	}
	if c.Text != "" {
		s = append(s, c.Text)
	}
	return strings.Join(s, ", ")
}

func (p comparisonPage) log(l *compare.LogComparison) {
	p.section("log")
	switch {
	case len(l.LastIndexes) == 0:
		p.line("  no log was read")
	case l.Equal == release.Unknown:
		p.line("  no index is held by two members")
	default:
		p.line("  entries %d to %d, %d compared, equal: %s", l.FirstIndex, l.LastIndex, l.Compared, equalText(l.Equal))
	}
	for _, m := range slices.Sorted(maps.Keys(l.LastIndexes)) {
		p.line("  %s ends at index %d", clean(m), l.LastIndexes[m])
	}
	for _, m := range slices.Sorted(maps.Keys(l.Damage)) {
		for _, d := range l.Damage[m] {
			p.text("  !! "+clean(m)+": ", d)
		}
	}
	for _, d := range l.Differ {
		p.line("  index %d differs:", d.Index)
		for _, m := range slices.Sorted(maps.Keys(d.Members)) {
			p.text("    "+clean(m)+": ", d.Members[m])
		}
	}
}
