package htmlreport

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/dossier"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

type moment struct{ At, Kind, Members, What string }

type termRow struct {
	Term          uint64
	Range, Leader string
}

type ends struct{ Name, Revision, Auth, Consistent, Lacks string }

type membershipRow struct{ Name, ID, Spans string }

// maxMoments bounds the table of the timeline, maxRows that of the differences; the drawings show all.
const (
	maxMoments = 400
	maxRows    = 200
)

func (v *view) timeline() {
	t := v.d.Timeline
	if t == nil {
		return
	}
	v.Timeline, v.TimelineFrom, v.TimelineTo = true, t.First, t.Last
	for i := range t.Marks {
		m := &t.Marks[i]
		if len(v.Moments) == maxMoments {
			v.MomentsMore = len(t.Marks) - maxMoments
			break
		}
		what := m.What
		if m.Refused {
			what += " (refused by every server)"
		}
		v.Moments = append(v.Moments, moment{At: termIndex(m.Term, m.Index), Kind: m.Kind,
			Members: text(strings.Join(m.Members, ", ")), What: text(what)})
	}
	v.MomentsMore += t.MarksLeftOut
	for i := range t.Terms {
		x := &t.Terms[i]
		if len(v.Terms) == maxMoments {
			break
		}
		leader := "not shown by the logs"
		if x.Leader != "" {
			leader = x.Leader + ", probably: " + plural.Of(x.Votes, "vote is", "votes are") + " in the logs"
			if x.Elected {
				leader = x.Leader + ", by a majority of votes"
			}
		}
		v.Terms = append(v.Terms, termRow{Term: x.Term, Range: fmt.Sprintf("%d to %d", x.From, x.To),
			Leader: text(leader)})
	}
	for _, h := range t.History {
		var spans []string
		for _, s := range h.Spans {
			spans = append(spans, fmt.Sprintf("%s from %d to %d", s.What, s.From, s.To))
		}
		v.Membership = append(v.Membership, membershipRow{Name: text(h.Name), ID: h.ID.String(),
			Spans: strings.Join(spans, "; ")})
	}
}

type bucketRow struct {
	Name, Reason string
	Compared     int
	Differ, Same int
	Bad          bool
	Only         []int
}

type diffRow struct {
	Key   string
	Cells []string
}

func (v *view) differences() {
	total := 0
	for i := range v.d.Differences {
		b := &v.d.Differences[i]
		v.Buckets = append(v.Buckets, bucketRow{Name: text(b.Bucket), Compared: b.Compared, Differ: b.Differ,
			Same: b.SameContent, Only: b.Only, Reason: text(b.Reason), Bad: b.Differ > 0})
		total += b.Differ
		v.rows(b)
	}
	v.HasRows = len(v.Rows) > 0
	v.RowsMore = max(0, total-len(v.Rows))
	equal := strings.Join(v.d.Equal, ", ")
	for _, s := range v.d.NotCompared {
		v.NotCompared = append(v.NotCompared, text(upper(s)))
	}
	who := "the last entry"
	if v.d.ComparedAt > 0 {
		who = fmt.Sprintf("entry %d, the last", v.d.ComparedAt)
	}
	if who += " that all members have applied"; len(v.NotCompared) > 0 {
		who = strings.Replace(who, "all members", "all members which could be compared", 1)
	}
	switch {
	case len(v.Names) < 2:
		v.DiffNote = "There is one source, so nothing was compared."
	case len(v.d.Differences)+len(v.d.Equal) == 0:
		v.DiffNote = "The sources could not be compared."
	case len(v.d.Differences) == 0:
		v.DiffNote = "All buckets are equal at " + who + ": " + equal + "."
	case equal != "":
		v.DiffNote = "Compared at " + who + ". Equal: " + equal + "."
	default:
		v.DiffNote = "Compared at " + who + "."
	}
	v.DiffNote = text(v.DiffNote)
}

// rows fills the table for readers without JavaScript.
func (v *view) rows(b *dossier.Difference) {
	key := ""
	for n := range b.Rest {
		if len(v.Rows) >= maxRows {
			return
		}
		key = key[:b.Shared[n]] + b.Rest[n]
		row := diffRow{Key: text(clip(key, 300))}
		if b.Bucket != "key" {
			row.Key = b.Bucket + "/" + row.Key
		}
		sha := ""
		for i := range b.Cells {
			c := &b.Cells[i]
			if c.Text != nil {
				row.Cells = append(row.Cells, text(orAbsent(clip(c.Text[n], 300))))
				continue
			}
			if c.SHA[n] != "=" && c.SHA[n] != "" {
				sha = c.SHA[n]
			}
			if c.Mod[n] == 0 {
				row.Cells = append(row.Cells, "absent")
				continue
			}
			row.Cells = append(row.Cells, fmt.Sprintf("mod %d version %d, %d bytes, %s", c.Mod[n], c.Version[n],
				c.Len[n], sha))
		}
		v.Rows = append(v.Rows, row)
	}
}

func orAbsent(s string) string {
	if s == "" {
		return "absent"
	}
	return s
}

type segmentRow struct{ Member, Name, Size, Entries, Records, End string }

// maxSegments bounds the table of log segments.
const maxSegments = 500

