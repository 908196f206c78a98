package cli

import (
	"fmt"
	"strings"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/repair/rebuild"
)

func (o *rebuildOptions) show(r *rebuild.Result) error {
	base := r.Base
	if base == "" {
		base = "nothing: the log from its first entry"
	}
	sheet := render.Sheet{Sections: []render.Section{{Pairs: [][2]string{
		{"base", base},
		{"logs", strings.Join(r.Logs, ", ")},
		{"rules", "etcd " + r.Etcd},
		{"target", r.Target},
		{"from", pointText(r.From.Index, r.From.Term, r.From.Revision, r.From.CompactRevision)},
		{"to", pointText(r.To.Index, r.To.Term, r.To.Revision, r.To.CompactRevision)},
		{"entries", fmt.Sprintf("%d executed, %d with an effect, %d refused by the rules, %d records written",
			r.Entries, r.Applied, r.Refused, r.Records)},
		{"keys", fmt.Sprint(r.Keys)},
		{"HashKV", fmt.Sprintf("%d at revision %d", r.HashKV, r.To.Revision)},
		{"output", r.Output},
		{"sha256", r.SHA256},
		{"database", r.DB},
	}}}}
	add := func(title string, lines []string) {
		if len(lines) > 0 {
			sheet.Sections = append(sheet.Sections, render.Section{Title: title, Lines: lines})
		}
	}
	add("skipped", entryLines(r.Skipped, int64(len(r.Skipped))))
	if c := r.Consequences; c != nil {
		add("what that changed", consequenceLines(c))
	}
	add("not decided by the log", entryLines(r.Doubtful, r.DoubtfulCount))
	add("compared with members", verifiedLines(r))
	notes := r.Notes
	if r.ByMajority != "" {
		notes = append([]string{r.ByMajority}, notes...)
	}
	add("notes", notes)
	sheet.Sections = append(sheet.Sections, render.Section{Title: "next",
		Commands: []render.Command{{Run: restoreCommand(r.Output)}}})
	return render.Document(o.io.Out, o.format, r, sheet, o.renderOptions())
}

func entryLines(list []rebuild.EntryLine, all int64) (out []string) {
	for i, l := range list {
		if i == shownKeys {
			return append(out, fmt.Sprintf("… and %d more", all-int64(i)))
		}
		out = append(out, fmt.Sprintf("%d/%d %s: %s", l.Term, l.Index, l.What, l.Why))
	}
	return out
}

func consequenceLines(c *rebuild.Consequences) (out []string) {
	if c.EntryCount == 0 && c.KeyCount == 0 {
		out = append(out, "nothing that followed")
	}
	for i, d := range c.Entries {
		if i == shownKeys {
			out = append(out, fmt.Sprintf("… and %d more entries", c.EntryCount-int64(i)))
			break
		}
		out = append(out, fmt.Sprintf("%d/%d %s: was %s, is now %s", d.Term, d.Index, d.What, d.Without, d.With))
	}
	for i, k := range c.Keys {
		if i == shownKeys {
			out = append(out, fmt.Sprintf("… and %d more keys", c.KeyCount-int64(i)))
			break
		}
		out = append(out, fmt.Sprintf("key %s: was %s, is now %s", render.Quoted(k.Key), k.Without, k.With))
	}
	if len(c.EmptyRevisions) > 0 {
		out = append(out, fmt.Sprintf("revisions without records: %v (they were those of the skipped entries; the "+
			"history up to the last of them is compacted)", c.EmptyRevisions))
	}
	return out
}

func verifiedLines(r *rebuild.Result) (out []string) {
	for _, v := range r.Verified {
		var equal, differ, open []string
		for _, b := range v.Buckets {
			switch {
			case b.Equal == release.Unknown:
				open = append(open, b.Bucket+" ("+b.Why+")")
			case b.Equal.Certain():
				equal = append(equal, b.Bucket)
			default:
				differ = append(differ, b.Bucket)
			}
		}
		if v.HashKV.Certain() {
			equal = append(equal, "HashKV")
		} else if v.HashKV != release.Unknown {
			differ = append(differ, "HashKV")
		}
		out = append(out, fmt.Sprintf("%s, keys up to revision %d: equal %s", v.Member, v.Revision, orNone(equal)))
		if len(differ) > 0 {
			out = append(out, "!! "+v.Member+" differs in "+strings.Join(differ, ", "))
		}
		if len(open) > 0 {
			out = append(out, "not compared: "+strings.Join(open, "; "))
		}
	}
	return out
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "nothing"
	}
	return strings.Join(list, ", ")
}
