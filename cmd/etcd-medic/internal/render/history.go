package render

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// History writes the document of history.
func History(w io.Writer, f Format, h *compare.KeyHistory, o Options) error {
	return document(w, f, h, o, func(p *page) { historyPage{p}.write(h) })
}

// historyPage is the text of history.
type historyPage struct{ *page }

// write writes the log entries of one key with their effect on each member, then each member's records.
func (p historyPage) write(h *compare.KeyHistory) {
	p.line("key %s", quoted(h.Key))
	p.unused(h.Sources)
	if h.LogLast > 0 {
		p.text("", h.Note)
	}
	p.section("log")
	switch {
	case h.LogLast == 0:
		p.text("  ", h.Note)
	case len(h.Entries) == 0:
		p.line("  no committed entry names this key, of the entries from %d to %d", h.LogFirst, h.LogLast)
	}
	if h.EntriesOmitted > 0 {
		p.line("  %s, not listed", plural.Of(h.EntriesOmitted, "older entry", "older entries"))
	}
	for _, e := range h.Entries {
		p.text(fmt.Sprintf("  %s  ", termIndex(e.Term, e.Index)), e.What+by(e))
		for _, m := range slices.Sorted(maps.Keys(e.Outcomes)) {
			p.text("      "+clean(m)+": ", e.Outcomes[m])
		}
	}
	p.section("databases")
	members := slices.Concat(slices.Collect(maps.Keys(h.Records)), slices.Collect(maps.Keys(h.Damage)),
		slices.Collect(maps.Keys(h.LeftOut)))
	slices.Sort(members)
	for _, m := range slices.Compact(members) {
		if records, ok := h.Records[m]; ok {
			p.records(m, records, h.RecordsOmitted[m])
		} else {
			p.line("  %s", clean(m))
		}
		for _, d := range slices.Concat(h.Damage[m], h.LeftOut[m]) {
			p.text("    !! ", d)
		}
	}
}

func by(e compare.KeyEntry) string {
	s := ""
	if e.Proposer != "" {
		s += "  by " + e.Proposer
	}
	if e.User != "" {
		s += fmt.Sprintf(" user=%s authrev=%d", e.User, e.AuthRevision)
	}
	return s
}

func (p historyPage) records(member string, records []compare.KeyRecord, older int) {
	p.line("  %s", clean(member))
	if older > 0 {
		p.line("    %s, not listed", plural.Of(older, "older record", "older records"))
	}
	if len(records) == 0 {
		p.line("    no record of this key, live or in free pages")
		return
	}
	rows := [][]string{}
	for _, r := range records {
		what := "tombstone"
		if !r.Tombstone {
			what = fmt.Sprintf("create %d version %d %s%s", r.CreateRevision, r.Version, valueText(r.Value),
				objectText(r.Object))
		}
		if r.Lease != "" {
			what += " lease " + r.Lease
		}
		rows = append(rows, []string{r.Revision, string(r.Origin), fmt.Sprintf("page %d", r.Page), what})
	}
	p.table("    ", []string{"revision", "found", "where", "record"}, rows)
}

// objectText returns the name of a Kubernetes object, shown after its key or value.
func objectText(o *evidence.Object) string {
	if o == nil {
		return ""
	}
	return "  " + clean(o.String())
}

func valueText(v *compare.Value) string {
	switch {
	case v == nil:
		return ""
	case v.Bytes != nil:
		return "val=" + quoted(*v.Bytes)
	}
	return fmt.Sprintf("val=<len %d digest %s>", v.Len, v.Digest)
}