func (v *view) files() {
	for i := range v.d.Storage {
		s := &v.d.Storage[i]
		v.pages(s)
		if len(s.Prefixes) == 0 {
			continue
		}
		v.PrefixesOf = text(s.Member)
		for _, p := range s.Prefixes {
			p.Name = text(p.Name)
			v.Prefixes = append(v.Prefixes, p)
		}
	}
	for i := range v.d.Report.Members {
		m := &v.d.Report.Members[i]
		for _, s := range segmentsOf(m) {
			if len(v.Segments) == maxSegments {
				return
			}
			row := segmentRow{Member: text(m.Name), Name: text(s.Name), Size: bytesText(s.Size),
				Entries: fmt.Sprintf("%d to %d", s.First, s.Last), Records: strconv.Itoa(s.records), End: s.end}
			if s.Lost {
				row.Name, row.Size, row.Records, row.End = "missing", "", "", "lost"
			}
			v.Segments = append(v.Segments, row)
		}
	}
}

// group is the findings that one cause explains, or those without a cause.
type group struct {
	Title, Sub string
	Findings   []finding
}

type finding struct {
	ID, Severity, Title, Explanation, Members, At, Show string
	Evidence                                            []evidenceRow
	More                                                int
	Open                                                bool
}

type evidenceRow struct{ Member, Where, Observed, Expected string }

func (v *view) findings(r *compare.Report) {
	used := map[string]bool{}
	var aside []group
	for i := range r.Causes {
		c := &r.Causes[i]
		g := group{Title: text(upper(c.Title)),
			Sub: text(fmt.Sprintf("%s, %s. Refuted by %s", c.ID, c.Certainty, c.RefutedBy))}
		for k := range r.Findings {
			if f := &r.Findings[k]; slices.Contains(c.Because, f.ID) && !used[f.ID] {
				used[f.ID] = true
				g.Findings = append(g.Findings, v.finding(f))
			}
		}
		switch {
		case len(g.Findings) == 0:
		case c.Secondary:
			aside = append(aside, g)
		default:
			v.Groups = append(v.Groups, g)
		}
	}
	rest, notes := group{Title: "Also found"}, group{Title: "Notes"}
	for k := range r.Findings {
		f := &r.Findings[k]
		switch {
		case used[f.ID]:
		case f.Severity == check.Info:
			notes.Findings = append(notes.Findings, v.finding(f))
		default:
			rest.Findings = append(rest.Findings, v.finding(f))
		}
	}
	for _, g := range append(append([]group{rest}, aside...), notes) {
		if len(g.Findings) > 0 {
			v.Groups = append(v.Groups, g)
		}
	}
	if len(v.Groups) > 0 && len(v.Groups[0].Findings) > 0 && v.Groups[0].Findings[0].Severity != string(check.Info) {
		v.Groups[0].Findings[0].Open = true
	}
}

func (v *view) finding(f *check.Finding) finding {
	x := finding{ID: f.ID, Severity: string(f.Severity), Title: text(f.Title), Explanation: text(upper(f.Explanation)),
		Members: text(strings.Join(f.Members, ", ")), More: f.More}
	if f.At.Index > 0 {
		x.At = "entry " + termIndex(f.At.Term, f.At.Index)
	}
	if f.At.Revision != nil {
		x.At = strings.TrimPrefix(x.At+fmt.Sprintf(", revision %d.%d", f.At.Revision.Main, f.At.Revision.Sub), ", ")
	}
	const shown = 25
	for i := range f.Evidence {
		e := &f.Evidence[i]
		if x.Show == "" {
			x.Show = v.runnable(e.Show)
		}
		if i >= shown {
			x.More++
			continue
		}
		x.Evidence = append(x.Evidence, evidenceRow{Member: text(e.Member), Where: text(where(e)),
			Observed: text(e.Observed), Expected: text(e.Expected)})
	}
	return x
}

func where(e *check.Evidence) string {
	s := e.File
	if e.Offset != nil {
		s += fmt.Sprintf("@0x%x", *e.Offset)
	}
	if e.Page != nil {
		s += fmt.Sprintf(" page %d", *e.Page)
	}
	if e.Bucket != "" {
		s += " " + e.Bucket
	}
	if len(e.Key) > 0 {
		s += " " + key(e.Key)
	}
	if e.Field != "" {
		s += " " + e.Field
	}
	return strings.TrimSpace(s)
}

// checkList is the checks with one outcome.
type checkList struct {
	Name, Tone string
	Open       bool
	List       []compare.CheckOutcome
}

func (v *view) checks(r *compare.Report) {
	lists := []checkList{{Name: "violated", Open: true}, {Name: "not checked"}, {Name: "holds"}}
	for _, c := range r.Checks {
		c.Title, c.Reason = text(c.Title), text(c.Reason)
		at := 1
		switch c.Outcome {
		case check.Violated:
			at, v.Violated = 0, v.Violated+1
		case check.Holds:
			at, v.Holds = 2, v.Holds+1
		default:
			v.NotChecked++
		}
		lists[at].List, lists[at].Tone = append(lists[at].List, c), tone(c.Outcome)
	}
	v.Checks = lists
}

type sourceRow struct {
	Name, Kind, Etcd, SHA256 string
	Files                    int
	Bytes                    string
}

func (v *view) inputs(r *compare.Report) {
	v.InputsNote = "All sources were opened read-only. No file changed while it was read."
	if !r.InputsUnchanged {
		v.InputsNote = "A source changed while it was read: nothing on this page can be trusted. Copy the data dir " +
			"of the stopped member and run again."
	}
	etcd := map[string]string{}
	for i := range r.Members {
		if e := r.Members[i].WroteBy.Etcd; e != nil {
			etcd[r.Members[i].Name] = *e
		}
	}
	for _, s := range r.Sources {
		v.Sources = append(v.Sources, sourceRow{Name: text(s.Name), Kind: string(s.Kind), Etcd: text(etcd[s.Name]),
			SHA256: s.SHA256, Files: s.Files, Bytes: bytesText(s.Bytes)})
	}
}
